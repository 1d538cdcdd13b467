"""Tables of Markdown: reading them, and writing them as lines for where no image can be shown."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

PHONE_COLUMNS = 36
"""Half-width columns a phone shows on one line of a QQ message; wider lines break and say
nothing any more."""

Align = Literal["left", "right", "center"]

_RULE = re.compile(r"\s*\|?\s*:?-+:?\s*(?:\|\s*:?-+:?\s*)*\|?\s*")
_NUMBER = re.compile(r"[-+−]?[¥$€￥]?[\d,]+(?:\.\d+)?(?:[%‰]|[万亿千百]?元?)?")


@dataclass(frozen=True, slots=True)
class Table:
    """Cells as people read them; every row has as many as the head."""

    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    align: tuple[Align, ...]

    @classmethod
    def of(cls, head: Sequence[str], rows: Sequence[Sequence[str]], rule: str = "") -> Table:
        """Rows are filled up, or the head is, so that no cell is lost. `rule` is Markdown's."""
        width = max(map(len, (head, *rows)))
        full = [(*row, *[""] * (width - len(row))) for row in (head, *rows)]
        marks = [mark.strip() for mark in rule.strip().strip("|").split("|")]
        align: list[Align] = [_align(marks[n] if n < len(marks) else "") for n in range(width)]
        for n, column in enumerate(zip(*full[1:], strict=True)):
            filled = [cell for cell in column if cell]
            if align[n] == "left" and filled and all(map(_NUMBER.fullmatch, filled)):
                align[n] = "right"
        return cls(tuple(full[0]), tuple(map(tuple, full[1:])), tuple(align))

    def as_list(self) -> list[str]:
        """Two columns: `key：value`. More: a row is its first cell,
        then each further one with its title."""
        head = self.head
        if not self.rows:
            return ["、".join(filter(None, head))]
        if len(head) == 2:
            first = f"{head[0]}：{head[1]}" if head[0] and head[1] else head[0] or head[1]
            return [*filter(None, [first]), *("：".join(row) for row in self.rows)]
        out = [f"{head[0]}："] if head[0] else []
        for row in self.rows:
            pairs = zip(head[1:], row[1:], strict=True)
            values = "，".join(f"{title} {cell}".strip() for title, cell in pairs if cell)
            label = row[0] or "-"
            out.append(f"· {label}：{values}" if values else f"· {label}")
        return out

    def as_lines(self) -> list[str] | None:
        """Columns lined up; None where a phone would break the lines."""
        full = (self.head, *self.rows)
        widths = [max(map(width_of, column)) for column in zip(*full, strict=True)]
        if sum(widths) + 2 * (len(widths) - 1) > PHONE_COLUMNS:
            return None
        return ["  ".join(map(_padded, row, widths, self.align)).rstrip() for row in full]

    def as_csv(self) -> bytes:
        """For a spreadsheet; a cell that would be a formula there is text."""
        import csv
        import io

        out = io.StringIO()
        safe = [[f"'{c}" if c[:1] in "=+-@\t" and not _NUMBER.fullmatch(c) else c for c in row]
                for row in (self.head, *self.rows)]  # fmt: skip
        csv.writer(out).writerows(safe)
        return out.getvalue().encode("utf-8-sig")


def width_of(text: str) -> int:
    """Half-width columns: CJK and full-width 2, marks on letters and joiners 0.

    What Unicode calls ambiguous (`…`, `①`, `℃`) is wide beside Chinese text.
    """
    width = 0
    for character in text:
        if unicodedata.combining(character) or unicodedata.category(character) in ("Cf", "Me"):
            continue
        width += 2 if unicodedata.east_asian_width(character) in "WFA" else 1
    return width


def is_rule(line: str, header: str) -> bool:
    """Whether `line` is the row of dashes below a table's `header`."""
    return bool(
        "-" in line
        and _RULE.fullmatch(line)
        and ("|" in line or header.strip().startswith("|"))
        and len(raw_cells(line)) == len(raw_cells(header))
    )


def raw_cells(row: str) -> list[str]:
    """The cells of a row, still Markdown; `\\|` is no border."""
    row = row.strip().replace("\\|", "\1")
    row = row[1:] if row.startswith("|") else row
    row = row[:-1] if row.endswith("|") else row
    return [cell.replace("\1", "|").strip() for cell in row.split("|")]


def _align(mark: str) -> Align:
    if mark.endswith(":"):
        return "center" if mark.startswith(":") else "right"
    return "left"


def _padded(cell: str, width: int, align: Align) -> str:
    space = width - width_of(cell)
    if align == "right":
        return " " * space + cell
    left = space // 2 if align == "center" else 0
    return " " * left + cell + " " * (space - left)
