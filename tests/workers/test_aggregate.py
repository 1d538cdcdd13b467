"""Statistics over whole sheets, against figures worked out by hand."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from io import BytesIO
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chathands.workers.aggregate import aggregate_table
from chathands.workers.protocol import Rejected
from tests.workers import books

SALES = [
    ("日期", "单号", "区域", "产品", "数量", "金额"),
    (dt.date(2024, 9, 3), "00101", "华东", "纸", 2, 10.1),
    (dt.date(2024, 9, 20), "00102", "华北", "笔", 1, 20.2),
    (dt.date(2024, 10, 5), "00103", "华东", "笔", 5, 30.3),
    (dt.date(2024, 12, 31), "00104", "华南", "纸", 3, 0.4),
    ("合计", None, None, None, 11, 61),
]


def run(rows: Sequence[Sequence[object]] | bytes, **asked: Any) -> dict[str, Any]:
    data = rows if isinstance(rows, bytes) else books.book({"表": rows})
    payload: dict[str, Any] = {
        "name": "t.xlsx", "sheet": None, "hidden": False, "function": "sum",
        "columns": [], "group_by": [], "where": [], "top": None,
    }  # fmt: skip
    return aggregate_table(payload | asked, BytesIO(data))


def noted(result: dict[str, Any]) -> str:
    return "；".join(result["notes"])


def test_sums_by_group_largest_first_without_the_total_row() -> None:
    result = run(SALES, columns=["金额", "数量"], group_by=["区域"])
    assert result["headers"] == ["区域", "金额 合计", "数量 合计"]
    assert result["rows"] == [["华东", "40.4", "7"], ["华北", "20.2", "1"], ["华南", "0.4", "3"]]
    assert result["overall"] == [["金额 合计", "61"], ["数量 合计", "11"]]
    assert (result["used_rows"], result["total_rows"]) == (4, 5)
    assert "没有计入 1 个合计行（合计）" in noted(result)


@pytest.mark.parametrize(
    ("function", "value"), [("mean", "15.25"), ("min", "0.4"), ("max", "30.3"), ("count", "4")]
)
def test_the_other_statistics(function: str, value: str) -> None:
    assert run(SALES, function=function, columns=["金额"])["rows"] == [[value]]


@pytest.mark.parametrize("columns", [["区域", "金额"], ["区域"]])
def test_a_column_that_names_the_groups_is_not_calculated(columns: list[str]) -> None:
    result = run(SALES, function="max", columns=columns, group_by=["区域"])
    assert result["headers"][0] == "区域"
    assert "金额 最大" in result["headers"]
    at = result["headers"].index("金额 最大")
    assert {row[0]: row[at] for row in result["rows"]}["华东"] == "30.3"
    assert "「区域」是分组的列，不参加计算" in result["readings"]


def test_counting_rows_needs_no_column() -> None:
    result = run(SALES, function="count", group_by=["产品"])
    assert result["headers"] == ["产品", "行数"]
    assert result["rows"] == [["纸", "2"], ["笔", "2"]]


def test_sums_have_no_float_noise() -> None:
    rows = [("项", "金额"), *[("a", 0.1)] * 1000, ("a", 0.2)]
    assert run(rows, columns=["金额"])["rows"] == [["100.2"]]


def test_only_the_first_groups() -> None:
    result = run(SALES, columns=["金额"], group_by=["区域"], top=1)
    assert result["rows"] == [["华东", "40.4"]]
    assert result["groups"] == 3


@pytest.mark.parametrize(
    ("spec", "keys"),
    [
        ("日期:月", ["2024-09", "2024-10", "2024-12"]),
        ("日期：季度", ["2024Q3", "2024Q4"]),
        ("日期(年)", ["2024"]),
        ("日期按月", ["2024-09", "2024-10", "2024-12"]),
        ("月份", ["2024-09", "2024-10", "2024-12"]),
        ("日期", ["2024-09-03", "2024-09-20", "2024-10-05", "2024-12-31"]),
    ],
)
def test_groups_of_dates_are_in_order(spec: str, keys: list[str]) -> None:
    result = run(SALES, columns=["金额"], group_by=[spec])
    assert [row[0] for row in result["rows"]] == keys


@pytest.mark.parametrize(
    ("where", "used"),
    [
        (["区域=华东"], 2),
        (["区域＝华东 且 产品=笔"], 1),
        (["区域=华东|华南"], 3),
        (["区域!=华东"], 2),
        (["产品包含纸", "数量>=3"], 1),
        (["产品不包含纸"], 2),
        (["金额>10.1"], 2),
        (["金额>=10.1"], 3),
        (["日期=2024-09"], 2),
        (["日期=9月"], 2),
        (["日期>=9月20日"], 3),
        (["日期=2024年"], 4),
        (["日期<=2024-09"], 2),
        (["日期>2024-09"], 2),
        (["日期>=2024-09-20", "日期<2024/12/31"], 2),
        (["日期：2024-10-05"], 1),
        (["单号=00102"], 1),
        (["单号=102"], 0),
        (["区域 = '华北'"], 1),
    ],
)
def test_conditions(where: list[str], used: int) -> None:
    assert run(SALES, function="count", where=where)["used_rows"] == used


def test_no_matching_row_lists_the_values_there_are() -> None:
    result = run(SALES, function="count", where=["区域=东北"])
    assert (result["used_rows"], result["rows"]) == (0, [])
    assert "列「区域」的值有：华东、华北、华南" in noted(result)


@pytest.mark.parametrize("where", ["没有条件", "区域~华东", "颜色=红"])
def test_a_condition_that_is_not_understood_says_what_there_is(where: str) -> None:
    with pytest.raises(Rejected, match="区域、产品"):
        run(SALES, function="count", where=[where])


def test_whoever_asks_for_the_total_row_gets_it() -> None:
    assert run(SALES, columns=["金额"], where=["日期=合计"])["rows"] == [["61"]]


def test_texts_that_are_numbers_are_converted_and_counted() -> None:
    rows = [
        ("店", "金额"),
        ("a", "￥1,200"),
        ("b", "1,234.5元"),
        ("c", 3),
        ("d", "待定"),
        ("e", None),
    ]
    result = run(rows, columns=["金额"])
    assert result["rows"] == [["2437.5"]]
    assert "2 个写成文本的数字（如 ￥1,200）" in noted(result)
    assert "1 个单元格不是数字（如 待定）" in noted(result)
    assert "1 个空白" in noted(result)


def test_percentages_stay_percentages() -> None:
    rows = [("店", "占比"), ("a", "12.5%"), ("b", "37.5%")]
    assert run(rows, columns=["占比"])["rows"] == [["50%"]]
    assert run(rows, columns=["占比"], function="mean")["rows"] == [["25%"]]


def test_codes_are_never_added() -> None:
    rows = [("身份证", "工号"), ("110101199003071234", "00123"), ("110101199003071235", "00124")]
    for column in ("身份证", "工号"):
        with pytest.raises(Rejected, match="是编号，不能求和"):
            run(rows, columns=[column])
    mixed = run([("号", "x"), ("00123", 1), (5, 1)], columns=["号"])
    assert mixed["rows"] == [["5"]]
    assert "1 个编号（如 00123" in noted(mixed)


def test_numbers_too_long_for_a_spreadsheet_are_told() -> None:
    assert "末位不可靠" in noted(run([("号", "x"), (110101199003071234, 1)], columns=["号"]))


def test_without_columns_the_amounts_are_taken_and_codes_are_not() -> None:
    rows = [
        ("编号", "年份", "品名", "数量", "金额"),
        (7, 2023, "笔", 1, 2.5),
        (8, 2024, "墨", 2, 3.5),
    ]
    assert run(rows)["headers"] == ["数量 合计", "金额 合计"]
    with pytest.raises(Rejected, match="没有找到数字列"):
        run([("a", "b"), ("x", "y")])


def test_a_merged_amount_counts_once() -> None:
    rows = [("区域", "人", "奖金"), ("东", "甲", 300), (None, "乙", None), ("西", "丙", 100)]
    data = books.book({"a": rows}, merged=["A2:A3", "C2:C3"])
    result = run(data, columns=["奖金"], group_by=["区域"])
    assert result["rows"] == [["东", "300"], ["西", "100"]]
    assert "合并单元格各只计一次" in noted(result)


def test_subtotals_inside_are_left_out_too() -> None:
    rows = [("区域", "额"), ("东一", 1), ("东区小计", 1), ("西一", 2), ("总计：", 3)]
    result = run(rows, columns=["额"], group_by=["区域"])
    assert result["overall"] == [["额 合计", "3"]]
    assert "2 个合计行" in noted(result)


def test_the_latest_date() -> None:
    assert run(SALES, function="max", columns=["日期"])["rows"] == [["2024-12-31"]]
    rows = [("下单", "x"), ("2024/9/3", 1), ("2024年10月1日", 1)]
    assert run(rows, function="min", columns=["下单"])["rows"] == [["2024-09-03"]]


def test_blank_groups_are_a_group() -> None:
    rows = [("区域", "额"), (None, 1), ("东", 2), (" ", 3)]
    assert run(rows, columns=["额"], group_by=["区域"])["rows"] == [["（空）", "4"], ["东", "2"]]


def test_columns_of_another_sheet_are_found_there() -> None:
    data = books.book(
        {"汇总": [("区域", "金额"), ("东", 1)], "明细": [("产品", "金额"), ("笔", 7)]}
    )
    result = run(data, columns=["金额"], where=["产品=笔"])
    assert (result["sheet"], result["rows"]) == ("明细", [["7"]])


def test_means_and_counts_are_about_records_and_not_about_totals() -> None:
    sheets = {
        "汇总": [("区域", "金额"), ("东", 30), ("西", 10)],
        "明细": [("区域", "金额"), ("东", 10), ("东", 20), ("西", 10)],
    }
    data = books.book(sheets)
    assert run(data, columns=["金额"])["sheet"] == "汇总"
    mean = run(data, columns=["金额"], function="mean")
    assert (mean["sheet"], mean["rows"]) == ("明细", [["13.33"]])
    assert "用了行数最多的「明细」" in noted(mean)
    assert run(data, function="count", group_by=["区域"])["rows"] == [["东", "2"], ["西", "1"]]
    assert run(data, function="count", sheet="汇总")["used_rows"] == 2


def test_the_top_of_dated_groups_is_by_value() -> None:
    result = run(SALES, columns=["数量"], group_by=["日期:月"], top=1)
    assert result["rows"] == [["2024-10", "5"]]


def test_csv_numbers_need_no_remark() -> None:
    result = run('区域,金额\n东,1.5\n西,"1,000"\n'.encode(), columns=["金额"])
    assert result["rows"] == [["1001.5"]]
    assert "1 个写成文本的数字（如 1,000）" in noted(result)


def test_several_columns_in_one_text() -> None:
    result = run(SALES, columns=["金额、数量"], group_by=["区域,产品"])
    assert result["headers"] == ["区域", "产品", "金额 合计", "数量 合计"]


CENTS = st.integers(-10_000_000, 10_000_000)


@settings(max_examples=25, deadline=None)
@given(st.lists(st.tuples(st.sampled_from("甲乙丙"), CENTS), min_size=1, max_size=60))
def test_sums_of_money_are_exact(rows: list[tuple[str, int]]) -> None:
    text = "组,额\n" + "\n".join(f"{group},{cents / 100:.2f}" for group, cents in rows)
    result = run(text.encode(), columns=["额"], group_by=["组"])
    shown = {group: round(float(value) * 100) for group, value in result["rows"]}
    wanted: dict[str, int] = {}
    for group, cents in rows:
        wanted[group] = wanted.get(group, 0) + cents
    assert shown == wanted
    assert float(result["overall"][0][1]) == sum(wanted.values()) / 100
