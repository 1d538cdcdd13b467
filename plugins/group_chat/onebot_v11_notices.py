"""OneBot v11's notices as neutral ones: recalls, mutes, and the bot's comings and goings.

Shapes: NapCat, LLOneBot and Lagrange report a mute of the whole group as `user_id` 0 with
`duration` -1 (or 0 when lifted); NapCat leaves out `operator_id` where it does not know it, which
is why the fields are read one by one and not through the adapter's models.
"""

from __future__ import annotations

import math
import time
from typing import Any

from nonebot import get_bots
from nonebot.adapters import Bot as BaseBot
from nonebot.adapters.onebot.v11 import Bot, NoticeEvent

from plugins.group_chat.messages import Place
from plugins.group_chat.notices import Allowed, Joined, Notice, Recalled, Removed, Silenced
from plugins.group_chat.onebot_v11_calls import look_up
from plugins.group_chat.onebot_v11_events import as_number

PLATFORM = "qq"


async def notice_of(bot: Bot, event: NoticeEvent) -> Notice | None:
    """What the notice means for us; None when it means nothing."""
    said = event.model_dump()
    group, user = _id(said.get("group_id")), _id(said.get("user_id"))
    message, sub_type = _id(said.get("message_id")), str(said.get("sub_type") or "")
    match event.notice_type:
        case "group_recall" | "friend_recall" if message:
            return Recalled(bot.self_id, message)
        case "group_ban" if group and user in ("", "0", "all", bot.self_id):
            return await _mute(bot, group, user != bot.self_id, sub_type, said.get("duration"))
        case "group_decrease" if group and (user == bot.self_id or sub_type == "kick_me"):
            return Removed(PLATFORM, bot.self_id, group)
        case "group_increase" if group and user == bot.self_id:
            return Joined(PLATFORM, bot.self_id, group)
    return None


async def _mute(
    bot: Bot, group: str, everybody: bool, sub_type: str, duration: Any
) -> Silenced | Allowed | None:
    seconds = max(0, as_number(duration))  # a whole group's is -1
    if sub_type == "lift_ban" or (not sub_type and seconds == 0):
        return Allowed(PLATFORM, bot.self_id, group, everybody=everybody)
    if not everybody:
        return Silenced(PLATFORM, bot.self_id, group, seconds=seconds or None)
    if (await _myself(bot, group)).get("role") in ("owner", "admin"):
        return None  # a muted group still hears its admins
    return Silenced(PLATFORM, bot.self_id, group, everybody=True)


async def muted_seconds(place: Place) -> float:
    """How long the bot is still muted in that group, as far as the other side says; else 0.
    Infinite where the whole group is.

    `shut_up_timestamp` is go-cqhttp's addition to get_group_member_info; NapCat, LLOneBot and
    Lagrange have it too. `group_all_shut` (-1 when it is) is NapCat's to get_group_info.
    """
    bot = get_bots().get(place.bot_id)
    if bot is None or place.group_id is None:
        return 0.0
    myself = await _myself(bot, place.group_id)
    left = as_number(myself.get("shut_up_timestamp")) - time.time()
    if left > 0 or myself.get("role") in ("owner", "admin"):
        return max(0.0, left)
    about = {"group_id": int(place.group_id), "no_cache": True}
    group = await look_up(bot, "get_group_info", **about)
    return math.inf if group.get("group_all_shut") not in (None, False, 0, "0", "") else 0.0


async def _myself(bot: BaseBot, group: str) -> dict[str, Any]:
    about = {"group_id": int(group), "user_id": int(bot.self_id), "no_cache": True}
    return await look_up(bot, "get_group_member_info", **about)


def _id(value: Any) -> str:
    """An id as text; empty when there is none."""
    if isinstance(value, bool) or not isinstance(value, int | str):
        return ""
    return str(value).strip()
