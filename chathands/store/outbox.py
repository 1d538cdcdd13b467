"""What is still owed to people: replies to accepted questions, and messages for later.

Its own file, and `synchronous = NORMAL`: a row survives the death of the process (kill -9), not a
power cut in the same second. On the way of every question a full sync costs 4 ms here, this 0.05.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any

from chathands.errors import StoreError
from chathands.store import codec
from chathands.store.db import Database

_log = logging.getLogger(__name__)

OUTBOX_FILE = "outbox.db"

SCHEMA = (
    """
    CREATE TABLE outbox (
        id TEXT PRIMARY KEY,
        kind TEXT NOT NULL,
        state TEXT NOT NULL,
        bot TEXT NOT NULL,
        run_id TEXT NOT NULL,
        created REAL NOT NULL,
        expires_at REAL NOT NULL,
        data BLOB NOT NULL
    )
    """,
)

KEPT_SECONDS = 7 * 86400.0
"""How long ends are remembered: ambiguous sends for whoever looks into them, keys against a second
message with the same one. As long as traces."""


class Kind(StrEnum):
    """What is owed."""

    QUESTION = "question"
    """The reply to an accepted question; its text is not known yet."""
    RESUMED = "resumed"
    """The reply of a run that goes on after a person's decision."""
    MESSAGE = "message"
    """A finished text."""


class State(StrEnum):
    """How far it is on its way."""

    OWED = "owed"
    """Nothing has left."""
    SENDING = "sending"
    """It was about to leave, or has left: what became of it is not known (yet)."""
    UNKNOWN = "unknown"
    """It may have been shown; it is never sent again."""
    SENT = "sent"
    """Shown. Only rows with a key of their own are kept that long."""


@dataclass(frozen=True, slots=True)
class OutboxRow:
    """One debt. Times are wall seconds; `data` is the asking side's own, JSON-safe."""

    id: str
    kind: Kind
    bot: str
    """Through which account: `platform:bot_id`."""
    created: float
    expires_at: float
    """When nobody waits for it any more."""
    run_id: str = ""
    state: State = State.OWED
    data: Mapping[str, Any] = field(default_factory=dict)


_COLUMNS = "id, kind, state, bot, run_id, created, expires_at, data"


class Outbox:
    """The rows on disk. Every call is one statement; all raise StoreError."""

    def __init__(self, database: Database) -> None:
        self._database = database

    @classmethod
    async def at(cls, state_dir: Path) -> Outbox:
        """Open or create the one in `state_dir`; end it with `aclose()`. Raises StoreError.

        A broken file is moved aside: nobody should lose their bot to bookkeeping.
        """
        path = state_dir / OUTBOX_FILE
        try:
            return cls(await Database.open(path, (SCHEMA,), synchronous="NORMAL"))
        except StoreError:
            aside = path.with_name(f"{path.name}.broken-{int(time.time())}")
            _log.warning("the outbox cannot be read and becomes %s", aside.name, exc_info=True)
            try:
                path.replace(aside)
            except OSError as error:
                raise StoreError(f"{path}: {error}") from error
            for suffix in ("-wal", "-shm"):
                path.with_name(path.name + suffix).unlink(missing_ok=True)
            return cls(await Database.open(path, (SCHEMA,), synchronous="NORMAL"))

    async def aclose(self) -> None:
        await self._database.aclose()

    async def put(self, row: OutboxRow) -> bool:
        """Store a new row; False, and nothing is changed, when its id is known already."""
        done = await self._database.query(
            f"INSERT INTO outbox ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
            " ON CONFLICT (id) DO NOTHING RETURNING id",
            _values(row),
        )
        return bool(done)

    async def replace(self, row: OutboxRow) -> bool:
        """Store `row` in place of the one with its id; False when there is none any more."""
        done = await self._database.query(
            "UPDATE outbox SET kind = ?, state = ?, bot = ?, run_id = ?, created = ?,"
            " expires_at = ?, data = ? WHERE id = ? RETURNING id",
            [*_values(row)[1:], row.id],
        )
        return bool(done)

    async def mark(self, row_id: str, state: State) -> None:
        await self._database.query("UPDATE outbox SET state = ? WHERE id = ?", [state, row_id])

    async def remove(self, row_id: str) -> None:
        await self._database.query("DELETE FROM outbox WHERE id = ?", [row_id])

    async def is_owed(self, row_id: str) -> bool:
        """Whether it stands there and nothing of it has left."""
        sql = "SELECT 1 FROM outbox WHERE id = ? AND state = ?"
        return bool(await self._database.query(sql, [row_id, State.OWED]))

    async def open(self, bot: str | None = None) -> list[OutboxRow]:
        """What is owed or on its way, oldest first; of one account, or of all."""
        return await self._rows(
            "state IN (?, ?) AND (? IS NULL OR bot = ?)", [State.OWED, State.SENDING, bot, bot]
        )

    async def unknown(self) -> list[OutboxRow]:
        """Sends nobody knows the end of, oldest first."""
        return await self._rows("state = ?", [State.UNKNOWN])

    async def expire(self, now: float) -> list[OutboxRow]:
        """Drop what nobody waits for any more and give it; forget old ends."""
        dropped = await self._rows("state = ? AND expires_at <= ?", [State.OWED, now])
        for row in dropped:
            await self.remove(row.id)
        await self._database.query(
            "DELETE FROM outbox WHERE state != ? AND created <= ?", [State.OWED, now - KEPT_SECONDS]
        )
        return dropped

    async def _rows(self, where: str, values: Iterable[Any]) -> list[OutboxRow]:
        rows = await self._database.query(
            f"SELECT {_COLUMNS} FROM outbox WHERE {where} ORDER BY created, rowid", values
        )
        return [read for row in rows if (read := _readable(row)) is not None]


def _values(row: OutboxRow) -> list[Any]:
    return [
        row.id, row.kind, row.state, row.bot, row.run_id, row.created, row.expires_at,
        codec.dumps(codec.plain(row.data)),
    ]  # fmt: skip


def _readable(columns: Any) -> OutboxRow | None:
    """A row that cannot be read is logged and left out: it must not keep the rest waiting."""
    row_id, kind, state, bot, run_id, created, expires_at, data = columns
    try:
        return OutboxRow(
            id=row_id,
            kind=Kind(kind),
            bot=bot,
            created=float(created),
            expires_at=float(expires_at),
            run_id=run_id,
            state=State(state),
            data=codec.loads(data),
        )
    except (StoreError, TypeError, ValueError) as error:
        _log.error("outbox row %s is left out: %s", row_id, error)
        return None
