"""The event a turn leaves for each decision: its schema holds for whatever a model may say."""

from __future__ import annotations

import json
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints, is_typeddict

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chathands.conversation import Message, Status, Tag, ToolCall, ToolResult, ToolSpec, as_specs
from chathands.emulation import Turn
from chathands.emulation.decision_log import Decision, recognised
from chathands.emulation.outcome import NativeCall, Retry, Text, Thinking
from tests.emulation.replies import TOOLS, block, cases

LOOK = ToolSpec(
    "get_weather",
    "查询一个城市的天气",
    {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    side_effect="none",
)
GOOD = block('{"tool": "get_weather", "parameters": {"city": "厦门"}}')
QUESTION = [Message.user("厦门天气怎么样")]


def misfits(value: Any, wanted: Any, where: str = "") -> list[str]:
    """Where a value is not what the type says, keys too many or missing included."""
    origin = get_origin(wanted)
    if is_typeddict(wanted):
        if not isinstance(value, dict):
            return [f"{where} is no object"]
        hints = get_type_hints(wanted)
        odd = [f"{where}.{key}: only on one side" for key in hints.keys() ^ value.keys()]
        return odd + [
            fault
            for key in hints.keys() & value.keys()
            for fault in misfits(value[key], hints[key], f"{where}.{key}")
        ]
    if origin is list:
        if not isinstance(value, list):
            return [f"{where} is no list"]
        return [f for at, v in enumerate(value) for f in misfits(v, get_args(wanted)[0], f"{at}")]
    if origin is Literal:
        return [] if value in get_args(wanted) else [f"{where} is {value!r}"]
    if origin in (Union, UnionType):
        fits = any(not misfits(value, each) for each in get_args(wanted))
        return [] if fits else [f"{where} is {value!r}"]
    kind = NoneType if wanted is None else wanted
    return [] if type(value) is kind else [f"{where} is {value!r}"]


def assert_fits(turn: Turn, decisions: int) -> None:
    assert len(turn.log) == decisions
    for event in turn.log:
        assert misfits(event, Decision) == []
        assert json.loads(json.dumps(event)) == event


def play(turn: Turn, *replies: Any, finish: str | None = "stop") -> Turn:
    """One reply after another, as long as the turn asks for more."""
    for number, reply in enumerate(replies, 1):
        turn.request()
        for piece in [Text(reply)] if isinstance(reply, str) else reply:
            turn.feed(piece)
        outcome = turn.finish(finish)
        assert_fits(turn, number)
        if not isinstance(outcome, Retry):
            break
    return turn


def test_the_checker_sees_what_does_not_fit():
    event: Any = play(Turn(QUESTION, [LOOK]), GOOD).log[0]
    assert misfits(event, Decision) == []
    assert misfits({**event, "extra": 1}, Decision)
    assert misfits({**event, "calls": [{"name": "x"}]}, Decision)
    assert misfits({**event, "outcome": "Perhaps"}, Decision)
    assert misfits({**event, "correction": "1"}, Decision)


@pytest.mark.parametrize("commit", ["finish", "stream"])
def test_every_reply_of_the_corpora_leaves_one_event_that_fits(commit):
    specs = as_specs(TOOLS)
    replies = [case["raw"] for case in cases("malformed.jsonl")]
    replies += [case["text"] for case in cases("refusals.jsonl")[::4]]
    for reply in replies:
        play(Turn([Message.user("看一下 src/app.py")], specs, commit=commit), reply)


@given(
    st.lists(
        st.one_of(
            st.builds(Text, st.text(max_size=12) | st.sampled_from([GOOD, "我没有工具。", "```"])),
            st.builds(Thinking, st.text(max_size=4)),
            st.builds(NativeCall, st.integers(0, 1), st.none(), st.just("get_weather"), st.text()),
        ),
        max_size=4,
    ),
    st.sampled_from(["auto", "none", "required", "get_weather"]),
    st.sampled_from(["stop", "length", None]),
)
def test_whatever_comes_the_event_fits(pieces, choice, finish):
    play(Turn(QUESTION, [LOOK], choice=choice), pieces, finish=finish)


def test_the_event_says_what_the_model_was_asked_with():
    conversation = [
        Message.user("厦门和福州的天气"),
        Message.assistant("", [ToolCall("a", "get_weather", {"city": "厦门"})]),
        Message.tool(ToolResult("a", "get_weather", Status.OK, "晴")),
        Message.tool(ToolResult("a", "get_weather", Status.OK, "晴")),
        Message.tool(ToolResult("gone", "get_weather", Status.OK, "雨")),
    ]
    asked = play(Turn(conversation, [LOOK]), GOOD).log[0]["asked"]
    assert asked["history"] == {
        **{"messages": 5, "calls": 1, "results": 3, "orphans": 1, "duplicates": 1},
        **{"unanswered": 0, "rejected": 0},
    }
    assert (asked["state"], asked["choice"], asked["tools"]) == ("after_result", "auto", 1)
    assert asked["contract_characters"] > asked["contract_tokens"] > 200
    assert asked["request_tokens"] > asked["contract_tokens"]
    assert asked["request_messages"] == 4


def test_calls_without_results_and_rejected_replies_are_counted():
    calls = [ToolCall("a", "x", {}), ToolCall("a", "x", {}), ToolCall("b", "x", {})]
    seen = recognised(
        [
            Message.assistant("", calls),
            Message.tool(ToolResult("a", "x", Status.OK, "")),
            Message.assistant("不行", tag=Tag.REJECTED),
        ]
    )
    assert (seen["calls"], seen["unanswered"], seen["rejected"]) == (3, 2, 1)


def test_a_refusal_names_its_rule_and_its_sentence():
    turn = play(Turn(QUESTION, [LOOK]), "你好！抱歉，我没有可用的工具。祝你愉快。", GOOD)
    first, second = turn.log
    assert first["stance"]["kind"] == "refusal"
    assert "zh_no_tool" in first["stance"]["evidence"]
    assert first["stance"]["phrase"] == "抱歉，我没有可用的工具。"
    assert (first["reason"], first["correction"], first["firmness"]) == ("refusal", 1, 1)
    assert (first["corrections_left"], second["corrections_left"]) == (1, 1)
    assert (second["outcome"], second["reason"], second["firmness"]) == ("Calls", None, 0)
    assert second["asked"]["state"] == "after_correction"
    assert second["asked"]["history"]["rejected"] == 1


def test_calls_come_with_confidence_and_repairs_and_broken_ones_with_a_reason():
    bad = block('{"tool": "get_weather", "parameters": {"city": "福州}}')
    single = block("{'tool': 'get_weather', 'parameters': {'city': '厦门',}}")
    event = play(Turn(QUESTION, [LOOK]), f"{single}\n{bad}").log[0]
    assert [call["confidence"] for call in event["calls"]] == ["repaired"]
    assert event["calls"][0]["repairs"]
    assert event["broken"][0]["reason"] in ("broken_call", "truncated")
    assert event["broken"][0]["in_contract"]


def test_what_a_stream_held_back_is_counted():
    turn = Turn(QUESTION, [LOOK], commit="stream")
    play(turn, [Text("今天"), Text("厦门天气晴朗"), Text("。明天也是。")])
    assert turn.log[0]["held_characters"] == len("今天厦门天气晴朗。明天也是。")
