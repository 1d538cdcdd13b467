"""How many messages a robot may still take. DingTalk: 20 a minute, then throttled for minutes."""

from __future__ import annotations

import time
from collections import defaultdict, deque
from collections.abc import Callable

PER_MINUTE = 20

WINDOW_SECONDS = 65.0
"""A little over a minute: what is counted here leaves a moment later than it is counted."""

PENALTY_SECONDS = 60.0
"""How long nothing is tried after DingTalk itself said there were too many."""


class Limiter:
    """Counts per key (a webhook); `now` is a monotonic clock in seconds."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._sent: defaultdict[str, deque[float]] = defaultdict(deque)
        self._closed_until: dict[str, float] = {}

    def reserve(self, key: str, count: int) -> float:
        """0 and the places are taken, or the seconds until so many are free and none is taken.

        More than 20 at once never fit: callers keep their messages below that.
        """
        now = self._now()
        sent = self._sent[key]
        while sent and sent[0] <= now - WINDOW_SECONDS:
            sent.popleft()
        wait = max(0.0, self._closed_until.get(key, 0.0) - now)
        missing = len(sent) + count - PER_MINUTE
        if missing > 0:
            index = min(missing, len(sent)) - 1
            wait = max(wait, sent[index] + WINDOW_SECONDS - now if index >= 0 else WINDOW_SECONDS)
        if wait <= 0:
            sent.extend([now] * count)
        return wait

    def close(self, key: str) -> None:
        """Take no more for a while: the other side said there were too many."""
        self._closed_until[key] = self._now() + PENALTY_SECONDS
