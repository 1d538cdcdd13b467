"""Everything only OneBot v11 knows but sending: connecting, and reading its events.

Shapes are those of NapCat, LLOneBot, Lagrange v1 and go-cqhttp, as measured against
nonebot-adapter-onebot 2.4.6.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from typing import Any

import nonebot
from nonebot import get_driver
from nonebot.adapters import Bot as BaseBot
from nonebot.adapters import Event as BaseEvent
from nonebot.adapters.onebot.v11 import (
    ActionFailed,
    Adapter,
    ApiNotAvailable,
    Bot,
    Message,
    MessageEvent,
    NetworkError,
    PrivateMessageEvent,
)
from nonebot.adapters.onebot.v11.event import Sender
from nonebot.compat import type_validate_python
from nonebot.log import logger

from chathands.toolbox.context import CallerRole
from plugins.group_chat.messages import Incoming, Outgoing, Place, Quoted, Sent
from plugins.group_chat.onebot_v11_events import (
    TolerantGroupMessage,
    TolerantPrivateMessage,
    as_object,
    mended,
    mentions_bot,
    quote_id_of,
    text_of,
)
from plugins.group_chat.onebot_v11_sending import BROKEN, OneBotSending, install_sending

PLATFORM = "qq"

QUOTE_SECONDS = 2.0
"""For the adapter's own get_msg. It waits API_TIMEOUT (30 s) otherwise, and the mention with it."""
LOOKUP_SECONDS = 1.0
"""For our own look-ups (quote again, names, role): with the above a mention waits 3 s at most."""
MAX_NAMES = 5
"""Mentioned members whose names are looked up; the rest keep their numbers."""


async def _hurry_get_msg(bot: BaseBot, api: str, data: dict[str, Any]) -> None:
    """A get_msg that never answers must not hold the mention back for API_TIMEOUT seconds."""
    if api == "get_msg" and isinstance(bot, Bot):
        data.setdefault("_timeout", min(QUOTE_SECONDS, bot.config.api_timeout or QUOTE_SECONDS))


def install() -> None:
    """Teach the adapter tolerant events, a short get_msg and odd failures. Call once, at import."""
    Adapter.add_custom_model(TolerantGroupMessage, TolerantPrivateMessage)
    Bot.on_calling_api(_hurry_get_msg)
    install_sending()


def connection_lines() -> list[tuple[str, str]]:
    """What an admin needs to connect QQ, as (log level, Chinese line).

    A wrong path, a wrong token and a second connection all look alike (403) on the other side.
    """
    config = get_driver().config
    adapter = nonebot.get_adapters().get(Adapter.get_name())
    token = isinstance(adapter, Adapter) and adapter.onebot_config.onebot_access_token
    host, everywhere = str(config.host), config.host.is_unspecified
    shown = "127.0.0.1" if everywhere else f"[{host}]" if config.host.version == 6 else host
    elsewhere = "（在别的机器或容器里填时，把 127.0.0.1 换成这台的 IP）" if everywhere else ""
    lines = [
        (
            "INFO",
            f"在 NapCat / LLOneBot 的反向 WebSocket 里填：ws://{shown}:{config.port}/onebot/v11/ws"
            f"{elsewhere}",
        ),
        (
            "INFO",
            "访问令牌（ONEBOT_ACCESS_TOKEN）："
            + ("已设置，那边的 token 要填同一个" if token else "没有设置"),
        ),
    ]
    if not token and not config.host.is_loopback:
        lines.append(
            (
                "WARNING",
                f"HOST={host} 而没有设置 ONEBOT_ACCESS_TOKEN：能连到这个端口的人都能冒充 QQ，"
                "包括冒充管理员。请在 .env 里设一个长的令牌。",
            )
        )
    if not config.superusers:
        lines.append(("INFO", "没有设置 SUPERUSERS：对外的操作只能由群主和群管理员确认"))
    return lines


# --- reading


class OneBotLine:
    """Reads and sends for every OneBot v11 bot that is connected (a `messages.Line`)."""

    def __init__(self) -> None:
        self.sending = OneBotSending()
        self._names: OrderedDict[tuple[str, int, str], str] = OrderedDict()

    # -- in

    async def heard(self, bot: Bot, event: BaseEvent) -> bool:
        """Whether a message is meant for the bot (a NoneBot rule).

        The adapter's `to_me` sees a mention only first or last in the message, and loses it behind
        a quote that cannot be fetched; `original_message` has them all.
        """
        if not isinstance(event, MessageEvent):
            return False
        # Lagrange reports the bot's own messages as ordinary ones.
        if event.user_id == event.self_id:
            return False
        if event.sub_type == "anonymous" or getattr(event, "anonymous", None):
            return False  # shared number, no role: nobody to isolate, nobody to authorise
        if isinstance(event, PrivateMessageEvent) or event.is_tome():
            return True
        if any(mentions_bot(segment, event.self_id) for segment in event.original_message):
            return True
        return self._is_ours(bot.self_id, quote_id_of(event))

    async def read(self, bot: Bot, event: MessageEvent) -> Incoming:
        """The message as a neutral value; what must be looked up is, for at most a second."""
        group_id = getattr(event, "group_id", None)
        quoted, names, role = await asyncio.gather(
            self._quoted(bot, event),
            self._names_in(bot, group_id, event),
            self._role(bot, group_id, event),
        )
        sender = event.sender
        at_bot = any(mentions_bot(segment, event.self_id) for segment in event.original_message)
        return Incoming(
            place=Place(
                PLATFORM,
                bot.self_id,
                None if group_id is None else str(group_id),
                str(event.user_id),
            ),
            message_id=str(event.message_id or ""),
            text=text_of(event.message, event.self_id, names),
            name=(sender.card or sender.nickname or str(event.user_id)).strip(),
            role=role,
            quoted=quoted,
            mentioned=(
                group_id is None
                or at_bot
                or (event.is_tome() and not (quoted is not None and quoted.by_bot))
            ),
        )

    async def _quoted(self, bot: Bot, event: MessageEvent) -> Quoted | None:
        quote_id = quote_id_of(event)
        if quote_id is None:
            return None
        if event.reply is not None:
            sender, message = event.reply.sender, event.reply.message
        else:  # the adapter's get_msg failed, or it could not read the answer
            found = await self._ask(bot, "get_msg", message_id=_id(quote_id))
            if not found.get("message"):
                return Quoted(quote_id, by_bot=self._is_ours(bot.self_id, quote_id))
            whole = mended(found)
            sender = Sender.model_validate(whole["sender"])
            message = type_validate_python(Message, whole["message"])
        return Quoted(
            quote_id,
            text_of(message, event.self_id),
            sender=sender.card or sender.nickname or str(sender.user_id or ""),
            by_bot=str(sender.user_id) == bot.self_id or self._is_ours(bot.self_id, quote_id),
        )

    async def _names_in(
        self, bot: Bot, group_id: int | None, event: MessageEvent
    ) -> dict[str, str]:
        """Names of the members mentioned; NapCat's mentions carry only the number."""
        wanted = [
            qq
            for segment in event.message
            if segment.type == "at"
            and not segment.data.get("name")
            and (qq := str(segment.data.get("qq"))).isdecimal()
            and qq != bot.self_id
        ]
        if group_id is None or not wanted:
            return {}
        unique = list(dict.fromkeys(wanted))[:MAX_NAMES]
        names = await asyncio.gather(*(self._name(bot, group_id, qq) for qq in unique))
        return dict(zip(unique, names, strict=True))

    async def _name(self, bot: Bot, group_id: int, qq: str) -> str:
        key = (bot.self_id, group_id, qq)
        if key not in self._names:
            member = await self._ask(
                bot, "get_group_member_info", group_id=group_id, user_id=int(qq)
            )
            name = str(member.get("card") or member.get("nickname") or "").strip()
            if not name:
                return qq
            self._names[key] = name
            if len(self._names) > 2048:
                self._names.popitem(last=False)
        return self._names[key]

    async def _role(self, bot: Bot, group_id: int | None, event: MessageEvent) -> CallerRole:
        """The person's role, from the event; asked for when it does not say (NapCat, Lagrange)."""
        user_id = str(event.user_id)
        if {user_id, f"onebot:{user_id}"} & bot.config.superusers:
            return "superuser"
        if group_id is None:
            return "member"
        role = event.sender.role
        if role not in ("owner", "admin", "member"):
            member = await self._ask(
                bot,
                "get_group_member_info",
                group_id=group_id,
                user_id=event.user_id,
                no_cache=True,
            )
            role = member.get("role")
        match role:
            case "owner" | "admin":
                return role
        return "member"

    async def _ask(self, bot: Bot, api: str, **data: Any) -> dict[str, Any]:
        """A look-up that may fail: then it is an empty object."""
        try:
            answer = await bot.call_api(api, **data, _timeout=LOOKUP_SECONDS)
        except (ActionFailed, NetworkError, ApiNotAvailable, *BROKEN) as error:
            logger.info(f"{api} failed, going on without: {error!r}")
            return {}
        return as_object(answer)

    # -- out

    async def send(self, message: Outgoing, *, seconds: float) -> Sent:
        """Send one message; see `messages.Line`."""
        return await self.sending.send(message, seconds=seconds)

    async def connected(self, bot_id: str, *, seconds: float) -> bool:
        """Wait until that bot is connected; False when it is not within `seconds`."""
        return await self.sending.connected(bot_id, seconds=seconds)

    def _is_ours(self, bot_id: str, message_id: str | None) -> bool:
        return message_id is not None and self.sending.is_ours(bot_id, message_id)


def _id(message_id: str) -> int | str:
    return int(message_id) if message_id.lstrip("-").isdecimal() else message_id
