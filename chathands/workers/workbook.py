"""Reads one sheet of a workbook or CSV as a table: header, rows, and remarks on what was odd.

Runs in a child only. calamine rather than openpyxl: 8 times faster, reads .xls, .xlsb and .ods
too, and is not fooled by a wrong `<dimension>`, where openpyxl read-only silently returns A1 alone.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import Any, BinaryIO, TypeVar

from python_calamine import (
    CalamineError,
    CalamineSheet,
    CalamineWorkbook,
    PasswordError,
    SheetTypeEnum,
    SheetVisibleEnum,
)

from chathands.workers import csvtext, kinds, sheetscan
from chathands.workers.cells import Cell, is_blank, is_number, is_plain_number, plain, show
from chathands.workers.headers import find_column
from chathands.workers.protocol import Rejected
from chathands.workers.table import Source, Table

CELL_LENGTH = 200
"""Characters of one shown cell; a remark column must not eat the prompt."""

COLUMNS_SHOWN = 20

Fit = TypeVar("Fit")


def open_tables(payload: dict[str, Any], file: BinaryIO) -> Iterator[Table]:
    """The table `payload` asks for: `name` (of the file), `sheet` (or None), `hidden` (whether
    hidden sheets may be read). Without a sheet: the visible ones with data, in order.

    Raises Rejected; the first table comes or is refused before anything is yielded.
    """
    name = str(payload["name"])
    if os.path.basename(name).startswith("~$"):
        raise Rejected("这是 Excel/WPS 打开文件时的临时锁文件，请用去掉 ~$ 的文件名。")
    kind = kinds.kind_of(file)
    if kind == "text":
        yield Table(_csv_source(name, file))
        return
    before = _stamp(file)
    try:
        with _CalamineFaults():
            book = CalamineWorkbook.from_filelike(file)
            for sheet, others in _chosen(book, payload.get("sheet"), bool(payload.get("hidden"))):
                yield Table(_sheet_source(file, kind, sheet, others))
    except Rejected as rejected:
        if rejected.sentence == kinds.CORRUPT and _stamp(file) != before:
            raise Rejected("文件正在被写入，请过几秒再读。") from None
        raise


def fitting_table(
    payload: dict[str, Any],
    file: BinaryIO,
    fit: Callable[[Table], Fit],
    *,
    largest: bool = False,
) -> tuple[Table, Fit]:
    """The first table that has the columns `fit` looks for, and what `fit` made of it.

    "各产品卖了多少" names no sheet, and the first one is often a summary without products. With
    `largest` it is the one with most rows: counts and means are about records, not about totals.
    Raises the Rejected of the first table when none fits.
    """
    refusal: Rejected | None = None
    fits: list[tuple[Table, Fit]] = []
    for table in open_tables(payload, file):
        try:
            fits.append((table, fit(table)))
        except Rejected as rejected:
            if refusal is None:
                others = f"其他工作表：{'、'.join(table.others)}。" if table.others else ""
                refusal = Rejected(rejected.sentence + others)
            continue
        if not largest:
            break
    if not fits:
        raise refusal or Rejected("文件里没有数据。")
    table, made = max(fits, key=lambda pair: pair[0].declared_rows)
    if table is not fits[0][0]:
        table.notes.append(f"没有指定工作表，用了行数最多的「{table.sheet}」")
    return table, made


def _csv_source(name: str, file: BinaryIO) -> Source:
    text = csvtext.decode(file.read())
    rows = ([_csv_cell(cell) for cell in row] for row in csvtext.read_rows(text))
    notes = []
    if not name.casefold().endswith((".csv", ".tsv", ".txt")):
        notes.append("文件内容是文本，按 CSV 读取")
    return Source(None, [], rows, [], 0, False, notes)


def _csv_cell(text: str) -> Cell:
    """`="00123"` is how spreadsheets are made to keep a code as text."""
    if text.startswith('="') and text.endswith('"'):
        return text[2:-1]
    return text


def _sheet_source(file: BinaryIO, kind: str, sheet: CalamineSheet, others: list[str]) -> Source:
    notes: list[str] = []
    if kind == "zip":
        file.seek(0)
        notes = _remarks(sheetscan.scan(file, sheet.name))
    return Source(
        sheet=sheet.name,
        others=others,
        rows=_positioned_rows(sheet),
        merged=sheet.merged_cell_ranges or [],
        declared_rows=sheet.end[0] + 1 if sheet.end else 0,
        typed=True,
        notes=notes,
    )


def _positioned_rows(sheet: CalamineSheet) -> Iterator[list[Cell]]:
    """Rows from row 1, cells from column A: calamine's start at the first used column."""
    if sheet.start is None:
        return
    left: list[Cell] = [""] * sheet.start[1]
    with _CalamineFaults():
        for cells in sheet.iter_rows():
            yield left + cells if left else cells


class _CalamineFaults:
    """Turns calamine's errors into Rejected. A panic of the Rust side is a BaseException of a type
    that cannot be imported; it means a damaged file just as well."""

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        if isinstance(error, PasswordError):
            raise Rejected(kinds.PASSWORD) from error
        if isinstance(error, CalamineError) or type(error).__name__ == "PanicException":
            raise Rejected(kinds.CORRUPT) from error


def _chosen(
    book: CalamineWorkbook, wanted: str | None, hidden: bool
) -> Iterator[tuple[CalamineSheet, list[str]]]:
    """The wanted sheet, or the visible ones with data; each with the names of the others."""
    sheets = [meta for meta in book.sheets_metadata if meta.typ == SheetTypeEnum.WorkSheet]
    visible = [meta.name for meta in sheets if meta.visible == SheetVisibleEnum.Visible]
    concealed = [meta.name for meta in sheets if meta.name not in visible]
    readable = visible + concealed if hidden else visible
    labels = {name: f"{name}（隐藏）" for name in concealed}

    def others(chosen: str) -> list[str]:
        return [labels.get(other, other) for other in readable if other != chosen]

    if wanted is not None and wanted.strip():
        name = _match(wanted, readable)
        if name is None and _match(wanted, concealed) is not None:
            raise Rejected(f"工作表「{wanted}」是隐藏的，只有管理员可以让我读。")
        if name is None:
            known = "、".join(labels.get(other, other) for other in readable)
            raise Rejected(
                f"没有工作表「{wanted}」。这个文件里有：{known or '（没有可读的工作表）'}。"
            )
        yield book.get_sheet_by_name(name), others(name)
        return
    filled = 0
    for name in visible:
        sheet = book.get_sheet_by_name(name)
        if sheet.start is not None:
            filled += 1
            yield sheet, others(name)
    if not filled:
        raise Rejected("文件里没有数据：可见的工作表都是空的。")


def _match(wanted: str, names: list[str]) -> str | None:
    """The sheet called so, give or take case and blanks; else the only one whose name holds it."""
    key = plain(wanted)
    for same in (
        lambda name: name == wanted,
        lambda name: plain(name) == key,
        lambda name: key in plain(name),
    ):
        found = [name for name in names if same(name)]
        if len(found) == 1:
            return found[0]
    return None


def _stamp(file: BinaryIO) -> tuple[int, int] | None:
    try:
        status = os.fstat(file.fileno())
    except OSError:  # handed over by content: it cannot change any more
        return None
    return status.st_size, status.st_mtime_ns


def _remarks(findings: sheetscan.Findings) -> list[str]:
    notes = []
    if findings.uncomputed:
        places = "、".join(findings.uncomputed_at)
        notes.append(
            f"有 {findings.uncomputed} 个公式没有计算结果（如 {places}），按空白处理；"
            "请用 Excel/WPS 打开并保存一次后再读"
        )
    if findings.errors:
        places = "、".join(findings.errors_at)
        notes.append(f"有 {findings.errors} 个错误单元格（如 {places}），按空白处理")
    return notes


def read_table(payload: dict[str, Any], file: BinaryIO) -> dict[str, Any]:
    """The first `limit` rows as shown text. JSON-safe: sheet, others, header_row, titles, columns
    (all names), shown (positions), rows, numeric (per shown column), total_rows, notes."""
    wanted = payload.get("columns") or []
    table, chosen = fitting_table(
        payload, file, lambda table: [find_column(name, table.columns) for name in wanted]
    )
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
    shown = list(dict.fromkeys(chosen)) or exists[:COLUMNS_SHOWN]
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
