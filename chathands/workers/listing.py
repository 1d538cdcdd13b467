"""The sheets of a workbook: how large each is and what its columns are called."""

from __future__ import annotations

from typing import Any, BinaryIO

from chathands.workers.protocol import Rejected
from chathands.workers.table import NoRows
from chathands.workers.workbook import each_sheet

SHEETS_LISTED = 30
COLUMNS_LISTED = 40


def list_sheets(payload: dict[str, Any], file: BinaryIO) -> dict[str, Any]:
    """`payload`: as for open_tables. JSON-safe: sheets (name or None, hidden, and rows, columns,
    names, header_row, notes, or problem), more (how many are not listed).

    Each sheet is read to its end: what a file says of its own size is often wrong.
    """
    sheets: list[dict[str, Any]] = []
    more = 0
    for name, hidden, table in each_sheet(payload, file):
        if len(sheets) == SHEETS_LISTED:
            more += 1
            continue
        about: dict[str, Any] = {"name": name, "hidden": hidden}
        if isinstance(table, NoRows):
            about["problem"] = "空的"
        elif isinstance(table, Rejected):
            about["problem"] = table.sentence
        else:
            about |= {
                "rows": sum(1 for _ in table.rows()),
                "columns": len(table.columns),
                "names": table.columns[:COLUMNS_LISTED],
                "header_row": table.header_row,
                "notes": table.notes,
            }
        sheets.append(about)
    return {"sheets": sheets, "more": more}
