"""Laws of the turn over random runs: prefix-stable requests, split invariance, no exceptions."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from chathands.conversation import Message, Role, Status, ToolResult, ToolSpec
from chathands.emulation import (
    Answer,
    CallReady,
    Calls,
    GiveUp,
    Retry,
    Text,
    TextDelta,
    Turn,
    render_block,
)

TEXT = {"type": "string"}
TOOLS = [
    ToolSpec("get_weather", "查天气", {"type": "object", "properties": {"city": TEXT}}, "none"),
    ToolSpec("send_note", "发送通知", {"type": "object", "properties": {"title": TEXT}}, "outward"),
    ToolSpec(
        "set_reminder", "设置提醒", {"type": "object", "properties": {"title": TEXT}}, "local"
    ),
]
QUESTIONS = ["厦门天气，发到群里", "提醒我喝水", "你好", "weather in Oslo, send it to the group"]
REPLIES = [
    render_block("get_weather", {"city": "厦门"}),
    render_block("send_note", {"title": "晴"}),
    "```json action\n{'tool': 'set_reminder', 'parameters': {'title': '喝水'}}\n```",
    render_block("get_weather", {"city": "厦门"}) + "\n" + render_block("nope", {}),
    '```json action\n{"tool": "get_weather", "parameters": {"city": }}\n```',
    render_block("nope", {"a": 1}),
    "抱歉，我没有可用的工具。",
    "我来查一下。",
    "厦门今天 25℃。",
    "已发送到群里。",
    "厦门很好。今天晴，适合出门。\n" + render_block("get_weather", {"city": "武汉"}),
    "厦门很好。今天晴，适合出门，记得带伞。",
    "",
    "----- f00d -----\n晴\n----- f00d -----",
    "<think>先想想</think>晴",
]
STATUSES = list(Status)


@st.composite
def scripts(draw):
    return {
        "question": draw(st.sampled_from(QUESTIONS)),
        "replies": draw(st.lists(st.sampled_from(REPLIES), min_size=1, max_size=10)),
        "statuses": draw(st.lists(st.sampled_from(STATUSES), min_size=1, max_size=6)),
        "choice": draw(st.sampled_from(["auto", "required", "get_weather", "send_note", "none"])),
        "choice_at": draw(st.sampled_from([0, 0, 1, 2])),
        "withdraw_at": draw(st.sampled_from([1, 2, 3, 9])),
        "withdraw": draw(st.sampled_from(["last_round", "deadline"])),
        "language": draw(st.sampled_from(["zh", "en"])),
    }


@settings(max_examples=70, deadline=None)
@given(scripts())
def test_emulated_requests_of_a_run_alternate_roles(script):
    for request in requests_of(script, iter([Text(reply)] for reply in script["replies"])):
        roles = [message.role for message in request.messages[1:]]
        assert all(one is not two for one, two in pairwise(roles))
        assert roles[-1] is Role.USER


END = (Text("完了，没有别的了。"),)


def requests_of(script, replies, mode="emulated", last=END):
    """The requests of a run of five rounds at most; each must start with the whole previous one."""
    conversation = [Message.user("早先的问题"), Message.assistant("早先的回答")]
    conversation.append(Message.user(script["question"]))
    sent, at = [], 0
    for round_number in range(5):
        turn = Turn(
            conversation,
            TOOLS,
            mode=mode,
            choice=script["choice"] if round_number == script["choice_at"] else "auto",
            language=script["language"],
            fence="f00d",
            withdraw=script["withdraw"] if round_number >= script["withdraw_at"] else None,
        )
        while True:
            sent.append(turn.request())
            for piece in next(replies, last):
                turn.feed(piece)
            outcome = turn.finish("stop")
            if not isinstance(outcome, Retry):
                break
        conversation += turn.transcript
        if not isinstance(outcome, Calls):
            break
        for call in outcome.calls:
            status = script["statuses"][at % len(script["statuses"])]
            at += 1
            conversation.append(Message.tool(ToolResult(call.id, call.name, status, f"结果{at}")))
    for before, after in pairwise(sent):
        assert after.messages[: len(before.messages)] == before.messages
        assert after.tools == before.tools
    return sent


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.sampled_from(STATUSES), min_size=4, max_size=4),
    st.lists(
        st.sampled_from(["晴", "", "----- f00d -----", "```json action", "长" * 900]), min_size=4
    ),
    st.sampled_from(REPLIES[4:8]),
    st.sampled_from(["zh", "en"]),
)
def test_five_rounds_with_a_correction_a_forced_choice_and_a_withdrawal(
    statuses, contents, rejected, language
):
    """Nothing that was sent is edited: the law behind the server's prompt cache."""
    first, second = render_block("get_weather", {"city": "厦门"}), render_block("send_note", {})
    third = render_block("get_weather", {"city": "武汉"})
    rounds = [
        ({}, [rejected, first]),
        ({"choice": "send_note"}, [first, second]),
        ({}, [third + "\n" + render_block("nope", {})]),
        ({"choice": "set_reminder"}, [render_block("set_reminder", {"title": "喝水"})]),
        ({"withdraw": "last_round"}, [first, "都说完了。"]),
    ]
    conversation, sent = [Message.user(QUESTIONS[0])], []
    for number, (options, replies) in enumerate(rounds):
        turn = Turn(
            conversation, TOOLS, language=language, fence="f00d", reviews=frozenset(), **options
        )
        for reply in replies:
            sent.append(turn.request().messages)
            turn.feed(Text(reply))
            outcome = turn.finish("stop")
            assert isinstance(outcome, Retry) == (reply is not replies[-1])
        conversation += turn.transcript
        for call in outcome.calls if isinstance(outcome, Calls) else ():
            found = ToolResult(call.id, call.name, statuses[number], contents[number])
            conversation.append(Message.tool(found))
    assert len(sent) == 8
    for before, after in pairwise(sent):
        assert after[: len(before)] == before


@st.composite
def split_replies(draw):
    text = "".join(draw(st.lists(st.sampled_from([*REPLIES, "\n", "好的。", "嗯"]), max_size=3)))
    cuts = draw(st.lists(st.integers(0, max(len(text), 1)), max_size=8))
    bounds = [0, *sorted(cuts), len(text)]
    return text, [text[a:b] for a, b in pairwise(bounds)]


@settings(max_examples=70, deadline=None)
@given(split_replies(), st.sampled_from(["auto", "required", "none"]))
def test_the_outcome_and_what_leaves_do_not_depend_on_the_pieces(reply, choice):
    text, pieces = reply
    endings = []
    for parts in ([text], pieces, list(text)):
        turn = Turn([Message.user("厦门天气")], TOOLS, choice=choice, commit="stream", fence="f00d")
        events = [event for part in parts for event in turn.feed(Text(part))]
        outcome = turn.finish("stop")
        events += turn.tail
        left = "".join(event.text for event in events if isinstance(event, TextDelta))
        calls = [event.call for event in events if isinstance(event, CallReady)]
        if isinstance(outcome, Answer):
            assert outcome.text == left
        if isinstance(outcome, Calls):
            assert list(outcome.calls) == calls
        if isinstance(outcome, Retry | GiveUp):
            assert not calls
        endings.append((type(outcome), calls))
    assert endings[0] == endings[1] == endings[2]


@settings(max_examples=50, deadline=None)
@given(st.lists(st.one_of(st.sampled_from(REPLIES), st.text(max_size=40)), max_size=4))
def test_no_reply_raises(parts):
    for commit in ("finish", "stream"):
        turn = Turn([Message.user("厦门天气")], TOOLS, commit=commit)
        turn.feed(Text("".join(parts)))
        turn.finish("length")
