"""Groups and their sums, means, extremes and counts: pandas on columns typed by us.

pandas alone would read `00123` as 123 and add '100' to '200' as '100200' (measured).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from chathands.workers.periods import read_keys
from chathands.workers.picking import Picked
from chathands.workers.plan import Plan, Statistic

Order = Literal["usual", "ranked", "periods", "timed"]

_DATED = re.compile(r"\d{4}(-\d\d|Q\d|$)")


@dataclass(slots=True)
class Groups:
    """`keys[i]` with `values[i]`, one number per value column, NaN where there is nothing."""

    keys: list[tuple[str, ...]]
    values: list[list[float]]
    overall: list[float]


def calculate(picked: Picked, plan: Plan, order: Order = "usual") -> Groups:
    """The statistic per group. In the usual order: by value, or by date where the first key is one;
    `ranked`: by value. Where keys are periods in any spelling, `periods` and `timed` are by time;
    else as they appear in the sheet, and by value."""
    frame, values = _frame(picked, plan)
    whole = _reduce(frame[values], plan.function)
    overall = [float(whole[name]) for name in values]
    keys = [f"k{at}" for at in range(len(picked.keys))]
    if not keys:
        used = picked.sieve.used > 0
        return Groups([()] if used else [], [overall] if used else [], overall)
    groups = _reduce(frame.groupby(keys, sort=False, dropna=False)[values], plan.function)
    groups = _sorted(groups.reset_index(), keys, plan.function, order)
    return Groups(
        list(zip(*(map(str, groups[key]) for key in keys), strict=True)),
        [list(map(float, row)) for row in groups[values].itertuples(index=False)],
        overall,
    )


def totals(picked: Picked, plan: Plan, dropped: int) -> dict[tuple[str, ...], list[float]]:
    """The statistic by all keys but the one at `dropped`."""
    frame, values = _frame(picked, plan)
    keys = [f"k{at}" for at in range(len(picked.keys)) if at != dropped]
    groups = _reduce(frame.groupby(keys, sort=False, dropna=False)[values], plan.function)
    groups = groups.reset_index()
    names = list(zip(*(map(str, groups[key]) for key in keys), strict=True))
    rows = [list(map(float, row)) for row in groups[values].itertuples(index=False)]
    return dict(zip(names, rows, strict=True))


def _frame(picked: Picked, plan: Plan) -> tuple[Any, list[str]]:
    pandas = _pandas()
    values = [f"v{at}" for at in range(len(plan.columns))] or ["v0"]
    data: dict[str, Any] = {
        name: pandas.Series(column.values, dtype="float64")
        for name, column in zip(values, plan.columns, strict=False)
    }
    if not plan.columns:
        data["v0"] = pandas.Series([1.0] * picked.sieve.used, dtype="float64")
    for at, column in enumerate(picked.keys):
        data[f"k{at}"] = pandas.Series(column, dtype="object")
    return pandas.DataFrame(data), values


def _sorted(groups: Any, keys: Sequence[str], function: Statistic, order: Order) -> Any:
    if order in ("periods", "timed"):
        periods = read_keys([str(key) for key in groups[keys[0]]])
        if periods is not None:
            return groups.iloc[sorted(range(len(periods)), key=lambda at: periods[at].ordinal)]
        if order == "periods":
            return groups
    dated = order == "usual" and all(_DATED.match(key) for key in groups[keys[0]])
    if dated:
        ascending = [True, function == "min"]
        return groups.sort_values([keys[0], "v0"], ascending=ascending, kind="stable")
    return groups.sort_values("v0", ascending=function == "min", kind="stable")


def _reduce(values: Any, function: Statistic) -> Any:
    if function == "sum":
        return values.sum(min_count=1)  # nothing to add is nothing, not 0
    return getattr(values, "nunique" if function == "count_distinct" else function)()


def _pandas() -> Any:
    """Imported here because it takes half a second and 60 MB, and reading needs none of it."""
    try:
        import pandas
    except ModuleNotFoundError:
        raise
    except ImportError as error:  # a library that could not be mapped into the address space
        raise MemoryError(str(error)) from error
    return pandas
