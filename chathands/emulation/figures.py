"""Figures of an answer that come neither from the question nor from results.

Numbers are compared as they are meant (1,234.50 is 1234.5, 12.3 万 is 123,000), to the precision
in which they are written; sums, differences, shares and means of result figures are recomputed.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache

from chathands.conversation import Conversation, Role, Tag, ToolSpec
from chathands.emulation.claims import has_results
from chathands.emulation.matching import best_read_tool
from chathands.emulation.prompts import load
from chathands.emulation.state import question_of

_SMALL = 20
"""Whole numbers up to this are counts, ranks, list items: nobody measures with them."""
_PAIRS = 40
"""Figures that are combined with each other; more would back any number by accident."""


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


_NOT_FIGURES = re.compile(
    r"```.*?(?:```|\Z)|`[^`\n]*`|https?://\S+|\S+\.(?:xlsx?|csv|pdf|docx?|txt|json|ya?ml|md|png|jpg)\b"
    r"|(?<!\d)(?:19|20)\d{2}(?:[-/年]\d{1,2}(?:[-/月]\d{1,2}日?)?|\.\d{1,2}\.\d{1,2})|\d{1,2}[:：]\d{2}(?:[:：]\d{2})?"
    r"|\d+\s?(?:年(?!后|前|内|来)|月(?:份|底|初)?|日|号|点(?!\d)|时(?!长)|周|季度|楼|室|版)"
    r"|第\s?\d+|[qQ]\d\b|(?:^|\n)\s*(?:#+\s*)?\d+[.、)）]\s?(?!\d)|#\d+|[vV]\d+(?:\.\d+)*|\d+(?:\.\d+){2,}",
    re.DOTALL,
)


def figures_of(text: str) -> list[Figure]:
    """Every number of a text that says something about the world; dates, names, list marks not."""
    text = text.translate(str.maketrans("０１２３４５６７８９．，％", "0123456789.,%"))
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


def _unit_of_range(behind: str) -> str:
    """The unit of `22` in `22~27℃`."""
    found = re.match(r"\s?(?:~|～|-|–|—|至|到|to )\s?", behind)
    number = _number().match(behind, found.end()) if found else None
    return (number["unit"] or "") if number else ""


def asks_for_explanation(question: str) -> bool:
    """Whether a question wants something explained or written, not looked up or done."""
    explain = load("claims")["figure"]["explain"]
    return re.search(explain, question, re.IGNORECASE) is not None


def unbacked_figure(text: str, specs: Sequence[ToolSpec], conversation: Conversation) -> str | None:
    """The first figure of an answer that comes from nowhere although a tool gives such data."""
    question = question_of(conversation)
    table = load("claims")["figure"]
    if asks_for_explanation(question):
        return None
    if not has_results(conversation) and best_read_tool(question, specs) is None:
        return None
    lines = [
        line
        for line in re.split(r"(?<=[。！？!?\n])", text)
        if not re.search(table["example"], line, re.IGNORECASE)
    ]
    wanted = [figure for figure in figures_of("".join(lines)) if _says_something(figure)]
    if not wanted:
        return None
    plain = [m for m in conversation if m.tag is Tag.PLAIN]
    sources = [text for message in plain for text in (message.head, message.text)]
    known = sorted({figure.value for source in sources for figure in _all_numbers(source)})
    left = [figure for figure in wanted if not _backed(figure, known)]
    if not left:
        return None
    results = [m.text for m in conversation if m.role is Role.TOOL]
    derived = sorted(_derived(results))
    return next((figure.raw for figure in left if not _backed(figure, derived)), None)


def _says_something(figure: Figure) -> bool:
    if figure.measured:
        return True
    if 1900 <= figure.value <= 2100:  # a year
        return False
    return figure.value > _SMALL


def _all_numbers(text: str) -> Iterable[Figure]:
    """Source numbers, also those inside dates, names and codes."""
    yield from figures_of(text)
    for found in re.finditer(r"\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?", text):
        yield Figure(found.group(), float(found.group().replace(",", "")), 0.0, False)


def _backed(figure: Figure, values: Sequence[float]) -> bool:
    slack = figure.tolerance * 1.0000001 + 1e-9
    for factor in (1.0, 0.01):  # 0.154 in a result is 15.4 % in an answer
        if factor != 1.0 and not figure.raw.rstrip().endswith(("%", "％")):
            continue
        low = (figure.value - slack) * factor
        at = bisect_left(values, low)
        if at < len(values) and values[at] <= (figure.value + slack) * factor:
            return True
    return False


def _derived(results: Sequence[str]) -> set[float]:
    """Counts, sums, means, extremes, differences and shares of the figures in results."""
    groups = [column for text in results for column in _columns(text)]
    alike: dict[str, list[float]] = {}
    for text in results:
        for figure in figures_of(text):
            alike.setdefault(figure.unit, []).append(figure.value)
    groups += [group for group in alike.values() if len(group) <= _PAIRS]
    out: set[float] = set()
    for group in groups:
        if not group:
            continue
        total = sum(group)
        out |= {float(len(group)), total, total / len(group), max(group) - min(group)}
        head = group[:_PAIRS]
        for n, one in enumerate(head):
            if total:
                out.add(100 * one / total)
            for other in head[n + 1 :]:
                out |= {one + other, abs(one - other)}
                for part, whole in ((one, other), (other, one)):
                    if whole:
                        out |= {part / whole, 100 * part / whole, abs(100 * (part - whole) / whole)}
    rows = [len([c for c in text.splitlines() if c.strip()]) for text in results]
    out |= {float(n - gone) for n in rows for gone in (0, 1, 2, 3)}
    return out


def _columns(text: str) -> list[list[float]]:
    """Numeric columns of the Markdown tables in a text."""
    rows = [
        [cell.strip() for cell in line.strip().strip("|").split("|")]
        for line in text.splitlines()
        if line.count("|") >= 2 and not re.fullmatch(r"[\s|:\-]+", line)
    ]
    width = max((len(row) for row in rows), default=0)
    columns: list[list[float]] = []
    for at in range(width):
        values = []
        for row in rows:
            if at < len(row) and re.fullmatch(r"-?[\d,]+(?:\.\d+)?", row[at]):
                values.append(float(row[at].replace(",", "")))
        columns.append(values)
    return columns
