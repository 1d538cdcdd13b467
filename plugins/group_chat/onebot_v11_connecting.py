"""What an admin needs to know to connect an OneBot v11 implementation."""

from __future__ import annotations

import nonebot
from nonebot import get_bots, get_driver
from nonebot.adapters.onebot.v11 import Adapter, Bot

from plugins.group_chat.messages import Place
from plugins.group_chat.onebot_v11_notices import PLATFORM


def connected_accounts() -> list[tuple[str, str]]:
    """(platform, account) of each connection there is."""
    return [(PLATFORM, bot_id) for bot_id, bot in get_bots().items() if isinstance(bot, Bot)]


def superuser_chats() -> list[list[Place]]:
    """For each SUPERUSER the private chats with them, one through each account that is connected;
    which of the accounts is their friend is not known."""
    accounts = [bot_id for _, bot_id in connected_accounts()]
    listed = {person.removeprefix("onebot:") for person in get_driver().config.superusers}
    return [
        [Place(PLATFORM, bot_id, None, person) for bot_id in accounts]
        for person in sorted(listed)
        if person.isdecimal()
    ]


SHORT_TOKEN = 12
"""Below it a number or a word that people write may contain it, and is hidden as a secret is."""


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
    if token and len(token) < SHORT_TOKEN:
        lines.append(
            (
                "WARNING",
                "ONEBOT_ACCESS_TOKEN 太短：容易猜到，而且回答和日志里出现同样的字会被换成 ***。"
                f"请换成 {SHORT_TOKEN} 个字以上的，两边一起改。",
            )
        )
    if not config.superusers:
        lines.append(
            (
                "INFO",
                "没有设置 SUPERUSERS：群里对外的操作只能由群主和群管理员确认，"
                "程序发起的只能用 chathands approvals 批准",
            )
        )
    return lines
