"""Runs that wait for a person's yes. Taking one out is the single use of an approval."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from chathands.errors import StoreError
from chathands.store import codec
from chathands.store.db import Database

_log = logging.getLogger(__name__)

SCHEMA = (
    """
    CREATE TABLE suspended (
        approval_id TEXT PRIMARY KEY,
        run_id TEXT NOT NULL,
        place TEXT NOT NULL,
        number INTEGER NOT NULL,
        created REAL NOT NULL,
        expires_at REAL NOT NULL,
        data BLOB NOT NULL
    )
    """,
)
NUMBERS_SCHEMA = (
    """
    CREATE TABLE approval_numbers (
        place TEXT NOT NULL,
        number INTEGER NOT NULL,
        ended REAL NOT NULL,
        PRIMARY KEY (place, number)
    )
    """,
)

REST_SECONDS = 3600.0
"""How long a number is not given out again after its approval ended: a late 确认 1 must not be a
yes to something newer."""


@dataclass(frozen=True, slots=True)
class SuspendedRow:
    """One waiting run. Times are wall seconds; `data` is the agent's own, JSON-safe."""

    approval_id: str
    run_id: str
    place: str
    """Where the approval was asked; numbers are unique within it."""
    number: int
    created: float
    expires_at: float
    data: Mapping[str, Any]


_COLUMNS = "approval_id, run_id, place, number, created, expires_at, data"


class SuspendedRuns:
    """The waiting runs: on disk, and as `rows` in memory for those who cannot await."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._rows: dict[str, SuspendedRow] = {}
        self._ended: dict[tuple[str, int], float] = {}
        """When (place, number) was over, at the latest by its expiry."""

    @property
    def rows(self) -> tuple[SuspendedRow, ...]:
        """What this process knows of, oldest first."""
        return tuple(self._rows.values())

    def free_number(self, place: str, now: float) -> int:
        """The smallest number that nothing waiting in this place has or had within the hour."""
        taken = {row.number for row in self.rows if row.place == place}
        for (where, number), ended in list(self._ended.items()):
            if now - ended >= REST_SECONDS:
                del self._ended[where, number]
            elif where == place:
                taken.add(number)
        return next(n for n in range(1, len(taken) + 2) if n not in taken)

    async def put(self, row: SuspendedRow) -> None:
        """Store `row`, in place of one with the same approval id. Raises StoreError.

        It stands in `rows` at once, so that its number is taken.
        """
        self._rows[row.approval_id] = row
        try:
            await self._number_ends(row.place, row.number, row.expires_at)
            await self._database.query(
                f"INSERT OR REPLACE INTO suspended ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?)",
                [
                    row.approval_id,
                    row.run_id,
                    row.place,
                    row.number,
                    row.created,
                    row.expires_at,
                    codec.dumps(row.data),
                ],
            )
        except StoreError:
            self._rows.pop(row.approval_id, None)
            raise

    async def take(self, approval_id: str, *, now: float | None = None) -> SuspendedRow | None:
        """Remove the row and give it; None when it is gone. Of two takers one gets it.

        `now`, wall seconds, is when its number begins to rest.

        A taker that is cancelled half-way puts the row back: it must not be neither here nor
        there. Raises StoreError.
        """
        taking = asyncio.ensure_future(self._take(approval_id, time.time() if now is None else now))
        try:
            return await asyncio.shield(taking)
        except asyncio.CancelledError:
            row = await taking
            if row is not None:
                await self.put(row)
            raise

    async def _take(self, approval_id: str, now: float) -> SuspendedRow | None:
        known = self._rows.get(approval_id)
        if known is not None:
            # Before the row goes: a number must not come free by a crash between the two.
            await self._number_ends(known.place, known.number, max(now, known.expires_at))
        rows = await self._database.query(
            f"DELETE FROM suspended WHERE approval_id = ? RETURNING {_COLUMNS}", [approval_id]
        )
        self._rows.pop(approval_id, None)
        return _from_columns(rows[0]) if rows else None

    async def list(self) -> list[SuspendedRow]:
        """All waiting runs as they are on disk, oldest first. Raises StoreError.

        One that cannot be read is logged and left out: it must not keep the rest from starting.
        """
        rows = await self._database.query(
            f"SELECT {_COLUMNS} FROM suspended ORDER BY created, approval_id"
        )
        found = [read for row in rows if (read := _readable(row)) is not None]
        ended = await self._database.query("SELECT place, number, ended FROM approval_numbers")
        self._ended = {(place, number): when for place, number, when in ended}
        self._rows = {row.approval_id: row for row in found}
        return found

    async def _number_ends(self, place: str, number: int, when: float) -> None:
        self._ended[place, number] = when
        await self._database.query(
            "INSERT OR REPLACE INTO approval_numbers (place, number, ended) VALUES (?, ?, ?)",
            [place, number, when],
        )


def _from_columns(columns: Any) -> SuspendedRow:
    *fields, data = columns
    return SuspendedRow(*fields, data=codec.loads(data))


def _readable(columns: Any) -> SuspendedRow | None:
    try:
        return _from_columns(columns)
    except StoreError as error:
        _log.error("suspended run %s is left out: %s", columns[1], error)
        return None
