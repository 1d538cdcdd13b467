"""What admins set for a place: on or off, tools, our own admins, quotas.

Kept apart from conversations: forgetting, expiry and a change of sessions never touch it. All of it
is in memory (a few rows a group), so that asking costs nothing on the way of a message.
"""

from __future__ import annotations

from typing import Literal

from chathands.store.db import Database

EVERYWHERE = "*"
"""The place whose rules about tools count in all places."""

Kind = Literal["switch", "tool", "who", "admin", "quota"]

SCHEMA = (
    """
    CREATE TABLE place_rules (
        place TEXT NOT NULL,
        kind TEXT NOT NULL,
        subject TEXT NOT NULL,
        value TEXT NOT NULL,
        PRIMARY KEY (place, kind, subject)
    )
    """,
)


class Places:
    """Rules by place (`platform:bot:g<group>` or `platform:bot:u<user>`)."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._rules: dict[str, dict[tuple[str, str], str]] = {}

    async def load(self) -> None:
        """Read everything; once, when the file is opened. Raises StoreError."""
        rows = await self._database.query("SELECT place, kind, subject, value FROM place_rules")
        self._rules = {}
        for place, kind, subject, value in rows:
            self._rules.setdefault(place, {})[kind, subject] = value

    def is_on(self, place: str, *, default: bool = True) -> bool:
        """Whether the bot answers there; `default` where nobody has said."""
        value = self._get(place, "switch")
        return default if value is None else value == "on"

    def tool_off(self, place: str, name: str) -> bool:
        """Whether the tool is switched off there, or everywhere."""
        return any(self._get(where, "tool", name) == "off" for where in (place, EVERYWHERE))

    def left_to(self, place: str, name: str) -> tuple[str, ...]:
        """Whom the tool is left to there and everywhere, as it was set: all must hold."""
        said = (self._get(where, "who", name) for where in (place, EVERYWHERE))
        return tuple(value for value in said if value is not None)

    def left_to_at(self, place: str, name: str) -> str | None:
        """The same, exactly there."""
        return self._get(place, "who", name)

    def is_admin(self, place: str, user_id: str) -> bool:
        return self._get(place, "admin", user_id) is not None

    def admins(self, place: str) -> tuple[str, ...]:
        """User ids of those who were named admins for the bot there."""
        rules = self._rules.get(place, {})
        return tuple(sorted(subject for kind, subject in rules if kind == "admin"))

    def quota(self, place: str, user_id: str) -> int | None:
        """Questions a person may ask there in a day: their own number, else the place's.

        None: nobody has said; 0: without limit.
        """
        for subject in (user_id, ""):
            value = self._get(place, "quota", subject)
            if value is not None and value.isdecimal():
                return int(value)
        return None

    def known(self) -> tuple[str, ...]:
        """The places for which anything is set."""
        return tuple(sorted(self._rules))

    async def set(self, place: str, kind: Kind, subject: str, value: str | None) -> None:
        """Set a rule, or with None drop it. Raises StoreError; then nothing has changed."""
        if value is None:
            await self._database.query(
                "DELETE FROM place_rules WHERE place = ? AND kind = ? AND subject = ?",
                [place, kind, subject],
            )
            self._rules.get(place, {}).pop((kind, subject), None)
        else:
            await self._database.query(
                "INSERT OR REPLACE INTO place_rules (place, kind, subject, value)"
                " VALUES (?, ?, ?, ?)",
                [place, kind, subject, value],
            )
            self._rules.setdefault(place, {})[kind, subject] = value

    def _get(self, place: str, kind: Kind, subject: str = "") -> str | None:
        return self._rules.get(place, {}).get((kind, subject))
