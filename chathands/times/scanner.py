"""Cuts a time phrase into tokens and says what it could not read. Nothing is decided here:
`phrases.py` says what the tokens mean together."""

from __future__ import annotations

import re
from functools import cache

from chathands.times import token_days as days
from chathands.times import token_spans as spans
from chathands.times.calendar import festival_names, words
from chathands.times.token_spans import Clock
from chathands.times.tokens import (
    PERIODS,
    RELATIVE_DAYS,
    WEEK,
    WEEKDAY_CHARACTERS,
    Malformed,
    N,
    Rule,
    Scanned,
    Token,
    by,
    either_of,
    just,
    normal,
)

__all__ = ["Clock", "Malformed", "Scanned", "Token", "normal", "scan"]


def scan(text: str) -> Scanned:
    """Cut up a phrase that is `normal()` already. Raises Malformed."""
    found, rest, position = Scanned(), [], 0
    while position < len(text):
        for rule in _rules():
            token = rule(text, position)
            if token is None or not token.text:
                continue
            if token.kind != "filler":
                found.tokens.append(token)
            position += len(token.text)
            break
        else:
            rest.append(text[position])
            position += 1
    found.rest = "".join(rest)
    return found


_NTH = (
    rf"每个?月的?(?P<nth>最后[一1]?|第[一二三四五12345])个"
    rf"(?:(?P<workday>工作日)|{WEEK}(?P<weekday>[{WEEKDAY_CHARACTERS}]))"
)
_LUNAR = (
    r"(?:农历|阴历|旧历)的?(?P<month>正|冬|腊|[一二三四五六七八九十]+|\d+)月"
    rf"(?P<day>初?{N})(?:号|日)?"
)
_ISO = r"(?P<year>\d{4})([-/.])(?P<month>\d{1,2})\2(?P<day>\d{1,2})(?:t(?=\d))?(?![-/.]?\d)"
_SLASH = r"(?<![\d/])(?P<year>)(?P<month>\d{1,2})/(?P<day>\d{1,2})(?![\d/])"
_BEFORE_CLOCK = rf"(?={N}[点时]|\d{{1,2}}:|差)"


def _period(match: re.Match[str]) -> Token:
    return Token("period", match[0], PERIODS[match[0]])


@cache
def _rules() -> tuple[Rule, ...]:
    """In the order in which they are tried."""
    table = words()
    periods = either_of([name for name in PERIODS if len(name) > 1])
    return (
        by(_LUNAR, days.lunar_of),
        just(either_of(table["vague"]), "vague"),
        just(r"别(?!忘|的|墅|人)|不(?:要(?!忘)|用|是|含|包括)|取消|除(?!夕)", "vague"),
        just(
            r"[今明后][明后]{1,2}[两三]?天|[这那近前后头]\s?(?:[一两二三四五六七八九十几]|\d)+天",
            "vague",
        ),
        just(r"每天|每日|天天|每一天|每个?(?=[早晚])", "daily"),
        by(r"(?:每个?|每逢)?工作日(?:的?每天|的?每日)?", days.workdays_of),
        just(r"下一?个工作日", "next_workday"),
        by(_NTH, days.nth_of),
        just(r"隔一?天|每隔[一1]天", "every", ("days", 2.0, False)),
        by(r"(?P<every>每个?|每逢)?(?:下下?一?个?|这一?个?|本|上一?个?)?周末", days.weekend_of),
        by(days.WEEK_HEAD, days.weekday_of),
        spans.every_at,
        just(r"每个?(?=月[底末初])|每个?月", "monthly"),
        just(r"每一?年", "yearly"),
        by(_ISO, days.iso_of),
        by(_SLASH, days.iso_of),
        by(
            rf"(?P<rel_year>今年|明年|后年|去年)?的?(?P<name>{either_of(festival_names())})节?",
            days.festival_of,
        ),
        by(either_of(RELATIVE_DAYS), days.relative_day_of),
        by(r"([今明后昨])(早|晚|晨|夜)(?:上|间)?", days.day_and_period_of),
        by(days.DATE, days.date_of),
        by(days.YEAR_ONLY, days.year_of),
        days.plain_date(r"月底|月末|最后一天", months_on=0, day=-1),
        days.plain_date(r"月初", day=1),
        days.plain_date(r"年底|年末", month=12, day=-1),
        days.plain_date(r"年初", month=1, day=1),
        by(days.DAY, days.day_of_month),
        spans.span_at,
        by(spans.COLON, spans.colon_of),
        by(spans.HALF_DAY, spans.half_day_of),
        by(spans.CLOCK, spans.clock_of),
        by(periods, _period),
        by(rf"[早晚夜]{_BEFORE_CLOCK}", _period),
        just(r"开始|起(?!床|来|草)|从|直到|为止|截止|共\S?次", "bounds"),
        just(r"或者?|还是", "or"),
        just(r"[到至~-]", "to"),
        just(spans.BEFORE, "before"),
        just(r"[和及与、]", "and"),
        just(either_of(table["harmless"]), "filler"),
        just(rf"{either_of(table['fillers'])}|[\s,。!?;:.，()“”\"'「」]", "filler"),
    )
