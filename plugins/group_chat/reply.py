"""The one way out: every message this plugin sends, in parts, quoting, and never twice."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from dataclasses import dataclass, field
from typing import Any, TypeVar

from nonebot.log import logger

from chathands.settings import GroupSettings
from plugins.group_chat.messages import Fate, Line, Outgoing, Place, Sent
from plugins.group_chat.speech import plain, split

T = TypeVar("T")

RECONNECT_SECONDS = 300.0
"""How long a reply waits for the connection to come back; implementations dial every 1 to 5 s."""
SEND_AGAIN_SECONDS = 0.5
"""Between two attempts while the connection is down although it is listed as up."""
MAX_PARTS = 8
"""Of one reply. A model that repeats itself for ever would fill the group with hundreds of
messages, and an account that floods is banned."""

NOTHING_LEFT = "这次没有得到可用的回答，请换个说法再问一次。"
"""Instead of a reply that is nothing but marks (an empty table, a fence): never silence."""
CUT = "……（太长了，后面 {left} 字没有发出来，请把问题问得小一些）"


@dataclass(frozen=True, slots=True)
class Receipt:
    """What became of one text: the ids of the parts that were acknowledged, and the worst fate."""

    ids: tuple[str, ...] = field(default=())
    fate: Fate = Fate.SENT


class Sender:
    """Sends text through a line."""

    def __init__(self, line: Line, settings: GroupSettings) -> None:
        self._line = line
        self._settings = settings
        self._leaving = asyncio.Event()

    def leave(self) -> None:
        """Let go of everything that still waits for an acknowledgement or a connection."""
        self._leaving.set()

    async def say(
        self,
        place: Place,
        text: str,
        *,
        quote: str | None = None,
        verbatim: bool = False,
        patience: float = RECONNECT_SECONDS,
        seconds: float | None = None,
    ) -> Receipt:
        """Send `text`, split where it is too long; the first part quotes.

        `verbatim` keeps it as it is and whole (an approval shows exactly what will be sent); any
        other text is cut after `MAX_PARTS`. A part the other side refused ends it: what follows
        would be refused as well, and repeating into a muted group gets accounts banned (NapCat
        #398).
        """
        ids: list[str] = []
        limit = self._settings.reply_length
        parts = split(text, limit) if verbatim else _bounded(split(plain(text), limit))
        for number, part in enumerate(parts):
            message = Outgoing(place, part, quote if number == 0 else None)
            sent = await self._deliver(message, patience, seconds or self._settings.send_timeout)
            if sent.message_id is not None:
                ids.append(sent.message_id)
            if sent.fate is Fate.UNKNOWN:
                logger.warning(f"send not acknowledged, not repeated: {sent.detail}")
            elif sent.fate is not Fate.SENT:
                logger.error(f"message not delivered ({sent.fate}): {sent.detail}")
                return Receipt(tuple(ids), sent.fate)
        return Receipt(tuple(ids))

    async def _deliver(self, message: Outgoing, patience: float, seconds: float) -> Sent:
        """One part. Only what surely was not shown is sent again: reconnected, or unquoted."""
        clock = asyncio.get_running_loop().time
        until = clock() + patience
        while True:
            sending = self._line.send(message, seconds=seconds)
            sent = await self._unless_leaving(sending, Sent(Fate.UNKNOWN, detail="leaving"))
            left = until - clock()
            if sent.fate is Fate.REFUSED and message.quote is not None:
                # Lagrange refuses the whole message when it does not know the quoted one.
                logger.info(f"refused with a quote, sending without: {sent.detail}")
                message = Outgoing(message.place, message.text)
                continue
            if sent.fate is not Fate.DOWN or left <= 0 or self._leaving.is_set():
                return sent
            if not await self._unless_leaving(self._up(message.place.bot_id, until), False):
                return sent

    async def _up(self, bot_id: str, until: float) -> bool:
        clock = asyncio.get_running_loop().time
        await asyncio.sleep(min(SEND_AGAIN_SECONDS, max(0, until - clock())))
        return await self._line.connected(bot_id, seconds=until - clock())

    async def _unless_leaving(self, work: Coroutine[Any, Any, T], otherwise: T) -> T:
        task, leaving = asyncio.ensure_future(work), asyncio.ensure_future(self._leaving.wait())
        try:
            await asyncio.wait({task, leaving}, return_when=asyncio.FIRST_COMPLETED)
            return task.result() if task.done() else otherwise
        finally:
            task.cancel()
            leaving.cancel()


def _bounded(parts: list[str]) -> list[str]:
    """At least one part and at most `MAX_PARTS`; the last says how much is missing."""
    left = sum(map(len, parts[MAX_PARTS:]))
    if left:
        return [*parts[: MAX_PARTS - 1], parts[MAX_PARTS - 1] + CUT.format(left=left)]
    return parts or [NOTHING_LEFT]
