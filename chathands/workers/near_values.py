"""Values that the sheet has by a slightly other name (华南区, 华南) or in another place than asked
for: `group_by` 华南 is no column, but what the column 区域 holds."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

from chathands.workers.cells import Cell, plain, read_written, show
from chathands.workers.columns import split_names
from chathands.workers.conditions import Condition, condition_texts
from chathands.workers.table import Table

_WORDS = json.loads(Path(__file__).with_name("office_words.json").read_text("utf-8"))
_SUFFIXES = frozenset(_WORDS["value_suffixes"])

LISTED_VALUES = 12
"""Distinct values of a column that are told when a condition fits none."""

_SEARCHED_ROWS = 50_000


def differ_by_suffix(one: str, other: str) -> bool:
    """Whether one of two compared texts (see `plain`) is the other and one suffix: 华南, 华南区.

    Not when both have one: 销售部 is no 销售组.
    """
    short, long = sorted((one, other), key=len)
    return bool(short) and long.startswith(short) and long[len(short) :] in _SUFFIXES


@dataclass(slots=True)
class Watch:
    """Sees every cell of a condition's column, and knows afterwards what found nothing, and why."""

    condition: Condition
    met: bool = False
    """Whether any row met the condition."""
    values: dict[str, None] = field(default_factory=dict)
    """The first distinct values, one more than are told."""
    unmet: dict[str, dict[str, None]] = field(init=False)
    """Wanted values that no cell had yet, each with the values that differ by a suffix only."""
    _compared: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        exact = self.condition.operator in ("=", "!=")
        self.unmet = {wanted: {} for wanted in self.condition.wanted if exact and wanted}

    def holds(self, cell: Cell) -> bool:
        """As the condition says."""
        verdict = self.condition.holds(cell)
        self.met = self.met or verdict
        if self.unmet or len(self.values) <= LISTED_VALUES:
            shown = show(cell)
            if len(self.values) <= LISTED_VALUES:
                self.values[shown] = None
            if self.unmet and shown not in self._compared:
                self._compared.add(shown)
                self._compare(cell, shown)
        return verdict

    def _compare(self, cell: Cell, shown: str) -> None:
        for wanted in tuple(self.unmet):
            if self.condition.has(cell, wanted):
                del self.unmet[wanted]
            elif differ_by_suffix(plain(wanted), plain(shown)):
                self.unmet[wanted][shown] = None

    def nearest(self) -> dict[str, str]:
        """Wanted value → the only one that can be meant by it."""
        return {wanted: next(iter(near)) for wanted, near in self.unmet.items() if len(near) == 1}

    def listing(self) -> str:
        """The column's values in words."""
        more = "……" if len(self.values) > LISTED_VALUES else ""
        listed = "、".join(value or "（空）" for value in islice(self.values, LISTED_VALUES))
        return f"列「{self.condition.name}」的值有：{listed}{more}"


@dataclass(frozen=True, slots=True)
class Stray:
    """A text that names no column but is, as `value`, a cell of one column only."""

    text: str
    column: str
    value: str


def find_strays(table: Table, texts: Sequence[str]) -> list[Stray]:
    """Those of `texts` that are values. Walks the table."""
    wanted = {text: plain(text) for text in texts if plain(text)}
    exact: dict[str, dict[tuple[int, str], None]] = {text: {} for text in wanted}
    close: dict[str, dict[tuple[int, str], None]] = {text: {} for text in wanted}
    seen: list[set[str]] = [set() for _ in table.columns]
    for row in islice(table.rows() if wanted else (), _SEARCHED_ROWS):
        for at, (cell, known) in enumerate(zip(row.cells, seen, strict=False)):
            if not isinstance(cell, str) or cell in known:
                continue
            known.add(cell)
            if read_written(cell) is not None:
                continue
            for text, key in wanted.items():
                if plain(cell) == key:
                    exact[text][at, show(cell)] = None
                elif differ_by_suffix(key, plain(cell)):
                    close[text][at, show(cell)] = None
    found = []
    for text in wanted:
        places = list(exact[text] or close[text])
        if len(places) == 1:
            at, value = places[0]
            found.append(Stray(text, table.columns[at], value))
    return found


def stray_sentence(payload: Mapping[str, Any], strays: Sequence[Stray]) -> str:
    """What to write instead: the values of the first one's column as a condition."""
    column = strays[0].column
    there = [stray for stray in strays if stray.column == column]
    texts = [stray.text for stray in there]
    values = list(dict.fromkeys(stray.value for stray in there))
    said = "".join(f"「{value}」" for value in values)
    where = [text for text in condition_texts(payload["where"]) if text not in texts]
    where.append(f"{column}={'|'.join(values)}")
    advice = [f"where={json.dumps(where, ensure_ascii=False)}"]
    misplaced = [
        name
        for name in ("group_by", "columns")
        if any(text in texts for text in split_names(payload.get(name) or ()))
    ]
    if len(values) > 1 and "group_by" in misplaced:
        advice.append(f"group_by={json.dumps([column], ensure_ascii=False)}")
        misplaced.remove("group_by")
    named = "".join(f"「{text}」" for text in texts)
    removal = f"，{'、'.join(misplaced)} 里不要写{named}" if misplaced else ""
    return f"{said}是「{column}」列里的值，请改为 {'，'.join(advice)}{removal}。"
