"""How long a run may still take, and when its last seconds begin. Knows no tools and no model."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from chathands.settings import (
    DEADLINE_SECONDS,
    LOCAL_DEADLINE_SECONDS,
    RESERVE_CAP,
    RESERVE_SECONDS,
    RESERVE_SHARE,
    Settings,
)

RETRY_SECONDS = 1.0
"""A correction that has less time than this is not asked for: no model answers faster."""

DECISION_SHARE = 1 / 3
"""Of the reserve: a decision asked for with less working time than this (2 s of 30) would mostly be
cut off, and the time is better added to the answer."""


class Deadline:
    """`total` seconds for one run, by the event loop's clock; it may be paused.

    The end of it is the *reserve*: no tool runs and no new decision is made in it, only the
    answer from what is there is asked for.
    """

    def __init__(
        self, total: float, *, left: float | None = None, clock: Callable[[], float] | None = None
    ) -> None:
        """`left`: what remains of `total` when a suspended run goes on."""
        self.total = total
        self.reserve = min(max(RESERVE_SECONDS, total * RESERVE_SHARE), total * RESERVE_CAP)
        self._clock = clock or asyncio.get_running_loop().time
        self._left = total if left is None else left
        self._since: float | None = self._clock()

    def remaining(self) -> float:
        """Seconds to the very end; never below 0."""
        passed = 0.0 if self._since is None else self._clock() - self._since
        return max(0.0, self._left - passed)

    def working(self) -> float:
        """Seconds until the reserve begins; never below 0. What tools and decisions have."""
        return max(0.0, self.remaining() - self.reserve)

    @property
    def in_reserve(self) -> bool:
        return self.working() <= 0

    def pause(self) -> None:
        """Stop the clock, while a person is asked. Harmless when repeated."""
        if self._since is not None:
            self._left = self.remaining()
            self._since = None

    def resume(self) -> None:
        """Let the clock go on. Harmless when repeated."""
        if self._since is None:
            self._since = self._clock()

    def grant(self, seconds: float) -> None:
        """Make sure that `seconds` of working time are left: an approved call gets its own."""
        missing = seconds - (self.remaining() - self.reserve)
        if missing > 0:
            self._left += missing

    @property
    def closes_soon(self) -> bool:
        """The reserve has begun, or is so near that a decision would hardly fit before it."""
        return self.working() < self.reserve * DECISION_SHARE

    def allows_retry(self, *, in_reserve: bool = False) -> bool:
        """Whether asking once more can still bring something."""
        return self.remaining() >= RETRY_SECONDS if in_reserve else not self.closes_soon


def run_seconds(settings: Settings, *, local: bool) -> float:
    """What a run is given: the setting, else 30, else 180 when the model runs on this machine."""
    if settings.deadline is not None:
        return settings.deadline
    return LOCAL_DEADLINE_SECONDS if local else DEADLINE_SECONDS
