"""How often each person has used each tool today, for quotas. Counted in memory, written behind."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable

from chathands.errors import StoreError
from chathands.store.db import Database

_log = logging.getLogger(__name__)

SCHEMA = (
    """
    CREATE TABLE tool_use (
        person TEXT NOT NULL,
        tool TEXT NOT NULL,
        day TEXT NOT NULL,
        calls INTEGER NOT NULL,
        PRIMARY KEY (person, tool, day)
    )
    """,
)


class ToolUse:
    """Counts of today, at once; the file follows, and only ever by adding: `serve` and the bot
    write to the same one. `person` is `platform:id`; days are those of the machine's time zone,
    by `wall`, wall-clock seconds."""

    def __init__(self, database: Database, *, wall: Callable[[], float] = time.time) -> None:
        self._database = database
        self._wall = wall
        self._day = ""
        self._calls: dict[tuple[str, str], int] = {}
        self._unwritten: dict[tuple[str, str, str], int] = {}
        self._writer: asyncio.Task[None] | None = None

    async def load(self) -> None:
        """Read today's counts and drop those of other days; once, when the file is opened. Raises
        StoreError."""
        self._day = self._today()
        rows = await self._database.query(
            "SELECT person, tool, calls FROM tool_use WHERE day = ?", [self._day]
        )
        self._calls = {(person, tool): calls for person, tool, calls in rows}
        await self._database.query("DELETE FROM tool_use WHERE day < ?", [self._day])

    def today(self, person: str, tool: str) -> int:
        """Calls of this person's that have begun today."""
        self._roll()
        return self._calls.get((person, tool), 0)

    def count(self, person: str, tool: str) -> None:
        """A call begins. Never waits and never raises."""
        self._roll()
        self._calls[person, tool] = self._calls.get((person, tool), 0) + 1
        key = (person, tool, self._day)
        self._unwritten[key] = self._unwritten.get(key, 0) + 1
        if self._writer is None or self._writer.done():
            self._writer = asyncio.create_task(self._write_all(), name="chathands-tool-use")

    async def flush(self) -> None:
        """Wait until what was counted is written (or was given up, and logged)."""
        while self._writer is not None and not self._writer.done():
            await asyncio.wait([self._writer])

    def _roll(self) -> None:
        day = self._today()
        if day != self._day:
            self._day, self._calls = day, {}

    def _today(self) -> str:
        return time.strftime("%Y-%m-%d", time.localtime(self._wall()))

    async def _write_all(self) -> None:
        while self._unwritten:
            (person, tool, day), calls = self._unwritten.popitem()
            try:
                await self._database.query(
                    "INSERT INTO tool_use (person, tool, day, calls) VALUES (?, ?, ?, ?)"
                    " ON CONFLICT (person, tool, day) DO UPDATE SET calls = calls + excluded.calls",
                    [person, tool, day, calls],
                )
            except StoreError:
                _log.warning("use of one tool could not be written", exc_info=True)
