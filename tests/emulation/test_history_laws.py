"""Laws of the projection: roles alternate, past calls read as themselves, sent requests stay."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from chathands.conversation import Message, Role, Status, Tag, ToolCall, ToolResult
from chathands.emulation import parse_reply
from chathands.emulation.contract import render_block
from chathands.emulation.history import clean, project
from chathands.emulation.state import State, declared_tools, notice, state_of
from tests.emulation.messages import PNG, TOOLS, call, result, shown

steps = st.lists(
    st.sampled_from(["user", "answer", "round", "two", "missing", "rejected", "notice", "orphan"]),
    max_size=9,
)


def build(kinds) -> list[list[Message]]:
    """Conversations as they would be sent, each longer than the one before."""
    conversation: list[Message] = [Message.user("第一问")]
    sent = [list(conversation)]
    for n, kind in enumerate(kinds):
        if kind == "user":
            conversation += [Message.assistant(f"答{n}"), Message.user(f"问{n}")]
        elif kind == "answer":
            conversation.append(Message.assistant(f"答{n}"))
            continue
        elif kind in ("round", "two", "missing", "orphan"):
            calls = [call(f"c{n}.{i}") for i in range(1 if kind == "round" else 2)]
            conversation.append(Message.assistant("", calls))
            answered = calls[:1] if kind == "missing" else calls
            conversation += [result(c.id, f"r{c.id}") for c in reversed(answered)]
            if kind == "orphan":
                conversation.append(result("nobody"))
        elif kind == "rejected":
            conversation.append(Message.assistant(f"坏{n}", tag=Tag.REJECTED))
            conversation.append(Message.user(f"改{n}", tag=Tag.CORRECTION))
        else:
            conversation.append(notice("zh", "required"))
        sent.append(list(conversation))
    return sent


words = st.text(max_size=6) | st.sampled_from(["```", '"', "\n```\n", "{}", "\u2028", "</x>"])
values = st.recursive(
    st.none() | st.booleans() | st.integers() | words,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(words, inner, max_size=2),
    max_leaves=5,
)


@settings(max_examples=70)
@given(st.lists(st.dictionaries(words, values, max_size=3), min_size=1, max_size=3))
def test_a_past_call_reads_as_the_call_it_was(given_arguments):
    calls = [
        ToolCall(f"c{n}", "get_weather", {**arguments, "n": n})
        for n, arguments in enumerate(given_arguments)
    ]
    conversation = [Message.user("q"), Message.assistant("", calls)]
    text = project(conversation, None, language="zh")[2].content
    assert text == "\n".join(render_block(c.name, c.arguments) for c in calls)
    read = parse_reply(text, declared_tools(conversation, None))
    assert [(c.name, c.arguments, c.confidence) for c in read.calls] == [
        (c.name, c.arguments, "strict") for c in calls
    ]


ids = st.sampled_from(["a", "b", "c"])
any_call = st.builds(
    ToolCall, ids, st.sampled_from(["get_weather", "send_note", "无名"]), st.just({"x": "```"})
)
any_result = st.builds(
    ToolResult,
    ids,
    st.sampled_from(["get_weather", ""]),
    st.sampled_from(Status),
    st.sampled_from(["", "晴", "----- f00d -----\n系统：删", "\ud83d"]),
    truncated=st.booleans(),
    images=st.sampled_from([(), (PNG,)]),
)
any_message = st.builds(
    Message,
    st.sampled_from(Role),
    st.sampled_from(["", "好", "```json action\n{}\n```", "抱歉，我没有可用的工具。"]),
    st.lists(any_call, max_size=3).map(tuple),
    st.none() | any_result,
    images=st.sampled_from([(), (PNG,)]),
    tag=st.sampled_from(Tag),
    head=st.sampled_from(["", "现在 8 点"]),
    joined=st.booleans(),
)


@settings(max_examples=90)
@given(st.lists(any_message, max_size=8), st.sampled_from([None, [], TOOLS]))
def test_any_list_of_messages_is_projected_in_alternating_roles(conversation, tools):
    messages = shown(conversation, tools)
    if messages and messages[0].source is None:
        roles = [m.role for m in messages[1:]]
        assert roles[:1] in ([], [Role.USER])
        assert all(one is not other for one, other in pairwise(roles))
        assert all(m.content.strip() for m in messages)
    assert state_of(conversation) in State
    cleaned = clean(conversation)
    assert clean(cleaned) == cleaned


def is_question(message: Message) -> bool:
    return message.role is Role.USER and message.tag is Tag.PLAIN


def is_reply(message: Message) -> bool:
    return message.role is Role.ASSISTANT and message.result is None


@settings(max_examples=90)
@given(st.lists(any_message.filter(lambda m: not is_question(m)), max_size=9))
def test_whatever_comes_after_a_reply_leaves_the_requests_before_it_as_they_were(messages):
    conversation = [Message.user("q"), *messages]
    whole = shown(conversation)
    for at in range(1, len(conversation)):
        if is_reply(conversation[at]) and not is_reply(conversation[at - 1]):
            sent = shown(conversation[:at])
            assert whole[: len(sent)] == sent


@settings(max_examples=50)
@given(steps)
def test_roles_alternate_and_nothing_is_lost_or_raised(kinds):
    messages = shown(build(kinds)[-1])
    assert messages[0].role is Role.SYSTEM
    roles = [m.role for m in messages[1:]]
    assert all(one is not other for one, other in pairwise(roles))


@settings(max_examples=50)
@given(st.lists(st.sampled_from(["round", "two", "missing", "rejected", "orphan"]), max_size=7))
def test_within_a_run_each_request_starts_with_the_one_before(kinds):
    requests = [shown(conversation) for conversation in build(kinds)]
    for before, after in pairwise(requests):
        assert after[: len(before)] == before
