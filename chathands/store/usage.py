"""How much each person has asked in each place, by day. Counted in memory, written behind."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from dataclasses import dataclass

from chathands.errors import StoreError
from chathands.store.db import Database

_log = logging.getLogger(__name__)

KEPT_DAYS = 62
"""Days that stay on disk: this month and the last."""

SCHEMA = (
    """
    CREATE TABLE usage (
        place TEXT NOT NULL,
        user TEXT NOT NULL,
        day TEXT NOT NULL,
        questions INTEGER NOT NULL,
        tokens INTEGER NOT NULL,
        PRIMARY KEY (place, user, day)
    )
    """,
)


@dataclass(slots=True)
class Used:
    """`questions` are runs that were begun; `tokens` what the model's server reported for them,
    both directions, and 0 where it reports nothing."""

    questions: int = 0
    tokens: int = 0


class UsageCounts:
    """Counts of today in memory, at once; the file follows. `wall` gives wall-clock seconds, and
    days are those of the machine's time zone."""

    def __init__(self, database: Database, *, wall: Callable[[], float] = time.time) -> None:
        self._database = database
        self._wall = wall
        self._day = ""
        self._today: dict[tuple[str, str], Used] = {}
        self._dirty: dict[tuple[str, str, str], Used] = {}
        self._writer: asyncio.Task[None] | None = None

    async def load(self) -> None:
        """Read today's counts and drop old days; once, when the file is opened. Raises
        StoreError."""
        self._day = self._date(0)
        rows = await self._database.query(
            "SELECT place, user, questions, tokens FROM usage WHERE day = ?", [self._day]
        )
        self._today = {(place, user): Used(asked, tokens) for place, user, asked, tokens in rows}
        await self._database.query("DELETE FROM usage WHERE day < ?", [self._date(KEPT_DAYS)])

    def question(self, place: str, user: str, count: int = 1) -> None:
        """A run of this person begins; -1: it was stopped before it did anything. Never waits and
        never raises."""
        used = self._used(place, user)
        used.questions = max(0, used.questions + count)
        self._changed(place, user)

    def tokens(self, place: str, user: str, count: int) -> None:
        """The model's server has counted so many tokens for this person."""
        if count > 0:
            self._used(place, user).tokens += count
            self._changed(place, user)

    def today(self, place: str, user: str) -> Used:
        """What this person has used there today."""
        self._roll()
        return self._today.get((place, user)) or Used()

    def today_in(self, place: str) -> list[tuple[str, Used]]:
        """Everybody who asked there today, most questions first."""
        self._roll()
        here = [(user, used) for (where, user), used in self._today.items() if where == place]
        return sorted(here, key=lambda one: (-one[1].questions, one[0]))

    async def over(self, place: str, user: str, days: int) -> Used:
        """What this person has used there in the last `days` days, today too. Raises StoreError."""
        await self.flush()
        rows = await self._database.query(
            "SELECT sum(questions), sum(tokens) FROM usage"
            " WHERE place = ? AND user = ? AND day >= ?",
            [place, user, self._date(days - 1)],
        )
        return Used(rows[0][0] or 0, rows[0][1] or 0)

    async def flush(self) -> None:
        """Wait until what was counted is written (or was given up, and logged)."""
        while self._writer is not None and not self._writer.done():
            await asyncio.wait([self._writer])

    def _used(self, place: str, user: str) -> Used:
        self._roll()
        return self._today.setdefault((place, user), Used())

    def _roll(self) -> None:
        """At midnight everybody starts anew."""
        day = self._date(0)
        if day != self._day:
            self._day, self._today = day, {}

    def _date(self, days_ago: int) -> str:
        return time.strftime("%Y-%m-%d", time.localtime(self._wall() - days_ago * 86400))

    def _changed(self, place: str, user: str) -> None:
        self._dirty[place, user, self._day] = self._today[place, user]
        if self._writer is None or self._writer.done():
            self._writer = asyncio.create_task(self._write_all(), name="chathands-usage")

    async def _write_all(self) -> None:
        """Absolute numbers, so that writing twice is harmless."""
        while self._dirty:
            (place, user, day), used = self._dirty.popitem()
            try:
                await self._database.query(
                    "INSERT OR REPLACE INTO usage (place, user, day, questions, tokens)"
                    " VALUES (?, ?, ?, ?, ?)",
                    [place, user, day, used.questions, used.tokens],
                )
            except StoreError:
                _log.warning("usage of one person could not be written", exc_info=True)
