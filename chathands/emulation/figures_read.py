"""Numbers as they are meant: 1,234.50 is 1234.5, 12.3 万 is 123,000, to the digit written."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

from chathands.emulation.prompts import load

_SMALL = 20
"""Whole numbers up to this are counts, ranks, list items: nobody measures with them."""


@dataclass(frozen=True, slots=True)
class Figure:
    raw: str
    value: float
    tolerance: float
    """Half a unit of the last written digit."""
    measured: bool
    """A unit, a percent sign or decimals say that it was measured."""
    unit: str = ""


@cache
def _number() -> re.Pattern[str]:
    table = load("claims")["figure"]
    scales = "|".join(sorted(table["scale"], key=len, reverse=True))
    return re.compile(
        r"(?<![A-Za-z0-9_.\-/:])(?P<number>\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?)"
        rf"\s?(?P<scale>(?:{scales})(?![a-z]))?\s?(?P<unit>{table['measure']})?",
        re.IGNORECASE,
    )


_NO_NAME = r"\s,。；、;！!？?“”\"'|"
"""What ends a file name in running text."""

_NOT_FIGURES = re.compile(
    r"```.*?(?:```|\Z)|`[^`\n]*`|https?://\S+"
    rf"|(?<![^{_NO_NAME}])[^{_NO_NAME}]+\.(?:xlsx?|csv|pdf|docx?|txt|json|ya?ml|md|png|jpg)\b"
    r"|(?<!\d)(?:19|20)\d{2}(?:[-/年]\d{1,2}(?:[-/月]\d{1,2}日?)?|\.\d{1,2}\.\d{1,2})|\d{1,2}[:：]\d{2}(?:[:：]\d{2})?"
    r"|(?<!\d)\d++\s?(?:年(?!后|前|内|来)|月(?:份|底|初)?|日|号|点(?!\d)|时(?!长)|周|季度|楼|室|版)"
    r"|第\s?\d+|[qQ]\d\b|(?:^|\n)[^\S\n]{0,40}(?:#{1,6}[^\S\n]{0,8})?\d++[.、)）]\s?(?!\d)|#\d+"
    r"|[vV]\d+(?:\.\d+)*|(?<!\d)\d++(?:\.\d++){2,}",
    re.DOTALL,
)
"""Results are foreign text of any size: whatever repeats here begins at one place of a run only,
so that looking through a text stays linear."""


_NARROW = str.maketrans("０１２３４５６７８９．，％", "0123456789.,%")


def figures_of(text: str) -> list[Figure]:
    """Every number of a text that says something about the world; dates, names, list marks not."""
    text = text.translate(_NARROW)
    text = _NOT_FIGURES.sub("\n", text)
    scales = load("claims")["figure"]["scale"]
    out = []
    for found in _number().finditer(text):
        after = text[found.end("number") : found.end("number") + 1]
        if (
            after
            and after.isascii()
            and (after.isalpha() or after == "_")
            and not found["unit"]
            and not found["scale"]
        ):
            continue
        digits = found["number"].replace(",", "")
        scale = scales.get((found["scale"] or "").lower(), 1.0)
        decimals = len(digits.partition(".")[2])
        out.append(
            Figure(
                found.group().strip(),
                float(digits) * scale,
                0.5 * 10.0**-decimals * scale,
                bool(found["unit"] or found["scale"] or decimals),
                found["unit"] or _unit_of_range(text[found.end() : found.end() + 24]),
            )
        )
    return out


_RANGE = re.compile(r"\s?(?:~|～|-|–|—|至|到|to )\s?")


def _unit_of_range(behind: str) -> str:
    """The unit of `22` in `22~27℃`."""
    found = _RANGE.match(behind)
    number = _number().match(behind, found.end()) if found else None
    return (number["unit"] or "") if number else ""


def says_something(figure: Figure) -> bool:
    """Whether a figure states something; small counts and years do not."""
    if figure.measured:
        return True
    if 1900 <= figure.value <= 2100:  # a year
        return False
    return figure.value > _SMALL


def matches(figure: Figure, values: Sequence[float]) -> bool:
    """Whether a figure is one of the sorted values, as precisely as it is written."""
    slack = figure.tolerance * 1.0000001 + 1e-9
    for factor in (1.0, 0.01):  # 0.154 in a result is 15.4 % in an answer
        if factor != 1.0 and not figure.raw.rstrip().endswith(("%", "％")):
            continue
        low = (figure.value - slack) * factor
        at = bisect_left(values, low)
        if at < len(values) and values[at] <= (figure.value + slack) * factor:
            return True
    return False
