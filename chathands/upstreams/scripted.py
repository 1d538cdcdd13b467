"""An upstream that plays a script, for tests and demos. No network."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Self

from chathands.emulation.outcome import ModelRequest, NativeCall, Piece, Text, Thinking
from chathands.errors import UpstreamTimeout
from chathands.upstreams.base import Usage


class _Hang(Enum):
    HANG = "hang"


HANG = _Hang.HANG
"""A step of a script: say nothing more until the time is up or the request is cancelled."""

Step = str | Piece | Exception | _Hang


@dataclass(frozen=True, slots=True)
class Reply:
    """A reply whose end is not the ordinary one."""

    steps: str | Sequence[Step]
    finish_reason: str | None = "stop"
    usage: Usage | None = None


Scriptable = str | Sequence[Step] | Reply | Exception | _Hang
Line = Scriptable | Callable[[ModelRequest], Scriptable]
"""One entry of a script: text, pieces, an error to raise, HANG, or a function of the request."""


class Scripted:
    """Plays `replies` in order, one a request; or asks one function for every reply.

    Text is streamed in pieces of `piece_size` characters. Every request is kept in `.requests`.
    A request beyond the script's end raises AssertionError: a test then asked more than it said.
    """

    def __init__(
        self,
        replies: Iterable[Line] | Callable[[ModelRequest], Scriptable],
        *,
        name: str = "scripted",
        context: int = 8192,
        local: bool = False,
        piece_size: int = 8,
    ) -> None:
        self.name = name
        self.context = context
        self.local = local
        self.requests: list[ModelRequest] = []
        self.closed = False
        self._piece_size = piece_size
        self._ask = replies if callable(replies) else None
        self._lines = iter(()) if callable(replies) else iter(replies)

    def stream(self, request: ModelRequest, *, timeout: float) -> ScriptedStream:
        self.requests.append(request)
        line: Line | None = self._ask or next(self._lines, None)
        if line is None:
            raise AssertionError(f"the script has no reply for request {len(self.requests)}")
        reply = line(request) if callable(line) else line
        if not isinstance(reply, Reply):
            alone = isinstance(reply, (Exception, _Hang))
            reply = Reply([reply] if alone else reply)
        return ScriptedStream(reply, timeout, self._piece_size)

    async def aclose(self) -> None:
        self.closed = True


class ScriptedStream:
    """A ModelStream that plays one Reply."""

    def __init__(self, reply: Reply, timeout: float, piece_size: int) -> None:
        self.finish_reason: str | None = None
        self.usage: Usage | None = None
        self._reply = reply
        self._timeout = timeout
        self._steps = _cut(reply.steps, piece_size)
        self._gone = asyncio.Event()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Piece:
        await asyncio.sleep(0)  # as over a socket: others get their turn between two pieces
        step = None if self._gone.is_set() else next(self._steps, None)
        if step is HANG:
            await self._hang()
            step = None
        if isinstance(step, Exception):
            raise step
        if isinstance(step, (Text, Thinking, NativeCall)):
            return step
        if not self._gone.is_set():
            self.finish_reason, self.usage = self._reply.finish_reason, self._reply.usage
        raise StopAsyncIteration

    async def aclose(self) -> None:
        self._gone.set()

    async def _hang(self) -> None:
        try:
            async with asyncio.timeout(self._timeout):
                await self._gone.wait()
        except TimeoutError:
            raise UpstreamTimeout("the script hangs", nothing_received=True) from None


def _cut(steps: str | Sequence[Step], size: int) -> Iterator[Piece | Exception | _Hang]:
    for step in [steps] if isinstance(steps, str) else steps:
        if isinstance(step, str):
            for start in range(0, len(step), size):
                yield Text(step[start : start + size])
        else:
            yield step
