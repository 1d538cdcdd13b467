"""Workbooks that are made: what stands in them, and that nothing in them runs."""

from __future__ import annotations

import datetime as dt
import re
import zipfile
from io import BytesIO
from typing import Any

import openpyxl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chathands.workers.exporting import MOST_CELLS, export_table, write_rows
from chathands.workers.protocol import Rejected
from chathands.workers.reading import read_table
from tests.workers import books

STARTS = ["=1+1", "+86 138", "-2+3", "@SUM(A1)", "\t=1", "\r=1", "\n=1", "＝1+1", '=HYPERLINK("x")']


def sheet(made: dict[str, Any]) -> list[tuple[Any, ...]]:
    book = openpyxl.load_workbook(BytesIO(made["blob"]))
    return [tuple(cell for cell in row) for row in book.worksheets[0].iter_rows()]


def values(made: dict[str, Any]) -> list[tuple[Any, ...]]:
    return [tuple(cell.value for cell in row) for row in sheet(made)]


def write(columns: list[str], rows: list[list[Any]], title: str = "") -> dict[str, Any]:
    return write_rows({"title": title, "columns": columns, "rows": rows})


def export(rows: Any, **asked: Any) -> dict[str, Any]:
    payload = {
        "name": "t.xlsx", "sheet": None, "hidden": False, "columns": [], "where": [],
        "sort_by": "", "function": "", "group_by": [], "title": "",
    }  # fmt: skip
    return export_table(payload | asked, BytesIO(books.book({"表": rows})))


@pytest.mark.parametrize("text", STARTS)
def test_a_text_that_looks_like_a_formula_is_a_text(text: str) -> None:
    made = write([text], [[text]])
    for row in sheet(made):
        assert row[0].data_type == "s"
        assert row[0].quotePrefix
        assert row[0].number_format == "@"
    xml = zipfile.ZipFile(BytesIO(made["blob"])).read("xl/worksheets/sheet1.xml")
    assert not re.search(rb"<(?:\w+:)?f[\s>/]", xml)


@settings(max_examples=25, deadline=None)
@given(st.lists(st.text(max_size=12), min_size=1, max_size=6))
def test_any_texts_make_a_workbook_without_formulas_that_reads_back(texts: list[str]) -> None:
    made = write(["列"] * len(texts), [texts])
    assert all(cell.data_type in ("s", "n", "inlineStr") for row in sheet(made) for cell in row)
    assert all(cell.data_type != "f" for row in sheet(made) for cell in row)
    payload = {"name": "t.xlsx", "sheet": None, "columns": [], "limit": 5, "hidden": False}
    read_table(payload, BytesIO(made["blob"]))


def test_cells_stay_what_they_are() -> None:
    row = ["00123", 110101199003071234, 1.5, True, None, float("nan"), "x" * 40_000, "\x01a_x000D_"]
    made = write([f"列{n}" for n in range(len(row))], [row])
    got = values(made)[1]
    assert got[:5] == ("00123", "110101199003071234", 1.5, True, None)
    assert got[5] is None
    assert len(got[6]) == 32_767
    payload = {"name": "t.xlsx", "sheet": None, "columns": ["列7"], "limit": 5, "hidden": False}
    assert read_table(payload, BytesIO(made["blob"]))["rows"] == [["a_x000D_"]]


def test_titles_become_names_of_sheets() -> None:
    for title in ("a/b:c*d[e]?\\" + "长" * 40, "", "'引'"):
        name = openpyxl.load_workbook(BytesIO(write(["a"], [[1]], title)["blob"])).sheetnames[0]
        assert 0 < len(name) <= 31


def test_rows_that_do_not_fit_the_columns_are_refused() -> None:
    with pytest.raises(Rejected, match="第 2 行有 3 格"):
        write(["a", "b"], [[1, 2], [1, 2, 3]])


ORDERS = [
    ("日期", "编号", "区域", "金额"),
    (dt.date(2024, 9, 1), "001", "华东", 1.1),
    (dt.date(2024, 9, 2), "002", "华北", 2.2),
    (dt.date(2024, 9, 3), "003", "华东", 2.2),
    ("合计", None, None, 5.5),
]


def test_all_rows_that_are_meant_with_their_types() -> None:
    made = export(
        ORDERS, where=["区域=华东"], sort_by="金额:降序", columns=["编号", "日期", "金额"]
    )
    assert values(made) == [
        ("编号", "日期", "金额"),
        ("003", dt.datetime(2024, 9, 3), 2.2),
        ("001", dt.datetime(2024, 9, 1), 1.1),
    ]
    assert made["row_count"] == 2
    assert made["what"] == "区域=华东，按金额 从大到小排"
    assert values(export(ORDERS))[-1][0] == "合计"  # the whole sheet as it lies there


def test_statistics_are_numbers_without_noise() -> None:
    made = export(ORDERS, function="sum", group_by=["区域"], columns=["金额"])
    assert values(made) == [("区域", "金额 合计"), ("华东", 3.3), ("华北", 2.2)]
    up = export(ORDERS, function="sum", group_by=["区域"], columns=["金额"], sort_by="金额")
    assert values(up)[1] == ("华北", 2.2)
    assert values(export(ORDERS, function="count", group_by=["区域"]))[1] == ("华东", 2)


def test_more_cells_than_a_file_may_have_are_refused_and_none_left_out() -> None:
    rows = MOST_CELLS // 50 + 1
    with pytest.raises(Rejected, match="没有生成"):
        write(["a"] * 50, [[1] * 50] * rows)
