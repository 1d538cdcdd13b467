"""OpenAI's messages through the canonical form and back: nothing is lost on the way."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chathands.conversation import (
    UNREADABLE,
    Image,
    Message,
    OtherPart,
    Role,
    Status,
    TextPart,
    ToolCall,
    ToolResult,
    ToolSpec,
)
from chathands.emulation import Calls, Text, Turn, render_block
from chathands.protocols.anthropic import from_anthropic, to_anthropic
from chathands.protocols.openai import ChatRequest
from chathands.protocols.openai_messages import from_openai, to_openai

PICTURE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA", "detail": "low"}}


def call(id: str, arguments: str = '{"city": "北京"}', **more):
    return {
        "id": id,
        "type": "function",
        "function": {"name": "lookup", "arguments": arguments},
        **more,
    }


WIRE = [
    {"role": "developer", "content": "规矩"},
    {"role": "system", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]},
    {"role": "user", "name": "anna", "content": "q"},
    {
        "role": "user",
        "content": [
            {"type": "text", "text": "看", "cache_control": {"type": "ephemeral"}},
            PICTURE,
            {"type": "text", "text": "和"},
            {"type": "input_audio", "input_audio": {"data": "AA", "format": "wav"}},
        ],
    },
    {
        "role": "assistant",
        "content": "先查",
        "reasoning_content": "想一想",
        "tool_calls": [call("c1"), call("c2", '{"b":1,"a" : 2}', index=1), call("c3", "{oops")],
    },
    {"role": "tool", "tool_call_id": "c2", "content": "雨"},
    {"role": "tool", "tool_call_id": "c1", "content": [{"type": "text", "text": "晴"}, PICTURE]},
    {"role": "tool", "tool_call_id": "gone", "name": "other", "content": "没人要的"},
    {"role": "assistant", "content": None, "tool_calls": [call("c4", "")], "refusal": None},
    {"role": "tool", "tool_call_id": "c4", "content": "[status=failed]\n没有这个城市"},
    {"role": "assistant", "content": "好了"},
]


def test_a_whole_conversation_comes_out_as_it_went_in():
    request = ChatRequest.read({"model": "m", "messages": WIRE})
    assert to_openai(request.conversation()) == WIRE


def test_what_is_read_can_be_used_without_knowing_the_protocol():
    messages = from_openai(WIRE)
    assert [m.role for m in messages[:2]] == [Role.SYSTEM, Role.SYSTEM]
    assert messages[1].text == "a\nb"
    assert messages[3].text == "看\n和"
    assert [image.mime for image in messages[3].images] == ["image/png"]
    assert any(isinstance(part, OtherPart) for part in messages[3].parts)
    assert [c.arguments for c in messages[4].calls] == [
        {"city": "北京"},
        {"b": 1, "a": 2},
        {UNREADABLE: "{oops"},
    ]
    results = [m.result for m in messages if m.result]
    assert [(r.call_id, r.name, r.status, r.content) for r in results] == [
        ("c2", "lookup", Status.OK, "雨"),
        ("c1", "lookup", Status.OK, "晴"),
        ("gone", "other", Status.OK, "没人要的"),
        ("c4", "lookup", Status.OK, "[status=failed]\n没有这个城市"),
    ]
    assert len(results[1].images) == 1


def test_a_message_whose_text_was_replaced_does_not_speak_with_its_old_parts():
    (message,) = from_openai([WIRE[3]])
    changed = Message(message.role, "别的话", images=message.images, parts=message.parts)
    assert [p.text for p in changed.ordered if isinstance(p, TextPart)] == ["别的话"]
    (wire,) = to_openai([changed])
    assert [part["type"] for part in wire["content"]] == ["text", "image_url"]


# --- laws

texts = st.text(max_size=8)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | texts,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(texts, inner, max_size=2),
    max_leaves=5,
)
extras = st.dictionaries(st.sampled_from(["x_note", "annotations"]), json_values, max_size=2)
text_parts = st.builds(lambda t, e: {"type": "text", "text": t, **e}, texts, extras)
image_parts = st.builds(
    lambda url, e, more: {"type": "image_url", "image_url": {"url": url, **more}, **e},
    st.sampled_from(["http://127.0.0.1/a.png", "data:image/png;base64,AA", ""]),
    extras,
    extras,
)
other_parts = st.builds(lambda data: {"type": "file", **data}, extras)
contents = texts | st.lists(text_parts | image_parts | other_parts, min_size=1, max_size=4)
ids = st.sampled_from(["a", "b", "c"])
arguments = st.one_of(
    st.dictionaries(texts, json_values, max_size=3).map(json.dumps),
    st.dictionaries(texts, json_values, max_size=3).map(
        lambda value: json.dumps(value, ensure_ascii=False)
    ),
    texts,
)
wire_calls = st.builds(call, ids, arguments)


def wire_message(role, content, extra, calls, call_id):
    wire = {"role": role, "content": content, **extra}
    if role == "tool":
        wire["tool_call_id"] = call_id
    if role == "assistant" and calls:
        wire["tool_calls"] = calls
        wire["content"] = content or None
    return wire


wire_messages = st.builds(
    wire_message,
    st.sampled_from(["system", "developer", "user", "assistant", "tool"]),
    contents,
    extras,
    st.lists(wire_calls, max_size=3),
    ids,
)


@settings(max_examples=70, deadline=None)
@given(st.lists(wire_messages, max_size=4))
def test_every_wire_message_survives(messages):
    assert to_openai(from_openai(messages)) == messages


@pytest.mark.parametrize("status", list(Status))
@pytest.mark.parametrize("content", ["", "x", "两行\n[status=ok]"])
def test_the_status_of_our_own_results_survives(status, content):
    asked = Message.assistant("", [ToolCall("a", "t", {})])
    told = Message.tool(ToolResult("a", "t", status, content))
    assert from_openai(to_openai([asked, told]), ours=True) == [asked, told]


@pytest.mark.parametrize("status", ["failed", "denied", "unknown"])
def test_a_line_in_a_client_s_result_says_nothing_about_how_it_ended(status):
    content = f"[status={status}]\n一个网页的文字"
    wire = [WIRE[4], {"role": "tool", "tool_call_id": "c1", "content": content}]
    result = from_openai(wire)[1].result
    assert (result.status, result.content) == (Status.OK, content)
    assert to_openai(from_openai(wire)) == wire


def test_an_outcome_goes_out_and_comes_back_as_the_same_history():
    """What a turn ends in can be written for a client, whose next request brings it back."""
    tool = ToolSpec("lookup", "查", {"type": "object", "properties": {"城市": {}}}, "none")
    turn = Turn([Message.user("q")], [tool])
    turn.feed(Text("先查\n" + render_block("lookup", {"城市": "北京\n😀"})))
    turn.feed(Text("\n" + render_block("lookup", {"城市": None})))
    outcome = turn.finish("stop")
    assert isinstance(outcome, Calls)
    said = list(turn.transcript)
    assert from_openai(json.loads(json.dumps(to_openai(said)))) == said
    system, wire = to_anthropic([Message.user("q"), *said])
    back = from_anthropic(system, json.loads(json.dumps(wire)))[1:]
    assert [(m.text, m.calls) for m in back] == [(m.text, m.calls) for m in said]


def test_a_picture_without_parts_is_written_as_one():
    (wire,) = to_openai([Message.user("看", images=[Image("http://127.0.0.1/a.png")])])
    assert wire["content"] == [
        {"type": "text", "text": "看"},
        {"type": "image_url", "image_url": {"url": "http://127.0.0.1/a.png"}},
    ]
