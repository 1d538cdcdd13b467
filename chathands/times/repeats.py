"""A time that comes again: which days, which times of day, and when next. Plain data, JSON-safe."""

from __future__ import annotations

import calendar as months
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from typing import Any, Literal
from zoneinfo import ZoneInfo

from chathands.times.calendar import WorkCalendar, festival

Kind = Literal["days", "weeks", "workdays", "months", "nth", "nth_workday", "years", "festival",
               "seconds"]  # fmt: skip

LOOK_AHEAD = 366 * 9
"""Days searched for the next time: 29 February comes at least every eight years."""
WEEKDAYS = "一二三四五六日"


@dataclass(frozen=True, slots=True)
class Repeat:
    """`every` counts days, weeks or seconds from `start`. `on` are weekdays (1 to 7), days of the
    month (-1: the last) or `[nth, weekday]`, `[nth]` of the workdays, `[month, day]`."""

    kind: Kind
    times: tuple[time, ...]
    start: datetime
    """Aware, and its zone is that of the times of day."""
    every: int = 1
    on: tuple[int, ...] = ()
    name: str = ""
    """Of a festival."""

    def next_after(self, moment: datetime, calendar: WorkCalendar) -> datetime | None:
        """The first time after `moment` (aware), in the zone of `start`; None when there is none
        within nine years. A time of day that the clocks skip is an hour later on that day."""
        zone = self.start.tzinfo
        assert isinstance(zone, ZoneInfo)
        if self.kind == "seconds":
            passed = max(0.0, (moment - self.start).total_seconds())
            steps = int(passed // self.every) + 1
            return (self.start.astimezone(UTC) + timedelta(seconds=steps * self.every)).astimezone(
                zone
            )
        day = max(moment, self.start).astimezone(zone).date()
        for _ in range(LOOK_AHEAD):
            if self._is_on(day, calendar):
                for at in self.times:
                    if (when := localised(day, at, zone)) > moment:
                        return when
            day += timedelta(days=1)
        return None

    def _is_on(self, day: date, calendar: WorkCalendar) -> bool:
        match self.kind:
            case "days":
                return (day - self.start.date()).days % self.every == 0
            case "weeks":
                weeks = (_monday(day) - _monday(self.start.date())).days // 7
                return day.isoweekday() in self.on and weeks % self.every == 0
            case "workdays":
                return calendar.is_workday_or_weekday(day)
            case "months":
                return day.day in self.on or (-1 in self.on and day.day == _length(day))
            case "nth":
                nth, weekday = self.on
                if day.isoweekday() != weekday:
                    return False
                last = day.day + 7 > _length(day)
                return last if nth == -1 else (day.day - 1) // 7 + 1 == nth
            case "nth_workday":
                return day == _nth_workday(day, self.on[0], calendar)
            case "years":
                return (day.month, day.day) == self.on
            case "festival":
                return day == festival(self.name, day.year)
        return False

    def describe(self) -> str:
        """In Chinese, e.g. 每周一、三 09:00."""
        at = "、".join(t.strftime("%H:%M") for t in self.times)
        return f"{self._days()} {at}".strip()

    def _days(self) -> str:
        match self.kind:
            case "days":
                return "每天" if self.every == 1 else f"每 {self.every} 天"
            case "weeks":
                days = "、".join(WEEKDAYS[n - 1] for n in self.on)
                return f"每周{days}" if self.every == 1 else f"每 {self.every} 周的周{days}"
            case "workdays":
                return "每个工作日"
            case "months":
                return "每月" + "、".join("最后一天" if n == -1 else f"{n} 日" for n in self.on)
            case "nth":
                nth, weekday = self.on
                which = "最后一个" if nth == -1 else f"第 {nth} 个"
                return f"每月{which}周{WEEKDAYS[weekday - 1]}"
            case "nth_workday":
                which = "最后一个" if self.on[0] == -1 else f"第 {self.on[0]} 个"
                return f"每月{which}工作日"
            case "years":
                return f"每年 {self.on[0]} 月 {self.on[1]} 日"
            case "festival":
                return f"每年{self.name}"
            case "seconds":
                return f"每 {spoken(self.every)}"
        raise AssertionError(self.kind)

    def to_data(self) -> dict[str, Any]:
        zone = self.start.tzinfo
        assert isinstance(zone, ZoneInfo)
        return {
            "kind": self.kind,
            "times": [t.strftime("%H:%M") for t in self.times],
            "start": self.start.timestamp(),
            "zone": zone.key,
            "every": self.every,
            "on": list(self.on),
            "name": self.name,
        }

    @classmethod
    def from_data(cls, data: Mapping[str, Any]) -> Repeat:
        """Raises KeyError, TypeError, ValueError for what `to_data` did not write."""
        return cls(
            kind=data["kind"],
            times=tuple(time.fromisoformat(t) for t in data["times"]),
            start=datetime.fromtimestamp(float(data["start"]), ZoneInfo(data["zone"])),
            every=int(data["every"]),
            on=tuple(int(n) for n in data["on"]),
            name=str(data["name"]),
        )


def localised(day: date, at: time, zone: ZoneInfo) -> datetime:
    """That wall time in the zone; one that the clocks skip comes out as much later as they jump,
    of one that comes twice the first."""
    return datetime.combine(day, at, zone).astimezone(UTC).astimezone(zone)


def is_skipped(day: date, at: time, zone: ZoneInfo) -> bool:
    """Whether the clocks of that zone jump over that wall time."""
    return localised(day, at, zone).time() != at


def spoken(seconds: int) -> str:
    """A span in the largest unit that divides it."""
    for unit, size in (("天", 86400), ("小时", 3600), ("分钟", 60)):
        if seconds % size == 0:
            return f"{seconds // size} {unit}"
    return f"{seconds} 秒"


def _monday(day: date) -> date:
    return day - timedelta(days=day.isoweekday() - 1)


def _length(day: date) -> int:
    return months.monthrange(day.year, day.month)[1]


def _nth_workday(day: date, nth: int, calendar: WorkCalendar) -> date | None:
    days = [day.replace(day=n) for n in range(1, _length(day) + 1)]
    worked = [d for d in days if calendar.is_workday_or_weekday(d)]
    index = nth if nth < 0 else nth - 1
    return worked[index] if -len(worked) <= index < len(worked) else None
