"""The platforms, and what a push through one of their robots does: its queue, and one by one."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from chathands.errors import ToolError, ToolFailed, ToolOutcomeUnknown

from . import dingtalk, feishu, wecom
from .answers import AnswerBook, Refused
from .draft import Call, Composed, Draft, Message
from .pace import Pace, Windows
from .post import HEADERS, post

if TYPE_CHECKING:
    import httpx

    from chathands import ToolContext
    from chathands.settings_push import PushRobot, Robot

MARGIN_SECONDS = 0.5
"""Kept of the call's time: a late answer is then noticed here, where the parts are counted."""


@dataclass(frozen=True, slots=True)
class Platform:
    whom: str
    compose: Callable[[Draft], Composed]
    request: Callable[[str, str, Mapping[str, Any], float], tuple[httpx.URL, bytes]]
    windows: Windows
    book: AnswerBook
    by_mobile: bool
    """Whether people are called by their mobile number."""


PLATFORMS: Mapping[str, Platform] = {
    "dingtalk": Platform(
        dingtalk.WHOM, dingtalk.compose, dingtalk.request, dingtalk.WINDOWS, dingtalk.BOOK, True
    ),
    "wecom": Platform(wecom.WHOM, wecom.compose, wecom.request, wecom.WINDOWS, wecom.BOOK, True),
    "feishu": Platform(
        feishu.WHOM, feishu.compose, feishu.request, feishu.WINDOWS, feishu.BOOK, False
    ),
}

_pace = Pace()


async def send_one(
    http: httpx.AsyncClient,
    platform: Platform,
    robot: Robot,
    message: Message,
    *,
    seconds: float,
    now: Callable[[], float] = time.time,
) -> None:
    """Returns when the platform said it took the message.

    Raises Refused or ToolFailed when it certainly did not, ToolOutcomeUnknown when the request may
    have arrived. Nothing is ever sent twice here. `now` is the wall clock in seconds.
    """
    import httpx

    secret = robot.secret.get_secret_value().strip() if robot.secret else ""
    try:
        address, body = platform.request(
            robot.webhook.get_secret_value(), secret, message.body, now()
        )
    except httpx.InvalidURL:
        raise Refused("webhook 不是合法的地址。请管理员重新复制。", setting="webhook") from None
    answer = await post(http, address, body, whom=platform.whom, seconds=seconds)
    platform.book.check(answer.value, answer.status)


async def send_all(
    ctx: ToolContext,
    platform: Platform,
    robot: Robot,
    messages: Sequence[Message],
    *,
    each: float,
) -> None:
    """Push every message in order, each when it is its turn. Raises at the first that is not
    certainly taken, and says what went out before it. `each`: seconds for one of them."""
    key = robot.webhook.get_secret_value()
    left = ctx.remaining()
    places = _pace.reserve(
        key, len(messages), platform.windows, max(0.0, left - min(each, left / 2))
    )
    if places.wait > 0:
        most = platform.windows[0][0]
        raise ToolFailed(
            f"这个{platform.whom}机器人一分钟最多收 {most} 条，现在发不下，没有发出。"
            f"请过 {math.ceil(places.wait)} 秒再发。"
        )
    clock = asyncio.get_running_loop().time
    start = clock()
    for sent, (message, delay) in enumerate(zip(messages, places.delays, strict=True)):
        try:
            await asyncio.sleep(max(0.0, start + delay - clock()))
            seconds = _seconds(ctx, each)
            await send_one(ctx.http(), platform, robot, message, seconds=seconds)
        except ToolError as error:
            if isinstance(error, Refused) and error.limited:
                _pace.close(key)
            if not sent:
                raise
            # Failed as a whole would invite sending all of it again.
            raise ToolOutcomeUnknown(
                f"分成 {len(messages)} 条的消息只确定发出了前 {sent} 条，第 {sent + 1} 条没有成功："
                f"{error.sentence}其余没有发。不要整条重发，请先到群里核对。",
                detail=str(error),
            ) from None


def _seconds(ctx: ToolContext, timeout: float) -> float:
    left = min(timeout, ctx.remaining() - MARGIN_SECONDS)
    if left <= 0:
        raise ToolFailed("剩下的时间不够再发一条，没有发出。请重新说一次。")
    return left


def calls_of(mention: Sequence[str], robot: PushRobot, platform: Platform) -> tuple[Call, ...]:
    """Who is to be called. Raises ToolFailed for somebody nobody has configured."""
    calls: dict[str, Call] = {}
    for name in dict.fromkeys(each.strip().lstrip("@＠") for each in mention):
        if name in robot.members:
            calls[name] = Call(name, robot.members[name])
        elif platform.by_mobile and name.isascii() and name.isdecimal() and len(name) == 11:
            calls[name] = Call(name, name)
        elif name:
            known = "、".join(robot.members) or "还没有配置"
            number = "；也可以写 11 位手机号" if platform.by_mobile else ""
            raise ToolFailed(
                f"不知道怎么 @“{name[:20]}”，没有发出。能 @ 的人：{known}{number}。"
                "管理员可以在这个机器人的 members 里加上。"
            )
    return tuple(calls.values())


async def with_file(
    ctx: ToolContext, robot: PushRobot, messages: Sequence[Message], name: str, data: bytes
) -> tuple[Message, ...]:
    """The messages with the file behind them. WeCom only: the others' robots take none. The upload
    shows nobody anything, so that its failure is a failure and nothing else."""
    if robot.platform != "wecom":
        whom = PLATFORMS[robot.platform or "dingtalk"].whom
        raise ToolFailed(
            f"{whom}的群机器人不能发文件和图片，没有发出。可以推到企业微信或 QQ，或者只发文字。"
        )
    if wecom.is_picture(data):
        return (*messages, wecom.image(name, data))
    if not wecom.FILE_SMALLEST <= len(data) <= wecom.FILE_LIMIT:
        raise ToolFailed("企业微信只收 5 字节以上、20 MB 以下的文件，没有发出。")
    if robot.dry_run:
        return (*messages, wecom.file(name, "dry-run"))
    body, kind = wecom.upload_body(name, data)
    try:
        answer = await post(
            ctx.http(),
            wecom.upload_address(robot.webhook.get_secret_value()),
            body,
            whom=wecom.WHOM,
            seconds=_seconds(ctx, ctx.remaining() / 2),
            headers={**HEADERS, "Content-Type": kind},
        )
    except ToolOutcomeUnknown as error:
        raise ToolFailed(
            "文件没有传到企业微信，什么也没有发出。请稍后再试。", detail=str(error)
        ) from None
    wecom.BOOK.check(answer.value, answer.status)
    media = answer.value.get("media_id")
    if not isinstance(media, str) or not media:
        raise ToolFailed("企业微信没有收下这个文件（没有给 media_id），什么也没有发出。")
    return (*messages, wecom.file(name, media))
