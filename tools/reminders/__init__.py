"""Reminders: set, list, cancel. Times are read by `chathands.times`; the bot says what is due."""

from __future__ import annotations

import time
from typing import Annotated

from pydantic import Field

from chathands import ToolContext, tool
from chathands.errors import ToolFailed
from chathands.reminders import BookFull, Reminder, ReminderBook

from .wording import cleaned, line_of, reckoned, said_back

MAX_TEXT = 300
"""Characters: a reminder is a line; notes belong into a file."""
ALL = ("全部", "所有", "都", "all")

NOWHERE = "提醒要由 QQ 机器人到时间发出来，这里（终端或接口）没有人收，请在群里或私聊里对机器人说。"


@tool(
    side_effect="local",
    timeout=5,
    faces=["bot"],
    examples=[
        ("下午三点提醒我开会", {"when": "下午三点", "text": "开会"}),
        ("每个工作日五点半喊我写日报", {"when": "每个工作日下午五点半", "text": "写日报"}),
    ],
)
async def set_reminder(
    ctx: ToolContext,
    when: Annotated[
        str,
        Field(
            min_length=1,
            max_length=100,
            description="什么时候，照抄用户的话，不要换算：明天下午三点、半小时后、每周一 9:00",
        ),
    ],
    text: Annotated[
        str, Field(min_length=1, max_length=MAX_TEXT, description="到时间要说的话，只写要做的事")
    ],
) -> str:
    """到时间在这个聊天里提醒提问的人，一次或者重复。

    何时用：用户要人提醒、叫他、定闹钟，说了时间和要做的事。
    何时不用：没说时间就先问，不要替他定。只能提醒他自己，不能定时推送。
    """
    book = _book(ctx)
    text = cleaned(text)
    if not text:
        raise ToolFailed("没有写要提醒什么，请问用户。")
    caller, now = ctx.caller, time.time()
    plan = reckoned(when, now, ctx.settings)
    wanted = Reminder(
        text=text,
        due=plan.due,
        platform=caller.platform,
        bot_id=caller.bot_id,
        group_id=caller.group_id,
        user_id=caller.user_id,
        tool="set_reminder",
        name=caller.name,
        role=caller.role,
        repeat=plan.repeat,
        created=now,
    )
    limits = ctx.settings.reminders
    try:
        made = await book.add(wanted, per_person=limits.per_person, per_group=limits.per_group)
    except BookFull as full:
        whose = "你" if full.whose == "person" else "这个群"
        raise ToolFailed(
            f"{whose}已经有 {full.limit} 条提醒了，先取消几条（cancel_reminder）再设。"
        ) from None
    sentence = said_back(made, plan, ctx.settings)
    ctx.tell(sentence)  # the person must see the date and time that was understood
    return sentence


@tool(side_effect="none", timeout=5, faces=["bot"], examples=[("我有哪些提醒", {})])
async def list_reminders(ctx: ToolContext) -> str:
    """列出提问的人还没到时间的提醒，带编号。

    何时用：用户问有哪些提醒、闹钟，或者要取消但没说是哪一条。
    """
    found = await _mine(ctx)
    if not found:
        return "现在没有等着的提醒。"
    lines = [line_of(reminder, ctx.settings, here=ctx.caller.group_id) for reminder in found]
    return "\n".join([f"共 {len(found)} 条：", *lines])


@tool(
    side_effect="local",
    timeout=5,
    faces=["bot"],
    examples=[
        ("取消 3 号提醒", {"which": "3"}),
        ("开会的提醒不要了", {"which": "开会"}),
    ],
)
async def cancel_reminder(
    ctx: ToolContext,
    which: Annotated[
        str,
        Field(min_length=1, max_length=100, description="编号，或者内容里的词；全部取消写 全部"),
    ],
) -> str:
    """取消提问的人自己的提醒。

    何时用：用户不要某条提醒了；改时间就先取消再重设。
    """
    book = _book(ctx)
    mine = await _mine(ctx)
    if not mine:
        raise ToolFailed("现在没有等着的提醒，没有可以取消的。")
    found = _matching(mine, which)
    if not found:
        listed = "\n".join(line_of(r, ctx.settings, here=ctx.caller.group_id) for r in mine[:10])
        raise ToolFailed(f"没有找到「{which}」这条提醒，现在有：\n{listed}")
    if len(found) > 1 and which.strip() not in ALL:
        listed = "\n".join(line_of(r, ctx.settings, here=ctx.caller.group_id) for r in found[:10])
        raise ToolFailed(f"有 {len(found)} 条都符合「{which}」，请问用户要取消几号：\n{listed}")
    caller = ctx.caller
    gone = await book.cancel([r.id for r in found], caller.platform, caller.user_id)
    if not gone:
        raise ToolFailed("这条提醒刚刚已经发出或者取消了。")
    lines = [line_of(r, ctx.settings, here=caller.group_id) for r in found if r.id in gone]
    return "\n".join([f"已取消 {len(gone)} 条：", *lines])


def _book(ctx: ToolContext) -> ReminderBook:
    if ctx.reminders is None or not ctx.caller.bot_id:
        raise ToolFailed(NOWHERE)
    return ctx.reminders


async def _mine(ctx: ToolContext) -> list[Reminder]:
    """The asker's own: those of this group, or in private all of them (what somebody has set in
    private is not read out in a group)."""
    caller = ctx.caller
    found = await _book(ctx).of(caller.platform, caller.user_id)
    found = [reminder for reminder in found if reminder.bot_id == caller.bot_id]
    if caller.group_id is None:
        return found
    return [reminder for reminder in found if reminder.group_id == caller.group_id]


def _matching(mine: list[Reminder], which: str) -> list[Reminder]:
    word = which.strip()
    if word in ALL:
        return mine
    number = word.removeprefix("#").removesuffix("号").strip()
    if number.isascii() and number.isdecimal():
        numbered = [reminder for reminder in mine if str(reminder.id) == number.lstrip("0")]
        if numbered:
            return numbered
    return [r for r in mine if word.casefold() in r.text.casefold()]
