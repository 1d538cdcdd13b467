"""Which hour is meant: what a part of the day makes of it, and what a bare hour is taken for.

The rule for an hour without a part of the day (1 to 11): on a later day 8 to 11 are the morning and
the others are asked about; today it is the one that is still to come, when only one of the two is,
or the morning when both are and it is 7 to 11. 12 is noon. `03:30` and 13 to 23 are as written.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import time

from chathands.times.scanner import Clock, Malformed

Slot = tuple[int, int, int, int]
"""Days after the named one, hour, minute, second."""

NAMES: Mapping[str, str] = {
    "before_dawn": "凌晨", "dawn": "清晨", "morning": "早上", "forenoon": "上午", "noon": "中午",
    "afternoon": "下午", "dusk": "傍晚", "evening": "晚上", "night": "夜里", "midnight": "午夜",
    "am": "上午", "pm": "下午",
}  # fmt: skip


class Ask(Exception):
    """It cannot be decided; `question` (Chinese) is for the person."""

    def __init__(self, question: str) -> None:
        super().__init__(question)
        self.question = question


# Per part of the day: written hour → (days later, hour).
def _spread(*spans: tuple[range, int]) -> dict[int, tuple[int, int]]:
    return {hour: (0, hour + plus) for hours, plus in spans for hour in hours}


_MIDNIGHT: dict[int, tuple[int, int]] = dict.fromkeys((0, 12, 24), (1, 0))
_HOURS: Mapping[str, dict[int, tuple[int, int]]] = {
    "before_dawn": {12: (0, 0)} | _spread((range(7), 0)),
    "dawn": _spread((range(4, 9), 0)),
    "morning": _spread((range(4, 12), 0)),
    "forenoon": _spread((range(6, 13), 0)),
    "noon": _spread((range(11, 15), 0), (range(1, 3), 12)),
    "afternoon": _spread((range(12, 22), 0), (range(1, 10), 12)),
    "dusk": _spread((range(16, 21), 0), (range(4, 9), 12)),
    "evening": _MIDNIGHT | _spread((range(17, 24), 0), (range(5, 12), 12)),
    "night": _MIDNIGHT | _spread((range(20, 24), 0), (range(9, 12), 12)),
    "midnight": _MIDNIGHT,
    "am": {12: (0, 0)} | _spread((range(12), 0)),
    "pm": {12: (0, 12)} | _spread((range(12, 24), 0), (range(1, 12), 12)),
}  # fmt: skip

MORNING = range(8, 12)
"""Bare hours of a later day that are the morning's: what offices mean by 明天九点."""


@dataclass(frozen=True, slots=True)
class Choice:
    """What a bare hour may be; none of it is in the past of a later day."""

    early: Slot
    late: Slot


def check(clock: Clock) -> None:
    """Raises Malformed for what no clock shows."""
    if clock.minute > 59 or clock.second > 59 or clock.lack > 59:
        raise Malformed(f"「{clock.written}」的分钟超过了 59", impossible=True)
    past_midnight = clock.hour == 24 and (clock.minute or clock.second)
    if clock.hour > 24 or past_midnight:
        raise Malformed(f"没有「{clock.written}」这个时刻", impossible=True)


def in_period(period: str, clock: Clock) -> Slot:
    """The hour in that part of the day. Raises Ask, and Malformed for 上午 15 点."""
    check(clock)
    found = _HOURS[period].get(clock.hour)
    if found is None:
        name = NAMES[period]
        if clock.hour > 12 or (clock.hour == 0 and clock.written[:1].isdigit()):
            raise Malformed(f"{name}没有「{clock.written}」", impossible=True)
        raise Ask(f"「{name}{clock.written}」说不准是几点，请用 24 小时制再说一次，例如 15:30。")
    days, hour = found
    return _lacking(days, hour, clock)


def bare(clock: Clock) -> Slot | Choice:
    """An hour without a part of the day. Raises Malformed."""
    check(clock)
    if clock.exact or clock.hour == 0 or 12 <= clock.hour <= 23:
        return _lacking(0, clock.hour, clock)
    if clock.hour == 24:
        return _lacking(1, 0, clock)
    return Choice(_lacking(0, clock.hour, clock), _lacking(0, clock.hour + 12, clock))


def decided(choice: Slot | Choice, written: str, *, day: str = "") -> Slot:
    """On a later day, or on many. Raises Ask."""
    if not isinstance(choice, Choice):
        return choice
    if choice.early[1] in MORNING:
        return choice.early
    raise Ask(either(choice, written, day))


def either(choice: Choice, written: str, day: str = "") -> str:
    """The question which of the two it is."""
    early, late = (f"{day}{shown(slot)}" for slot in (choice.early, choice.late))
    return f"「{written}」是 {early} 还是 {late}？"


def shown(slot: Slot) -> str:
    _, hour, minute, _ = slot
    part = "凌晨" if hour < 6 else "上午" if hour < 12 else "下午" if hour < 18 else "晚上"
    return f"{part} {time(hour, minute):%H:%M}"


def _lacking(days: int, hour: int, clock: Clock) -> Slot:
    minutes = hour * 60 + clock.minute - clock.lack
    days, minutes = (days - 1, minutes + 1440) if minutes < 0 else (days, minutes)
    return days, minutes // 60, minutes % 60, clock.second
