"""The commit rule `stream`: what of a reply leaves before it is whole."""

from __future__ import annotations

from chathands.conversation import Message, Tag
from chathands.emulation import Answer, CallReady, Calls, Reason, Retry, Text, TextDelta, Turn
from tests.emulation.turns import (
    BROKEN,
    CLIENT,
    GOOD,
    QUESTION,
    TOOLS,
    UNKNOWN,
    play,
    reply,
    results,
)


def streamed(turn: Turn, *pieces: str):
    events = []
    for piece in pieces:
        events += turn.feed(Text(piece))
    return events


def chars(text: str):
    return list(text)


def said(events) -> str:
    return "".join(event.text for event in events if isinstance(event, TextDelta))


def test_under_finish_nothing_leaves_before_the_end():
    turn = Turn(QUESTION, TOOLS)
    assert streamed(turn, *chars(f"厦门很好。今天晴。\n{GOOD}")) == []


def test_under_stream_text_leaves_after_the_first_sentence():
    turn = Turn([Message.user("介绍厦门")], TOOLS, commit="stream")
    assert streamed(turn, *chars("厦门是福建省的一座城市")) == []
    assert said(streamed(turn, "。")) == "厦门是福建省的一座城市。"
    assert said(streamed(turn, "有海", "。")) == "有海。"
    assert turn.finish("stop") == Answer("厦门是福建省的一座城市。有海。")
    assert turn.tail == ()


def test_under_stream_a_nod_is_no_first_sentence():
    turn = Turn(QUESTION, TOOLS, commit="stream")
    assert streamed(turn, *chars("好的。")) == []
    assert streamed(turn, *chars("我来查一下。")) == []
    assert turn.finish("stop").reason is Reason.MISSED_CALL


def test_under_stream_64_characters_are_held_at_most():
    turn = Turn([Message.user("讲讲")], TOOLS, commit="stream")
    assert streamed(turn, "山" * 63) == []
    assert said(streamed(turn, "山" * 5)) == "山" * 68


def test_under_stream_a_refusal_is_held_and_retried_and_the_next_reply_may_speak():
    turn = Turn(QUESTION, TOOLS, commit="stream")
    assert streamed(turn, *chars("抱歉，我没有可用的工具来查询天气。请到网站上看。")) == []
    assert turn.finish("stop").reason is Reason.REFUSAL
    events = streamed(turn, *chars(GOOD + "\n"))
    assert [event.call.name for event in events if isinstance(event, CallReady)] == ["get_weather"]
    assert isinstance(turn.finish("stop"), Calls)


def test_under_stream_a_call_leaves_when_it_is_whole_with_the_text_before_it():
    turn = Turn(QUESTION, TOOLS, commit="stream")
    events = streamed(turn, *chars("先看看\n" + GOOD), "\n")
    assert said(events).strip() == "先看看"
    assert isinstance(events[-1], CallReady)
    outcome = turn.finish("stop")
    assert outcome.calls == (events[-1].call,)
    assert turn.tail == ()


def test_after_a_call_has_left_nothing_is_retried():
    turn = Turn(QUESTION, TOOLS, commit="stream")
    streamed(turn, GOOD + "\n", UNKNOWN)
    outcome = turn.finish("stop")
    assert [call.name for call in outcome.calls] == ["get_weather"]


def test_after_text_has_left_only_calls_of_the_next_reply_leave():
    turn = Turn(QUESTION, TOOLS, commit="stream")
    first = streamed(turn, "厦门是福建的一座海滨城市。", BROKEN)
    assert said(first) == "厦门是福建的一座海滨城市。"
    assert turn.finish("stop").reason is Reason.BROKEN_CALL
    events = streamed(turn, "这一次对了。\n", GOOD, "\n")
    assert said(events) == ""
    outcome = turn.finish("stop")
    assert isinstance(outcome, Calls)
    assert outcome.text == "厦门是福建的一座海滨城市。"
    assert [m.tag for m in turn.transcript] == [Tag.REJECTED, Tag.CORRECTION, Tag.PLAIN]


def test_after_text_has_left_other_reasons_do_not_retry():
    turn = Turn(QUESTION, TOOLS, commit="stream")
    streamed(turn, "厦门是福建的一座海滨城市。", UNKNOWN)
    assert turn.finish("stop") == Answer("厦门是福建的一座海滨城市。")


def test_text_of_a_muted_reply_is_dropped():
    turn = Turn(QUESTION, TOOLS, commit="stream")
    streamed(turn, "厦门是福建的一座海滨城市。", BROKEN)
    turn.finish("stop")
    assert streamed(turn, "别的城市也很好。") == []
    assert turn.finish("stop") == Answer("厦门是福建的一座海滨城市。")


def test_under_stream_a_forced_choice_holds_all_text():
    turn = Turn(QUESTION, TOOLS, choice="required", commit="stream")
    assert streamed(turn, "厦门是福建的一座海滨城市。", "有海。") == []
    assert turn.finish("stop").reason is Reason.MISSED_CALL


def test_a_lone_end_of_thinking_in_the_opening_takes_back_what_was_held():
    turn = Turn([Message.user("你好")], TOOLS, commit="stream")
    assert streamed(turn, *chars("他在打招呼</think>你好呀，")) == []
    assert turn.finish("stop") == Answer("你好呀，")
    assert turn.tail == (TextDelta("你好呀，"),)


def test_the_final_answer_may_sit_in_an_action_fence_once_results_are_in():
    first, (outcome,) = play(GOOD)
    conversation = results([*QUESTION, *first.transcript], outcome.calls)
    fenced = "```json action\n厦门晴。\n```"
    assert reply(Turn(conversation, TOOLS), fenced) == Answer("厦门晴。")
    assert reply(Turn(QUESTION, TOOLS), fenced).reason is Reason.BROKEN_CALL


def test_what_is_held_at_the_end_is_in_the_tail():
    turn = Turn([Message.user("你好")], TOOLS, commit="stream")
    assert streamed(turn, "你好") == []
    assert turn.finish("stop") == Answer("你好")
    assert turn.tail == (TextDelta("你好"),)
    assert turn.sent == "你好"


def test_a_recovered_call_of_a_client_tool_is_asked_about_while_nothing_has_left():
    guessed = '```json action\n{"tool": "client_tool", "parameters": {"title": "a "b" c"}}\n```'
    turn = Turn(QUESTION, [CLIENT], commit="stream")
    assert streamed(turn, guessed, "\n") == []
    assert turn.finish("stop") == Retry(Reason.UNCONFIRMED, "", "client_tool")
    assert streamed(turn, guessed, "\n") == []
    outcome = turn.finish("stop")
    assert isinstance(outcome, Calls)
    assert turn.tail == (CallReady(outcome.calls[0]),)


def test_under_stream_optional_reviews_are_off_by_default():
    turn = Turn(QUESTION, TOOLS, commit="stream")
    streamed(turn, "厦门今天 25℃。")
    assert turn.finish("stop") == Answer("厦门今天 25℃。")
