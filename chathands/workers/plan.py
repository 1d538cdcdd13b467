"""What a statistic was asked for, in terms of one table: groups, conditions, value columns."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from chathands.workers.cells import Cell, is_blank, is_number, read_date, read_written
from chathands.workers.columns import ColumnFinder, split_names
from chathands.workers.conditions import Condition, read_conditions
from chathands.workers.groupings import Grouping, read_grouping
from chathands.workers.protocol import Rejected
from chathands.workers.table import Table
from chathands.workers.values import Column

Statistic = Literal["sum", "mean", "min", "max", "count", "count_distinct"]

TITLES = {
    "sum": "合计",
    "mean": "平均",
    "min": "最小",
    "max": "最大",
    "count": "计数",
    "count_distinct": "去重计数",
}
VERBS = {
    "sum": "求和",
    "mean": "求平均",
    "min": "求最小值",
    "max": "求最大值",
    "count": "计数",
    "count_distinct": "去重计数",
}

COLUMNS_BY_DEFAULT = 6
_LISTED_AMOUNTS = 12

_CODE_NAMES = re.compile(r"号|编码|代码|电话|手机|邮编|年份|年度|\bid\b|\bno\b|code", re.IGNORECASE)
"""Columns that hold numbers nobody adds up; left out when no column is named."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What was asked, in terms of one table. `positions` are those of `columns`; `across` is the
    grouping whose values become columns."""

    function: Statistic
    groupings: list[Grouping]
    conditions: list[Condition]
    positions: list[int]
    columns: list[Column]
    readings: list[str]
    across: Grouping | None = None

    @property
    def keys(self) -> list[Grouping]:
        """All groupings, the one across last."""
        return self.groupings + ([self.across] if self.across else [])

    @property
    def titles(self) -> list[str]:
        return [f"{column.name} {TITLES[self.function]}" for column in self.columns] or ["行数"]

    @property
    def extra_decimals(self) -> int:
        return 2 if self.function == "mean" else 0

    def shown(self, at: int, value: float) -> str:
        """A result of value column `at`, as people read it."""
        if not self.columns:
            return "" if value != value else str(int(value))
        return self.columns[at].show(float(value), self.extra_decimals)


def make_plan(payload: Mapping[str, Any], table: Table, finder: ColumnFinder) -> Plan:
    """Raises Rejected when the table has no such columns."""
    function: Statistic = payload["function"]
    names = table.columns
    by = split_names(payload["group_by"], names)
    over = split_names([payload.get("pivot") or ""], names)
    dates = date_columns(table) if by or over else []
    groupings = [read_grouping(text, finder, dates) for text in by]
    across = read_grouping(over[0], finder, dates) if over else None
    groupings = [each for each in groupings if each != across]
    if across and not groupings:
        raise Rejected("做交叉表还要写 group_by：用哪一列的值当行。")
    conditions = read_conditions(payload["where"], finder)
    wanted = [finder.find(text) for text in split_names(payload["columns"], names)]
    if function == "count_distinct" and not wanted:
        raise Rejected(f"去重计数要用 columns 写明数哪一列。列有：{'、'.join(names[:40])}。")
    if function not in ("count", "count_distinct"):
        keys = groupings + ([across] if across else [])
        wanted = _without_labels(wanted, table, keys, finder)
        wanted = wanted or _numeric_columns(table, keys)
    positions = list(dict.fromkeys(wanted))
    columns = [_column(table, at, function) for at in positions]
    return Plan(function, groupings, conditions, positions, columns, finder.readings, across)


def with_values(plan: Plan, table: Table, meant: Mapping[Condition, Mapping[str, str]]) -> Plan:
    """The plan for the same sheet opened anew, with the values that are meant."""
    return replace(
        plan,
        conditions=[c.with_values(meant.get(c, {})) for c in plan.conditions],
        columns=[_column(table, at, plan.function) for at in plan.positions],
        readings=list(dict.fromkeys(plan.readings + value_readings(meant))),
    )


def value_readings(meant: Mapping[Condition, Mapping[str, str]]) -> list[str]:
    return [
        f"「{wanted}」按「{condition.name}」列的值「{value}」算"
        for condition, values in meant.items()
        for wanted, value in values.items()
    ]


def what(plan: Plan) -> str:
    """The plan in one phrase."""
    groupings, columns, conditions = plan.groupings, plan.columns, plan.conditions
    by = f"按「{'、'.join(grouping.title for grouping in groupings)}」" if groupings else ""
    across = f"、横向按「{plan.across.title}」" if plan.across else ""
    over = f"对「{'、'.join(column.name for column in columns)}」" if columns else "对行"
    where = f"，条件：{' 且 '.join(c.text for c in conditions)}" if conditions else ""
    return f"{by}{across}{over}{VERBS[plan.function]}{where}"


def refuse_wordy(plan: Plan, table: Table) -> None:
    """Raises Rejected when a column to be calculated held no number at all."""
    found = "、".join(table.columns[at] for at in amounts(table)[:_LISTED_AMOUNTS])
    which = f"（{found}）" if found else ""
    readings = "".join(f"{reading}。" for reading in plan.readings)
    for column in plan.columns:
        if column.reading == "numbers" and not column.found:
            why = "是编号" if column.codes else "没有数字"
            raise Rejected(
                f"{readings}列「{column.name}」{why}，不能{VERBS[plan.function]}。"
                f"请换一个数字列{which}，或用 count 计数。"
            )


def date_columns(table: Table) -> list[int]:
    return [at for at in range(len(table.columns)) if _mostly(table, at, _is_date)]


def amounts(table: Table) -> list[int]:
    """Columns of numbers that can be added up."""
    return [
        at
        for at, name in enumerate(table.columns)
        if not _CODE_NAMES.search(name) and _mostly(table, at, _is_amount)
    ]


def is_code_name(name: str) -> bool:
    return _CODE_NAMES.search(name) is not None


def _without_labels(
    wanted: Sequence[int], table: Table, groupings: Sequence[Grouping], finder: ColumnFinder
) -> list[int]:
    """Without the columns that only name the groups: models list them among what is calculated."""
    labels = {each.column for each in groupings} - set(amounts(table))
    for at in dict.fromkeys(at for at in wanted if at in labels):
        finder.readings.append(f"「{table.columns[at]}」是分组的列，不参加计算")
    return [at for at in wanted if at not in labels]


def refuse_empty(table: Table) -> None:
    """Raises Rejected when there is nothing under the header."""
    if not table.sample:
        place = f"工作表「{table.sheet}」" if table.sheet else "文件"
        raise Rejected(f"{place}的表头下面没有数据。")


def _numeric_columns(table: Table, groupings: Sequence[Grouping]) -> list[int]:
    refuse_empty(table)
    grouped = {grouping.column for grouping in groupings}
    found = [at for at in amounts(table) if at not in grouped]
    if not found:
        raise Rejected(
            f"没有找到数字列，请用 columns 写明要统计的列。列有：{'、'.join(table.columns[:40])}。"
        )
    return found[:COLUMNS_BY_DEFAULT]


def _mostly(table: Table, at: int, kind: Callable[[Cell], bool]) -> bool:
    cells = [row.cells[at] for row in table.sample if at < len(row.cells)]
    cells = [cell for cell in cells if not is_blank(cell)]
    return bool(cells) and sum(map(kind, cells)) >= len(cells) * 0.8


def _is_date(cell: Cell) -> bool:
    return read_date(cell) is not None


def _is_amount(cell: Cell) -> bool:
    return is_number(cell) or (isinstance(cell, str) and read_written(cell) is not None)


def _column(table: Table, at: int, function: Statistic) -> Column:
    reading: Any = {"count": "presence", "count_distinct": "distinct"}.get(function, "numbers")
    if function in ("min", "max") and _mostly(table, at, _is_date):
        reading = "dates"
    return Column(table.columns[at], reading, table.typed)
