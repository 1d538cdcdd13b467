"""Runs that wait for a person's yes. Taking one out is the single use of an approval."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from chathands.errors import StoreError
from chathands.store import codec
from chathands.store.db import Database

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

    @property
    def rows(self) -> tuple[SuspendedRow, ...]:
        """What this process knows of, oldest first."""
        return tuple(self._rows.values())

    async def put(self, row: SuspendedRow) -> None:
        """Store `row`, in place of one with the same approval id. Raises StoreError.

        It stands in `rows` at once, so that its number is taken.
        """
        self._rows[row.approval_id] = row
        try:
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

    async def take(self, approval_id: str) -> SuspendedRow | None:
        """Remove the row and give it; None when it is gone. Of two takers one gets it.

        Shielded: a taker cancelled half-way must not leave a row that is neither here nor there.
        Raises StoreError.
        """
        return await asyncio.shield(self._take(approval_id))

    async def _take(self, approval_id: str) -> SuspendedRow | None:
        rows = await self._database.query(
            f"DELETE FROM suspended WHERE approval_id = ? RETURNING {_COLUMNS}", [approval_id]
        )
        self._rows.pop(approval_id, None)
        return _from_columns(rows[0]) if rows else None

    async def list(self) -> list[SuspendedRow]:
        """All waiting runs as they are on disk, oldest first. Raises StoreError."""
        rows = await self._database.query(
            f"SELECT {_COLUMNS} FROM suspended ORDER BY created, approval_id"
        )
        found = [_from_columns(row) for row in rows]
        self._rows = {row.approval_id: row for row in found}
        return found


def _from_columns(columns: Any) -> SuspendedRow:
    *fields, data = columns
    return SuspendedRow(*fields, data=codec.loads(data))
