"""The one way out: every message this plugin sends, quoting, with stand-ins, and never twice."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from nonebot.log import logger

from chathands.settings import GroupSettings
from plugins.group_chat.messages import Fate, Line, Outgoing, Place, Sent
from plugins.group_chat.parcels import (
    FILES_BELOW,
    NOTHING_LEFT,
    Parcel,
    Wrapping,
    quoting,
    with_broken_links,
)
from plugins.group_chat.redaction import Redaction
from plugins.group_chat.rendering import Piece, pieces_of, without_controls
from plugins.group_chat.rendering_tables import Table
from plugins.group_chat.table_image import Drawn, draw

T = TypeVar("T")

RECONNECT_SECONDS = 300.0
"""How long a reply waits for the connection to come back; implementations dial every 1 to 5 s."""
SEND_AGAIN_SECONDS = 0.5
"""Between two attempts while the connection is down although it is listed as up."""
LAST_SECONDS = 0.1
"""For what is on its way when the process leaves: a frame whose fate is known is worth it."""
FORWARD_SECONDS = 30.0
"""For the acknowledgement of a forward, which is uploaded first."""
MAX_PICTURES = 4
"""Tables of one reply that are drawn; a wall of pictures is flooding too."""

_WORST = (Fate.SENT, Fate.UNKNOWN, Fate.DOWN, Fate.REFUSED)


@dataclass(frozen=True, slots=True)
class Receipt:
    """What became of one reply: the ids of the messages that were acknowledged, the worst fate."""

    ids: tuple[str, ...] = field(default=())
    fate: Fate = Fate.SENT
    doubtful: bool = False
    """Of some message it is not known whether it was shown, whatever became of the rest."""


class Sender:
    """Sends through a line."""

    def __init__(
        self, line: Line, settings: GroupSettings, redaction: Redaction | None = None
    ) -> None:
        self.redaction = redaction or Redaction()
        self._line = line
        self._settings = settings
        self._leaving = asyncio.Event()

    def leave(self) -> None:
        """Begin no send any more, and let go of what waits for an acknowledgement or a connection.

        What was not begun is DOWN: it surely was not shown.
        """
        self._leaving.set()

    @property
    def left(self) -> bool:
        return self._leaving.is_set()

    async def say(
        self,
        place: Place,
        text: str,
        *,
        quote: str | None = None,
        mention: str | None = None,
        verbatim: bool = False,
        files: Sequence[tuple[str, bytes]] = (),
        patience: float = RECONNECT_SECONDS,
        seconds: float | None = None,
    ) -> Receipt:
        """Send `text`, Markdown, and `files` (name, content) behind it; the first message quotes,
        and calls up the member `mention`.

        `verbatim` keeps it as it is and whole (an approval shows exactly what will be sent); of
        any other text what may not be shown is taken out, and what is too long for a message
        becomes a forward or a file. A message the other side refused in every form ends it: what
        follows would be refused as well, and repeating into a muted group gets accounts banned
        (NapCat #398).
        """
        parcels = await self._parcels(Wrapping(place, self._settings), text, verbatim, files)
        ids: list[str] = []
        doubts: list[str] = []
        worst = Fate.SENT
        for parcel in quoting(parcels, quote, mention):
            fate = await self._hand_over(parcel, ids, doubts, patience, seconds)
            worst = max(worst, fate, key=_WORST.index)
            if fate in (Fate.REFUSED, Fate.DOWN):
                break
        return Receipt(tuple(ids), worst, bool(doubts))

    async def hand_file(
        self, place: Place, file: tuple[str, bytes], *, patience: float, seconds: float
    ) -> Fate:
        """Send a file and nothing in its place: `say` would put words there where it is refused."""
        name, data = file
        message = Outgoing(place, "", kind="file", file=(self.redaction.markdown(name), data))
        return (await self._deliver(message, patience, seconds)).fate

    async def _parcels(
        self, wrapping: Wrapping, text: str, verbatim: bool, files: Sequence[tuple[str, bytes]]
    ) -> list[Parcel]:
        if verbatim:
            return wrapping.verbatim(self.redaction.known(without_controls(text)))
        pieces = pieces_of(self.redaction.markdown(without_controls(text)))
        if not pieces:
            pieces = [FILES_BELOW if files else NOTHING_LEFT]
        named = [(self.redaction.markdown(name), data) for name, data in files]
        return wrapping.reply(pieces, await self._drawn(pieces)) + wrapping.files(named)

    async def _drawn(self, pieces: Sequence[Piece]) -> dict[int, Drawn]:
        """Pictures of the tables, where they are wanted and there is a font."""
        tables = [(n, piece) for n, piece in enumerate(pieces) if isinstance(piece, Table)]
        if self._settings.tables != "image":
            return {}
        found: dict[int, Drawn] = {}
        for number, table in tables[:MAX_PICTURES]:
            drawn = await asyncio.to_thread(draw, table, self._settings.font)
            if drawn is not None:
                found[number] = drawn
        return found

    async def _hand_over(
        self,
        parcel: Parcel,
        ids: list[str],
        doubts: list[str],
        patience: float,
        seconds: float | None,
    ) -> Fate:
        """Deliver the parcel, in the first of its ways that is not refused."""
        worst = Fate.SENT
        for way, messages in enumerate(parcel.ways, start=1):
            for number, message in enumerate(messages):
                sent = await self._deliver(message, patience, seconds)
                if sent.message_id is not None:
                    ids.append(sent.message_id)
                if sent.fate is Fate.UNKNOWN:
                    logger.warning(f"send not acknowledged, not repeated: {sent.detail}")
                    worst = Fate.UNKNOWN
                    doubts.append(sent.detail)
                elif sent.fate is not Fate.SENT:
                    last = way == len(parcel.ways) or number > 0 or sent.final
                    if last or sent.fate is not Fate.REFUSED:
                        logger.error(f"message not delivered ({sent.fate}): {sent.detail}")
                        return sent.fate
                    logger.warning(f"{message.kind} refused, another way: {sent.detail}")
                    break
            else:
                return worst
        return worst

    async def _deliver(self, message: Outgoing, patience: float, seconds: float | None) -> Sent:
        """One message. Only what surely was not shown is sent again: reconnected, without the
        quote, or with its links broken up."""
        clock = asyncio.get_running_loop().time
        until = clock() + patience
        if seconds is None:
            seconds = self._settings.send_timeout
            seconds = max(seconds, FORWARD_SECONDS) if message.kind == "forward" else seconds
        whole = True
        while True:
            if self.left:
                return Sent(Fate.DOWN, detail="leaving")
            sending = self._line.send(message, seconds=seconds)
            sent = await self._unless_leaving(sending, Sent(Fate.UNKNOWN, detail="leaving"))
            left = until - clock()
            if sent.fate is Fate.REFUSED and not sent.final:
                if message.quote is not None:
                    # Lagrange refuses the whole message when it does not know the quoted one.
                    logger.info(f"refused with a quote, sending without: {sent.detail}")
                    message = replace(message, quote=None)
                    continue
                if message.mention is not None:
                    logger.info(f"refused with a mention, sending without: {sent.detail}")
                    message = replace(message, mention=None)
                    continue
                broken = with_broken_links(message) if whole else None
                if broken is not None:
                    # A link that QQ does not like takes the whole message with it (NapCat #808).
                    logger.info(f"refused with links, breaking them up: {sent.detail}")
                    message, whole = broken, False
                    continue
            if sent.fate is not Fate.DOWN or left <= 0:
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
            if not task.done():
                await asyncio.wait({task}, timeout=LAST_SECONDS)
            if task.cancel():
                await asyncio.wait({task})  # by then it is known how far it came
            return otherwise if task.cancelled() else task.result()
        finally:
            task.cancel()
            leaving.cancel()
