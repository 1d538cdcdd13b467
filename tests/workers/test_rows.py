"""Rows by condition, in an order, page by page."""

from __future__ import annotations

import datetime as dt
from io import BytesIO
from typing import Any

import pytest

from chathands.workers.protocol import Rejected
from chathands.workers.reading import read_table
from tests.workers import books

ORDERS = [
    ("日期", "单号", "区域", "金额"),
    (dt.date(2024, 9, 3), "00101", "华东", 10.5),
    (dt.date(2024, 9, 20), "00102", "华北", 200),
    (dt.date(2024, 10, 5), "00103", "华东", "1,000"),
    (dt.date(2024, 12, 31), "00104", "华南", None),
    ("合计", None, None, 1210.5),
]


def read(**asked: Any) -> dict[str, Any]:
    payload = {"name": "t.xlsx", "sheet": None, "columns": ["单号"], "limit": 30, "hidden": False}
    return read_table(payload | asked, BytesIO(books.book({"表": ORDERS})))


def ids(**asked: Any) -> list[str]:
    return [row[0] for row in read(**asked)["rows"]]


@pytest.mark.parametrize(
    ("order", "expected"),
    [
        ("金额", ["00101", "00102", "00103", "00104"]),
        ("金额:降序", ["00103", "00102", "00101", "00104"]),
        ("-金额", ["00103", "00102", "00101", "00104"]),
        ("金额 desc", ["00103", "00102", "00101", "00104"]),
        ("金额从大到小", ["00103", "00102", "00101", "00104"]),
        ("销售额（倒序）", ["00103", "00102", "00101", "00104"]),
        ("日期:降序", ["00104", "00103", "00102", "00101"]),
        ("区域、金额:降序", ["00103", "00101", "00102", "00104"]),
    ],
)
def test_an_order_in_any_spelling_with_blanks_last_and_no_totals(
    order: str, expected: list[str]
) -> None:
    assert ids(sort_by=order) == expected


def test_conditions_count_what_meets_them_and_leave_totals_out() -> None:
    result = read(where=["区域=华东"])
    assert [row[0] for row in result["rows"]] == ["00101", "00103"]
    assert (result["total_rows"], result["matched_rows"]) == (5, 2)
    assert result["conditions"] == "区域=华东"
    assert read(where=["金额>5"])["matched_rows"] == 3


def test_a_value_by_a_slightly_other_name_is_taken_and_told() -> None:
    result = read(where=["区域=华东区"])
    assert result["matched_rows"] == 2
    assert "「华东区」按「区域」列的值「华东」算" in result["readings"]


def test_nothing_found_lists_what_there_is() -> None:
    assert "华东" in "；".join(read(where=["区域=西北"])["notes"])


def test_pages_fit_together_and_end() -> None:
    pages = [ids(sort_by="金额:降序", offset=at, limit=2) for at in (0, 2, 4)]
    assert pages == [["00103", "00102"], ["00101", "00104"], []]
    assert ids(offset=3, limit=5) == ["00104", ""]  # as it lies there: the total row too


def test_the_sheet_of_records_is_taken_before_a_summary_with_the_same_columns() -> None:
    data = books.book({"汇总": [("区域", "金额"), ("华东", 9)], "明细": ORDERS})
    payload = {"name": "t.xlsx", "sheet": None, "columns": [], "limit": 9, "hidden": False}
    result = read_table(payload | {"where": ["区域=华东"]}, BytesIO(data))
    assert result["sheet"] == "明细"
    assert read_table(payload, BytesIO(data))["sheet"] == "汇总"


def test_an_unknown_column_to_sort_by_lists_the_columns() -> None:
    with pytest.raises(Rejected, match="单号"):
        read(sort_by="重量:降序")
    with pytest.raises(Rejected, match="排序后最多"):
        read(sort_by="金额", offset=1_000_000)
