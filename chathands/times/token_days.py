"""Tokens of days: weekdays, dates, ends of months, festivals."""

from __future__ import annotations

import re
from collections.abc import Mapping

from chathands.times.numerals import read_numeral
from chathands.times.tokens import (
    PERIODS,
    RELATIVE_DAYS,
    WEEK,
    WEEKDAY_CHARACTERS,
    Malformed,
    N,
    Rule,
    Token,
    just,
    number_in,
)


def weekdays_in(text: str) -> tuple[int, ...]:
    return tuple(
        7 if c in "日天" else WEEKDAY_CHARACTERS.index(c) % 8 + 1 if c in "一二三四五六" else int(c)
        for c in text
        if c in WEEKDAY_CHARACTERS
    )


def weekday_of(match: re.Match[str]) -> Token | None:
    """`下周三`, `每周一三五`, `周一到周五`; `week` without a day."""
    text, position = match.string, match.end()
    every = _every_of(match["every"])
    offset = _offset(match["which"])
    ranged = _DAY_RANGE.match(text, position)
    if ranged is not None:
        first, last = weekdays_in(ranged[1])[0], weekdays_in(ranged[2])[0]
        if first >= last:
            raise Malformed(f"「{match[0]}{ranged[0]}」的先后不对")
        days = tuple(range(first, last + 1))
        value = {"every": every or 1, "offset": offset, "days": days, "range": True}
        return Token("weekday", match[0] + ranged[0], value)
    chosen: list[int] = []
    start = position
    while (piece := _NEXT_DAY.match(text, position)) is not None:
        day = weekdays_in(piece["day"])[0]
        separated = bool(piece["sep"])
        if chosen and not separated and (day <= chosen[-1] or every is None):
            break
        after = text[piece.end() : piece.end() + 1]
        if after and after in "点时:":  # 周三点: the hour begins here
            if not chosen:
                return Token("weekday_or_hour", text[match.start() : piece.end()])
            break
        chosen.append(day)
        position = piece.end()
    if not chosen:
        bad = re.compile(r"([八九十]|[089](?!\d*[点:]))").match(text, start)
        if bad and re.compile(r"上午|下午|早|晚|中午|$").match(text, bad.end()):
            raise Malformed(f"没有{match[0]}{bad[1]}", impossible=True)
        return Token("week", match[0], {"every": every, "offset": offset})
    value = {"every": every, "offset": offset, "days": tuple(chosen), "range": False}
    return Token("weekday", text[match.start() : position], value)


_DAY_RANGE = re.compile(
    rf"([{WEEKDAY_CHARACTERS}])[到至~-](?:每?个?{WEEK})?([一二三四五六日天]|[1-7](?!\d))(?![点时:])"
)
_NEXT_DAY = re.compile(
    rf"(?P<sep>[、,和及与跟/]|还有)?(?:(?:每个?)?{WEEK})?(?P<day>[一二三四五六日天]|[1-7](?!\d))(?!报|程|志|气)"
)
WEEK_HEAD = re.compile(
    rf"(?P<every>每隔{N}个?|每{N}个?|每个?|每逢|逢|隔|双)?的?"
    rf"(?P<which>下下下个?|下下个?|下一?个?|这一?个?|本|当|上上个?|上一?个?)?{WEEK}(?:的每?{WEEK}|的)?(?!末|年|期限|转|边|围|报|会)"
)


def _every_of(text: str | None) -> int | None:
    """How many weeks lie from one to the next; None: it does not repeat."""
    if not text:
        return None
    if text in ("隔", "双"):
        return 2
    number = re.search(N, text)
    if number is None:
        return 1
    count = number_in(number[0])
    return count + 1 if "隔" in text else count


def _offset(text: str | None) -> int | None:
    if not text:
        return None
    downs, ups = text.count("下"), text.count("上")
    return downs or -ups or 0


def weekend_of(match: re.Match[str]) -> Token:
    every = 1 if match["every"] else None
    if every:
        return Token(
            "weekday",
            match[0],
            {"every": 1, "offset": None, "days": (6, 7), "range": False},
        )
    return Token("weekend", match[0])


_MONTH = (
    rf"(?:(?P<which>下下个?|下一?个?|这一?个?|本|当|上一?个?)月(?:份)?"
    rf"|(?P<month>{N})月(?:份)?)"
)
_YEAR = r"(?:(?P<year>\d{4}|[一二][零〇一二三四五六七八九]{3})年|(?P<rel_year>今年|明年|后年|去年))"
DAY = rf"(?P<day>{N})(?:号|日(?!报|程|常|志))"
_END = r"(?P<end>月?底|月?末|的?最后[一1]天|的?最后[一1]日)"
_START = r"(?P<start>月?初|的?第[一1]天)"
DATE = re.compile(
    rf"{_YEAR}?的?{_MONTH}的?(?:{DAY}|{_END}|{_START}|(?P<bare>{N})(?![点时:分个\d月刻天秒]))?"
)
YEAR_ONLY = re.compile(rf"{_YEAR}的?(?:(?P<end>年?底|年?末|最后[一1]天)|(?P<start>年?初))?")


YEARS_ON = {"去年": -1, "今年": 0, "明年": 1, "后年": 2}


def date_of(match: re.Match[str]) -> Token:
    groups = match.groupdict()
    day: int | None = None
    if groups.get("day") or groups.get("bare"):
        day = number_in(groups.get("day") or groups["bare"])
        if day == 0:
            raise Malformed("没有 0 号这一天", impossible=True)
    elif groups.get("end"):
        day = -1
    elif groups.get("start"):
        day = 1
    value = {
        "year": number_in(groups["year"]) if groups.get("year") else None,
        "years_on": YEARS_ON.get(groups.get("rel_year") or ""),
        "month": number_in(groups["month"]) if groups.get("month") else None,
        "months_on": _offset(groups["which"]) if groups.get("which") else None,
        "day": day,
    }
    return Token("date", match[0], value)


def iso_of(match: re.Match[str]) -> Token:
    value = {
        "year": int(match["year"]) if match["year"] else None,
        "years_on": None,
        "month": int(match["month"]),
        "months_on": None,
        "day": int(match["day"]),
    }
    return Token("date", match[0], value)


def year_of(match: re.Match[str]) -> Token:
    groups = match.groupdict()
    if not groups["end"] and not groups["start"]:
        return Token("year", match[0], groups["rel_year"] or groups["year"])
    value = {
        "year": number_in(groups["year"]) if groups["year"] else None,
        "years_on": YEARS_ON.get(groups["rel_year"] or ""),
        "month": 12 if groups["end"] else 1,
        "months_on": None,
        "day": -1 if groups["end"] else 1,
    }
    return Token("date", match[0], value)


_NO_DATE: Mapping[str, int | None] = dict.fromkeys(
    ("year", "years_on", "month", "months_on", "day")
)


def plain_date(pattern: str, **about: int) -> Rule:
    return just(pattern, "date", {**_NO_DATE, **about})


def day_of_month(match: re.Match[str]) -> Token:
    day = number_in(match["day"])
    if not 1 <= day <= 31:
        raise Malformed(f"没有 {day} 号这一天", impossible=True)
    return Token("date", match[0], {**_NO_DATE, "day": day})


def festival_of(match: re.Match[str]) -> Token:
    return Token("festival", match[0], (match["rel_year"], match["name"]))


def lunar_of(match: re.Match[str]) -> Token | None:
    months = {"正": 1, "冬": 11, "腊": 12}
    month = months.get(match["month"]) or read_numeral(match["month"])
    day = read_numeral(match["day"].removeprefix("初"))
    return None if month is None or day is None else Token("lunar", match[0], (month, day))


def relative_day_of(match: re.Match[str]) -> Token:
    return Token("day", match[0], RELATIVE_DAYS[match[0]])


_SHORT_DAYS = {"今": 0, "明": 1, "后": 2, "昨": -1}


def day_and_period_of(match: re.Match[str]) -> Token:
    return Token("day_period", match[0], (_SHORT_DAYS[match[1]], PERIODS[match[2]]))


def nth_of(match: re.Match[str]) -> Token:
    nth = -1 if "最后" in match["nth"] else number_in(match["nth"].removeprefix("第"))
    if match["workday"]:
        return Token("nth_workday", match[0], nth)
    return Token("nth", match[0], (nth, weekdays_in(match["weekday"])[0]))


def workdays_of(match: re.Match[str]) -> Token:
    return Token("workdays", match[0], "每" in match[0] or "逢" in match[0])
