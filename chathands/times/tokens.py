"""Tokens of a time phrase, and what all that make them have in common."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from chathands.times.calendar import words
from chathands.times.numerals import NUMERAL, read_numeral

N = NUMERAL
WEEK = r"(?:周|星期|礼拜)"
WEEKDAY_CHARACTERS = "一二三四五六日天1234567"

PERIODS: Mapping[str, str] = {
    **dict.fromkeys(("凌晨", "拂晓"), "before_dawn"),
    **dict.fromkeys(("清晨", "清早", "大清早", "一大早", "一早", "大早上"), "dawn"),
    **dict.fromkeys(("早上", "早晨", "早间", "早", "晨"), "morning"),
    **dict.fromkeys(("上午", "午前"), "forenoon"),
    **dict.fromkeys(("中午", "正午", "晌午"), "noon"),
    **dict.fromkeys(("下午", "午后"), "afternoon"),
    **dict.fromkeys(("傍晚", "黄昏"), "dusk"),
    **dict.fromkeys(("晚上", "晚间", "夜晚", "晚", "夜"), "evening"),
    **dict.fromkeys(("夜里", "夜间", "深夜", "半夜", "大半夜", "三更半夜"), "night"),
    "午夜": "midnight",
    "am": "am",
    "pm": "pm",
}
RELATIVE_DAYS = {
    "大前天": -3, "前天": -2, "昨天": -1, "昨日": -1, "今天": 0, "今日": 0, "今儿": 0,
    "明天": 1, "明日": 1, "明儿": 1, "后天": 2, "后日": 2, "大后天": 3,
}  # fmt: skip
UNIT_SECONDS = {"秒": 1, "分": 60, "刻": 900, "小时": 3600, "钟头": 3600, "钟": 3600}
UNIT_DAYS = {"天": 1, "周": 7, "星期": 7, "礼拜": 7}


@dataclass(frozen=True, slots=True)
class Token:
    kind: str
    text: str
    value: Any = None


@dataclass(slots=True)
class Scanned:
    tokens: list[Token] = field(default_factory=list)
    rest: str = ""
    """What is no time and no filler."""

    def all(self, *kinds: str) -> list[Token]:
        return [token for token in self.tokens if token.kind in kinds]

    def has(self, *kinds: str) -> bool:
        return bool(self.all(*kinds))


class Malformed(ValueError):
    """What looks like a time and cannot be read, or (`impossible`) can be none; the text, Chinese,
    says what."""

    def __init__(self, why: str, *, impossible: bool = False) -> None:
        super().__init__(why)
        self.impossible = impossible


@cache
def _table() -> dict[int, str]:
    return str.maketrans(words()["traditional"])


def normal(text: str) -> str:
    """Half-width, simplified where it matters, lower case, English phrases in Chinese."""
    text = unicodedata.normalize("NFKC", text).translate(_table()).lower().strip()
    for english, chinese in words()["english"]:
        text = re.sub(rf"(?<![a-z]){english}(?![a-z])", chinese, text)
    text = re.sub(r"\bin (\d+) ?min(?:ute)?s?\b", r"\1分钟后", text)
    text = re.sub(r"\bin (\d+) ?h(?:ou)?rs?\b", r"\1小时后", text)
    text = re.sub(r"(?<=\d)\s*([ap])\.?m\b\.?", r"\1m", text)
    text = re.sub(r"\s+", " ", text)
    return re.sub(r"(?<=[^\x00-\x7f]) | (?=[^\x00-\x7f])", "", text)


Rule = Callable[[str, int], Token | None]
"""The token that begins at a position of the text, or None."""


def by(pattern: str | re.Pattern[str], make: Callable[[re.Match[str]], Token | None]) -> Rule:
    compiled = re.compile(pattern)

    def rule(text: str, position: int) -> Token | None:
        match = compiled.match(text, position)
        return None if match is None else make(match)

    return rule


def just(pattern: str | re.Pattern[str], kind: str, value: Any = None) -> Rule:
    return by(pattern, lambda match: Token(kind, match[0], value))


def number_in(text: str) -> int:
    number = read_numeral(text)
    if number is None:
        raise Malformed(f"「{text}」不是一个能用的数")
    return number


def either_of(names: Iterable[str]) -> str:
    return "|".join(re.escape(name) for name in sorted(names, key=len, reverse=True))
