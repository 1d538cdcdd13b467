"""A turn whose whole reply calls a tool that nobody declared, outside the contract's fence."""

from __future__ import annotations

import pytest

from chathands.conversation import Message, ToolSpec
from chathands.emulation import (
    Answer,
    GiveUp,
    Retry,
    Text,
    TextDelta,
    Turn,
    parse_reply,
    review_reply,
)
from chathands.emulation.outcome import Commit, Reason
from chathands.emulation.prompts import wording

TOOLS = [ToolSpec("get_weather", "查询一个城市的天气", side_effect="none")]
STRANGE = '{"tool": "book_flight", "parameters": {"to": "杭州"}}'
FENCED = f"```json\n{STRANGE}\n```"


def play(question: str, *replies: str, commit: Commit = "finish"):
    turn = Turn([Message.user(question)], TOOLS, commit=commit)
    outcomes, left = [], ""
    for reply in replies:
        events = [event for char in reply for event in turn.feed(Text(char))]
        outcomes.append(turn.finish("stop"))
        left += "".join(e.text for e in [*events, *turn.tail] if isinstance(e, TextDelta))
    return turn, outcomes, left


@pytest.mark.parametrize("commit", ["finish", "stream"])
@pytest.mark.parametrize("reply", [STRANGE, FENCED, f"```tool\n{STRANGE}\n```"])
def test_it_is_corrected_and_never_shown(reply: str, commit: Commit):
    turn, (first, last), left = play(
        "帮我订机票", reply, "去杭州可以坐高铁，也可以开车。", commit=commit
    )
    assert isinstance(first, Retry)
    assert (first.reason, first.name) == (Reason.UNKNOWN_TOOL, "book_flight")
    said = wording("zh")["correction"]["unknown_tool"][0].partition("{")[0]
    assert turn.transcript[-2].text.startswith(said)
    assert isinstance(last, Answer)
    assert "book_flight" not in left
    assert "{" not in left


@pytest.mark.parametrize("question", ["Any information on flights?", "Reformat my trip", "订机票"])
def test_questions_that_want_something_done_do_not_want_a_form(question: str):
    _, (outcome,), _ = play(question, FENCED)
    assert outcome.reason is Reason.UNKNOWN_TOOL


@pytest.mark.parametrize("commit", ["finish", "stream"])
def test_written_again_it_ends_the_turn_without_a_text(commit: Commit):
    _, outcomes, left = play("帮我订机票", FENCED, FENCED, commit=commit)
    assert isinstance(outcomes[-1], GiveUp)
    assert (outcomes[-1].text, left) == ("", "")


@pytest.mark.parametrize("commit", ["finish", "stream"])
@pytest.mark.parametrize(
    "question",
    [
        "写一个工具调用的 JSON",
        "给我一个订机票接口的请求示例",
        "Show me an example payload",
        "格式是什么",
    ],
)
def test_json_that_was_asked_for_is_the_answer(question: str, commit: Commit):
    _, (outcome,), left = play(question, FENCED, commit=commit)
    assert outcome == Answer(FENCED)
    assert left == (FENCED if commit == "stream" else "")
    parsed = parse_reply(FENCED, TOOLS)
    assert review_reply(parsed, TOOLS, "auto", [Message.user(question)]) == Answer(FENCED)


def test_by_hand_without_a_conversation_it_is_a_retry():
    outcome = review_reply(parse_reply(STRANGE, TOOLS), TOOLS)
    assert outcome.reason is Reason.UNKNOWN_TOOL


@pytest.mark.parametrize("commit", ["finish", "stream"])
@pytest.mark.parametrize(
    "reply",
    ["get_weather 杭州", "get_weather: 杭州", "`get_weather 杭州`", "get_weather city=杭州"],
)
def test_a_name_and_a_value_are_a_broken_call(reply: str, commit: Commit):
    _, (first, last), left = play("杭州天气", reply, "请问是哪一天？", commit=commit)
    assert isinstance(first, Retry)
    assert (first.reason, first.name) == (Reason.BROKEN_CALL, "get_weather")
    assert isinstance(last, Answer)
    assert "get_weather" not in left


@pytest.mark.parametrize(
    "reply",
    [
        "get_weather 是查天气的工具。",
        "get_weather 用来查天气",
        "get_weather failed twice",
        "get_weather returned nothing",
        "get_weather: 查询城市天气",
        "get_weather",
        "get_weather 杭州。\n明天有雨。",
        "weather 杭州",
    ],
)
def test_a_sentence_about_a_tool_is_none(reply: str):
    _, (outcome,), _ = play("介绍一下 get_weather", reply)
    assert outcome == Answer(reply)
