"""Two shapes of grouped results: a cross table, and changes against the period before."""

from __future__ import annotations

import math
from typing import Literal

from chathands.workers.cells import show_number
from chathands.workers.periods import PeriodKey, read_key, read_keys
from chathands.workers.picking import Picked
from chathands.workers.plan import TITLES, Plan
from chathands.workers.protocol import Rejected
from chathands.workers.statistics import Groups, totals

Change = Literal["环比", "同比"]

COLUMNS_ACROSS = 12
"""Values that become columns: more do not fit on a phone, and are told."""

_UNITS = {"year": "年", "quarter": "季", "month": "月", "day": "日"}

Shaped = tuple[list[str], list[list[str]]]


def cross(groups: Groups, picked: Picked, plan: Plan, notes: list[str]) -> Shaped:
    """(headers, rows of shown text): one row per group, one column per value of `plan.across`.

    The last column is the same statistic over the whole row, not the sum of what is shown."""
    assert plan.across is not None
    if len(plan.columns) > 1:
        left_out = "、".join(column.name for column in plan.columns[1:])
        notes.append(f"交叉表一次只算一列，没有算 {left_out}")
    cells = {key: values[0] for key, values in zip(groups.keys, groups.values, strict=True)}
    whole = totals(picked, plan, len(plan.groupings))
    names = list(dict.fromkeys(key[-1] for key in groups.keys))
    if (periods := read_keys(names)) is not None:
        names = [name for _, name in sorted(zip(periods, names, strict=True))]
    if len(names) > COLUMNS_ACROSS:
        rest = "、".join(names[COLUMNS_ACROSS:][:10])
        notes.append(f"横向有 {len(names)} 个值，只列出 {COLUMNS_ACROSS} 个，没有列出：{rest}")
        names = names[:COLUMNS_ACROSS]
    rows = list(dict.fromkeys(key[:-1] for key in groups.keys))
    if (periods := read_keys([row[0] for row in rows])) is not None:
        rows = [row for _, row in sorted(zip(periods, rows, strict=True))]
    else:
        rows.sort(key=lambda row: _largest_first(whole[row][0]))
    headers = [grouping.title for grouping in plan.groupings] + names + [TITLES[plan.function]]
    table = [
        [
            *row,
            *(plan.shown(0, cells.get((*row, name), math.nan)) for name in names),
            plan.shown(0, whole[row][0]),
        ]
        for row in rows
    ]
    return headers, table


def _largest_first(value: float) -> tuple[bool, float]:
    return (True, 0.0) if math.isnan(value) else (False, -value)


def changes(groups: Groups, plan: Plan, change: Change, notes: list[str]) -> Shaped:
    """(headers, rows of shown text): each period with its difference to the one before.

    A period that has no rows is no zero: what comes after it has nothing to be compared with.
    Raises Rejected when the first group is no period, or a year is needed and not there.
    """
    keys = read_keys([key[0] for key in groups.keys])
    title = plan.groupings[0].title if plan.groupings else ""
    if keys is None:
        names = [key[0] for key in groups.keys if read_key(key[0]) is None]
        like = f"「{title}」列里有「{names[0][:20]}」这样的值" if names else f"「{title}」"
        raise Rejected(
            f"{like}，不是年、季、月或日，不能算{change}。请把 group_by 写成日期列，如 日期:月。"
        )
    yearly = change == "同比"
    if yearly and not keys[0].dated:
        raise Rejected(f"列「{title}」里没有年份，不能算同比。")
    known: dict[tuple[PeriodKey, tuple[str, ...]], list[float]] = {
        (period, key[1:]): values
        for period, key, values in zip(keys, groups.keys, groups.values, strict=True)
    }
    earlier = "去年同期" if yearly else f"上{_UNITS[keys[0].unit]}"
    headers = [grouping.title for grouping in plan.groupings]
    for name in plan.titles:
        headers += [name, f"较{earlier}", change]
    rows: list[list[str]] = []
    lacking = False
    for (period, rest), key in sorted(
        zip(known, groups.keys, strict=True), key=lambda pair: (pair[0][1], pair[0][0].ordinal)
    ):
        before = period.before(yearly)
        old = known.get((before, rest)) if before else None
        row = list(key)
        for at, value in enumerate(known[period, rest]):
            past = old[at] if old else math.nan
            lacking = lacking or math.isnan(past)
            row += [plan.shown(at, value), *_difference(plan, at, value, past)]
        rows.append(row)
    if lacking:
        notes.append(f"空着的是没有{earlier}的数据可比")
    return headers, rows


def _difference(plan: Plan, at: int, value: float, past: float) -> tuple[str, str]:
    difference = value - past
    if math.isnan(difference):
        return "", ""
    shown = plan.shown(at, difference)
    shown = f"+{shown}" if difference > 0 else shown
    if past <= 0:
        return shown, "基数不是正数"
    share = show_number(difference / past * 100, 1)
    return shown, f"{'+' if difference > 0 else ''}{share}%"
