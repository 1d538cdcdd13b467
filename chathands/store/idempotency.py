"""Which repeated requests were already carried out, and what came of them (Idempotency-Key).

A row stands before anything runs, so that a repeat finds it also while the first one is running
and after a restart. Nothing here knows what a request means.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from chathands.store.db import Database

SCHEMA = (
    """
    CREATE TABLE idempotency (
        caller TEXT NOT NULL,
        key TEXT NOT NULL,
        request TEXT NOT NULL,
        owner TEXT NOT NULL,
        created REAL NOT NULL,
        code INTEGER,
        body BLOB,
        PRIMARY KEY (caller, key)
    )
    """,
    "CREATE INDEX idempotency_created ON idempotency (created)",
)

KEPT_SECONDS = 24 * 3600.0
"""What payment services keep keys for (Stripe: 24 h); a client that retries later asks anew."""

MOST_PER_CALLER = 5000
"""Keys of one caller within that time: one every 17 s all day. More is a client that makes up a
key for everything, and gets told so rather than losing old ones in silence."""


@dataclass(frozen=True, slots=True)
class Remembered:
    """A request that came before. `code` is None while it runs, or for ever if `owner`, the process
    that ran it, died in the middle."""

    request: str
    owner: str
    code: int | None
    body: bytes


class TooManyKeys(Exception):
    """The caller has as many keys as are kept."""


class IdempotencyKeys:
    """The keys on disk; every method raises StoreError. `wall` gives wall-clock seconds."""

    def __init__(self, database: Database, *, wall: Callable[[], float] = time.time) -> None:
        self._database = database
        self._wall = wall

    async def begin(self, caller: str, key: str, request: str, owner: str) -> Remembered | None:
        """Claim the key; None when it is new, else what is known of it. Raises TooManyKeys."""
        now = self._wall()
        await self._database.query(
            "DELETE FROM idempotency WHERE created < ?", [now - KEPT_SECONDS]
        )
        made = await self._database.query(
            "INSERT INTO idempotency (caller, key, request, owner, created)"
            " SELECT ?, ?, ?, ?, ?"
            " WHERE (SELECT count(*) FROM idempotency WHERE caller = ?) < ?"
            " ON CONFLICT DO NOTHING RETURNING 1",
            [caller, key, request, owner, now, caller, MOST_PER_CALLER],
        )
        if made:
            return None
        rows = await self._database.query(
            "SELECT request, owner, code, body FROM idempotency WHERE caller = ? AND key = ?",
            [caller, key],
        )
        if not rows:
            raise TooManyKeys
        request, owner, code, body = rows[0]
        return Remembered(request, owner, code, body or b"")

    async def finish(self, caller: str, key: str, code: int, body: bytes) -> None:
        """Keep the answer."""
        await self._database.query(
            "UPDATE idempotency SET code = ?, body = ? WHERE caller = ? AND key = ?",
            [code, body, caller, key],
        )

    async def forget(self, caller: str, key: str) -> None:
        """Nothing was carried out: the key is free again."""
        await self._database.query(
            "DELETE FROM idempotency WHERE caller = ? AND key = ?", [caller, key]
        )
