"""What is left alone for a while: an upstream that is down, a key that is used up. No I/O."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Sequence
from typing import Literal

Clock = Callable[[], float]
"""Seconds that only go forward."""

FIRST_REST = 2.0
"""Of an upstream that has failed: as long as a worker behind a proxy needs to come back."""
LONGEST_REST = 60.0
"""After failures in a row, each of which doubles it: then one request finds out again."""

LIMITED_SECONDS = 10.0
"""Of a key whose 429 does not say how long. Limits are counted by the minute or by the second."""
LONGEST_LIMIT = 3600.0
"""A Retry-After beyond is not believed: some services send a date of next month."""
REFUSED_SECONDS = 60.0
"""Of a key that was refused. A 403 may be about what was asked and not about the key, so that it is
not for long, and a refused key is used all the same when there is no other."""

Reason = Literal["limited", "refused"]


class Circuit:
    """Whether an upstream is left alone."""

    def __init__(self, clock: Clock = time.monotonic) -> None:
        self._clock = clock
        self._failures = 0
        self._until = 0.0

    @property
    def resting(self) -> float:
        """Seconds that are left of its rest; 0: it is asked."""
        return max(0.0, self._until - self._clock())

    def failed(self) -> None:
        if self.resting:
            return  # of requests that were on their way together, one counts
        seconds = min(FIRST_REST * 2 ** min(self._failures, 10), LONGEST_REST)
        self._failures += 1
        self._until = self._clock() + seconds

    def answered(self) -> None:
        self._failures, self._until = 0, 0.0


class KeyRing:
    """The keys of one upstream: the first that does not rest is used.

    In their order and not in turn: services keep what they have read of a prompt by key.
    """

    def __init__(self, keys: Sequence[str], clock: Clock = time.monotonic) -> None:
        self.keys = tuple(keys)
        self._clock = clock
        self._rests: dict[str, tuple[float, Reason]] = {}

    def pick(self, tried: Collection[str] = ()) -> str | None:
        """A key that is none of those `tried`: one that is awake, else one that was refused; None
        when the others are used up for now."""
        left = [key for key in self.keys if key not in tried]
        awake = [key for key in left if not self._rest_of(key)]
        refused = [key for key in left if self._rests.get(key, (0, ""))[1] == "refused"]
        return next(iter((*awake, *refused)), None)

    def rest(self, key: str, reason: Reason, seconds: float | None = None) -> float:
        """Leave `key` alone, for how long the service said; gives for how long."""
        if reason == "refused":
            seconds = REFUSED_SECONDS
        seconds = LIMITED_SECONDS if seconds is None else min(seconds, LONGEST_LIMIT)
        self._rests[key] = (self._clock() + seconds, reason)
        return seconds

    def accepted(self, key: str) -> None:
        self._rests.pop(key, None)

    @property
    def resting(self) -> float:
        """Seconds until a key is awake; 0: one is, or none is needed."""
        return min(map(self._rest_of, self.keys), default=0.0)

    @property
    def asleep(self) -> int:
        """How many rest."""
        return sum(self._rest_of(key) > 0 for key in self.keys)

    def position(self, key: str) -> int:
        """Which it is, from 1 on, as logs say instead of the key."""
        return self.keys.index(key) + 1

    def _rest_of(self, key: str) -> float:
        until, _ = self._rests.get(key, (0.0, ""))
        return max(0.0, until - self._clock())
