"""Rows in an order a person asks for: `金额`, `金额:降序`, `-金额`, `日期 desc`."""

from __future__ import annotations

import heapq
import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from chathands.workers.cells import Cell, is_blank, is_number, plain, read_date, read_written
from chathands.workers.columns import ColumnFinder, NoColumn, split_names
from chathands.workers.picking import cell_at
from chathands.workers.table import Row

_DOWN = ("从大到小", "由大到小", "从高到低", "由高到低", "倒序", "降序", "desc", "descending")
_UP = ("从小到大", "由小到大", "从低到高", "由低到高", "升序", "正序", "asc", "ascending")
_ORDER = re.compile(rf"[\s:：]*[(（]?\s*({'|'.join(_DOWN + _UP)})\s*[)）]?", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class SortBy:
    column: int
    name: str
    descending: bool

    @property
    def text(self) -> str:
        return f"{self.name} {'从大到小' if self.descending else '从小到大'}"


def read_order(text: str, finder: ColumnFinder) -> list[SortBy]:
    """What to sort by, first thing first; several columns may stand in one text.

    Raises Rejected when there is no such column.
    """
    return [_read(part, finder) for part in split_names([text], finder.names)]


def _read(text: str, finder: ColumnFinder) -> SortBy:
    text = unicodedata.normalize("NFKC", text).strip()
    try:
        return SortBy(at := finder.find_plainly(text), finder.names[at], False)
    except NoColumn:
        pass
    found = next((m for m in _ORDER.finditer(text) if m.end() == len(text)), None)
    name = text[: found.start()] if found else text
    descending = found is not None and found[1].lower() in _DOWN
    if name.startswith(("-", "+")):
        descending, name = descending or name[0] == "-", name[1:]
    at = finder.find(name.strip())
    return SortBy(at, finder.names[at], descending)


def first_rows(rows: Iterable[Row], orders: Sequence[SortBy], most: int) -> list[Row]:
    """The first `most` rows in that order, blanks last; holds no more than these."""

    def key(row: Row) -> list[Any]:
        return [_key(cell_at(row, order.column), order.descending) for order in orders]

    return heapq.nsmallest(most, rows, key=key)


def _key(cell: Cell, descending: bool) -> tuple[int, Any]:
    """Numbers (also those written as text) before dates before words before blanks, whichever
    way; codes are words."""
    value: Any
    if is_blank(cell):
        return 3, 0
    if is_number(cell):
        rank, value = 0, cell
    elif (moment := read_date(cell)) is not None:
        rank, value = 1, moment
    else:
        written = read_written(cell) if isinstance(cell, str) else None
        rank, value = (0, written.value) if written else (2, plain(str(cell)))
    return rank, _Falling(value) if descending else value


@dataclass(frozen=True, slots=True)
class _Falling:
    value: Any

    def __lt__(self, other: _Falling) -> bool:
        return other.value < self.value
