"""Figures that stand beside the wrong row: right numbers said of somebody else.

Small models take the total line for one region. Where a result is a table, a figure said of a row's
key must be in that row. Only what a table plainly contradicts counts: one key in the clause, and a
figure that is another row's or the column's total.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import combinations, islice

from chathands.emulation.figures_read import Figure, figures_of, matches, says_something
from chathands.emulation.prompts import load

_KEYS = 400
"""Rows of a table that are looked at; figures of longer ones are aggregated by tools, not read."""
_TABLES, _CELLS, _CLAUSES = 40, 60, 200
"""Tables of the results, cells of a row and clauses of an answer that are looked at. What a person
can read at a glance is far below; the product bounds what a hostile result costs."""
_NUMBER = re.compile(r"-?\d{1,3}(?:,\d{3})+(?:\.\d+)?|-?\d+(?:\.\d+)?")
_CLAUSE = re.compile(r"[，。；;！？!?\n]|,(?!\d{3})|(?<!\d)\.(?=\s)")


@dataclass(frozen=True, slots=True)
class _Row:
    keys: tuple[str, ...]
    """Cells of text, folded, at their column; empty where a cell is a number."""
    values: tuple[float | None, ...]
    total: bool


@dataclass(frozen=True, slots=True)
class _Table:
    rows: tuple[_Row, ...]
    known: tuple[tuple[str, re.Pattern[str]], ...]
    """Every key of its rows and where it stands in a text, the longest first."""
    sums: frozenset[float]
    """The total of each column."""


@cache
def _words(name: str) -> re.Pattern[str]:
    return re.compile(load("claims")["row"][name], re.IGNORECASE)


def misplaced_figure(text: str, question: str, results: Sequence[str]) -> str | None:
    """The first figure that a table gives to another row than the one it is said of, or None."""
    tables = list(islice((table for result in results for table in _tables(result)), _TABLES))
    if not tables:
        return None
    clauses = list(dict.fromkeys(clause for clause in _CLAUSE.split(text) if clause.strip()))
    said_of_a_row = False
    for clause in clauses[:_CLAUSES]:
        for table in tables:
            rows = _rows_named(clause, table)
            if rows is None:
                continue
            said_of_a_row = True
            if not rows or _words("whole").search(clause):
                continue
            for figure in _measured(clause):
                if _contradicts(figure, rows, table) and not _told(figure, rows, question, results):
                    return figure.raw
    if said_of_a_row or _words("whole").search(question) or _words("total").search(text):
        return None
    return _answer_for_the_row_asked_about(text, question, tables, results)


def _answer_for_the_row_asked_about(
    text: str, question: str, tables: Sequence[_Table], results: Sequence[str]
) -> str | None:
    """One bare figure as the answer to a question about one row."""
    figures = _measured(text)
    if len(figures) != 1:
        return None
    for table in tables:
        rows = _rows_named(question, table)
        if rows and _contradicts(figures[0], rows, table):
            return None if _told(figures[0], rows, question, results) else figures[0].raw
    return None


def _measured(text: str) -> list[Figure]:
    return [
        figure
        for figure in figures_of(text)
        if says_something(figure) and not figure.raw.rstrip().endswith(("%", "％"))
    ]


# --- tables


def _tables(result: str) -> Iterable[_Table]:
    """The Markdown tables of a result, header lines left out."""
    block: list[list[str]] = []
    for line in [*result.splitlines(), ""]:
        if line.count("|") >= 2:
            block.append(
                [cell.strip() for cell in line.strip().strip("|").split("|", _CELLS)[:_CELLS]]
            )
            continue
        if len(block) >= 3:
            yield _table(block)
        block = []


def _table(block: Sequence[Sequence[str]]) -> _Table:
    rule = next((n for n, row in enumerate(block) if re.fullmatch(r"[\s:\-]*", "".join(row))), -1)
    rows = []
    for cells in block[rule + 1 : rule + 1 + _KEYS]:
        keys = tuple("" if _value(cell) is not None else cell.casefold() for cell in cells)
        total = any(_words("total").fullmatch(key) for key in keys if key)
        rows.append(_Row(keys, tuple(_value(cell) for cell in cells), total))
    body = [row for row in rows if not row.total]
    known = sorted({key for row in body for key in row.keys if _is_a_key(key)}, key=_longest_first)
    places = tuple((key, _place_of(key)) for key in known)
    return _Table(tuple(rows), places, frozenset(_sums(body)))


def _longest_first(key: str) -> tuple[int, str]:
    return -len(key), key


@lru_cache(maxsize=1024)
def _place_of(key: str) -> re.Pattern[str]:
    edge = r"\b" if key.isascii() else ""
    return re.compile(f"{edge}{re.escape(key)}{edge}")


def _value(cell: str) -> float | None:
    return float(cell.replace(",", "")) if _NUMBER.fullmatch(cell) else None


def _is_a_key(cell: str) -> bool:
    """A name long enough not to turn up by chance."""
    han = re.search(r"[\u4e00-\u9fff]", cell)
    return (2 if han else 3) <= len(cell) <= 20 and re.search(r"[^\W\d]", cell) is not None


def _rows_named(clause: str, table: _Table) -> list[_Row] | None:
    """The rows a clause is about; [] if it names several or none fits; None if it names none."""
    rest, found = clause.casefold(), []
    for key, place in table.known:
        if key not in rest:
            continue
        rest, count = place.subn("\n", rest)
        if count:
            found.append(key)
    if not found:
        return None
    columns = {
        key: {at for row in table.rows for at, cell in enumerate(row.keys) if cell == key}
        for key in found
    }
    if any(columns[one] & columns[other] for one, other in combinations(found, 2)):
        return []
    return [row for row in table.rows if not row.total and all(key in row.keys for key in found)]


# --- figures against rows


def _contradicts(figure: Figure, rows: Sequence[_Row], table: _Table) -> bool:
    """Whether a figure is not of these rows but of others, or of all of them."""
    body = [row for row in table.rows if not row.total]
    if len(rows) >= len(body) or matches(figure, sorted(_of(rows))):
        return False
    others = {value for row in table.rows if row not in rows for value in row.values if value}
    return matches(figure, sorted(others | table.sums))


def _sums(rows: Sequence[_Row]) -> set[float]:
    width = max((len(row.values) for row in rows), default=0)
    columns = [[row.values[at] for row in rows if at < len(row.values)] for at in range(width)]
    return {sum(value for value in column if value is not None) for column in columns} - {0}


def _of(rows: Sequence[_Row]) -> set[float]:
    """What can be said of rows: their figures, sums, means, and what two of them make."""
    own = [value for row in rows for value in row.values if value is not None]
    out = {*own, *_sums(rows), *(total / len(rows) for total in _sums(rows))}
    for one, other in combinations(own[:20], 2):
        out |= {one + other, abs(one - other), one * other}
        out |= {one / other} if other else set()
        out |= {other / one} if one else set()
    return out


def _told(figure: Figure, rows: Sequence[_Row], question: str, results: Sequence[str]) -> bool:
    """Whether the question, or a line of a result outside tables, says this figure too."""
    keys = [key for row in rows for key in row.keys if _is_a_key(key)]
    lines = [line for result in results for line in result.splitlines() if line.count("|") < 2]
    beside = [line for line in lines if any(key in line.casefold() for key in keys)]
    values = [known.value for source in (question, *beside) for known in figures_of(source)]
    return matches(figure, sorted(values))
