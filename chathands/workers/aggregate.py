"""Sums, means, extremes and counts over a whole sheet, by groups; pandas on columns typed by us.

pandas alone would read `00123` as 123 and add '100' to '200' as '100200' (measured).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, BinaryIO, Literal

from chathands.workers.cells import (
    Cell,
    is_blank,
    is_number,
    is_plain_number,
    plain,
    read_date,
    show,
)
from chathands.workers.conditions import Condition, read_conditions
from chathands.workers.headers import find_column
from chathands.workers.protocol import Rejected
from chathands.workers.table import Row, Table
from chathands.workers.values import Column
from chathands.workers.workbook import fitting_table

Statistic = Literal["sum", "mean", "min", "max", "count"]

GROUPS_SHOWN = 50
COLUMNS_BY_DEFAULT = 6
_LISTED_VALUES = 12

_TITLES = {"sum": "合计", "mean": "平均", "min": "最小", "max": "最大", "count": "计数"}
_VERBS = {"sum": "求和", "mean": "求平均", "min": "求最小值", "max": "求最大值", "count": "计数"}

_TOTALS = re.compile(r".*(?:合计|总计|小计|合計|總計|小計|共计)|(?:grand|sub)?totals?|总和")

_UNIT = re.compile(r"(.+?)(?:[:：/(（]|按)(年|季|季度|月|月份|日|天|year|quarter|month|day)[)）]?")
_UNITS = {
    "年": "year",
    "年份": "year",
    "year": "year",
    "季": "quarter",
    "季度": "quarter",
    "quarter": "quarter",
    "月": "month",
    "月份": "month",
    "month": "month",
    "日": "day",
    "天": "day",
    "day": "day",
}
_CODE_NAMES = re.compile(r"号|编码|代码|电话|手机|邮编|年份|年度|\bid\b|\bno\b|code", re.IGNORECASE)
"""Columns that hold numbers nobody adds up; left out when no column is named."""


@dataclass(frozen=True, slots=True)
class Grouping:
    column: int
    title: str
    unit: str | None = None

    def key(self, cell: Cell) -> str:
        if self.unit is not None:
            moment = read_date(cell)
            if moment is not None:
                return {
                    "year": f"{moment.year}",
                    "quarter": f"{moment.year}Q{(moment.month + 2) // 3}",
                    "month": f"{moment.year}-{moment.month:02}",
                    "day": moment.date().isoformat(),
                }[self.unit]
        return show(cell) or "（空）"


def aggregate_table(payload: dict[str, Any], file: BinaryIO) -> dict[str, Any]:
    """`payload`: as for open_tables, and function, columns, group_by, where, top.

    JSON-safe: sheet, others, header_row, what (a sentence), headers, rows (shown text), numeric,
    overall (title and shown value per column), groups, used_rows, total_rows, notes.
    """
    table, plan = fitting_table(
        payload,
        file,
        lambda table: _plan(payload, table),
        largest=payload["function"] != "sum",
    )
    function, columns = plan.function, plan.columns
    picked = _pick(table, plan)
    if picked.used:
        _refuse_wordy(columns, function)
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
        "notes": notes + picked.hints,
    }


@dataclass(frozen=True, slots=True)
class Plan:
    """What was asked, in terms of one table. `positions` are those of `columns`."""

    function: Statistic
    groupings: list[Grouping]
    conditions: list[Condition]
    positions: list[int]
    columns: list[Column]


def _plan(payload: dict[str, Any], table: Table) -> Plan:
    """Raises Rejected when the table has no such columns."""
    function: Statistic = payload["function"]
    names = table.columns
    groupings = [_read_grouping(text, table) for text in _split(payload["group_by"], names)]
    conditions = read_conditions(payload["where"], names)
    wanted = [find_column(text, names) for text in _split(payload["columns"], names)]
    if not wanted and function != "count":
        wanted = _numeric_columns(table, groupings)
    positions = list(dict.fromkeys(wanted))
    columns = [_column(table, at, function) for at in positions]
    return Plan(function, groupings, conditions, positions, columns)


def _what(plan: Plan) -> str:
    groupings, columns, conditions = plan.groupings, plan.columns, plan.conditions
    by = f"按「{'、'.join(grouping.title for grouping in groupings)}」" if groupings else ""
    over = f"对「{'、'.join(column.name for column in columns)}」" if columns else "对行"
    where = f"，条件：{' 且 '.join(c.text for c in conditions)}" if conditions else ""
    return f"{by}{over}{_VERBS[plan.function]}{where}"


def _split(texts: Sequence[str], names: Sequence[str]) -> list[str]:
    """Column names; one text may hold several (`区域、产品`) unless a column is called so."""
    known = {plain(name) for name in names}
    parts: list[str] = []
    for text in texts:
        parts += [text] if plain(text) in known else re.split(r"[,，、;；]", text)
    return [part.strip() for part in parts if part.strip()]


def _read_grouping(text: str, table: Table) -> Grouping:
    """A column, or the year, quarter, month or day of a date column: `日期:月`, or just `月份`
    where there is one date column only."""
    try:
        at = find_column(text, table.columns)
        return Grouping(at, table.columns[at])
    except Rejected:
        match = _UNIT.fullmatch(text)
        if match:
            at, unit = find_column(match[1], table.columns), match[2]
        elif text.casefold() in _UNITS and len(dates := _date_columns(table)) == 1:
            at, unit = dates[0], text.casefold()
        else:
            raise
    return Grouping(at, f"{table.columns[at]}（{unit}）", _UNITS[unit.casefold()])


def _date_columns(table: Table) -> list[int]:
    return [at for at in range(len(table.columns)) if _mostly(table, at, _is_date)]


def _numeric_columns(table: Table, groupings: Sequence[Grouping]) -> list[int]:
    grouped = {grouping.column for grouping in groupings}
    found = [
        at
        for at, name in enumerate(table.columns)
        if at not in grouped and not _CODE_NAMES.search(name) and _mostly(table, at, _is_amount)
    ]
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
    hints: list[str] = field(default_factory=list)


def _pick(table: Table, plan: Plan) -> Picked:
    """Walks the table once; the values go into the plan's columns."""
    groupings, conditions = plan.groupings, plan.conditions
    picked = Picked([[] for _ in groupings])
    places = list(zip(plan.positions, plan.columns, strict=True))
    # Whoever asks for the total row by name gets it.
    asked = any(_is_total(text) for c in conditions for text in c.wanted)
    labels: dict[str, None] = {}
    seen: list[dict[str, None]] = [{} for _ in conditions]
    for row in table.rows():
        picked.walked += 1
        label = None if asked else _total_label(row, groupings)
        if label is not None:
            picked.totals += 1
            labels[label] = None
            continue
        verdicts = [condition.holds(_at(row, condition.column)) for condition in conditions]
        for values, condition in zip(seen, conditions, strict=True):
            if len(values) <= _LISTED_VALUES:
                values[show(_at(row, condition.column))] = None
        if not all(verdicts):
            continue
        picked.used += 1
        for keys, grouping in zip(picked.keys, groupings, strict=True):
            keys.append(grouping.key(_at(row, grouping.column)))
        for at, column in places:
            column.add(_at(row, at), at in row.repeats)
    picked.total_names = tuple(labels)[:3]
    if not picked.used:
        picked.hints = [
            f"列「{table.columns[condition.column]}」的值有："
            f"{'、'.join(list(values)[:_LISTED_VALUES])}"
            f"{'……' if len(values) > _LISTED_VALUES else ''}"
            for condition, values in zip(conditions, seen, strict=True)
        ]
    return picked


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


def _refuse_wordy(columns: Sequence[Column], function: Statistic) -> None:
    for column in columns:
        if column.reading == "numbers" and not column.found:
            why = "是编号" if column.codes else "没有数字"
            raise Rejected(
                f"列「{column.name}」{why}，不能{_VERBS[function]}。"
                "请换一个数字列，或用 count 计数。"
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
