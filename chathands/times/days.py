"""Which day is meant. Raises Ask and Malformed; see `phrases.py`."""

from __future__ import annotations

import calendar as months
from collections.abc import Mapping, Sequence
from datetime import date, timedelta
from typing import Any

from chathands.times.calendar import WorkCalendar, YearUnknown, festival, lunar_day
from chathands.times.hours import Ask
from chathands.times.repeats import WEEKDAYS
from chathands.times.scanner import Malformed, Scanned, Token
from chathands.times.token_days import YEARS_ON

_DAYS = ("day", "day_period", "weekday", "date", "festival", "lunar", "next_workday")


def name_of(day: date) -> str:
    return f"{day.month} 月 {day.day} 日（周{WEEKDAYS[day.weekday()]}）"


def months_on(day: date, count: int) -> date:
    """The same day so many months on, or the last one of that month."""
    number = day.year * 12 + day.month - 1 + count
    year, month = divmod(number, 12)
    if year > 9998:
        raise OverflowError
    return date(year, month + 1, min(day.day, months.monthrange(year, month + 1)[1]))


def shifted(day: date, span: Token) -> date:
    """That many days, weeks or months later, or earlier for `…前`."""
    sign = -1 if span.kind == "ago" else 1
    for unit, count in span.value:
        if unit == "days":
            day += timedelta(days=sign * count)
        elif unit == "months":
            day = months_on(day, sign * int(count))
        else:
            raise Ask(f"「{span.text}」不是整天，请问用户是哪一天。")
    return day


def day_said(
    scanned: Scanned, today: date, calendar: WorkCalendar, *, past: bool = False
) -> date | None:
    """The day that is said; None when none is. Raises Ask when two differ, and for what is over
    unless `past`."""
    tokens = scanned.all(*_DAYS, "week")
    found: list[date] = []
    week: int | None = None
    for token in tokens:
        if token.kind == "week":
            if len(tokens) == 1 or token is tokens[-1]:
                raise Ask(f"「{token.text}」没有说是星期几，请问用户。")
            week = token.value["offset"]
        else:
            found.append(_day(token, today, calendar, week, past))
    if len(set(found)) > 1:
        raise Ask(f"「{tokens[0].text}」和「{tokens[-1].text}」不是同一天，请问用户是哪一天。")
    return found[0] if found else None


def _day(token: Token, today: date, calendar: WorkCalendar, week: int | None, past: bool) -> date:
    match token.kind:
        case "day":
            return today + timedelta(days=token.value)
        case "day_period":
            return today + timedelta(days=token.value[0])
        case "weekday":
            return _weekday(token, today, week, past)
        case "date":
            return _dated(token, today, past)
        case "festival":
            return _festival(token, today, past)
        case "lunar":
            return _lunar(token, today)
    return _next_workday(today, calendar)


def _next_workday(today: date, calendar: WorkCalendar) -> date:
    try:
        for ahead in range(1, 32):
            if calendar.is_workday(day := today + timedelta(days=ahead)):
                return day
    except YearUnknown as unknown:
        raise Ask(f"{unknown.year} 年的放假安排还没有数据，请问用户是几月几日。") from None
    raise AssertionError("a month without a workday")


def _weekday(token: Token, today: date, week: int | None, past: bool) -> date:
    days: Sequence[int] = token.value["days"]
    if len(days) > 1:
        raise Ask(f"「{token.text}」有几天，请问用户是哪一天，还是每周都要。")
    offset = token.value["offset"] if week is None else week
    monday = today - timedelta(days=today.isoweekday() - 1)
    day = monday + timedelta(days=days[0] - 1 + 7 * (offset or 0))
    if offset is None:
        if day == today:
            raise Ask(f"今天就是「{token.text}」，是今天还是下周？请问用户。")
        return day if day > today else day + timedelta(days=7)
    if day < today and not past:
        raise Ask(f"「{token.text}」（{name_of(day)}）已经过去了，请问用户是不是下周。")
    return day


def _dated(token: Token, today: date, past: bool) -> date:
    """The date with that year, month and day, as far as they were said."""
    said: Mapping[str, Any] = token.value
    if said["day"] is None:
        raise Ask(f"「{token.text}」没有说是几号，请问用户。")
    year = said["year"] if said["years_on"] is None else today.year + said["years_on"]
    month = said["month"]
    if said["months_on"] is not None:
        first = months_on(today.replace(day=1), said["months_on"])
        year, month = first.year, first.month
    elif month is None:  # only the day
        day = real_date(today.year, today.month, said["day"], token.text)
        if day >= today and token.text not in ("月初",):
            return day
        later = months_on(today.replace(day=1), 1)
        return real_date(later.year, later.month, said["day"], token.text)
    day = real_date(year or today.year, month, said["day"], token.text, any_year=year is None)
    if past or day >= today:
        return day
    if year is None:
        if said["months_on"] is None and token.text == "年初":
            return date(today.year + 1, 1, 1)
        raise Ask(f"今年的「{token.text}」已经过去了，请问用户是不是明年。")
    raise Ask(f"「{token.text}」（{day.year} 年 {name_of(day)}）已经过去了，请问用户。")


def real_date(year: int, month: int, day: int, written: str, *, any_year: bool = False) -> date:
    if not 1 <= month <= 12:
        raise Malformed(f"没有 {month} 月", impossible=True)
    if not 1900 <= year <= 9000:
        raise Malformed(f"「{written}」的年份不对", impossible=True)
    length = months.monthrange(year, month)[1]
    if day == -1:
        return date(year, month, length)
    if day > length:
        where = f"{month} 月" if any_year and (month != 2 or day > 29) else f"{year} 年 {month} 月"
        raise Malformed(f"{where}没有 {day} 日", impossible=True)
    return date(year, month, day)


def _festival(token: Token, today: date, past: bool) -> date:
    rel_year, name = token.value
    if rel_year:
        year = today.year + YEARS_ON[rel_year]
        day = festival(name, year)
    else:
        day = festival(name, today.year)
        if day is not None and day < today:
            day = festival(name, today.year + 1)
    if day is None or (day < today and not past):
        raise Ask(f"「{token.text}」是哪一天说不准，请问用户几月几日。")
    return day


def _lunar(token: Token, today: date) -> date:
    month, number = token.value
    for year in (today.year - 1, today.year, today.year + 1):
        day = lunar_day(year, month, number)
        if day is not None and day >= today:
            return day
    raise Malformed(f"没有{token.text}", impossible=True)
