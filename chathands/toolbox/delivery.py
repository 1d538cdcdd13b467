"""Taking something to another chat of the platform the bot is on: a group, or one person.

Tools ask for it through `ToolContext.deliver`; who serves the platform brings what does it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Delivery:
    """What goes where. Exactly one of `group_id` and `user_id` is set."""

    text: str
    """Markdown; shown as text, whatever codes stand in it."""
    group_id: str | None = None
    user_id: str | None = None
    files: tuple[tuple[str, bytes], ...] = ()
    """Name and content."""
    bot_id: str = ""
    """The account that brings it; empty: the one that is there."""


class Deliver(Protocol):
    async def __call__(self, delivery: Delivery, *, seconds: float) -> None:
        """Returns when the platform said it took all of it.

        Raises ToolFailed when nothing was shown, ToolOutcomeUnknown when something may have been;
        each with one sentence for people.
        """
        ...
