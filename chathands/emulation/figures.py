"""Figures of an answer that come neither from the question nor from results.

Numbers are compared as they are meant (1,234.50 is 1234.5, 12.3 万 is 123,000), to the precision
in which they are written; sums, differences, shares and means of result figures are recomputed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from chathands.conversation import Conversation, Role, Tag, ToolSpec
from chathands.emulation.claims import asks_for_explanation, evidence, has_results
from chathands.emulation.figures_read import Figure, figures_of, matches, says_something
from chathands.emulation.matching import best_read_tool
from chathands.emulation.phrases import asks_to_look
from chathands.emulation.prompts import load
from chathands.emulation.rows import misplaced_figure
from chathands.emulation.state import question_of

_JUDGED = 20_000
"""Characters of an answer whose figures are judged: some ten pages. Who writes more copies."""

_PAIRS = 40
"""Figures that are combined with each other; more would back any number by accident."""


def unbacked_figure(text: str, specs: Sequence[ToolSpec], conversation: Conversation) -> str | None:
    """The first figure of an answer that comes from nowhere although a tool gives such data."""
    question = question_of(conversation)
    if asks_for_explanation(question):
        return None
    if not has_results(conversation):
        if best_read_tool(question, specs) is None:
            return None
        general = re.search(load("claims")["figure"]["general"], text, re.IGNORECASE)
        if general is not None and not asks_to_look(question):
            return None
    wanted = [figure for figure in figures_of(_stated(text)) if says_something(figure)]
    if not wanted:
        return None
    plain = [m for m in evidence(conversation, specs) if m.tag is Tag.PLAIN]
    sources = [text for message in plain for text in (message.head, message.text)]
    known = sorted({figure.value for source in sources for figure in _all_numbers(source)})
    left = [figure for figure in wanted if not matches(figure, known)]
    if not left:
        return None
    derived = sorted(_derived([m.text for m in plain if m.role is Role.TOOL]))
    return next((figure.raw for figure in left if not matches(figure, derived)), None)


def wrong_row(text: str, specs: Sequence[ToolSpec], conversation: Conversation) -> str | None:
    """The first figure of an answer that a table of the results gives to another row."""
    question = question_of(conversation)
    if asks_for_explanation(question):
        return None
    results = [m.text for m in evidence(conversation, specs) if m.role is Role.TOOL]
    return misplaced_figure(_stated(text), question, results)


def _stated(text: str) -> str:
    """A text without the lines that only suppose or give an example."""
    example = load("claims")["figure"]["example"]
    supposes = re.compile(example, re.IGNORECASE).search
    lines = re.split(r"(?<=[。！？!?\n])", text[:_JUDGED])
    return "".join(line for line in lines if not supposes(line))


def _all_numbers(text: str) -> Iterable[Figure]:
    """Source numbers, also those inside dates, names and codes."""
    yield from figures_of(text)
    for found in re.finditer(r"\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?", text):
        yield Figure(found.group(), float(found.group().replace(",", "")), 0.0, False)


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
    columns: list[list[float]] = [[] for _ in range(max(map(len, rows), default=0))]
    for row in rows:
        # by rows: one line of a thousand cells must not make a thousand columns of every line
        for column, cell in zip(columns, row, strict=False):
            if _CELL.fullmatch(cell):
                column.append(float(cell.replace(",", "")))
    return columns


_CELL = re.compile(r"-?\d[\d,]*(?:\.\d+)?")
