"""How often a tool may run: moving windows by the library `limits`, and calls a day by person.

Counted is what begins to run: what is refused, denied or answered from before costs nothing.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from chathands.conversation import canonical_json
from chathands.toolbox.context import Caller

if TYPE_CHECKING:
    from limits import RateLimitItem
    from limits.aio.strategies import MovingWindowRateLimiter

    from chathands.toolbox.rules import Rate

MAX_WINDOWS = 20_000
"""Windows in memory at once: people times tools. Past it the ones unused for longest are dropped;
a flood of invented people must not fill the memory."""


class DailyUse(Protocol):
    """Counts of today, by person (`platform:id`) and tool. Neither waits nor raises."""

    def today(self, person: str, tool: str) -> int: ...

    def count(self, person: str, tool: str) -> None: ...


class DailyUseInMemory:
    """For toolboxes without a store; forgets with the process. Days are of the machine's zone."""

    def __init__(self, *, wall: Callable[[], float] = time.time) -> None:
        self._wall = wall
        self._day = ""
        self._calls: dict[tuple[str, str], int] = {}

    def today(self, person: str, tool: str) -> int:
        self._roll()
        return self._calls.get((person, tool), 0)

    def count(self, person: str, tool: str) -> None:
        self._roll()
        self._calls[person, tool] = self._calls.get((person, tool), 0) + 1

    def _roll(self) -> None:
        day = time.strftime("%Y-%m-%d", time.localtime(self._wall()))
        if day != self._day:
            self._day, self._calls = day, {}


def seconds_to_midnight(now: float) -> float:
    """Until the machine's next day, from wall-clock seconds."""
    local = time.localtime(now)
    return 86_400 - (local.tm_hour * 3600 + local.tm_min * 60 + min(local.tm_sec, 59)) - now % 1


@dataclass(frozen=True, slots=True)
class Full:
    """A limit that is reached. `whose`: user, group or tool; `seconds` until there is room."""

    whose: str
    amount: int
    window: float
    seconds: float


class Rates:
    """`clock` gives seconds that only go forward."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._limiter: MovingWindowRateLimiter | None = None

    async def full(self, caller: Caller, name: str, rate: Rate) -> Full | None:
        """The limit that stands in the way for longest; None when the call may run."""
        found: list[Full] = []
        for whose, key, item in _windows(caller, name, rate):
            limiter = self._ready()
            if not await limiter.test(item, key):
                reset, _ = await limiter.get_window_stats(item, key)
                wait = max(reset - self._clock(), 0.0)
                found.append(Full(whose, item.amount, item.get_expiry(), wait))
        return max(found, key=lambda each: each.seconds, default=None)

    async def spend(self, caller: Caller, name: str, rate: Rate) -> Full | None:
        """Count the call in every window, or in none when one is full, which is returned.

        Nothing in between waits (the windows are in memory), so that of many at once no more pass
        than may.
        """
        full = await self.full(caller, name, rate)
        if full is None:
            for _, key, item in _windows(caller, name, rate):
                await self._ready().hit(item, key)
        return full

    def _ready(self) -> MovingWindowRateLimiter:
        if self._limiter is None:
            from limits.aio.strategies import MovingWindowRateLimiter

            self._limiter = MovingWindowRateLimiter(_storage(self._clock))
        return self._limiter


def _windows(caller: Caller, name: str, rate: Rate) -> Iterator[tuple[str, str, RateLimitItem]]:
    """(whose, key, limit) of each window that a call of this person counts in."""
    if not (rate.user or rate.group or rate.tool):
        return
    from limits import parse_many

    ids: dict[str, list[Any]] = {"user": [caller.platform, caller.user_id], "tool": []}
    if caller.group_id is not None:
        ids["group"] = [caller.platform, caller.group_id]
    for whose, whom in ids.items():
        for item in parse_many(getattr(rate, whose) or "") if getattr(rate, whose) else ():
            yield whose, canonical_json([whose, name, *whom]), item


def _storage(clock: Callable[[], float]) -> Any:
    """The library's own memory storage walks all its keys through a thread after every hit (in
    5.8), counts wall-clock time and has no upper bound."""
    from limits.aio.storage import MemoryStorage

    class Windows(MemoryStorage):
        def __init__(self) -> None:
            super().__init__()
            self.times: dict[str, deque[float]] = {}
            """By key: when its calls of the current window were, oldest first. Keys in the order of
            their last use."""

        async def acquire_entry(self, key: str, limit: int, expiry: int, amount: int = 1) -> bool:
            times = self._current(key, expiry)
            if len(times) + amount > limit:
                return False
            times.extend([clock()] * amount)
            self.times[key] = times
            while len(self.times) > MAX_WINDOWS:
                del self.times[next(iter(self.times))]
            return True

        async def get_moving_window(self, key: str, limit: int, expiry: int) -> tuple[float, int]:
            times = self._current(key, expiry)
            if times:
                self.times[key] = times
            return (times[0] if times else clock()), len(times)

        def _current(self, key: str, expiry: int) -> deque[float]:
            """Taken out, so that putting it back makes it the last used."""
            times = self.times.pop(key, None) or deque()
            while times and times[0] <= clock() - expiry:
                times.popleft()
            return times

        async def reset(self) -> int | None:
            count = len(self.times)
            self.times.clear()
            return count

    return Windows()
