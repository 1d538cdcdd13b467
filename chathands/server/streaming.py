"""A reply as server-sent events, from whatever protocol's encoder."""

from __future__ import annotations

import asyncio
import logging
import secrets
import time
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from typing import Protocol

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from chathands.server.asking import Failure
from chathands.server.errors import HEADERS

_log = logging.getLogger(__name__)

SILENCE_SECONDS = 5.0
"""After so much of it a sign of life is sent: proxies cut connections that are silent for 30 to 60
seconds, and a model with a contract to read on a slow machine is silent for longer."""


class Encoder(Protocol):
    """What the stream asks of a protocol beside its events."""

    def keep_alive(self) -> str:
        """Events that say nothing."""
        ...

    def failed(self, failure: Failure) -> str:
        """Events that end a stream which has begun."""
        ...

    def refused(self, failure: Failure) -> Response:
        """The answer instead of a stream, where nothing has left yet."""
        ...


class EventStream(Response):
    """Sends `events` as they come. The head waits for the first of them, or for a failure, which
    can then still be a status; but not longer than a client can bear silence.

    A client that hangs up closes `events` where they stand, and with them the upstream's reply.
    """

    media_type = "text/event-stream"

    def __init__(
        self,
        events: AsyncGenerator[str, None],
        encoder: Encoder,
        *,
        headers: Mapping[str, str] | None = None,
        silence: float | None = None,
    ) -> None:
        self.status_code = 200
        self.background = None
        # For proxies that would wait for more before they send on.
        own = {**HEADERS, "cache-control": "no-cache", "x-accel-buffering": "no"}
        self.init_headers({**own, **(headers or {})})
        self._events = events
        self._encoder = encoder
        self._silence = SILENCE_SECONDS if silence is None else silence
        self._last = time.monotonic()
        self._begun = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        work = asyncio.ensure_future(self._send_all(scope, receive, send))
        gone = asyncio.ensure_future(_hung_up(receive))
        try:
            while not work.done() and not gone.done():
                silent = time.monotonic() - self._last
                await asyncio.wait(
                    {work, gone},
                    timeout=max(self._silence - silent, 0.01),
                    return_when=asyncio.FIRST_COMPLETED,
                )
                if not work.done() and time.monotonic() - self._last >= self._silence:
                    await self._send(send, self._encoder.keep_alive())
            if work.done():
                work.result()
        finally:
            work.cancel()
            gone.cancel()
            await asyncio.wait({work, gone})

    async def _send_all(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            async with aclosing(self._events) as events:
                async for event in events:
                    await self._send(send, event)
        except Failure as failure:
            if not self._begun:
                self._begun = True
                await self._encoder.refused(failure)(scope, receive, send)
                return
            await self._send(send, self._encoder.failed(failure))
        except Exception:
            if not self._begun:
                raise
            reference = secrets.token_hex(4)
            _log.exception("a stream broke: reference %s", reference)
            failure = Failure("internal", f"internal error, reference {reference}")
            await self._send(send, self._encoder.failed(failure))
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _send(self, send: Send, text: str) -> None:
        self._last = time.monotonic()
        if not self._begun:
            self._begun = True
            start = {"type": "http.response.start", "status": self.status_code}
            await send({**start, "headers": self.raw_headers})
        if text:
            body = text.encode("utf-8", "replace")
            await send({"type": "http.response.body", "body": body, "more_body": True})


async def _hung_up(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
