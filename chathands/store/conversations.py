"""What was said in each conversation, one row per round; what is kept is the agent's choice."""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
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


class Conversations:
    """Rounds by conversation id. One append is one round, whole or not at all."""

    def __init__(self, database: Database) -> None:
        self._database = database

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
            "SELECT messages FROM rounds WHERE conversation = ? ORDER BY id DESC LIMIT ?",
            [conversation_id, rounds],
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

    async def forget(self, conversation_id: str) -> int:
        """Drop a conversation; gives the number of rounds it had. Raises StoreError."""
        rows = await self._database.query(
            "DELETE FROM rounds WHERE conversation = ? RETURNING id", [conversation_id]
        )
        return len(rows)


def _read(data: bytes) -> list[Message] | None:
    try:
        return codec.messages_from_dicts(codec.loads(data))
    except StoreError as error:
        _log.error("a stored round is left out: %s", error)
        return None
