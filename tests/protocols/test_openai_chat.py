"""OpenAI chat completions on the wire: what is read, what is refused, what goes out."""

import json

import pytest

from chathands.conversation import Role, ToolCall, ToolChoice
from chathands.protocols.openai import BadRequest, ChatRequest
from chathands.protocols.openai_reply import ChunkEncoder, completion

TOOL = {
    "type": "function",
    "function": {"name": "lookup", "parameters": {"type": "object", "properties": {}}},
}


def read(**body):
    return ChatRequest.read({"model": "m", "messages": [{"role": "user", "content": "q"}]} | body)


def test_a_conversation_with_calls_and_results_keeps_ids_and_names():
    request = read(
        messages=[
            {"role": "system", "content": "s"},
            {"role": "user", "content": [{"type": "text", "text": "查"}]},
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [
                    {
                        "id": "c1",
                        "type": "function",
                        "function": {"name": "lookup", "arguments": '{"a": "中"}'},
                    }
                ],
            },
            {"role": "tool", "tool_call_id": "c1", "content": "42"},
        ]
    )
    messages = request.conversation()
    assert [m.role for m in messages] == [Role.SYSTEM, Role.USER, Role.ASSISTANT, Role.TOOL]
    assert messages[2].calls == (ToolCall("c1", "lookup", {"a": "中"}),)
    result = messages[3].result
    assert result is not None
    assert (result.call_id, result.name, result.content) == ("c1", "lookup", "42")


def test_an_orphan_result_is_kept_not_refused():
    request = read(messages=[{"role": "tool", "tool_call_id": "gone", "content": "x"}])
    assert request.conversation()[0].result is not None


def test_pictures_become_images_beside_the_text():
    part = {"type": "image_url", "image_url": {"url": "http://127.0.0.1/a.png"}}
    message = read(
        messages=[{"role": "user", "content": [{"type": "text", "text": "看"}, part]}]
    ).conversation()[0]
    assert message.text == "看"
    assert [image.url for image in message.images] == ["http://127.0.0.1/a.png"]


def test_no_tools_and_an_empty_list_are_different():
    assert read().specs is None
    assert read(tools=[]).specs == ()


@pytest.mark.parametrize(
    ("given", "choice"),
    [
        (None, ToolChoice("auto")),
        ("required", ToolChoice("required")),
        ({"type": "function", "function": {"name": "lookup"}}, ToolChoice("named", "lookup")),
    ],
)
def test_tool_choice(given, choice):
    assert read(tools=[TOOL], tool_choice=given).choice == choice


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"messages": []}, "messages"),
        ({"messages": "x"}, "messages"),
        ({"messages": [{"role": "bogus", "content": "x"}]}, "messages.0.role"),
        ({"tools": [{"type": "function", "function": {}}]}, "tools.0.function.name"),
    ],
)
def test_a_wrong_field_is_named(body, field):
    with pytest.raises(BadRequest) as caught:
        read(**body)
    assert caught.value.field is not None
    assert caught.value.field.startswith(field)


def test_arguments_go_out_as_a_json_string_with_readable_characters():
    call = ToolCall("c1", "lookup", {"城市": "北京"})
    reply = completion(
        id="x", created=1, model="m", text="", calls=[call], finish_reason="stop", usage=None
    )
    choice = reply["choices"][0]
    assert choice["finish_reason"] == "tool_calls"
    assert choice["message"]["content"] is None
    assert choice["message"]["tool_calls"][0]["function"]["arguments"] == '{"城市": "北京"}'


def test_a_stream_numbers_its_calls_and_ends_in_done():
    encoder = ChunkEncoder(id="x", created=1, model="m")
    lines = encoder.text("a")
    lines += encoder.call(ToolCall("1", "lookup", {})) + encoder.call(ToolCall("2", "lookup", {}))
    lines += encoder.end("stop")
    events = [line.removeprefix("data: ") for line in lines.split("\n\n") if line]
    assert events.pop() == "[DONE]"
    deltas = [json.loads(event)["choices"][0] for event in events]
    indexes = [d["delta"]["tool_calls"][0]["index"] for d in deltas if d["delta"].get("tool_calls")]
    assert indexes == [0, 1]
    assert deltas[-1]["finish_reason"] == "tool_calls"
