"""What the bytes of a reply mean, in all the forms in which servers send them."""

import contextlib
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chathands import limits
from chathands.conversation import Image, Message, Role
from chathands.emulation.outcome import ChatMessage, ModelRequest, NativeCall, Text, Thinking
from chathands.errors import (
    UpstreamAuthError,
    UpstreamBusy,
    UpstreamFailed,
    UpstreamGarbage,
    UpstreamNotFound,
    UpstreamRefused,
    UpstreamTimeout,
)
from chathands.upstreams import openai_wire
from chathands.upstreams.base import Usage
from chathands.upstreams.openai_wire import ReplyBody, error_for_status, request_body


def read(raw: bytes, *, framed: bool = True, step: int | None = None):
    """(body, pieces) of a whole reply."""
    body = ReplyBody()
    pieces = []
    for start in range(0, len(raw), step or len(raw) or 1):
        pieces += body.feed(raw[start : start + (step or len(raw))])
    return body, pieces + body.close(framed=framed)


def text_of(pieces) -> str:
    return "".join(piece.text for piece in pieces if isinstance(piece, Text))


def stream(*documents, end: str = "data: [DONE]\n\n") -> bytes:
    lines = (d if isinstance(d, str) else json.dumps(d, ensure_ascii=False) for d in documents)
    return ("".join(f"data: {line}\n\n" for line in lines) + end).encode()


def delta(finish=None, **fields):
    return {"choices": [{"index": 0, "delta": fields, "finish_reason": finish}]}


def test_text_finish_reason_and_usage_are_read_from_a_stream():
    body, pieces = read(
        stream(
            delta(role="assistant", content=None),
            delta(content="你"),
            delta(content="好"),
            delta(finish="stop"),
            {
                "choices": [],
                "usage": {
                    "prompt_tokens": 7,
                    "completion_tokens": 2,
                    "prompt_tokens_details": {"cached_tokens": 5},
                },
            },
        )
    )
    assert pieces == [Text("你"), Text("好")]
    assert (body.finish_reason, body.usage) == ("stop", Usage(7, 2, 5))


def test_a_whole_document_instead_of_a_stream_is_read():
    message = {"role": "assistant", "content": "好", "reasoning_content": "想"}
    document = {"choices": [{"message": message, "finish_reason": "stop"}], "usage": None}
    body, pieces = read(b" \n" + json.dumps(document, indent=1).encode())
    assert pieces == [Thinking("想"), Text("好")]
    assert body.finish_reason == "stop"


def test_llama_cpp_timings_stand_for_usage():
    last = delta(finish="stop") | {"timings": {"cache_n": 30, "prompt_n": 4, "predicted_n": 9}}
    assert read(stream(last))[0].usage == Usage(34, 9, 30)


@pytest.mark.parametrize("key", ["reasoning_content", "reasoning"])
def test_reasoning_is_thinking(key):
    assert read(stream(delta(**{key: "嗯"}), delta(content="好")))[1] == [
        Thinking("嗯"),
        Text("好"),
    ]


def test_content_in_parts_is_joined_and_thinking_parts_set_apart():
    parts = [
        {"type": "thinking", "thinking": [{"type": "text", "text": "想"}]},
        {"type": "text", "text": "好"},
        "的",
        {"type": "image_url", "image_url": {"url": "x"}},
    ]
    assert read(stream(delta(content=parts)))[1] == [Thinking("想"), Text("好"), Text("的")]


def test_a_refusal_field_is_text_so_that_it_is_recognised_as_a_refusal():
    assert read(stream(delta(content=None, refusal="我不能")))[1] == [Text("我不能")]


def test_fragments_of_native_calls_keep_their_index():
    first = {"index": 1, "id": "c1", "function": {"name": "f", "arguments": ""}}
    second = {"index": 1, "function": {"arguments": '{"a":'}}
    assert read(stream(delta(tool_calls=[first]), delta(tool_calls=[second])))[1] == [
        NativeCall(1, "c1", "f"),
        NativeCall(1, None, None, '{"a":'),
    ]


def test_native_arguments_sent_as_an_object_become_their_json():
    call = {"function": {"name": "f", "arguments": {"城市": "北京"}}}
    assert read(stream(delta(tool_calls=[call])))[1] == [
        NativeCall(0, None, "f", '{"城市": "北京"}')
    ]


def test_only_the_first_choice_is_read():
    other = {"choices": [{"index": 1, "delta": {"content": "x"}}]}
    assert text_of(read(stream(delta(content="a"), other))[1]) == "a"


def test_events_without_blank_lines_between_them_are_told_apart():
    lines = [f"data: {json.dumps(delta(content=c))}\n" for c in "ab"]
    body, pieces = read(("".join(lines) + "data: [DONE]\n").encode())
    assert text_of(pieces) == "ab"
    assert body.ended


def test_what_follows_done_is_not_read():
    assert text_of(read(stream(delta(content="a")) + stream(delta(content="b")))[1]) == "a"


def test_an_emoji_in_two_halves_over_two_events_is_one_emoji():
    halves = (
        r'{"choices":[{"delta":{"content":"\ud83d"}}]}',
        r'{"choices":[{"delta":{"content":"\ude42!"}}]}',
    )
    assert text_of(read(stream(*halves))[1]) == "🙂!"


def test_a_lone_surrogate_becomes_something_that_can_be_stored():
    pieces = read(stream(r'{"choices":[{"delta":{"content":"a\ude42b"}}]}'))[1]
    assert text_of(pieces) == "a\ufffdb"


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"<!doctype html><p>hi",
        b"\xef\xbb\xbf \n<html>",
        b"just words",
        b"data: not json\n\n",
        b"data: 3\n\n",
        b"data: [DONE]\n\n",
        b'{"choices": []}',
        b'{"choices": ["x"]}',
        b'{"choices"',
        b"[" * 100_000,
        b"data: " + b"[" * 100_000 + b"\n\n",
        b'{"hello": "world"}',
    ],
)
def test_what_is_no_reply_is_garbage(raw):
    with pytest.raises(UpstreamGarbage) as caught:
        read(raw)
    assert caught.value.nothing_received


def test_garbage_behind_a_part_of_the_answer_says_that_something_came():
    with pytest.raises(UpstreamGarbage) as caught:
        read(stream(delta(content="a"), "oops"))
    assert not caught.value.nothing_received


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        ({"error": {"message": "slow down", "code": 429}}, UpstreamBusy),
        ({"error": {"message": "boom", "code": "server_error"}}, UpstreamFailed),
        ({"error": {"message": "too long", "code": "400"}}, UpstreamRefused),
        ({"error": "boom"}, UpstreamFailed),
        ({"object": "error", "message": "too long", "code": 400}, UpstreamRefused),
    ],
)
def test_an_error_inside_the_stream_is_that_error(error, kind):
    with pytest.raises(kind) as caught:
        read(stream(delta(content="a"), error))
    assert not caught.value.nothing_received


def test_an_error_as_the_whole_document_is_that_error():
    with pytest.raises(UpstreamBusy):
        read(b'[{"error": {"code": 429, "message": "quota"}}]')


def test_a_stream_without_done_ends_where_http_or_the_finish_reason_says_so():
    cut = stream(delta(content="a"), end="")
    assert text_of(read(cut, framed=True)[1]) == "a"
    finished = stream(delta(content="a"), delta(finish="stop"), end="")
    assert text_of(read(finished, framed=False)[1]) == "a"
    with pytest.raises(UpstreamFailed) as caught:
        read(cut, framed=False)
    assert not caught.value.nothing_received


def test_a_reply_that_never_stops_is_cut_and_counts_as_truncated(monkeypatch):
    monkeypatch.setattr(openai_wire, "REPLY_CAP", 10)
    body, pieces = read(stream(*[delta(content="abcd")] * 5, delta(finish="stop")))
    assert text_of(pieces) == "abcd" * 3
    assert (body.finish_reason, body.ended) == ("length", True)
    assert limits.REPLY_CAP > 100_000


def test_more_bytes_than_any_reply_has_are_refused(monkeypatch):
    monkeypatch.setattr(openai_wire, "WIRE_CAP", 1000)
    with pytest.raises(UpstreamGarbage):
        read(b": keep-alive\n\n" * 100)


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (400, UpstreamRefused),
        (401, UpstreamAuthError),
        (402, UpstreamBusy),
        (403, UpstreamAuthError),
        (404, UpstreamNotFound),
        (405, UpstreamNotFound),
        (408, UpstreamTimeout),
        (413, UpstreamRefused),
        (422, UpstreamRefused),
        (429, UpstreamBusy),
        (500, UpstreamFailed),
        (503, UpstreamFailed),
        (529, UpstreamBusy),
        (301, UpstreamGarbage),
        (204, UpstreamGarbage),
    ],
)
def test_each_status_has_its_error(status, kind):
    error = error_for_status(status, "x")
    assert type(error) is kind
    assert error.nothing_received


def test_a_redirect_tells_to_set_the_final_address():
    assert "最终地址" in error_for_status(308, "x").sentence


MESSAGES = (ChatMessage(Role.SYSTEM, "规则"), ChatMessage(Role.USER, "你好"))


def test_a_plain_request_has_no_tool_field_and_no_stream_options():
    body = request_body(ModelRequest(MESSAGES), model="m", temperature=0.1, max_tokens=64)
    assert body == {
        "model": "m",
        "messages": [
            {"role": "system", "content": "规则"},
            {"role": "user", "content": "你好"},
        ],
        "stream": True,
        "temperature": 0.1,
        "max_tokens": 64,
    }


def test_what_a_request_has_is_sent():
    call = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    request = ModelRequest(
        (
            ChatMessage(Role.ASSISTANT, "", tool_calls=(call,)),
            ChatMessage(Role.TOOL, "42", tool_call_id="c1"),
        ),
        response_format={"type": "json_object"},
        tools=({"type": "function"},),
        tool_choice="required",
        stop=("END",),
    )
    body = request_body(request, model="m", temperature=None, max_tokens=None)
    assert body == {
        "model": "m",
        "messages": [
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "content": "42", "tool_call_id": "c1"},
        ],
        "stream": True,
        "stop": ["END"],
        "response_format": {"type": "json_object"},
        "tools": [{"type": "function"}],
        "tool_choice": "required",
    }


WHOLE = "\ufeff".encode() + stream(
    delta(reasoning_content="想🙂"), delta(content="你好\u2028"), delta(finish="stop", content="。")
)


@given(step=st.integers(1, len(WHOLE)))
def test_cuts_anywhere_in_the_bytes_change_nothing(step):
    body, pieces = read(WHOLE, step=step)
    assert pieces == [Thinking("想🙂"), Text("你好\u2028"), Text("。")]
    assert body.finish_reason == "stop"


@given(st.binary(max_size=200), st.booleans())
def test_no_bytes_make_anything_but_pieces_or_errors_of_the_tree(raw, framed):
    with contextlib.suppress(UpstreamGarbage, UpstreamFailed):
        read(raw, framed=framed)


def test_an_untouched_message_goes_out_with_its_pictures_and_names():
    source = Message.user("看图", images=[Image("http://127.0.0.1/a.png")])
    named = Message(Role.USER, "好", extra={"name": "anna"})
    untouched = [ChatMessage(Role.USER, "看图\n[图片 1]", source=source)]
    untouched += [ChatMessage(Role.USER, "好", source=m) for m in (named, Message.user("好"))]
    body = request_body(
        ModelRequest(tuple(untouched)), model="m", temperature=None, max_tokens=None
    )
    picture, name, plain = body["messages"]
    assert [part["type"] for part in picture["content"]] == ["text", "image_url"]
    assert name == {"role": "user", "content": "好", "name": "anna"}
    assert plain == {"role": "user", "content": "好"}
