"""Writes the sample workbooks under data/shared/. The same bytes every time: seeded numbers, fixed
time stamps.

    python scripts/make_samples.py [directory]
"""

from __future__ import annotations

import calendar
import datetime as dt
import random
import re
import sys
import zipfile
from decimal import Decimal
from io import BytesIO
from pathlib import Path

from openpyxl import Workbook
from openpyxl.styles import Alignment, Font
from openpyxl.worksheet.worksheet import Worksheet

REGIONS = {
    "华东": ("陈思远", "吴佳宁"),
    "华北": ("赵一鸣", "孙悦"),
    "华南": ("黄子涵", "梁伟杰"),
    "西南": ("何雨桐", "邓川"),
}
PRODUCTS = {
    "激光打印机": Decimal("1299.00"),
    "扫描仪": Decimal("868.50"),
    "碎纸机": Decimal("459.90"),
    "投影仪": Decimal("3280.00"),
    "装订机": Decimal("236.80"),
}
HEADER = ("日期", "订单号", "区域", "销售员", "产品", "数量", "单价", "金额")
ROWS = 60
MOMENT = (2025, 1, 2, 9, 0, 0)
"""The time stamp of everything inside the archive."""

Order = tuple[dt.date, str, str, str, str, int, Decimal, Decimal]


def orders(year: int, month: int) -> list[Order]:
    """Orders of one month by date; numbers are texts with leading zeros."""
    chance = random.Random(year * 100 + month)
    last = calendar.monthrange(year, month)[1]
    days = sorted(chance.randint(1, last) for _ in range(ROWS))
    made = []
    for number, day in enumerate(days, 1):
        region = chance.choice(tuple(REGIONS))
        product = chance.choice(tuple(PRODUCTS))
        amount = chance.randint(1, 12)
        price = PRODUCTS[product]
        made.append(
            (
                dt.date(year, month, day),
                f"00{year % 100}{month:02}{number:04}",
                region,
                chance.choice(REGIONS[region]),
                product,
                amount,
                price,
                price * amount,
            )
        )
    return made


def summary(rows: list[Order]) -> list[tuple[str, int, Decimal]]:
    """Region, pieces, money; the last line is their total."""
    lines = []
    for region in REGIONS:
        own = [row for row in rows if row[2] == region]
        lines.append((region, sum(row[5] for row in own), sum((row[7] for row in own), Decimal())))
    total = ("合计", sum(line[1] for line in lines), sum((line[2] for line in lines), Decimal()))
    return [*lines, total]


def workbook(year: int, month: int) -> bytes:
    rows = orders(year, month)
    book = Workbook()
    totals = book.worksheets[0]
    totals.title = "汇总"
    totals.append(("区域", "数量", "金额"))
    for line in summary(rows):
        totals.append(line)
    _dress(totals, 1, {"B": "#,##0", "C": "#,##0.00"})
    details = book.create_sheet("明细")
    details["A1"] = f"{year}年{month}月销售明细"
    details["A1"].font = Font(bold=True, size=14)
    details["A1"].alignment = Alignment(horizontal="center")
    details.merge_cells(start_row=1, end_row=1, start_column=1, end_column=len(HEADER))
    details.append(HEADER)
    for row in rows:
        details.append(row)
    _dress(details, 2, {"A": "yyyy-mm-dd", "B": "@", "G": "#,##0.00", "H": "#,##0.00"})
    book.properties.creator = "ChatHands"
    buffer = BytesIO()
    book.save(buffer)
    return _fixed(buffer.getvalue())


def _dress(sheet: Worksheet, header: int, formats: dict[str, str]) -> None:
    for cell in sheet[header]:
        cell.font = Font(bold=True)
    for letter, form in formats.items():
        for cell in sheet[letter][header:]:
            cell.number_format = form
    for letter in "ABCDEFGH"[: sheet.max_column]:
        sheet.column_dimensions[letter].width = 14
    sheet.freeze_panes = f"A{header + 1}"


def _fixed(archive: bytes) -> bytes:
    """The same archive with every time stamp set to MOMENT; openpyxl writes the current time."""
    stamp = dt.datetime(*MOMENT).isoformat() + "Z"
    buffer = BytesIO()
    with zipfile.ZipFile(BytesIO(archive)) as old, zipfile.ZipFile(buffer, "w") as new:
        for name in old.namelist():
            content = old.read(name)
            if name == "docProps/core.xml":
                content = re.sub(
                    rb">[\d:T.-]+Z?</dcterms:", f">{stamp}</dcterms:".encode(), content
                )
            member = zipfile.ZipInfo(name, MOMENT)
            member.compress_type = zipfile.ZIP_DEFLATED
            member.create_system = 3
            new.writestr(member, content)
    return buffer.getvalue()


def main() -> None:
    default = Path(__file__).resolve().parent.parent / "data" / "shared"
    shared = Path(sys.argv[1]) if len(sys.argv) > 1 else default
    for year, month in ((2024, 9), (2024, 12)):
        path = shared / "sales" / str(year) / f"{month:02}.xlsx"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(workbook(year, month))
        print(path)


if __name__ == "__main__":
    main()
