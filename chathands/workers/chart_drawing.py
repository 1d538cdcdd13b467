"""Bars, lines and slices. What is drawn comes as labels and series of numbers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from chathands.workers.chart_paper import (
    GREY,
    INK,
    LINES,
    PALETTE,
    Letters,
    Paper,
    number,
    steps,
    unit_of,
)
from chathands.workers.protocol import Rejected

ChartKind = Literal["line", "bar", "pie"]

WIDTH, HEIGHT = 1200, 720
_TALLEST = 2400
_MARGIN = 40
_TITLE, _LABEL, _SMALL = 32, 22, 19
_LABEL_ROOM = 320
"""Pixels for the names beside lying bars."""
_DOTS_UP_TO = 40
_VALUES_UP_TO = 40
"""Bars or dots that get their value written beside them."""

_SLICES = 9


@dataclass(frozen=True, slots=True)
class Chart:
    """`series`: name and one number per label, NaN where there is none. `percent`: numbers are
    shares. Every text is what `Letters.clean` made of it."""

    kind: ChartKind
    title: str
    labels: Sequence[str]
    series: Sequence[tuple[str, Sequence[float]]]
    percent: bool = False


@dataclass(frozen=True, slots=True)
class _Scale:
    """How numbers are written, and what the picture says about it."""

    size: float
    note: str
    percent: bool

    def show(self, value: float) -> str:
        return f"{number(value * 100)}%" if self.percent else number(value / self.size)


def draw(chart: Chart, letters: Letters) -> bytes:
    """A PNG. Raises Rejected when there is nothing to draw, or a pie would have negative slices."""
    values = [value for _, row in chart.series for value in row if math.isfinite(value)]
    if not values:
        raise Rejected("没有数字可以画成图。")
    if chart.kind == "pie":
        return _pie(chart, letters)
    unit = (1.0, "") if chart.percent else unit_of(max(map(abs, values)))
    scale = _Scale(unit[0], f"单位：{unit[1]}" if unit[1] else "", chart.percent)
    low, high = min(values), max(values)
    # Lines may leave zero out where it would press them flat; bars would lie without it.
    if chart.kind == "bar" or low <= 0 or high - low > 0.3 * high:
        low, high = min(low, 0.0), max(high, 0.0)
    if low < 0:  # room for what is written below the lowest
        low -= 0.06 * (high - low)
    ticks = steps(low, high)
    if chart.kind == "line":
        return _lines(chart, letters, scale, ticks)
    slot = (WIDTH - 3 * _MARGIN - 80) / len(chart.labels)
    widest = max(letters.width(label, _LABEL) for label in chart.labels)
    thin = slot / len(chart.series) < 26
    if widest > slot - 8 or thin:
        return _lying_bars(chart, letters, scale, ticks)
    return _standing_bars(chart, letters, scale, ticks)


def _head(paper: Paper, chart: Chart, note: str = "") -> float:
    """Title, legend and note; where the rest may begin."""
    letters, top = paper.letters, float(_MARGIN - 10)
    if chart.title:
        title = letters.cut(chart.title, _TITLE, paper.width - 2 * _MARGIN)
        paper.text(paper.width / 2, top, title, _TITLE, anchor="ma")
        top += _TITLE + 24
    if len(chart.series) > 1 and chart.kind != "pie":
        left = float(_MARGIN)
        for at, (name, _) in enumerate(chart.series):
            shown = letters.cut(name, _SMALL, 300)
            wide = 30 + letters.width(shown, _SMALL) + 26
            if left + wide > paper.width - _MARGIN and left > _MARGIN:
                left, top = float(_MARGIN), top + 30
            paper.box(left, top + 3, left + 20, top + 19, PALETTE[at % len(PALETTE)])
            paper.text(left + 28, top, shown, _SMALL)
            left += wide
        top += 38
    if note:
        paper.text(_MARGIN, top, note, _SMALL, GREY)
        top += 30
    return top + 8


@dataclass(frozen=True, slots=True)
class _Plot:
    """The inside of the axes, values standing."""

    left: float
    top: float
    right: float
    bottom: float
    low: float
    high: float

    def y(self, value: float) -> float:
        share = (value - self.low) / (self.high - self.low)
        return self.bottom - share * (self.bottom - self.top)


def _axes(paper: Paper, chart: Chart, scale: _Scale, ticks: Sequence[float]) -> _Plot:
    letters = paper.letters
    top = _head(paper, chart, scale.note) + 16
    marks = [scale.show(tick) for tick in ticks]
    left = _MARGIN + max(letters.width(mark, _SMALL) for mark in marks) + 14
    plot = _Plot(left, top, paper.width - _MARGIN, paper.height - _MARGIN - 40, ticks[0], ticks[-1])
    for tick, mark in zip(ticks, marks, strict=True):
        y = plot.y(tick)
        paper.line([(plot.left, y), (plot.right, y)], GREY if tick == 0 else LINES)
        paper.text(plot.left - 12, y, mark, _SMALL, GREY, "rm")
    return plot


def _standing_bars(chart: Chart, letters: Letters, scale: _Scale, ticks: Sequence[float]) -> bytes:
    paper = Paper(WIDTH, HEIGHT, letters)
    plot = _axes(paper, chart, scale, ticks)
    slot = (plot.right - plot.left) / len(chart.labels)
    wide = min(slot * 0.76 / len(chart.series), 110)
    room = slot if len(chart.series) == 1 else wide + 2
    marked = all(_widest(letters, scale, values) <= room for _, values in chart.series)
    for at, label in enumerate(chart.labels):
        middle = plot.left + slot * (at + 0.5)
        shown = letters.cut(label, _LABEL, slot - 4)
        paper.text(middle, plot.bottom + 10, shown, _LABEL, anchor="ma")
        for series, (_, values) in enumerate(chart.series):
            value = values[at]
            if not math.isfinite(value):
                continue
            left = middle + (series - len(chart.series) / 2) * wide
            paper.box(left, plot.y(0), left + wide - 2, plot.y(value), _colour(series))
            mark = scale.show(value)
            if marked:
                above = value >= 0
                place = plot.y(value) + (-5 if above else 5)
                paper.text(left + wide / 2, place, mark, _SMALL, INK, "mb" if above else "mt")
    return paper.png()


def _lying_bars(chart: Chart, letters: Letters, scale: _Scale, ticks: Sequence[float]) -> bytes:
    """For names that are too long to stand beside each other."""
    thick = 26 if len(chart.labels) * len(chart.series) <= 60 else 16
    slot = thick * len(chart.series) + 16
    height = min(max(len(chart.labels) * slot + 220, 360), _TALLEST)
    paper = Paper(WIDTH, height, letters)
    top = _head(paper, chart, scale.note)
    names = [letters.cut(label, _LABEL, _LABEL_ROOM) for label in chart.labels]
    left = _MARGIN + max(letters.width(name, _LABEL) for name in names) + 14
    right = paper.width - _MARGIN - 110  # room for the longest bar's value
    bottom = paper.height - _MARGIN - 24
    slot = (bottom - top) / len(names)
    thick = min(thick, (slot - 6) / len(chart.series))
    low, high = ticks[0], ticks[-1]

    def x(value: float) -> float:
        return left + (value - low) / (high - low) * (right - left)

    for tick in ticks:
        paper.line([(x(tick), top), (x(tick), bottom)], GREY if tick == 0 else LINES)
        paper.text(x(tick), bottom + 8, scale.show(tick), _SMALL, GREY, "ma")
    for at, name in enumerate(names):
        middle = top + slot * (at + 0.5)
        paper.text(left - 12, middle, name, _LABEL, anchor="rm")
        for series, (_, values) in enumerate(chart.series):
            value = values[at]
            if not math.isfinite(value):
                continue
            upper = middle + (series - len(chart.series) / 2) * thick
            paper.box(x(0), upper + 1, x(value), upper + thick - 1, _colour(series))
            if len(names) * len(chart.series) <= _VALUES_UP_TO:
                paper.text(
                    max(x(value), x(0)) + 8, upper + thick / 2, scale.show(value), _SMALL,
                    anchor="lm",
                )  # fmt: skip
    return paper.png()


def _lines(chart: Chart, letters: Letters, scale: _Scale, ticks: Sequence[float]) -> bytes:
    paper = Paper(WIDTH, HEIGHT, letters)
    plot = _axes(paper, chart, scale, ticks)
    count = len(chart.labels)
    inset = 40 if count > 1 else (plot.right - plot.left) / 2
    gap = (plot.right - plot.left - 2 * inset) / max(count - 1, 1)
    names = [letters.cut(label, _LABEL, 200) for label in chart.labels]
    widest = max(letters.width(name, _LABEL) for name in names) + 20
    every = max(math.ceil(widest / gap), 1) if gap else 1
    for at in range(0, count, every):
        x = plot.left + inset + gap * at
        paper.line([(x, plot.bottom), (x, plot.bottom + 6)], GREY)
        paper.text(x, plot.bottom + 10, names[at], _LABEL, anchor="ma")
    for series, (_, values) in enumerate(chart.series):
        piece: list[tuple[float, float]] = []
        for at, value in enumerate((*values, math.nan)):
            if math.isfinite(value):
                piece.append((plot.left + inset + gap * at, plot.y(value)))
                continue
            if len(piece) > 1:
                paper.line(piece, _colour(series), 3)
            if count <= _DOTS_UP_TO or len(piece) == 1:
                for x, y in piece:
                    paper.dot(x, y, 5, _colour(series))
            piece = []
        if (
            len(chart.series) == 1
            and count <= _VALUES_UP_TO
            and gap * 1.2 >= _widest(letters, scale, values)
        ):
            for at, value in enumerate(values):
                if math.isfinite(value):
                    x = plot.left + inset + gap * at
                    paper.text(x, plot.y(value) - 9, scale.show(value), _SMALL, anchor="mb")
    return paper.png()


def _widest(letters: Letters, scale: _Scale, values: Sequence[float]) -> float:
    widths = (letters.width(scale.show(v), _SMALL) for v in values if math.isfinite(v))
    return max(widths, default=0.0)


def _pie(chart: Chart, letters: Letters) -> bytes:
    """The names stand in a list beside it: beside their slices they would cover each other."""
    pairs = zip(chart.labels, chart.series[0][1], strict=True)
    parts = [(label, value) for label, value in pairs if math.isfinite(value)]
    if any(value < 0 for _, value in parts):
        raise Rejected("有负数，画不成饼图，请改用柱状图（kind=bar）。")
    parts = [(label, value) for label, value in parts if value]
    whole = sum(value for _, value in parts)
    if not whole or not math.isfinite(whole):
        raise Rejected("合计是 0，画不成饼图。")
    parts.sort(key=lambda part: -part[1])
    if len(parts) > _SLICES:
        rest = parts[_SLICES - 1 :]
        name = letters.clean(f"其他 {len(rest)} 项")
        parts = [*parts[: _SLICES - 1], (name, sum(value for _, value in rest))]
    size, unit = (1.0, "") if chart.percent else unit_of(max(value for _, value in parts))
    scale = _Scale(size, "", chart.percent)
    paper = Paper(WIDTH, HEIGHT, letters)
    top = _head(paper, chart)
    radius = (paper.height - top - _MARGIN) / 2
    x, y = _MARGIN + radius, top + radius
    angle = -90.0
    left = x + radius + 60
    line = top + max((2 * radius - 48 * len(parts)) / 2, 0)
    for at, (label, value) in enumerate(parts):
        share = value / whole
        paper.slice(x, y, radius, angle, angle + 360 * share, _colour(at))
        angle += 360 * share
        paper.box(left, line + 4, left + 22, line + 26, _colour(at))
        told = f"{scale.show(value)}{unit}（{number(share * 100, 1)}%）"
        room = paper.width - _MARGIN - left - 40 - letters.width(told, _LABEL) - 16
        name = letters.cut(label, _LABEL, room)
        paper.text(left + 36, line, name, _LABEL)
        paper.text(paper.width - _MARGIN, line, told, _LABEL, GREY, "ra")
        line += 48
    return paper.png()


def _colour(at: int) -> tuple[int, int, int]:
    return PALETTE[at % len(PALETTE)]
