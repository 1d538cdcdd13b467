"""What rows are grouped by: a column, or the year, quarter, month or day of a date column."""

from __future__ import annotations

import datetime as dt
import re
from dataclasses import dataclass, field

from chathands.workers.cells import Cell, read_date, show
from chathands.workers.columns import ColumnFinder, called

_UNIT = re.compile(r"(.+?)(?:[:：/(（]|按)(年|季|季度|月|月份|日|天|year|quarter|month|day)[)）]?")
_UNITS = {
    "年": "year",
    "年份": "year",
    "year": "year",
    "季": "quarter",
    "季度": "quarter",
    "quarter": "quarter",
    "月": "month",
    "月份": "month",
    "month": "month",
    "日": "day",
    "天": "day",
    "day": "day",
}

_KNOWN = 10_000


@dataclass(frozen=True, slots=True)
class Grouping:
    column: int
    title: str
    unit: str | None = None
    _known: dict[Cell, str] = field(default_factory=dict, compare=False, repr=False)
    """Keys of dates and texts seen before: the same few thousand come back in every large sheet."""

    def key(self, cell: Cell) -> str:
        """The group the cell's row belongs to."""
        if not isinstance(cell, str | dt.date):  # 1, 1.0 and True are equal and shown differently
            return self._key(cell)
        key = self._known.get(cell)
        if key is None:
            key = self._key(cell)
            if len(self._known) < _KNOWN:
                self._known[cell] = key
        return key

    def _key(self, cell: Cell) -> str:
        if self.unit is not None:
            moment = read_date(cell)
            if moment is not None:
                return {
                    "year": f"{moment.year}",
                    "quarter": f"{moment.year}Q{(moment.month + 2) // 3}",
                    "month": f"{moment.year}-{moment.month:02}",
                    "day": moment.date().isoformat(),
                }[self.unit]
        return show(cell) or "（空）"


def read_grouping(text: str, finder: ColumnFinder, dates: list[int]) -> Grouping:
    """`日期:月`, `区域`, or just `月份` where there is one date column only (`dates`: all of them).

    The unit is read before other words for a column are tried: they would swallow it. Raises
    Rejected when there is no such column.
    """
    names = finder.names
    if not called(text, names):
        if match := _UNIT.fullmatch(text):
            return _by_unit(finder.find(match[1]), match[2], finder)
        if text.casefold() in _UNITS and len(dates) == 1:
            return _by_unit(dates[0], text, finder)
    at = finder.find(text)
    return Grouping(at, names[at])


def _by_unit(at: int, unit: str, finder: ColumnFinder) -> Grouping:
    unit = unit.casefold()
    return Grouping(at, f"{finder.names[at]}（{unit}）", _UNITS[unit])
