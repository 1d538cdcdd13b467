"""What comes in and what goes out, whatever the protocol: the values the plugin works on."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Literal, Protocol

from chathands.toolbox.context import Caller, CallerRole


@dataclass(frozen=True, slots=True)
class Place:
    """Where a message stands and where its answer goes: a group, or one person's private chat."""

    platform: str
    bot_id: str
    group_id: str | None
    user_id: str
    """Who wrote; in a private chat also where the answer goes."""

    @property
    def private(self) -> bool:
        return self.group_id is None

    @property
    def lane(self) -> str:
        """What takes turns at the gate: groups, and persons in private chats."""
        whose = f"u{self.user_id}" if self.group_id is None else f"g{self.group_id}"
        return f"{self.platform}:{self.bot_id}:{whose}"

    def same_chat(self, other: Place) -> bool:
        """Whether both stand in the same group, or in the same private chat."""
        return self.lane == other.lane


@dataclass(frozen=True, slots=True)
class Quoted:
    """The message that was quoted. `text` is None when it could not be fetched."""

    message_id: str
    text: str | None = None
    sender: str = ""
    by_bot: bool = False


@dataclass(frozen=True, slots=True)
class Incoming:
    """A message meant for the bot."""

    place: Place
    message_id: str
    """Empty when the protocol gave none: then nothing can be quoted."""
    text: str
    """Words with other members' names, placeholders for what is not text, the bot's own mention
    taken out."""
    name: str = ""
    role: CallerRole = "member"
    quoted: Quoted | None = None
    mentioned: bool = True
    """By an explicit mention, a name at the start, or in private; not merely by a quote."""

    @property
    def caller(self) -> Caller:
        place = self.place
        return Caller(
            user_id=place.user_id,
            group_id=place.group_id,
            role=self.role,
            name=self.name,
            platform=place.platform,
            bot_id=place.bot_id,
        )


@dataclass(frozen=True, slots=True)
class Outgoing:
    """One message to send. `text` is only ever shown as text, whatever codes stand in it."""

    place: Place
    text: str
    quote: str | None = None
    """Id of the message it quotes; only texts and images can."""
    kind: Literal["text", "image", "file", "forward"] = "text"
    image: bytes = b""
    """PNG, JPEG, GIF or WebP, shown below `text` (kind image)."""
    file: tuple[str, bytes] | None = None
    """Name and content (kind file)."""
    nodes: tuple[str | bytes, ...] = ()
    """What a forward message holds, one text or image (bytes) each (kind forward)."""


class Fate(StrEnum):
    """What became of one sent message."""

    SENT = "sent"
    REFUSED = "refused"
    """The other side said no; nothing was shown."""
    UNKNOWN = "unknown"
    """It may have been shown: never repeated."""
    DOWN = "down"
    """There was no connection; nothing has left."""


@dataclass(frozen=True, slots=True)
class Sent:
    fate: Fate
    message_id: str | None = None
    detail: str = ""
    """For the log; never shown to people."""
    final: bool = False
    """Refused whatever the form (muted, not in the group): another way would be refused too, and
    repeating it gets accounts banned (NapCat #398)."""


class Line(Protocol):
    """The way to the people, one per protocol."""

    async def send(self, message: Outgoing, *, seconds: float) -> Sent:
        """Send one message; what became of it is a value, never an exception."""
        ...

    async def connected(self, bot_id: str, *, seconds: float) -> bool:
        """Wait until that bot is connected; False when it is not within `seconds`."""
        ...
