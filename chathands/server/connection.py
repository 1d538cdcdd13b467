"""The HTTP connection with limits on what a client may hold: uvicorn has none before the body.

Without them a client that sends a byte now and then keeps a connection for ever, and one that never
ends its head makes the process grow. `serve_options` gives uvicorn all of it.
"""

from __future__ import annotations

import asyncio
from typing import Any, Literal

from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

HEAD_SECONDS = 15.0
"""From the connection, or the first byte of a further request, to the end of its head."""
HEAD_BYTES = 64 * 1024
"""Of request line and headers; proxies stop at 8 to 32 kB."""
BODY_SECONDS = 20.0
BODY_BYTES_PER_SECOND = 16 * 1024
"""A body has so long, and more for what of it has come: 8 MB over a bad line take minutes."""
STALL_SECONDS = 60.0
"""For a client that does not read what is sent to it, and holds an upstream with that."""
TICK_SECONDS = 2.0
"""Between two looks at a connection; the limits are late by as much."""
KEEP_ALIVE_SECONDS = 15
"""Longer than the 5 s for which the SDKs keep theirs: who closes first makes the other one fail."""

Phase = Literal["idle", "head", "body"]


class GuardedProtocol(HttpToolsProtocol):
    """Ends connections that hold without doing anything. One timer a connection."""

    head_seconds = HEAD_SECONDS
    body_seconds = BODY_SECONDS
    stall_seconds = STALL_SECONDS
    tick_seconds = TICK_SECONDS

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._phase: Phase = "idle"
        self._since: float | None = self.loop.time()
        """Of the phase; None while the client owes nothing."""
        self._bytes = 0
        self._fields = 0
        self._stalled: float | None = None
        self._too_large = False
        self._tick = self.loop.call_later(self.tick_seconds, self._look)

    def connection_lost(self, exc: Exception | None) -> None:
        self._tick.cancel()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self._phase == "idle" and self._since is None:
            self._since, self._bytes = self.loop.time(), 0  # also when it is only line ends
        super().data_received(data)
        if self._phase != "body" and self._since is not None:
            self._bytes += len(data)
            if self._bytes > HEAD_BYTES and not self.transport.is_closing():
                self._end(431)

    def on_message_begin(self) -> None:
        self._phase, self._since, self._bytes = "head", self.loop.time(), 0
        self._fields = 0
        super().on_message_begin()

    def on_header(self, name: bytes, value: bytes) -> None:
        self._fields += len(name) + len(value)
        if self._fields > HEAD_BYTES:
            self._too_large = True
            raise ValueError("the head is too large")  # ends in send_400_response
        super().on_header(name, value)

    def on_headers_complete(self) -> None:
        super().on_headers_complete()
        self._phase, self._since, self._bytes = "body", self.loop.time(), 0

    def on_body(self, body: bytes) -> None:
        self._bytes += len(body)
        super().on_body(body)

    def on_message_complete(self) -> None:
        self._phase, self._since, self._bytes = "idle", None, 0
        super().on_message_complete()

    def send_400_response(self, msg: str) -> None:
        if self._too_large:
            self._end(431)
        elif self._answering:
            self.transport.close()  # garbage behind a request whose answer is on its way
        else:
            super().send_400_response(msg)

    def pause_writing(self) -> None:
        self._stalled = self.loop.time()
        super().pause_writing()

    def resume_writing(self) -> None:
        self._stalled = None
        super().resume_writing()

    def handle_websocket_upgrade(self) -> None:
        self._tick.cancel()
        super().handle_websocket_upgrade()

    @property
    def _answering(self) -> bool:
        """An answer has begun and is not at its end; nothing else may be written."""
        cycle = self.cycle
        return cycle is not None and cycle.response_started and not cycle.response_complete

    def _look(self) -> None:
        """End the connection if its client has used up its time."""
        now = self.loop.time()
        self._tick = self.loop.call_later(self.tick_seconds, self._look)
        if self._stalled is not None and now - self._stalled > self.stall_seconds:
            self.transport.abort()
        elif self._since is None or self.transport.is_closing():
            return
        elif self._phase == "body":
            more = self._bytes / BODY_BYTES_PER_SECOND
            late = now - self._since > self.body_seconds + more
            if late and not self.flow.read_paused:
                self._end(408)
        elif now - self._since > self.head_seconds and not self._answering:
            self._end(408)

    def _end(self, status: int) -> None:
        """Say why, if that can still be said, and close."""
        if not self._answering:
            self.transport.write(
                STATUS_LINE[status] + b"content-length: 0\r\nconnection: close\r\n\r\n"
            )
        self.transport.close()


def serve_options() -> dict[str, Any]:
    """For uvicorn.Config."""
    return {
        "http": GuardedProtocol,
        "ws": "none",
        "timeout_keep_alive": KEEP_ALIVE_SECONDS,
        "access_log": False,
        "server_header": False,
        # Who asks is known by token; an address in a header is a claim.
        "proxy_headers": False,
    }
