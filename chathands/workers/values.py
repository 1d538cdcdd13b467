"""A column of values on its way into a calculation, and the account of what was not a number."""

from __future__ import annotations

import datetime as dt
import math
from dataclasses import dataclass, field
from typing import Literal

from chathands.workers.cells import (
    Cell,
    decimals_of,
    is_blank,
    is_code,
    is_number,
    is_plain_number,
    read_date,
    read_written,
    show,
    show_number,
)

Reading = Literal["numbers", "dates", "presence", "distinct"]

_EPOCH = dt.datetime(1970, 1, 1)
LARGE = 1e15
"""From here on a spreadsheet has already rounded the last digits away."""


@dataclass(slots=True)
class Column:
    """One value column. `values` has one float per row, NaN where there is nothing to count."""

    name: str
    reading: Reading
    typed: bool
    """Whether numbers come as numbers; in a CSV a plain number as text is not worth a remark."""
    values: list[float] = field(default_factory=list)
    found: int = 0
    decimals: int = 0
    blanks: int = 0
    repeats: int = 0
    converted: int = 0
    percents: int = 0
    codes: int = 0
    others: int = 0
    large: int = 0
    examples: dict[str, str] = field(default_factory=dict)
    _seen: dict[str, float] = field(default_factory=dict)

    def add(self, cell: Cell, repeated: bool) -> None:
        usual = self.reading == "numbers" and not repeated
        # Nearly every cell of a large sheet; `add` is called once for each.
        if usual and isinstance(cell, float) and -LARGE < cell < LARGE:
            if round(cell, self.decimals) != cell:
                self.decimals = max(self.decimals, decimals_of(cell))
            self.values.append(cell)
            self.found += 1
            return
        value = self._value(cell, repeated)
        self.values.append(value)
        if not math.isnan(value):
            self.found += 1

    def show(self, value: float, extra_decimals: int = 0) -> str:
        """A result in the column's own form."""
        if math.isnan(value):
            return ""
        if self.reading in ("presence", "distinct"):
            return str(int(value))
        if self.reading == "dates":
            return show(_EPOCH + dt.timedelta(seconds=round(value)))
        if self.all_percent:
            return f"{show_number(value * 100, max(self.decimals - 2, 0) + extra_decimals)}%"
        return show_number(value, self.decimals + extra_decimals)

    def rounded(self, value: float, extra_decimals: int = 0) -> float | None:
        """A result without the noise of binary fractions; None where there is nothing."""
        return None if math.isnan(value) else round(value, self.decimals + extra_decimals)

    @property
    def all_percent(self) -> bool:
        return bool(self.percents) and self.percents == self.found

    def notes(self) -> list[str]:
        """Sentences on what was converted or left out, for the person who trusts the sum."""
        told = []
        if self.converted:
            told.append(
                f"列「{self.name}」有 {self.converted} 个写成文本的数字"
                f"（如 {self.examples['converted']}），已换算后计入"
            )
        if self.codes:
            told.append(
                f"列「{self.name}」有 {self.codes} 个编号"
                f"（如 {self.examples['codes']}，有前导零或超过 15 位），没有当作数字"
            )
        if self.others:
            what = "日期" if self.reading == "dates" else "数字"
            told.append(
                f"列「{self.name}」有 {self.others} 个单元格不是{what}"
                f"（如 {self.examples['others']}），没有计入"
            )
        if self.blanks:
            told.append(f"列「{self.name}」有 {self.blanks} 个空白，没有计入")
        if self.repeats:
            told.append(f"列「{self.name}」的合并单元格各只计一次")
        if self.large:
            told.append(
                f"列「{self.name}」有 {self.large} 个超过 15 位的大数，末位不可靠，可能是编号"
            )
        if 0 < self.percents < self.found:
            told.append(f"列「{self.name}」里百分数和普通数混在一起，百分数按小数计入")
        return told

    def _value(self, cell: Cell, repeated: bool) -> float:
        if self.reading == "presence":
            return math.nan if is_blank(cell) else 1.0
        if self.reading == "distinct":
            return self._identity(cell)
        if repeated:
            # The rest of a merged cell: one amount, however many rows it spans.
            self.repeats += 1
            return math.nan
        if is_blank(cell):
            self.blanks += 1
            return math.nan
        if self.reading == "dates":
            moment = read_date(cell)
            if moment is None:
                return self._leave_out("others", cell)
            return (moment - _EPOCH).total_seconds()
        return self._number(cell)

    def _identity(self, cell: Cell) -> float:
        """One number per different value, for counting them."""
        if is_blank(cell):
            self.blanks += 1
            return math.nan
        return self._seen.setdefault(show(cell), float(len(self._seen)))

    def _number(self, cell: Cell) -> float:
        if is_number(cell):
            value = float(cell)
            if not math.isfinite(value):
                return self._leave_out("others", str(cell))
        elif isinstance(cell, str):
            if is_code(cell):
                return self._leave_out("codes", cell)
            written = read_written(cell)
            if written is None:
                return self._leave_out("others", cell)
            value = written.value
            self.percents += written.percent
            if self.typed or not is_plain_number(cell):
                self.converted += 1
                self.examples.setdefault("converted", cell.strip()[:20])
        else:
            return self._leave_out("others", cell)
        if abs(value) >= LARGE:
            self.large += 1
        if round(value, self.decimals) != value:
            self.decimals = max(self.decimals, decimals_of(value))
        return value

    def _leave_out(self, why: Literal["others", "codes"], cell: Cell) -> float:
        if why == "codes":
            self.codes += 1
        else:
            self.others += 1
        self.examples.setdefault(why, show(cell)[:20])
        return math.nan
