"""An external MCP server over streamable HTTP: the `mcp` package's transport with limits."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from typing import Any

import httpx2
from mcp.client.streamable_http import streamable_http_client

LONGEST_BODY = 16 * 1024 * 1024
"""Bytes of one message; as much as a child process may send."""
HTTP_SECONDS, STREAM_SECONDS = 30.0, 3600.0
"""To connect and send; and without a byte while a call runs: what ends that is the call's own
limit."""


async def over_http(
    url: str, headers: Mapping[str, str], closing: AsyncExitStack
) -> AbstractAsyncContextManager[Any]:
    """A transport for `mcp.Client`; its HTTP client is closed with `closing`.

    The address is the admin's own, so that it may lie inside; redirects are followed within its
    origin only (the package does that), and headers leave for no other.
    """
    # At INFO it writes whole addresses.
    logging.getLogger("httpx2").setLevel(logging.WARNING)
    client = httpx2.AsyncClient(
        headers={"User-Agent": "chathands", **headers, "Accept-Encoding": "identity"},
        timeout=httpx2.Timeout(HTTP_SECONDS, read=STREAM_SECONDS),
        event_hooks={"response": [_limit]},
    )
    await closing.enter_async_context(client)
    return streamable_http_client(url, http_client=client, max_sse_event_size=LONGEST_BODY)


async def _limit(response: httpx2.Response) -> None:
    # What was not asked for unpacks to any size.
    if response.headers.get("content-encoding", "identity") != "identity":
        raise httpx2.RemoteProtocolError("a compressed answer", request=response.request)
    kind = response.headers.get("content-type", "")
    stream = response.stream
    if not kind.startswith("text/event-stream") and isinstance(stream, httpx2.AsyncByteStream):
        response.stream = _Capped(stream)


class _Capped(httpx2.AsyncByteStream):
    """A body that ends in an error where it gets too large to be held."""

    def __init__(self, stream: httpx2.AsyncByteStream) -> None:
        self._stream = stream

    async def __aiter__(self) -> AsyncIterator[bytes]:
        left = LONGEST_BODY
        async for piece in self._stream:
            left -= len(piece)
            if left < 0:
                raise httpx2.ReadError("the answer is too large")
            yield piece

    async def aclose(self) -> None:
        await self._stream.aclose()
