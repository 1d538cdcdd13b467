"""The first rows of a table as shown text."""

from __future__ import annotations

from typing import Any, BinaryIO

from chathands.workers.cells import Cell, is_blank, is_number, is_plain_number, show
from chathands.workers.columns import ColumnFinder
from chathands.workers.fitting import fitting_table
from chathands.workers.table import Table

CELL_LENGTH = 200
"""Characters of one shown cell; a remark column must not eat the prompt."""

COLUMNS_SHOWN = 20


def read_table(payload: dict[str, Any], file: BinaryIO) -> dict[str, Any]:
    """The first `limit` rows as shown text. JSON-safe: sheet, others, header_row, titles, columns
    (all names), shown (positions), rows, numeric (per shown column), total_rows, notes, readings
    (a phrase for each column that was asked for by another name)."""
    wanted = payload.get("columns") or []

    def fit(_: Table, finder: ColumnFinder) -> tuple[list[int], list[str]]:
        return [finder.find(name) for name in wanted], finder.readings

    table, (chosen, readings) = fitting_table(payload, file, fit)
    limit = int(payload["limit"])
    kept: list[list[Cell]] = []
    used: set[int] = set()
    total = 0
    for row in table.rows():
        total += 1
        used.update(at for at, cell in enumerate(row.cells) if cell != "")
        if len(kept) < limit:
            kept.append(row.cells)
    # A column that has neither a name nor a cell is only formatting.
    names = table.columns
    exists = [
        at for at, name in enumerate(names) if at in used or (table.named and not _by_letter(name))
    ]
    shown = (list(dict.fromkeys(chosen)) or exists)[:COLUMNS_SHOWN]
    return {
        "sheet": table.sheet,
        "others": table.others,
        "header_row": table.header_row,
        "titles": table.titles,
        "columns": [names[at] for at in exists],
        "shown": [names[at] for at in shown],
        "rows": [[_cut(cells[at] if at < len(cells) else "") for at in shown] for cells in kept],
        "numeric": [_is_numeric(at, kept) for at in shown],
        "total_rows": total,
        "notes": table.notes,
        "readings": readings,
    }


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
