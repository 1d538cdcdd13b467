"""Responses: items as chat messages, ids, and what a reply looks like before it leaves."""

import json
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chathands.conversation import Role, ToolCall
from chathands.protocols.openai import BadRequest
from chathands.protocols.responses import ResponsesRequest
from chathands.protocols.responses_items import (
    chat_messages,
    item_id,
    read_items,
    response_of,
    with_ids,
)
from chathands.protocols.responses_reply import EventEncoder, Reply, usage_body, whole


def call(id: str) -> dict:
    return {"type": "function_call", "call_id": id, "name": "f", "arguments": '{"a": 1}'}


def result(id: str, output="x") -> dict:
    return {"type": "function_call_output", "call_id": id, "output": output}


def said(role: str, text) -> dict:
    return {"role": role, "content": text}


def test_what_an_assistant_said_and_its_calls_are_one_message():
    items = [said("user", "q"), said("assistant", "I look."), call("1"), call("2"), result("1")]
    user, assistant, tool = chat_messages(read_items(items))
    assert assistant["content"] == "I look."
    assert [c["id"] for c in assistant["tool_calls"]] == ["1", "2"]
    assert (user["role"], tool["tool_call_id"]) == ("user", "1")


def test_calls_of_two_replies_stay_two_messages():
    items = [call("1"), result("1"), {"type": "reasoning"}, call("2"), result("2")]
    roles = [message["role"] for message in chat_messages(read_items(items))]
    assert roles == ["assistant", "tool", "assistant", "tool"]


def test_parts_of_text_are_one_text_and_others_are_kept():
    image = {"type": "input_image", "image_url": "https://a/b.png", "detail": "low"}
    texts = [{"type": "input_text", "text": t} for t in ("a", "b")]
    refused = {"type": "refusal", "refusal": "no"}
    file = {"type": "input_file", "filename": "a.pdf", "file_data": "data:,"}
    items = [said("user", texts), said("assistant", [refused]), said("user", [texts[0], image])]
    plain, refusal, mixed = chat_messages(read_items(items))
    assert (plain["content"], refusal["content"]) == ("a\nb", "no")
    assert mixed["content"] == [
        {"type": "text", "text": "a"},
        {"type": "image_url", "image_url": {"url": "https://a/b.png", "detail": "low"}},
    ]
    (tool,) = chat_messages(read_items([result("1", [file])]))
    assert tool["content"] == [
        {"type": "file", "file": {"filename": "a.pdf", "file_data": "data:,"}}
    ]


def test_instructions_come_first_and_pictures_become_pictures():
    image = {"type": "input_image", "image_url": "data:image/png;base64,AA=="}
    body = {"model": "m", "input": [said("user", [image])], "instructions": "Be brief."}
    request = ResponsesRequest.read(body)
    system, user = request.conversation(request.items)
    assert (system.role, system.text) == (Role.SYSTEM, "Be brief.")
    assert user.images[0].mime == "image/png"


def test_ids_lead_back_to_their_response():
    items = with_ids(read_items([said("user", "q"), call("1") | {"id": "fc_own"}]), "resp_0af1")
    assert [item["id"] for item in items] == ["msg_0af1i0", "fc_own"]
    assert response_of("msg_0af1i0") == response_of(item_id("fc", "resp_0af1", 12)) == "resp_0af1"
    assert response_of("fc_own") is None


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=6,
)
known = st.sampled_from(
    [
        "message",
        "function_call",
        "function_call_output",
        "reasoning",
        "item_reference",
        "x",
        None,
        5,
    ]
)
items = st.dictionaries(
    st.sampled_from(["type", "role", "content", "call_id", "name", "arguments", "output", "id"]),
    json_values
    | known
    | st.sampled_from(["user", "assistant"])
    | st.lists(st.fixed_dictionaries({"type": st.just("input_text"), "text": json_values})),
)


@settings(max_examples=40)
@given(st.lists(items, max_size=4), st.dictionaries(st.text(max_size=4), json_values))
def test_no_input_does_more_than_be_refused(input, more):
    try:
        request = ResponsesRequest.read({"model": "m", "input": input, **more})
        read = request.items
        request.check_with(read)
        request.conversation([item for item in read if item["type"] != "item_reference"])
        json.dumps([with_ids(read, "resp_a"), request.echo()])
    except BadRequest:
        return  # anything else is a fault


def test_settings_of_the_reply_are_told_in_the_words_of_chat():
    schema = {"type": "json_schema", "name": "n", "schema": {"type": "object"}, "strict": True}
    request = ResponsesRequest.read(
        {
            "model": "m",
            "input": "q",
            "temperature": 0,
            "max_output_tokens": 9,
            "reasoning": {"effort": "low", "summary": "auto"},
            "text": {"format": schema, "verbosity": "low"},
            "unknown": {"a": 1},
        }
    )
    assert request.sampling == {"temperature": 0, "max_tokens": 9, "reasoning_effort": "low"}
    assert request.response_format == {
        "type": "json_schema",
        "json_schema": {"name": "n", "schema": {"type": "object"}, "strict": True},
    }
    assert request.echo()["text"] == {"format": schema, "verbosity": "low"}


def test_a_body_full_of_tools_is_read_in_a_moment():
    tools = [{"type": "function", "name": f"f{n}"} for n in range(30_000)]
    choice = {"type": "allowed_tools", "mode": "required", "tools": tools}
    began = time.process_time()
    request = ResponsesRequest.read(
        {"model": "m", "input": "q", "tools": tools, "tool_choice": choice}
    )
    request.check_with(request.items)
    assert time.process_time() - began < 2  # comparing each with each takes half a minute


def test_a_bad_field_is_named_by_its_path_in_the_body():
    with pytest.raises(BadRequest) as wrong:
        ResponsesRequest.read({"model": "m", "input": "q", "text": {"format": {"type": "xml"}}})
    assert wrong.value.field == "text.format"


CALLS = (ToolCall("c1", "f", {"a": 1}), ToolCall("c2", "f", {"a": 2}))


@pytest.mark.parametrize(("text", "calls"), [("hi", ()), ("", CALLS), ("hi", CALLS), ("", ())])
def test_a_stream_ends_in_the_response_that_would_have_come_whole(text, calls):
    usage = usage_body(3, 4)
    one, two = (Reply("resp_a", 1, "m", {"tools": []}) for _ in range(2))
    encoder = EventEncoder(one)
    said = [encoder.text(piece) for piece in text]
    said += [encoder.call(call) for call in calls] + [encoder.close("stop")]
    said.append(encoder.end(one.ended("stop", usage)))
    last = json.loads("".join(said).rstrip().rpartition("data: ")[2])
    expected = whole(two, text, calls, "stop", usage)
    assert last["response"] | {"completed_at": 0} == expected | {"completed_at": 0}
    assert last["response"]["status"] == "completed"


def test_text_after_a_call_is_another_message():
    reply = Reply("resp_a", 1, "m", {})
    encoder = EventEncoder(reply)
    encoder.text("a"), encoder.call(CALLS[0]), encoder.text("b"), encoder.close("stop")
    assert [item["type"] for item in reply.output] == ["message", "function_call", "message"]
    assert [item["content"][0]["text"] for item in reply.output[::2]] == ["a", "b"]


def test_calls_are_whole_however_the_writing_ended():
    body = whole(Reply("resp_a", 1, "m", {}), "hi", CALLS, "length", {})
    assert (body["status"], body["incomplete_details"]) == ("completed", None)
