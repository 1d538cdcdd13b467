"""Replies of cancelled runs, until whoever cancelled them asks."""

from __future__ import annotations

from chathands.agent import fallback
from chathands.bounded import Bounded

KEPT = 256
"""They are asked for at once; this many would have to be cancelled in the same moment."""


class CancelledRuns:
    """By run id, the oldest forgotten first."""

    def __init__(self) -> None:
        self._runs: Bounded[str, tuple[str, bool]] = Bounded(KEPT)

    def __contains__(self, run_id: str) -> bool:
        return run_id in self._runs

    def add(self, run_id: str, reply: str, changed_something: bool) -> None:
        self._runs[run_id] = reply, changed_something

    def reply(self, run_id: str) -> str:
        """What the run had caused; of one that is not known: nothing."""
        return self._runs.get(run_id, (fallback.cancelled([], [], run_id), False))[0]

    def changed_something(self, run_id: str) -> bool:
        """Whether it had caused something, or may have."""
        return self._runs.get(run_id, ("", False))[1]
