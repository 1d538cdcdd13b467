"""A table as a tool's result: cells stay what they are, written as Markdown to size.

The same Markdown is what the group chat draws as a picture and the terminal shows.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import date, time
from decimal import Decimal
from enum import Enum
from typing import Any

from chathands.conversation import canonical_json
from chathands.toolbox.render import TAIL_SHARE, Excerpt, cleaned

LONGEST_CELL = 500
"""Characters of one cell a model gets; a text this long is no table any more."""

_BREAK = re.compile(r"\s*[\n\r\t\x85\u2028\u2029]+\s*")
_PIPE = re.compile(r"(\\*)\|")


class Table:
    """Rows and columns as a tool's result: `Table(["编号", "金额"], [["00123", 5.5], …])`.

    A row is a sequence of cells, or a mapping by column name. A row shorter than the columns ends
    in empty cells. Raises TypeError or ValueError for what is no table.
    """

    __slots__ = ("columns", "note", "rows", "title")

    def __init__(
        self,
        columns: Sequence[str],
        rows: Iterable[Sequence[Any] | Mapping[str, Any]],
        title: str | None = None,
        note: str | None = None,
    ) -> None:
        if isinstance(columns, str) or isinstance(rows, str):
            raise TypeError("columns are a list of names, rows a list of rows")
        self.columns = tuple(str(column) for column in columns)
        if not self.columns:
            raise ValueError("a table needs at least one column")
        self.rows = tuple(self._row(number, row) for number, row in enumerate(rows, 1))
        self.title = title
        self.note = note

    def _row(self, number: int, row: Any) -> tuple[Any, ...]:
        width = len(self.columns)
        if isinstance(row, Mapping):
            if unknown := [key for key in row if key not in self.columns]:
                raise ValueError(f"row {number} has {unknown[0]!r}, which is no column")
            return tuple(row.get(column) for column in self.columns)
        if isinstance(row, str | bytes) or not isinstance(row, Iterable):
            raise TypeError(f"row {number} is no list of cells but {type(row).__name__}")
        cells = tuple(row)
        if len(cells) > width:
            raise ValueError(f"row {number} has {len(cells)} cells, the table {width} columns")
        return cells + (None,) * (width - len(cells))

    def __repr__(self) -> str:
        return f"Table({len(self.rows)} rows of {list(self.columns)!r})"

    def cells(self) -> list[tuple[str, ...]]:
        """The rows as people read them."""
        return [tuple(map(shown, row)) for row in self.rows]

    def markdown(self) -> str:
        """All of it, for people."""
        lines = _lines(self.columns, self.cells())
        return "\n".join(filter(None, [_text(self.title), *lines, _text(self.note)]))

    def for_model(self, limit: int) -> str:
        """At most about `limit` characters: the first rows and the last, with the true size."""
        size = f"共 {len(self.rows)} 行 {len(self.columns)} 列"
        title, note = _text(self.title)[:LONGEST_CELL], _text(self.note)[: 2 * LONGEST_CELL]
        room = limit - len(title) - len(note) - 60  # the line with the size
        room -= sum(len(line) + 1 for line in _lines(map(_short, self.columns), []))
        head, tail = self._ends(room)
        left_out = len(self.rows) - len(head) - len(tail)
        opening = f"{title}（{size}）" if title else f"{size}。"
        if left_out:
            which = f"前 {len(head)} 行" + (f"和最后 {len(tail)} 行" if tail else "")
            opening += f"下面只有{which}，省略了 {left_out} 行。"
            # A row of its own, so that what follows still is the same table.
            head = [*head, ("……", *[""] * (len(self.columns) - 1))]
        lines = [opening, *_lines(map(_short, self.columns), [*head, *tail]), note]
        text = "\n".join(filter(None, lines))
        return Excerpt(text) if left_out else text

    def _ends(self, room: int) -> tuple[list[tuple[str, ...]], list[tuple[str, ...]]]:
        """Rows from the beginning and from the end that fit; always the first one."""
        whole: list[tuple[str, ...]] = []
        used = head_used = fitting = 0
        for row in self.rows:
            cells = tuple(_short(shown(cell)) for cell in row)
            used += _width(cells)
            if used > room and whole:
                break
            whole.append(cells)
            if used <= room * (1 - TAIL_SHARE) or fitting == 0:
                fitting, head_used = len(whole), used
        if len(whole) == len(self.rows):
            return whole, []
        tail: list[tuple[str, ...]] = []
        left = room - head_used - _width(("……", *[""] * (len(self.columns) - 1)))
        for row in reversed(self.rows[fitting:]):
            cells = tuple(_short(shown(cell)) for cell in row)
            left -= _width(cells)
            if left < 0:
                break
            tail.append(cells)
        return whole[:fitting], tail[::-1]


def shown(cell: Any) -> str:
    """A cell as a person reads it. Text stays as it is (`00123`), nothing is empty, dates are ISO,
    numbers have no noise behind the fifteenth digit and no exponent."""
    if isinstance(cell, str):
        return cleaned(str.__str__(cell))
    if cell is None or _is_missing(cell):
        return ""
    if hasattr(cell, "item") and hasattr(cell, "dtype"):
        cell = cell.item()  # a number of numpy
    if isinstance(cell, Enum):
        return shown(cell.value)
    if isinstance(cell, bool):
        return "是" if cell else "否"
    if isinstance(cell, float):
        if not math.isfinite(cell):
            return str(cell)
        from chathands.workers.cells import show_number

        return show_number(cell)
    if isinstance(cell, int | Decimal):
        return str(cell)
    if isinstance(cell, date | time):
        return cell.isoformat()
    if isinstance(cell, Mapping | list | tuple | set | frozenset):
        try:
            return cleaned(
                canonical_json(list(cell) if isinstance(cell, set | frozenset) else cell)
            )
        except (TypeError, ValueError):
            return cleaned(str(cell))
    if isinstance(cell, bytes | bytearray | memoryview):
        raise TypeError("a cell of a table cannot be bytes")
    return cleaned(str(cell))


def _is_missing(cell: Any) -> bool:
    """NaN, NaT and pandas' NA are not equal to themselves, or will not say."""
    try:
        return bool(cell != cell)
    except (TypeError, ValueError):
        return type(cell).__name__ == "NAType"


def _short(text: str) -> str:
    text = _BREAK.sub(" ", text)
    if len(text) <= LONGEST_CELL:
        return text
    return f"{text[:LONGEST_CELL]}…（共 {len(text)} 字）"


def _width(cells: Iterable[str]) -> int:
    return sum(len(_escaped(cell)) + 3 for cell in cells) + 2


def _text(text: str | None) -> str:
    return _BREAK.sub(" ", cleaned(str(text))).strip() if text else ""


def _lines(columns: Iterable[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Markdown without padding: blanks are tokens, too."""
    from tabulate import tabulate

    headers = [_escaped(column) for column in columns]
    lines = tabulate(
        [[_escaped(cell) for cell in row] for row in rows],
        headers=headers,
        tablefmt="pipe",
        disable_numparse=True,  # it would turn `1e5` into 100000 and `00123` into 123
        stralign=None,
        numalign=None,
    ).split("\n")
    return [lines[0], "|" + "---|" * len(headers), *lines[2:]]


def _escaped(cell: str) -> str:
    """On one line, with `|` escaped (and the backslashes before it, which would undo that)."""
    return _PIPE.sub(r"\1\1\\|", _BREAK.sub(" ", cell).strip())
