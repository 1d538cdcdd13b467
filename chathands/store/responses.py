"""Responses that clients go on from (`previous_response_id`), each with what it was asked.

A response that follows another holds only what is new; those that descend from the same first one
are a tree, and are kept and forgotten together, so that no chain ever loses its beginning.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from chathands.settings import Settings
from chathands.store.db import Database, Row

FILE = "responses.db"
"""A file of its own: it is large, lossy at a power cut, and of no use to the bot."""

SCHEMA = (
    """
    CREATE TABLE responses (
        id TEXT PRIMARY KEY,
        caller TEXT NOT NULL,
        root TEXT NOT NULL,
        previous TEXT,
        created REAL NOT NULL,
        size INTEGER NOT NULL,
        input TEXT NOT NULL,
        body TEXT NOT NULL
    )
    """,
    "CREATE INDEX responses_trees ON responses (caller, root, created, size)",
)

SWEEP_SECONDS = 3600.0
"""Between two looks for what is too old, which may be that much older than it should be."""

_CHAIN = """
    WITH RECURSIVE chain (id, previous, depth) AS (
        SELECT id, previous, 0 FROM responses WHERE id = ? AND caller = ?
        UNION ALL
        SELECT r.id, r.previous, depth + 1
        FROM responses r JOIN chain ON r.id = chain.previous AND r.caller = ?
    )
"""


@dataclass(frozen=True, slots=True)
class StoredResponse:
    """`input` are the items it was asked, without those before; `body` is the response object."""

    id: str
    input: list[dict[str, Any]]
    body: dict[str, Any]


class ChainTooLong(Exception):
    """What led to a response is larger than was asked for."""


class Responses:
    """The responses in a file below `state_dir`, which is opened when it is first needed; every
    method raises StoreError. End it with `await aclose()`. `wall` gives wall-clock seconds.

    Of each caller the trees used last are kept, up to `most` responses and `megabytes`, none longer
    than `days` after its last use.
    """

    def __init__(
        self,
        state_dir: Path,
        *,
        days: float,
        most: int,
        megabytes: float,
        wall: Callable[[], float] = time.time,
    ) -> None:
        self._path = state_dir / FILE
        self._database: Database | None = None
        self._opening = asyncio.Lock()
        self._seconds = days * 24 * 3600
        self._most = most
        self._bytes = int(megabytes * 1_000_000)
        self._wall = wall
        self._swept = 0.0

    @classmethod
    def configured(cls, settings: Settings) -> Responses | None:
        """None where the settings have none stored."""
        api = settings.api
        if not api.response_days:
            return None
        return cls(
            settings.state_dir,
            days=api.response_days,
            most=api.response_count,
            megabytes=api.response_mb,
        )

    async def save(
        self,
        caller: str,
        id: str,
        *,
        previous: str | None,
        input: Sequence[Mapping[str, Any]],
        body: Mapping[str, Any],
    ) -> bool:
        """Keep it, and forget what is too much. False: the response it follows has been forgotten
        meanwhile, or it is larger than everything together may be."""
        asked, answer = _json(input), _json(body)
        size = len(asked.encode()) + len(answer.encode())
        if size > self._bytes:
            return False
        now = self._wall()
        row = [id, caller, previous, now, size, asked, answer]
        columns = "INSERT INTO responses (id, caller, previous, created, size, input, body, root)"
        if previous is None:
            made = await self._query(
                f"{columns} VALUES (?, ?, ?, ?, ?, ?, ?, ?) RETURNING 1", [*row, id]
            )
        else:
            made = await self._query(
                f"{columns} SELECT ?, ?, ?, ?, ?, ?, ?, root FROM responses"
                " WHERE id = ? AND caller = ? RETURNING 1",
                [*row, previous, caller],
            )
        await self._forget_too_many(caller)
        if now - self._swept >= SWEEP_SECONDS:
            await self.sweep()
        return bool(made)

    async def get(self, caller: str, id: str) -> StoredResponse | None:
        """None also for what is another caller's."""
        rows = await self._query(
            "SELECT id, input, body FROM responses WHERE id = ? AND caller = ?", [id, caller]
        )
        return _stored(rows[0]) if rows else None

    async def chain(self, caller: str, id: str, *, limit: int) -> list[StoredResponse] | None:
        """The response and all before it, the first one first. None: it, or one it follows, is not
        there. Raises ChainTooLong beyond `limit` bytes."""
        who = [id, caller, caller]
        rows = await self._query(
            f"{_CHAIN} SELECT sum(size), sum(r.previous IS NULL)"
            " FROM chain JOIN responses r ON r.id = chain.id",
            who,
        )
        size, begins = rows[0]
        if not begins:
            return None
        if size > limit:
            raise ChainTooLong
        rows = await self._query(
            f"{_CHAIN} SELECT r.id, r.input, r.body"
            " FROM chain JOIN responses r ON r.id = chain.id ORDER BY depth DESC",
            who,
        )
        return [_stored(row) for row in rows]

    async def delete(self, caller: str, id: str) -> bool:
        """Forget it, for good: what followed it cannot be gone on from any more. False: it was not
        there."""
        rows = await self._query(
            "DELETE FROM responses WHERE id = ? AND caller = ? RETURNING 1", [id, caller]
        )
        return bool(rows)

    async def sweep(self) -> None:
        """Forget what is too old, of whichever caller."""
        self._swept = now = self._wall()
        await self._query(
            "DELETE FROM responses WHERE root IN"
            " (SELECT root FROM responses GROUP BY root HAVING max(created) < ?)",
            [now - self._seconds],
        )

    async def aclose(self) -> None:
        if self._database is not None:
            await self._database.aclose()

    async def _query(self, sql: str, parameters: Iterable[Any] = ()) -> list[Row]:
        database = self._database or await self._open()
        return await database.query(sql, parameters)

    async def _open(self) -> Database:
        async with self._opening:
            if self._database is None:
                database = await Database.open(self._path, (SCHEMA,), synchronous="NORMAL")
                try:
                    # What a client had deleted must not be found in the file's free pages.
                    await database.query("PRAGMA secure_delete = ON")
                except BaseException:
                    await database.aclose()
                    raise
                self._database = database
            return self._database

    async def _forget_too_many(self, caller: str) -> None:
        await self._query(
            """
            DELETE FROM responses WHERE caller = ?1 AND root IN (
                SELECT root FROM (
                    SELECT root,
                        sum(sum(size)) OVER last_used AS bytes,
                        sum(count(*)) OVER last_used AS number
                    FROM responses WHERE caller = ?1 GROUP BY root
                    WINDOW last_used AS (ORDER BY max(created) DESC, max(rowid) DESC)
                ) WHERE bytes > ?2 OR number > ?3
            )
            """,
            [caller, self._bytes, self._most],
        )


def _json(value: Any) -> str:
    """Without lone surrogates, which SQLite's UTF-8 cannot hold."""
    return json.dumps(value, ensure_ascii=False).encode("utf-8", "replace").decode()


def _stored(row: Row) -> StoredResponse:
    return StoredResponse(row[0], json.loads(row[1]), json.loads(row[2]))
