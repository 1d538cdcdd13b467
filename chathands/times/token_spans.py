"""Tokens of spans (`两个半小时后`, `每隔三天`) and of times of day (`三点一刻`, `15:30`)."""

from __future__ import annotations

import re
from dataclasses import dataclass

from chathands.times.tokens import UNIT_DAYS, UNIT_SECONDS, Malformed, N, Token, number_in

_SPAN = re.compile(
    rf"(?:(?P<half>半)个?"
    rf"|(?P<count>\d+\.\d+|{N}点[零一二三四五六七八九]+(?=个?(?:小时|钟头|天))|{N})(?P<plus>个半|个)?)"
    rf"(?P<unit>秒钟?|分钟?|刻钟?|小时|钟头|钟|天|周|星期|礼拜|月|年)(?P<after>半(?!个|小时|天))?"
)
_JOIN = re.compile(r"[零又加和,、 ]?(?:零)?")
_AFTER = re.compile(r"(?:以后|之后|过后|后(?!天|日|面|续|台|端|勤)|later)")
BEFORE = re.compile(r"(?:以前|之前|前(?!天|台|端|面|后))")


def _span(match: re.Match[str]) -> tuple[str, float] | None:
    """The unit (`seconds`, `days`, `months`, or `odd`: not a whole number of them) and how many."""
    unit = match["unit"]
    unit = unit if unit in ("钟头", "钟") else unit.removesuffix("钟")
    loose = not (match["plus"] or match["half"])
    if (unit in ("月", "钟") and loose) or (unit == "年" and len(match["count"] or "") > 2):
        return None  # 三月 is March, 2026年 a year
    count = 0.5 if match["half"] else _decimal(match["count"])
    if match["plus"] == "个半" or match["after"]:
        count += 0.5
    if unit in UNIT_SECONDS:
        return "seconds", count * UNIT_SECONDS[unit]
    if unit in UNIT_DAYS:
        size, days = UNIT_DAYS[unit], count * UNIT_DAYS[unit]
        return ("days" if days == int(days) and (size == 1 or count == int(count)) else "odd", days)
    if unit == "月" and count == 0.5:
        return "days", 15.0
    months = count * (12 if unit == "年" else 1)
    return ("months" if months == int(months) else "odd", months)


def _decimal(text: str) -> float:
    whole, point, tenths = text.replace("点", ".").partition(".")
    digits = "".join(str(number_in(c)) for c in tenths)
    return float(f"{number_in(whole)}{point}{digits}")


_LEAD = re.compile(r"(?:再过|再等|过|等)")


def span_at(text: str, at: int) -> Token | None:
    """`过…` and `…后`: after; `…前`: ago; else a span that stands alone."""
    lead = _LEAD.match(text, at)
    position = lead.end() if lead else at
    parts: list[tuple[str, float]] = []
    while (piece := _SPAN.match(text, position)) is not None:
        span = _span(piece)
        if span is None:
            break
        parts.append(span)
        position = piece.end()
        joined = _JOIN.match(text, position)
        if joined is None or _SPAN.match(text, joined.end()) is None:
            break
        position = joined.end()
    if not parts:
        return None
    after, before = _AFTER.match(text, position), BEFORE.match(text, position)
    end = after or before
    kind = "ago" if before else "after" if after or lead else "span"
    return Token(kind, text[at : end.end() if end else position], parts)


# -- times of day


_MINUTES = rf"(?P<half>半)|(?P<quarter>[一1]|[三3]|[两二2])刻|(?P<minute>{N})分?"
CLOCK = re.compile(
    rf"(?:差(?:(?P<lack0>{N})分钟?|(?P<lackq0>[一1])刻钟?)(?:到)?)?"
    rf"(?P<hour>{N})(?:点|时(?!候|间|长|段))(?:钟(?!头))?"
    rf"(?:整|(?:过|零(?=\d))?(?:{_MINUTES})(?!个|小时|钟头|天|月|号|刻)|差(?:(?P<lack>{N})分钟?|(?P<lackq>[一1])刻钟?))?(?:钟(?!头))?"
)
COLON = re.compile(
    r"(?P<half_day0>[ap]m)?(?P<hour>\d{1,2}):(?P<minute>\d{2})(?::(?P<second>\d{2}))?(?!\d)(?P<half_day>[ap]m)?"
)
HALF_DAY = re.compile(r"(?P<hour>\d{1,2})(?P<half_day>[ap]m)")


@dataclass(frozen=True, slots=True)
class Clock:
    hour: int
    minute: int
    written: str
    exact: bool = False
    """It is of 24 hours: `03:30`, `15:30`."""
    second: int = 0
    lack: int = 0
    """Minutes that are still missing: 差五分八点."""


def clock_of(match: re.Match[str]) -> Token | None:
    groups = match.groupdict()
    hour = number_in(groups["hour"])
    minute = 0
    if groups["half"]:
        minute = 30
    elif groups["quarter"]:
        minute = 15 * number_in(groups["quarter"])
    elif groups["minute"]:
        written = groups["minute"]
        minute = number_in(written)
        if minute < 10 and written.isascii() and len(written) == 1 and "分" not in match[0]:
            raise Malformed(f"「{match[0]}」的分钟看不懂")
    lack = 0
    for name in ("lack0", "lack"):
        if groups[name]:
            lack = number_in(groups[name])
    if groups["lackq0"] or groups["lackq"]:
        lack = 15
    return Token("clock", match[0], Clock(hour, minute, match[0], lack=lack))


def colon_of(match: re.Match[str]) -> Token:
    hour = match["hour"]
    exact = len(hour) == 2 and hour[0] == "0"
    second = int(match["second"] or 0)
    clock = Clock(int(hour), int(match["minute"]), match[0], exact=exact, second=second)
    half = match["half_day"] or match["half_day0"]
    return Token("clock", match[0], (half, clock) if half else clock)


def half_day_of(match: re.Match[str]) -> Token:
    return Token("clock", match[0], (match["half_day"], Clock(int(match["hour"]), 0, match[0])))


_EVERY = re.compile(r"每隔?|隔")
_ONE = re.compile(r"个?(秒钟?|分钟|刻钟|小时|钟头)")


def every_at(text: str, at: int) -> Token | None:
    """`每两小时`, `每隔三天`, `每小时`."""
    head = _EVERY.match(text, at)
    if head is None:
        return None
    apart = "隔" in head[0]
    if (piece := _SPAN.match(text, head.end())) is not None:
        span = _span(piece)
        return None if span is None else Token("every", text[at : piece.end()], (*span, apart))
    if (one := _ONE.match(text, head.end())) is not None:
        unit = one[1] if one[1] == "钟头" else one[1].removesuffix("钟")
        value = ("seconds", float(UNIT_SECONDS[unit]), apart)
        return Token("every", text[at : one.end()], value)
    return None
