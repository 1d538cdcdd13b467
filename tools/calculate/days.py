"""Differences of dates, days counted on, workdays. The day's clock is the only thing not pure."""

from __future__ import annotations

import calendar as months
from datetime import date, datetime, timedelta
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

from chathands.times import Unclear, WorkCalendar, YearUnknown, read_day
from chathands.times.calendar import FIRST_YEAR, last_year

if TYPE_CHECKING:
    from chathands.settings import Settings

MAX_ADD = 40_000
"""A hundred years of days; workdays are looked at one by one, and known for some twenty years."""
WEEKDAYS = "一二三四五六日"


class CannotDate(Exception):
    """Why, a Chinese sentence for the person."""


def today_in(settings: Settings) -> tuple[date, WorkCalendar]:
    """The day it is in the zone of the settings, and their calendar."""
    today = datetime.now(ZoneInfo(settings.timezone)).date()
    return today, settings.calendar.work_calendar()


def between(start: str, end: str, today: date, calendar: WorkCalendar) -> str:
    """How far apart two days are. Raises CannotDate."""
    first, last = _day(start, today, calendar), _day(end, today, calendar)
    apart = abs((last - first).days)
    if not apart:
        return f"{start}和{end}都是 {shown(first)}，是同一天。"
    early, late = sorted((first, last))
    order = "" if last > first else "（后一个日子在前）"
    return (
        f"从 {shown(first)}到 {shown(last)}{order}：相差 {apart} 天，首尾都算是 {apart + 1} 天。"
        + _worked(early, late, calendar)
    )


def _worked(early: date, late: date, calendar: WorkCalendar) -> str:
    try:
        days = [early + timedelta(days=n) for n in range((late - early).days + 1)]
        if len(days) > 366 * 30:
            return ""
        worked = sum(calendar.is_workday(day) for day in days)
    except YearUnknown as unknown:
        return _unknown(unknown.year)
    without = worked - calendar.is_workday(early)
    return f"其中工作日首尾都算是 {worked} 天，不算第一天是 {without} 天。"


def added(start: str, add: int, unit: str, today: date, calendar: WorkCalendar) -> str:
    """The day so many days, workdays, weeks, months or years on. Raises CannotDate."""
    first = _day(start, today, calendar)
    try:
        if unit == "工作日":
            day = _workdays_on(first, add, calendar)
        elif unit in ("天", "周"):
            day = first + timedelta(days=add * (7 if unit == "周" else 1))
        else:
            day = _months_on(first, add * (12 if unit == "年" else 1))
    except YearUnknown as unknown:
        raise CannotDate(_unknown(unknown.year)) from None
    except (OverflowError, ValueError):
        raise CannotDate("日期太远了，算不了。") from None
    way = "往后" if add >= 0 else "往前"
    clipped = (
        "（那个月没有这一天，取月底）" if unit in ("月", "年") and day.day != first.day else ""
    )
    counted = "，起始那天不算" if unit in ("天", "工作日") and add else ""
    return f"{shown(first)}{way}数 {abs(add)} {unit}{counted}，是 {shown(day)}{clipped}。"


def about_day(start: str, today: date, calendar: WorkCalendar) -> str:
    """Weekday, holiday, and how far away it is. Raises CannotDate."""
    day = _day(start, today, calendar)
    away = (day - today).days
    far = "就是今天" if not away else f"离今天还有 {away} 天" if away > 0 else f"是 {-away} 天以前"
    try:
        worked = calendar.is_workday(day)
    except YearUnknown as unknown:
        return f"{shown(day)}，{far}。{_unknown(unknown.year)}"
    name = calendar.holiday(day)
    if worked:
        kind = "要上班（调休）" if day.isoweekday() > 5 else "是工作日"
    else:
        kind = f"放假（{name}）" if name else "是周末，不上班" if day.isoweekday() > 5 else "放假"
    return f"{shown(day)}，{far}，{kind}。"


def shown(day: date) -> str:
    return f"{day:%Y-%m-%d}（周{WEEKDAYS[day.weekday()]}）"


def _day(phrase: str, today: date, calendar: WorkCalendar) -> date:
    found = read_day(phrase, today=today, calendar=calendar)
    if isinstance(found, Unclear):
        raise CannotDate(found.sentence)
    return found


def _workdays_on(day: date, count: int, calendar: WorkCalendar) -> date:
    step = timedelta(days=1 if count >= 0 else -1)
    left = abs(count)
    while left:
        day += step
        left -= calendar.is_workday(day)
    return day


def _months_on(day: date, count: int) -> date:
    year, month = divmod(day.year * 12 + day.month - 1 + count, 12)
    return date(year, month + 1, min(day.day, months.monthrange(year, month + 1)[1]))


def _unknown(year: int) -> str:
    if year > last_year():
        return (
            f"{year} 年的放假安排还没有数据（现在有 {FIRST_YEAR} 到 {last_year()} 年的），"
            "那一年的工作日算不了；管理员可以升级 chinesecalendar，"
            "或者填写 CHATHANDS__CALENDAR__DAYS_OFF。"
        )
    return f"{year} 年的放假安排没有数据（从 {FIRST_YEAR} 年起才有），工作日算不了。"
