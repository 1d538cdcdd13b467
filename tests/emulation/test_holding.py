"""What a streamed reply holds back: little of plain text, nothing of the text before a block."""

from __future__ import annotations

import statistics
from functools import cache

import pytest

from benchmarks.holding import (
    FILES,
    MOST,
    TYPICAL,
    Figures,
    course_of,
    declared,
    figures_of,
    out_before_block,
)
from tests.emulation.replies import DATA, cases

PRESENT = [name for name in FILES if (DATA / name).exists()]
TOOLS = declared()


@cache
def figures(name: str) -> Figures:
    return figures_of(cases(name), TOOLS, 3)


@pytest.mark.parametrize("name", [name for name in PRESENT if name.startswith("recorded")])
def test_no_plain_reply_is_held_beyond_the_limit(name: str) -> None:
    found = figures(name)
    assert found.plain
    assert found.most <= MOST, found.most_in
    assert statistics.median(found.held) <= TYPICAL


def test_text_before_a_block_has_left_before_its_first_brace() -> None:
    late = [entry for name in PRESENT for entry in figures(name).late]
    assert not late
    assert sum(figures(name).with_block for name in PRESENT) >= 30


BLOCK = '```json action\n{"tool": "get_time", "parameters": {}}\n```'


@pytest.mark.parametrize(
    "lead",
    [
        "好。",
        "好的",
        "先看时间：",
        "I'll check the time now.",
        "没有表，用工具看：",
        "a",
        "第一步，\n- 时间",
    ],
)
@pytest.mark.parametrize("piece", [1, 3, 1000])
def test_a_lead_in_leaves_when_the_fence_opens(lead: str, piece: int) -> None:
    assert out_before_block(f"{lead}\n{BLOCK}", TOOLS, piece=piece) == (lead, lead)


@pytest.mark.parametrize(
    "reply",
    [
        "番茄炒蛋：\n- 番茄切块，" + "鸡蛋打散，" * 20 + "\n- 先炒蛋，再放番茄。",
        "用 `df -h` 看，" + "它会列出每个分区的大小" * 12 + "。",
        "The `-h` flag prints sizes " + "that people can read and compare " * 6 + "at a glance.",
        "1 - 2 = -1，" + "负数写在前面" * 20,
        "# 标题\n\n" + "一段没有句号的长文字，" * 15,
        "| 列 | 值 |\n|---|---|\n" + "| a | 1 |\n" * 20,
        "例子：\n```python\nfor row in rows:\n    print(row)\n```\n" + "就是这样，" * 20,
        "<b>粗</b> " + "a < b 而且 b > c，" * 12,
        'He said "no" and ' * 12,
        "结果 是好的，" * 20,
    ],
)
def test_text_that_looks_a_little_like_something_else_is_not_held(reply: str) -> None:
    course = course_of(reply, TOOLS)
    assert course.is_plain
    assert max(course.held) <= MOST, (max(course.held), reply)
