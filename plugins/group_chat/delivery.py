"""The last step before a message leaves: not into a mute, not into a dead connection, and written
down first when it pays a debt."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Protocol

from plugins.group_chat.messages import Attachment, Fate, Forwarded, Line, Outgoing, Place, Sent
from plugins.group_chat.presence import Presence


class Payment(Protocol):
    """What a message pays for; told what becomes of it."""

    async def sending(self) -> None:
        """A frame is about to leave."""
        ...

    async def ended(self, fate: Fate) -> None:
        """What became of it."""
        ...


_paying: ContextVar[Payment | None] = ContextVar("paying", default=None)


@contextmanager
def paying(payment: Payment) -> Iterator[None]:
    """Everything that is sent inside (also by tasks started there) pays for this."""
    token = _paying.set(payment)
    try:
        yield
    finally:
        _paying.reset(token)


class Delivery:
    """A line that looks before it sends (a `messages.Line`)."""

    def __init__(self, line: Line, presence: Presence) -> None:
        self._line = line
        self._presence = presence

    async def send(self, message: Outgoing, *, seconds: float) -> Sent:
        place = message.place
        if self._presence.silent(place):
            return Sent(Fate.REFUSED, detail="the bot may not speak there", final=True)
        if not await self._line.alive(place.bot_id):
            return Sent(Fate.DOWN, detail="the peer does not answer")
        payment = _paying.get()
        if payment is None:
            return await self._line.send(message, seconds=seconds)
        await payment.sending()
        sent = await self._line.send(message, seconds=seconds)
        await payment.ended(sent.fate)
        return sent

    async def connected(self, bot_id: str, *, seconds: float) -> bool:
        return await self._line.connected(bot_id, seconds=seconds)

    async def alive(self, bot_id: str) -> bool:
        return await self._line.alive(bot_id)

    async def drained(self, *, seconds: float) -> None:
        await self._line.drained(seconds=seconds)

    async def react(self, place: Place, message_id: str) -> None:
        if not self._presence.silent(place):
            await self._line.react(place, message_id)

    async def muted(self, place: Place) -> float:
        return await self._line.muted(place)

    async def fetch(self, place: Place, file: Attachment, *, limit: int, seconds: float) -> bytes:
        return await self._line.fetch(place, file, limit=limit, seconds=seconds)

    async def open_forwarded(
        self, place: Place, forwarded: Forwarded, *, seconds: float
    ) -> Forwarded:
        return await self._line.open_forwarded(place, forwarded, seconds=seconds)
