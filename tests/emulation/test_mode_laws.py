"""Laws of the turn that hold in every mode: prefix-stable requests, split invariance, no errors."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chathands.conversation import Message, Role, Status, ToolResult
from chathands.emulation import (
    Answer,
    CallReady,
    Calls,
    NativeCall,
    Retry,
    Text,
    TextDelta,
    Turn,
    render_block,
)
from chathands.emulation.writing import WRITERS
from tests.emulation.test_turn_laws import QUESTIONS, REPLIES, STATUSES, TOOLS, requests_of, scripts

MODES = ["emulated", "structured", "native"]


def reply_of(mode, *calls, answer=""):
    """A reply in the mode's own form, as pieces."""
    if mode == "native":
        import json

        natives = [
            NativeCall(at, f"x{at}", name, json.dumps(given, ensure_ascii=False))
            for at, (name, given) in enumerate(calls)
        ]
        return [*([Text(answer)] if answer else []), *natives]
    writer = WRITERS[mode]
    return [Text(writer.calls(calls) if calls else writer.answer(answer))]


OWN = {
    mode: [
        reply_of(mode, ("get_weather", {"city": "厦门"})),
        reply_of(mode, ("get_weather", {"city": "厦门"}), ("nope", {})),
        reply_of(mode, ("send_note", {"title": "晴"})),
        reply_of(mode, ("nope", {"a": 1})),
        reply_of(mode, answer="厦门今天 25℃。"),
        reply_of(mode, answer="抱歉，我没有可用的工具。"),
    ]
    for mode in MODES
}
OWN["structured"].append([Text('{"thought": "想", "calls": [{"tool": "get_weather", "par')])
OWN["native"].append([NativeCall(0, "a", "get_weather", '{"city": "厦')])
OWN["native"].append([NativeCall(0, "a", None, "[1]")])


@pytest.mark.parametrize("mode", MODES)
@settings(max_examples=60, deadline=None)
@given(st.data())
def test_within_a_run_each_request_starts_with_the_whole_previous_one(mode, data):
    script = data.draw(scripts())
    own = st.sampled_from(OWN[mode])
    texts = st.sampled_from(REPLIES).map(lambda text: [Text(text)])
    replies = iter(data.draw(st.lists(own | texts, min_size=1, max_size=10)))
    last = reply_of(mode, answer="完了，没有别的了。")
    sent = requests_of(script, replies, mode, last)
    for request in sent:
        assert request.messages[-1].role in (Role.USER, Role.TOOL)
        assert_protocol(request.messages)


def assert_protocol(messages):
    """Every call has its tool message right behind it, in order; no tool message stands alone."""
    waiting = []
    for message in messages:
        if message.role is Role.TOOL:
            assert message.tool_call_id == waiting.pop(0)
            continue
        assert not waiting
        waiting = [call["id"] for call in message.tool_calls]
    assert not waiting


@pytest.mark.parametrize("mode", ["structured", "native"])
@settings(max_examples=30, deadline=None)
@given(
    st.lists(st.sampled_from(STATUSES), min_size=4, max_size=4),
    st.lists(st.sampled_from(["晴", "", "----- f00d -----", "长" * 900]), min_size=4),
    st.sampled_from(["zh", "en"]),
)
def test_five_rounds_with_a_correction_a_forced_choice_and_a_withdrawal(
    mode, statuses, contents, language
):
    first = reply_of(mode, ("get_weather", {"city": "厦门"}))
    rounds = [
        ({}, [reply_of(mode, answer="抱歉，我没有可用的工具。"), first]),
        ({"choice": "send_note"}, [first, reply_of(mode, ("send_note", {}))]),
        ({}, [reply_of(mode, ("get_weather", {"city": "武汉"}), ("nope", {}))]),
        ({"choice": "set_reminder"}, [reply_of(mode, ("set_reminder", {"title": "喝水"}))]),
        ({"withdraw": "last_round"}, [first, reply_of(mode, answer="都说完了。")]),
    ]
    conversation, sent = [Message.user(QUESTIONS[0])], []
    for number, (options, replies) in enumerate(rounds):
        turn = Turn(
            conversation, TOOLS, mode=mode, language=language, fence="f00d",
            reviews=frozenset(), **options,
        )  # fmt: skip
        for reply in replies:
            sent.append(turn.request().messages)
            for piece in reply:
                turn.feed(piece)
            outcome = turn.finish("stop")
            assert isinstance(outcome, Retry) == (reply is not replies[-1])
        conversation += turn.transcript
        for call in outcome.calls if isinstance(outcome, Calls) else ():
            found = ToolResult(call.id, call.name, statuses[number], contents[number])
            conversation.append(Message.tool(found))
    assert isinstance(outcome, Answer)
    assert len(sent) == 8
    for before, after in pairwise(sent):
        assert after[: len(before)] == before


@pytest.mark.parametrize("mode", MODES)
@settings(max_examples=50, deadline=None)
@given(st.data())
def test_the_outcome_does_not_depend_on_the_pieces(mode, data):
    pieces = data.draw(st.sampled_from(OWN[mode]))
    text = "".join(piece.text for piece in pieces if isinstance(piece, Text))
    rest = [piece for piece in pieces if not isinstance(piece, Text)]
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=6)))
    cut = [Text(text[a:b]) for a, b in pairwise([0, *cuts, len(text)])]
    endings = []
    for parts in ([Text(text), *rest], [*cut, *rest]):
        turn = Turn([Message.user("厦门天气")], TOOLS, mode=mode, commit="stream", fence="f00d")
        events = [event for part in parts for event in turn.feed(part)]
        outcome = turn.finish("stop")
        events += turn.tail
        left = "".join(event.text for event in events if isinstance(event, TextDelta))
        calls = [event.call for event in events if isinstance(event, CallReady)]
        if isinstance(outcome, Answer):
            assert outcome.text == left
        if isinstance(outcome, Calls):
            assert list(outcome.calls) == calls
        endings.append((type(outcome), calls))
    assert endings[0] == endings[1]


@pytest.mark.parametrize("mode", ["structured", "native"])
@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.sampled_from([*REPLIES, '{"thought": "', '"calls": [', "]}", '"answer": "', "\\", '"'])
        | st.text(max_size=30),
        max_size=6,
    ),
    st.text(max_size=20),
)
def test_no_reply_raises(mode, parts, arguments):
    for commit in ("finish", "stream"):
        turn = Turn([Message.user("厦门天气")], TOOLS, mode=mode, commit=commit)
        turn.feed(Text("".join(parts)))
        turn.feed(NativeCall(0, "a", "get_weather", arguments))
        turn.finish("length")


def test_without_tools_every_mode_sends_plain_messages():
    talk = [Message.user("厦门天气"), Message.assistant("晴。"), Message.user("谢谢")]
    for mode in MODES:
        request = Turn(talk, [], mode=mode).request()
        assert (request.response_format, request.tools) == (None, None)
        assert [m.content for m in request.messages] == ["厦门天气", "晴。", "谢谢"]


def test_the_same_conversation_reads_in_each_mode_own_form():
    call = Turn([Message.user("厦门天气")], TOOLS, fence="f00d")
    call.feed(Text(render_block("get_weather", {"city": "厦门"})))
    outcome = call.finish("stop")
    assert isinstance(outcome, Calls)
    talk = [
        Message.user("厦门天气"),
        *call.transcript,
        Message.tool(ToolResult(outcome.calls[0].id, "get_weather", Status.OK, "晴")),
    ]
    structured = Turn(talk, TOOLS, mode="structured", fence="f00d").request()
    assert structured.messages[2].content == (
        '{"thought": "", "calls": [{"tool": "get_weather", "parameters": {"city": "厦门"}}], '
        '"answer": ""}'
    )
    assert structured.messages[3].content.startswith("结果 #1 get_weather [status=ok]")
    native = Turn(talk, TOOLS, mode="native", fence="f00d").request()
    assert native.messages[2].tool_calls[0]["function"] == {
        "name": "get_weather",
        "arguments": '{"city": "厦门"}',
    }
    assert native.messages[3] == type(native.messages[3])(
        Role.TOOL, "晴", tool_call_id=outcome.calls[0].id
    )
