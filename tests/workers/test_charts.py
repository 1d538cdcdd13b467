"""Charts: what is drawn is what was calculated, and every letter on them is one the font has."""

from __future__ import annotations

import datetime as dt
import math
from io import BytesIO
from typing import Any

import pytest
from fontTools.ttLib import TTFont
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from chathands.workers.chart_drawing import Chart, draw
from chathands.workers.chart_paper import PALETTE, Letters, steps
from chathands.workers.charting import BARS, draw_chart
from chathands.workers.fonts import find_font
from chathands.workers.protocol import Rejected
from tests.workers import books

FONT = str(find_font())
LETTERS = Letters(FONT)
IN_FONT = set(TTFont(FONT, fontNumber=0).getBestCmap())
"""What another library says the font has."""

SALES = [
    ("日期", "单号", "区域", "产品", "单价", "金额"),
    (dt.date(2024, 9, 3), "00101", "华东", "纸", 2, 100),
    (dt.date(2024, 9, 20), "00102", "华北", "笔", 1, 300),
    (dt.date(2024, 10, 5), "00103", "华东", "笔", 5, 50),
    (dt.date(2024, 12, 31), "00104", "华东", "纸", 3, 25),
    ("合计", None, None, None, None, 475),
]


def chart(kind: str = "bar", rows: Any = SALES, **asked: Any) -> dict[str, Any]:
    payload = {
        "name": "t.xlsx", "sheet": None, "hidden": False, "where": [], "top": None, "columns": [],
        "group_by": [], "function": "sum", "kind": kind, "title": "", "font": FONT,
    }  # fmt: skip
    return draw_chart(payload | asked, BytesIO(books.book({"表": rows})))


def opened(png: bytes) -> Image.Image:
    image = Image.open(BytesIO(png))
    assert image.format == "PNG"
    return image.convert("RGB")


def colours(png: bytes) -> dict[int, int]:
    """Pixels of each of the palette's colours, nearly so: the picture has a palette of its own."""
    found = dict.fromkeys(range(len(PALETTE)), 0)
    for count, pixel in opened(png).getcolors(1 << 24) or []:
        for at, colour in enumerate(PALETTE):
            if sum(abs(a - b) for a, b in zip(colour, pixel, strict=True)) < 12:
                found[at] += count
    return found


def test_bars_are_as_long_as_their_numbers() -> None:
    result = chart(group_by=["区域"], columns=["金额"])
    assert result["rows"] == [["华北", "300"], ["华东", "175"]]
    image = opened(result["blob"])
    heights = {}
    for x in range(0, image.width, 8):
        column = [image.getpixel((x, y)) for y in range(image.height)]
        heights[x] = sum(
            isinstance(p, tuple)
            and sum(abs(a - b) for a, b in zip(p, PALETTE[0], strict=True)) < 12
            for p in column
        )
    left = max(heights[x] for x in heights if x < image.width / 2)
    right = max(heights[x] for x in heights if x >= image.width / 2)
    assert right / left == pytest.approx(175 / 300, abs=0.02)


def test_slices_share_the_circle() -> None:
    seen = colours(chart("pie", group_by=["区域"], columns=["金额"])["blob"])
    assert seen[1] / seen[0] == pytest.approx(175 / 300, abs=0.03)


def test_a_line_is_in_order_of_time_and_a_line_for_each_second_group() -> None:
    result = chart("line", group_by=["日期:月", "区域"], columns=["金额"])
    assert [row[0] for row in result["rows"]] == ["2024-09", "2024-10", "2024-12"]
    assert result["headers"] == ["日期（月）", "华东", "华北"]
    seen = colours(result["blob"])
    assert seen[0] > 100
    assert seen[1] > 50


def test_what_nobody_named_is_found_and_told() -> None:
    result = chart("line")
    assert result["headers"][0] == "日期（月）"
    assert "画的是「金额」" in "；".join(result["notes"])
    bar = chart("bar")
    assert bar["headers"] == ["区域", "金额 合计"]
    assert "用了「区域」" in "；".join(bar["notes"])
    assert chart("pie", function="count", group_by=["产品"])["rows"] == [["纸", "2"], ["笔", "2"]]


def test_bars_of_months_are_in_order_and_others_by_size() -> None:
    rows = [("月", "数"), ("1月", 1), ("二月", -9), ("10月", 5)]
    assert [row[0] for row in chart("bar", rows)["rows"]] == ["1月", "二月", "10月"]
    rows = [("组", "数"), ("甲", 1), ("乙", 9)]
    assert [row[0] for row in chart("bar", rows)["rows"]] == ["乙", "甲"]


def test_shares_written_as_text_are_drawn_as_shares() -> None:
    result = chart("bar", [("部门", "完成率"), ("甲", "80%"), ("乙", "95.5%")])
    assert result["rows"] == [["乙", "95.5%"], ["甲", "80%"]]


def test_a_sheet_without_rows_says_so() -> None:
    with pytest.raises(Rejected, match="表头下面没有数据"):
        chart("bar", [("部门", "金额")])


def test_too_many_groups_are_cut_and_counted() -> None:
    rows = [("名", "数"), *((f"第{n}个很长的名字占满一整行放不下", n + 1) for n in range(500))]
    result = chart("bar", rows, group_by=["名"])
    assert result["points"] == BARS
    assert f"共 500 组，只画了前 {BARS} 组" in "；".join(result["notes"])
    pie = chart("pie", rows, group_by=["名"])
    assert opened(pie["blob"]).size == (1200, 720)
    assert chart("bar", rows, group_by=["名"], top=3)["points"] == 3


@pytest.mark.parametrize("kind", ["bar", "line", "pie"])
def test_letters_the_font_lacks_are_replaced_and_told(kind: str) -> None:
    rows = [("名", "数"), ("甲\u202e乙🙂", 1), ("𓀀", 2), ("\u200b正常", 3)]
    result = chart(kind, rows, group_by=["名"], title="图\n表 🙂")
    assert result["title"] == "图 表 ?"
    told = "；".join(result["notes"])
    assert all(letter in told for letter in "🙂𓀀")


@settings(max_examples=200, deadline=None)
@given(st.text(max_size=30))
def test_every_letter_that_is_drawn_is_in_the_font(text: str) -> None:
    assert all(ord(letter) in IN_FONT for letter in LETTERS.clean(text))


@settings(max_examples=200, deadline=None)
@given(st.text(st.characters(min_codepoint=0x4E00, max_codepoint=0x9FA5), max_size=20))
def test_common_letters_stay_as_they_are(text: str) -> None:
    kept = LETTERS.clean(text)
    assert all(a == b for a, b in zip(text, kept, strict=True) if ord(a) in IN_FONT)


def test_a_pie_of_losses_or_of_nothing_is_refused() -> None:
    rows = [("名", "数"), ("甲", 5), ("乙", -5)]
    with pytest.raises(Rejected, match="负数"):
        chart("pie", rows, group_by=["名"])
    with pytest.raises(Rejected, match="合计是 0"):
        chart("pie", [("名", "数"), ("甲", 0)], group_by=["名"])
    with pytest.raises(Rejected, match="没有符合条件的行"):
        chart("bar", where=["区域=西北"], group_by=["区域"])
    assert chart("bar", rows, group_by=["名"])["points"] == 2


def test_a_file_that_is_no_font_is_said() -> None:
    with pytest.raises(Rejected, match="CHATHANDS__GROUP__FONT"):
        chart(font=str(books.FILES / "legacy.xls"))


numbers = st.floats(-1e15, 1e15) | st.sampled_from([0.0, 1e-9, 1e300, float("nan")])


@settings(max_examples=12, deadline=None)
@given(
    st.sampled_from(["line", "bar", "pie"]),
    st.lists(st.tuples(st.text(max_size=12), numbers), min_size=1, max_size=40),
    st.booleans(),
)
def test_any_numbers_give_a_picture_or_a_sentence(
    kind: Any, points: list[tuple[str, float]], percent: bool
) -> None:
    labels = [LETTERS.clean(label) or "空" for label, _ in points]
    values = [value for _, value in points]
    series = [("甲", values), ("乙", values[::-1])][: 1 + percent]
    drawable = [value for value in values if math.isfinite(value)]
    whole = sum(drawable)
    if not drawable or (kind == "pie" and (min(drawable) < 0 or not 0 < whole < math.inf)):
        with pytest.raises(Rejected, match="。"):
            draw(Chart(kind, "题", labels, series, percent), LETTERS)
        return
    image = Image.open(BytesIO(draw(Chart(kind, "题", labels, series, percent), LETTERS)))
    assert image.width == 1200
    assert image.height <= 2400


@given(st.floats(-1e12, 1e12), st.floats(1e-6, 1e12))
def test_steps_reach_over_the_numbers(low: float, span: float) -> None:
    ticks = steps(low, low + span)
    slack = (ticks[1] - ticks[0]) * 1e-6 if len(ticks) > 1 else 1
    assert ticks[0] <= low + slack + abs(low) * 1e-9
    assert ticks[-1] >= low + span - slack - abs(low) * 1e-9
    assert 2 <= len(ticks) <= 9
