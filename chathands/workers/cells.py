"""Single cells: how they are shown, and when a text counts as a number or a date."""

from __future__ import annotations

import datetime as dt
import re
import unicodedata
from dataclasses import dataclass
from typing import TypeGuard

Cell = str | int | float | bool | dt.date | dt.datetime | dt.time | dt.timedelta
"""What calamine gives; an empty cell is `""`."""

EXACT_DIGITS = 15
"""Digits a spreadsheet number keeps; longer ones are codes, or have lost their end already."""

_PLAIN = re.compile(r"[-+]?(?:0|[1-9]\d*)?(?:\.\d+)?")
_WRITTEN = re.compile(
    r"(?P<open>\()?(?P<sign>[-+]?)(?:[¥$€£]|RMB|CNY|USD)?(?P<sign2>[-+]?)"
    r"(?P<digits>\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?|\.\d+)"
    r"(?P<unit>%|万|亿)?(?:元|圆|块)?(?P<close>\))?",
    re.IGNORECASE,
)
_UNITS = {"%": -2, "万": 4, "亿": 8}

_DATE = re.compile(
    r"(?P<year>(?:19|20)\d\d)\s*[-/.年]\s*(?P<month>\d{1,2})(?:\s*[-/.月]\s*(?P<day>\d{1,2})\s*日?)?月?"
    r"(?:[ T]+(?P<hour>\d{1,2}):(?P<minute>\d\d)(?::(?P<second>\d\d)(?:\.\d+)?)?)?"
)

SERIAL_DAYS = range(20000, 60001)
"""Excel's day numbers for 1954 to 2064: a number in it under a date heading is a date."""


def is_blank(cell: Cell) -> bool:
    return isinstance(cell, str) and not cell.strip()


def is_number(cell: Cell) -> TypeGuard[int | float]:
    return isinstance(cell, int | float) and not isinstance(cell, bool)


def show(cell: Cell) -> str:
    """The cell as a person sees it: whole numbers without `.0`, no exponents, dates in ISO form."""
    if isinstance(cell, str):
        return cell.strip()
    if isinstance(cell, bool):
        return "TRUE" if cell else "FALSE"
    if isinstance(cell, int | float):
        return show_number(cell)
    if isinstance(cell, dt.datetime):
        if cell.time() == dt.time():
            return cell.date().isoformat()
        cell = cell.replace(microsecond=0)
        return cell.isoformat(" ", "seconds" if cell.second else "minutes")
    if isinstance(cell, dt.timedelta):
        minutes, seconds = divmod(round(cell.total_seconds()), 60)
        return f"{minutes // 60}:{minutes % 60:02}:{seconds:02}"
    return cell.isoformat()


def show_number(value: float, decimals: int | None = None) -> str:
    """Digits without float noise, exponent or grouping; `decimals` at most, trailing zeros off."""
    if isinstance(value, int):
        return str(value)
    if value == int(value) and abs(value) < 1e21:
        return str(int(value))
    # 15 significant digits are what a spreadsheet keeps: 0.1 + 0.2 shows as 0.3 there as well.
    text = f"{value:.{decimals}f}" if decimals is not None else _without_exponent(value)
    text = text.rstrip("0").rstrip(".") if "." in text else text
    return "0" if text in ("-0", "") else text


def _without_exponent(value: float) -> str:
    text = f"{value:.15g}"
    return f"{float(text):.20f}"[:22] if "e-" in text else text


def decimals_of(value: float) -> int:
    """Digits behind the point, as a spreadsheet would show them; at most 10."""
    _, _, fraction = show_number(value).partition(".")
    return min(len(fraction), 10)


def serial_date(value: float) -> dt.date | dt.datetime:
    """The date of an Excel day number (1900 system)."""
    moment = dt.datetime(1899, 12, 30) + dt.timedelta(days=value)
    moment = moment.replace(microsecond=0)
    return moment.date() if moment.time() == dt.time() else moment


def is_plain_number(text: str) -> bool:
    """Whether a text is nothing but a number: `-3.5`, but not `00123`, `1e5` or 18 digits."""
    text = text.strip()
    return (
        bool(text)
        and _PLAIN.fullmatch(text) is not None
        and 0 < sum(map(str.isdigit, text)) <= EXACT_DIGITS
    )


def is_code(text: str) -> bool:
    """Whether a text is an identifier: a leading zero, or more digits than numbers keep."""
    text = text.strip()
    return text.isdigit() and (len(text) > EXACT_DIGITS or (len(text) > 1 and text[0] == "0"))


@dataclass(frozen=True, slots=True)
class Written:
    """A number that was written as text."""

    value: float
    percent: bool


def read_written(text: str) -> Written | None:
    """The number in `1,234.5`, `￥1,200元`, `12%`, `(300)` or `1.2万`; None for codes and words."""
    text = unicodedata.normalize("NFKC", text)
    text = re.sub(r"\s", "", text)
    if is_code(text):
        return None
    match = _WRITTEN.fullmatch(text)
    if not match or bool(match["open"]) != bool(match["close"]):
        return None
    digits = match["digits"].replace(",", "")
    if len(digits.replace(".", "")) > EXACT_DIGITS:
        return None
    # The exponent goes into the text, so that 12.3 % is 0.123 and not 0.12300000000000001.
    value = float(f"{digits}e{_UNITS.get(match['unit'], 0)}")
    negative = match["open"] or "-" in (match["sign"], match["sign2"])
    return Written(-value if negative else value, match["unit"] == "%")


def read_date(cell: Cell) -> dt.datetime | None:
    """The moment a cell stands for: true dates, and texts such as `2024/9/3` or `2024年9月3日`."""
    if isinstance(cell, dt.datetime):
        return cell
    if isinstance(cell, dt.date):
        return dt.datetime(cell.year, cell.month, cell.day)
    if not isinstance(cell, str):
        return None
    match = _DATE.fullmatch(unicodedata.normalize("NFKC", cell).strip())
    if not match or match["day"] is None:
        return None
    hour, minute, second = (int(match[name] or 0) for name in ("hour", "minute", "second"))
    try:
        return dt.datetime(
            int(match["year"]), int(match["month"]), int(match["day"]), hour, minute, second
        )
    except ValueError:
        return None


def plain(text: str) -> str:
    """A text for comparing: half-width, lower case, without white space."""
    return re.sub(r"\s+", "", unicodedata.normalize("NFKC", text)).casefold()


def column_letter(index: int) -> str:
    """`0` → `A`, `26` → `AA`."""
    letters = ""
    index += 1
    while index:
        index, rest = divmod(index - 1, 26)
        letters = chr(65 + rest) + letters
    return letters
