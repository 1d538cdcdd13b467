"""Values by a slightly other name, and values where a column belongs."""

from __future__ import annotations

import pytest

from chathands.workers.near_values import differ_by_suffix
from tests.workers import books
from tests.workers.test_fitting import TWO, refused, run

STAFF = {
    "人": [
        ("部门", "小组", "工时", "备注"),
        ("销售部", "一组", 5, "调自 华南"),
        ("销售部", "二组", 7, ""),
        ("市场", "三组", 2, "市场"),
    ]
}


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("华南区", "华南", True),
        ("华南", "华南大区", True),
        ("市场部", "市场", True),
        ("销售部", "销售组", False),
        ("华南", "华南", False),
        ("区", "", False),
        ("华南一区", "华南", False),
    ],
)
def test_one_suffix_more_or_less(one: str, other: str, same: bool) -> None:
    assert differ_by_suffix(one, other) is differ_by_suffix(other, one) is same


@pytest.mark.parametrize("said", ["华南", "华南区"])
def test_a_value_as_a_group_is_told_as_the_condition_to_write(said: str) -> None:
    told = refused(TWO, columns=["金额"], group_by=[said])
    assert '「华南」是「区域」列里的值，请改为 where=["区域=华南"]' in told
    assert f"group_by 里不要写「{said}」" in told


def test_the_advice_keeps_the_other_conditions_and_groups_several_values() -> None:
    told = refused(TWO, columns=["金额"], group_by=["乙"], where=["日期=2024-10"])
    assert 'where=["日期=2024-10", "销售员=乙"]' in told
    told = refused(TWO, columns=["金额"], group_by=["华东、华南区"])
    assert 'where=["区域=华东|华南"]，group_by=["区域"]。' in told


def test_a_value_as_a_column_or_as_a_whole_condition_is_told_too() -> None:
    assert "columns 里不要写「华南」" in refused(TWO, columns=["华南"])
    told = refused(TWO, columns=["金额"], where=["华南区"])
    assert told == '「华南」是「区域」列里的值，请改为 where=["区域=华南"]。'


def test_following_the_advice_works() -> None:
    assert run(TWO, columns=["金额"], where=["区域=华南"])["rows"] == [["10"]]


def test_a_value_of_two_columns_is_no_advice() -> None:
    told = refused(STAFF, columns=["工时"], group_by=["市场"])
    assert "没有列「市场」" in told
    assert "值" not in told


def test_a_condition_with_a_suffix_too_much_or_too_little_holds_with_a_remark() -> None:
    result = run(TWO, columns=["金额"], where=["地区=华南区"])
    assert result["rows"] == [["10"]]
    assert "条件：区域=华南" in result["what"]
    assert "「华南区」按「区域」列的值「华南」算" in result["readings"]
    longer = run(STAFF, columns=["工时"], where=["部门=销售"])
    assert longer["rows"] == [["12"]]
    assert run(TWO, columns=["金额"], where=["区域!=华南区"])["rows"] == [["30"]]


def test_one_of_several_values_may_have_the_suffix() -> None:
    result = run(TWO, columns=["金额"], where=["区域=华南区|华东"], group_by=["区域"])
    assert result["rows"] == [["华东", "30"], ["华南", "10"]]


def test_a_csv_is_read_again_as_well() -> None:
    result = run("区域,额\n华南,1\n华北,2\n".encode(), columns=["额"], where=["区域=华南区"])
    assert result["rows"] == [["1"]]


def test_what_was_remarked_on_the_sheet_stays_when_it_is_read_again() -> None:
    result = run(TWO, function="count", where=["区域=华南区"])
    assert (result["sheet"], result["used_rows"]) == ("明细", 1)
    assert result["notes"] == ["没有指定工作表，用了行数最多的「明细」"]


def test_a_value_that_may_be_either_of_two_is_not_guessed() -> None:
    sheets = {"a": [("组", "额"), ("东", 1), ("东区部", 2), ("东区", 4), ("东部", 8)]}
    assert run(sheets, columns=["额"], where=["组=东区"])["rows"] == [["4"]]
    both = {"a": [("组", "额"), ("东区", 4), ("东部", 8)]}
    result = run(both, columns=["额"], where=["组=东"])
    assert result["used_rows"] == 0
    assert result["notes"] == ["列「组」的值有：东区、东部"]


def test_only_the_condition_that_fits_nothing_lists_its_values() -> None:
    result = run(TWO, columns=["金额"], where=["销售员=甲", "产品=墨"])
    assert result["notes"] == ["列「产品」的值有：纸、笔"]
    result = run(TWO, columns=["金额"], where=["销售员=甲", "产品=笔"])
    assert result["notes"] == ["列「销售员」的值有：甲、乙", "列「产品」的值有：纸、笔"]


def test_at_most_twelve_values_are_listed() -> None:
    rows = [("码", "额"), *((f"v{n}", n) for n in range(40))]
    result = run(books.book({"a": rows}), columns=["额"], where=["码=没有"])
    assert result["notes"] == [f"列「码」的值有：{'、'.join(f'v{n}' for n in range(12))}……"]


def test_a_wanted_value_that_no_row_has_is_told_beside_the_others() -> None:
    result = run(TWO, columns=["金额"], where=["区域=华南|东北"])
    assert result["rows"] == [["10"]]
    assert result["notes"] == ["没有「区域=东北」的行"]


def test_the_largest_row_of_each_group_is_told_from_the_largest_total() -> None:
    rows = [("区域", "金额"), ("甲", 9), ("乙", 5), ("乙", 6), ("丙", 1), *[("丁", 1)] * 3]
    for function, word, order, totals in (
        ("max", "大", "从大到小", "乙 11、甲 9、丁 3、丙 1"),
        ("min", "小", "从小到大", "丙 1、丁 3、甲 9、乙 11"),
    ):
        asked = {"function": function, "columns": ["金额"], "group_by": ["区域"]}
        caution = run(books.book({"a": rows}), **asked)["caution"]
        told = f"总额（金额 合计）{order}：{totals}。"
        assert caution == f"这是每组里单行的最{word}值，不是总额。{told}"
    many = [("区域", "金额"), *((f"g{n}", n) for n in range(1, 8))]
    caution = run(books.book({"a": many}), function="max", columns=["金额"], group_by=["区域"])
    assert caution["caution"].endswith("g7 7、g6 6、g5 5、g4 4、g3 3……")
    for other in (
        {"function": "sum", "columns": ["金额"], "group_by": ["区域"]},
        {"function": "max", "columns": ["金额"]},
        {"function": "max", "columns": ["日期"], "group_by": ["区域"]},
    ):
        assert run(TWO, **other)["caution"] == ""


def test_a_column_without_numbers_names_those_that_have_some() -> None:
    told = refused(TWO, columns=["业务员"], group_by=["区域"])
    assert "「业务员」按列「销售员」算。列「销售员」没有数字，不能求和" in told
    assert "请换一个数字列（数量、金额）" in told
