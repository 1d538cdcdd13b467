"""Which command a whole message is, in the spellings people use. A question that merely begins with
such a word is none."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Literal

Name = Literal[
    "help",
    "tools",
    "status",
    "forget",
    "stop",
    "usage",
    "on",
    "off",
    "tool_on",
    "tool_off",
    "tool_rule",
    "tool_who",
    "quota",
    "admins",
    "reload",
    "records",
    "log",
]

ADMINS_ONLY: frozenset[Name] = frozenset(
    ("on", "off", "tool_on", "tool_off", "tool_who", "admins", "reload", "records", "log")
)


@dataclass(frozen=True, slots=True)
class Command:
    """What was meant. `argument` is a tool's name, a user id, or empty; `number` as written; `who`
    whom a tool is to be left to, as written."""

    name: Name
    argument: str = ""
    number: int | None = None
    change: Literal["", "add", "remove", "unlimited", "default", "unclear"] = ""
    who: str = ""


_SPELLINGS: Mapping[Name, str] = {
    "help": "帮助 幫助 help h 菜单 菜單 menu 命令 指令 功能 怎么用 怎麼用 使用说明 使用帮助"
    " 帮助菜单 有什么功能 你会什么 你能做什么",
    "tools": "工具 工具列表 工具清单 查看工具 有什么工具 有哪些工具 tools tool",
    "status": "状态 狀態 状況 状况 运行状态 查看状态 status ping",
    # Not 忘了 and not 重新开始: both are answers people give, and this cannot be undone.
    "forget": "忘记 忘記 忘掉 忘掉吧 忘记我 忘记吧 忘记对话 忘记一切 全部忘记 清空记忆 清除记忆"
    " 清空对话 清除对话 清空上下文 清除上下文 新对话 forget reset clear",
    "stop": "停 停止 停下 停一下 别说了 stop",
    "usage": "用量 我的用量 今日用量 今天用量 查看用量 用了多少 usage",
    "on": "开 開 开启 開啟 启用 上线 on",
    "off": "关 關 关闭 關閉 停用 下线 off",
    "reload": "重载 重載 重新加载 重载工具 重新加载工具 刷新工具 reload",
    "admins": "管理员 管理員 管理员列表 管理员名单 admins admin",
    "quota": "额度 額度 配额 查看额度 quota",
    "records": "记录 記錄 紀錄 最近记录 运行记录 查看记录 records",
    "log": "日志 日誌 查看日志 最近日志 log logs",
}
_BY_SPELLING: Mapping[str, Name] = {
    spelling: name for name, spellings in _SPELLINGS.items() for spelling in spellings.split()
}
_TYPED: tuple[Name, ...] = ("help", "tools", "status", "usage")
"""Commands that change nothing: only for them is a mistyped Latin word taken as meant."""
_LATIN = [s for s, name in _BY_SPELLING.items() if name in _TYPED and s.isascii() and len(s) >= 4]
_LIKE = 0.75
"""hepl and help are as much alike."""

_ON, _OFF = "开|開|开启|開啟|启用|打开|on", "关|關|关闭|關閉|停用|禁用|off"
_TOOL = r"[a-z][\w.-]{0,63}|[\u4e00-\u9fff]{1,4}"
"""A tool's name, or the short word somebody takes for it; what is longer is a question."""
_SWITCH = re.compile(
    rf"(?:工具|tools?)\s*(?:(?P<on>{_ON})|(?P<off>{_OFF}))[\s:]\s*(?P<tool>{_TOOL})"
    rf"|(?:(?P<on2>{_ON})|(?P<off2>{_OFF}))\s*(?:工具|tools?)[\s:]\s*(?P<tool2>{_TOOL})"
)
_WHO = re.compile(
    rf"(?:工具|tools?)\s*(?:谁|誰|给谁|who)[\s:]\s*(?P<tool>{_TOOL})(?:[\s:]\s*(?P<who>.{{1,100}}))?"
)
_ONE_TOOL = re.compile(
    r"工具(?:\s+|\s*:\s*)(?P<tool>[a-z][\w.-]{0,63})|tools?\s+(?P<tool2>[a-z]+_\w+)"
)
"""After the English word only a name with an underscore: what follows it may be a sentence."""
_SWITCH_NOTHING = re.compile(rf"(?:工具|tools?)\s+(?:{_ON}|{_OFF})")
_COUNTED = re.compile(
    r"(?P<word>[^\W\d_]{1,8})\s*(?:最近)?\s*(?P<number>\d{1,4})\s*(?:条|行|次|個|个)?"
)
_QUOTA = re.compile(
    r"(?:额度|額度|配额|quota)(?:\s+(?P<user>\d{5,20})(?=\s))?\s*"
    r"(?:(?P<number>\d{1,6})\s*次?|(?P<unlimited>不限|无限|無限|不限制)|(?P<default>默认|預設|恢复))"
)
_ADMINS = re.compile(
    r"(?:管理员|管理員|管理|admins?)\s*"
    r"(?:(?P<add>加|添加|增加|任命|add|\+)|(?P<remove>减|減|删|刪|删除|移除|去掉|撤销|del|remove|-))"
    r"\s*(?P<user>\d{5,20}|@.{1,60})"
)
_MARKS = " \t\r\n。.!！?？~～,，;；"
_BLANK = re.compile("[\u200b\u200c\u200d\u2060\ufeff\u00ad]")


def command_in(text: str) -> Command | None:
    """The command that the whole message is; None when it is a question."""
    said = _plain(text)
    if not said or len(said) > 120:
        return None
    compact = "".join(said.split())
    if (name := _BY_SPELLING.get(compact)) is not None:
        return Command(name)
    if (found := _SWITCH.fullmatch(said)) is not None:
        on = found["on"] or found["on2"]
        return Command("tool_on" if on else "tool_off", found["tool"] or found["tool2"])
    if _SWITCH_NOTHING.fullmatch(said):
        return Command("tool_on", change="unclear")
    if (found := _WHO.fullmatch(said)) is not None:
        who = found["who"]
        return Command("tool_who" if who else "tool_rule", found["tool"], who=who or "")
    if (found := _ONE_TOOL.fullmatch(said)) is not None:
        return Command("tool_rule", found["tool"] or found["tool2"])
    if (found := _QUOTA.fullmatch(said)) is not None:
        number = int(found["number"]) if found["number"] else None
        change = "unlimited" if found["unlimited"] else "default" if found["default"] else "add"
        return Command("quota", found["user"] or "", number, change)
    if (found := _ADMINS.fullmatch(said)) is not None:
        change = "add" if found["add"] else "remove"
        return Command("admins", found["user"], change=change)
    if (found := _COUNTED.fullmatch(said)) is not None:
        name = _BY_SPELLING.get(found["word"])
        if name in ("records", "log"):
            return Command(name, number=int(found["number"]))
    if compact.isascii() and (like := get_close_matches(compact, _LATIN, n=1, cutoff=_LIKE)):
        return Command(_BY_SPELLING[like[0]])
    return None


def _plain(text: str) -> str:
    """Full-width letters, marks around the word, a slash before it: nobody means anything by
    them."""
    text = unicodedata.normalize("NFKC", _BLANK.sub("", text)).casefold()
    return text.strip(_MARKS).removeprefix("/").removeprefix("#").strip(_MARKS)
