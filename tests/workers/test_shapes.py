"""Cross tables and changes from period to period, against figures worked out by hand."""

from __future__ import annotations

import datetime as dt

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chathands.workers.periods import read_key, read_keys
from chathands.workers.protocol import Rejected
from tests.workers.test_aggregate import noted, run

LEDGER = [
    ("日期", "区域", "产品", "金额"),
    (dt.date(2023, 9, 1), "华东", "纸", 50),
    (dt.date(2024, 8, 1), "华东", "纸", 100),
    (dt.date(2024, 9, 1), "华东", "纸", 150),
    (dt.date(2024, 9, 9), "华北", "笔", 50),
    (dt.date(2024, 11, 1), "华北", "纸", 30),
    ("合计", None, None, 380),
]


def test_different_values_are_counted_once() -> None:
    assert run(LEDGER, function="count_distinct", columns=["区域"])["rows"] == [["2"]]
    by = run(LEDGER, function="count_distinct", columns=["产品"], group_by=["区域"])
    assert by["rows"] == [["华北", "2"], ["华东", "1"]]
    with pytest.raises(Rejected, match="数哪一列"):
        run(LEDGER, function="count_distinct")


def test_a_cross_table_with_the_statistic_of_each_row() -> None:
    result = run(LEDGER, columns=["金额"], group_by=["区域"], pivot="产品")
    assert result["headers"] == ["区域", "纸", "笔", "合计"]
    assert result["rows"] == [["华东", "300", "", "300"], ["华北", "30", "50", "80"]]
    mean = run(LEDGER, function="mean", columns=["金额"], group_by=["区域"], pivot="产品")
    assert mean["rows"][0] == ["华东", "100", "", "100"]  # of its three rows, not of the cells


def test_months_across_are_in_order() -> None:
    result = run(LEDGER, columns=["金额"], group_by=["产品"], pivot="日期:月")
    assert result["headers"][1:-1] == ["2023-09", "2024-08", "2024-09", "2024-11"]


def test_a_cross_table_needs_rows_and_says_what_it_leaves_out() -> None:
    with pytest.raises(Rejected, match="group_by"):
        run(LEDGER, columns=["金额"], pivot="产品")
    wide = [("组", "号", "金额"), *(("甲", f"第{n}种", n) for n in range(40))]
    result = run(wide, columns=["金额"], group_by=["组"], pivot="号")
    assert len(result["headers"]) == 14
    assert "只列出 12 个" in noted(result)
    assert result["rows"][0][-1] == "780"


def test_month_on_month_compares_with_the_month_before_and_no_other() -> None:
    result = run(LEDGER, columns=["金额"], group_by=["日期:月"], change="环比")
    assert result["headers"] == ["日期（月）", "金额 合计", "较上月", "环比"]
    assert result["rows"] == [
        ["2023-09", "50", "", ""],
        ["2024-08", "100", "", ""],
        ["2024-09", "200", "+100", "+100%"],
        ["2024-11", "30", "", ""],  # October has no rows, which is not a zero
    ]
    assert "没有上月的数据" in noted(result)


def test_year_on_year() -> None:
    result = run(LEDGER, columns=["金额"], group_by=["日期:月"], change="同比")
    assert result["rows"][2] == ["2024-09", "200", "+150", "+300%"]
    by_year = run(LEDGER, columns=["金额"], group_by=["日期:年"], change="环比")
    assert by_year["rows"][1] == ["2024", "330", "+280", "+560%"]


def test_changes_stay_within_their_own_group() -> None:
    result = run(LEDGER, columns=["金额"], group_by=["日期:月", "区域"], change="环比")
    assert ["2024-09", "华东", "150", "+50", "+50%"] in result["rows"]
    assert ["2024-09", "华北", "50", "", ""] in result["rows"]


def test_changes_find_the_only_date_column_and_refuse_what_is_no_period() -> None:
    assert run(LEDGER, columns=["金额"], change="环比")["headers"][0] == "日期（月）"
    with pytest.raises(Rejected, match="不是年、季、月或日"):
        run(LEDGER, columns=["金额"], group_by=["区域"], change="环比")
    months = [("月份", "金额"), ("9月", 0), ("十月", 5)]
    result = run(months, group_by=["月份"], change="环比")
    assert result["rows"][1] == ["十月", "5", "+5", "基数不是正数"]
    with pytest.raises(Rejected, match="没有年份"):
        run(months, group_by=["月份"], change="同比")


@pytest.mark.parametrize(
    ("text", "before"),
    [
        ("2024-01", "2023-12"),
        ("2024年1月", "2023-12"),
        ("202401", "2023-12"),
        ("2024Q1", "2023Q4"),
        ("2024年第一季度", "2023Q4"),
        ("2024", "2023"),
        ("2024年度", "2023"),
        ("2024-03-01", "2024-02-29"),
        ("十二月", "11月"),
        ("2季度", "一季度"),
    ],
)
def test_the_period_before(text: str, before: str) -> None:
    key = read_key(text)
    assert key is not None
    assert key.before() == read_key(before)


@pytest.mark.parametrize(
    "text", ["1月", "华东", "13月", "2024-13", "2024-02-30", "", "12", "5季度"]
)
def test_what_has_no_period_before_or_is_none(text: str) -> None:
    key = read_key(text)
    assert key is None or key.before() is None


def test_keys_of_different_units_are_no_sequence() -> None:
    assert read_keys(["2024-09", "2024Q3"]) is None
    assert read_keys(["2024-09", "9月"]) is None


@given(st.text(max_size=20))
def test_any_text_is_a_period_or_none(text: str) -> None:
    key = read_key(text)
    assert key is None or key.ordinal >= 0


def test_the_whole_is_still_told() -> None:
    result = run(LEDGER, columns=["金额"], group_by=["区域"], pivot="产品")
    assert result["overall"] == [["金额 合计", "380"]]
