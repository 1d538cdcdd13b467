"""What changed between two versions of a table."""

from __future__ import annotations

from io import BytesIO
from typing import Any

import pytest

from chathands.workers.comparing import compare_tables
from chathands.workers.protocol import Rejected
from tests.workers import books

OLD = [("货号", "品名", "价格"), ("001", "纸", 5), ("002", "笔", 7), ("003", "胶", 9)]
NEW = [("货号", "品名", "价格"), ("003", "胶", 9.0), ("001", "纸", 6), ("004", "尺", 1)]


def compare(old: Any, new: Any, keys: tuple[str, ...] = (), **asked: Any) -> dict[str, Any]:
    old, new = (x if isinstance(x, bytes) else books.book({"表": x}) for x in (old, new))
    payload = {"name": "旧.xlsx", "new_name": "新.xlsx", "sheet": None, "hidden": False}
    return compare_tables(payload | {"keys": keys} | asked, BytesIO(old), BytesIO(new))


def counts(result: dict[str, Any]) -> tuple[int, ...]:
    return tuple(result[kind] for kind in ("added", "removed", "changed", "same"))


def test_added_removed_and_changed_rows_wherever_they_stand() -> None:
    result = compare(OLD, NEW)
    assert (result["keys"], result["guessed"]) == (["货号"], True)
    assert counts(result) == (1, 1, 1, 1)
    assert result["changes"] == [["001", "价格", "5", "6"]]
    assert result["added_rows"] == [["004", "尺", "1"]]
    assert result["removed_rows"] == [["002", "笔", "7"]]


def test_another_way_of_writing_is_no_change() -> None:
    csv = "货号,品名,价格\n003,胶,9.00\n002, 笔 ,7\n001,纸,5\n".encode()
    assert counts(compare(OLD, csv)) == (0, 0, 0, 3)


def test_a_code_is_not_the_number_it_looks_like() -> None:
    numbers = [("货号", "品名", "价格"), (1, "纸", 5)]
    assert counts(compare(OLD[:2], numbers)) == (1, 1, 0, 0)


def test_columns_of_one_side_only_are_told_and_not_compared() -> None:
    new = [(*row, "x") for row in OLD]
    new[0] = (*OLD[0], "备注")
    result = compare(OLD, new)
    assert counts(result) == (0, 0, 0, 3)
    assert (result["only_old"], result["only_new"]) == ([], ["备注"])


def test_several_keys_and_repeated_ones() -> None:
    rows = [("日期", "店", "额"), ("9-1", "甲", 1), ("9-1", "乙", 2), ("9-1", "甲", 3)]
    result = compare(rows, rows, ("日期", "店"))
    assert counts(result) == (0, 0, 0, 3)
    assert result["repeated"] == 2  # on both sides


def test_without_a_column_that_tells_rows_apart_the_key_is_asked_for() -> None:
    rows = [("店", "额"), ("甲", 1), ("甲", 1)]
    with pytest.raises(Rejected, match="key_columns"):
        compare(rows, rows)


def test_rows_without_a_key_are_counted() -> None:
    result = compare(OLD, [*NEW, (None, "x", 1)], ("货号",))
    assert result["blank"] == 1


def test_nothing_in_common_and_wrong_keys_are_told_with_the_file() -> None:
    with pytest.raises(Rejected, match="没有同名的列"):
        compare(OLD, [("a", "b"), (1, 2)])
    with pytest.raises(Rejected, match=r"旧\.xlsx：没有列「条码」"):
        compare(OLD, NEW, ("条码",))


def test_a_thousand_rows_are_counted_and_twenty_told() -> None:
    old = [("号", "值"), *((f"{n:05}", "x") for n in range(1_000))]
    new = [("号", "值"), *((f"{n:05}", "y") for n in range(500, 1_500))]
    result = compare(old, new)
    assert counts(result) == (500, 500, 500, 0)
    assert len(result["added_rows"]) == len(result["removed_rows"]) == 20
    assert len(result["changes"]) <= 60
