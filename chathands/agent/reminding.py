"""Has reminders said when they are due: after a restart, late with a note, and never twice.

A loop over the table instead of a scheduler's jobs: the table is what survives, and looking at it
at least once a minute also covers clocks that were set and machines that slept.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from enum import StrEnum
from zoneinfo import ZoneInfo

from chathands.errors import StoreError
from chathands.reminders import Reminder
from chathands.store.reminders import Reminders
from chathands.times import Repeat, WorkCalendar

_log = logging.getLogger(__name__)

LOOK_SECONDS = 60.0
"""At most between two looks at the table: the wall clock may be set meanwhile."""
AGAIN_SECONDS = 10.0
"""Until one that could not be said now is tried again; a new connection does not wait for it."""
SOON_SECONDS = 0.05
"""At least between two looks: a timer may end a hair before the wall clock is there."""
LATE_SECONDS = 90.0
"""After so long a reminder says that it is late, and why the time is another."""
AT_ONCE = 8
"""Sent together: those of one minute, or all that were missed while the bot was away. More looks
like flooding to QQ."""


class Said(StrEnum):
    """What became of one reminder."""

    DONE = "done"
    """It was said, or is written down to be said, or may have been: never again."""
    LATER = "later"
    """Nobody could be told now."""
    NEVER = "never"
    """It may not be said there any more: the bot is off, the tool is forbidden."""


Say = Callable[[Reminder, str, str], Awaitable[Said]]
"""Says a reminder: the row, the text to send, and a key that is this one occasion's. A second call
with a key must say nothing."""


class Reminding:
    """Runs beside everything else: `await run()` until it is cancelled. `wall` gives wall-clock
    seconds; it may jump."""

    def __init__(
        self,
        book: Reminders,
        say: Say,
        calendar: WorkCalendar,
        zone: ZoneInfo,
        *,
        wall: Callable[[], float],
    ) -> None:
        self._book = book
        self._say = say
        self._calendar = calendar
        self._zone = zone
        self._wall = wall
        self._wake = asyncio.Event()
        self._busy: dict[int, asyncio.Task[None]] = {}
        self._told: set[str] = set()
        """Occasions this process has dealt with: should the table not take it, still once."""
        self._width = asyncio.Semaphore(AT_ONCE)
        book.on_change(self._wake.set)

    def look(self) -> None:
        """Look at the table now: somebody can be told who could not be before."""
        self._wake.set()

    async def run(self) -> None:
        try:
            while True:
                self._wake.clear()
                try:
                    seconds = await self._round()
                except StoreError as error:
                    _log.error("reminders cannot be read: %s", error)
                    seconds = LOOK_SECONDS
                try:
                    async with asyncio.timeout(seconds):
                        await self._wake.wait()
                except TimeoutError:
                    pass
        finally:
            for task in self._busy.values():
                task.cancel()
            if self._busy:
                await asyncio.wait(self._busy.values())

    async def _round(self) -> float:
        """Begin to say what is due; gives the seconds until the next look."""
        now = self._wall()
        waiting = False
        for reminder in await self._book.due(now):
            waiting = True
            if reminder.id not in self._busy:
                task = asyncio.create_task(self._remind(reminder), name="chathands-reminder")
                self._busy[reminder.id] = task
                task.add_done_callback(lambda task, number=reminder.id: self._ended(number, task))
        following = await self._book.next_due(now)
        seconds = AGAIN_SECONDS if waiting else LOOK_SECONDS
        if following is not None:
            seconds = min(seconds, max(SOON_SECONDS, following - self._wall()))
        return seconds

    def _ended(self, number: int, task: asyncio.Task[None]) -> None:
        self._busy.pop(number, None)
        if not task.cancelled() and (error := task.exception()) is not None:
            _log.error("reminder %s could not be said", number, exc_info=error)

    async def _remind(self, reminder: Reminder) -> None:
        async with self._width:
            if not await self._book.still(reminder):
                return
            now = self._wall()
            key = f"reminder:{reminder.id}:{reminder.due:.0f}"
            following, missed = self._following(reminder, now)
            if key not in self._told:
                said = await self._say(reminder, self._text(reminder, now, missed), key)
                if said is Said.LATER:
                    return
                self._told.add(key)
                _log.info("reminder %s: %s", reminder.id, said)
            await self._book.advance(reminder, following)
            self._told.discard(key)

    def _following(self, reminder: Reminder, now: float) -> tuple[float | None, int]:
        """The next time after now, and how many between were missed."""
        if reminder.repeat is None:
            return None, 0
        try:
            repeat = Repeat.from_data(reminder.repeat)
        except (KeyError, TypeError, ValueError) as error:
            _log.error("reminder %s repeats no more, it cannot be read: %r", reminder.id, error)
            return None, 0
        missed = 0
        when = repeat.next_after(_moment(reminder.due), self._calendar)
        while when is not None and when.timestamp() <= now:
            missed += 1
            if missed == MOST_MISSED:
                when = repeat.next_after(_moment(now), self._calendar)
                break
            when = repeat.next_after(when, self._calendar)
        return (None if when is None else when.timestamp()), missed

    def _text(self, reminder: Reminder, now: float, missed: int) -> str:
        """What is sent. What the person wrote comes last, so that it cannot pass for ours."""
        due = _moment(reminder.due).astimezone(self._zone)
        late = now - reminder.due
        notes = []
        if late > LATE_SECONDS:
            notes.append(f"本来是 {due:%Y-%m-%d %H:%M} 的，当时我不在线，晚了{_how_long(late)}")
        if missed:
            more = "以上" if missed == MOST_MISSED else ""
            notes.append(f"这之后还错过了 {missed} 次{more}")
        if reminder.repeat is not None and reminder.repeat.get("kind") in _BY_WORKDAYS:
            year = due.year
            if not self._calendar.knows(year):
                notes.append(f"{year} 年的放假安排还没有数据，按周一到周五算")
        note = f"（{'；'.join(notes)}）" if notes else ""
        return f"【提醒 {due:%H:%M}】{note}{reminder.text}"


MOST_MISSED = 100
"""Counted of a repeating one; after a long absence the number says no more."""
_BY_WORKDAYS = ("workdays", "nth_workday")


def _moment(wall: float) -> datetime:
    return datetime.fromtimestamp(wall, UTC)


def _how_long(seconds: float) -> str:
    minutes = max(1, round(seconds / 60))
    if minutes < 60:
        return f" {minutes} 分钟"
    if minutes < 48 * 60:
        return f" {minutes // 60} 小时" + (f" {minutes % 60} 分钟" if minutes % 60 else "")
    return f" {minutes // 1440} 天"
