"""One moment out of the tokens of a phrase. Raises Ask and Malformed; see `phrases.py`."""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta
from zoneinfo import ZoneInfo

from chathands.times.calendar import WorkCalendar
from chathands.times.days import day_said, months_on, name_of
from chathands.times.hours import (
    MORNING,
    NAMES,
    Ask,
    Choice,
    Slot,
    bare,
    decided,
    either,
    in_period,
    shown,
)
from chathands.times.repeats import is_skipped, localised
from chathands.times.scanner import Clock, Scanned, Token

NO_HOUR = "没有说几点，按 {at:%H:%M} 算。"
SMALL_HOURS = 5
"""Before this hour 明天 and 今晚 may mean what the calendar calls today."""


def moment_of(
    scanned: Scanned, now: datetime, calendar: WorkCalendar, default: time
) -> tuple[datetime, str]:
    """When, and what was assumed (a sentence or nothing)."""
    if scanned.has("ago"):
        raise Ask(f"「{scanned.all('ago')[0].text}」是过去的时间，或者没有说在什么之前。请问用户。")
    spans, clocks = scanned.all("after", "span"), clocks_of(scanned)
    if len(spans) > 1 or len(clocks) > 1:
        raise Ask("说了不止一个时间，请问用户在哪一个时间提醒。")
    if spans and spans[0].kind == "span" and not _means_later(spans[0], scanned):
        raise Ask(f"「{spans[0].text}」是多久以后吗？请问用户具体时间。")
    zone = now.tzinfo
    assert isinstance(zone, ZoneInfo)
    parts = sorted({period for period, _ in clocks if period})
    named = day_said(scanned, now.date(), calendar)
    if spans:
        if named is not None:
            raise Ask("说了两个日子，请问用户是哪一天。")
        if not clocks:
            return _later(spans[0], now), ""
        if any(unit == "seconds" for unit, _ in spans[0].value):
            raise Ask("既说了多久以后又说了几点，请问用户具体时间。")
        named = _later(spans[0], now).date()
    if not clocks:
        assert named is not None
        if named == now.date():
            raise Ask("没有说几点，请问用户几点。")
        return _checked(named, (0, default.hour, default.minute, 0), now), NO_HOUR.format(
            at=default
        )
    period, clock = clocks[0]
    if clock is None:
        slot = alone(parts[0])
        if named is None:
            named = now.date()
        return _checked(named, slot, now), ""
    said = named is not None
    if said and now.hour < SMALL_HOURS and scanned.has("day", "day_period"):
        word = scanned.all("day", "day_period")[0].text
        raise Ask(f"现在是凌晨，「{word}」指哪一天说不准，请问用户几月几日。")
    if period:
        slot = in_period(period, clock)
        day = named or now.date()
        if not said and period == "before_dawn" and _at(day, slot, zone) <= now:
            day += timedelta(days=1)
        return _checked(day, slot, now), ""
    choice = bare(clock)
    if named is not None and named != now.date():
        return _checked(named, decided(choice, clock.written, day=name_of(named)), now), ""
    return _today(choice, clock, now, said=said), ""


def clocks_of(scanned: Scanned) -> list[tuple[str, Clock | None]]:
    """Times of day in order, each with its part of the day (`""`: none was said). A part of the day
    that stands alone has no clock."""
    out: list[tuple[str, Clock | None]] = []
    period = ""
    for token in scanned.tokens:
        if token.kind in ("period", "day_period"):
            new = token.value[1] if token.kind == "day_period" else token.value
            if period and not _fits(period, new):
                out.append((period, None))
                period = new
            else:
                period = new if period in ("", "evening", "morning") else period
        elif token.kind == "clock":
            if isinstance(token.value, tuple):  # with am or pm
                half, clock = token.value
                out.append((half, clock))
            else:
                out.append((period, token.value))
            period = ""
    if period:
        if out and out[-1][0] == "" and scanned.tokens[-1].kind == "period":
            out[-1] = (period, out[-1][1])  # 3:30 下午
        else:
            out.append((period, None))
    return out


def _fits(one: str, other: str) -> bool:
    """今晚 and 晚上, 明早 and 清晨: two words for one part of the day."""
    groups = ({"evening", "night", "midnight", "dusk"}, {"morning", "dawn", "forenoon"})
    return one == other or any(one in group and other in group for group in groups)


def alone(period: str) -> Slot:
    if period == "noon":
        return 0, 12, 0, 0
    if period == "midnight":
        return 1, 0, 0, 0
    raise Ask(f"没有说{NAMES[period]}几点，请问用户。")


def _today(choice: Slot | Choice, clock: Clock, now: datetime, *, said: bool) -> datetime:
    """A bare hour, today or (unless 今天 was said) at its next time."""
    zone, today = now.tzinfo, now.date()
    assert isinstance(zone, ZoneInfo)
    if not isinstance(choice, Choice):
        when = _at(today, choice, zone)
        if when > now:
            return _checked(today, choice, now)
        if not said and choice[:3] == (0, 0, clock.minute):
            return _checked(today + timedelta(days=1), choice, now)
        raise _over(when, choice)
    coming = [slot for slot in (choice.early, choice.late) if _at(today, slot, zone) > now]
    if not coming:
        tomorrow = name_of(today + timedelta(days=1))
        raise Ask(
            f"今天的{shown(choice.early)} 和{shown(choice.late)} 都过去了。"
            f"{either(choice, clock.written, tomorrow)}"
        )
    hour = choice.early[1]
    if len(coming) == 2:
        if now.hour >= SMALL_HOURS and hour in MORNING:
            return _checked(today, choice.early, now)
        raise Ask(either(choice, clock.written, "今天"))
    if not said and (hour in range(7, 12)):
        other = f"{name_of(today + timedelta(days=1))}{shown(choice.early)}"
        raise Ask(f"「{clock.written}」是今天{shown(choice.late)}，还是 {other}？")
    return _checked(today, coming[0], now)


def _over(when: datetime, slot: Slot) -> Ask:
    return Ask(
        f"{name_of(when.date())} {when:%H:%M} 已经过去了，请问用户是不是"
        f"{name_of((when + timedelta(days=1)).date())} {when:%H:%M}。"
    )


def _at(day: date, slot: Slot, zone: ZoneInfo) -> datetime:
    days, hour, minute, second = slot
    return localised(day + timedelta(days=days), time(hour, minute, second), zone)


def _checked(day: date, slot: Slot, now: datetime) -> datetime:
    """Raises Ask for the past, and for a time the clocks skip."""
    zone = now.tzinfo
    assert isinstance(zone, ZoneInfo)
    when = _at(day, slot, zone)
    if is_skipped(day + timedelta(days=slot[0]), time(*slot[1:]), zone):
        raise Ask(
            f"{name_of(day)}拨快时钟，没有 {time(*slot[1:]):%H:%M} 这个时刻，请问用户换成几点。"
        )
    if when <= now:
        raise _over(when, slot)
    return when


# -- spans


def _means_later(span: Token, scanned: Scanned) -> bool:
    """十分钟 alone is in ten minutes; 两天 may be how long something takes."""
    return len(scanned.tokens) == 1 and not scanned.rest and span.value[0][0] == "seconds"


def _later(span: Token, now: datetime) -> datetime:
    when, zone = now, now.tzinfo
    assert isinstance(zone, ZoneInfo)
    for unit, count in span.value:
        match unit:
            case "seconds":
                if count != int(count):
                    raise Ask(f"「{span.text}」不是整秒，请问用户具体时间。")
                when = (when.astimezone(UTC) + timedelta(seconds=count)).astimezone(zone)
            case "days":
                moved = when.replace(tzinfo=None) + timedelta(days=count)
                when = localised(moved.date(), moved.time(), zone)
            case "months":
                when = localised(months_on(when.date(), int(count)), when.time(), zone)
            case _:
                raise Ask(f"「{span.text}」不是整天，请问用户具体哪天几点。")
    if when <= now:
        raise Ask(f"「{span.text}」就是现在，请问用户具体时间。")
    return when
