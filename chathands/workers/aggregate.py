"""Sums, means, extremes and counts over a whole sheet, by groups, as shown text."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, BinaryIO

from chathands.workers.crosstab import changes, cross
from chathands.workers.fitting import fitting_table
from chathands.workers.groupings import read_grouping
from chathands.workers.picking import Picked, pick
from chathands.workers.plan import (
    Plan,
    date_columns,
    make_plan,
    refuse_wordy,
    what,
    with_values,
)
from chathands.workers.protocol import Rejected
from chathands.workers.statistics import Groups, Order, calculate
from chathands.workers.table import Table
from chathands.workers.workbook import open_tables

GROUPS_SHOWN = 50
TOTALS_TOLD = 5
"""Groups whose total is told beside the largest single rows: the question is about the first."""


@dataclass(slots=True)
class Worked:
    """A question carried out on its table. `notes` are complete."""

    table: Table
    plan: Plan
    picked: Picked
    notes: list[str]

    def describe(self) -> dict[str, Any]:
        """What every answer about it says; JSON-safe."""
        return {
            "sheet": self.table.sheet,
            "others": self.table.others,
            "header_row": self.table.header_row,
            "columns": self.table.columns,
            "what": what(self.plan),
            "used_rows": self.picked.sieve.used,
            "total_rows": self.picked.sieve.walked,
            "readings": self.plan.readings,
        }


def aggregate_table(payload: dict[str, Any], file: BinaryIO) -> dict[str, Any]:
    """`payload`: as for open_tables, and function, columns, group_by, where, top; pivot (a column
    whose values become columns) and change (环比, 同比) may be absent.

    JSON-safe: sheet, others, header_row, what (a sentence), headers, rows (shown text), numeric,
    overall (title and shown value per column), groups, used_rows, total_rows, notes, readings (a
    phrase for each name or value that was taken in other words), caution (a sentence or "").
    """
    top = payload.get("top") or 0
    change = payload.get("change") or None
    worked = work(payload, file)
    plan, notes = worked.plan, list(worked.notes)
    groups = calculate(worked.picked, plan, "ranked" if top and not change else "usual")
    if change and groups.keys:
        headers, rows = changes(groups, plan, change, notes)
        if len(rows) > (most := top or GROUPS_SHOWN):
            notes.append(f"只列出最后 {most} 行")
        shown = rows[-most:]
    elif plan.across and groups.keys:
        headers, rows = cross(groups, worked.picked, plan, notes)
        shown = rows[: top or GROUPS_SHOWN]
    else:
        headers, rows = _plain(groups, plan)
        shown = rows[: top or GROUPS_SHOWN]
    keys = len(plan.groupings)
    overall = [plan.shown(at, value) for at, value in enumerate(groups.overall)]
    return worked.describe() | {
        "headers": headers,
        "rows": shown,
        "numeric": [False] * keys + [True] * (len(headers) - keys),
        "keys": keys,
        "overall": [list(pair) for pair in zip(plan.titles, overall, strict=True)],
        "groups": len(rows),
        "notes": notes,
        "caution": _caution(worked, plain=not (change or plan.across)),
    }


def work(payload: dict[str, Any], file: BinaryIO) -> Worked:
    """Finds the table, walks it, and fills the plan's columns. Raises Rejected."""

    def fit(table: Table, finder: Any) -> Plan:
        asked = payload
        if payload.get("change") and not payload["group_by"]:
            asked = payload | {"group_by": [_only_month(table, finder)]}
        plan = make_plan(asked, table, finder)
        if payload.get("change") and plan.across:
            raise Rejected("交叉表和环比、同比不能一起算，请分两次。")
        return plan

    table, plan = fitting_table(payload, file, fit, largest=payload["function"] != "sum")
    notes = list(table.notes)
    picked = pick(table, plan)
    if meant := picked.sieve.meant():
        # A table can be walked once only.
        table = next(open_tables(payload | {"sheet": table.sheet}, file, remarks=False))
        table.notes[:] = notes
        plan = with_values(plan, table, meant)
        picked = pick(table, plan)
    if picked.sieve.used:
        refuse_wordy(plan, table)
    notes = table.notes + [note for column in plan.columns for note in column.notes()]
    return Worked(table, plan, picked, notes + picked.sieve.notes())


def grouped(worked: Worked, order: Order) -> Groups:
    return calculate(worked.picked, worked.plan, order)


def _only_month(table: Table, finder: Any) -> str:
    """环比 of nothing in particular is by month, where there is one date column."""
    dates = date_columns(table)
    if len(dates) != 1:
        raise Rejected("算环比、同比要用 group_by 写明日期列，如 日期:月。")
    name = f"{table.columns[dates[0]]}:月"
    read_grouping(name, finder, dates)
    return name


def _plain(groups: Groups, plan: Plan) -> tuple[list[str], list[list[str]]]:
    headers = [grouping.title for grouping in plan.groupings] + plan.titles
    rows = [
        [*key, *(plan.shown(at, value) for at, value in enumerate(values))]
        for key, values in zip(groups.keys, groups.values, strict=True)
    ]
    return headers, rows


def _caution(worked: Worked, *, plain: bool) -> str:
    """Asked who sold most, small models take the largest single row of each group, and read past a
    hint to ask again: the totals are told beside it. `plain`: one row a group."""
    plan = worked.plan
    numbers = all(column.reading == "numbers" for column in plan.columns)
    if plan.function not in ("max", "min") or not plan.groupings or not numbers:
        return ""
    largest = plan.function == "max"
    caution = f"这是每组里单行的最{'大' if largest else '小'}值，不是总额"
    if not plain or not plan.columns:
        return f"{caution}；要比总额请用 function=sum。"
    summed = replace(plan, function="sum")
    groups = calculate(worked.picked, summed, "ranked")
    pairs = list(zip(groups.keys, groups.values, strict=True))[:: 1 if largest else -1]
    told = "、".join(
        f"{' '.join(key)} {summed.shown(0, values[0])}" for key, values in pairs[:TOTALS_TOLD]
    )
    order = "从大到小" if largest else "从小到大"
    more = "……" if len(pairs) > TOTALS_TOLD else "。"
    return f"{caution}。总额（{summed.titles[0]}）{order}：{told}{more}"
