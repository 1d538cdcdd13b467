"""The commands about one tool: what holds for it here, and whom an admin leaves it to."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING

from plugins.group_chat.hearing_text import one_line

if TYPE_CHECKING:
    from chathands.agent.tool_facts import ToolFacts

MAX_PEOPLE = 50
"""Of one list given by command; more belongs into tools.toml."""

EVERYONE = ""
"""No narrowing at all."""

_SPELLINGS: Mapping[str, str] = {
    EVERYONE: "everyone all 所有人 大家 人人 每个人 默认 不限",
    "admin": "admin admins 管理员 管理員 群管理员 群主",
    "superuser": "superuser superusers 超级用户 超級用戶 超级管理员",
}
_WORDS = {word: kept for kept, words in _SPELLINGS.items() for word in words.split()}
_CALLED = MappingProxyType(
    {"everyone": "所有人", "admin": "群管理员、群主和超级用户", "superuser": "超级用户"}
)
_APPROVERS = MappingProxyType(
    {"admin": "群管理员、群主或超级用户", "asker": "提问的人自己或管理员", "superuser": "超级用户"}
)
_UNITS = MappingProxyType({"second": "秒", "minute": "分钟", "hour": "小时", "day": "天"})

NAME_SOMEBODY = (
    "没看懂让谁用。请写 管理员、超级用户、所有人，或者 QQ 号（几个用空格分开），"
    "例如：工具 谁 get_weather 管理员"
)


def left_to(said: str) -> str | None:
    """What is kept of whom somebody names: `admin`, `superuser`, user ids with commas, or EVERYONE.
    None when it is none of these."""
    said = said.strip()
    if said in _WORDS:
        return _WORDS[said]
    people = [each for each in re.split(r"[\s,、;]+", said) if each]
    if not 0 < len(people) <= MAX_PEOPLE:
        return None
    if not all(re.fullmatch(r"[0-9]{5,20}", each) for each in people):
        return None
    return ",".join(dict.fromkeys(people))


def changed_text(name: str, who: str, *, private: bool, refusal: str | None) -> str:
    """`refusal`: why the admin who said it may not use the tool now."""
    where = "所有群和私聊里" if private else "这个群里"
    if who == EVERYONE:
        said = f"好，{where}不再另外限制谁用 {name}；tools.toml 里的规定仍然有效。"
    else:
        said = f"好，{where}只有{_named(who)}能用 {name}。这只会收紧，tools.toml 里的规定仍然有效。"
    return f"{said}\n{refusal}" if refusal and who == EVERYONE else said


def rule_text(facts: ToolFacts, *, admin: bool) -> str:
    """Lists of people are for admins only."""
    name = facts.spec.name
    about = facts.spec.description.strip().split("\n", 1)[0]
    lines = [f"{name}：{one_line(about, 80)}"]
    if facts.refusal is not None:
        lines.append(f"你在这里不能用：{facts.refusal}")
    elif facts.asks_first:
        lines.append(f"你在这里能用，执行前要{_approvers(facts)}确认。")
    else:
        lines.append("你在这里能用，不用人确认。")
    lines.append(f"谁能用：{_who(facts.who, admin=admin)}。")
    if facts.narrowed and admin:
        lines.append(f"管理员用命令限制为：{'；'.join(_named(who) for who in facts.narrowed)}。")
    if limits := _limits(facts):
        lines.append(f"限制：{'，'.join(limits)}。")
    if admin:
        lines.append(f"工具 关 {name}、工具 谁 {name} 管理员 可以收紧；其余的在 tools.toml 里改。")
    return "\n".join(lines)


def _limits(facts: ToolFacts) -> list[str]:
    rate = facts.rate
    found = [
        f"{whose}{_window(each)}"
        for whose, windows in (("每人", rate.user), ("每个群", rate.group), ("合计", rate.tool))
        for each in (windows or "").split(";")
        if each.strip()
    ]
    if facts.quota is not None:
        found.append(f"每人每天 {facts.quota} 次（你今天用了 {facts.used_today} 次）")
    if facts.timeout is not None:
        found.append(f"一次最多 {facts.timeout:g} 秒")
    if facts.concurrency is not None:
        found.append(f"同时最多 {facts.concurrency} 次")
    return found


def _window(text: str) -> str:
    """`5/minute`, in words where it is as simple as that."""
    plain = re.fullmatch(r"\s*(\d+)\s*(?:/|per)\s*(second|minute|hour|day)s?\s*", text)
    return f"每{_UNITS[plain[2]]} {plain[1]} 次" if plain else f" {text.strip()}"


def _approvers(facts: ToolFacts) -> str:
    approve = facts.approve
    return _APPROVERS[approve] if isinstance(approve, str) else "名单里的人或超级用户"


def _who(who: str | Sequence[str], *, admin: bool) -> str:
    if isinstance(who, str):
        return _CALLED[who]
    return f"{'、'.join(who)} 和超级用户" if admin else "名单里的人和超级用户"


def _named(who: str) -> str:
    if who in _CALLED:
        return _CALLED[who]
    return f" {who.replace(',', '、')} 和超级用户"
