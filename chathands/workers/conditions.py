"""Row conditions as a person or a model writes them: `区域=华东`, `金额>1000`, `日期=2024-09`."""

from __future__ import annotations

import datetime as dt
import operator as operators
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from chathands.workers.cells import (
    Cell,
    is_blank,
    is_number,
    plain,
    read_date,
    read_written,
    show,
    show_number,
)
from chathands.workers.columns import ColumnFinder, NoColumn, SeveralColumns, UnreadCondition

Operator = Literal["=", "!=", ">", ">=", "<", "<=", "in", "not in"]

_SPELLINGS: dict[str, Operator] = {
    "大于等于": ">=",
    "小于等于": "<=",
    "不少于": ">=",
    "不超过": "<=",
    "不包含": "not in",
    "不等于": "!=",
    "not contains": "not in",
    "contains": "in",
    "包含": "in",
    "等于": "=",
    "大于": ">",
    "小于": "<",
    "超过": ">",
    "＞＝": ">=",
    "＜＝": "<=",
    "！＝": "!=",
    ">=": ">=",
    "<=": "<=",
    "!=": "!=",
    "<>": "!=",
    "==": "=",
    "≥": ">=",
    "≤": "<=",
    "≠": "!=",
    "=": "=",
    "＝": "=",
    ">": ">",
    "<": "<",
    "＞": ">",
    "＜": "<",
    "：": "=",
    ":": "=",
}
_OPERATORS = re.compile("|".join(map(re.escape, _SPELLINGS)), re.IGNORECASE)
_JOINTS = re.compile(r"\s+and\s+|\s*(?:&&|[;；]|[,，]?并且|[,，]?且)\s*", re.IGNORECASE)
_CHOICES = re.compile(r"\s*(?:\||｜|或者|或|\s+or\s+)\s*", re.IGNORECASE)

_PERIOD = re.compile(r"(\d{4})(?:\s*[-/.年]\s*(\d{1,2})\s*月?|年)?")
_YEARLESS = re.compile(r"(\d{1,2})月(?:份|(\d{1,2})[日号])?")


_COMPARISONS = {
    "=": operators.eq,
    ">": operators.gt,
    ">=": operators.ge,
    "<": operators.lt,
    "<=": operators.le,
}


@dataclass(frozen=True, slots=True)
class Period:
    """From `start` on, before `end`."""

    start: dt.datetime
    end: dt.datetime


@dataclass(frozen=True, slots=True)
class Condition:
    """`wanted` as written; any of several (`华东|华南`) for `=`, none of them for `!=`."""

    column: int
    operator: Operator
    wanted: tuple[str, ...]
    name: str
    """Of the column."""

    @property
    def text(self) -> str:
        return f"{self.name}{_shown(self.operator)}{'或'.join(self.wanted)}"

    def holds(self, cell: Cell) -> bool:
        if self.operator in ("!=", "not in"):
            positive = "=" if self.operator == "!=" else "in"
            return not any(_holds(cell, positive, wanted) for wanted in self.wanted)
        return any(_holds(cell, self.operator, wanted) for wanted in self.wanted)

    def has(self, cell: Cell, wanted: str) -> bool:
        """Whether the cell is one of the wanted values, whatever the operator makes of it."""
        return _holds(cell, "=", wanted)

    def with_values(self, changed: Mapping[str, str]) -> Condition:
        """The same with other values in place of some."""
        wanted = tuple(changed.get(value, value) for value in self.wanted)
        return replace(self, wanted=tuple(dict.fromkeys(wanted)))


def read_conditions(texts: Sequence[str], finder: ColumnFinder) -> list[Condition]:
    """Conditions that must all hold. Raises Rejected saying what was not understood."""
    return [_read(part, finder) for part in condition_texts(texts)]


def condition_texts(texts: Sequence[str]) -> list[str]:
    """Single conditions; one text may hold several, joined by `且` or `;`."""
    parts = [part.strip() for text in texts for part in _JOINTS.split(text)]
    return [part for part in parts if part]


def has_operator(text: str) -> bool:
    return _OPERATORS.search(text) is not None


def _read(text: str, finder: ColumnFinder) -> Condition:
    """The first operator whose left side is a column: `是否包含发票=是` has two candidates. Other
    words for a column count only where no operator has the very name before it."""
    refused: NoColumn | SeveralColumns | None = None
    for find in (finder.find_plainly, finder.find):
        for match in _OPERATORS.finditer(text):
            name = text[: match.start()].strip().strip("\"'“”「」[]")
            if not name:
                continue
            try:
                column = find(name)
            except NoColumn as error:
                refused = refused or error
                continue
            except SeveralColumns as error:
                refused = error
                continue
            value = text[match.end() :].strip()
            operator = _SPELLINGS[match[0].lower()]
            wanted = tuple(part.strip().strip("\"'“”「」") for part in _CHOICES.split(value))
            return Condition(column, operator, wanted, finder.names[column])
    if refused is not None:
        raise refused
    raise UnreadCondition(
        text,
        f"看不懂条件「{text[:60]}」。请写成 列名=值、列名>数字、列名包含文字 或 日期=2024-09。",
        finder.names,
    )


def _shown(operator: Operator) -> str:
    return {"in": "包含", "not in": "不包含"}.get(operator, operator)


def _holds(cell: Cell, operator: str, wanted: str) -> bool:
    if operator == "in":
        return plain(wanted) in plain(show(cell))
    if operator == "=" and plain(wanted) == plain(show(cell)):
        return True
    if is_blank(cell):
        return False
    moment = read_date(cell)
    if moment is not None:
        return _date_holds(moment, operator, wanted)
    number = _number(cell)
    limit = _number(wanted)
    if number is None or limit is None:
        return False
    if operator == "=":
        return show_number(number) == show_number(limit)
    return _compares(number, operator, limit)


def _compares(left: Any, operator: str, right: Any) -> bool:
    return _COMPARISONS[operator](left, right)


def _number(cell: Cell) -> float | None:
    if is_number(cell):
        return float(cell)
    written = read_written(cell) if isinstance(cell, str) else None
    return written.value if written else None


def _date_holds(moment: dt.datetime, operator: str, wanted: str) -> bool:
    yearless = _YEARLESS.fullmatch(wanted)
    if yearless:  # "9月", "9月10日": whatever the year
        limit = (int(yearless[1]), int(yearless[2] or 0))
        place = (moment.month, moment.day if yearless[2] else 0)
        return _compares(place, operator, limit)
    period = read_period(wanted)
    if period is None:
        return False
    return {
        "=": period.start <= moment < period.end,
        ">": moment >= period.end,
        ">=": moment >= period.start,
        "<": moment < period.start,
        "<=": moment < period.end,
    }[operator]


def read_period(text: str) -> Period | None:
    """The year, month, day or minute a text names."""
    moment = read_date(text)
    if moment is not None:
        whole_day = moment.time() == dt.time()
        return Period(moment, moment + dt.timedelta(days=1) if whole_day else moment + _MINUTE)
    match = _PERIOD.fullmatch(text.strip())
    if not match or not 1900 <= int(match[1]) < 2200:
        return None
    year = int(match[1])
    if match[2] is None:
        return Period(dt.datetime(year, 1, 1), dt.datetime(year + 1, 1, 1))
    month = int(match[2])
    if not 1 <= month <= 12:
        return None
    return Period(dt.datetime(year, month, 1), dt.datetime(year + month // 12, month % 12 + 1, 1))


_MINUTE = dt.timedelta(minutes=1)
