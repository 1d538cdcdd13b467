"""Which column is meant: by its name, by another word for the same thing, or none."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chathands.workers import columns
from chathands.workers.columns import ColumnFinder, NoColumn, SeveralColumns, alike, bare

SALES = ["日期", "订单号", "区域", "销售员", "产品", "数量", "单价", "金额"]
WORDS = json.loads(Path(columns.__file__).with_name("office_words.json").read_text("utf-8"))


def meant(wanted: str, names: list[str]) -> list[str]:
    return [names[at] for at in alike(wanted, names)]


@pytest.mark.parametrize(
    ("wanted", "column"),
    [
        ("销售额", "金额"),
        ("销售金额", "金额"),
        ("营业额", "金额"),
        ("业绩", "金额"),
        ("产品销售额", "金额"),
        ("金额合计", "金额"),
        ("Sales Amount", "金额"),
        ("数目", "数量"),
        ("销量", "数量"),
        ("Qty", "数量"),
        ("下单时间", "日期"),
        ("order_date", "日期"),
        ("地区", "区域"),
        ("区域名称", "区域"),
        ("业务员", "销售员"),
        ("销售员姓名", "销售员"),
        ("商品", "产品"),
        ("Order No.", "订单号"),
        ("订单编号", "订单号"),
        ("售价", "单价"),
    ],
)
def test_another_word_for_the_same_thing(wanted: str, column: str) -> None:
    assert meant(wanted, SALES) == [column]


@pytest.mark.parametrize(
    ("wanted", "name"),
    [
        ("金额（元）", "金额"),
        ("金额/元", "金额"),
        ("金额_元", "金额（万元）"),
        ("ＡＭＯＵＮＴ", "Amount (CNY)"),
        ("unit price", "Unit_Price"),
        ("「到 货 率」", "到货率"),
    ],
)
def test_spelling_brackets_and_units_do_not_matter(wanted: str, name: str) -> None:
    assert meant(wanted, ["编号", name]) == [name]


def test_the_only_column_inside_the_name_or_around_it() -> None:
    assert meant("本季度到货箱数", ["箱数", "批次"]) == ["箱数"]
    assert meant("到货-箱数", ["本批到货箱数", "批次"]) == ["本批到货箱数"]
    assert meant("甲方批次箱数", ["箱数", "批次"]) == ["箱数", "批次"]


@pytest.mark.parametrize(
    ("wanted", "names"),
    [
        ("毛利金额", SALES),
        ("不含税金额", SALES),
        ("客单价", SALES),
        ("订单数量", SALES),
        ("客户满意度", ["客户", "金额"]),
        ("毛利", SALES),
        ("产品类型", ["客户类型", "金额"]),
        ("客户名称", ["产品名称", "供应商名称"]),
        ("", SALES),
        ("（）", SALES),
    ],
)
def test_a_word_that_makes_it_another_thing_is_no_match(wanted: str, names: list[str]) -> None:
    assert meant(wanted, names) == []


def test_two_columns_that_may_be_meant_are_both_named() -> None:
    finder = ColumnFinder(["店", "应收金额", "实收金额"], loose=True)
    with pytest.raises(SeveralColumns, match="「销售额」对应不止一列：应收金额、实收金额"):
        finder.find("销售额")


def test_other_words_count_only_when_asked_to() -> None:
    with pytest.raises(NoColumn, match="没有列「销售额」"):
        ColumnFinder(SALES).find("销售额")
    finder = ColumnFinder(SALES, loose=True)
    assert SALES[finder.find("销售额")] == "金额"
    assert finder.readings == ["「销售额」按列「金额」算"]


def test_the_very_name_is_not_worth_a_word_and_a_part_of_it_is() -> None:
    finder = ColumnFinder(["金额(元)", "一季度/收入", "发货仓库"])
    assert [finder.find(name) for name in ("金额", "收入", "仓库")] == [0, 1, 2]
    assert finder.readings == ["「仓库」按列「发货仓库」算"]


def test_the_word_list_is_of_names_as_they_are_compared_and_each_is_there_once() -> None:
    terms = [term for group in WORDS["synonyms"] for term in group]
    assert [term for term in terms if bare(term) != term] == []
    assert [term for term, count in Counter(terms).items() if count > 1] == []


@given(st.text(max_size=30), st.lists(st.text(max_size=12), max_size=6))
def test_any_text_finds_a_column_or_none(wanted: str, names: list[str]) -> None:
    assert set(alike(wanted, names)) <= set(range(len(names)))
