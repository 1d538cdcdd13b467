"""Sums, means, extremes and counts over a whole sheet, by groups; pandas on columns typed by us.

pandas alone would read `00123` as 123 and add '100' to '200' as '100200' (measured).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, BinaryIO, Literal

from chathands.workers.cells import (
    Cell,
    is_blank,
    is_number,
    is_plain_number,
    plain,
    read_date,
)
from chathands.workers.columns import ColumnFinder, split_names
from chathands.workers.conditions import Condition, read_conditions
from chathands.workers.fitting import fitting_table
from chathands.workers.groupings import Grouping, read_grouping
from chathands.workers.near_values import Watch
from chathands.workers.protocol import Rejected
from chathands.workers.table import Row, Table
from chathands.workers.values import Column
from chathands.workers.workbook import open_tables

Statistic = Literal["sum", "mean", "min", "max", "count"]

GROUPS_SHOWN = 50
COLUMNS_BY_DEFAULT = 6
_LISTED_AMOUNTS = 12

_TITLES = {"sum": "合计", "mean": "平均", "min": "最小", "max": "最大", "count": "计数"}
_VERBS = {"sum": "求和", "mean": "求平均", "min": "求最小值", "max": "求最大值", "count": "计数"}

_TOTALS = re.compile(r".*(?:合计|总计|小计|合計|總計|小計|共计)|(?:grand|sub)?totals?|总和")

_CODE_NAMES = re.compile(r"号|编码|代码|电话|手机|邮编|年份|年度|\bid\b|\bno\b|code", re.IGNORECASE)
"""Columns that hold numbers nobody adds up; left out when no column is named."""


def aggregate_table(payload: dict[str, Any], file: BinaryIO) -> dict[str, Any]:
    """`payload`: as for open_tables, and function, columns, group_by, where, top.

    JSON-safe: sheet, others, header_row, what (a sentence), headers, rows (shown text), numeric,
    overall (title and shown value per column), groups, used_rows, total_rows, notes, readings (a
    phrase for each name or value that was taken in other words), caution (a sentence or "").
    """
    table, plan = fitting_table(
        payload,
        file,
        lambda table, finder: _plan(payload, table, finder),
        largest=payload["function"] != "sum",
    )
    notes = list(table.notes)
    picked = _pick(table, plan)
    if meant := {watch.condition: near for watch in picked.watches if (near := watch.nearest())}:
        # A table can be walked once only.
        table = next(open_tables(payload | {"sheet": table.sheet}, file, remarks=False))
        table.notes[:] = notes
        plan = _with_values(plan, table, meant)
        picked = _pick(table, plan)
    function, columns = plan.function, plan.columns
    if picked.used:
        _refuse_wordy(plan, table)
    statistics = _calculate(picked, columns, function, ranked=bool(payload.get("top")))
    rows = statistics.rows
    top = payload.get("top") or GROUPS_SHOWN
    titles = [f"{column.name} {_TITLES[function]}" for column in columns] or ["行数"]
    notes = table.notes + [note for column in columns for note in column.notes()]
    if picked.totals:
        notes.append(f"没有计入 {picked.totals} 个合计行（{'、'.join(picked.total_names)}）")
    return {
        "sheet": table.sheet,
        "others": table.others,
        "header_row": table.header_row,
        "columns": table.columns,
        "what": _what(plan),
        "headers": [grouping.title for grouping in plan.groupings] + titles,
        "rows": rows[:top],
        "numeric": [False] * len(plan.groupings) + [True] * len(titles),
        "overall": [list(pair) for pair in zip(titles, statistics.overall, strict=True)],
        "groups": len(rows),
        "used_rows": picked.used,
        "total_rows": picked.walked,
        "notes": notes + _unmet(picked),
        "readings": plan.readings,
        "caution": _caution(plan),
    }


@dataclass(frozen=True, slots=True)
class Plan:
    """What was asked, in terms of one table. `positions` are those of `columns`."""

    function: Statistic
    groupings: list[Grouping]
    conditions: list[Condition]
    positions: list[int]
    columns: list[Column]
    readings: list[str]


def _plan(payload: dict[str, Any], table: Table, finder: ColumnFinder) -> Plan:
    """Raises Rejected when the table has no such columns."""
    function: Statistic = payload["function"]
    names = table.columns
    by = split_names(payload["group_by"], names)
    dates = _date_columns(table) if by else []
    groupings = [read_grouping(text, finder, dates) for text in by]
    conditions = read_conditions(payload["where"], finder)
    wanted = [finder.find(text) for text in split_names(payload["columns"], names)]
    if function != "count":
        wanted = _without_labels(wanted, table, groupings, finder)
    if not wanted and function != "count":
        wanted = _numeric_columns(table, groupings)
    positions = list(dict.fromkeys(wanted))
    columns = [_column(table, at, function) for at in positions]
    return Plan(function, groupings, conditions, positions, columns, finder.readings)


def _without_labels(
    wanted: Sequence[int], table: Table, groupings: Sequence[Grouping], finder: ColumnFinder
) -> list[int]:
    """Without the columns that only name the groups: models list them among what is calculated."""
    labels = {each.column for each in groupings} - set(_amounts(table))
    for at in dict.fromkeys(at for at in wanted if at in labels):
        finder.readings.append(f"「{table.columns[at]}」是分组的列，不参加计算")
    return [at for at in wanted if at not in labels]


def _with_values(plan: Plan, table: Table, meant: Mapping[Condition, Mapping[str, str]]) -> Plan:
    """The plan for the same sheet opened anew, with the values that are meant."""
    readings = [
        f"「{wanted}」按「{condition.name}」列的值「{value}」算"
        for condition, values in meant.items()
        for wanted, value in values.items()
    ]
    return replace(
        plan,
        conditions=[c.with_values(meant.get(c, {})) for c in plan.conditions],
        columns=[_column(table, at, plan.function) for at in plan.positions],
        readings=list(dict.fromkeys(plan.readings + readings)),
    )


def _what(plan: Plan) -> str:
    groupings, columns, conditions = plan.groupings, plan.columns, plan.conditions
    by = f"按「{'、'.join(grouping.title for grouping in groupings)}」" if groupings else ""
    over = f"对「{'、'.join(column.name for column in columns)}」" if columns else "对行"
    where = f"，条件：{' 且 '.join(c.text for c in conditions)}" if conditions else ""
    return f"{by}{over}{_VERBS[plan.function]}{where}"


def _date_columns(table: Table) -> list[int]:
    return [at for at in range(len(table.columns)) if _mostly(table, at, _is_date)]


def _numeric_columns(table: Table, groupings: Sequence[Grouping]) -> list[int]:
    grouped = {grouping.column for grouping in groupings}
    found = [at for at in _amounts(table) if at not in grouped]
    if not found:
        raise Rejected(
            f"没有找到数字列，请用 columns 写明要统计的列。列有：{'、'.join(table.columns[:40])}。"
        )
    return found[:COLUMNS_BY_DEFAULT]


def _amounts(table: Table) -> list[int]:
    """Columns of numbers that can be added up."""
    return [
        at
        for at, name in enumerate(table.columns)
        if not _CODE_NAMES.search(name) and _mostly(table, at, _is_amount)
    ]


def _mostly(table: Table, at: int, kind: Callable[[Cell], bool]) -> bool:
    cells = [row.cells[at] for row in table.sample if at < len(row.cells)]
    cells = [cell for cell in cells if not is_blank(cell)]
    return bool(cells) and sum(map(kind, cells)) >= len(cells) * 0.8


def _is_date(cell: Cell) -> bool:
    return read_date(cell) is not None


def _is_amount(cell: Cell) -> bool:
    return is_number(cell) or (isinstance(cell, str) and is_plain_number(cell))


def _column(table: Table, at: int, function: Statistic) -> Column:
    reading: Any = "presence" if function == "count" else "numbers"
    if function in ("min", "max") and _mostly(table, at, _is_date):
        reading = "dates"
    return Column(table.columns[at], reading, table.typed)


@dataclass(slots=True)
class Picked:
    """What was taken from the sheet: one list of keys per grouping, values in the columns."""

    keys: list[list[str]]
    used: int = 0
    walked: int = 0
    totals: int = 0
    total_names: tuple[str, ...] = ()
    watches: list[Watch] = field(default_factory=list)


def _pick(table: Table, plan: Plan) -> Picked:
    """Walks the table once; the values go into the plan's columns."""
    groupings, conditions = plan.groupings, plan.conditions
    picked = Picked([[] for _ in groupings], watches=[Watch(c) for c in conditions])
    places = list(zip(plan.positions, plan.columns, strict=True))
    # Whoever asks for the total row by name gets it.
    asked = any(_is_total(text) for c in conditions for text in c.wanted)
    labels: dict[str, None] = {}
    for row in table.rows():
        picked.walked += 1
        label = None if asked else _total_label(row, groupings)
        if label is not None:
            picked.totals += 1
            labels[label] = None
            continue
        # Every watch sees every row, also where an earlier condition has failed.
        verdicts = [watch.holds(_at(row, watch.condition.column)) for watch in picked.watches]
        if not all(verdicts):
            continue
        picked.used += 1
        for keys, grouping in zip(picked.keys, groupings, strict=True):
            keys.append(grouping.key(_at(row, grouping.column)))
        for at, column in places:
            column.add(_at(row, at), at in row.repeats)
    picked.total_names = tuple(labels)[:3]
    return picked


def _unmet(picked: Picked) -> list[str]:
    """What to tell about conditions that found nothing: the values there are instead."""
    if picked.used:
        return [
            f"没有「{watch.condition.name}={wanted}」的行"
            for watch in picked.watches
            for wanted in watch.unmet
        ]
    # Each alone may well be met, and only all together not.
    alone = [watch for watch in picked.watches if not watch.met]
    return [watch.listing() for watch in alone or picked.watches]


def _caution(plan: Plan) -> str:
    """Asked who sold most, small models take the largest single row of each."""
    amounts = any(column.reading == "numbers" for column in plan.columns)
    if plan.function not in ("max", "min") or not plan.groupings or not amounts:
        return ""
    which = "大" if plan.function == "max" else "小"
    return f"这是每组里单行的最{which}值；要比总额请用 function=sum。"


def _at(row: Row, at: int) -> Cell:
    return row.cells[at] if at < len(row.cells) else ""


def _total_label(row: Row, groupings: Sequence[Grouping]) -> str | None:
    """The text that makes a row a total: in its first filled cell, or where it is grouped by."""
    first = next((cell for cell in row.cells if not is_blank(cell)), "")
    for cell in (first, *(_at(row, grouping.column) for grouping in groupings)):
        if isinstance(cell, str) and _is_total(cell):
            return cell.strip()
    return None


def _is_total(text: str) -> bool:
    return _TOTALS.fullmatch(plain(text).rstrip(":：")) is not None


def _refuse_wordy(plan: Plan, table: Table) -> None:
    amounts = "、".join(table.columns[at] for at in _amounts(table)[:_LISTED_AMOUNTS])
    which = f"（{amounts}）" if amounts else ""
    readings = "".join(f"{reading}。" for reading in plan.readings)
    for column in plan.columns:
        if column.reading == "numbers" and not column.found:
            why = "是编号" if column.codes else "没有数字"
            raise Rejected(
                f"{readings}列「{column.name}」{why}，不能{_VERBS[plan.function]}。"
                f"请换一个数字列{which}，或用 count 计数。"
            )


@dataclass(slots=True)
class Statistics:
    """Rows of shown text (keys, then values), and the same statistic over all rows."""

    rows: list[list[str]]
    overall: list[str]


def _calculate(
    picked: Picked, columns: Sequence[Column], function: Statistic, *, ranked: bool
) -> Statistics:
    """Groups by value, or by date where the first key is one and nobody asked for the top."""
    pandas = _pandas()
    extra = 2 if function == "mean" else 0
    values = [f"v{at}" for at in range(len(columns))] or ["v0"]
    data: dict[str, Any] = {
        name: pandas.Series(column.values, dtype="float64")
        for name, column in zip(values, columns, strict=False)
    }
    if not columns:
        data["v0"] = pandas.Series([1.0] * picked.used, dtype="float64")
    keys = [f"k{at}" for at in range(len(picked.keys))]
    data |= {
        name: pandas.Series(column, dtype="object")
        for name, column in zip(keys, picked.keys, strict=True)
    }
    frame = pandas.DataFrame(data)

    def shown(at: int, value: float) -> str:
        return columns[at].show(float(value), extra) if columns else str(int(value))

    whole = _reduce(frame[values], function)
    overall = [shown(at, whole[name]) for at, name in enumerate(values)]
    if not keys:
        return Statistics([overall] if picked.used else [], overall)
    groups = _reduce(frame.groupby(keys, sort=False, dropna=False)[values], function)
    groups = groups.reset_index()
    dated = not ranked and all(re.match(r"\d{4}(-\d\d|Q\d|$)", key) for key in groups[keys[0]])
    if dated:
        order = [True, function == "min"]
        groups = groups.sort_values([keys[0], "v0"], ascending=order, kind="stable")
    else:
        groups = groups.sort_values("v0", ascending=function == "min", kind="stable")
    rows = [
        [
            *(str(row[name]) for name in keys),
            *(shown(at, row[name]) for at, name in enumerate(values)),
        ]
        for row in groups.to_dict("records")
    ]
    return Statistics(rows, overall)


def _reduce(values: Any, function: Statistic) -> Any:
    if function == "sum":
        return values.sum(min_count=1)  # nothing to add is nothing, not 0
    return getattr(values, function)()


def _pandas() -> Any:
    """Imported here because it takes half a second and 60 MB, and reading needs none of it."""
    try:
        import pandas
    except ModuleNotFoundError:
        raise
    except ImportError as error:  # a library that could not be mapped into the address space
        raise MemoryError(str(error)) from error
    return pandas
