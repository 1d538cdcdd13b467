"""Reading OneBot v11's events: which messages are meant for the bot, and what they say.

Shapes are those of NapCat, LLOneBot, Lagrange v1 and go-cqhttp, as measured against
nonebot-adapter-onebot 2.4.6.
"""

from __future__ import annotations

import asyncio
import re
from dataclasses import replace
from typing import Any

from nonebot import get_bots
from nonebot.adapters import Bot as BaseBot
from nonebot.adapters import Event as BaseEvent
from nonebot.adapters.onebot.v11 import Bot, MessageEvent, PrivateMessageEvent
from nonebot.adapters.onebot.v11.event import Sender

from chathands.bounded import Bounded
from chathands.errors import ToolFailed
from chathands.settings import GroupSettings
from chathands.toolbox.context import CallerRole
from plugins.group_chat.hearing_text import (
    clean_name,
    only_resembles_call,
    without_call,
    without_typed_mention,
)
from plugins.group_chat.messages import (
    Arrival,
    Attachment,
    Forwarded,
    Incoming,
    Outgoing,
    Place,
    Quoted,
    Sent,
)
from plugins.group_chat.onebot_v11_calls import asking, look_up
from plugins.group_chat.onebot_v11_connecting import connection_lines as connection_lines
from plugins.group_chat.onebot_v11_events import (
    as_object,
    attachment,
    attachments_of,
    first_words,
    forwarded_in,
    install_events,
    mended,
    mentions_bot,
    parsed,
    quote_id_of,
    seconds_of,
    text_of,
    without_answered,
)
from plugins.group_chat.onebot_v11_files import FileFetcher
from plugins.group_chat.onebot_v11_forward import UNREADABLE, ForwardReader
from plugins.group_chat.onebot_v11_liveness import Liveness
from plugins.group_chat.onebot_v11_notices import PLATFORM, muted_seconds
from plugins.group_chat.onebot_v11_sending import OneBotSending, install_sending

QUOTE_SECONDS = 2.0
"""For the adapter's own get_msg. It waits API_TIMEOUT (30 s) otherwise, and the mention with it."""
MAX_NAMES = 5
"""Mentioned members whose names are looked up; the rest keep their numbers."""
_NUMBER = re.compile(r"-?[0-9]{1,20}")
"""An id that is looked up as a number: Python refuses to read one of thousands of digits."""
_ROLES = ("owner", "admin", "member")
ROLE_SECONDS = 60.0
"""A looked-up role counts so long: who has just lost it may approve for a minute at most, and an
implementation that never says roles is not asked with every message."""
NAME_SECONDS = 600.0
"""A name that was looked up is good for; people rename themselves, and mention others often."""
MEMBERS_KEPT = 2048
"""Members whose looked-up names and roles are remembered; more than speak to a bot meanwhile."""


async def _hurry_get_msg(bot: BaseBot, api: str, data: dict[str, Any]) -> None:
    """A get_msg that never answers must not hold the mention back for API_TIMEOUT seconds."""
    if api == "get_msg" and isinstance(bot, Bot):
        data.setdefault("_timeout", min(QUOTE_SECONDS, bot.config.api_timeout or QUOTE_SECONDS))


def install() -> None:
    """Teach the adapter tolerant events, a short get_msg and odd failures. Call once, at import."""
    install_events()
    Bot.on_calling_api(_hurry_get_msg)
    install_sending()


class OneBotLine:
    """Reads and sends for every OneBot v11 bot that is connected (a `messages.Line`)."""

    def __init__(self) -> None:
        self.sending = OneBotSending()
        self.liveness = Liveness()
        self._names: Bounded[tuple[str, int, str], tuple[str, float]] = Bounded(MEMBERS_KEPT)
        self._roles: Bounded[tuple[str, int, int], tuple[str, float]] = Bounded(MEMBERS_KEPT)
        self.configure(GroupSettings())

    def configure(self, settings: GroupSettings) -> None:
        """Take over what the settings say about the line; there are defaults before."""
        self.sending.transfer = settings.file_transfer
        self._typed_mention = settings.typed_mention
        self.liveness.doubt_seconds = 3 * settings.ping_seconds
        self._files = FileFetcher(settings.file_origins, settings.file_dirs)

    # -- in

    async def heard(self, bot: Bot, event: BaseEvent) -> bool:
        """Whether a message is meant for the bot (a NoneBot rule).

        The adapter's `to_me` sees a mention only first or last in the message, and loses it behind
        a quote that cannot be fetched; `original_message` has them all.
        """
        if not isinstance(event, MessageEvent):
            return False
        # Lagrange reports the bot's own messages as ordinary ones.
        if str(event.user_id) in (bot.self_id, str(event.self_id), "0"):
            return False
        if event.sub_type == "anonymous" or getattr(event, "anonymous", None):
            return False  # shared number, no role: nobody to isolate, nobody to authorise
        if isinstance(event, PrivateMessageEvent) or self._at_bot(bot, event):
            return True
        quotes_us = self._quotes_us(bot, event)
        if self._called(bot, event) or quotes_us:
            return True
        if event.is_tome():  # the adapter takes "bottle" for a call when the bot is "bot"
            first = first_words(event.original_message, bot.self_id)
            return not only_resembles_call(first, tuple(bot.config.nickname))
        return self._typed_mention and await self._typed(bot, event) is not None

    def arrival(self, bot: Bot, event: MessageEvent) -> Arrival:
        """What is known of a message without asking anybody."""
        return Arrival(
            self._place(bot, event),
            str(event.message_id or ""),
            seconds_of(event.time),
            from_bot=str(event.user_id) in get_bots(),
        )

    async def read(self, bot: Bot, event: MessageEvent) -> Incoming:
        """The message as a neutral value; what must be looked up is, for at most a second."""
        group_id = getattr(event, "group_id", None)
        quoted, names, role = await asyncio.gather(
            self._quoted(bot, event),
            self._names_in(bot, group_id, event),
            self._role(bot, group_id, event),
        )
        sender = event.sender
        at_bot, called = self._at_bot(bot, event), self._called(bot, event)
        message = without_answered(event.original_message, quoted.sender_id if quoted else "")
        text = text_of(message, bot.self_id, names)
        if called and not at_bot:
            rest = without_call(text, tuple(bot.config.nickname))
            text = text if rest is None else rest
        typed = None
        if self._typed_mention and group_id is not None:
            typed = without_typed_mention(text, await self._own_names(bot, group_id))
            text = text if typed is None else typed
        return Incoming(
            place=self._place(bot, event),
            message_id=str(event.message_id or ""),
            text=text.strip(),
            name=clean_name(sender.card) or clean_name(sender.nickname) or str(event.user_id),
            role=role,
            quoted=quoted,
            mentioned=(
                group_id is None
                or at_bot
                or called
                or typed is not None
                or (event.is_tome() and not (quoted is not None and quoted.by_bot))
            ),
            files=attachments_of(message, group_id=group_id),
            forwarded=forwarded_in(message),
        )

    def overheard(
        self, bot: Bot, event: BaseEvent
    ) -> tuple[Place, tuple[Attachment | Forwarded, ...]] | None:
        """Files and chat logs somebody sent without a word to the bot, for a question that comes
        later. A group file is a message on some implementations, a notice on others, or both."""
        user_id = str(getattr(event, "user_id", "") or "")
        if not user_id or user_id == bot.self_id:
            return None
        if isinstance(event, MessageEvent):
            # What is sent in private is a question by itself.
            if isinstance(event, PrivateMessageEvent) or self._at_bot(bot, event):
                return None
            message = event.original_message
            group_id = getattr(event, "group_id", None)
            what = (*attachments_of(message, group_id=group_id), *forwarded_in(message))
            return (self._place(bot, event), what) if what else None
        if getattr(event, "notice_type", None) not in ("group_upload", "offline_file"):
            return None
        about = event.model_dump()
        group_id = about.get("group_id")
        file = attachment(as_object(about.get("file")), group_id=group_id)
        place = Place(PLATFORM, bot.self_id, str(group_id) if group_id else None, user_id)
        return place, (file,)

    async def fetch(self, place: Place, file: Attachment, *, limit: int, seconds: float) -> bytes:
        """The bytes of an attachment; see `messages.Line`."""
        bot = get_bots().get(place.bot_id)
        if not isinstance(bot, Bot):
            raise ToolFailed("现在没有连上 QQ")

        ask = asking(bot, seconds)
        return await self._files.fetch(ask, place, file, limit=limit, seconds=seconds)

    async def open_forwarded(
        self, place: Place, forwarded: Forwarded, *, seconds: float
    ) -> Forwarded:
        """A chat log, opened; see `messages.Line`."""
        bot = get_bots().get(place.bot_id)
        if not isinstance(bot, Bot):
            return replace(forwarded, text=UNREADABLE)
        return await ForwardReader(asking(bot, seconds), place.bot_id).read(forwarded, seconds)

    def _place(self, bot: Bot, event: MessageEvent) -> Place:
        group_id = getattr(event, "group_id", None)
        group = None if group_id is None else str(group_id)
        return Place(PLATFORM, bot.self_id, group, str(event.user_id))

    def _at_bot(self, bot: Bot, event: MessageEvent) -> bool:
        return any(mentions_bot(segment, bot.self_id) for segment in event.original_message)

    def _called(self, bot: Bot, event: MessageEvent) -> bool:
        first = first_words(event.original_message, bot.self_id)
        return without_call(first, tuple(bot.config.nickname)) is not None

    def _quotes_us(self, bot: Bot, event: MessageEvent) -> bool:
        if event.reply is not None and str(event.reply.sender.user_id) == bot.self_id:
            return True
        return self._is_ours(bot.self_id, quote_id_of(event))

    async def _typed(self, bot: Bot, event: MessageEvent) -> str | None:
        text = text_of(event.original_message, bot.self_id)
        if "@" not in text and "＠" not in text:
            return None
        group_id = getattr(event, "group_id", None)
        return without_typed_mention(text, await self._own_names(bot, group_id))

    async def _own_names(self, bot: Bot, group_id: int | None) -> tuple[str, ...]:
        """What people may type to mean the bot: its names in the settings, and its card here."""
        own = await self._name(bot, group_id, bot.self_id) if group_id is not None else ""
        return (*bot.config.nickname, *([own] if own else []))

    async def _quoted(self, bot: Bot, event: MessageEvent) -> Quoted | None:
        quote_id = quote_id_of(event)
        if quote_id is None:
            return None
        ours = self._is_ours(bot.self_id, quote_id)
        if event.reply is not None:
            sender, message = event.reply.sender, event.reply.message
        elif quote_id == "0":  # Lagrange's number for what it does not know
            return Quoted(quote_id)
        else:  # the adapter's get_msg failed, or it could not read the answer
            found = await look_up(bot, "get_msg", message_id=_id(quote_id))
            if not found.get("message"):
                return Quoted(quote_id, by_bot=ours)
            whole = mended(found)
            sender = Sender.model_validate(whole["sender"])
            message = parsed(whole["message"])
        sender_id = str(sender.user_id or "")
        return Quoted(
            quote_id,
            text_of(message, event.self_id),
            sender=clean_name(sender.card) or clean_name(sender.nickname) or sender_id,
            by_bot=sender_id == bot.self_id or ours,
            sender_id=sender_id,
            files=attachments_of(message, group_id=getattr(event, "group_id", None)),
            forwarded=forwarded_in(message),
        )

    async def _names_in(
        self, bot: Bot, group_id: int | None, event: MessageEvent
    ) -> dict[str, str]:
        """Names of the members mentioned; NapCat's mentions carry only the number."""
        wanted = [
            qq
            for segment in event.message
            if segment.type == "at"
            and not clean_name(segment.data.get("name"))
            and _NUMBER.fullmatch(qq := str(segment.data.get("qq")).strip())
            and qq != bot.self_id
        ]
        if group_id is None or not wanted:
            return {}
        unique = list(dict.fromkeys(wanted))[:MAX_NAMES]
        names = await asyncio.gather(*(self._name(bot, group_id, qq) for qq in unique))
        return {qq: name for qq, name in zip(unique, names, strict=True) if name}

    async def _name(self, bot: Bot, group_id: int, qq: str) -> str:
        """A member's name here; empty when nobody says."""
        key, now = (bot.self_id, group_id, qq), asyncio.get_running_loop().time()
        known = self._names.get(key)
        if known is not None and now - known[1] < NAME_SECONDS:
            return known[0]
        member = await look_up(bot, "get_group_member_info", group_id=group_id, user_id=int(qq))
        name = clean_name(member.get("card")) or clean_name(member.get("nickname"))
        if name:
            self._names[key] = (name, now)
        return name or (known[0] if known else "")

    async def _role(self, bot: Bot, group_id: int | None, event: MessageEvent) -> CallerRole:
        """The person's role, from the event; asked for when it does not say (NapCat, Lagrange)."""
        user_id = str(event.user_id)
        if {user_id, f"onebot:{user_id}"} & bot.config.superusers:
            return "superuser"
        if group_id is None:
            return "member"
        role = event.sender.role
        if role not in _ROLES:
            role = await self._looked_up_role(bot, group_id, event.user_id)
        match role:
            case "owner" | "admin":
                return role
        return "member"

    async def _looked_up_role(self, bot: Bot, group_id: int, user_id: int) -> str:
        """What the member list says; a look-up that failed is not remembered."""
        key, clock = (bot.self_id, group_id, user_id), asyncio.get_running_loop().time
        role, until = self._roles.get(key, ("", 0.0))
        if until <= clock():
            member = await look_up(
                bot,
                "get_group_member_info",
                group_id=group_id,
                user_id=user_id,
                no_cache=True,
            )
            role = str(member.get("role"))
            if role in _ROLES:
                self._roles[key] = role, clock() + ROLE_SECONDS
        return role

    # -- out

    async def send(self, message: Outgoing, *, seconds: float) -> Sent:
        """Send one message; see `messages.Line`."""
        return await self.sending.send(message, seconds=seconds)

    async def connected(self, bot_id: str, *, seconds: float) -> bool:
        """Wait until that bot is connected; False when it is not within `seconds`."""
        return await self.sending.connected(bot_id, seconds=seconds)

    async def alive(self, bot_id: str) -> bool:
        return await self.liveness.alive(bot_id)

    async def drained(self, *, seconds: float) -> None:
        await self.liveness.drained(seconds)

    async def react(self, place: Place, message_id: str) -> None:
        await self.liveness.react(place, message_id)

    async def muted(self, place: Place) -> float:
        return await muted_seconds(place)

    def _is_ours(self, bot_id: str, message_id: str | None) -> bool:
        return message_id is not None and self.sending.is_ours(bot_id, message_id)


def _id(message_id: str) -> int | str:
    return int(message_id) if _NUMBER.fullmatch(message_id) else message_id
