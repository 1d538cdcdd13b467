"""A statistic of a table as a picture: what to draw is found here, drawing is next door."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Any, BinaryIO

from chathands.workers.aggregate import Worked, work
from chathands.workers.cells import (
    Cell,
    is_blank,
    is_number,
    read_date,
    read_written,
    show,
)
from chathands.workers.chart_drawing import Chart, draw
from chathands.workers.chart_paper import Letters
from chathands.workers.columns import ColumnFinder, alike, split_names
from chathands.workers.fitting import fitting_table
from chathands.workers.groupings import read_grouping
from chathands.workers.plan import amounts, date_columns, is_code_name, refuse_empty
from chathands.workers.protocol import Rejected
from chathands.workers.statistics import Groups, calculate
from chathands.workers.table import Table

BARS, POINTS, SERIES = 30, 400, 6
"""More are not told apart on a phone; what is left out is said."""

MOST_TITLE = 60

_RATES = re.compile(r"单价|价格|售价|率|比|折|年龄|岁|序|price|rate|ratio|age", re.IGNORECASE)
"""Columns of numbers whose sum says nothing; drawn only when they are asked for."""


def draw_chart(payload: dict[str, Any], file: BinaryIO) -> dict[str, Any]:
    """`payload`: as for aggregate_table, and kind (line, bar, pie), title, font (a file).

    Without group_by the first column that names things, or the dates, are taken. JSON-safe but for
    `blob` (a PNG): what aggregate_table says of its work, title, points (how many are drawn),
    headers and rows (what is drawn, shown text). Raises Rejected.
    """
    letters = Letters(payload["font"])
    kind = payload["kind"]
    payload, guesses = _completed(payload, file)
    worked = work(payload, file)
    plan, notes = worked.plan, worked.notes + guesses
    top = payload.get("top") or 0
    order = "periods" if kind == "line" else "ranked" if top or kind == "pie" else "timed"
    groups = calculate(worked.picked, plan, order)
    if not groups.keys:
        raise Rejected("没有符合条件的行，没有画图。" + "；".join(worked.picked.sieve.notes()))
    groups = _fewer(groups, kind, top, notes)
    labels, series = _series(groups, worked, notes)
    if kind == "pie" and len(series) > 1:
        notes.append(f"饼图一次只画一列，画的是「{series[0][0]}」")
        series = series[:1]
    percent = bool(plan.columns) and all(column.all_percent for column in plan.columns)
    given = str(payload.get("title") or "")[:MOST_TITLE]
    names = "、".join(name for name, _ in series) if len(plan.groupings) < 2 else plan.titles[0]
    title = letters.clean(given or f"各{plan.groupings[0].title} {names}")
    chart = Chart(
        kind,
        title,
        [letters.clean(label) or "（空）" for label in labels],
        [(letters.clean(name), values) for name, values in series],
        percent,
    )
    picture = draw(chart, letters)
    if letters.replaced:
        lacking = "".join(list(letters.replaced)[:20])
        notes.append(f"字体里没有 {lacking}，图上写成了 ?")
    rows = [
        [label, *(plan.shown(min(at, len(plan.columns) - 1), row[n]) if plan.columns
                  else plan.shown(0, row[n]) for at, (_, row) in enumerate(series))]
        for n, label in enumerate(labels)
    ]  # fmt: skip
    return worked.describe() | {
        "title": title,
        "points": len(labels),
        "headers": [plan.groupings[0].title, *(name for name, _ in series)],
        "rows": rows,
        "notes": notes,
        "blob": picture,
    }


def _completed(payload: dict[str, Any], file: BinaryIO) -> tuple[dict[str, Any], list[str]]:
    """(the payload with what stands along the axis and what is drawn, notes on what was guessed)"""
    counting = payload["function"] == "count"
    if payload["group_by"] and (payload["columns"] or counting):
        return payload, []

    def fit(table: Table, finder: ColumnFinder) -> tuple[list[str], list[str]]:
        refuse_empty(table)
        names = split_names(payload["columns"], table.columns)
        by = split_names(payload["group_by"], table.columns)
        dates = date_columns(table)
        taken = {finder.find(name) for name in names}
        taken |= {read_grouping(text, finder, dates).column for text in by}
        group_by = by or [_axis(payload["kind"], table, taken, dates)]
        return group_by, names or ([] if counting else _amount(table, taken, by))

    group_by, columns = fitting_table(payload, file, fit)[1]
    notes = []
    if not payload["group_by"]:
        notes.append(f"没有写按什么分组，用了「{group_by[0]}」")
    if columns and not payload["columns"]:
        notes.append(f"没有写画哪一列，画的是「{columns[0]}」")
    return payload | {"group_by": group_by, "columns": columns}, notes


def _axis(kind: str, table: Table, taken: set[int], dates: list[int]) -> str:
    """Dates for a line; else a column of words, best one whose words come back."""
    numbers = set(amounts(table)) | taken
    words = [
        at
        for at in range(len(table.columns))
        if at not in numbers and at not in dates and _has_words(table, at)
    ]
    words.sort(key=lambda at: (is_code_name(table.columns[at]), not _repeats(table, at)))
    dates = [at for at in dates if at not in taken]
    order = dates + words if kind == "line" else words + dates
    if not order:
        raise Rejected(
            f"看不出横轴用哪一列，请用 group_by 写明。列有：{'、'.join(table.columns[:40])}。"
        )
    name = table.columns[order[0]]
    return f"{name}:{_unit(table, order[0])}" if order[0] in dates else name


def _amount(table: Table, taken: set[int], by: Sequence[str]) -> list[str]:
    """The one column of amounts that is meant when nobody says so; none leaves it to `work`."""
    found = [at for at in amounts(table) if at not in taken]
    found = [at for at in found if not _RATES.search(table.columns[at])] or found
    names = [table.columns[at] for at in found]
    best = alike("金额", names) or alike("数量", names) or [0]
    return [names[best[0]]] if names else []


def _repeats(table: Table, at: int) -> bool:
    cells = [show(row.cells[at]) for row in table.sample if at < len(row.cells)]
    return len(set(cells)) < len(cells) * 0.7


def _unit(table: Table, at: int) -> str:
    """Days while the sample is within two months, else months."""
    cells = [row.cells[at] for row in table.sample if at < len(row.cells)]
    moments = [moment for cell in cells if (moment := read_date(cell)) is not None]
    return "日" if (max(moments) - min(moments)).days <= 62 else "月"


def _has_words(table: Table, at: int) -> bool:
    cells: list[Cell] = [row.cells[at] for row in table.sample if at < len(row.cells)]
    filled = [cell for cell in cells if not is_blank(cell)]
    return bool(filled) and not all(
        is_number(cell) or (isinstance(cell, str) and read_written(cell)) for cell in filled
    )


def _fewer(groups: Groups, kind: str, top: int, notes: list[str]) -> Groups:
    """As many groups as can be told apart. A line keeps its end, and a pie adds up the rest."""
    count = len(groups.keys)
    most = {"line": POINTS, "bar": BARS, "pie": count}[kind]
    most = min(top, most) if top else most
    firsts = list(dict.fromkeys(key[0] for key in groups.keys))
    if len(firsts) <= most:
        return groups
    kept = set(firsts[-most:] if kind == "line" else firsts[:most])
    which = "后" if kind == "line" else "前"
    if not top:
        notes.append(f"共 {len(firsts)} 组，只画了{which} {most} 组")
    chosen = [at for at, key in enumerate(groups.keys) if key[0] in kept]
    return Groups(
        [groups.keys[at] for at in chosen], [groups.values[at] for at in chosen], groups.overall
    )


def _series(
    groups: Groups, worked: Worked, notes: list[str]
) -> tuple[list[str], list[tuple[str, list[float]]]]:
    """(labels, series): one series per value column, or per second key of the first column."""
    plan = worked.plan
    labels = list(dict.fromkeys(key[0] for key in groups.keys))
    if len(plan.keys) < 2:
        series = [
            (title, [values[at] for values in groups.values])
            for at, title in enumerate(plan.titles)
        ]
    else:
        if len(plan.columns) > 1:
            notes.append(f"分两层时只画一列，画的是「{plan.columns[0].name}」")
        cells = {
            (key[0], " / ".join(key[1:])): values[0]
            for key, values in zip(groups.keys, groups.values, strict=True)
        }
        names = list(dict.fromkeys(name for _, name in cells))
        series = [
            (name, [cells.get((label, name), math.nan) for label in labels]) for name in names
        ]
    if len(series) > SERIES:
        left_out = "、".join(name for name, _ in series[SERIES:][:10])
        notes.append(f"共 {len(series)} 组数据，只画了前 {SERIES} 组，没有画 {left_out}")
        series = series[:SERIES]
    return labels, _finite(series)


def _finite(series: Sequence[tuple[str, list[float]]]) -> list[tuple[str, list[float]]]:
    return [
        (name, [value if math.isfinite(value) else math.nan for value in values])
        for name, values in series
    ]
