"""A sheet as a table: where the header is, merged cells filled, rows walked once."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import chain, islice

from chathands.workers.cells import SERIAL_DAYS, Cell, is_blank, is_number, serial_date, show
from chathands.workers.headers import find_header, unique_names
from chathands.workers.protocol import Rejected

SAMPLED_ROWS = 50
"""Non-empty rows looked at before the header and the kinds of the columns are decided."""

Merged = tuple[tuple[int, int], tuple[int, int]]

_NOTHING: frozenset[int] = frozenset()


class NoRows(Rejected):
    """The sheet holds nothing but blanks."""


@dataclass(slots=True)
class Row:
    """`repeats`: columns whose value was filled in from a merged cell that began in another row or
    column; a merged amount is one amount."""

    cells: list[Cell]
    repeats: frozenset[int] = _NOTHING


@dataclass(slots=True)
class Source:
    """A chosen sheet as it lies in the file. `typed`: numbers and dates are told from text."""

    sheet: str | None
    others: list[str]
    rows: Iterator[list[Cell]]
    merged: list[Merged]
    declared_rows: int
    typed: bool
    notes: list[str] = field(default_factory=list)
    serial_shift: int = 0
    """Days to be added to this workbook's day numbers."""


class Table:
    """A sheet as a table. `rows()` can be walked once; `notes` and `blank_rows` are complete
    when it has been walked to its end."""

    def __init__(self, source: Source) -> None:
        self.sheet = source.sheet
        self.others = source.others
        self.typed = source.typed
        self._shift = source.serial_shift
        self.notes = source.notes
        self.blank_rows = 0
        self.last_row = 0
        self.declared_rows = source.declared_rows
        walk = self._filled_rows(source)
        sample = list(islice(walk, SAMPLED_ROWS))
        if not sample:
            raise NoRows("工作表里没有数据。" if source.sheet else "文件里没有数据。")
        width = max(len(row.cells) for _, row in sample)
        header = find_header([row.cells for _, row in sample], width)
        self.columns = header.names
        self.named = header.first >= 0
        self.header_row = sample[header.first][0] if self.named else None
        titles = (row.cells for _, row in sample[: max(header.first, 0)])
        self.titles = [
            " ".join(dict.fromkeys(show(cell) for cell in cells if not is_blank(cell)))
            for cells in titles
        ]
        self._walk = chain(sample[header.last + 1 :], walk)
        self.sample = [row for _, row in sample[header.last + 1 :]]
        self._serial = [at for at in range(width) if self._is_serial_date(at)]
        if self._serial:
            names = "、".join(self.columns[at] for at in self._serial)
            self.notes.append(f"列「{names}」里的数字已按日期换算")

    def rows(self) -> Iterator[Row]:
        """Non-empty rows under the header; a wider one adds columns named by letter."""
        width = len(self.columns)
        for _, row in self._walk:
            if len(row.cells) > width:
                self.columns += unique_names([""] * len(row.cells))[width:]
                width = len(self.columns)
            for at in self._serial:
                value = row.cells[at] if at < len(row.cells) else ""
                if is_number(value) and int(value) in SERIAL_DAYS:
                    row.cells[at] = serial_date(value + self._shift)
            yield row
        if self.blank_rows:
            self.notes.append(f"跳过了中间的 {self.blank_rows} 个空行")
        if self.declared_rows > self.last_row + 100:
            self.notes.append(
                f"工作表标称 {self.declared_rows} 行，实际数据到第 {self.last_row} 行为止"
            )

    def _filled_rows(self, source: Source) -> Iterator[tuple[int, Row]]:
        """Non-empty rows with their numbers in the sheet, merged ranges filled down and right."""
        starting: dict[int, list[Merged]] = {}
        for (top, left), (bottom, right) in source.merged:
            starting.setdefault(top, []).append(((top, left), (bottom, right)))
        active: list[tuple[Merged, Cell]] = []
        blanks = 0
        for index, cells in enumerate(source.rows):
            if starting:
                active = [(area, value) for area, value in active if area[1][0] >= index]
                for area in starting.get(index, ()):
                    left = area[0][1]
                    active.append((area, cells[left] if left < len(cells) else ""))
            for cell in cells:
                if cell != "" and not is_blank(cell):
                    break
            else:
                blanks += 1
                continue
            if self.last_row:
                self.blank_rows += blanks
            blanks = 0
            self.last_row = index + 1
            if not active:
                yield index + 1, Row(cells)
                continue
            repeats = set()
            for ((top, left), (_, right)), value in active:
                for at in range(left, min(right + 1, len(cells))):
                    if (index, at) != (top, left) and is_blank(cells[at]):
                        cells[at] = value
                        repeats.add(at)
            yield index + 1, Row(cells, frozenset(repeats))

    def _is_serial_date(self, at: int) -> bool:
        """A true date comes as a date; a number under such a heading lost its format only."""
        name = self.columns[at].casefold()
        if not self.typed or not any(word in name for word in ("日期", "时间", "date")):
            return False
        cells = [row.cells[at] for row in self.sample if at < len(row.cells)]
        cells = [cell for cell in cells if not is_blank(cell)]
        return bool(cells) and all(is_number(cell) and int(cell) in SERIAL_DAYS for cell in cells)
