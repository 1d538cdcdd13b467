"""Opens the sheets of a workbook, or a CSV, as tables, with remarks on what was odd.

Runs in a child only.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any, BinaryIO

from chathands.workers import csvtext, kinds
from chathands.workers.book import Book
from chathands.workers.cells import Cell, plain
from chathands.workers.protocol import Rejected
from chathands.workers.table import NoRows, Source, Table


def open_tables(
    payload: dict[str, Any], file: BinaryIO, *, remarks: bool = True
) -> Iterator[Table]:
    """The table `payload` asks for: `name` (of the file), `sheet` (or None), `hidden` (whether
    hidden sheets may be read). Without a sheet: the visible ones with data, in order.

    `remarks`: whether each sheet is scanned for formulas without a result and for errors. Raises
    Rejected; the first table comes or is refused before anything is yielded.
    """
    kind = _kind(payload, file)
    if kind == "text":
        yield Table(_csv_source(str(payload["name"]), file))
        return
    before = _stamp(file)
    try:
        yield from _tables(Book(file, kind), payload, remarks)
    except Rejected as rejected:
        if rejected.sentence == kinds.CORRUPT and _stamp(file) != before:
            raise Rejected("文件正在被写入，请过几秒再读。") from None
        raise


def each_sheet(
    payload: dict[str, Any], file: BinaryIO
) -> Iterator[tuple[str | None, bool, Table | Rejected]]:
    """Every sheet that may be read: its name, whether it is hidden, and its table, or why there is
    none. Raises Rejected when the file cannot be opened."""
    kind = _kind(payload, file)
    if kind == "text":
        yield None, False, Table(_csv_source(str(payload["name"]), file))
        return
    book = Book(file, kind)
    for name in book.visible + (book.concealed if payload.get("hidden") else []):
        try:
            source = book.source(name, [], remarks=True)
            table = Table(source) if source else NoRows("工作表里没有数据。")
        except Rejected as rejected:
            table = rejected
        yield name, name in book.concealed, table


def _kind(payload: dict[str, Any], file: BinaryIO) -> kinds.Kind:
    if os.path.basename(str(payload["name"])).startswith("~$"):
        raise Rejected("这是 Excel/WPS 打开文件时的临时锁文件，请用去掉 ~$ 的文件名。")
    return kinds.kind_of(file)


def _tables(book: Book, payload: dict[str, Any], remarks: bool) -> Iterator[Table]:
    blank: NoRows | None = None
    filled = False
    wanted = payload.get("sheet")
    for name, others in _chosen(book, wanted, bool(payload.get("hidden"))):
        source = book.source(name, others, remarks=remarks)
        if source is None:
            if wanted:
                blank = NoRows("工作表里没有数据。")
            continue
        try:
            table = Table(source)
        except NoRows as rejected:
            blank = rejected
            continue
        filled = True
        yield table
    if not filled:
        raise blank or Rejected("文件里没有数据：可见的工作表都是空的。")


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


def _chosen(book: Book, wanted: str | None, hidden: bool) -> Iterator[tuple[str, list[str]]]:
    """The wanted sheet, or the visible ones; each with the names of the others."""
    visible, concealed = book.visible, book.concealed
    readable = visible + concealed if hidden else visible
    labels = {name: f"{name}（隐藏）" for name in concealed}

    def others(chosen: str) -> list[str]:
        return [labels.get(other, other) for other in readable if other != chosen]

    if wanted is None or not wanted.strip():
        yield from ((name, others(name)) for name in visible)
        return
    name = _match(wanted, readable)
    if name is None and _match(wanted, concealed) is not None:
        raise Rejected(f"工作表「{wanted}」是隐藏的，只有管理员可以让我读。")
    if name is None:
        known = "、".join(labels.get(other, other) for other in readable)
        raise Rejected(f"没有工作表「{wanted}」。这个文件里有：{known or '（没有可读的工作表）'}。")
    yield name, others(name)


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
