"""Which sheet is used, and what a question that fits none of them is told."""

from __future__ import annotations

from io import BytesIO
from typing import Any

import pytest

from chathands.workers.aggregate import aggregate_table
from chathands.workers.protocol import Rejected
from chathands.workers.reading import read_table
from tests.workers import books

TWO = {
    "汇总": [("区域", "数量", "金额"), ("华东", 3, 30), ("华南", 1, 10)],
    "明细": [
        ("日期", "区域", "销售员", "产品", "数量", "金额"),
        ("2024-09-01", "华东", "甲", "纸", 1, 10),
        ("2024-09-02", "华东", "甲", "纸", 2, 20),
        ("2024-10-02", "华南", "乙", "笔", 1, 10),
    ],
}


def run(sheets: dict[str, Any] | bytes, **asked: Any) -> dict[str, Any]:
    data = sheets if isinstance(sheets, bytes) else books.book(sheets)
    payload: dict[str, Any] = {
        "name": "t.xlsx", "sheet": "", "hidden": False, "function": "sum",
        "columns": [], "group_by": [], "where": [], "top": 0,
    }  # fmt: skip
    return aggregate_table(payload | asked, BytesIO(data))


def read(sheets: dict[str, Any], **asked: Any) -> dict[str, Any]:
    payload = {"name": "t.xlsx", "sheet": "", "columns": [], "limit": 30, "hidden": False}
    return read_table(payload | asked, BytesIO(books.book(sheets)))


def refused(sheets: dict[str, Any] | bytes, **asked: Any) -> str:
    with pytest.raises(Rejected) as rejected:
        run(sheets, **asked)
    assert len(rejected.value.sentence) <= 500
    return rejected.value.sentence


def test_a_column_by_another_word_is_used_and_told() -> None:
    result = run(TWO, columns=["销售额"], group_by=["地区"])
    assert result["sheet"] == "汇总"
    assert result["rows"] == [["华东", "30"], ["华南", "10"]]
    assert result["readings"] == ["「地区」按列「区域」算", "「销售额」按列「金额」算"]
    shown = read(TWO, columns=["区域", "业绩"])
    assert (shown["shown"], shown["readings"]) == (["区域", "金额"], ["「业绩」按列「金额」算"])


def test_other_words_find_the_sheet_that_has_all_of_them() -> None:
    result = run(TWO, columns=["销量"], group_by=["商品"])
    assert (result["sheet"], result["rows"]) == ("明细", [["纸", "3"], ["笔", "1"]])
    mean = run(TWO, function="mean", columns=["销售额"])
    assert mean["sheet"] == "明细"


def test_the_unit_of_a_date_stays_when_its_column_has_another_name() -> None:
    result = run(TWO, columns=["销售额"], group_by=["下单日期:月"])
    assert result["headers"] == ["日期（月）", "金额 合计"]
    assert [row[0] for row in result["rows"]] == ["2024-09", "2024-10"]


def test_conditions_are_about_columns_by_other_words_too() -> None:
    result = run(TWO, columns=["金额"], where=["业务员=乙", "销售额>=10"])
    assert result["rows"] == [["10"]]
    assert "条件：销售员=乙 且 金额>=10" in result["what"]


def test_the_very_name_on_any_sheet_comes_before_other_words() -> None:
    sheets = TWO | {"目标": [("区域", "销售额"), ("华东", 99)]}
    assert run(sheets, columns=["销售额"])["sheet"] == "目标"
    told = refused(sheets, columns=["销售额"], group_by=["产品"])
    assert "「产品」在「明细」" in told
    assert "「销售额」在「目标」" in told
    told = refused(sheets, columns=["销售额"], sheet="汇总")
    assert '没有列「销售额」，它在工作表「目标」里，请改为 sheet_name="目标"' in told


def test_names_on_hidden_sheets_are_neither_told_nor_in_the_way() -> None:
    sheets = TWO | {"工资": [("姓名", "销售额"), ("甲", 9)]}
    data = books.book(sheets, states={"工资": "hidden"})
    assert run(data, columns=["销售额"])["readings"] == ["「销售额」按列「金额」算"]
    assert "工资" not in refused(data, columns=["毛利"])
    assert "工资" not in refused(data, columns=["毛利"], sheet="汇总")


def test_two_columns_that_may_be_meant_fail_by_name() -> None:
    sheets = {"账": [("店", "应收金额", "实收金额"), ("a", 1, 2)], "注": [("店", "人"), ("a", "b")]}
    assert "工作表「账」：列「销售额」对应不止一列：应收金额、实收金额" in refused(
        sheets, columns=["销售额"]
    )


def test_a_missing_column_lists_the_columns_of_all_sheets() -> None:
    for sheet in ("", "汇总"):
        told = refused(TWO, columns=["毛利"], sheet=sheet)
        assert told.startswith("没有列「毛利」。工作表「汇总」的列有：区域、数量、金额。")
        assert "其他工作表：明细（日期、区域、销售员、产品、数量、金额）" in told


def test_only_what_no_sheet_has_is_called_missing() -> None:
    told = refused(TWO, columns=["毛利"], group_by=["产品"])
    assert "没有列「毛利」" in told
    assert "没有列「产品」" not in told
    assert "没有列「毛利」" in refused(TWO, columns=["商品", "毛利"], sheet="汇总")


def test_a_sheet_that_has_the_columns_is_named_to_who_asked_for_another() -> None:
    told = refused(TWO, columns=["金额"], group_by=["产品"], sheet="汇总")
    assert told.startswith('没有列「产品」，它在工作表「明细」里，请改为 sheet_name="明细"。')
    with pytest.raises(Rejected, match=r'没有列「产品」.*请改为 sheet_name="明细"'):
        read(TWO, columns=["产品"], sheet="汇总")


def test_many_wide_sheets_are_listed_as_far_as_there_is_room() -> None:
    wide = [[f"很长的列名第{n}号" for n in range(60)], list(range(60))]
    told = refused({f"表{n}": wide for n in range(9)}, columns=["毛利"])
    assert "很长的列名第0号" in told
    assert "等 8 张" in told
    assert len(told) < 480


def test_a_sheet_of_blanks_does_not_hide_the_others() -> None:
    sheets = {"封面": [(" ", " ")], **TWO}
    assert read(sheets)["sheet"] == "汇总"
    with pytest.raises(Rejected, match="没有数据"):
        read({"封面": [(" ", " ")]})
