"""A time that repeats out of the tokens of a phrase. Raises Ask and Malformed; see `phrases.py`."""

from __future__ import annotations

from datetime import datetime, time
from typing import Any

from chathands.times.calendar import WorkCalendar, festival
from chathands.times.days import real_date
from chathands.times.hours import Ask, Slot, bare, decided, in_period
from chathands.times.moments import alone, clocks_of
from chathands.times.repeats import Kind, Repeat
from chathands.times.scanner import Malformed, Scanned, Token

SHORTEST = 600
"""Seconds between two times: more often than every ten minutes is a flood in a group."""


def repeat_of(scanned: Scanned, now: datetime, calendar: WorkCalendar, default: time) -> Repeat:
    if scanned.has("bounds"):
        raise Ask("重复提醒还不能写从哪天开始、到哪天为止或一共几次：请问用户是否一直重复。")
    if scanned.has("after", "span", "ago", "day", "day_period", "next_workday", "lunar"):
        raise Ask("又要重复又说了一个日子，看不懂。请问用户哪些天、几点。")
    _one_set_of_days(scanned)
    heads = scanned.all("daily", "workdays", "every", "nth", "nth_workday", "monthly", "yearly")
    weekdays = scanned.all("weekday", "week")
    kind, about = _days(scanned, heads, weekdays, now)
    clocks = clocks_of(scanned)
    if kind == "seconds":
        if clocks:
            raise Ask("又是每隔一段时间又说了几点，请问用户怎么重复。")
        if about["every"] < SHORTEST:
            raise Ask(f"重复的间隔最短 {SHORTEST // 60} 分钟，请问用户换成多久一次。")
        return Repeat("seconds", (), now.replace(microsecond=0), **about)
    if kind == "workdays" and not heads[0].value and not clocks:
        raise Ask("「工作日」是每个工作日都要，还是哪一天？几点？请问用户。")
    times = tuple(sorted({_time(period, clock, default) for period, clock in clocks}))
    repeat = Repeat(kind, times or (default,), now.replace(microsecond=0), **about)
    return _anchored(repeat, now, calendar)


def _one_set_of_days(scanned: Scanned) -> None:
    """每周一 9 点，每周三 10 点 are two reminders; as one it would be four times a week."""
    days = ("weekday", "date", "festival", "nth", "nth_workday")
    kinds = [token.kind for token in scanned.tokens if token.kind in (*days, "clock")]
    if "clock" in kinds:
        first = kinds.index("clock")
        if any(k in days for k in kinds[:first]) and any(k in days for k in kinds[first:]):
            raise Ask("这是几个不同的重复时间，请一个一个地设。")


def _anchored(repeat: Repeat, now: datetime, calendar: WorkCalendar) -> Repeat:
    """Every second week, or day, counted from its first time."""
    if repeat.every == 1:
        if repeat.next_after(now, calendar) is None:
            raise Malformed("没有这样的日子", impossible=True)
        return repeat
    first = Repeat(repeat.kind, repeat.times, repeat.start, 1, repeat.on).next_after(now, calendar)
    assert first is not None
    midnight = first.replace(hour=0, minute=0, second=0)
    return Repeat(repeat.kind, repeat.times, midnight, repeat.every, repeat.on)


def _time(period: str, clock: Any, default: time) -> time:
    if clock is None:
        slot: Slot = alone(period)
    elif period:
        slot = in_period(period, clock)
    else:
        slot = decided(bare(clock), clock.written, day="每天")
    return time(slot[1], slot[2])


def _days(
    scanned: Scanned, heads: list[Token], weekdays: list[Token], now: datetime
) -> tuple[Kind, dict[str, Any]]:
    """The kind of repetition, and the fields of a Repeat that belong to it."""
    kinds = {token.kind for token in heads}
    if weekdays:
        return _weekly(weekdays, kinds)
    if len(kinds) > 1 or len(heads) > 1:
        raise Ask("说了两种重复，请问用户要哪一种。")
    head = heads[0]
    dates, festivals = scanned.all("date"), scanned.all("festival")
    if (dates or festivals) and head.kind not in ("monthly", "yearly"):
        raise Ask("又要重复又说了一个日子，看不懂。请问用户哪些天、几点。")
    match head.kind:
        case "daily":
            return "days", {}
        case "workdays":
            return "workdays", {}
        case "nth":
            return "nth", {"on": head.value}
        case "nth_workday":
            return "nth_workday", {"on": (head.value,)}
        case "every":
            return _every(head)
        case "monthly":
            return "months", {"on": _month_days(dates, festivals)}
    return _yearly(dates, festivals, now)


def _weekly(weekdays: list[Token], kinds: set[str]) -> tuple[Kind, dict[str, Any]]:
    days = [token for token in weekdays if token.kind == "weekday"]
    if not days:
        raise Ask("没有说每周星期几，请问用户。")
    if kinds - {"daily"} or any(token.value["offset"] is not None for token in weekdays):
        raise Ask("看不懂怎么重复，请问用户每周星期几、几点。")
    every = {token.value["every"] for token in weekdays if token.value["every"]}
    if len(every) > 1 and every != {1, max(every)}:
        raise Ask("说了两种重复，请问用户要哪一种。")
    if kinds and not all(token.value["range"] for token in days):
        raise Ask("是每天，还是每周的那一天？请问用户。")
    on = sorted({day for token in days for day in token.value["days"]})
    return "weeks", {"on": tuple(on), "every": max(every)}


def _every(head: Token) -> tuple[Kind, dict[str, Any]]:
    unit, count, apart = head.value
    if unit == "seconds":
        return "seconds", {"every": int(count)}
    if unit != "days" or count < 1 or "月" in head.text:
        raise Ask(f"还不会「{head.text}」这样的重复，可以按天、周、月的某一天。请问用户。")
    if apart:  # 每隔两天: every second day to some, every third to others
        raise Ask(f"「{head.text}」是每 {count:g} 天一次，还是中间空 {count:g} 天？请问用户。")
    return "days", {"every": int(count)}


def _month_days(dates: list[Token], festivals: list[Token]) -> tuple[int, ...]:
    if festivals or not dates:
        raise Ask("没有说每月几号，请问用户。")
    days = []
    for token in dates:
        said = token.value
        if said["day"] is None or said["month"] is not None or said["months_on"]:
            raise Ask(f"「{token.text}」不能每月重复，请问用户每月几号。")
        days.append(said["day"])
    return tuple(sorted(set(days), key=lambda day: (day == -1, day)))


def _yearly(
    dates: list[Token], festivals: list[Token], now: datetime
) -> tuple[Kind, dict[str, Any]]:
    if len(dates) + len(festivals) != 1:
        raise Ask("没有说每年几月几日，请问用户。")
    if festivals:
        _, name = festivals[0].value
        if festival(name, now.year) is None:
            raise Ask(f"「{name}」每年是哪一天说不准，请问用户。")
        return "festival", {"name": name}
    said = dates[0].value
    if said["month"] is None or said["day"] is None or said["year"] or said["years_on"]:
        raise Ask(f"「{dates[0].text}」不能每年重复，请问用户每年几月几日。")
    if said["day"] == -1:
        raise Ask("每年重复要写几月几日，请问用户。")
    real_date(2024, said["month"], said["day"], dates[0].text, any_year=True)  # with a 29 February
    return "years", {"on": (said["month"], said["day"])}
