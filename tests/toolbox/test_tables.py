"""Tables: cells stay what they are, and people's table is the model's."""

from __future__ import annotations

import re
from datetime import date, datetime, time
from decimal import Decimal
from enum import Enum
from time import perf_counter
from typing import Any

import numpy as np
import pandas as pd
import pytest

from chathands import Table
from chathands.toolbox.tables import LONGEST_CELL, shown


class Unit(Enum):
    METRIC = "metric"


@pytest.mark.parametrize(
    ("cell", "text"),
    [
        ("00123", "00123"), ("1e5", "1e5"), ("=1+1", "=1+1"), ("", ""), (None, ""),
        (0, "0"), (12345678901234567890, "12345678901234567890"), (1e5, "100000"),
        (0.1 + 0.2, "0.3"), (1234567.891, "1234567.891"), (float("nan"), ""),
        (Decimal("1.10"), "1.10"), (True, "是"), (False, "否"), (date(2025, 9, 1), "2025-09-01"),
        (datetime(2025, 9, 1, 8, 30), "2025-09-01T08:30:00"), (time(8, 30), "08:30:00"),
        (Unit.METRIC, "metric"), (["a", 1], '["a", 1]'), (np.int64(5), "5"),
        (np.float64(2.5), "2.5"), (np.bool_(True), "是"), (pd.NaT, ""), (pd.NA, ""),
        (pd.Timestamp("2025-09-01"), "2025-09-01T00:00:00"), ("a\x00\x1b[2Jb", "a[2Jb"),
    ],
)  # fmt: skip
def test_a_cell_stays_what_it_is(cell: Any, text: str):
    assert shown(cell) == text


def test_rows_may_be_mappings_short_or_made_on_the_way():
    table = Table(["甲", "乙"], ({"乙": n} if n else [n] for n in range(2)))
    assert table.cells() == [("0", ""), ("", "1")]


@pytest.mark.parametrize(
    ("columns", "rows"),
    [
        (["甲"], [[1, 2]]),
        (["甲"], [{"乙": 1}]),
        (["甲"], ["字"]),
        (["甲"], [3]),
        (["甲"], "甲"),
        ("甲乙", []),
        ([], []),
    ],
)
def test_what_is_no_table_is_refused_where_it_is_made(columns: Any, rows: Any):
    with pytest.raises((TypeError, ValueError)):
        Table(columns, rows)


ROWS = [["00123", "a|b", "两\n行"], ["\\|", None, "-"], ["\x01", 1.50, "尾 "]]


def parsed(text: str) -> list[list[str]]:
    """The Markdown as a chat's renderer reads it."""
    lines = [line for line in text.split("\n") if line.startswith("|")]
    cells = [re.split(r"(?<!\\)(?:\\\\)*\|", line)[1:-1] for line in lines]
    return [[re.sub(r"\\(.)", r"\1", cell.strip()) for cell in row] for row in cells]


def test_nothing_in_a_cell_breaks_the_table():
    for text in (Table(["编号", "a|b", ""], ROWS).markdown(),
                 Table(["编号", "a|b", ""], ROWS).for_model(4000)):  # fmt: skip
        rows = parsed(text)
        assert len(rows) == 5
        assert {len(row) for row in rows} == {3}
        assert rows[2] == ["00123", "a|b", "两 行"]


@pytest.mark.parametrize("limit", [300, 1000, 4096, 20_000])
@pytest.mark.parametrize("width", [1, 12])
@pytest.mark.parametrize("count", [0, 1, 2, 40, 3000])
def test_it_keeps_to_the_limit_with_first_and_last_rows(limit: int, width: int, count: int):
    columns = [f"列{n}" for n in range(width)]
    rows = [[f"{n}-{m}" for m in range(width)] for n in range(count)]
    text = Table(columns, rows, title="表", note="注").for_model(limit)
    assert len(text) <= limit
    assert f"共 {count} 行 {width} 列" in text
    lines = text.split("\n")
    body = lines[3:-1]
    if len(body) < count:
        assert "省略了" in lines[0]
        shown_rows = [line for line in body if "……" not in line]
        assert f"省略了 {count - len(shown_rows)} 行" in lines[0]
    if count:
        assert body[0].startswith("| 0-0 |")


def test_a_text_in_a_cell_is_cut_for_the_model_and_whole_for_people():
    table = Table(["文"], [["字" * 5000]])
    assert f"{'字' * LONGEST_CELL}…（共 5000 字）" in table.for_model(20_000)
    assert "字" * 5000 in table.markdown()


def test_many_rows_cost_what_is_shown():
    table = Table(["n"], ([n] for n in range(100_000)))
    began = perf_counter()
    table.for_model(4000)
    assert perf_counter() - began < 0.2
