"""What all routes of the gateway share: who may ask which model, and how a reply leaves."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine
from typing import Any, NamedTuple, TypeVar

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from chathands.server.auth import Auth, Client
from chathands.server.errors import ApiError
from chathands.upstreams.base import Upstream
from chathands.upstreams.ways import Ways

BODY_CAP = 8 * 1024 * 1024
"""Bytes of a request; a full 200k-token conversation is about 1 MB, pictures travel as URLs."""

CLIENT_CLOSED = 499
"""Nginx's status for a client that hung up; nobody reads it, but access logs show it."""

REQUEST_SECONDS = 300.0
"""An agent's client waits this long by default; the SDKs give up at 600."""

T = TypeVar("T")


class Served(NamedTuple):
    """The upstream that answers for a model's name, and in which ways it is asked."""

    upstream: Upstream
    ways: Ways


class Gateway:
    """Models behind one door. Without an upstream it answers that there is no model."""

    def __init__(
        self,
        door: Auth,
        upstream: Upstream | None,
        *,
        seconds: float = REQUEST_SECONDS,
        ways: Ways | None = None,
    ) -> None:
        self.seconds = seconds
        """For one request together, corrections included."""
        self._door = door
        self._upstream = upstream
        self._ways = ways or Ways()

    def enter(self, request: Request, *, counts: bool = True) -> Client:
        """Who asks; with `counts` it is one more request of its rate.

        Raises ApiError: no such token, too often, or there is no model at all.
        """
        client = self._door.client(request)
        if self._upstream is None:
            raise ApiError(503, "no_model", "no model is configured; only the tool API is served")
        if counts:
            self._door.count(client)
        return client

    def served(self, client: Client, model: str) -> Served:
        """What answers for this name. Raises ApiError: this token is not for it."""
        return Served(self._known(client), self._ways)

    def models(self, client: Client) -> list[str]:
        """The names that this client may use. Raises ApiError."""
        return [self._known(client).name]

    def _known(self, client: Client) -> Upstream:
        assert self._upstream is not None  # `enter` has seen to it
        if client.models and self._upstream.name not in client.models:
            raise ApiError(403, "forbidden", "this token is not for this model")
        return self._upstream


def event_stream(lines: AsyncIterator[str], headers: dict[str, str] | None = None) -> Response:
    """Server-sent events. A client that hangs up ends `lines`."""
    return StreamingResponse(lines, headers=headers, media_type="text/event-stream")


async def while_connected(request: Request, work: Coroutine[Any, Any, T]) -> T | None:
    """The result of `work`; None, and `work` cancelled, when the client hangs up first.

    The server cancels only streams by itself. A model with one slot would otherwise go on writing
    for minutes for a client that has given up and asked again.
    """

    async def hung_up() -> None:
        while (await request.receive())["type"] != "http.disconnect":
            pass

    working, watching = asyncio.ensure_future(work), asyncio.ensure_future(hung_up())
    try:
        await asyncio.wait({working, watching}, return_when=asyncio.FIRST_COMPLETED)
        return working.result() if working.done() else None
    finally:
        working.cancel()
        watching.cancel()
        await asyncio.wait({working, watching})
