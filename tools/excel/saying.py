"""What people say instead of a file's name: 上个月那个报表, 去年三月的销售, 最新的, 刚才发的."""

from __future__ import annotations

import datetime as dt
import re
import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from chathands.toolbox.files import FileEntry

from .matching import holds, matches, numbers_in, says

_LATEST = re.compile(r"最新|最近|最后|刚刚?才?|刚(?=发|传|上传)")
_VERBS = re.compile(r"(?:上传|发来|发过来|发送|发|传|更新|修改|改)(?:了|过)?(?=的|$)")


@dataclass(frozen=True, slots=True)
class Span:
    """Days from `start` on, before `end`; and the numbers a path has that tells them: all of
    `needed`, and the year where the path has one."""

    start: dt.date
    end: dt.date
    needed: frozenset[int]
    year: int
    quarter: int = 0

    def named_in(self, path: str) -> bool:
        numbers = numbers_in(path)
        years = {number for number in numbers if 1990 <= number <= 2100}
        if years and self.year not in years:
            return False
        if self.quarter:
            sign = f"(?:q{self.quarter}|{self.quarter}季|{'一二三四'[self.quarter - 1]}季)"
            return re.search(sign, path.casefold()) is not None
        if not self.needed:
            return bool(years)
        return self.needed <= numbers

    def holds(self, entry: FileEntry) -> bool:
        return self.start <= dt.datetime.fromtimestamp(entry.modified).date() < self.end


def _month(day: dt.date, back: int) -> Span:
    count = day.year * 12 + day.month - 1 - back
    start = dt.date(count // 12, count % 12 + 1, 1)
    end = dt.date((count + 1) // 12, (count + 1) % 12 + 1, 1)
    return Span(start, end, frozenset({start.month}), start.year)


def _quarter(day: dt.date, back: int) -> Span:
    count = day.year * 4 + (day.month - 1) // 3 - back
    start = dt.date(count // 4, count % 4 * 3 + 1, 1)
    after = count + 1
    end = dt.date(after // 4, after % 4 * 3 + 1, 1)
    return Span(start, end, frozenset(), start.year, count % 4 + 1)


def _year(day: dt.date, back: int) -> Span:
    year = day.year - back
    return Span(dt.date(year, 1, 1), dt.date(year + 1, 1, 1), frozenset(), year)


def _day(day: dt.date, back: int) -> Span:
    start = day - dt.timedelta(days=back)
    end = start + dt.timedelta(days=1)
    return Span(start, end, frozenset({start.month, start.day}), start.year)


def _week(day: dt.date, back: int) -> Span:
    start = day - dt.timedelta(days=day.weekday() + 7 * back)
    # No path has these: weeks are told by when a file was changed.
    return Span(start, start + dt.timedelta(days=7), frozenset({-1}), start.year)


_PHRASES: tuple[tuple[re.Pattern[str], Callable[[dt.date, int], Span], int], ...] = (
    (re.compile(r"上上个?月"), _month, 2),
    (re.compile(r"上个?月份?|last month"), _month, 1),
    (re.compile(r"本月份?|这个?月份?|当月|this month"), _month, 0),
    (re.compile(r"上个?季度?"), _quarter, 1),
    (re.compile(r"本季度?|这个?季度?"), _quarter, 0),
    (re.compile(r"前年"), _year, 2),
    (re.compile(r"去年|上一?年|last year"), _year, 1),
    (re.compile(r"今年|本年|this year"), _year, 0),
    (re.compile(r"上个?(?:周|星期|礼拜)|last week"), _week, 1),
    (re.compile(r"本周|这个?(?:周|星期|礼拜)|this week"), _week, 0),
    (re.compile(r"前天"), _day, 2),
    (re.compile(r"昨天|昨日|yesterday"), _day, 1),
    (re.compile(r"今天|今日|today"), _day, 0),
)


def meant_by(
    said: str, entries: Sequence[FileEntry], now: dt.datetime
) -> tuple[list[FileEntry], bool]:
    """(the files that may be meant, whether by when they were changed and not by their names).

    `entries`: the latest first; the order stays.
    """
    if named := [entry for entry in entries if holds(entry.name, said)]:
        return named, False
    text = unicodedata.normalize("NFKC", said).casefold()
    rest, spans = text, []
    for form, make, back in _PHRASES:
        if match := form.search(rest):
            spans.append(make(now.date(), back))
            rest = rest[: match.start()] + " " + rest[match.end() :]
    rest, latest = _LATEST.subn(" ", rest)
    rest = _VERBS.sub(" ", rest)
    if not (spans or latest):
        found = set(matches(said, [entry.name for entry in entries]))
        return [entry for entry in entries if entry.name in found], False
    about = [entry for entry in entries if says(rest, entry.name, vague=True)]
    if not spans:
        return about[:1], True
    named = [entry for entry in about if all(span.named_in(entry.name) for span in spans)]
    if named:
        return named[:1] if latest else named, False
    changed = [entry for entry in about if all(span.holds(entry) for span in spans)]
    return changed[:1] if latest else changed, True
