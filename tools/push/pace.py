"""When a robot may take the next messages: places in a queue inside the platform's rate."""

from __future__ import annotations

import time
from collections import defaultdict, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass

Windows = Sequence[tuple[int, float]]
"""(messages, seconds): never more than so many within so long."""

PENALTY_SECONDS = 60.0
"""How long nothing is tried after the platform itself said there were too many."""


@dataclass(frozen=True, slots=True)
class Places:
    """`delays`: seconds from now until each message may leave. `wait` > 0: none was taken, and that
    many seconds later all of them could be."""

    delays: tuple[float, ...] = ()
    wait: float = 0.0


class Pace:
    """A queue per key (a webhook), first come first served; `now` is a monotonic clock in
    seconds."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._times: defaultdict[str, deque[float]] = defaultdict(deque)
        self._closed_until: dict[str, float] = {}

    def reserve(self, key: str, count: int, windows: Windows, patience: float = 0) -> Places:
        """Places for `count` messages, all of them within `patience` seconds or none."""
        now = self._now()
        taken = self._times[key]
        longest = max(seconds for _, seconds in windows)
        while taken and taken[0] <= now - longest:
            taken.popleft()
        planned = list(taken)
        for _ in range(count):
            # Behind everything that was given before: the order of asking is the order of sending.
            at = max(now, self._closed_until.get(key, now), planned[-1] if planned else now)
            for most, seconds in windows:
                if len(planned) >= most:
                    at = max(at, planned[-most] + seconds)
            planned.append(at)
        mine = planned[len(taken) :]
        last = mine[-1] - now
        if last > patience:
            return Places(wait=last - patience)
        taken.extend(mine)
        return Places(tuple(at - now for at in mine))

    def close(self, key: str) -> None:
        """Give no place for a while: the other side said there were too many."""
        self._closed_until[key] = self._now() + PENALTY_SECONDS
