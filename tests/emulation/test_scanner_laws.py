"""Laws that hold for every text: no exception, no difference between pieces, bounded cost."""

from __future__ import annotations

import json
import time
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chathands.conversation import ToolCall
from chathands.emulation.dialects.openings import opening
from chathands.emulation.reading import parse_reply
from chathands.emulation.reading_tools import Tools
from chathands.emulation.scanner import Scanner
from tests.emulation.replies import TOOLS, cases, in_pieces_of, read_in_pieces

REPLIES = [c["raw"] for name in ("malformed.jsonl", "forms.jsonl") for c in cases(name)]

fragments = st.sampled_from(
    [
        "```",
        "```json action\n",
        "```json\n",
        "\n```\n",
        "\n",
        "\n\n",
        " ",
        "`",
        "~~~",
        "｀｀｀",
        "'''json action\n",
        '{"tool":"read_file","parameters":{"path":"a"}}',
        '{"tool":"get_time"',
        '"parameters":{',
        '{"name":"x"}',
        "{",
        "}",
        "[",
        "]",
        '"',
        '\\"',
        "\\",
        ",",
        ":",
        "：",
        "，",
        "“",
        "”",
        "'",
        "(",
        ")",
        "=",
        "&quot;",
        "<",
        ">",
        "<tool_call>",
        "</tool_call>",
        "<function=read_file>",
        "<parameter=path>",
        "</parameter>",
        "</function>",
        "<think>",
        "</think>",
        "<example>",
        "</example>",
        "[TOOL_CALLS]",
        "<|python_tag|>",
        "<｜tool▁call▁begin｜>",
        "Action: ",
        "Action Input: ",
        "get_time()",
        "read_file(path='a')",
        "get_weather\n",
        "tool: get_time\n",
        "call:get_time",
        "to=functions.read_file",
        "get_time",
        "print(",
        "functools",
        "await ",
        ">>>",
        "*",
        "\\_",
        "✿FUNCTION✿: ",
        '<|"|>',
        "<|channel>thought",
        "<channel|>",
        "<｜DSML｜ ",
        "例如：",
        "Observation: x\n",
        "好的。",
        "a",
        "1",
        "//",
        "#",
        "...",
        "\ufeff",
        "\u200b",
        "\u2028",
        "\x00",
        "\ud83d",
    ]
)
replies = st.one_of(
    st.text(max_size=80),
    st.lists(fragments, max_size=24).map("".join),
    st.tuples(st.sampled_from(REPLIES), st.integers(0, 400), st.lists(fragments, max_size=3)).map(
        lambda parts: parts[0][: parts[1]] + "".join(parts[2]) + parts[0][parts[1] :]
    ),
)


@settings(max_examples=120, deadline=None)
@given(replies, st.sampled_from([None, "stop", "length"]))
def test_no_text_makes_the_reader_fail(reply: str, finish_reason: str | None) -> None:
    reading = parse_reply(reply, TOOLS, finish_reason)
    assert reading.text == reading.text.strip(" \n\t")
    assert len({(c.name, str(c.arguments)) for c in reading.calls}) == len(reading.calls)


@settings(max_examples=120, deadline=None)
@given(replies, st.lists(st.integers(0, 400), max_size=6), st.sampled_from([None, "length"]))
def test_where_a_reply_is_split_makes_no_difference(
    reply: str, cuts: list[int], finish_reason: str | None
) -> None:
    edges = [0, *sorted({min(cut, len(reply)) for cut in cuts}), len(reply)]
    pieces = [reply[a:b] for a, b in pairwise(edges)]
    whole = read_in_pieces([reply], finish_reason)
    assert read_in_pieces(pieces, finish_reason) == whole
    assert read_in_pieces(in_pieces_of(1, reply), finish_reason) == whole


@pytest.mark.parametrize(
    "reply",
    [
        # what these hang on comes one character after an answer was possible
        '```json action\n```{"tool":"get_time"{"tool":"read_file","parameters":{"path":"a"}}',
        "functools```action",
        "{!\\]<channel|>",
        "[\n ```json action",
        "*get_time(){",
        "Action\n：get_weather{,",
        ">>>get_time{",
        "```json action\n{d\\_",
        "```json action\n{{a, b}}\n```",
        '```json action\n"tool":"list_files","parameters":{}\n',
        # blanks between blocks count once, in however many pieces they come
        '[TOOL_CALLS]{"a":}' + "a \u200b" * 40 + "<read_file>",
        # nothing behind the end of a batch is looked at
        "```json action\n{}\n```" + "a" * 90 + "<|channel>x",
    ],
)
def test_the_same_for_these(reply: str) -> None:
    whole = read_in_pieces([reply])
    for size in range(1, 5):
        assert read_in_pieces(in_pieces_of(size, reply)) == whole


@settings(max_examples=120, deadline=None)
@given(st.lists(fragments, min_size=1, max_size=8).map("".join))
def test_an_answer_about_a_line_is_never_taken_back(line: str) -> None:
    tools = Tools(TOOLS)
    window = line[: tools.window]
    answers = [opening(window[:end], tools, False) for end in range(1, len(window) + 1)]
    known = [a for a in answers if a is not None] + [opening(window, tools, True)]
    assert known[0] == known[-1]


@settings(max_examples=90, deadline=None)
@given(replies)
def test_the_events_are_the_reading(reply: str) -> None:
    scanner = Scanner(TOOLS)
    scanner.feed(reply)
    scanner.close()
    events, reading = read_in_pieces([reply])
    if not scanner.retracted:
        assert "".join(e for e in events if isinstance(e, str)) == reading.text
    assert tuple(e for e in events if isinstance(e, ToolCall)) == reading.calls


@settings(max_examples=70, deadline=None)
@given(st.text(st.characters(blacklist_categories=["Cs"]), max_size=200))
def test_any_text_survives_as_an_argument(text: str) -> None:
    body = json.dumps({"tool": "write_file", "parameters": {"path": "a", "content": text}})
    readable = json.dumps(json.loads(body), ensure_ascii=False)
    for reply in (f"```json action\n{body}\n```", f"```json action\n{readable}\n```", readable):
        (call,) = parse_reply(reply, TOOLS).calls
        assert call.arguments["content"] == text
        assert call.confidence == "strict"


HOSTILE = {
    "objects in strings": '{"a":"b,' * 4000,
    "the same in a block": "```json action\n" + '{"a":"b,' * 4000,
    "nesting": "[" * 100_000,
    "nesting in a block": "```json action\n" + "[" * 100_000,
    "objects": "```json action\n" + '{"a":' * 50_000,
    "backticks": "`" * 100_000,
    "fence lines": "```\n" * 25_000,
    "quotes": '"' * 100_000,
    "quotes in a string": '```json action\n{"tool":"' + '"' * 100_000,
    "quotes and commas": '```json action\n{"tool":"x","parameters":{"a":"' + '","' * 33_000,
    "smart quotes": "```json action\n{“tool”:“" + "“”" * 50_000,
    "backslashes": '```json action\n{"a":"\n' + "\\" * 100_000,
    "tags": "<" * 100_000,
    "tool calls": "<tool_call>" * 10_000,
    "tags in a value": "<function=read_file>\n<parameter=path>" + "<b>" * 33_000,
    "spaces": '```json action\n{"a":"b"' + " " * 100_000 + '"' + " " * 100_000,
    "line breaks": "\n" * 100_000,
    "colons": ": " * 50_000,
    "names": "get_time()\n" * 9_000,
    "bare words": "```json action\n{a: " + "b, " * 33_000,
    "comments": "```json action\n{" + "/* " * 33_000,
    "lists": "```json action\n" + "- " * 50_000,
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_text_costs_no_more_than_its_length(name: str) -> None:
    text = HOSTILE[name]
    started = time.process_time()
    whole = parse_reply(text, TOOLS)
    scanner = Scanner(TOOLS)
    for char in text:
        scanner.feed(char)
    assert scanner.close()[1] == whole
    # The processor's time, so that other load does not count: a quadratic step takes minutes here,
    # a sound one less than two seconds.
    assert time.process_time() - started < 20
