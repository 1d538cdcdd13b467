"""A table that a tool returned is one for people in the group, too."""

from __future__ import annotations

from datetime import date

from chathands import Table
from plugins.group_chat import rendering_tables
from plugins.group_chat.rendering import pieces_of

TABLE = Table(
    ["编号", "金额", "日期", "备注"],
    [["00123", 5.0, date(2025, 9, 1), "甲|乙"], ["00124", None, None, "*两*\n行"]],
    title="订单",
)


def drawn(text: str) -> rendering_tables.Table:
    (table,) = (piece for piece in pieces_of(text) if isinstance(piece, rendering_tables.Table))
    return table


def test_its_cells_are_the_rows_of_the_groups_table():
    made = rendering_tables.Table.of(TABLE.columns, TABLE.cells())
    assert made.rows[0] == ("00123", "5", "2025-09-01", "甲|乙")
    assert made.rows[1][:3] == ("00124", "", "")


def test_what_the_model_copies_into_its_answer_is_read_as_the_same_table():
    for text in (TABLE.markdown(), TABLE.for_model(4000)):
        read = drawn(f"查到了：\n\n{text}")
        assert read.head == ("编号", "金额", "日期", "备注")
        assert read.rows[0] == ("00123", "5", "2025-09-01", "甲|乙")
        assert read.rows[1][:3] == ("00124", "", "")


def test_a_table_with_rows_left_out_is_still_one_table():
    long = Table(["n", "m"], [[n, n] for n in range(2000)])
    rows = drawn(long.for_model(1000)).rows
    assert (rows[0], rows[-1]) == (("0", "0"), ("1999", "1999"))
