"""What happens in a chat besides messages, as neutral values."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Recalled:
    """A message was taken back, by its author or an admin."""

    bot_id: str
    message_id: str


@dataclass(frozen=True, slots=True)
class Silenced:
    """The bot may not speak in a group."""

    platform: str
    bot_id: str
    group_id: str
    everybody: bool = False
    """The whole group is muted, and the bot with it."""
    seconds: float | None = None
    """None: until somebody lifts it."""


@dataclass(frozen=True, slots=True)
class Allowed:
    """A mute was lifted: the bot's own, or the whole group's."""

    platform: str
    bot_id: str
    group_id: str
    everybody: bool = False


@dataclass(frozen=True, slots=True)
class Removed:
    """The bot is not in the group any more."""

    platform: str
    bot_id: str
    group_id: str


@dataclass(frozen=True, slots=True)
class Joined:
    """The bot was taken into a group (again)."""

    platform: str
    bot_id: str
    group_id: str


Notice = Recalled | Silenced | Allowed | Removed | Joined
