"""`chathands doctor push`: which setting of a robot is wrong. Sends nothing unless told to."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Literal
from urllib.parse import SplitResult, parse_qs, urlsplit

from chathands.errors import ToolError, ToolOutcomeUnknown
from chathands.settings_push import HOSTS

from .answers import Refused
from .draft import Draft
from .robots import PLATFORMS, Platform, send_one

if TYPE_CHECKING:
    import httpx

    from chathands.settings import Settings
    from chathands.settings_push import Robot

SECONDS = 8.0
CLOCK_FAULT, CLOCK_REMARK = 3500.0, 60.0
"""Seconds; all of them refuse a sign that is an hour old."""

_UUID = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_TOKEN = re.compile(r"[0-9a-f]{64}")
_PATHS = {
    "dingtalk": "/robot/send",
    "wecom": "/cgi-bin/webhook/send",
    "feishu": "/open-apis/bot/v2/hook/",
}

Mark = Literal["ok", "note", "fault"]


@dataclass(frozen=True, slots=True)
class Found:
    mark: Mark
    setting: str
    sentence: str


def names(settings: Settings) -> list[str]:
    return list(dict.fromkeys([*settings.push.robots, *settings.dingtalk.robots]))


async def look(
    settings: Settings,
    name: str,
    http: Callable[[], httpx.AsyncClient],
    *,
    send: bool,
    now: Callable[[], float] = time.time,
) -> list[Found]:
    """What is found about the robot of that name, in the order it was looked at."""
    robot: Robot
    if name in settings.push.robots:
        robot, kind = settings.push.robots[name], settings.push.robots[name].platform or ""
    elif name in settings.dingtalk.robots:
        robot, kind = settings.dingtalk.robots[name], "dingtalk"
    elif name in settings.push.chats:
        return [Found("note", "", "这是 QQ 聊天，不是机器人：在 QQ 里让机器人推一条试试。")]
    else:
        known = "、".join(names(settings)) or "一个也没有"
        return [Found("fault", "名字", f"没有叫“{name}”的机器人；配置了的有：{known}。")]
    platform = PLATFORMS[kind]
    if robot.dry_run:
        return [Found("note", "webhook", "webhook 是 dry-run：只演练，从不真的发送。")]
    found = [*_address(robot, kind, platform), *_rest(robot, kind, platform)]
    if any(each.mark == "fault" and each.setting == "webhook" for each in found):
        return found
    found.append(await _reached(robot, platform, http, now))
    if send and found[-1].mark != "fault":
        found.append(await _sent(robot, platform, http))
    return found


def _address(robot: Robot, kind: str, platform: Platform) -> Iterator[Found]:
    address = robot.webhook.get_secret_value()
    where = _split(address)
    if where is None or not where.hostname:
        yield Found("fault", "webhook", "webhook 不是合法的地址，请重新复制。")
        return
    if re.search(r"\s|[\"'<>…]|\.\.\.", address):
        yield Found("fault", "webhook", "webhook 里有空格、引号或省略号，没有复制完整。")
        return
    owner = HOSTS.get(where.hostname.lower())
    if owner is not None and owner != kind:
        yield Found(
            "fault",
            "platform",
            f"webhook 是{PLATFORMS[owner].whom}的，platform 写的却是 {kind}。",
        )
        return
    if owner is not None and where.scheme != "https":
        yield Found("fault", "webhook", "webhook 要以 https:// 开头。")
    if kind == "feishu" and where.path.startswith("/open-apis/bot/hook/"):
        yield Found("fault", "webhook", "这是旧版机器人的地址，请换成 /open-apis/bot/v2/hook/ 的。")
        return
    if not where.path.startswith(_PATHS[kind]):
        yield Found("fault", "webhook", f"webhook 的路径不对，{platform.whom}的是 {_PATHS[kind]}。")
        return
    yield from _token(where, kind)
    if owner is None:
        yield Found("note", "webhook", f"webhook 不是{platform.whom}的域名，是自己的代理吗？")


def _token(where: SplitResult, kind: str) -> Iterator[Found]:
    parameter = {"dingtalk": "access_token", "wecom": "key", "feishu": ""}[kind]
    if parameter:
        token = parse_qs(where.query).get(parameter, [""])[0]
    else:
        token = where.path.removeprefix(_PATHS[kind])
    what = parameter or "末尾那一段"
    if not token:
        yield Found("fault", "webhook", f"webhook 里没有 {what}，没有复制完整。")
    elif not (_TOKEN if kind == "dingtalk" else _UUID).fullmatch(token):
        usual = "64 位的十六进制" if kind == "dingtalk" else "36 位、带四个短横的"
        yield Found("note", "webhook", f"webhook 的 {what} 一般是{usual}，这个不是，请核对。")
    else:
        yield Found("ok", "webhook", "webhook 的写法对。")


def _rest(robot: Robot, kind: str, platform: Platform) -> Iterator[Found]:
    secret = robot.secret.get_secret_value() if robot.secret else ""
    if kind != "wecom":
        if not secret.strip():
            yield Found("note", "secret", "没有写 secret：机器人开了加签（签名校验）就会被拒。")
        elif secret.strip() in robot.webhook.get_secret_value():
            yield Found("fault", "secret", "secret 写成了 webhook 里的那一串。")
        elif kind == "dingtalk" and not secret.strip().startswith("SEC"):
            yield Found("note", "secret", "钉钉的 secret 一般以 SEC 开头，这个不是，请核对。")
        else:
            yield Found("ok", "secret", "写了 secret，会加签。")
    if any(not word.strip() for word in robot.keywords):
        yield Found("fault", "keywords", "keywords 里有空的。")
    elif robot.keywords:
        said = "、".join(robot.keywords)
        yield Found("ok", "keywords", f"消息里没有关键词时会补上“{robot.keywords[0]}”（{said}）。")
    elif kind != "wecom":
        yield Found("note", "keywords", "没有写 keywords：机器人设了关键词就会被拒。")
    for person, identity in getattr(robot, "members", {}).items():
        number = identity.isascii() and identity.isdecimal()
        if platform.by_mobile and number and len(identity) != 11:
            yield Found("fault", "members", f"members 里“{person}”的手机号不是 11 位。")
        elif not platform.by_mobile and not identity.startswith(("ou_", "on_", "all")):
            yield Found("fault", "members", f"members 里“{person}”要写 open_id（ou_ 开头）或 all。")


async def _reached(
    robot: Robot,
    platform: Platform,
    http: Callable[[], httpx.AsyncClient],
    now: Callable[[], float],
) -> Found:
    """Whether the host answers at all, and whether its clock is ours. The robot is not touched."""
    import aiohttp
    import httpx

    where = _split(robot.webhook.get_secret_value())
    assert where is not None
    try:
        async with http().stream(
            "GET", f"{where.scheme}://{where.netloc}/", timeout=SECONDS, follow_redirects=False
        ) as response:
            date = response.headers.get("date", "")
    except (httpx.HTTPError, httpx.InvalidURL, aiohttp.ClientError) as error:
        return Found(
            "fault",
            "网络",
            f"连不上{platform.whom}（{type(error).__name__}）：检查网络、代理和防火墙。",
        )
    try:
        skew = now() - parsedate_to_datetime(date).timestamp()
    except (ValueError, TypeError):
        return Found("ok", "网络", f"连得上{platform.whom}。")
    if abs(skew) > CLOCK_REMARK:
        way = "快" if skew > 0 else "慢"
        text = f"本机的时钟比{platform.whom}{way} {abs(skew):.0f} 秒"
        if abs(skew) > CLOCK_FAULT:
            return Found("fault", "时钟", f"{text}，加签会被拒，请校准。")
        return Found("note", "时钟", f"{text}，差一小时加签就会被拒，请校准。")
    return Found("ok", "网络", f"连得上{platform.whom}，时钟也对。")


async def _sent(robot: Robot, platform: Platform, http: Callable[[], httpx.AsyncClient]) -> Found:
    draft = Draft("", "连通测试：看到这条，说明机器人配置好了。", robot.keywords)
    (message,) = platform.compose(draft).messages
    try:
        await send_one(http(), platform, robot, message, seconds=SECONDS)
    except Refused as refused:
        return Found("fault", refused.setting or "机器人", refused.why)
    except ToolOutcomeUnknown as doubt:
        return Found("note", "", doubt.sentence)
    except ToolError as error:
        return Found("fault", "网络", error.sentence)
    return Found("ok", "", f"测试消息发出去了，请到{platform.whom}群里看。")


def _split(address: str) -> SplitResult | None:
    try:
        return urlsplit(address)
    except ValueError:
        return None
