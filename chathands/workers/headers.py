"""Where the header of a sheet is, and what its columns are called."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from chathands.workers.cells import (
    Cell,
    column_letter,
    is_blank,
    is_number,
    is_plain_number,
    show,
)

SEARCHED_ROWS = 15
"""Non-empty rows in which a header is looked for; titles and remarks above one are fewer."""

_FULL = 0.6
"""Share of the columns a header fills at least; titles fill one or two."""

_WORDS = 0.8
"""Share of its cells that are words."""

_NAME_LENGTH = 60
"""Characters of a column's name; forms have whole instructions in their headers."""

_YEARS = range(1900, 2101)


@dataclass(frozen=True, slots=True)
class Header:
    """`first` and `last`: positions in the rows that were searched; -1 when there is none."""

    first: int
    last: int
    names: list[str]


def find_header(rows: Sequence[Sequence[Cell]], width: int) -> Header:
    """The first row that names things: nearly full, words, different ones. A second row below it
    joins in when the first groups columns. `rows` are non-empty, merged cells filled."""
    fullest = max((_filled(row) for row in rows), default=0)
    data_seen = False
    for at, row in enumerate(rows[:SEARCHED_ROWS]):
        filled = _filled(row)
        if filled < max(fullest * _FULL, min(2, fullest)):
            continue
        if not _names_things(row, fullest):
            data_seen = True
            continue
        if data_seen and filled < fullest:
            continue
        below = rows[at + 1] if at + 1 < len(rows) else ()
        if _is_lower_header(row, below):
            upper = _spread(row, below)
            names = [
                low if up == low or not up else f"{up}/{low}" if low else up
                for up, low in zip(_texts(upper, width), _texts(below, width), strict=True)
            ]
            return Header(at, at + 1, unique_names(names))
        if _is_title_pair(row, below, fullest):
            continue
        return Header(at, at, unique_names(_texts(row, width)))
    return Header(-1, -1, unique_names([""] * width))


def _filled(row: Sequence[Cell]) -> int:
    return sum(not is_blank(cell) for cell in row)


def _texts(row: Sequence[Cell], width: int) -> list[str]:
    texts = [re.sub(r"\s+", " ", show(cell)).replace(" (", "(")[:_NAME_LENGTH] for cell in row]
    return texts + [""] * (width - len(texts))


def _is_word(cell: Cell) -> bool:
    if isinstance(cell, str):
        return not is_plain_number(cell) or cell.strip() in map(str, _YEARS)
    return is_number(cell) and cell in _YEARS


def _names_things(row: Sequence[Cell], fullest: int) -> bool:
    cells = [cell for cell in row if not is_blank(cell)]
    words = [cell for cell in cells if _is_word(cell)]
    if not any(isinstance(cell, str) for cell in words):
        return False
    different = len({show(cell) for cell in words})
    return len(words) >= len(cells) * _WORDS and different >= min(2, fullest)


def _is_lower_header(upper: Sequence[Cell], lower: Sequence[Cell]) -> bool:
    """Whether `upper` groups the columns that `lower` names.

    A repeated name above (a merged group) and words below are not enough: a title in two merged
    parts above a plain header looks the same. What gives a group away is that names below repeat
    from group to group, or that a column's own name reaches over both rows.
    """
    if not lower or _filled(lower) < 2:
        return False
    if any(not is_blank(cell) and not _is_word(cell) for cell in lower):
        return False
    above = [show(cell) for cell in upper]
    below = [show(cell) for cell in lower]
    pairs = list(zip(above, below, strict=False))
    names = [name for name in below if name]
    repeated_below = len(set(names)) < len(names)
    reaches_down = any(up and up == low for up, low in pairs)
    groups = any(up and up == after for up, after in pairwise(above))
    if groups and any(up != low for up, low in pairs):
        return repeated_below or reaches_down
    # Not merged: group names stand over their first column, and only the gaps are named below.
    gaps = [low for up, low in pairs if not up]
    return bool(gaps) and all(gaps) and repeated_below


def _spread(upper: Sequence[Cell], lower: Sequence[Cell]) -> list[Cell]:
    """Group names carried over the columns that have none of their own but a name below."""
    carried: list[Cell] = []
    for at, cell in enumerate(upper):
        below = lower[at] if at < len(lower) else ""
        if is_blank(cell) and carried and not is_blank(below):
            cell = carried[-1]
        carried.append(cell)
    return carried


def _is_title_pair(row: Sequence[Cell], below: Sequence[Cell], fullest: int) -> bool:
    """A title in two merged parts: few different texts, and a full header right below."""
    filled = _filled(row)
    different = len({show(cell) for cell in row if not is_blank(cell)})
    return (
        different < filled
        and bool(below)
        and _filled(below) >= fullest * _FULL
        and _names_things(below, fullest)
        and len({show(cell) for cell in below if not is_blank(cell)}) > different
        and not any(isinstance(cell, dt.date) for cell in below)
    )


def unique_names(names: Sequence[str]) -> list[str]:
    """Every column its own name: blanks get their letter, repeats a number."""
    seen: dict[str, int] = {}
    unique = []
    for at, name in enumerate(names):
        name = name or f"{column_letter(at)}列"
        seen[name] = seen.get(name, 0) + 1
        unique.append(name if seen[name] == 1 else f"{name}({seen[name]})")
    return unique
