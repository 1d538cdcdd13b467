"""The DingTalk push tool: robots named in the settings, one tool, nothing sent twice."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field

from chathands import Choices, ToolContext, tool
from chathands.errors import ToolError, ToolFailed, ToolOutcomeUnknown

from .answers import Refused
from .client import RobotClient
from .limiter import Limiter
from .messages import Composed, Message, compose

if TYPE_CHECKING:
    from chathands.settings import Robot, Settings

REHEARSED = "【演练】没有真的发送。"

MARGIN_SECONDS = 0.5
"""Kept of the call's time: a late answer is then noticed here, where the parts are counted."""

_limiter = Limiter()


def configured_robots(settings: Settings) -> list[str]:
    return list(settings.dingtalk.robots)


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
    name, chosen = _choose(robot, ctx.settings.dingtalk.robots)
    composed = compose(title, content, chosen.keywords)
    if chosen.dry_run:
        ctx.tell(REHEARSED)
        return _rehearsal(name, composed)
    await _deliver(ctx, chosen, composed.messages)
    count = len(composed.messages)
    said = f"已推送到钉钉“{name}”：{composed.messages[0].title}" + (
        f" 等 {count} 条。" if count > 1 else "。"
    )
    return "\n".join([said, *(f"说明：{remark}。" for remark in composed.remarks)])


def _choose(name: str, robots: Mapping[str, Robot]) -> tuple[str, Robot]:
    if not robots:
        raise ToolFailed(
            "还没有配置钉钉机器人，没有发出。请管理员在 .env 里设置 CHATHANDS__DINGTALK__ROBOTS，"
            '例如 {"群名": {"webhook": "https://…", "secret": "SEC…"}}；'
            "webhook 写 dry-run 就只演练不发送。"
        )
    names = "、".join(robots)
    if name in robots:
        return name, robots[name]
    if name:
        raise ToolFailed(f"没有叫“{name}”的钉钉机器人，没有发出。可用的有：{names}。")
    if len(robots) > 1:
        raise ToolFailed(
            f"有几个钉钉机器人：{names}。没有发出；请先问用户发到哪一个，再写上 robot。"
        )
    return next(iter(robots.items()))


async def _deliver(ctx: ToolContext, robot: Robot, messages: Sequence[Message]) -> None:
    """Push every message in order. Raises at the first that is not certainly taken, and says what
    went out before it."""
    key = robot.webhook.get_secret_value()
    wait = _limiter.reserve(key, len(messages))
    if wait > 0:
        raise ToolFailed(
            f"这个钉钉机器人一分钟最多收 20 条，现在发不下，没有发出。请过 {wait:.0f} 秒再发。"
        )
    client = RobotClient(ctx.http(), robot)
    for sent, message in enumerate(messages):
        try:
            await client.push(message.title, message.text, seconds=_seconds(ctx))
        except ToolError as error:
            if isinstance(error, Refused) and error.limited:
                _limiter.close(key)
            if not sent:
                raise
            # Failed as a whole would invite sending all of it again.
            raise ToolOutcomeUnknown(
                f"分成 {len(messages)} 条的消息只确定发出了前 {sent} 条，第 {sent + 1} 条没有成功："
                f"{error.sentence}其余没有发。不要整条重发，请先到群里核对。",
                detail=str(error),
            ) from None


def _seconds(ctx: ToolContext) -> float:
    left = min(ctx.settings.dingtalk.timeout, ctx.remaining() - MARGIN_SECONDS)
    if left <= 0:
        raise ToolFailed("剩下的时间不够再发一条，没有发出。请重新说一次。")
    return left


def _rehearsal(name: str, composed: Composed) -> str:
    parts = [f"{REHEARSED}机器人“{name}”设为演练，将会推送："]
    for message in composed.messages:
        parts += [f"标题：{message.title}", message.text]
    parts += [f"说明：{remark}。" for remark in composed.remarks]
    return "\n\n".join(parts)
