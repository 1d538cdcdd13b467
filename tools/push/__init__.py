"""Pushing: robots and chats named in the settings, few tools, nothing sent twice.

`send_dingtalk_message` serves the robots of CHATHANDS__DINGTALK__ROBOTS and stays as it was;
`push_message` serves everything of CHATHANDS__PUSH__…. Each is offered where its own is set.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

from pydantic import Field

from chathands import Choices, ToolContext, tool
from chathands.errors import ToolFailed
from chathands.toolbox.delivery import Delivery

from . import dingtalk
from .draft import Composed, Draft
from .robots import PLATFORMS, calls_of, send_all, with_file

if TYPE_CHECKING:
    from chathands.settings import Settings
    from chathands.settings_push import PushChat, PushRobot

T = TypeVar("T")

REHEARSED = "【演练】没有真的发送。"

FILE_LIMIT = 20_000_000
"""Bytes, which is what WeCom takes."""


def configured_robots(settings: Settings) -> list[str]:
    return list(settings.dingtalk.robots)


def push_targets(settings: Settings) -> list[str]:
    return [*settings.push.robots, *settings.push.chats]


def _only_one_is_default(schema: dict[str, Any]) -> None:
    """Say the default as the model and the executor should see it: leaving a lone robot out and
    naming it are the same call; among several there is none, and "" is no robot's name."""
    allowed = schema.get("enum", ())
    if len(allowed) == 1:
        schema["default"] = allowed[0]
    else:
        schema.pop("default", None)


@tool(
    side_effect="outward",
    timeout=30,
    target="robot",
    shows=("title", "content"),
    enabled_when=lambda settings: bool(settings.dingtalk.robots),
    examples=[
        (
            "在钉钉上跟销售群说一声，明早八点盘点",
            {
                "robot": "销售群",
                "title": "盘点通知",
                "content": "明早 8:00 开始盘点，请提前把在途单据处理完。",
            },
        )
    ],
)
async def send_dingtalk_message(
    ctx: ToolContext,
    title: Annotated[
        str, Field(min_length=1, max_length=60, description="消息标题，一句话说清是什么事")
    ],
    content: Annotated[
        str,
        Field(
            min_length=1,
            description="完整的消息正文，Markdown。要发数据就把查到的数据写进来，不要写占位符",
        ),
    ],
    robot: Annotated[
        str,
        Choices(configured_robots),
        Field(
            description="发到哪个钉钉群，只能从列出的名字里选；只有一个时可以不写",
            json_schema_extra=_only_one_is_default,
        ),
    ] = "",
) -> str:
    """把一条 Markdown 消息推送到钉钉群。消息会立刻发给群里所有人，发出后不能撤回。

    何时用：用户明确要求把内容发、推送、通知到钉钉（群）。要发的数据还没查到时，先用别的工具查，下一步再发。
    何时不用：用户只是要看结果、要草稿、问怎么发；在当前聊天里回复（直接回答就行）；用户没说发什么内容（先问）。
    同一内容只发一次。结果没有写“已推送”，就不能说已经发了。
    """
    name, chosen = _choose(robot, ctx.settings.dingtalk.robots, "钉钉机器人", "robot")
    composed = dingtalk.markdown(title, content, chosen.keywords)
    if chosen.dry_run:
        ctx.tell(REHEARSED)
        return _rehearsal(name, composed)
    timeout = ctx.settings.dingtalk.timeout
    await send_all(ctx, PLATFORMS["dingtalk"], chosen, composed.messages, each=timeout)
    return _said(f"钉钉“{name}”", composed)


@tool(
    side_effect="outward",
    timeout=30,
    target="target",
    shows=("title", "content"),
    enabled_when=lambda settings: bool(push_targets(settings)),
    examples=[
        (
            "把这条发到运维群，提醒老王看一下",
            {"target": "运维群", "content": "测试环境今晚 22:00 升级。", "mention": ["老王"]},
        )
    ],
)
async def push_message(
    ctx: ToolContext,
    content: Annotated[
        str, Field(description="完整的正文，Markdown。要发数据就把查到的数据写进来，不要写占位符")
    ] = "",
    target: Annotated[
        str,
        Choices(push_targets),
        Field(
            description="发给哪个群或人，只能从列出的名字里选；只有一个时可以不写",
            json_schema_extra=_only_one_is_default,
        ),
    ] = "",
    title: Annotated[str, Field(max_length=60, description="标题，通知和报告才写")] = "",
    mention: Annotated[
        list[str], Field(max_length=20, description="要 @ 的人：名字或手机号。用户说了才写")
    ] = [],  # noqa: B006 (a tool's default is part of its schema)
    file: Annotated[str, Field(description="一起发的文件的路径；只有企业微信和 QQ 能收")] = "",
) -> str:
    """把消息或文件推送到别的群或人（企业微信、飞书、钉钉、QQ）。立刻发出，不能撤回。

    何时用：用户明确要求发、推送、通知到列出的某个群或人。数据还没查到时先查，下一步再发。
    何时不用：在当前聊天里回复；用户只要草稿；没说发什么，或有几个目标而没说发到哪个（先问）。
    同一内容只发一次。结果没有写“已推送”，就不能说已经发了。
    """
    push = ctx.settings.push
    targets: dict[str, PushRobot | PushChat] = {**push.robots, **push.chats}
    name, _ = _choose(target, targets, "推送目标", "target")
    if not (content.strip() or file):
        raise ToolFailed("没有要发的内容，没有发出。请先写好正文，或者写上要发的文件。")
    named = await _opened(ctx, file) if file else None
    if name in push.chats:
        return await _to_chat(ctx, name, push.chats[name], title, content, mention, named)
    robot = push.robots[name]
    platform = PLATFORMS[robot.platform or "dingtalk"]
    calls = calls_of(mention, robot, platform)
    composed = Composed(())
    if content.strip():
        composed = platform.compose(Draft(title, content, robot.keywords, calls))
    if named is not None:
        messages = await with_file(ctx, robot, composed.messages, *named)
        composed = Composed(messages, composed.remarks)
    if robot.dry_run:
        ctx.tell(REHEARSED)
        return _rehearsal(name, composed)
    await send_all(ctx, platform, robot, composed.messages, each=push.timeout)
    return _said(f"{platform.whom}“{name}”", composed)


def _choose(name: str, known: Mapping[str, T], what: str, parameter: str) -> tuple[str, T]:
    if not known:  # only a tool that was offered before the settings changed gets here
        raise ToolFailed(f"还没有配置{what}，没有发出。请管理员照 docs/tools.md 配置。")
    names = "、".join(known)
    if name in known:
        return name, known[name]
    if name:
        raise ToolFailed(f"没有叫“{name}”的{what}，没有发出。可用的有：{names}。")
    if len(known) > 1:
        raise ToolFailed(
            f"有几个{what}：{names}。没有发出；请先问用户发到哪一个，再写上 {parameter}。"
        )
    return next(iter(known.items()))


async def _opened(ctx: ToolContext, path: str) -> tuple[str, bytes]:
    """(name, content). Raises what `FileRoots.open` does."""

    def read() -> tuple[str, bytes]:
        with ctx.files.open(path) as opened:
            if opened.size > FILE_LIMIT:
                raise ToolFailed("文件超过 20 MB，没有发出。")
            return opened.name.rpartition("/")[2], opened.read(FILE_LIMIT + 1)

    name, data = await asyncio.to_thread(read)
    if not data:
        raise ToolFailed("这个文件是空的，没有发出。")
    return name, data


async def _to_chat(
    ctx: ToolContext,
    name: str,
    chat: PushChat,
    title: str,
    content: str,
    mention: Iterable[str],
    file: tuple[str, bytes] | None,
) -> str:
    if ctx.deliver is None:
        raise ToolFailed(
            f"“{name}”是 QQ 聊天，只有 QQ 机器人开着、从它那里说才发得到；现在不是，没有发出。"
        )
    if any(each.strip() for each in mention):
        raise ToolFailed("推到 QQ 聊天时不能 @ 人，没有发出。请去掉 mention 再发。")
    text = f"**{title.strip()}**\n\n{content}" if title.strip() else content
    await ctx.deliver(
        Delivery(
            text if content.strip() else title,
            group_id=chat.group,
            user_id=chat.user,
            files=(file,) if file else (),
            bot_id=ctx.caller.bot_id,
        ),
        seconds=max(0.0, ctx.remaining() - 0.5),
    )
    what = title.strip() or (file[0] if file and not content.strip() else "")
    return f"已推送到 QQ“{name}”" + (f"：{what}。" if what else "。")


def _said(where: str, composed: Composed) -> str:
    count = len(composed.messages)
    title = composed.messages[0].title
    said = f"已推送到{where}" + (f"：{title}" if title else "")
    said += f" 等 {count} 条。" if count > 1 else "。"
    return "\n".join([said, *(f"说明：{remark}。" for remark in composed.remarks)])


def _rehearsal(name: str, composed: Composed) -> str:
    parts = [f"{REHEARSED}机器人“{name}”设为演练，将会推送："]
    for message in composed.messages:
        parts += [f"标题：{message.title}"] if message.title else []
        parts += [message.text]
    parts += [f"说明：{remark}。" for remark in composed.remarks]
    return "\n\n".join(parts)
