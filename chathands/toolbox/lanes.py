"""How many calls of one tool run at once, and those of which nobody waits for the end any more.

A function in a thread cannot be stopped, and a coroutine may refuse to be. Such a call keeps its
place until it really ends, so that a tool that hangs takes a few threads and not all.
"""

from __future__ import annotations

import asyncio
from collections import deque
from contextvars import ContextVar
from dataclasses import dataclass, field

CONCURRENCY = 64
"""Calls of one tool at once where tools.toml says nothing: more than a busy server needs for tools
that take 50 ms, and half of the threads there are."""

MAX_LEFT_BEHIND = 4
"""Calls of one tool that hang and are not waited for; then it is refused until one ends."""

MAX_WAITING = 256
"""Calls that wait for their turn with one tool."""


class Stay:
    """One call's place. Everything that runs for it holds it; the last that lets go frees it."""

    def __init__(self, lane: _Lane) -> None:
        self._lane = lane
        self._holders = 1
        self._left = False

    def hold(self) -> None:
        """Something more runs for this call (a thread)."""
        self._holders += 1

    def let_go(self) -> None:
        """Something that ran for it has ended."""
        self._holders -= 1
        if self._holders == 0:
            self._lane.active -= 1
            self._lane.left_behind -= self._left
            self._lane.next()

    def leave(self) -> None:
        """Nobody waits for it any more; if it still runs, it is left behind."""
        if self._holders > 0 and not self._left:
            self._left = True
            self._lane.left_behind += 1


current_stay: ContextVar[Stay | None] = ContextVar("current_stay", default=None)
"""Of the call that runs, for the thread it may start."""


@dataclass(slots=True)
class _Lane:
    limit: int = CONCURRENCY
    active: int = 0
    left_behind: int = 0
    waiting: deque[asyncio.Future[None]] = field(default_factory=deque)

    def next(self) -> None:
        """Let in those there is room for. Whoever is let in has their place already."""
        while self.waiting and self.active < self.limit:
            future = self.waiting.popleft()
            if not future.done():
                self.active += 1
                future.set_result(None)


class Lanes:
    """By the name of the tool."""

    def __init__(self) -> None:
        self._lanes: dict[str, _Lane] = {}

    def left_behind(self, name: str) -> int:
        lane = self._lanes.get(name)
        return lane.left_behind if lane else 0

    def stuck(self, name: str, limit: int | None) -> bool:
        """Whether the tool hangs as often as it may."""
        return self.left_behind(name) >= min(limit or CONCURRENCY, MAX_LEFT_BEHIND)

    async def enter(self, name: str, limit: int | None, seconds: float) -> Stay | None:
        """A place, after at most so many seconds; None when there is none."""
        lane = self._lanes.setdefault(name, _Lane())
        lane.limit = limit or CONCURRENCY
        lane.next()
        if lane.active < lane.limit and not lane.waiting:
            lane.active += 1
            return Stay(lane)
        if len(lane.waiting) >= MAX_WAITING or seconds <= 0:
            return None
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        lane.waiting.append(turn)
        try:
            await asyncio.wait({turn}, timeout=seconds)
        except asyncio.CancelledError:
            if turn.done():
                Stay(lane).let_go()
            raise
        finally:
            if not turn.done():
                turn.cancel()
                lane.waiting.remove(turn)
        return None if turn.cancelled() else Stay(lane)
