"""Whose turn it is: one run at a time per conversation, a fair gate over all, limits per minute."""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import Callable, Hashable
from time import monotonic


class QueueFull(Exception):
    """Enough questions wait in this conversation. `waiting` says how many."""

    def __init__(self, waiting: int) -> None:
        super().__init__(f"{waiting} are waiting")
        self.waiting = waiting


class Ticket:
    """A place in a line. `await ready()`, and always `leave()` in a finally."""

    def __init__(self, leave: Callable[[Ticket], None]) -> None:
        self._leave = leave
        self._future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.left = False

    @property
    def granted(self) -> bool:
        return self._future.done() and not self._future.cancelled()

    async def ready(self) -> None:
        """Wait for the turn. Cancelling the wait does not give the place up: `leave()` does."""
        await asyncio.shield(self._future)

    def leave(self) -> None:
        """Give the place up, waiting or granted. Harmless when repeated."""
        if not self.left:
            self.left = True
            self._leave(self)
            self._future.cancel()

    def _grant(self) -> None:
        self._future.set_result(None)


class FairGate:
    """At most `size` at once; those waiting are let in by lanes: the one that has been let in least
    comes first, and of equals one after the other.

    A group with fifty questions therefore delays another group's first one by at most one run.
    Counted is since the line began, and what a lane then had inside beyond one; who joins the line
    later begins at its level and catches up with nobody (start-time fair queuing).
    """

    def __init__(self, size: int, *, on_idle: Callable[[], object] = lambda: None) -> None:
        self.size = size
        self._on_idle = on_idle
        self._inside: Counter[Hashable] = Counter()
        self._lanes: dict[Hashable, deque[Ticket]] = {}
        self._served: Counter[Hashable] = Counter()
        """By lane, while there is a line."""
        self._level = 0
        """What the lane had been served that was let in last."""

    @property
    def waiting(self) -> int:
        return sum(map(len, self._lanes.values()))

    def join(self, lane: Hashable, *, at_once: bool = False) -> Ticket:
        """Stand in line. `at_once` goes in over the limit and makes the others wait instead."""
        ticket = Ticket(lambda mine: self._left(lane, mine))
        if at_once or (self._inside.total() < self.size and not self._lanes):
            self._enter(lane, ticket)
        else:
            if not self._lanes:
                self._level = 0
                self._served = Counter({lane: n - 1 for lane, n in self._inside.items()})
            if lane not in self._lanes:
                self._served[lane] = max(self._served[lane], self._level)
            self._lanes.setdefault(lane, deque()).append(ticket)
        return ticket

    def resize(self, size: int) -> None:
        self.size = size
        self._admit()

    def _left(self, lane: Hashable, ticket: Ticket) -> None:
        if ticket.granted:
            self._inside[lane] -= 1
            if not self._inside[lane]:
                del self._inside[lane]
            self._admit()
        else:
            line = self._lanes[lane]
            line.remove(ticket)
            if not line:
                del self._lanes[lane]
        if not self._inside and not self._lanes:
            self._on_idle()

    def _admit(self) -> None:
        while self._lanes and self._inside.total() < self.size:
            lane = min(self._lanes, key=self._served.__getitem__)
            self._level = self._served[lane]
            line = self._lanes.pop(lane)
            ticket = line.popleft()
            if line:
                self._lanes[lane] = line  # to the back: the other lanes come first
            self._enter(lane, ticket)

    def _enter(self, lane: Hashable, ticket: Ticket) -> None:
        self._inside[lane] += 1
        self._served[lane] += 1
        ticket._grant()


class ConversationQueue:
    """One at a time per conversation, in order of arrival, with a bounded line behind it."""

    def __init__(self, length: int) -> None:
        self.length = length
        self._gates: dict[str, FairGate] = {}

    def waiting(self, conversation: str) -> int:
        gate = self._gates.get(conversation)
        return gate.waiting if gate else 0

    def join(self, conversation: str) -> Ticket:
        """Stand in line; raises QueueFull."""
        gate = self._gates.get(conversation)
        if gate is None:
            gate = FairGate(1, on_idle=lambda: self._gates.pop(conversation, None))
            self._gates[conversation] = gate
        if gate.waiting >= self.length:
            raise QueueFull(gate.waiting)
        return gate.join(conversation)

    def __len__(self) -> int:
        """Conversations that are running or waiting."""
        return len(self._gates)


class RateLimit:
    """At most `per_minute` in any 60 seconds, for each key."""

    WINDOW = 60.0

    def __init__(self, per_minute: int, *, clock: Callable[[], float] = monotonic) -> None:
        self.per_minute = per_minute
        self._clock = clock
        self._times: dict[str, list[float]] = {}
        """Oldest first; lists, because an empty deque alone takes 700 bytes."""
        self._told: dict[str, float] = {}
        self._swept = clock()

    def allows(self, key: str) -> bool:
        """Whether `key` may ask now; if so, it is counted."""
        now = self._clock()
        self._sweep(now)
        times = self._times.setdefault(key, [])
        while times and times[0] <= now - self.WINDOW:
            times.pop(0)
        if len(times) >= self.per_minute:
            return False
        times.append(now)
        return True

    def should_tell(self, key: str) -> bool:
        """True once per window: somebody who floods is not answered with a flood."""
        now = self._clock()
        if now - self._told.get(key, -self.WINDOW) < self.WINDOW:
            return False
        self._told[key] = now
        return True

    def _sweep(self, now: float) -> None:
        """Once per window forget those who have been quiet."""
        if now - self._swept < self.WINDOW:
            return
        self._swept, since = now, now - self.WINDOW
        self._times = {k: t for k, t in self._times.items() if t and t[-1] > since}
        self._told = {k: t for k, t in self._told.items() if t > since}
