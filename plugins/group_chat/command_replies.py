"""What commands are answered with: sentences from facts, no decisions."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from plugins.group_chat.hearing_text import one_line
from plugins.group_chat.log_tail import Line, for_a_group

if TYPE_CHECKING:
    from chathands.agent import AgentFacts
    from chathands.conversation import ToolSpec
    from chathands.errors import ToolLoadError
    from chathands.store import TraceLine, Used

DESCRIPTION_CHARACTERS = 40
"""Of a tool, in the list of all: two lines on a phone with its name."""
QUESTION_CHARACTERS = 24
"""Of a question in the list of runs; enough to know one's own, and a run stays on two lines."""
TOOL_CHARACTERS = 40
"""Of a name that nobody knows; what people typed is not repeated at any length."""
NAMES_SHOWN = 20
"""Tool files or names in one sentence."""

ONLY_ADMINS = "这个命令只有群主、群管理员、本群的机器人管理员和超级用户能用。"
ONLY_OWNER = "只有群主和超级用户能任免本群的机器人管理员。"
ONLY_SUPERUSER = "私聊里只有超级用户（.env 的 SUPERUSERS）能用这个命令；群管理员请在群里发。"
IN_A_GROUP = "这个命令要在群里发，它只管那一个群。"
SWITCHED_ON = "好，我在这个群里开始应答。@我 并写下要做的事就行。"
ALREADY_ON = "我在这个群里本来就开着。"
SWITCHED_OFF = "好，我在这个群里不再应答；已经在处理的会答完。管理员 @我 发送 开 可以恢复。"
FORGOT = "好，我忘掉了{whose}在这里说过的 {count} 轮对话，找不回来了。"
NOTHING_TO_FORGET = "这里没有记住{whose}的对话。"
FORGET_SHARED = "这个群共用一段对话，只有管理员能让我忘记它。"
QUOTA_USED = "你今天在这里的 {quota} 次提问已经用完，明天再问，或者请管理员用“额度”命令调整。"
QUOTA_ZERO = "额度至少是 1。要停用我，请发 关；要不限次数，请发 额度 不限。"
UNLOADED = "没有加载：{where}（以前加载过的还在用），原因由超级用户在私聊里发 重载 看。"
NAME_A_NUMBER = "请写 QQ 号，例如：管理员 加 12345678"
NAME_A_TOOL = "请写上工具的名字，例如：工具 关 get_weather（发 工具 能看到名字）。"

_HELP = """\
{ask}杭州明天天气怎么样？
下面这些不经过模型，整条消息只写它：
帮助：看这段话
工具：你在这里能用哪些工具；工具 名字：看一个
状态：我现在怎么样
忘记：忘掉{whose}在这里说过的话
停：停下你正在问的问题
用量：你今天用了多少"""
_HELP_ADMIN = """
管理员还可以：
开、关：我在这个群里应答或不应答
工具 开 名字、工具 关 名字：{where}的一个工具
工具 谁 名字 管理员：只让他们用（也可以写 QQ号、超级用户、所有人）
额度 20、额度 不限：每人每天能问几次；额度 QQ号 20 只改一个人
管理员：看本群的机器人管理员；管理员 加 QQ号、管理员 减 QQ号（群主和超级用户）
重载：重新加载 tools 目录
记录 10：最近的提问和编号
日志 20：最近的日志"""

_OUTCOMES = {
    "answered": "已回答",
    "fallback": "没答成，说明了做到哪一步",
    "failed": "没有成功",
    "cancelled": "停下了",
    "suspended": "等人确认",
    "crashed": "程序出错",
    "running": "在处理",
}


def help_text(*, admin: bool, private: bool, shared: bool) -> str:
    whose = "这个群" if shared else "你"
    ask = "直接写下要做的事，例如：" if private else "@我 并写下要做的事，例如：@我 "
    text = _HELP.format(ask=ask, whose=whose)
    where = "所有地方" if private else "本群"
    return text + (_HELP_ADMIN.format(where=where) if admin else "")


def tools_text(
    usable: Sequence[tuple[ToolSpec, bool]], switched_off: Sequence[str], *, admin: bool
) -> str:
    """`usable`: what this person may use here, and whether a person is asked before it runs."""
    if not usable:
        lines = ["这里没有你能用的工具，可以直接聊天。"]
    else:
        lines = [f"你在这里能用 {len(usable)} 个工具，直接说要做的事就行："]
        lines += [f"{spec.name}：{_first_words(spec, asks)}" for spec, asks in usable]
    if admin and switched_off:
        lines.append(f"已经关掉的：{_named(switched_off)}")
    return "\n".join(lines)


def status_text(
    facts: AgentFacts,
    *,
    usable: int,
    group: bool,
    shared: bool,
    rounds: int,
    days: float,
    busy: tuple[int, int],
) -> str:
    where = "，在本机运行" if facts.local else ""
    if facts.no_model is not None:
        lines = [f"模型：没有。{facts.no_model.sentence}"]
    else:
        lines = [f"模型：{facts.model}{where}，一次提问最多 {facts.seconds:g} 秒"]
    failed = f"，{len(facts.load_errors)} 个文件没有加载" if facts.load_errors else ""
    lines.append(f"工具：共 {len(facts.tools)} 个，你在这里能用 {usable} 个{failed}")
    whose = "全群共用" if shared else "每人各记各的"
    kept = f"最近 {rounds} 轮加更早的摘要，{days:g} 天" if rounds else "不记"
    lines.append(f"对话：{whose}，{kept}")
    running, waiting = busy
    lines.append(f"现在：正在处理 {running} 个提问，{waiting} 个在排队")
    if group:
        lines.append("这个群：开着")
    return "\n".join(lines)


def usage_text(
    today: Used, month: Used, quota: int, others: Sequence[tuple[str, Used]], *, private: bool
) -> str:
    """`quota` 0: no limit. `others`: who asked most here today, for admins."""
    where = "私聊里" if private else "这个群里"
    limit = f"，每天最多 {quota} 次" if quota else ""
    lines = [
        f"你今天在{where}问了 {today.questions} 次{limit}，模型处理了 {today.tokens} 个 token；"
        f"近 30 天 {month.questions} 次，{month.tokens} 个 token。",
        "一次是一个开始处理的提问，中途停掉的不算；token 数来自模型服务，它不报告时是 0。",
    ]
    if others:
        each = "、".join(f"{user}（{used.questions} 次）" for user, used in others)
        total = sum(used.questions for _, used in others)
        lines.append(f"今天问得多的（共 {total} 次）：{each}")
    return "\n".join(lines)


def quota_text(quota: int, user: str = "") -> str:
    who = f"{user} 在这个群里" if user else "这个群里每人"
    return f"{who}每天最多问 {quota} 次。" if quota else f"{who}每天的提问次数不限。"


def switched_text(name: str, *, on: bool, private: bool) -> str:
    where = "所有群和私聊里" if private else "这个群里"
    if on:
        return f"好，{where}又可以用 {name} 了。"
    return f"好，{where}不再用 {name}，模型也看不到它。"


def still_off_text(name: str) -> str:
    return f"这个群的开关已经打开，但 {name} 被超级用户在所有地方关掉了，仍然不能用。"


def unknown_tool_text(name: str, near: Iterable[str]) -> str:
    hint = "、".join(near)
    maybe = f"，是不是 {hint}？" if hint else "。"
    return f"没有 {one_line(name, TOOL_CHARACTERS)} 这个工具{maybe}发 工具 能看到名字。"


def reloaded_text(
    before: Iterable[str],
    after: Sequence[str],
    errors: Sequence[ToolLoadError],
    *,
    said: Sequence[str],
) -> str:
    """`said`: for each error the sentence; empty where only file and line may be shown."""
    old, new = set(before), set(after)
    lines = [f"工具已重新加载，现在有 {len(after)} 个。正在进行的提问用的还是原来的。"]
    if new - old:
        lines.append(f"新增：{_named(sorted(new - old))}")
    if old - new:
        lines.append(f"没有了：{_named(sorted(old - new))}")
    for error, sentence in zip(errors[:NAMES_SHOWN], said, strict=False):
        where = f"{error.file} 第 {error.line} 行" if error.line else error.file
        lines.append(sentence or UNLOADED.format(where=where))
    return "\n".join(lines)


def records_text(lines: Sequence[TraceLine], *, everywhere: bool) -> str:
    """`everywhere`: of all places; then without what was asked, which is not theirs to read."""
    if not lines:
        return "还没有记录。"
    shown = [_record(line, everywhere=everywhere) for line in lines]
    shown.append("在机器上用 chathands trace show 编号 看完整的经过。")
    return "\n".join(shown)


def log_text(lines: Sequence[Line], *, group: bool) -> str:
    whose = "这个群的提问的" if group else ""
    if not lines:
        return f"最近没有{whose}日志。" + ("全部日志由超级用户在私聊里看。" if group else "")
    head = f"最近{whose}日志 {len(lines)} 行（密钥和路径已隐去）："
    return "\n".join([head, *(_log_line(line, group=group) for line in lines)])


def admins_text(users: Sequence[str]) -> str:
    named = f"本群的机器人管理员：{'、'.join(users)}。" if users else "本群没有另设机器人管理员。"
    return f"{named}群主、群管理员和超级用户本来就是。"


def admin_changed_text(user: str, *, added: bool) -> str:
    if added:
        return f"好，{user} 在这个群里可以用管理员的命令，也可以确认对外的操作。"
    return f"好，{user} 不再是这个群的机器人管理员。"


def _record(line: TraceLine, *, everywhere: bool) -> str:
    when = time.strftime("%m-%d %H:%M", time.localtime(line.started))
    _, _, group, user, *_ = [*line.place.split(":"), "", "", "", ""]
    outcome = _OUTCOMES.get(line.outcome, line.outcome)
    who = "全群" if user == "*" else user
    if everywhere:
        where = (
            "终端"
            if line.place.startswith("terminal")
            else ("私聊" if group in ("-", "") else f"群 {group}")
        )
        return f"{when} {line.ref} {where} {who} {outcome}"
    return f"{when} {line.ref} {who} {outcome}：{one_line(line.question, QUESTION_CHARACTERS)}"


def _log_line(line: Line, *, group: bool) -> str:
    run = f" [{line.run}]" if line.run and line.run not in line.text else ""
    text = for_a_group(line.text) if group else line.text
    return f"{line.time} {line.level}{run} {text}"


def _first_words(spec: ToolSpec, asks: bool) -> str:
    words = spec.description.strip().split("\n", 1)[0].split("。", 1)[0]
    return one_line(words, DESCRIPTION_CHARACTERS) + ("（要人确认）" if asks else "")


def _named(names: Sequence[str]) -> str:
    more = f" 等 {len(names)} 个" if len(names) > NAMES_SHOWN else ""
    return "、".join(names[:NAMES_SHOWN]) + more
