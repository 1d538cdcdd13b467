"""Result workbooks: rows or statistics of a file, or rows that were handed in, as an .xlsx.

Written in a child like everything about workbooks: 500,000 cells take 150 MB and some seconds.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import math
import re
from collections.abc import Iterable, Iterator, Sequence
from io import BytesIO
from typing import Any, BinaryIO

from openpyxl import Workbook
from openpyxl.cell import WriteOnlyCell
from openpyxl.styles import Font
from openpyxl.utils import get_column_letter

from chathands.workers.aggregate import grouped, work
from chathands.workers.cells import EXACT_DIGITS, Cell, show
from chathands.workers.protocol import MADE_BYTES, Rejected
from chathands.workers.reading import select
from chathands.workers.sorting import read_order
from chathands.workers.table import Row

try:
    import resource
except ImportError:  # Windows: nothing limits what a child writes there
    resource = None

MOST_CELLS = 500_000
"""Written in 8 s; the file is then near what may be attached to a reply."""

MOST_ROWS = 1_048_575
"""Of a sheet, under its header."""

_CELL_CAP = 32_767
"""Characters of a cell; Excel calls a file with a longer one damaged."""

_UNPRINTABLE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]|_x[0-9A-Fa-f]{4}_")
"""What XML cannot hold; and what readers take for an escaped character."""

_FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")
"""A cell that begins so is run as a formula by one program or another (OWASP, CSV injection; the
full-width forms by Excel in East Asian locales)."""

_SHEET_NAME = re.compile(r"[\[\]:*?/\\\x00-\x1f]")


def export_table(payload: dict[str, Any], file: BinaryIO) -> dict[str, Any]:
    """With a `function` the statistic that aggregate_table gives, else the rows that read_table
    gives, all of them, in a workbook (`blob`).

    `payload`: as for those two, and title. JSON-safe but for `blob`: sheet, what (a phrase),
    headers, preview (the first rows, shown text), row_count, notes, readings. Raises Rejected.
    """
    if payload.get("function"):
        return _statistic(payload, file)
    # One more than may be written tells whether there are too many.
    selection = select(payload, file, 0, MOST_CELLS)
    table, asked = selection.table, selection.asked
    columns = list(dict.fromkeys(asked.columns)) or selection.existing()
    _check_size(selection.matched, len(columns))
    headers = [table.columns[at] for at in columns]

    def cells(row: Row) -> list[Cell]:
        return [row.cells[at] if at < len(row.cells) else "" for at in columns]

    rows = [cells(row) for row in selection.kept]
    phrases = [c.text for c in asked.conditions]
    phrases += [f"按{order.text}排" for order in asked.orders]
    return _made(payload, headers, rows) | {
        "sheet": table.sheet,
        "what": "，".join(phrases) or "全部行",
        "notes": selection.notes,
        "readings": asked.readings,
    }


def _statistic(payload: dict[str, Any], file: BinaryIO) -> dict[str, Any]:
    worked = work(payload, file)
    plan = worked.plan
    groups = grouped(worked, "usual")
    headers = [grouping.title for grouping in plan.groupings] + plan.titles
    _check_size(len(groups.keys), len(headers))

    def value(at: int, number: float) -> Any:
        if math.isnan(number):
            return ""
        if not plan.columns:
            return int(number)
        column = plan.columns[at]
        if column.reading == "dates":
            return plan.shown(at, number)
        return column.rounded(number, plan.extra_decimals)

    rows = [
        [*key, *(value(at, number) for at, number in enumerate(values))]
        for key, values in zip(groups.keys, groups.values, strict=True)
    ]
    percents = [
        len(plan.groupings) + at for at, column in enumerate(plan.columns) if column.all_percent
    ]
    if payload.get("sort_by"):
        rows = _sorted(rows, headers, payload["sort_by"])
    description = worked.describe()
    return _made(payload, headers, rows, percents) | {
        "sheet": description["sheet"],
        "what": description["what"],
        "notes": worked.notes,
        "readings": description["readings"],
    }


def _sorted(rows: list[list[Any]], headers: list[str], text: str) -> list[list[Any]]:
    from chathands.workers.columns import ColumnFinder
    from chathands.workers.sorting import first_rows

    orders = read_order(text, ColumnFinder(headers, loose=True))
    return [row.cells for row in first_rows(map(Row, rows), orders, len(rows))]


def write_rows(payload: dict[str, Any]) -> dict[str, Any]:
    """A workbook (`blob`) of what is handed in: title, columns, rows (lists of JSON values)."""
    columns, rows = payload["columns"], payload["rows"]
    _check_size(len(rows), len(columns))
    if wide := next((n for n, row in enumerate(rows, 1) if len(row) > len(columns)), None):
        raise Rejected(
            f"第 {wide} 行有 {len(rows[wide - 1])} 格，列名只有 {len(columns)} 个，对不上。"
        )
    return _made(payload, columns, rows)


def _check_size(rows: int, columns: int) -> None:
    if rows > MOST_ROWS or rows * columns > MOST_CELLS:
        raise Rejected(
            f"结果有 {rows} 行 × {columns} 列，超过了一个文件 {MOST_CELLS} 格的上限，没有生成。"
            "请用 where 缩小范围，或用 columns 只要几列。"
        )


def _made(
    payload: dict[str, Any],
    headers: Sequence[str],
    rows: Sequence[Sequence[Any]],
    percents: Sequence[int] = (),
) -> dict[str, Any]:
    book = Workbook(write_only=True)
    sheet = book.create_sheet(_sheet_title(payload.get("title") or ""))
    sheet.freeze_panes = "A2"
    for at, width in enumerate(_widths(headers, rows)):
        sheet.column_dimensions[get_column_letter(at + 1)].width = width
    bold = Font(bold=True)
    with _room_to_write():
        sheet.append([_cell(sheet, header, bold) for header in headers])
        for row in rows:
            cells = [_cell(sheet, value) for value in row]
            for at in percents:
                if isinstance(cells[at].value, int | float):
                    cells[at].number_format = "0.00%"
            sheet.append(cells)
        out = BytesIO()
        book.save(out)
    return {
        "headers": list(headers),
        "preview": [[show(_value(value))[:60] for value in row] for row in rows[:5]],
        "row_count": len(rows),
        "blob": out.getvalue(),
    }


def _cell(sheet: Any, value: Any, font: Font | None = None) -> Any:
    """A text is a text whatever it begins with: its type is set, so that no program that opens the
    file runs it, and it is marked as people mark one with an apostrophe, so that neither editing
    nor saving it as CSV and back makes a formula of it."""
    value = _value(value)
    cell = WriteOnlyCell(sheet, None)
    if isinstance(value, str):
        if value:
            cell.value = value
            cell.data_type = "s"
        if value.startswith(_FORMULA_STARTS):
            cell.quotePrefix = True
        if value[:1].isdigit() or value.startswith(_FORMULA_STARTS):
            cell.number_format = "@"
    else:
        cell.value = value
        if isinstance(value, dt.timedelta):
            cell.number_format = "[h]:mm:ss"
    if font is not None:
        cell.font = font
    return cell


def _value(value: Any) -> Cell:
    """What a cell can hold. Numbers that a spreadsheet would round are written as text."""
    if value is None:
        return ""
    if isinstance(value, str):
        return _UNPRINTABLE.sub(_escaped, value)[:_CELL_CAP]
    if isinstance(value, bool):
        return value
    if isinstance(value, int):
        return value if len(str(abs(value))) <= EXACT_DIGITS else str(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else ""
    if isinstance(value, dt.date | dt.time | dt.timedelta):
        return value
    return str(value)[:_CELL_CAP]


def _escaped(match: re.Match[str]) -> str:
    return f"_x005F{match[0]}" if len(match[0]) > 1 else ""


def _widths(headers: Sequence[str], rows: Sequence[Sequence[Any]]) -> Iterator[float]:
    """Characters of each column, a Chinese one counting twice; from the first rows."""
    for at, header in enumerate(headers):
        texts: Iterable[str] = [
            header,
            *(show(_value(row[at])) for row in rows[:50] if at < len(row)),
        ]
        widest = max(sum(2 if ord(c) > 0x2E7F else 1 for c in text[:60]) for text in texts)
        yield min(max(widest + 2, 8), 60)


def _sheet_title(title: str) -> str:
    return _SHEET_NAME.sub(" ", title).strip().strip("'")[:31] or "结果"


@contextlib.contextmanager
def _room_to_write() -> Iterator[None]:
    """openpyxl writes a sheet into a temporary file first, more than a child usually may."""
    if resource is None:
        yield
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    if soft != resource.RLIM_INFINITY:
        most = MADE_BYTES if hard == resource.RLIM_INFINITY else min(MADE_BYTES, hard)
        resource.setrlimit(resource.RLIMIT_FSIZE, (max(soft, most), hard))
    try:
        yield
    except OSError as error:
        raise MemoryError(str(error)) from error
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
