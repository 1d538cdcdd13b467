"""What differs between two tables: rows added, removed and changed, told apart by key columns."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, BinaryIO

from chathands.workers.cells import (
    Cell,
    is_blank,
    is_number,
    is_plain_number,
    plain,
    read_date,
    show,
    show_number,
)
from chathands.workers.columns import ColumnFinder, NoColumn, split_names
from chathands.workers.fitting import fitting_table
from chathands.workers.protocol import Rejected
from chathands.workers.reading import CELL_LENGTH
from chathands.workers.table import Row, Table

ROWS_TOLD = 20
"""Rows of each kind in an answer; the counts are of all."""

_CODES = re.compile(r"号|编码|代码|\bid\b|\bno\b|code|sku", re.IGNORECASE)

Key = tuple[str, ...]


@dataclass(slots=True)
class Side:
    """One of the two tables, read to its end."""

    table: Table
    rows: list[Row]
    keys: list[int]


def compare_tables(payload: dict[str, Any], old: BinaryIO, new: BinaryIO) -> dict[str, Any]:
    """`payload`: name and new_name (of the files), sheet, hidden, keys (columns, may be empty).

    JSON-safe: sheets (of both), sizes, keys, guessed (whether the keys were), added, removed,
    changed, same, blank, repeated (counts), columns (common ones), only_old, only_new (columns),
    added_rows and removed_rows (shown text), changes (key, column, old, new), notes.
    Raises Rejected.
    """
    wanted = payload["keys"]
    left = _side(payload, old, wanted)
    right = _side(payload | {"name": payload["new_name"]}, new, wanted)
    pairs = _common(left.table.columns, right.table.columns)
    if not pairs:
        raise Rejected(
            "两张表没有同名的列，没法比较。"
            f"前一张的列有：{'、'.join(left.table.columns[:20])}；"
            f"后一张的列有：{'、'.join(right.table.columns[:20])}。"
        )
    guessed = not left.keys
    if guessed:
        left.keys, right.keys = _guess(left, right, pairs)
    keys = [left.table.columns[at] for at in left.keys]
    compared = [pair for pair in pairs if pair[0] not in left.keys]
    before, blank_before, repeated_before = _by_key(left)
    after, blank_after, repeated_after = _by_key(right)
    added = [key for key in after if key not in before]
    removed = [key for key in before if key not in after]
    changed = same = 0
    changes: list[list[str]] = []
    for key, row in after.items():
        if key not in before:
            continue
        differing = [
            (a, b) for a, b in compared if _essence(_at(before[key], a)) != _essence(_at(row, b))
        ]
        changed += bool(differing)
        same += not differing
        if differing and len({line[0] for line in changes}) <= ROWS_TOLD:
            told = " / ".join(show(_at(row, at)) for at in right.keys)
            for a, b in differing:
                name = left.table.columns[a]
                changes.append([told, name, _cut(_at(before[key], a)), _cut(_at(row, b))])
    common = [left.table.columns[a] for a, _ in pairs]
    known = {a for a, _ in pairs}, {b for _, b in pairs}
    return {
        "sheets": [left.table.sheet, right.table.sheet],
        "sizes": [len(left.rows), len(right.rows)],
        "keys": keys,
        "guessed": guessed,
        "added": len(added),
        "removed": len(removed),
        "changed": changed,
        "same": same,
        "blank": blank_before + blank_after,
        "repeated": repeated_before + repeated_after,
        "columns": common,
        "only_old": [n for at, n in enumerate(left.table.columns) if at not in known[0]],
        "only_new": [n for at, n in enumerate(right.table.columns) if at not in known[1]],
        "added_rows": [[_cut(_at(after[key], b)) for _, b in pairs] for key in added[:ROWS_TOLD]],
        "removed_rows": [
            [_cut(_at(before[key], a)) for a, _ in pairs] for key in removed[:ROWS_TOLD]
        ],
        "changes": changes[: 3 * ROWS_TOLD],
        "notes": list(dict.fromkeys(left.table.notes + right.table.notes)),
    }


def _side(payload: dict[str, Any], file: BinaryIO, wanted: Sequence[str]) -> Side:
    def fit(table: Table, finder: ColumnFinder) -> list[int]:
        return [finder.find(name) for name in split_names(wanted, table.columns)]

    try:
        table, keys = fitting_table(payload, file, fit)
    except NoColumn as refused:
        raise Rejected(f"{payload['name']}：{refused.sentence}") from refused
    except Rejected as refused:
        raise Rejected(f"{payload['name']}：{refused.sentence}") from refused
    return Side(table, list(table.rows()), keys)


def _common(old: Sequence[str], new: Sequence[str]) -> list[tuple[int, int]]:
    """Positions of columns that both have, in the old one's order."""
    places = {plain(name): at for at, name in enumerate(new)}
    return [(at, places[plain(n)]) for at, n in enumerate(old) if plain(n) in places]


def _guess(
    left: Side, right: Side, pairs: Sequence[tuple[int, int]]
) -> tuple[list[int], list[int]]:
    """The first column that tells every row from every other in both; codes come first, then
    words, then the rest: two rows may well have different amounts."""

    def rank(pair: tuple[int, int]) -> int:
        if _CODES.search(left.table.columns[pair[0]]):
            return 0
        cells = (_at(row, pair[0]) for row in left.rows[:50])
        return 1 if any(isinstance(c, str) and not is_plain_number(c) for c in cells) else 2

    for a, b in sorted(pairs, key=rank):
        if _unique(left.rows, a) and _unique(right.rows, b) and rank((a, b)) < 2:
            return [a], [b]
    names = "、".join(left.table.columns[a] for a, _ in pairs)
    raise Rejected(
        "看不出哪一列能认出同一行，请用 key_columns 写明，比如编号；一列不够就写几列。"
        f"两张表都有的列：{names}。"
    )


def _unique(rows: Sequence[Row], at: int) -> bool:
    """Whether a column is filled in nearly every row (totals have no number) and never repeats."""
    seen: set[str] = set()
    filled = 0
    for row in rows:
        cell = _at(row, at)
        if is_blank(cell):
            continue
        filled += 1
        seen.add(_essence(cell))
    return filled >= len(rows) * 0.9 and len(seen) == filled > 0


def _by_key(side: Side) -> tuple[dict[Key, Row], int, int]:
    """Rows by key, the second of one key by that key and 2; rows without a key and repeated keys,
    counted."""
    found: dict[Key, Row] = {}
    times: Counter[Key] = Counter()
    blank = 0
    for row in side.rows:
        cells = [_at(row, at) for at in side.keys]
        if all(map(is_blank, cells)):
            blank += 1
            continue
        key = tuple(map(_essence, cells))
        times[key] += 1
        found[key if times[key] == 1 else (*key, str(times[key]))] = row
    return found, blank, sum(count > 1 for count in times.values())


def _essence(cell: Cell) -> str:
    """The same for two cells that only are written differently: 120.50 and 120.5, two spellings of
    a date, blanks at the ends. A text 00123 is not the number 123."""
    if is_number(cell):
        return show_number(cell)
    if isinstance(cell, str) and is_plain_number(cell):
        return show_number(float(cell))
    moment = read_date(cell)
    return moment.isoformat() if moment else show(cell)


def _at(row: Row, at: int) -> Cell:
    return row.cells[at] if at < len(row.cells) else ""


def _cut(cell: Cell) -> str:
    text = show(cell)
    return text if len(text) <= CELL_LENGTH else f"{text[:CELL_LENGTH]}…"
