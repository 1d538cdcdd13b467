"""What a time phrase means: a moment, a time that repeats, or what has to be asked.

    >>> read_time("明天下午三点", now=..., calendar=WorkCalendar())
    Moment(when=datetime(..., 15, 0, tzinfo=ZoneInfo("Asia/Shanghai")), note="")

Nothing is guessed in silence: a phrase in which a word about time is left over, or that has two
readings no rule decides between, is `Unclear`. The rules are in `hours.py` and here: a day without
a time of day is at `DEFAULT_TIME` (a note says so), a weekday without 这 or 下 is the next one, a
day of the month that is over is next month's, weeks begin on Monday. Pure: the
clock is an argument.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import date, datetime, time
from zoneinfo import ZoneInfo

from chathands.times.calendar import WorkCalendar
from chathands.times.days import day_said, shifted
from chathands.times.hours import Ask
from chathands.times.moments import moment_of
from chathands.times.repeating import repeat_of
from chathands.times.repeats import Repeat
from chathands.times.scanner import Malformed, Scanned, Token, normal, scan

DEFAULT_TIME = time(9)
MAX_PHRASE = 200
"""Characters: nobody says a time in more, and the scanner is tried at each."""

NOT_UNDERSTOOD = (
    "没看懂「{phrase}」里的「{rest}」。只写时间再试一次，例如：明天下午三点、每周一 09:00。"
)
NO_TIME = "「{phrase}」里没有看到时间。请问用户什么时候。"
NO_DAY = "「{phrase}」里没有看到是哪一天，只写日期，例如：2026-05-01、明天、下周一。"
VAGUE = "「{word}」没有说准是什么时候，请问用户具体时间。"

_CUT = re.compile(
    r"(?:提醒|叫|通知|喊|催|告诉)(?:一下)?(?:我们|我|大家|他们|她们|他|她|咱们)(?:一下)?"
)
_ABOUT_TIME = re.compile(
    r"[\d零〇一二两三四五六七八九十百半几点时分秒刻号日天周月年早晚午夜晨前后初末底隔每次]"
)
_REPEATING = ("daily", "workdays", "every", "nth", "nth_workday", "monthly", "yearly")
_CLOCKS = ("clock", "after", "span", "ago")


@dataclass(frozen=True, slots=True)
class Moment:
    when: datetime
    """Aware, later than now."""
    note: str = ""
    """What was assumed, a Chinese sentence; empty when nothing was."""


@dataclass(frozen=True, slots=True)
class Unclear:
    """`sentence` (Chinese) says what to ask, or why there is no such time (`impossible`)."""

    sentence: str
    impossible: bool = False


def read_time(
    phrase: str, *, now: datetime, calendar: WorkCalendar, default: time = DEFAULT_TIME
) -> Moment | Repeat | Unclear:
    """Never raises for anything that stands in `phrase`; `now` is aware, its zone (a ZoneInfo) is
    the one that is meant."""
    assert isinstance(now.tzinfo, ZoneInfo)
    short = " ".join(phrase.split())
    if len(short) > MAX_PHRASE:
        return Unclear("时间写得太长了，只写什么时候，不要写要做什么。")
    try:
        scanned = _scanned(normal(short), short)
        if isinstance(scanned, datetime):
            found = moment_of_stamp(scanned, now)
        elif _repeats(scanned):
            return repeat_of(scanned, now, calendar, default)
        else:
            found = moment_of(scanned, now, calendar, default)
        return Moment(*found)
    except Ask as ask:
        return Unclear(ask.question)
    except Malformed as fault:
        return Unclear(f"{fault}。请问用户是哪一个时间。", impossible=fault.impossible)
    except OverflowError:
        return Unclear("这个时间太远了。", impossible=True)


def moment_of_stamp(when: datetime, now: datetime) -> tuple[datetime, str]:
    if when <= now:
        raise Ask(f"{when:%Y-%m-%d %H:%M} 已经过去了，请问用户是哪一个时间。")
    return when.astimezone(now.tzinfo), ""


def read_day(phrase: str, *, today: date, calendar: WorkCalendar) -> date | Unclear:
    """The day that is meant, which may be over; never raises for anything in `phrase`."""
    short = " ".join(phrase.split())
    if len(short) > MAX_PHRASE:
        return Unclear("日期写得太长了，只写哪一天。")
    try:
        scanned = scan(normal(short))
        spans = scanned.all("after", "ago")
        if _repeats(scanned) or scanned.has("clock", "period", "day_period", "bounds"):
            return Unclear(f"「{phrase}」不是一个日子，只写日期，例如：2026-05-01、明天、下周一。")
        _checked(scanned, short)
        day = day_said(scanned, today, calendar, past=True)
        if len(spans) == 1 and day is None:
            return shifted(today, spans[0])
        if day is None or spans:
            return Unclear(NO_DAY.format(phrase=short))
        return day
    except Ask as ask:
        return Unclear(ask.question)
    except Malformed as fault:
        return Unclear(f"{fault}。请问用户是哪一天。", impossible=fault.impossible)
    except OverflowError:
        return Unclear("这个日期太远了。", impossible=True)


def _repeats(scanned: Scanned) -> bool:
    """Whether it comes again."""
    return scanned.has(*_REPEATING) or any(
        token.value["every"] for token in scanned.all("weekday", "week")
    )


def _scanned(text: str, phrase: str) -> Scanned | datetime:
    """The part of the sentence that says when. Raises Ask."""
    try:
        stamp = datetime.fromisoformat(text.upper())
        if stamp.tzinfo is not None:
            return stamp
    except ValueError:
        pass
    cut = _CUT.search(text)
    if cut is None:
        return _checked(scan(text), phrase)
    before, after = scan(text[: cut.start()]), scan(text[cut.end() :])
    if not after.tokens:
        return _checked(before, phrase)
    if not before.tokens:
        return _checked(after, phrase)
    if after.has(*_CLOCKS):
        raise Ask(f"「{phrase}」里有两处时间，请问用户在哪个时间提醒。")
    return _checked(before, phrase)


def _checked(scanned: Scanned, phrase: str) -> Scanned:
    """Raises Ask when something about time was not read, or more than one thing was said."""
    for token in scanned.all("vague", "weekday_or_hour", "weekend", "year", "or"):
        raise Ask(_question(token, phrase))
    if _ABOUT_TIME.search(scanned.rest):
        raise Ask(NOT_UNDERSTOOD.format(phrase=phrase, rest=scanned.rest[:20]))
    if not [token for token in scanned.tokens if token.kind not in ("bounds", "to", "and")]:
        raise Ask(NO_TIME.format(phrase=phrase))
    if before := scanned.all("before"):
        raise Ask(f"「{phrase}」要提前多久？请问用户具体在几点提醒（「{before[0].text}」不够准）。")
    first = scanned.tokens[0].kind
    if scanned.has("to") and not (first == "to" and len(scanned.all("to")) == 1):
        raise Ask(f"「{phrase}」像是一段时间，请问用户在哪个时刻提醒。")
    return scanned


def _question(token: Token, phrase: str) -> str:
    match token.kind:
        case "weekday_or_hour":
            return f"「{token.text}点」是说星期几，还是说几点？请问用户具体哪天几点。"
        case "weekend":
            return f"「{token.text}」是周六还是周日、几点？请问用户。"
        case "year":
            return f"「{phrase}」没有说是哪一天，请问用户。"
        case "or":
            return f"「{phrase}」里有两个时间，请问用户要哪一个。"
    return VAGUE.format(word=token.text)
