"""What was said in each conversation, one row per round; what is kept is the agent's choice."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain

from chathands.conversation import Message
from chathands.errors import StoreError
from chathands.store import codec
from chathands.store.db import Database

_log = logging.getLogger(__name__)

KEPT_ROUNDS = 50
"""Rounds of one conversation that stay on disk; more than anyone sets history_rounds to."""

SCHEMA = (
    """
    CREATE TABLE rounds (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        conversation TEXT NOT NULL,
        at REAL NOT NULL,
        messages BLOB NOT NULL
    )
    """,
    "CREATE INDEX rounds_of_conversation ON rounds (conversation, id)",
    f"""
    CREATE TRIGGER rounds_kept AFTER INSERT ON rounds BEGIN
        DELETE FROM rounds WHERE conversation = NEW.conversation AND id <= (
            SELECT id FROM rounds WHERE conversation = NEW.conversation
            ORDER BY id DESC LIMIT 1 OFFSET {KEPT_ROUNDS}
        );
    END
    """,
)

SUMMARY_SCHEMA = (
    """
    CREATE TABLE summaries (
        conversation TEXT PRIMARY KEY,
        upto INTEGER NOT NULL,
        at REAL NOT NULL,
        text TEXT NOT NULL,
        is_foreign INTEGER NOT NULL
    )
    """,
    "CREATE INDEX rounds_at ON rounds (at)",
)

EXPIRE_EVERY = 200
"""Appends between two sweeps for what has expired; what has is never read meanwhile."""


@dataclass(frozen=True, slots=True)
class Round:
    """One stored round; `at` in wall seconds."""

    id: int
    at: float
    messages: list[Message]


@dataclass(frozen=True, slots=True)
class Summary:
    """What stands for the rounds up to `upto`. `foreign`: text from outside went into it."""

    text: str
    upto: int
    foreign: bool = False


class Conversations:
    """Rounds by conversation id. One append is one round, whole or not at all.

    What is older than `days` is neither read nor kept; None keeps everything.
    """

    def __init__(self, database: Database, *, days: float | None = None) -> None:
        self._database = database
        self._seconds = None if days is None else days * 86400
        self._since_sweep = 0

    async def recent(self, conversation_id: str) -> tuple[Summary | None, list[Round]]:
        """The summary, if there is one, and the rounds it does not cover, oldest first.

        A round that cannot be read is logged and left out. Raises StoreError.
        """
        since = self._oldest()
        found = await self._database.query(
            "SELECT text, upto, is_foreign FROM summaries WHERE conversation = ? AND at >= ?",
            [conversation_id, since],
        )
        summary = Summary(found[0][0], found[0][1], bool(found[0][2])) if found else None
        rows = await self._database.query(
            "SELECT id, at, messages FROM rounds WHERE conversation = ? AND id > ? AND at >= ?"
            " ORDER BY id",
            [conversation_id, summary.upto if summary else 0, since],
        )
        read = [(row[0], row[1], _read(row[2])) for row in rows]
        return summary, [Round(id, at, said) for id, at, said in read if said is not None]

    async def weight(self, conversation_id: str) -> tuple[int, int]:
        """How many rounds the summary does not cover, and their bytes together. Nothing is
        unpacked, so it is cheap enough after every round. Raises StoreError."""
        rows = await self._database.query(
            "SELECT count(*), coalesce(sum(length(messages)), 0) FROM rounds"
            " WHERE conversation = ? AND at >= ? AND id > coalesce("
            "(SELECT upto FROM summaries WHERE conversation = ? AND at >= ?), 0)",
            [conversation_id, self._oldest(), conversation_id, self._oldest()],
        )
        return rows[0][0], rows[0][1]

    async def summarise(self, conversation_id: str, summary: Summary) -> None:
        """Let `summary` stand for the rounds up to its `upto`, in place of an earlier one.

        It is as old as the newest of them. Nothing happens when that round is gone: the
        conversation was forgotten meanwhile. Raises StoreError.
        """
        await self._database.query(
            "INSERT OR REPLACE INTO summaries (conversation, upto, at, text, is_foreign)"
            " SELECT conversation, id, at, ?, ? FROM rounds WHERE conversation = ? AND id = ?",
            [
                summary.text.encode("utf-8", "replace").decode("utf-8"),
                summary.foreign,
                conversation_id,
                summary.upto,
            ],
        )

    async def sweep(self) -> None:
        """Drop what has expired. Raises StoreError."""
        for table in ("rounds", "summaries"):
            await self._database.query(f"DELETE FROM {table} WHERE at < ?", [self._oldest()])

    def _oldest(self) -> float:
        return 0.0 if self._seconds is None else time.time() - self._seconds

    async def load(self, conversation_id: str, rounds: int) -> list[Message]:
        """The messages of the last `rounds` rounds, oldest first. Raises StoreError."""
        loaded = await self.load_rounds(conversation_id, rounds)
        return list(chain.from_iterable(loaded))

    async def load_rounds(self, conversation_id: str, rounds: int) -> list[list[Message]]:
        """The same, still apart; a round that cannot be read is logged and left out: nobody should
        be without answers from then on. Raises StoreError."""
        if rounds <= 0:
            return []
        rows = await self._database.query(
            "SELECT messages FROM rounds WHERE conversation = ? AND at >= ?"
            " ORDER BY id DESC LIMIT ?",
            [conversation_id, self._oldest(), rounds],
        )
        return [round for row in reversed(rows) if (round := _read(row[0])) is not None]

    async def append(self, conversation_id: str, messages: Sequence[Message]) -> None:
        """Add one round. Raises StoreError."""
        if not messages:
            return
        await self._database.query(
            "INSERT INTO rounds (conversation, at, messages) VALUES (?, ?, ?)",
            [conversation_id, time.time(), codec.dumps(codec.messages_to_dicts(messages))],
        )
        self._since_sweep += 1
        if self._since_sweep >= EXPIRE_EVERY:
            self._since_sweep = 0
            await self.sweep()

    async def forget(self, conversation_id: str) -> int:
        """Drop a conversation; gives the number of rounds it had. Raises StoreError.

        When it returns, the words are gone from the file and from its log as well.
        """
        return await asyncio.shield(self._forget(conversation_id))

    async def _forget(self, conversation_id: str) -> int:
        await self._database.query(
            "DELETE FROM summaries WHERE conversation = ?", [conversation_id]
        )
        rows = await self._database.query(
            "DELETE FROM rounds WHERE conversation = ? RETURNING id", [conversation_id]
        )
        # Deleted pages are overwritten (secure_delete); the write-ahead log still has the old ones.
        await self._database.query("PRAGMA wal_checkpoint(TRUNCATE)")
        return len(rows)


def _read(data: bytes) -> list[Message] | None:
    try:
        return codec.messages_from_dicts(codec.loads(data))
    except StoreError as error:
        _log.error("a stored round is left out: %s", error)
        return None
