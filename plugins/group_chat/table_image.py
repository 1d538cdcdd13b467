"""A table as a picture: finding a font that has Chinese, and drawing with Pillow.

Pillow is imported where it is used: most bots never draw, and it would cost every start 50 ms.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from io import BytesIO
from typing import Any

from chathands.workers.fonts import find_font
from plugins.group_chat.rendering_tables import Align, Table

MOST_ROWS = 40
"""A picture with more is not read on a phone."""
MOST_COLUMNS = 12
MOST_LINES = 6
"""Of one cell; a paragraph belongs into the text."""
WIDEST = 1600
"""Pixels; QQ scales pictures down to the screen, and text twice as wide is a blur."""
TALLEST = 4000
"""Pixels. With the width 6 MB of grey while drawing, and about 300 kB sent."""

_SIZE, _PAD, _GAP = 26, 12, 8
_NARROWEST = 4 * _SIZE
_LONGEST_CELL = 400
"""Characters measured; what is behind them never gets into six lines."""


@dataclass(frozen=True, slots=True)
class Drawn:
    png: bytes
    whole: bool
    """False when rows, columns or parts of cells did not get in; the picture says so too."""


def draw(table: Table, font: str = "") -> Drawn | None:
    """The table as a picture; None without a font that can write it. Takes some 10 ms: not in the
    event loop. `font` is a file from the settings, looked at before any other."""
    pen = _pen(font)
    if pen is None or not table.head:
        return None
    try:
        return _draw(table, pen) if pen.can_write(table) else None
    except (OSError, ValueError, MemoryError):  # a broken font, a picture Pillow will not make
        return None


class _Pen:
    """One font at one size, with what has been measured of it."""

    def __init__(self, font: Any) -> None:
        self.font = font
        self._widths: dict[str, float] = {}
        self._known: dict[str, bool] = {}
        self._missing = self._shape("\U0010fffd")

    def width(self, text: str) -> float:
        widths = self._widths
        for character in text:
            if character not in widths:
                widths[character] = self.font.getlength(character)
        return sum(widths[character] for character in text)

    def can_write(self, table: Table) -> bool:
        """Whether it has every character: a picture with boxes says less than text."""
        characters = {c for row in (table.head, *table.rows[:MOST_ROWS]) for x in row for c in x}
        return all(map(self._has, characters))

    def _has(self, character: str) -> bool:
        if character not in self._known:
            blank = character.isspace() or character in "\u200b\u200c\u200d\ufe0e\ufe0f"
            self._known[character] = blank or self._shape(character) != self._missing
        return self._known[character]

    def _shape(self, character: str) -> tuple[Any, bytes]:
        mask = self.font.getmask(character)
        return mask.size, bytes(mask)


@lru_cache(maxsize=2)
def _pen(font: str) -> _Pen | None:
    try:
        from PIL import ImageFont
    except ImportError:
        return None
    path = find_font(font)
    if path is None:
        return None
    try:
        loaded = ImageFont.truetype(str(path), _SIZE, layout_engine=ImageFont.Layout.BASIC)
    except OSError:
        return None
    pen = _Pen(loaded)
    return pen if pen._has("中") else None


def _draw(table: Table, pen: _Pen) -> Drawn:
    from PIL import Image, ImageDraw

    columns = min(len(table.head), MOST_COLUMNS)
    rows = [_clean(row[:columns]) for row in (table.head, *table.rows[:MOST_ROWS])]
    whole = columns == len(table.head) and len(table.rows) <= MOST_ROWS
    whole = whole and all(len(c) <= _LONGEST_CELL for row in (table.head, *table.rows) for c in row)
    widths = _column_widths(rows, pen)
    line_height = _SIZE + _GAP
    laid: list[list[list[str]]] = []
    height = 2
    for row in rows:
        cells = [_wrapped(cell, width, pen) for cell, width in zip(row, widths, strict=True)]
        if any(len(cell) > MOST_LINES for cell in cells):
            whole = False
            cells = [_cut(cell) for cell in cells]
        tall = max(map(len, cells)) * line_height + 2 * _PAD
        if height + tall > TALLEST - 2 * line_height:
            whole = False
            break
        laid.append(cells)
        height += tall
    note = "" if whole else f"（没有画全：共 {len(table.rows)} 行、{len(table.head)} 列，"
    note += f"这里是前 {len(laid) - 1} 行）" if note else ""
    wide = int(sum(widths)) + 2 * _PAD * columns + 2
    if note:
        height += line_height + _PAD
        wide = max(wide, int(pen.width(note)) + 2 * _PAD + 2)
    image = Image.new("L", (wide, height), 255)
    paper = ImageDraw.Draw(image)
    top = 1
    for number, cells in enumerate(laid):
        tall = max(map(len, cells)) * line_height + 2 * _PAD
        shade = 222 if number == 0 else 245 if number % 2 == 0 else 255
        paper.rectangle((0, top, wide, top + tall), fill=shade)
        left = 1
        for cell, width, align in zip(cells, widths, table.align, strict=False):
            for at, line in enumerate(cell):
                x = left + _PAD + _indent(pen.width(line), width, align)
                paper.text((x, top + _PAD + at * line_height), line, font=pen.font, fill=20)
            left += int(width) + 2 * _PAD
            paper.line((left, top, left, top + tall), fill=200)
        top += tall
        paper.line((0, top, wide, top), fill=170)
    if note:
        paper.text((_PAD, top + _PAD // 2), note, font=pen.font, fill=90)
    paper.rectangle((0, 0, wide - 1, height - 1), outline=150)
    out = BytesIO()
    image.save(out, "PNG", compress_level=6)
    return Drawn(out.getvalue(), whole)


def _clean(row: tuple[str, ...]) -> list[str]:
    return [" ".join(cell.split())[:_LONGEST_CELL] for cell in row]


def _column_widths(rows: list[list[str]], pen: _Pen) -> list[float]:
    """As wide as their longest cell; together not over WIDEST, the widest give way first."""
    natural = [max(map(pen.width, column)) + 1 for column in zip(*rows, strict=True)]
    room = WIDEST - 2 * _PAD * len(natural)
    most = max(natural)
    while sum(min(width, most) for width in natural) > room and most > _NARROWEST:
        most = max(_NARROWEST, most * 0.9)
    return [max(min(width, most), _SIZE) for width in natural]


def _wrapped(text: str, width: float, pen: _Pen) -> list[str]:
    lines, line, used = [], "", 0.0
    for character in text:
        wide = pen.width(character)
        if line and used + wide > width:
            # An English word goes down whole when most of the line is left for it.
            at = line.rfind(" ")
            if character.isascii() and character != " " and at > len(line) // 2:
                lines.append(line[:at])
                line = line[at + 1 :]
                used = pen.width(line)
            else:
                lines.append(line)
                line, used = "", 0.0
        line, used = line + character, used + wide
    return [*lines, line]


def _cut(lines: list[str]) -> list[str]:
    if len(lines) <= MOST_LINES:
        return lines
    return [*lines[: MOST_LINES - 1], lines[MOST_LINES - 1][:-1] + "…"]


def _indent(used: float, width: float, align: Align) -> float:
    if align == "left":
        return 0.0
    return (width - used) / (2 if align == "center" else 1)
