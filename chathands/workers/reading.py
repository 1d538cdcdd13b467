"""Rows of a table as shown text: the first ones, or those that meet conditions, in an order."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any, BinaryIO

from chathands.workers.cells import Cell, is_blank, is_number, is_plain_number, show
from chathands.workers.columns import ColumnFinder
from chathands.workers.conditions import Condition, read_conditions
from chathands.workers.fitting import fitting_table
from chathands.workers.picking import Sieve
from chathands.workers.plan import value_readings
from chathands.workers.protocol import Rejected
from chathands.workers.sorting import SortBy, first_rows, read_order
from chathands.workers.table import Row, Table
from chathands.workers.values import LARGE
from chathands.workers.workbook import open_tables

CELL_LENGTH = 200
"""Characters of one shown cell; a remark column must not eat the prompt."""

COLUMNS_SHOWN = 20

FURTHEST = 100_000
"""Rows that may be held to sort them; a person does not read that far."""


@dataclass(frozen=True, slots=True)
class Asked:
    """Which rows and columns, in terms of one table."""

    columns: list[int]
    conditions: list[Condition]
    orders: list[SortBy]
    readings: list[str]


@dataclass(slots=True)
class Selection:
    """A table, walked to its end, and what was kept of it."""

    table: Table
    asked: Asked
    sieve: Sieve | None
    kept: list[Row]
    used_columns: set[int]
    total: int

    @property
    def matched(self) -> int:
        return self.total if self.sieve is None else self.sieve.used

    @property
    def notes(self) -> list[str]:
        return self.table.notes + (self.sieve.notes() if self.sieve else [])

    def existing(self) -> list[int]:
        """Columns that have a name or a cell; one that has neither is only formatting."""
        names, used, named = self.table.columns, self.used_columns, self.table.named
        return [
            at for at, name in enumerate(names) if at in used or (named and not _by_letter(name))
        ]


def read_table(payload: dict[str, Any], file: BinaryIO) -> dict[str, Any]:
    """`limit` rows from `offset` on as shown text; `where` and `sort_by` may be absent.

    JSON-safe: sheet, others, header_row, titles, columns (all names), shown (names), rows, numeric
    (per shown column), total_rows, matched_rows, offset, conditions and order (phrases or ""),
    notes, readings (a phrase for each name or value that was taken in other words).
    """
    offset = int(payload.get("offset") or 0)
    if payload.get("sort_by") and offset > FURTHEST:
        raise Rejected(f"排序后最多看到第 {FURTHEST} 行，请用 where 缩小范围。")
    selection = select(payload, file, offset, int(payload["limit"]))
    table, asked, kept = selection.table, selection.asked, selection.kept
    names, exists = table.columns, selection.existing()
    shown = (list(dict.fromkeys(asked.columns)) or exists)[:COLUMNS_SHOWN]
    cells = [row.cells for row in kept]
    return {
        "sheet": table.sheet,
        "others": table.others,
        "header_row": table.header_row,
        "titles": table.titles,
        "columns": [names[at] for at in exists],
        "shown": [names[at] for at in shown],
        "rows": [[_cut(row[at] if at < len(row) else "") for at in shown] for row in cells],
        "numeric": [_is_numeric(at, cells) for at in shown],
        "total_rows": selection.total,
        "matched_rows": selection.matched,
        "offset": offset,
        "conditions": " 且 ".join(condition.text for condition in asked.conditions),
        "order": "，".join(order.text for order in asked.orders),
        "notes": selection.notes + _rounded_away(cells, shown, names),
        "readings": asked.readings,
    }


def _rounded_away(rows: list[list[Cell]], shown: list[int], names: list[str]) -> list[str]:
    """Codes that were typed as numbers: what spreadsheets keep of them is not the code."""

    def large(cell: Cell) -> bool:
        return is_number(cell) and abs(cell) >= LARGE

    return [
        f"列「{names[at]}」有超过 15 位的数字，末几位已被表格软件改掉，不是原来的编号"
        for at in shown
        if any(at < len(row) and large(row[at]) for row in rows)
    ]


def select(payload: dict[str, Any], file: BinaryIO, offset: int, most: int) -> Selection:
    """Rows `offset` to `offset + most` of those that are meant. Raises Rejected."""

    def fit(_: Table, finder: ColumnFinder) -> Asked:
        columns = [finder.find(name) for name in payload.get("columns") or []]
        conditions = read_conditions(payload.get("where") or [], finder)
        orders = read_order(payload.get("sort_by") or "", finder)
        return Asked(columns, conditions, orders, finder.readings)

    # Conditions and an order are about records: a summary often has the same columns.
    largest = bool(payload.get("where") or payload.get("sort_by"))
    table, asked = fitting_table(payload, file, fit, largest=largest)
    selection = _walked(table, asked, offset, most)
    if selection.sieve is not None and (meant := selection.sieve.meant()):
        notes = list(table.notes)
        table = next(open_tables(payload | {"sheet": table.sheet}, file, remarks=False))
        table.notes[:] = notes
        asked = replace(
            asked,
            conditions=[c.with_values(meant.get(c, {})) for c in asked.conditions],
            readings=list(dict.fromkeys(asked.readings + value_readings(meant))),
        )
        selection = _walked(table, asked, offset, most)
    return selection


def _walked(table: Table, asked: Asked, offset: int, most: int) -> Selection:
    """Totals are left out where rows are chosen or ranked; else the sheet is shown as it is."""
    picky = bool(asked.conditions or asked.orders)
    sieve = Sieve(asked.conditions) if picky else None
    used: set[int] = set()
    count = 0

    def seen(rows: Iterable[Row]) -> Iterator[Row]:
        nonlocal count
        width = 0
        for row in rows:
            count += 1
            if len(used) < width or len(row.cells) > width:
                width = max(width, len(row.cells))
                used.update(at for at, cell in enumerate(row.cells) if cell != "")
            yield row

    rows = seen(sieve.rows(table) if sieve else table.rows())
    if asked.orders:
        kept = first_rows(rows, asked.orders, offset + most)[offset:]
    else:
        kept = list(islice(rows, offset, offset + most))
        for _ in rows:  # to the end: only then is the size known, and every remark made
            pass
    total = sieve.walked if sieve else count
    return Selection(table, asked, sieve, kept, used, total)


def _by_letter(name: str) -> bool:
    return name.endswith("列") and name[:-1].isascii() and name[:-1].isupper()


def _cut(cell: Cell) -> str:
    text = show(cell)
    return text if len(text) <= CELL_LENGTH else f"{text[:CELL_LENGTH]}…（共 {len(text)} 字）"


def _is_numeric(at: int, rows: list[list[Cell]]) -> bool:
    cells = [row[at] for row in rows if at < len(row) and not is_blank(row[at])]
    return bool(cells) and all(
        is_number(cell) or (isinstance(cell, str) and is_plain_number(cell)) for cell in cells
    )
