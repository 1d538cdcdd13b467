"""A small HTTP/1.1 server on loopback for stand-ins, on asyncio streams.

Not a web framework on purpose: a stand-in has to misbehave below HTTP too (drop the connection
after reading, never answer, answer half), which frameworks do not let it.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import sys
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, Self
from urllib.parse import parse_qsl, unquote

HEAD_LIMIT = 64 * 1024
BODY_LIMIT = 4 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Request:
    method: str
    path: str
    raw_query: str
    headers: dict[str, str]
    """Names in lower case."""
    body: bytes

    @property
    def query(self) -> dict[str, str]:
        """Decoded once, `+` as space, as a form decoder does."""
        return dict(parse_qsl(self.raw_query, keep_blank_values=True))


@dataclass(frozen=True, slots=True)
class Response:
    status: int = 200
    body: bytes = b""
    headers: dict[str, str] = field(default_factory=dict)
    cut: bool = False
    """Close in the middle of the body."""

    @classmethod
    def of(cls, value: Any, status: int = 200) -> Self:
        body = json.dumps(value, ensure_ascii=False).encode()
        return cls(status, body, {"Content-Type": "application/json;charset=UTF-8"})

    @classmethod
    def html(cls, text: str, status: int = 200) -> Self:
        return cls(status, text.encode(), {"Content-Type": "text/html; charset=utf-8"})


DROP = Response(status=0)
"""Close the connection without a byte of an answer."""

HANG = Response(status=-1)
"""Never answer."""


class LoopbackServer:
    """`async with LoopbackServer(handler) as server:` ... `server.url`."""

    def __init__(
        self, handler: Callable[[Request], Response | Awaitable[Response]], port: int = 0
    ) -> None:
        self._handler = handler
        self._port = port
        self._server: asyncio.Server | None = None
        self._connections: set[asyncio.Task[None]] = set()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._port}"

    async def start(self) -> Self:
        self._server = await asyncio.start_server(
            self._connected, "127.0.0.1", self._port, limit=HEAD_LIMIT
        )
        self._port = self._server.sockets[0].getsockname()[1]
        return self

    async def stop(self) -> None:
        if self._server is None:
            return
        self._server.close()
        for task in self._connections:
            task.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)
        await self._server.wait_closed()
        self._server = None

    async def __aenter__(self) -> Self:
        return await self.start()

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.ensure_future(self._serve(reader, writer))
        self._connections.add(task)
        task.add_done_callback(self._connections.discard)
        task.add_done_callback(lambda _: writer.close())  # cancelled before it began, it could not

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while (request := await _read(reader)) is not None:
                answer = self._handler(request)
                response = await answer if isinstance(answer, Awaitable) else answer
                if response is HANG:
                    await reader.read()  # until the other side gives up
                    return
                if response is DROP:
                    return
                last = request.headers.get("connection", "").lower() == "close"
                writer.write(_bytes(response, last=last))
                await writer.drain()
                if response.cut or last:
                    return
        except (ConnectionError, asyncio.IncompleteReadError, ValueError):
            return
        finally:
            writer.close()
            with contextlib.suppress(ConnectionError):
                await writer.wait_closed()


async def _read(reader: asyncio.StreamReader) -> Request | None:
    try:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    except (asyncio.IncompleteReadError, asyncio.LimitOverrunError):
        return None
    first, *lines = head.rstrip("\r\n").split("\r\n")
    method, target, _ = first.split(" ", 2)
    headers = {}
    for line in lines:
        name, _, value = line.partition(":")
        headers[name.strip().lower()] = value.strip()
    body = b""
    if headers.get("transfer-encoding", "").lower() == "chunked":
        while size := int((await reader.readline()).split(b";")[0], 16):
            body += await reader.readexactly(size)
            await reader.readline()
        await reader.readline()
    elif length := int(headers.get("content-length", "0")):
        if length > BODY_LIMIT:
            return None
        body = await reader.readexactly(length)
    path, _, query = target.partition("?")
    return Request(method, unquote(path), query, headers, body)


def _bytes(response: Response, *, last: bool) -> bytes:
    headers = {"Content-Length": str(len(response.body)), **response.headers}
    if last:
        # Without it aiohttp pools the connection whatever the request asked for.
        headers["Connection"] = "close"
    head = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    body = response.body[: len(response.body) // 2] if response.cut else response.body
    return f"HTTP/1.1 {response.status} Stand-in\r\n{head}\r\n".encode("latin-1") + body


def serve_forever(
    handler: Callable[[Request], Response | Awaitable[Response]], port: int, **said: Any
) -> None:
    """Run as a process of its own: prints one JSON line with `url`, then serves until killed."""

    async def run() -> None:
        async with LoopbackServer(handler, port) as server:
            sys.stdout.write(json.dumps({"url": server.url, **said}) + "\n")
            sys.stdout.flush()
            await asyncio.Event().wait()

    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(run())
