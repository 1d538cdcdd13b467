"""Builds real files for the tests: workbooks through openpyxl, oddities by editing their XML."""

from __future__ import annotations

import datetime as dt
import zipfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from io import BytesIO
from pathlib import Path

from openpyxl import Workbook

FILES = Path(__file__).parent / "files"

SHEET = "xl/worksheets/sheet1.xml"


def book(
    sheets: Mapping[str, Iterable[Sequence[object]]],
    *,
    merged: Sequence[str] = (),
    states: Mapping[str, str] | None = None,
) -> bytes:
    """An .xlsx. `merged` are ranges of the first sheet; `states`: sheet → hidden, veryHidden."""
    made = Workbook()
    made.remove(made.worksheets[0])
    for name, rows in sheets.items():
        sheet = made.create_sheet(name)
        for row in rows:
            sheet.append(row)
        sheet.sheet_state = (states or {}).get(name, "visible")
    for area in merged:
        made.worksheets[0].merge_cells(area)
    return saved(made)


def saved(made: Workbook) -> bytes:
    buffer = BytesIO()
    made.save(buffer)
    return buffer.getvalue()


def edited(archive: bytes, member: str, edit: Callable[[str], str]) -> bytes:
    """The archive with one member's text changed."""
    buffer = BytesIO()
    with zipfile.ZipFile(BytesIO(archive)) as old, zipfile.ZipFile(buffer, "w") as new:
        for name in old.namelist():
            content = old.read(name)
            if name == member:
                content = edit(content.decode()).encode()
            new.writestr(name, content, zipfile.ZIP_DEFLATED)
    return buffer.getvalue()


def orders(count: int) -> bytes:
    """A plain sheet: date, text id, region, amount; amounts are 1.1, 2.2, … ."""
    start = dt.date(2024, 8, 30)
    rows = [
        (start + dt.timedelta(days=n), f"{n + 1:05}", ("东区", "西区")[n % 2], (n + 1) * 1.1)
        for n in range(count)
    ]
    return book({"订单": [("下单日期", "单号", "区域", "金额"), *rows]})


def far_cell() -> bytes:
    """5 KB; calamine asks for 550 GB and aborts the process (tafia/calamine#693)."""
    made = Workbook()
    made.worksheets[0]["A1"] = "名称"
    made.worksheets[0]["XFD1048576"] = 1
    return saved(made)


def lying_far_cell() -> bytes:
    """The same with a dimension that says nothing of it, so that nothing is known beforehand."""
    return edited(far_cell(), SHEET, lambda xml: xml.replace("A1:XFD1048576", "A1:B2"))


def stray_cell() -> bytes:
    """The everyday accident: one blank-looking cell in the last row, in the table's own columns."""
    made = Workbook()
    sheet = made.worksheets[0]
    for row in (("品名", "数量"), ("钢笔", 3), ("墨水", 4)):
        sheet.append(row)
    sheet["A1048576"] = " "
    return saved(made)


def zip_bomb() -> bytes:
    """A workbook whose sheet is 20 MB of blanks in 20 KB."""
    buffer = BytesIO(book({"a": [("x",)]}))
    with zipfile.ZipFile(buffer, "a") as archive:
        archive.writestr("xl/worksheets/sheet2.xml", b" " * 20_000_000, zipfile.ZIP_DEFLATED)
    return buffer.getvalue()


def damaged(workbook: bytes) -> bytes:
    """Its directory is whole, the sheet's compressed bytes are not."""
    at = workbook.index(SHEET.encode()) + len(SHEET)
    return workbook[: at + 100] + b"\xff" * 200 + workbook[at + 300 :]


def archive(member: str) -> bytes:
    buffer = BytesIO()
    with zipfile.ZipFile(buffer, "w") as made:
        made.writestr(member, "x")
    return buffer.getvalue()


def ole_stand_in(stream: str) -> bytes:
    """Enough of an OLE container to be told by: the magic and a stream's name."""
    return (
        b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + b"\0" * 600 + stream.encode("utf-16-le") + b"\0" * 600
    )


def ods(rows: Sequence[Sequence[str | float]]) -> bytes:
    """An OpenDocument sheet called 表一."""

    def cell(value: str | float) -> str:
        kind = "string" if isinstance(value, str) else f'float" office:value="{value}'
        return (
            f'<table:table-cell office:value-type="{kind}"><text:p>{value}</text:p>'
            "</table:table-cell>"
        )

    lines = "".join(f"<table:table-row>{''.join(map(cell, row))}</table:table-row>" for row in rows)
    names = "".join(
        f' xmlns:{short}="urn:oasis:names:tc:opendocument:xmlns:{short}:1.0"'
        for short in ("office", "table", "text")
    )
    content = (
        f'<?xml version="1.0" encoding="UTF-8"?><office:document-content{names}>'
        f'<office:body><office:spreadsheet><table:table table:name="表一">{lines}</table:table>'
        "</office:spreadsheet></office:body></office:document-content>"
    )
    kind = "application/vnd.oasis.opendocument.spreadsheet"
    manifest = (
        '<?xml version="1.0"?><manifest:manifest '
        'xmlns:manifest="urn:oasis:names:tc:opendocument:xmlns:manifest:1.0">'
        f'<manifest:file-entry manifest:full-path="/" manifest:media-type="{kind}"/>'
        "</manifest:manifest>"
    )
    buffer = BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("mimetype", kind)
        archive.writestr("content.xml", content)
        archive.writestr("META-INF/manifest.xml", manifest)
    return buffer.getvalue()


def locked_ods() -> bytes:
    """As LibreOffice saves one with a password: its parts are noise, the list of them says why."""
    buffer = BytesIO()
    manifest = (
        '<?xml version="1.0"?><manifest:manifest '
        'xmlns:manifest="urn:oasis:names:tc:opendocument:xmlns:manifest:1.0">'
        '<manifest:file-entry manifest:full-path="content.xml" manifest:media-type="text/xml">'
        "<manifest:encryption-data/></manifest:file-entry></manifest:manifest>"
    )
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("mimetype", "application/vnd.oasis.opendocument.spreadsheet")
        archive.writestr("content.xml", bytes(range(256)))
        archive.writestr("META-INF/manifest.xml", manifest)
    return buffer.getvalue()
