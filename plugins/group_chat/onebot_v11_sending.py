"""The sending half of OneBot v11: messages out, and what became of them.

Failures are those of NapCat, LLOneBot, Lagrange v1 and go-cqhttp, as measured against
nonebot-adapter-onebot 2.4.6.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from typing import Any

from nonebot import get_bots
from nonebot.adapters import Bot as BaseBot
from nonebot.adapters.onebot.v11 import (
    ActionFailed,
    ApiNotAvailable,
    Message,
    MessageSegment,
    NetworkError,
)
from nonebot.exception import WebSocketClosed
from starlette.websockets import WebSocketDisconnect

from plugins.group_chat.messages import Fate, Outgoing, Sent
from plugins.group_chat.onebot_v11_events import as_object

RECONNECT_CHECK = 0.1
"""Between two looks for a bot that is away: a hook would need NoneBot's lifespan to be running."""

BROKEN = (WebSocketClosed, WebSocketDisconnect, OSError, RuntimeError)
"""What a socket that is already closed raises when a frame is handed to it: nothing has left."""


class OneBotSending:
    """Sends through every OneBot v11 bot that is connected."""

    def __init__(self) -> None:
        self._ours: OrderedDict[str, None] = OrderedDict()
        """Ids of messages we sent: a quote of one is meant for us even when get_msg fails."""

    async def send(self, message: Outgoing, *, seconds: float) -> Sent:
        """Send text, and nothing but text, to the place; see `messages.Line`."""
        place = message.place
        bot = get_bots().get(place.bot_id)
        if bot is None:
            return Sent(Fate.DOWN, detail="not connected")
        content = Message()
        if message.quote and message.quote != "0":
            content.append(MessageSegment.reply(int(message.quote)))
        # Never Message(text) and never a bare string: both would turn [CQ:...] in it into segments.
        content.append(MessageSegment.text(message.text))
        target: dict[str, Any] = (
            {"message_type": "private", "user_id": int(place.user_id)}
            if place.group_id is None
            else {"message_type": "group", "group_id": int(place.group_id)}
        )
        try:
            answer = await bot.call_api("send_msg", **target, message=content, _timeout=seconds)
        except (ActionFailed, NetworkError, ApiNotAvailable, *BROKEN) as error:
            return Sent(_fate(bot, error), detail=repr(error))
        message_id = str(as_object(answer).get("message_id") or "") or None
        if message_id is not None:
            self._ours[f"{place.bot_id}:{message_id}"] = None
            if len(self._ours) > 2048:
                self._ours.popitem(last=False)
        return Sent(Fate.SENT, message_id)

    async def connected(self, bot_id: str, *, seconds: float) -> bool:
        """Wait until that bot is connected; False when it is not within `seconds`."""
        clock = asyncio.get_running_loop().time
        until = clock() + seconds
        while bot_id not in get_bots():
            if clock() >= until:
                return False
            await asyncio.sleep(RECONNECT_CHECK)
        return True

    def is_ours(self, bot_id: str, message_id: str) -> bool:
        """Whether the bot sent that message, as far as is remembered."""
        return f"{bot_id}:{message_id}" in self._ours


def _fate(bot: BaseBot, error: Exception) -> Fate:
    """What became of a send that raised. When in doubt: unknown, and so never repeated."""
    if isinstance(error, (ApiNotAvailable, *BROKEN)):
        return Fate.DOWN
    if isinstance(error, NetworkError):
        # With an HTTP client driver loaded, a socket that is down shows as a failed HTTP request
        # to the address "None".
        connections = getattr(bot.adapter, "connections", {})
        roots = getattr(getattr(bot.adapter, "onebot_config", None), "onebot_api_roots", {})
        down = bot.self_id not in connections and bot.self_id not in roots
        return Fate.DOWN if down and "timeout" not in str(error.msg).lower() else Fate.UNKNOWN
    info = error.info if isinstance(error, ActionFailed) else {}
    said = " ".join(str(info.get(key) or "") for key in ("message", "wording", "msg")).strip()
    # NapCat's 1200 "Timeout: NTEvent ... sendMsg" was delivered in most reports; Lagrange answers
    # every exception with a bare 200.
    return Fate.UNKNOWN if not said or "timeout" in said.lower() else Fate.REFUSED
