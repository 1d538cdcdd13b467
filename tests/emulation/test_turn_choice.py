"""Forced and withdrawn tools, and tools that are not given."""

from __future__ import annotations

import pytest

from chathands.conversation import Message, Role, Tag, ToolCall, ToolChoice
from chathands.emulation import Answer, GiveUp, Reason, Retry, State, Turn, render_block
from tests.emulation.turns import GOOD, QUESTION, TOOLS, play, reply, results

# --- choice


def test_a_forced_choice_is_the_last_message():
    turn = Turn(QUESTION, TOOLS, choice="get_weather")
    assert turn.transcript[0].tag is Tag.NOTICE
    last = turn.request().messages[-1]
    assert last.role is Role.USER
    assert last.content.endswith("这一次必须用 get_weather：只写它的动作块。")
    assert turn.state is State.FORCED


def test_text_does_not_meet_a_forced_choice():
    turn = Turn(QUESTION, TOOLS, choice="required")
    assert reply(turn, "厦门是个好地方。").reason is Reason.MISSED_CALL
    assert reply(turn, "厦门在福建省。").reason is Reason.MISSED_CALL
    assert isinstance(reply(turn, "厦门有海。"), GiveUp)


def test_another_tool_is_the_wrong_tool():
    turn, outcomes = play(GOOD, render_block("send_note", {"title": "x"}), choice="send_note")
    assert outcomes[0] == Retry(Reason.WRONG_TOOL, "", "get_weather")
    assert "send_note" in turn.transcript[2].text
    assert outcomes[1].calls[0].name == "send_note"


def test_the_forced_one_of_several_runs_alone():
    _, (outcome,) = play(
        GOOD + "\n" + render_block("send_note", {"title": "x"}), choice="send_note"
    )
    assert [call.name for call in outcome.calls] == ["send_note"]
    assert [broken.reason for broken in outcome.broken] == [Reason.WRONG_TOOL]


@pytest.mark.parametrize("choice", ["required", "get_weather"])
def test_a_forced_choice_is_relaxed_after_its_result(choice):
    turn, (outcome,) = play(GOOD, choice=choice)
    conversation = results([*QUESTION, *turn.transcript], outcome.calls)
    following = Turn(conversation, TOOLS, choice=choice, fence="f00d")
    assert following.transcript == ()
    assert reply(following, "厦门晴。") == Answer("厦门晴。")


def test_choice_none_takes_text_and_drops_calls():
    _, outcomes = play(
        f"厦门在福建。\n{GOOD}", choice="none", conversation=[Message.user("厦门在哪")]
    )
    assert outcomes == [Answer("厦门在福建。")]
    turn, outcomes = play(GOOD, "厦门在福建。", choice="none")
    assert outcomes == [Retry(Reason.WRONG_TOOL, "", "get_weather"), Answer("厦门在福建。")]
    assert "不能用工具" in turn.transcript[2].text


@pytest.mark.parametrize("withdraw", ["last_round", "deadline"])
def test_withdrawn_tools_leave_an_answer(withdraw):
    first, (outcome,) = play(GOOD)
    conversation = results([*QUESTION, *first.transcript], outcome.calls)
    turn = Turn(conversation, TOOLS, withdraw=withdraw, fence="f00d")
    assert turn.state is State.WITHDRAWN
    assert "不能再用工具" in turn.request().messages[-1].content
    assert reply(turn, "我再查一下明天的。").reason is Reason.MISSED_CALL
    assert reply(turn, "厦门晴。") == Answer("厦门晴。")


def test_an_inability_is_a_fair_answer_once_tools_are_gone():
    turn = Turn(QUESTION, TOOLS, withdraw="deadline")
    text = "时间不够，我没能查询到厦门的天气。"
    assert reply(turn, text) == Answer(text)


def test_a_chosen_tool_must_be_declared():
    with pytest.raises(ValueError, match="'nope'"):
        Turn(QUESTION, TOOLS, choice=ToolChoice("named", "nope"))


# --- tools that are not given


def test_no_tools_and_no_history_leave_the_request_untouched():
    turn = Turn([Message.system("s"), Message.user("我没有工具怎么办")], [], choice="required")
    assert [m.content for m in turn.request().messages] == ["s", "我没有工具怎么办"]
    assert reply(turn, "抱歉，我没有工具。") == Answer("抱歉，我没有工具。")


def test_without_a_tool_list_the_tools_of_the_history_go_on_working():
    call = ToolCall("a", "look", {"where": "厦门"})
    conversation = results([Message.user("看看厦门"), Message.assistant("", [call])], [call])
    turn = Turn([*conversation, Message.assistant("晴"), Message.user("看看武汉")], None)
    outcome = reply(turn, render_block("look", {"where": "武汉"}))
    assert outcome.calls[0].arguments == {"where": "武汉"}
    assert outcome.calls[0].confidence == "strict"


def test_an_empty_tool_list_after_tool_history_means_none():
    call = ToolCall("a", "look", {"where": "厦门"})
    conversation = results([Message.user("看看厦门"), Message.assistant("", [call])], [call])
    assert isinstance(reply(Turn(conversation, []), "厦门晴。"), Answer)
