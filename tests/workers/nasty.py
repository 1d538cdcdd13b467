"""A folder of spreadsheets as they really come, each with the right answer.

`python -m tests.workers.nasty DIRECTORY` writes them, so that they can be tried by hand.
"""

from __future__ import annotations

import datetime as dt
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from openpyxl import Workbook
from openpyxl.chart import BarChart
from openpyxl.styles import Font
from openpyxl.utils.datetime import CALENDAR_MAC_1904

from tests.workers import books

STAFF = [("工号", "姓名", "金额"), ("00123", "张三", 5), ("00124", "李四", 7.5)]
STAFF_ROWS = [["00123", "张三", "5"], ["00124", "李四", "7.5"]]


@dataclass(frozen=True)
class Nasty:
    """A file and what reading it must give: rows and remarks, or a refusal."""

    name: str
    data: bytes
    columns: Sequence[str] | None = None
    rows: Sequence[Sequence[str]] | None = None
    total: int | None = None
    says: str = ""
    """Part of a remark, or of the refusal when there are no rows."""
    asked: dict[str, Any] = field(default_factory=dict)
    sums: Sequence[Sequence[str]] | None = None
    """What the sum of `金额` gives, where that is the trap."""


def workbook(fill: Callable[[Workbook], None]) -> bytes:
    made = Workbook()
    fill(made)
    return books.saved(made)


def sheet_of(made: Workbook) -> Any:
    return made.worksheets[0]


def cell_xml(cell: str) -> bytes:
    """The staff sheet with other XML for the cell C3."""
    return books.edited(
        books.book({"表": STAFF}),
        books.SHEET,
        lambda xml: xml.replace('<c r="C3" t="n"><v>7.5</v></c>', cell),
    )


def rows_in_text(separator: str = ",") -> str:
    return "\r\n".join(separator.join(map(str, row)) for row in STAFF) + "\r\n"


def _calendar(made: Workbook) -> None:
    made.epoch = CALENDAR_MAC_1904
    sheet = sheet_of(made)
    sheet.append(("到货日期", "下单时间"))
    sheet.append((dt.date(2024, 9, 2), 44074))  # the second lost its format
    # 44074 days after 1904-01-01 are 2024-09-01.


def _chart_first(made: Workbook) -> None:
    made.create_chartsheet("图", 0).add_chart(BarChart())
    for row in STAFF:
        made["Sheet"].append(row)


def _styled(made: Workbook) -> None:
    sheet = sheet_of(made)
    for row in STAFF:
        sheet.append(row)
    for at in range(4, 3000):
        sheet.cell(at, 1).font = Font(bold=True)


def _percent(made: Workbook) -> None:
    sheet = sheet_of(made)
    for row in (("项", "金额"), ("甲", "1,234.5"), ("乙", "￥1,200元"), ("丙", "待定")):
        sheet.append(row)


def _formulas(made: Workbook) -> None:
    sheet = sheet_of(made)
    for row in (("项", "金额"), ("甲", 3), ("乙", "=B2*2")):
        sheet.append(row)


def files() -> list[Nasty]:
    xls = (books.FILES / "legacy.xls").read_bytes()
    staff = books.book({"表": STAFF})
    return [
        Nasty("远处一个单元格.xlsx", books.far_cell(), says="XFD1048576"),
        Nasty("最后一行有空格.xlsx", books.stray_cell(), total=2, says="标称 1048576 行"),
        Nasty("压缩炸弹.xlsx", books.zip_bomb(), says="解压后太大"),
        Nasty(
            "尺寸写成A1.xlsx",
            books.edited(staff, books.SHEET, lambda x: x.replace('ref="A1:C3"', 'ref="A1"')),
            rows=STAFF_ROWS,
        ),
        Nasty(
            "尺寸写成全表.xlsx",
            books.edited(
                staff, books.SHEET, lambda x: x.replace('ref="A1:C3"', 'ref="A1:XFD1048576"')
            ),
            rows=STAFF_ROWS,
        ),
        Nasty(
            "文本编号.xlsx",
            books.book({"表": [("编号", "身份证"), ("00123", "110101199003071234"), (None, "x")]}),
            rows=[["00123", "110101199003071234"], ["", "x"]],
        ),
        Nasty(
            "编号被当成数字.xlsx",
            books.book({"表": [("卡号", "名"), (6222021234567890123, "甲")]}),
            total=1,
            says="超过 15 位",
        ),
        Nasty(
            "数字写成文本.xlsx",
            books.book({"表": [("项", "金额"), ("甲", "100"), ("乙", "200")]}),
            sums=[["300"]],
            says="2 个写成文本的数字",
        ),
        Nasty(
            "千分位和货币.xlsx", workbook(_percent), sums=[["2434.5"]], says="2 个写成文本的数字"
        ),
        Nasty(
            "百分数.xlsx",
            books.book({"表": [("项", "金额"), ("甲", "12%"), ("乙", "8%")]}),
            sums=[["20%"]],
        ),
        Nasty(
            "合并单元格.xlsx",
            books.book(
                {"表": [("部门", "人"), ("销售", "甲"), (None, "乙"), (None, "丙")]},
                merged=["A2:A3"],
            ),
            rows=[["销售", "甲"], ["销售", "乙"], ["", "丙"]],
        ),
        Nasty(
            "合并的金额.xlsx",
            books.book({"表": [("单号", "金额"), ("1号", 100), ("2号", None)]}, merged=["B2:B3"]),
            sums=[["100"]],
            says="合并单元格各只计一次",
        ),
        Nasty(
            "标题和空行.xlsx",
            books.book({"表": [("2024 年员工表",), (), *STAFF[:2], (), STAFF[2]]}),
            columns=STAFF[0],
            rows=STAFF_ROWS,
        ),
        Nasty(
            "两行表头.xlsx",
            books.book(
                {
                    "表": [
                        ("部门", "一季度", None, "二季度", None),
                        (None, "收入", "支出", "收入", "支出"),
                        ("销售", 1, 2, 3, 4),
                    ]
                },
                merged=["A1:A2", "B1:C1", "D1:E1"],
            ),
            columns=["部门", "一季度/收入", "一季度/支出", "二季度/收入", "二季度/支出"],
            rows=[["销售", "1", "2", "3", "4"]],
        ),
        Nasty(
            "日期.xlsx",
            books.book({"表": [("日期", "下单时间"), (dt.date(2024, 9, 3), 45658), (None, 45659)]}),
            rows=[["2024-09-03", "2025-01-01"], ["", "2025-01-02"]],
            says="已按日期换算",
        ),
        Nasty("1904年的日期.xlsx", workbook(_calendar), rows=[["2024-09-02", "2024-09-01"]]),
        Nasty("没算过的公式.xlsx", workbook(_formulas), sums=[["3"]], says="没有计算结果（如 B3）"),
        Nasty(
            "错误单元格.xlsx",
            cell_xml('<c r="C3" t="e"><v>#N/A</v></c>'),
            rows=[STAFF_ROWS[0], ["00124", "李四", ""]],
            says="1 个错误单元格（如 C3 #N/A）",
        ),
        Nasty(
            "新版Excel的错误.xlsx",
            cell_xml('<c r="C3" t="e"><v>#SPILL!</v></c>'),
            rows=[STAFF_ROWS[0], ["00124", "李四", ""]],
            says="1 个错误单元格（如 C3 #SPILL!）",
        ),
        Nasty(
            "写着NA.xlsx",
            books.book({"表": [("名", "值"), ("NA", "null"), ("None", "nan")]}),
            rows=[["NA", "null"], ["None", "nan"]],
        ),
        Nasty(
            "隐藏工作表.xlsx",
            books.book({"考勤": STAFF, "工资": [("人", "薪")]}, states={"工资": "veryHidden"}),
            says="只有管理员",
            asked={"sheet": "工资"},
        ),
        Nasty("第一张是图表.xlsx", workbook(_chart_first), rows=STAFF_ROWS),
        Nasty("老格式.xls", xls, total=2),
        Nasty("老格式改了名.xlsx", xls, total=2),
        Nasty("有密码.xlsx", (books.FILES / "password.xlsx").read_bytes(), says="密码"),
        Nasty("有密码.ods", books.locked_ods(), says="密码"),
        Nasty("损坏.xlsx", books.damaged(books.orders(300)), says="损坏"),
        Nasty("没传完.xlsx", staff[:-300], says="损坏"),
        Nasty("空文件.xlsx", b"", says="空的"),
        Nasty("网页改名.xlsx", b"<html><table><tr><td>1</td></tr></table></html>", says="网页"),
        Nasty("只有格式的行.xlsx", workbook(_styled), rows=STAFF_ROWS, total=2),
        Nasty("只有表头.xlsx", books.book({"表": [STAFF[0]]}), columns=STAFF[0], total=0),
        Nasty("gbk.csv", rows_in_text().encode("gbk"), rows=STAFF_ROWS),
        Nasty("utf8带标记.csv", rows_in_text().encode("utf-8-sig"), rows=STAFF_ROWS),
        Nasty("utf8.tsv", rows_in_text("\t").encode(), rows=STAFF_ROWS),
        Nasty("utf16.csv", rows_in_text("\t").encode("utf-16"), rows=STAFF_ROWS),
        Nasty("utf16没标记.csv", rows_in_text().encode("utf-16-le"), rows=STAFF_ROWS),
        Nasty(
            "参差不齐.csv",
            "员工表\n\n工号,姓名,金额\n00123,张三,5\n00124,李四\n".encode(),
            rows=[["00123", "张三", "5"], ["00124", "李四", ""]],
        ),
        Nasty("~$正在编辑.xlsx", b"\x05user", says="锁文件"),
        Nasty("宏.xlsm", staff, rows=STAFF_ROWS),
        Nasty("表.ods", books.ods([("工号", "金额"), ("00123", 5)]), rows=[["00123", "5"]]),
        Nasty("其实是csv.xlsx", rows_in_text().encode(), rows=STAFF_ROWS, says="按 CSV 读取"),
        Nasty("其实是pdf.xlsx", b"%PDF-1.7 ...", says="PDF"),
        Nasty(
            "长数字文本.csv",
            "项,金额\n甲,1e5\n乙,1234567.891\n".encode(),
            rows=[["甲", "1e5"], ["乙", "1234567.891"]],
        ),
    ]


def write_all(directory: Path) -> None:
    directory.mkdir(parents=True, exist_ok=True)
    for each in files():
        (directory / each.name).write_bytes(each.data)


def payload(each: Nasty) -> dict[str, Any]:
    base: dict[str, Any] = {"name": each.name, "sheet": None, "hidden": False, "columns": []}
    if each.sums is not None:
        more = {"function": "sum", "columns": ["金额"], "group_by": [], "where": [], "top": None}
    else:
        more = {"limit": 30}
    return base | more | each.asked


if __name__ == "__main__":
    write_all(Path(sys.argv[1]))
