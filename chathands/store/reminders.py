"""Reminders on disk: a row each until it is over. Nothing here knows how times repeat."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable
from dataclasses import replace
from typing import Any

from chathands.errors import StoreError
from chathands.reminders import BookFull, Reminder
from chathands.store import codec
from chathands.store.db import Database

_log = logging.getLogger(__name__)

SCHEMA = (
    """
    CREATE TABLE reminders (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        due REAL NOT NULL,
        platform TEXT NOT NULL,
        bot TEXT NOT NULL,
        group_id TEXT,
        user_id TEXT NOT NULL,
        tool TEXT NOT NULL,
        created REAL NOT NULL,
        data BLOB NOT NULL
    )
    """,
    "CREATE INDEX reminders_due ON reminders (due)",
    "CREATE INDEX reminders_of ON reminders (platform, user_id)",
)

_COLUMNS = "id, due, platform, bot, group_id, user_id, tool, created, data"
_SAME_PERSON = "platform = ? AND user_id = ?"
_SAME_GROUP = "platform = ? AND bot = ? AND group_id = ?"


class Reminders:
    """The rows; a `reminders.ReminderBook`. Every change is one statement. `on_change` callbacks
    are called after each."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._listeners: list[Callable[[], object]] = []

    def on_change(self, callback: Callable[[], object]) -> None:
        self._listeners.append(callback)

    async def add(self, reminder: Reminder, *, per_person: int, per_group: int) -> Reminder:
        for other in await self.of(reminder.platform, reminder.user_id):
            if replace(other, id=0, created=reminder.created, name=reminder.name) == replace(
                reminder, id=0, role=other.role
            ):
                return other
        values = [
            reminder.due, reminder.platform, reminder.bot_id, reminder.group_id, reminder.user_id,
            reminder.tool, reminder.created, _packed(reminder),
        ]  # fmt: skip
        person = [reminder.platform, reminder.user_id]
        group = [reminder.platform, reminder.bot_id, reminder.group_id]
        # One statement, so that two at once do not both take the last place.
        rows = await self._database.query(
            "INSERT INTO reminders (due, platform, bot, group_id, user_id, tool, created, data)"
            " SELECT ?, ?, ?, ?, ?, ?, ?, ?"
            f" WHERE (SELECT COUNT(*) FROM reminders WHERE {_SAME_PERSON}) < ?"
            f" AND (SELECT COUNT(*) FROM reminders WHERE {_SAME_GROUP}) < ? RETURNING id",
            [*values, *person, per_person, *group, per_group],
        )
        if not rows:
            ((count,),) = await self._database.query(
                f"SELECT COUNT(*) FROM reminders WHERE {_SAME_PERSON}", person
            )
            if count >= per_person:
                raise BookFull("person", per_person)
            raise BookFull("group", per_group)
        self._changed()
        return replace(reminder, id=int(rows[0][0]))

    async def of(self, platform: str, user_id: str) -> list[Reminder]:
        return await self._rows(_SAME_PERSON, [platform, user_id])

    async def cancel(self, ids: Collection[int], platform: str, user_id: str) -> list[int]:
        gone = []
        for number in sorted(set(ids)):
            if not 0 < number < 2**63:
                continue
            gone += await self._database.query(
                f"DELETE FROM reminders WHERE id = ? AND {_SAME_PERSON} RETURNING id",
                [number, platform, user_id],
            )
        self._changed()
        return [int(row[0]) for row in gone]

    async def due(self, now: float) -> list[Reminder]:
        """Those whose time has come, the oldest first."""
        return await self._rows("due <= ?", [now])

    async def next_due(self, after: float) -> float | None:
        """When the first of the others is."""
        ((when,),) = await self._database.query(
            "SELECT MIN(due) FROM reminders WHERE due > ?", [after]
        )
        return None if when is None else float(when)

    async def advance(self, reminder: Reminder, due: float | None) -> None:
        """It was dealt with: `due` is its next time, None when there is none. One that was
        cancelled meanwhile stays so."""
        if due is None:
            await self._database.query(
                "DELETE FROM reminders WHERE id = ? AND due = ?", [reminder.id, reminder.due]
            )
        else:
            await self._database.query(
                "UPDATE reminders SET due = ? WHERE id = ? AND due = ?",
                [due, reminder.id, reminder.due],
            )
        self._changed()

    async def still(self, reminder: Reminder) -> bool:
        """Whether it stands as it was read: not cancelled, not dealt with."""
        rows = await self._database.query(
            "SELECT 1 FROM reminders WHERE id = ? AND due = ?", [reminder.id, reminder.due]
        )
        return bool(rows)

    async def remove_of_tools(self, names: Collection[str]) -> int:
        """Remove what these tools made; how many there were."""
        count = 0
        for name in sorted(names):
            rows = await self._database.query(
                "DELETE FROM reminders WHERE tool = ? RETURNING id", [name]
            )
            count += len(rows)
        self._changed()
        return count

    async def remove_of_group(self, platform: str, bot_id: str, group_id: str) -> int:
        """Remove those of a group the bot is not in any more."""
        rows = await self._database.query(
            f"DELETE FROM reminders WHERE {_SAME_GROUP} RETURNING id", [platform, bot_id, group_id]
        )
        self._changed()
        return len(rows)

    def _changed(self) -> None:
        for callback in self._listeners:
            callback()

    async def _rows(self, where: str, values: Iterable[Any]) -> list[Reminder]:
        rows = await self._database.query(
            f"SELECT {_COLUMNS} FROM reminders WHERE {where} ORDER BY due, id", values
        )
        return [read for row in rows if (read := _readable(row)) is not None]


def _packed(reminder: Reminder) -> Any:
    repeat = None if reminder.repeat is None else dict(reminder.repeat)
    return codec.dumps(
        {"text": reminder.text, "name": reminder.name, "role": reminder.role, "repeat": repeat}
    )


def _readable(columns: Any) -> Reminder | None:
    """A row that cannot be read is logged and left out: it must not keep the rest waiting."""
    number, due, platform, bot, group_id, user_id, tool, created, packed = columns
    try:
        data = codec.loads(packed)
        return Reminder(
            text=str(data["text"]),
            due=float(due),
            platform=platform,
            bot_id=bot,
            group_id=group_id,
            user_id=user_id,
            tool=tool,
            name=str(data["name"]),
            role=str(data["role"]),
            repeat=data["repeat"],
            created=float(created),
            id=int(number),
        )
    except (StoreError, KeyError, TypeError, ValueError) as error:
        _log.error("reminder %s is left out: %s", number, error)
        return None
