"""What comes in and what goes out, whatever the protocol: the values the plugin works on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Literal, Protocol

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
class Attachment:
    """A file or picture that came with a message, fetched or not."""

    kind: Literal["image", "file"]
    name: str
    """As its sender called it, on one line; may be empty for a picture."""
    size: int | None = None
    """Bytes, when the protocol said so."""
    handle: Mapping[str, Any] = field(default_factory=dict)
    """What the line needs to fetch it; nobody else looks inside."""
    sent_at: float = 0.0
    """Wall clock, seconds; set for one that came in an earlier message."""
    path: str | None = None
    """Under this name the asker's tools open it, once it is fetched."""
    problem: str = ""
    """Why it was not fetched: one sentence for people."""


@dataclass(frozen=True, slots=True)
class Forwarded:
    """A forwarded chat log, opened or not. What it says is text from outside."""

    handle: Mapping[str, Any] = field(default_factory=dict)
    """What the line needs to open it."""
    text: str | None = None
    """Who said what, a line each, within the limits; None until it is opened."""
    files: tuple[Attachment, ...] = ()
    sent_at: float = 0.0
    """As for attachments."""


@dataclass(frozen=True, slots=True)
class Quoted:
    """The message that was quoted. `text` is None when it could not be fetched."""

    message_id: str
    text: str | None = None
    sender: str = ""
    by_bot: bool = False
    sender_id: str = ""
    files: tuple[Attachment, ...] = ()
    forwarded: tuple[Forwarded, ...] = ()


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
    files: tuple[Attachment, ...] = ()
    """What the message carries, and what the same person sent shortly before it."""
    forwarded: tuple[Forwarded, ...] = ()
    """Likewise, of chat logs."""

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
class Arrival:
    """The little that decides whether a message is dealt with at all, before anything is asked."""

    place: Place
    message_id: str
    sent_at: float | None = None
    """Wall clock, seconds; None when the protocol did not say."""
    from_bot: bool = False
    """Its sender is another account this very process serves."""


@dataclass(frozen=True, slots=True)
class Outgoing:
    """One message to send. `text` is only ever shown as text, whatever codes stand in it."""

    place: Place
    text: str
    quote: str | None = None
    """Id of the message it quotes; only texts and images can."""
    mention: str | None = None
    """User id of a member of the group who is called up in front of the text; likewise."""
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

    async def alive(self, bot_id: str) -> bool:
        """Whether the other side can be expected to take a message now; a connection may be open
        and dead."""
        ...

    async def drained(self, *, seconds: float) -> None:
        """Wait until what people had said before this is dealt with, but for `seconds` at most."""
        ...

    async def react(self, place: Place, message_id: str) -> None:
        """Show on a message that it was heard, where that is possible; never raises."""
        ...

    async def muted(self, place: Place) -> float:
        """Seconds the bot may still not speak there, as far as the other side says; else 0.
        Infinite: the whole group may not, until that is lifted."""
        ...

    async def fetch(self, place: Place, file: Attachment, *, limit: int, seconds: float) -> bytes:
        """The bytes of an attachment. Raises ToolError with a sentence for people."""
        ...

    async def open_forwarded(
        self, place: Place, forwarded: Forwarded, *, seconds: float
    ) -> Forwarded:
        """The chat log with its text; what cannot be opened says so in it, and nothing raises."""
        ...
