"""Anthropic's messages through the canonical form and back: nothing is lost on the way."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chathands.conversation import CallPart, Message, Role, Status, ToolCall, ToolResult
from chathands.protocols.anthropic import from_anthropic, to_anthropic
from chathands.protocols.openai_messages import to_openai

PICTURE = {
    "type": "image",
    "source": {"type": "base64", "media_type": "image/png", "data": "AAAA"},
    "cache_control": {"type": "ephemeral"},
}
SYSTEM = [{"type": "text", "text": "规矩", "cache_control": {"type": "ephemeral"}}]
WIRE = [
    {"role": "user", "content": "查两个城市"},
    {
        "role": "assistant",
        "content": [
            {"type": "thinking", "thinking": "先看北京", "signature": "c2ln"},
            {"type": "redacted_thinking", "data": "b3BhcXVl"},
            {"type": "text", "text": "先北京"},
            {"type": "tool_use", "id": "t1", "name": "weather", "input": {"city": "北京"}},
            {"type": "text", "text": "再上海"},
            {"type": "tool_use", "id": "t2", "name": "weather", "input": {"city": "上海"}},
        ],
    },
    {
        "role": "user",
        "content": [
            {
                "type": "tool_result",
                "tool_use_id": "t2",
                "is_error": True,
                "content": "没有这个城市",
            },
            {
                "type": "tool_result",
                "tool_use_id": "t1",
                "content": [{"type": "text", "text": "晴"}, PICTURE],
            },
            {"type": "text", "text": "<reminder>简短些</reminder>"},
        ],
    },
    {"role": "assistant", "content": [{"type": "text", "text": "北京晴"}]},
    {
        "role": "user",
        "content": [
            {"type": "image", "source": {"type": "url", "url": "http://127.0.0.1/a.png"}},
            {"type": "document", "source": {"type": "text", "data": "文"}, "title": "d"},
            {"type": "text", "text": "这是什么"},
        ],
    },
]


def test_a_whole_conversation_comes_out_as_it_went_in():
    assert to_anthropic(from_anthropic(SYSTEM, WIRE)) == (SYSTEM, WIRE)


def test_results_become_messages_of_their_own_and_text_beside_them_is_joined():
    messages = from_anthropic(None, WIRE)
    assert [m.role for m in messages] == [
        Role.USER,
        Role.ASSISTANT,
        Role.TOOL,
        Role.TOOL,
        Role.USER,
        Role.ASSISTANT,
        Role.USER,
    ]
    assert [m.joined for m in messages] == [False, False, False, True, True, False, False]
    results = [m.result for m in messages if m.result]
    assert [(r.call_id, r.name, r.status) for r in results] == [
        ("t2", "weather", Status.FAILED),
        ("t1", "weather", Status.OK),
    ]
    assert [image.mime for image in results[1].images] == ["image/png"]


def test_text_between_calls_keeps_its_place():
    message = from_anthropic(None, WIRE)[1]
    assert message.text == "先北京\n再上海"
    assert [call.id for call in message.calls] == ["t1", "t2"]
    kinds = [type(part).__name__ for part in message.ordered]
    assert kinds == ["ThinkingPart", "OtherPart", "TextPart", "CallPart", "TextPart", "CallPart"]
    assert [p.index for p in message.ordered if isinstance(p, CallPart)] == [0, 1]


def test_the_same_messages_can_be_written_for_the_other_protocol():
    wire = to_openai(from_anthropic(SYSTEM, WIRE))
    assert [m["role"] for m in wire] == [
        "system",
        "user",
        "assistant",
        "tool",
        "tool",
        "user",
        "assistant",
        "user",
    ]
    assert [call["id"] for call in wire[2]["tool_calls"]] == ["t1", "t2"]
    assert wire[3]["content"] == "[status=failed]\n没有这个城市"


def test_a_line_in_a_client_s_result_says_nothing_about_how_it_ended():
    told = {"type": "tool_result", "tool_use_id": "t1", "content": "[status=unknown]\nx"}
    wire = [*WIRE[:2], {"role": "user", "content": [{**told, "is_error": True}]}]
    result = from_anthropic(None, wire)[-1].result
    assert (result.status, result.content) == (Status.FAILED, "[status=unknown]\nx")
    assert to_anthropic(from_anthropic(None, wire))[1] == wire


@pytest.mark.parametrize("status", list(Status))
@pytest.mark.parametrize("content", ["", "x", "两行\n[status=ok]"])
def test_the_status_of_our_own_results_survives(status, content):
    conversation = [
        Message.user("q"),
        Message.assistant("", [ToolCall("a", "t", {"x": 1}), ToolCall("b", "t", {})]),
        Message.tool(ToolResult("a", "t", status, content)),
        Message.tool(ToolResult("b", "t", Status.OK, "y")),
        Message.assistant("好"),
    ]
    system, wire = to_anthropic(conversation)
    assert [m["role"] for m in wire] == ["user", "assistant", "user", "assistant"]
    read = from_anthropic(system, wire, ours=True)
    assert [(m.role, m.text, m.calls, m.result) for m in read] == [
        (m.role, m.text, m.calls, m.result) for m in conversation
    ]


# --- laws

texts = st.text(max_size=8)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | texts,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(texts, inner, max_size=2),
    max_leaves=5,
)
extras = st.dictionaries(st.sampled_from(["cache_control", "citations"]), json_values, max_size=2)
ids = st.sampled_from(["a", "b", "c"])
text_blocks = st.builds(lambda t, e: {"type": "text", "text": t, **e}, texts, extras)
sources = st.sampled_from(
    [
        {"type": "base64", "media_type": "image/png", "data": "AA"},
        {"type": "url", "url": "http://127.0.0.1/a.png"},
        {"type": "file", "file_id": "f1"},
    ]
)
images = st.builds(lambda s, e: {"type": "image", "source": s, **e}, sources, extras)
documents = st.builds(lambda e: {"type": "document", "source": {}, **e}, extras)
results = st.builds(
    lambda id, content, error, e: {"type": "tool_result", "tool_use_id": id} | content | error | e,
    ids,
    st.one_of(
        st.just({}),
        texts.filter(bool).map(lambda text: {"content": text}),
        st.lists(text_blocks | images, min_size=1, max_size=2).map(lambda c: {"content": c}),
    ),
    st.sampled_from([{}, {"is_error": True}, {"is_error": False}]),
    extras,
)
thoughts = st.builds(
    lambda text, e: {"type": "thinking", "thinking": text, "signature": "s", **e}, texts, extras
)
uses = st.builds(
    lambda id, given, e: {"type": "tool_use", "id": id, "name": "t", "input": given, **e},
    ids,
    st.dictionaries(texts, json_values, max_size=2),
    extras,
)
users = st.lists(text_blocks | images | documents | results, min_size=1, max_size=4)
assistants = st.lists(text_blocks | thoughts | uses, min_size=1, max_size=4)


@settings(max_examples=70, deadline=None)
@given(st.lists(st.tuples(texts | users, texts | assistants), max_size=3), texts)
def test_every_alternating_conversation_survives(rounds, system):
    messages = []
    for user, assistant in rounds:
        messages += [{"role": "user", "content": user}, {"role": "assistant", "content": assistant}]
    assert to_anthropic(from_anthropic(system, messages)) == (system or None, messages)
