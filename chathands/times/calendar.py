"""Days of the Chinese calendar: workdays with holidays and make-up days, festivals.

Holidays come from `chinesecalendar`, which follows the State Council's yearly notice (published
each November for the next year): 2004 to the year `last_year` gives. Lunar days come from
`lunar-python`. Both are imported when they are first needed.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, timedelta
from functools import cache
from importlib.resources import files
from typing import Any

FIRST_YEAR = 2004
"""Of the data of `chinesecalendar`."""
LUNAR_YEARS = range(1900, 2100)

NEW_YEARS_EVE = "除夕"
QINGMING = "清明"


@cache
def words() -> dict[str, Any]:
    """The word lists beside this module."""
    return json.loads(files("chathands.times").joinpath("words.json").read_text("utf-8"))


@cache
def last_year() -> int:
    """The last year whose holidays are known to the library."""
    from chinese_calendar.constants import holidays

    return max(holidays).year


class YearUnknown(ValueError):
    """The holidays of `year` are not known (yet)."""

    def __init__(self, year: int) -> None:
        super().__init__(f"no holidays of {year}")
        self.year = year


@dataclass(frozen=True)
class WorkCalendar:
    """Which days are worked. `off` and `on` hold what an admin has added for years the library does
    not know: days off on weekdays, and weekend days that are worked; every other day of `years` is
    as the week has it."""

    off: frozenset[date] = frozenset()
    on: frozenset[date] = frozenset()
    years: frozenset[int] = field(default=frozenset())

    @classmethod
    def of(cls, off: Sequence[date] = (), on: Sequence[date] = ()) -> WorkCalendar:
        days = (*off, *on)
        return cls(frozenset(off), frozenset(on), frozenset(day.year for day in days))

    def knows(self, year: int) -> bool:
        return FIRST_YEAR <= year <= last_year() or year in self.years

    def is_workday(self, day: date) -> bool:
        """Raises YearUnknown."""
        if FIRST_YEAR <= day.year <= last_year() and day.year not in self.years:
            from chinese_calendar import is_workday

            return is_workday(day)
        if day.year not in self.years:
            raise YearUnknown(day.year)
        return day in self.on or (day.isoweekday() <= 5 and day not in self.off)

    def is_workday_or_weekday(self, day: date) -> bool:
        """Where the holidays are not known: Monday to Friday."""
        return self.is_workday(day) if self.knows(day.year) else day.isoweekday() <= 5

    def holiday(self, day: date) -> str:
        """The holiday's Chinese name, empty on all other days and where only the week is known."""
        if not (FIRST_YEAR <= day.year <= last_year()) or day.year in self.years:
            return "节假日" if day in self.off else ""
        from chinese_calendar import Holiday, get_holiday_detail

        off, name = get_holiday_detail(day)
        return getattr(Holiday(name), "chinese", "") if off and name else ""


def festival(name: str, year: int) -> date | None:
    """The day of a festival in a solar year; None for names and years that are not known. A lunar
    year that begins in `year` is that year's."""
    name = name.removesuffix("节") if name.removesuffix("节") in _names() else name
    fixed: Mapping[str, Sequence[int]] = words()["festivals"]
    if name in fixed:
        return date(year, *fixed[name])
    if name == QINGMING:
        return _qingming(year)
    if name == NEW_YEARS_EVE:
        new_year = lunar_day(year, 1, 1)
        return new_year and new_year - timedelta(days=1)
    lunar: Mapping[str, Sequence[int]] = words()["lunar_festivals"]
    if name in lunar:
        month, day = lunar[name]
        found = lunar_day(year, month, day)
        if found is not None and found.year > year:  # 腊八 is in January
            found = lunar_day(year - 1, month, day)
        return found
    return None


@cache
def _names() -> frozenset[str]:
    table = words()
    return frozenset((*table["festivals"], *table["lunar_festivals"], NEW_YEARS_EVE, QINGMING))


@cache
def festival_names() -> tuple[str, ...]:
    """All that are known, longest first."""
    return tuple(sorted(_names(), key=len, reverse=True))


def lunar_day(year: int, month: int, day: int) -> date | None:
    """The solar day of a day of the lunar year; None when there is no such day."""
    if year not in LUNAR_YEARS:
        return None
    from lunar_python import Lunar

    try:
        solar = Lunar.fromYmd(year, month, day).getSolar()
    except Exception:  # the library knows no other
        return None
    return date(solar.getYear(), solar.getMonth(), solar.getDay())


def _qingming(year: int) -> date | None:
    if year not in LUNAR_YEARS:
        return None
    from lunar_python import Solar

    solar = Solar.fromYmd(year, 4, 4).getLunar().getJieQiTable()[QINGMING]
    return date(solar.getYear(), solar.getMonth(), solar.getDay())
