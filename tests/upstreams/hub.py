"""A stand-in for a model hub on loopback: one file, ranges, and the ways in which hubs fail."""

from __future__ import annotations

import asyncio
import contextlib
import re
from dataclasses import dataclass
from typing import Self

from chathands.upstreams.local_sources import Hub


@dataclass
class Manner:
    """How one request is answered."""

    stop_after: int | None = None
    """Bytes of the body after which the connection breaks."""
    knows_ranges: bool = True
    status: int = 200
    body: bytes | None = None
    """Instead of the file."""
    hang_after: int | None = None
    redirect: bool = False


class HubServer:
    """Serves `content` for every path. `manners` are used up one a request, the last one stays."""

    def __init__(self, content: bytes, *manners: Manner) -> None:
        self._content = content
        self._manners = list(manners) or [Manner()]
        self.ranges: list[int] = []
        """Where each request asked to start."""
        self.paths: list[str] = []
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def source(self) -> Hub:
        return Hub("站点", f"http://127.0.0.1:{self._port}/{{repository}}/main/{{file}}")

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self._port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._server.wait_closed()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        with contextlib.suppress(ConnectionError, asyncio.CancelledError):
            await self._answer(await reader.readuntil(b"\r\n\r\n"), writer)
        self._tasks.discard(task)
        writer.close()

    async def _answer(self, head: bytes, writer: asyncio.StreamWriter) -> None:
        manner = self._manners[0] if len(self._manners) == 1 else self._manners.pop(0)
        self.paths.append(head.split(b" ")[1].decode())
        asked = re.search(rb"(?i)range: bytes=(\d+)-", head)
        start = int(asked[1]) if asked else 0
        self.ranges.append(start)
        if manner.redirect:
            there = f"http://127.0.0.1:{self._port}/cdn"
            writer.write(f"HTTP/1.1 302 -\r\nlocation: {there}\r\n".encode())
            writer.write(b"content-length: 0\r\nconnection: close\r\n\r\n")
            return
        body = self._content if manner.body is None else manner.body
        size, status, more = len(body), manner.status, ""
        if asked and manner.knows_ranges and status == 200:
            status, more = 206, f"content-range: bytes {start}-{size - 1}/{size}\r\n"
            body = body[start:]
        writer.write(
            f"HTTP/1.1 {status} -\r\ncontent-length: {len(body)}\r\n{more}"
            "connection: close\r\n\r\n".encode()
        )
        stop = manner.stop_after if manner.stop_after is not None else manner.hang_after
        writer.write(body if stop is None else body[:stop])
        await writer.drain()
        if manner.hang_after is not None:
            await asyncio.Event().wait()
