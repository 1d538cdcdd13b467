"""Group keys that are years, quarters, months or days: their order, and the period before."""

from __future__ import annotations

import datetime as dt
import re
import unicodedata
from dataclasses import dataclass
from typing import Literal

Unit = Literal["year", "quarter", "month", "day"]

_FORMS: tuple[tuple[Unit, re.Pattern[str]], ...] = (
    ("day", re.compile(r"(\d{4})[-/.年](\d{1,2})[-/.月](\d{1,2})日?")),
    ("quarter", re.compile(r"(?:(\d{4})[-/.年]?)?(?:q|第)?([1-4一二三四])(?:季度?|q)")),
    ("quarter", re.compile(r"(?:(\d{4})[-/.年]?)?q([1-4])(?:季度?)?")),
    ("month", re.compile(r"(\d{4})[-/.年](\d{1,2})(?:月份?)?")),
    ("month", re.compile(r"((?:19|20)\d\d)(0[1-9]|1[0-2])")),
    ("month", re.compile(r"()(\d{1,2}|[一二三四五六七八九十]|十一|十二)月份?")),
    ("year", re.compile(r"((?:19|20)\d\d)(?:年度?)?")),
)
_NUMERALS = dict(zip("一二三四五六七八九十", range(1, 11), strict=True)) | {"十一": 11, "十二": 12}


@dataclass(frozen=True, slots=True, order=True)
class PeriodKey:
    """A period as a number that counts its unit; without a year it begins at 0 each year."""

    ordinal: int
    unit: Unit
    dated: bool = True

    def before(self, years: bool = False) -> PeriodKey | None:
        """The period right before, or the same one a year earlier; None where a year is needed."""
        if not years:
            if not self.dated and self.ordinal == 0:
                return None
            return PeriodKey(self.ordinal - 1, self.unit, self.dated)
        if not self.dated:
            return None
        if self.unit == "day":
            day = dt.date.fromordinal(self.ordinal)
            try:
                return PeriodKey(day.replace(year=day.year - 1).toordinal(), "day")
            except ValueError:  # 29 February
                return None
        back = {"year": 1, "quarter": 4, "month": 12}[self.unit]
        return PeriodKey(self.ordinal - back, self.unit)


def read_key(text: str) -> PeriodKey | None:
    """`2024-09`, `2024Q3`, `9月`, `2024年三季度`, `2024`, `2024-09-03`; None for anything else."""
    text = re.sub(r"\s+", "", unicodedata.normalize("NFKC", text)).casefold()
    for unit, form in _FORMS:
        if not (match := form.fullmatch(text)):
            continue
        year = int(match[1]) if match[1] else 0
        if unit == "year":
            return PeriodKey(year, unit)
        part = int(_NUMERALS.get(match[2], 0) or match[2])
        if unit == "day":
            try:
                return PeriodKey(dt.date(year, part, int(match[3])).toordinal(), unit)
            except ValueError:
                return None
        size = 12 if unit == "month" else 4
        if not 1 <= part <= size:
            return None
        return PeriodKey(year * size + part - 1, unit, bool(year))
    return None


def read_keys(texts: list[str]) -> list[PeriodKey] | None:
    """All of them as periods of one unit, or None."""
    keys: list[PeriodKey] = []
    for text in texts:
        key = read_key(text)
        if key is None or (keys and (key.unit, key.dated) != (keys[0].unit, keys[0].dated)):
            return None
        keys.append(key)
    return keys or None
