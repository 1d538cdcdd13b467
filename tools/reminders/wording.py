"""When a reminder is due, and how it is said back. Nothing here keeps anything."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

from chathands.errors import ToolFailed
from chathands.times import Repeat, Unclear, read_time

if TYPE_CHECKING:
    from chathands.reminders import Reminder
    from chathands.settings import Settings

MAX_AHEAD_SECONDS = 2 * 366 * 86400.0
"""Nobody remembers what a reminder of three years ago was about, and the bot may be gone."""
WEEKDAYS = "一二三四五六日"

_CONTROLS = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff]"
)


@dataclass(frozen=True, slots=True)
class Plan:
    due: float
    repeat: Mapping[str, Any] | None
    note: str


def cleaned(text: str) -> str:
    """On few lines, without what cannot be seen."""
    lines = [" ".join(line.split()) for line in _CONTROLS.sub("", text).splitlines()]
    return "\n".join(line for line in lines if line)[:1000]


def reckoned(when: str, wall: float, settings: Settings) -> Plan:
    """The next time and the rest of it. Raises ToolFailed with what to ask."""
    zone = ZoneInfo(settings.timezone)
    now = datetime.fromtimestamp(wall, zone)
    calendar = settings.calendar.work_calendar()
    found = read_time(when, now=now, calendar=calendar)
    if isinstance(found, Unclear):
        raise ToolFailed(f"没有设提醒：{found.sentence}")
    if isinstance(found, Repeat):
        first = found.next_after(now, calendar)
        if first is None:
            raise ToolFailed("没有设提醒：没有这样的日子。")
        note = ""
        if found.kind in ("workdays", "nth_workday") and not calendar.knows(first.year):
            note = f"{first.year} 年的放假安排还没有数据，按周一到周五算。"
        elif found.kind == "months" and any(day > 28 for day in found.on):
            note = "没有这一天的月份不提醒。"
        return Plan(first.timestamp(), found.to_data(), note)
    if found.when.timestamp() - wall > MAX_AHEAD_SECONDS:
        raise ToolFailed("没有设提醒：最远只能设两年以内的。")
    return Plan(found.when.timestamp(), None, found.note)


def said_back(reminder: Reminder, plan: Plan, settings: Settings) -> str:
    """One sentence with the whole date and time."""
    repeat = _repeat_of(reminder)
    when = shown(reminder.due, settings)
    if repeat is not None:
        when = f"{repeat.describe()}，第一次是 {when}"
    where = "" if reminder.group_id is None else "在本群"
    zone = "" if settings.timezone == "Asia/Shanghai" else f"（{settings.timezone} 时间）"
    sentence = f"已设好 {reminder.id} 号提醒：{when}{zone}{where}提醒你「{reminder.text}」。"
    return sentence + plan.note


def line_of(reminder: Reminder, settings: Settings, *, here: str | None) -> str:
    """One line of a list."""
    repeat = _repeat_of(reminder)
    often = "" if repeat is None else f"（{repeat.describe()}）"
    place = ""
    if here is None and reminder.group_id is not None:
        place = f"，在群 {reminder.group_id}"
    return f"{reminder.id} 号：{shown(reminder.due, settings)}{often}{place} {reminder.text}"


def shown(wall: float, settings: Settings) -> str:
    when = datetime.fromtimestamp(wall, ZoneInfo(settings.timezone))
    seconds = f":{when:%S}" if when.second else ""
    return f"{when:%Y-%m-%d}（周{WEEKDAYS[when.weekday()]}）{when:%H:%M}{seconds}"


def _repeat_of(reminder: Reminder) -> Repeat | None:
    if reminder.repeat is None:
        return None
    try:
        return Repeat.from_data(reminder.repeat)
    except (KeyError, TypeError, ValueError):
        return None
