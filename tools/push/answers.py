"""What DingTalk's answer to a push means, as one sentence that says what to do.

HTTP 200 stands over errors as well; only `errcode` 0 is a success. Public tables of codes
disagree by one in places, so the words of `errmsg` count before the doubtful codes, and what is
unknown or has no code at all (the gateway's own refusals) is a failure. The table is
answers.json, first fit first: a rule with both codes and words under 310000 needs both, any other
needs one of its codes or words.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from chathands.errors import ToolFailed

SECURITY = 310000
"""One code for keyword, sign, clock and address: only the words tell which."""

WORDS_SHOWN = 80


class Refused(ToolFailed):
    """The message was certainly not taken. `limited`: because there were too many."""

    def __init__(self, why: str, *, limited: bool = False, detail: str = "") -> None:
        super().__init__(f"消息没有发出。{why}", detail=detail)
        self.limited = limited


@dataclass(frozen=True, slots=True)
class _Rule:
    codes: frozenset[int]
    words: tuple[str, ...]
    limited: bool
    sentence: str

    def fits(self, code: int, words: str) -> bool:
        known = code in self.codes
        said = any(word in words for word in self.words)
        if SECURITY in self.codes:
            return known and (said or not self.words)
        return known or said


def check(answer: Any, status: int) -> None:
    """Returns when the message was taken. Raises Refused otherwise."""
    if not isinstance(answer, Mapping):
        raise Refused(
            "webhook 返回的不是钉钉的回答（可能是网页）。请管理员检查 webhook 地址和网络代理。",
            detail=f"HTTP {status}, not a JSON object",
        )
    code = _code(answer.get("errcode"))
    if code == 0 and status == 200:
        return
    words = str(answer.get("errmsg") or "")
    detail = f"HTTP {status} errcode={answer.get('errcode')!r} errmsg={words[:200]!r}"
    if code is None or code == 0:
        if "punish" in answer or answer.get("source") == "x5":
            raise Refused(
                "钉钉的网关拦下了这次请求（请求太频繁，或本机的出口 IP 被限制）。请过几分钟再发。",
                limited=True,
                detail=detail,
            )
        raise Refused(
            "钉钉的回答里没有结果码，不能当作成功。请管理员检查 webhook 地址和网络代理。",
            detail=detail,
        )
    for rule in _rules():
        if rule.fits(code, words.casefold()):
            raise Refused(rule.sentence, limited=rule.limited, detail=detail)
    said = " ".join(words.split())[:WORDS_SHOWN]
    raise Refused(f"钉钉没有接受它（错误码 {code}：{said or '没有说明'}）。", detail=detail)


def _code(value: Any) -> int | None:
    if isinstance(value, bool) or not isinstance(value, int | str):
        return None
    try:
        return int(value)
    except ValueError:
        return None


@cache
def _rules() -> tuple[_Rule, ...]:
    table = json.loads(Path(__file__).with_name("answers.json").read_text("utf-8"))
    return tuple(
        _Rule(
            frozenset(rule["codes"]),
            tuple(word.casefold() for word in rule["words"]),
            rule.get("limited", False),
            rule["sentence"],
        )
        for rule in table
    )
