"""Calls of OneBot v11's API that may fail, and what such a failure looks like."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from nonebot.adapters import Bot as BaseBot
from nonebot.adapters.onebot.v11 import ActionFailed, ApiNotAvailable, NetworkError
from nonebot.exception import WebSocketClosed
from nonebot.log import logger
from starlette.websockets import WebSocketDisconnect

from plugins.group_chat.onebot_v11_events import as_object

LOOKUP_SECONDS = 1.0
"""For asking about a message, a member, a group or the other side. What needs it goes on without:
with QUOTE_SECONDS before it a mention waits 3 s at most."""

BROKEN = (WebSocketClosed, WebSocketDisconnect, OSError, RuntimeError)
"""What a socket that is already closed raises when a frame is handed to it: nothing has left."""
NO_ANSWER = (NetworkError, ApiNotAvailable, *BROKEN)
"""The other side has not said anything."""
FAILURES = (ActionFailed, *NO_ANSWER)
"""Everything a call raises: the other side said no, or nothing."""

Ask = Callable[..., Awaitable[dict[str, Any]]]
"""`await ask(api, **data)` is the answer; an empty object when there is none."""


async def look_up(
    bot: BaseBot, api: str, seconds: float = LOOKUP_SECONDS, /, **data: Any
) -> dict[str, Any]:
    """What the other side answers within `seconds`; an empty object when it does not, which is
    logged. Never raises."""
    try:
        answer = await bot.call_api(api, **data, _timeout=seconds)
    except FAILURES as error:
        logger.info(f"{api} failed, going on without: {error!r}")
        return {}
    return as_object(answer)


def asking(bot: BaseBot, seconds: float) -> Ask:
    """`look_up` of this bot."""

    async def ask(api: str, **data: Any) -> dict[str, Any]:
        return await look_up(bot, api, seconds, **data)

    return ask
