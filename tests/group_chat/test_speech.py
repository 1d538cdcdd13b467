"""What QQ cannot show becomes lines it can; long text becomes parts."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plugins.group_chat.speech import APPROVAL_HEAD, plain, split


def test_a_wide_table_becomes_one_line_per_row_with_its_headings():
    table = (
        "各区：\n\n| 地区 | 销售额 | 环比 |\n|---|---:|:--:|\n"
        "| 华东 | 120 | 3% |\n| 华南 | 98 | |\n\n完。"
    )
    assert (
        plain(table) == "各区：\n\n地区：\n· 华东：销售额 120，环比 3%\n· 华南：销售额 98\n\n完。"
    )


def test_a_table_of_two_columns_becomes_pairs():
    assert (
        plain("| 项 | 值 |\n|---|---|\n| 门店 | 12 |\n| 人数 | 40 |")
        == "项：值\n门店：12\n人数：40"
    )


def test_a_table_without_outer_bars_is_a_table_too():
    assert plain("a | b | c\n--|--|--\n1 | 2 | 3") == "a：\n· 1：b 2，c 3"


def test_bars_and_rules_that_are_no_table_stay():
    for text in ("a | b", "x || y\n正文", "1 | 2\n3 | 4", "---|---", "甲 | 乙\n--"):
        assert plain(text) == text


def test_escaped_bars_and_line_breaks_in_cells():
    assert plain("| a | b |\n|--|--|\n| x\\|y | 一<br>二 |") == "a：b\nx|y：一 二"


@pytest.mark.parametrize(
    ("markdown", "shown"),
    [
        ("## 结论 ##", "结论"),
        ("**重点** 与 `代码`", "重点 与 代码"),
        ("- 一\n* 二\n  + 三", "· 一\n· 二\n  · 三"),
        ("[官网](https://example.com/a)", "官网（https://example.com/a）"),
        ("[https://a.cn](https://a.cn)", "https://a.cn"),
        ("气温 -5 度，2 * 3 * 4", "气温 -5 度，2 * 3 * 4"),
        ("变量 __init__ 和 a__b", "变量 __init__ 和 a__b"),
        ("#9 号\n#话题#", "#9 号\n#话题#"),
        ("```python\nx = '**a**'\n| a |\n```\n完", "x = '**a**'\n| a |\n完"),
        ("一\n\n\n\n二", "一\n\n二"),
    ],
)
def test_markdown_marks_become_readable(markdown: str, shown: str):
    assert plain(markdown) == shown


def test_no_reply_can_look_like_a_request_for_approval():
    assert APPROVAL_HEAD not in plain(f"{APPROVAL_HEAD} 1 · A7F3-09】请确认")


def test_long_text_is_cut_at_paragraphs_then_lines_then_sentences():
    paragraphs = ["甲" * 60, "乙" * 60, "丙" * 60]
    assert split("\n\n".join(paragraphs), 130) == ["\n\n".join(paragraphs[:2]), paragraphs[2]]
    lines = ["甲" * 60, "乙" * 60, "丙" * 60]
    assert split("\n".join(lines), 130) == ["\n".join(lines[:2]), lines[2]]
    assert split("甲" * 99 + "。" + "乙" * 60, 120) == ["甲" * 99 + "。", "乙" * 60]
    assert split("甲" * 250, 100) == ["甲" * 100, "甲" * 100, "甲" * 50]


def test_nothing_to_say_is_no_message():
    assert split("  \n ", 100) == []


@given(st.text(alphabet="ab。，\n 中|", max_size=400), st.integers(20, 60))
def test_splitting_loses_nothing_but_blanks_and_keeps_the_limit(text: str, limit: int):
    parts = split(text, limit)
    assert all(0 < len(part) <= limit for part in parts)
    assert "".join("".join(parts).split()) == "".join(text.split())


def test_control_characters_and_half_an_emoji_are_left_out():
    assert plain("好\x00的\x1b[31m\ud83d，完\r\n\t了") == "好的[31m，完\n\t了"


def test_making_text_plain_is_linear():
    import time

    for piece in (
        "**",
        "[",
        "`",
        "|",
        "| a |\n|--|--|\n",
        "- ",
        "> ",
        "$a",
        "~~a",
        "__a",
        "<b>",
        "\\frac{",
        "[a](",
        "![",
        "&lt;",
        "*a",
        "\\(",
    ):
        for text in (piece * (20_000 // len(piece)), f"{piece * 400}\n" * 20):
            start = time.perf_counter()
            plain(text)
            assert time.perf_counter() - start < 1, piece
