"""Calls from other programs that wait for a person's yes, shared by all processes on one state.

Every step is one statement, so that two processes (the tool server, the bot, the command line)
never decide, take or announce the same ticket twice. Nothing here knows what a call means.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from chathands.errors import StoreError
from chathands.store import codec
from chathands.store.db import Database

SCHEMA = (
    """
    CREATE TABLE tickets (
        id TEXT PRIMARY KEY,
        number INTEGER NOT NULL UNIQUE,
        platform TEXT NOT NULL,
        asker TEXT NOT NULL,
        call_hash TEXT NOT NULL,
        state TEXT NOT NULL,
        created REAL NOT NULL,
        expires_at REAL NOT NULL,
        decided_by TEXT NOT NULL DEFAULT '',
        settled INTEGER NOT NULL DEFAULT 0,
        announced INTEGER NOT NULL DEFAULT 0,
        data BLOB NOT NULL
    )
    """,
    "CREATE INDEX tickets_state ON tickets (state, expires_at)",
)

FIRST_NUMBER = 1001
"""Above the numbers of suspended runs, which are the smallest free ones of each chat: whoever
types one in a private chat can only mean one of the two."""
LAST_NUMBER = 9999

KEPT_SECONDS = 7 * 86400.0
"""How long what became of a ticket is known, so that a late repeat is told; as long as traces."""

TAKING_SECONDS = 60.0
"""After a yes the asker has at least so long to repeat the call: a yes in the last second of a
ticket is a yes all the same."""

State = Literal["waiting", "yes", "no", "used"]


@dataclass(frozen=True, slots=True)
class TicketRow:
    """One ticket. Times are wall seconds; `data` is the asking side's own, JSON-safe."""

    id: str
    number: int
    """What people type."""
    platform: str
    asker: str
    """User id of the caller within the platform."""
    call_hash: str
    state: State
    created: float
    expires_at: float
    decided_by: str
    data: Mapping[str, Any]

    def waits(self, now: float) -> bool:
        """Whether somebody may still decide it."""
        return self.state == "waiting" and now < self.expires_at

    def expired(self, now: float) -> bool:
        """Whether its time ran out before it was decided, or before it was used."""
        return self.state in ("waiting", "yes") and now >= self.expires_at


_COLUMNS = "id, number, platform, asker, call_hash, state, created, expires_at, decided_by, data"


class Tickets:
    """The tickets on disk; every method raises StoreError. `wall` gives wall-clock seconds."""

    def __init__(self, database: Database, *, wall: Callable[[], float] = time.time) -> None:
        self._database = database
        self._wall = wall

    def now(self) -> float:
        """By the clock that expiry goes by."""
        return self._wall()

    async def put(
        self,
        ticket_id: str,
        *,
        platform: str,
        asker: str,
        call_hash: str,
        seconds: float,
        data: Mapping[str, Any],
    ) -> TicketRow:
        """A new ticket that waits for `seconds`, under the next number; old ones are forgotten."""
        now = self._wall()
        await self._database.query("DELETE FROM tickets WHERE created < ?", [now - KEPT_SECONDS])
        rows = await self._database.query(
            # Onwards from the latest and round again; a number that is still kept is passed over.
            f"""
            WITH RECURSIVE last (number) AS (
                SELECT coalesce(
                    (SELECT number FROM tickets ORDER BY created DESC, rowid DESC LIMIT 1),
                    {FIRST_NUMBER - 1}
                )
            ), candidate (number, step) AS (
                SELECT CASE WHEN number >= {LAST_NUMBER} THEN {FIRST_NUMBER} ELSE number + 1 END, 1
                FROM last
                UNION ALL
                SELECT CASE WHEN number >= {LAST_NUMBER} THEN {FIRST_NUMBER} ELSE number + 1 END,
                    step + 1
                FROM candidate
                WHERE number IN (SELECT number FROM tickets) AND step < {LAST_NUMBER}
            )
            INSERT INTO tickets (id, number, platform, asker, call_hash, state, created,
                expires_at, data)
            SELECT ?, number, ?, ?, ?, 'waiting', ?, ?, ? FROM candidate
            ORDER BY step DESC LIMIT 1
            RETURNING {_COLUMNS}
            """,
            [ticket_id, platform, asker, call_hash, now, now + seconds, codec.dumps(data)],
        )
        return _row(rows[0])

    async def get(self, ticket_id: str) -> TicketRow | None:
        return await self._one("id = ?", [ticket_id])

    async def numbered(self, number: int) -> TicketRow | None:
        """Of whatever somebody has typed, which may be more than the database can hold."""
        if not FIRST_NUMBER <= number <= LAST_NUMBER:
            return None
        return await self._one("number = ?", [number])

    async def waiting(self) -> list[TicketRow]:
        """Those somebody may decide now, oldest first."""
        rows = await self._database.query(
            f"SELECT {_COLUMNS} FROM tickets WHERE state = 'waiting' AND expires_at > ?"
            " ORDER BY created, number",
            [self._wall()],
        )
        return [_row(row) for row in rows]

    async def announce(self, most: int) -> list[TicketRow]:
        """Waiting tickets nobody was told of yet, each given out once; see `unannounce`."""
        rows = await self._database.query(
            "UPDATE tickets SET announced = 1 WHERE id IN ("
            "SELECT id FROM tickets WHERE announced = 0 AND state = 'waiting' AND expires_at > ?"
            f" ORDER BY created, number LIMIT ?) RETURNING {_COLUMNS}",
            [self._wall(), most],
        )
        return sorted(map(_row, rows), key=lambda row: (row.created, row.number))

    async def unannounce(self, ticket_id: str) -> None:
        """Nobody could be told after all: it is given out again."""
        await self._database.query("UPDATE tickets SET announced = 0 WHERE id = ?", [ticket_id])

    async def decide(self, ticket_id: str, *, approve: bool, by: str) -> TicketRow | None:
        """Decide a waiting ticket; None when it does not wait (any more). The first one counts."""
        now = self._wall()
        return await self._change(
            "state = ?, decided_by = ?,"
            " expires_at = CASE WHEN ? THEN max(expires_at, ?) ELSE expires_at END",
            "id = ? AND state = 'waiting' AND expires_at > ?",
            ["yes" if approve else "no", by, approve, now + TAKING_SECONDS, ticket_id, now],
        )

    async def take(self, ticket_id: str) -> TicketRow | None:
        """Use up a ticket with a yes; of two takers one gets it, the other None."""
        return await self._change(
            "state = 'used', settled = 1",
            "id = ? AND state = 'yes' AND expires_at > ?",
            [ticket_id, self._wall()],
        )

    async def settle(self, platforms: tuple[str, ...]) -> list[TicketRow]:
        """Those that ended without being run (denied, expired), each given out once ever."""
        marks = ", ".join("?" for _ in platforms)
        rows = await self._database.query(
            f"UPDATE tickets SET settled = 1 WHERE settled = 0 AND platform IN ({marks})"
            " AND (state = 'no' OR (state IN ('waiting', 'yes') AND expires_at <= ?))"
            f" RETURNING {_COLUMNS}",
            [*platforms, self._wall()],
        )
        return [_row(row) for row in rows]

    async def _one(self, where: str, parameters: list[Any]) -> TicketRow | None:
        rows = await self._database.query(
            f"SELECT {_COLUMNS} FROM tickets WHERE {where}", parameters
        )
        return _row(rows[0]) if rows else None

    async def _change(self, what: str, where: str, parameters: list[Any]) -> TicketRow | None:
        rows = await self._database.query(
            f"UPDATE tickets SET {what} WHERE {where} RETURNING {_COLUMNS}", parameters
        )
        return _row(rows[0]) if rows else None


def _row(columns: Any) -> TicketRow:
    *fields, data = columns
    read = codec.loads(data)
    if not isinstance(read, dict):
        raise StoreError(f"ticket {fields[0]} cannot be read")
    return TicketRow(*fields, data=read)
