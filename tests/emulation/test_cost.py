"""What foreign text costs on every way through the engine: never more than its length allows.

Reading a reply has its own law in test_scanner_laws.py; here are the ways behind the reading, and
the results, questions and histories that clients and tools send.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from chathands.conversation import Message, Status, ToolCall, ToolResult, ToolSpec
from chathands.emulation import ParsedReply, Text, Turn, clean, project, review_reply
from chathands.emulation.figures import unbacked_figure, wrong_row
from chathands.emulation.marks import without_marks, without_wrapping

_CITY = {"type": "object", "properties": {"city": {"type": "string"}}}
TOOLS = [
    ToolSpec("get_weather", "查询天气", _CITY, side_effect="none"),
    ToolSpec("read_sales", "读取销售额 read the sales", side_effect="none"),
    ToolSpec("send_message", "发送消息", _CITY, side_effect="outward"),
]
ANSWER = "华东销售额是 123,456 元，占 12.3%，已发送给张三。I've sent it, a total of 98765 dollars."
TABLE = "| 区 | 额 |\n|---|---|\n| 华东 | 123 |\n| 华西 | 98765 |\n"
SIZE = 12_000
UNITS = {
    "digits": "1",
    "wide digits": "１",
    "line breaks": "\n",
    "blanks": " ",
    "versions": "1.1.1.",
    "file names": "a.a.a.xls",
    "groups of digits": "1,",
    "list marks": "\n1. ",
    "hashes": "\n#",
    "status heads": "\n[status=",
    "result heads": "结果 #1 a [status=ok",
    "fences of results": "-----\n",
    "cells": "|",
    "rows of a table": "| 华东 | 123 |\n",
    "backticks": "`",
    "fences": "~~~ json action\n",
    "open elements": "<invoke ",
    "open functions": "<function=",
    "quotation marks": "\n>",
    "pleas": "我无法",
    "promises": "I will now ",
    "deeds": "已发送",
    "links": "https://a.b/c",
    "characters": "好",
}


def _asked(question: str, result: str | None = None) -> list[Message]:
    if result is None:
        return [Message.user(question)]
    call = ToolCall("c1", "read_sales", {})
    told = Message.tool(ToolResult("c1", "read_sales", Status.OK, result))
    return [Message.user(question), Message.assistant("", [call]), told]


def _in_a_turn(text: str, commit: str) -> None:
    turn = Turn(_asked("华东的销售额，发给张三", TABLE), TOOLS, commit=commit)  # type: ignore[arg-type]
    turn.request()
    for at in range(0, len(text), 500):
        turn.feed(Text(text[at : at + 500]))
    turn.finish("stop")
    turn.request()


WAYS: dict[str, Callable[[str], object]] = {
    "an answer": lambda x: review_reply(ParsedReply(x), TOOLS, "auto", _asked("北京天气")),
    "an answer beside a table": lambda x: review_reply(
        ParsedReply(f"{x} 98765 元"), TOOLS, "auto", _asked("华东的销售额", TABLE)
    ),
    "a result": lambda x: review_reply(
        ParsedReply(ANSWER), TOOLS, "auto", _asked("华东的销售额", f"{TABLE}{x}")
    ),
    "a result of figures alone": lambda x: unbacked_figure("98765 元", TOOLS, _asked("销售额", x)),
    "a call": lambda x: review_reply(
        ParsedReply("", (ToolCall("c2", "send_message", {"city": x}),)),
        TOOLS,
        "auto",
        _asked("华东的销售额，发给张三", TABLE),
    ),
    "a question": lambda x: review_reply(ParsedReply(ANSWER), TOOLS, "auto", _asked(x, TABLE)),
    "a turn": lambda x: _in_a_turn(x, "finish"),
    "a streamed turn": lambda x: _in_a_turn(x, "stream"),
    "a history": lambda x: project(
        [Message.user(x), Message.assistant(x), *_asked(x, x)], TOOLS, language="zh"
    ),
    "cleaning": lambda x: clean([Message.user("a"), Message.assistant(x), Message.user("b")]),
    "marks": lambda x: (without_marks(x + "[status=", "f00d"), without_wrapping(f"```text\n{x}")),
}


@pytest.mark.parametrize("name", UNITS)
def test_hostile_text_costs_no_more_than_its_length_allows(name: str) -> None:
    text = (UNITS[name] * SIZE)[:SIZE]
    for way, walk in WAYS.items():
        started = time.process_time()
        walk(text)
        # The processor's time: a quadratic step takes seconds here, a sound one under 0.1 s.
        assert time.process_time() - started < 1.5, way


def test_one_wide_row_among_many_short_ones_costs_no_product() -> None:
    result = "|" * 30_000 + "\n" + "|1|\n" * 8_000
    started = time.process_time()
    unbacked_figure("共 98765 元", TOOLS, _asked("华东的销售额", result))
    wrong_row("华东 98765 元", TOOLS, _asked("华东的销售额", f"{TABLE}{result}"))
    assert time.process_time() - started < 2.5


def test_many_names_in_a_table_and_in_the_answer_cost_no_product() -> None:
    rows = "".join(f"| 第{n}号客户 | {n * 7 + 1000} |\n" for n in range(400))
    answer = "。".join(f"第{n}号客户是 {n * 7 + 1000} 元" for n in range(1_500))
    started = time.process_time()
    wrong_row(answer, TOOLS, _asked("各客户的销售额", f"| 客户 | 额 |\n|---|---|\n{rows}"))
    assert time.process_time() - started < 2.5


def test_a_cell_of_separators_is_no_number() -> None:
    result = f"{TABLE}| , | ,,, |\n"
    assert unbacked_figure("共 5432.1 元", TOOLS, _asked("华东的销售额", result)) == "5432.1 元"


@pytest.mark.parametrize("opening", ["好。", "抱歉，我没有工具可用。"])
def test_a_long_reply_in_single_characters_costs_no_square_held_or_not(opening: str) -> None:
    turn = Turn(_asked("北京天气"), TOOLS, commit="stream")
    started = time.process_time()
    for char in opening + "再等等。" * 4_000:
        turn.feed(Text(char))
    turn.finish("stop")
    assert time.process_time() - started < 2.5
