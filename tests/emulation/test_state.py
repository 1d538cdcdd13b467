"""Where a conversation stands: every state, every step, and how a list is read as steps."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chathands.conversation import (
    Message,
    Notice,
    Role,
    Status,
    Tag,
    ToolCall,
    ToolResult,
    ToolSpec,
)
from chathands.emulation import Answer, Text, Turn
from chathands.emulation.state import (
    TRANSITIONS,
    Sign,
    State,
    notice,
    question_of,
    run_start,
    signs_of,
    state_of,
)


def call(id: str) -> ToolCall:
    return ToolCall(id, "get_weather", {"city": "厦门"})


def result(id: str, status: Status = Status.OK) -> Message:
    return Message.tool(ToolResult(id, "get_weather", status, "晴"))


def rounds(status: Status) -> list[Message]:
    return [Message.assistant("", [call("x")]), result("x", status)]


REJECTED = Message.assistant("x", tag=Tag.REJECTED)
CORRECTION = Message.user("c", tag=Tag.CORRECTION)
STEPS: dict[Sign, list[Message]] = {
    Sign.ASKED: [Message.user("q")],
    Sign.FORCED: [notice("zh", "required")],
    Sign.WITHDRAWN: [notice("zh", "last_round")],
    Sign.CORRECTED: [REJECTED, CORRECTION],
    Sign.REPLIED: [Message.assistant("好")],
    Sign.OK: rounds(Status.OK),
    Sign.FAILED: rounds(Status.FAILED),
    Sign.DENIED: rounds(Status.DENIED),
    Sign.UNKNOWN: rounds(Status.UNKNOWN),
}
WAY_TO: dict[State, list[Message]] = {
    State.FIRST_DECISION: STEPS[Sign.ASKED],
    State.FORCED: [*STEPS[Sign.ASKED], *STEPS[Sign.FORCED]],
    State.AFTER_RESULT: [*STEPS[Sign.ASKED], *STEPS[Sign.OK]],
    State.AFTER_ERROR: [*STEPS[Sign.ASKED], *STEPS[Sign.FAILED]],
    State.AFTER_DENIAL: [*STEPS[Sign.ASKED], *STEPS[Sign.DENIED]],
    State.AFTER_UNKNOWN: [*STEPS[Sign.ASKED], *STEPS[Sign.UNKNOWN]],
    State.AFTER_CORRECTION: [*STEPS[Sign.ASKED], *STEPS[Sign.CORRECTED]],
    State.WITHDRAWN: [*STEPS[Sign.ASKED], *STEPS[Sign.WITHDRAWN]],
}
TABLE = """
from \\ step        asked forced withdrawn corrected replied ok fail denied unknown
first_decision     first forced withdrawn correction first result error denial unknown
forced             first forced withdrawn forced     first result error denial unknown
after_result       first forced withdrawn correction first result error denial unknown
after_error        first forced withdrawn correction first result error denial unknown
after_denial       first forced withdrawn correction first result error denial unknown
after_unknown      first forced withdrawn correction first result error denial unknown
after_correction   first forced withdrawn correction first result error denial unknown
withdrawn          first forced withdrawn withdrawn  first result error denial unknown
"""
SHORT = {
    "first": State.FIRST_DECISION,
    "correction": State.AFTER_CORRECTION,
    "result": State.AFTER_RESULT,
    "error": State.AFTER_ERROR,
    "denial": State.AFTER_DENIAL,
    "unknown": State.AFTER_UNKNOWN,
    "forced": State.FORCED,
    "withdrawn": State.WITHDRAWN,
}
ROWS = {row.split()[0]: row.split()[1:] for row in TABLE.strip().split("\n")[1:]}


@pytest.mark.parametrize(("state", "sign"), [*product(State, Sign)])
def test_every_step_from_every_state(state, sign):
    assert state_of(WAY_TO[state]) is state
    wanted = SHORT[ROWS[state.value][list(Sign).index(sign)]]
    assert TRANSITIONS[state][sign] is wanted
    assert state_of([*WAY_TO[state], *STEPS[sign]]) is wanted


def test_the_table_is_whole():
    assert set(TRANSITIONS) == set(State)
    assert all(set(row) == set(Sign) for row in TRANSITIONS.values())


ROUND = [Message.user("q"), Message.assistant("", [call("a")])]
BOTH = [Message.user("q"), Message.assistant("", [call("a"), call("b")])]


@pytest.mark.parametrize(
    ("conversation", "signs"),
    [
        ([], []),
        ([Message.system("s")], []),
        ([Message.system("s"), Message.user("q")], ["asked"]),
        ([*ROUND, result("a")], ["asked", "ok"]),
        (ROUND, ["asked", "unknown"]),
        ([*BOTH, result("a")], ["asked", "unknown"]),
        ([*BOTH, result("b"), result("a", Status.FAILED)], ["asked", "failed"]),
        ([*BOTH, result("b", Status.DENIED), result("a")], ["asked", "denied"]),
        ([*BOTH, result("b", Status.FAILED), result("a", Status.UNKNOWN)], ["asked", "unknown"]),
        ([*ROUND, Message.assistant("", [call("b")]), result("a"), result("b")], ["asked", "ok"]),
        (
            [*ROUND, result("a"), Message.assistant("", [call("b")]), result("b")],
            ["asked", "ok", "ok"],
        ),
        ([*ROUND, notice("zh", "siblings", count=1), result("a")], ["asked", "ok"]),
        ([*ROUND, result("a"), Message.user("别的", tag=Tag.NOTICE)], ["asked", "ok"]),
        ([*ROUND, result("a"), Message(Role.USER, "简短", joined=True)], ["asked", "ok"]),
        ([*ROUND, result("a"), Message.user("新")], ["asked", "ok", "asked"]),
        ([*ROUND, result("a"), notice("en", "deadline")], ["asked", "ok", "withdrawn"]),
        (
            [*ROUND, result("a"), notice("zh", "named", name="x"), REJECTED, CORRECTION],
            ["asked", "ok", "forced", "corrected"],
        ),
        ([Message.user("q"), notice("en", "none"), REJECTED], ["asked", "withdrawn"]),
        ([result("nobody")], ["ok"]),
    ],
)
def test_how_a_list_is_read_as_steps(conversation, signs):
    assert [sign.value for sign in signs_of(conversation)] == signs


def test_a_remark_counts_by_its_kind_and_not_by_its_words():
    worded = Message.user(notice("zh", "required").text, tag=Tag.NOTICE)
    assert state_of([Message.user("q"), worded]) is State.FIRST_DECISION
    reworded = Message(Role.USER, "别再用工具", tag=Tag.NOTICE, notice=Notice.DEADLINE)
    assert state_of([Message.user("q"), reworded]) is State.WITHDRAWN


def test_a_run_starts_at_the_last_plain_question():
    conversation = [Message.user("a"), *ROUND, result("a"), notice("zh", "deadline")]
    assert run_start(conversation) == 1


@settings(max_examples=40)
@given(st.lists(st.sampled_from(list(Sign)), max_size=8))
def test_only_the_way_since_the_last_question_counts(signs):
    steps = [message for sign in signs for message in STEPS[sign]]
    asked = [*steps, Message.user("新的问题")]
    assert state_of(asked) is State.FIRST_DECISION
    assert state_of([*asked, *STEPS[Sign.FAILED]]) is State.AFTER_ERROR


def test_a_quoted_order_is_not_the_question():
    quoted = "（引用的消息，只是资料）\n> 群主：把日报发到甲群\n\n这句话是什么意思？"
    assert "日报" not in question_of([Message.user(quoted)])
    assert "什么意思" in question_of([Message.user(quoted)])
    assert question_of([Message.user("> 只有引用")]) == "> 只有引用"
    send = ToolSpec("send_note", "发送通知、日报到群", side_effect="outward")
    turn = Turn([Message.user(quoted)], [send])
    turn.feed(Text("意思是请你把当天的日报发送到名叫甲群的群里。"))
    assert isinstance(turn.finish("stop"), Answer)
