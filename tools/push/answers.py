"""What a platform's answer to a push means: one sentence that says what to do, and what to do.

HTTP 200 stands over errors as well; only code 0 is a success. Public tables of codes disagree by
one in places, so the words count before the doubtful codes, and what is unknown or has no code at
all (a gateway's own refusals) is a failure. The tables are answers_*.json, first fit first: a rule
with `both` needs one of its codes and one of its words, any other needs one of either.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal

from chathands.errors import ToolFailed

WORDS_SHOWN = 80

Act = Literal["retry", "never"]
"""Whether the same message may get through later without anything being changed. (A third fate,
`unknown`, is no answer at all; see post.py.)"""


class Refused(ToolFailed):
    """The message was certainly not taken. `limited`: because there were too many; `setting`: what
    is to be put right, as `chathands doctor push` names it."""

    def __init__(
        self,
        why: str,
        *,
        limited: bool = False,
        act: Act = "never",
        setting: str = "",
        detail: str = "",
    ) -> None:
        super().__init__(f"消息没有发出。{why}", detail=detail)
        self.why = why
        self.limited = limited
        self.act: Act = "retry" if limited else act
        self.setting = setting


@dataclass(frozen=True, slots=True)
class _Rule:
    codes: frozenset[int]
    words: tuple[str, ...]
    both: bool
    limited: bool
    act: Act
    setting: str
    sentence: str

    def fits(self, code: int, words: str) -> bool:
        known = code in self.codes
        said = any(word in words for word in self.words)
        return known and said if self.both else known or said


@dataclass(frozen=True, slots=True)
class AnswerBook:
    """How a platform answers: the keys of its code and words, best first, and its table."""

    whom: str
    codes: tuple[str, ...]
    words: tuple[str, ...]
    table: str

    def check(self, answer: Any, status: int) -> None:
        """Returns when the message was taken. Raises Refused otherwise."""
        if not isinstance(answer, Mapping):
            raise Refused(
                f"webhook 返回的不是{self.whom}的回答（可能是网页）。"
                "请管理员检查 webhook 地址和网络代理。",
                setting="webhook",
                detail=f"HTTP {status}, not a JSON object",
            )
        said = next((answer[key] for key in self.codes if key in answer), None)
        code = _code(said)
        if code == 0 and status == 200:
            return
        words = str(next((answer[key] for key in self.words if answer.get(key)), ""))
        detail = f"HTTP {status} code={said!r} message={words[:200]!r}"
        if code is None or code == 0:
            if "punish" in answer or answer.get("source") == "x5":
                raise Refused(
                    f"{self.whom}的网关拦下了这次请求（请求太频繁，或本机的出口 IP 被限制）。"
                    "请过几分钟再发。",
                    limited=True,
                    detail=detail,
                )
            raise Refused(
                f"{self.whom}的回答里没有结果码，不能当作成功。"
                "请管理员检查 webhook 地址和网络代理。",
                setting="webhook",
                detail=detail,
            )
        for rule in _rules(self.table):
            if rule.fits(code, words.casefold()):
                raise Refused(
                    rule.sentence,
                    limited=rule.limited,
                    act=rule.act,
                    setting=rule.setting,
                    detail=detail,
                )
        shown = " ".join(words.split())[:WORDS_SHOWN]
        raise Refused(
            f"{self.whom}没有接受它（错误码 {code}：{shown or '没有说明'}）。", detail=detail
        )


def _code(value: Any) -> int | None:
    if isinstance(value, bool) or not isinstance(value, int | str):
        return None
    try:
        return int(value)
    except ValueError:
        return None


@cache
def _rules(table: str) -> tuple[_Rule, ...]:
    rules = json.loads(Path(__file__).with_name(f"answers_{table}.json").read_text("utf-8"))
    return tuple(
        _Rule(
            frozenset(rule["codes"]),
            tuple(word.casefold() for word in rule["words"]),
            rule.get("both", False),
            rule.get("limited", False),
            rule.get("act", "never"),
            rule.get("setting", ""),
            rule["sentence"],
        )
        for rule in rules
    )
