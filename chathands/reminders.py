"""What a reminder is, and the narrow face of whatever keeps reminders. Standard library only.

The rows live in `store/reminders.py`, the tools are `tools/reminders/`, and `agent/reminding.py`
has what is due said. Another store (Redis, a task engine) only has to offer `ReminderBook`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, Protocol


@dataclass(frozen=True, slots=True)
class Reminder:
    """What to say, to whom, where and when. Times are wall-clock seconds."""

    text: str
    """What the person wrote; only ever sent as text."""
    due: float
    """The next time."""
    platform: str
    bot_id: str
    group_id: str | None
    """None: in the person's private chat."""
    user_id: str
    tool: str
    """The tool that made it, by name: when that is gone, so is this."""
    name: str = ""
    """How the person is called."""
    role: str = "member"
    """What the person was when it was made; who may use the tool is looked at again."""
    repeat: Mapping[str, Any] | None = None
    """What `times.Repeat.to_data` wrote; None: once."""
    created: float = 0.0
    id: int = 0
    """Given by the book; 0 before."""

    @property
    def person(self) -> tuple[str, str]:
        return self.platform, self.user_id


class BookFull(Exception):
    """There are `limit` waiting reminders already, of the `whose`: person or group."""

    def __init__(self, whose: str, limit: int) -> None:
        super().__init__(f"{limit} reminders of one {whose}")
        self.whose = whose
        self.limit = limit


class ReminderBook(Protocol):
    """Keeps reminders. Every method raises StoreError when it cannot."""

    async def add(self, reminder: Reminder, *, per_person: int, per_group: int) -> Reminder:
        """Store it and give it with its id; one that is there already (same person, place, text,
        time) is given as it is. Raises BookFull."""
        ...

    async def of(self, platform: str, user_id: str) -> list[Reminder]:
        """Those of one person, the next first."""
        ...

    async def cancel(self, ids: Collection[int], platform: str, user_id: str) -> list[int]:
        """Remove those of these that are this person's; gives the ids that were."""
        ...
