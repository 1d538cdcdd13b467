"""One walk over a table: which rows meet the conditions, which are totals, what they hold."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from chathands.workers.cells import Cell, is_blank, plain
from chathands.workers.conditions import Condition
from chathands.workers.near_values import Watch
from chathands.workers.plan import Plan
from chathands.workers.table import Row, Table

_TOTALS = re.compile(r".*(?:合计|总计|小计|合計|總計|小計|共计)|(?:grand|sub)?totals?|总和")


@dataclass(slots=True)
class Sieve:
    """Lets the rows through that meet all conditions and are no totals, and counts the others.

    Whoever asks for the total row by name gets it.
    """

    conditions: Sequence[Condition]
    labels: Sequence[int] = ()
    """Columns where a total may be named, besides the first filled one."""
    used: int = 0
    walked: int = 0
    totals: int = 0
    total_names: dict[str, None] = field(default_factory=dict)
    watches: list[Watch] = field(init=False)

    def __post_init__(self) -> None:
        self.watches = [Watch(condition) for condition in self.conditions]

    def rows(self, table: Table) -> Iterator[Row]:
        """Walks the table once."""
        asked = any(is_total(text) for c in self.conditions for text in c.wanted)
        watches, labels = self.watches, tuple(self.labels)
        for row in table.rows():
            self.walked += 1
            if not asked and (label := _total_label(row, labels)) is not None:
                self.totals += 1
                self.total_names[label] = None
                continue
            if watches:
                # Every watch sees every row, also where an earlier condition has failed.
                verdicts = [watch.holds(cell_at(row, watch.condition.column)) for watch in watches]
                if not all(verdicts):
                    continue
            self.used += 1
            yield row

    def meant(self) -> dict[Condition, dict[str, str]]:
        """Conditions whose values the sheet has by a slightly other name."""
        return {watch.condition: near for watch in self.watches if (near := watch.nearest())}

    def notes(self) -> list[str]:
        """What to tell about totals, and about conditions that found nothing."""
        notes = []
        if self.totals:
            names = "、".join(list(self.total_names)[:3])
            notes.append(f"没有计入 {self.totals} 个合计行（{names}）")
        if self.used:
            return notes + [
                f"没有「{watch.condition.name}={wanted}」的行"
                for watch in self.watches
                for wanted in watch.unmet
            ]
        # Each alone may well be met, and only all together not.
        alone = [watch for watch in self.watches if not watch.met]
        return notes + [watch.listing() for watch in alone or self.watches]


@dataclass(slots=True)
class Picked:
    """What was taken from the sheet: one list of keys per grouping, values in the columns."""

    keys: list[list[str]]
    sieve: Sieve


def pick(table: Table, plan: Plan) -> Picked:
    """Walks the table once; the values go into the plan's columns."""
    groupings = plan.keys
    sieve = Sieve(plan.conditions, [grouping.column for grouping in groupings])
    picked = Picked([[] for _ in groupings], sieve)
    keyed = list(zip(picked.keys, groupings, strict=True))
    places = list(zip(plan.positions, plan.columns, strict=True))
    for row in sieve.rows(table):
        cells, width = row.cells, len(row.cells)
        for keys, grouping in keyed:
            at = grouping.column
            keys.append(grouping.key(cells[at] if at < width else ""))
        for at, column in places:
            column.add(cells[at] if at < width else "", at in row.repeats)
    return picked


def cell_at(row: Row, at: int) -> Cell:
    return row.cells[at] if at < len(row.cells) else ""


def is_total(text: str) -> bool:
    """Whether a label says that its row adds up others."""
    if text.isascii():
        return "otal" in text.lower() and _says_total(text)
    return _says_total(text)


@lru_cache(maxsize=8192)
def _says_total(text: str) -> bool:
    return _TOTALS.fullmatch(plain(text).rstrip(":：")) is not None


def _total_label(row: Row, labels: tuple[int, ...]) -> str | None:
    """The text that makes a row a total: in its first filled cell, or where it is grouped by."""
    for cell in row.cells:
        if cell != "" and not is_blank(cell):
            if isinstance(cell, str) and is_total(cell):
                return cell.strip()
            break
    for at in labels:
        cell = cell_at(row, at)
        if isinstance(cell, str) and is_total(cell):
            return cell.strip()
    return None
