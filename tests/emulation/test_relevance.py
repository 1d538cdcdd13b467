"""A call to a tool that has nothing to do with what was said costs one confirmation."""

import pytest

from chathands.conversation import Message, ToolExample, ToolSpec
from chathands.emulation import Calls, Reason, Retry, Turn
from chathands.emulation.contract import render_block
from chathands.emulation.outcome import Answer, Basis, Text
from chathands.emulation.relevance import unrelated
from chathands.emulation.review import OPTIONAL_REVIEWS

BMI = ToolSpec(
    "determine_body_mass_index",
    "Calculate body mass index given weight and height.",
    {"type": "object", "properties": {"weight": {"type": "number"}}},
    "none",
)
WEATHER = ToolSpec(
    "get_weather", "查询一个城市的天气预报", {}, "none", (ToolExample("要带伞吗", {}),)
)


@pytest.mark.parametrize(
    ("spec", "said", "apart"),
    [
        (BMI, "Calculate the area of a triangle with base 10 and height of nothing", False),
        (BMI, "Who wrote War and Peace?", True),
        (BMI, "What is my BMI? I am 70 kg; body mass please", False),
        (WEATHER, "把这句话翻译成英文：早上好", True),
        (WEATHER, "厦门明天天气", False),
        (WEATHER, "明天要带伞吗", False),
        (WEATHER, "请帮我写一首关于春天的诗", True),
        (BMI, "请帮我写一首关于春天的诗", False),
        (WEATHER, "Write a poem", False),
    ],
)
def test_words_decide(spec, said, apart):
    assert unrelated(spec, [Message.user(said)]) is apart


def test_what_was_said_before_counts():
    talk = [Message.user("厦门明天天气"), Message.assistant("晴"), Message.user("那武汉呢")]
    assert not unrelated(WEATHER, talk)


ALL = OPTIONAL_REVIEWS | {Basis.UNRELATED}
BLOCK = render_block("determine_body_mass_index", {"weight": 70})


def turn_for(said: str, **options) -> Turn:
    return Turn([Message.user(said)], [BMI], language="en", **options)


def say(turn: Turn, text: str):
    turn.request()
    turn.feed(Text(text))
    return turn.finish("stop")


def test_it_is_asked_once_and_runs_when_it_is_meant():
    turn = turn_for("Who wrote the novel Emma at 70?", reviews=ALL)
    outcome = say(turn, BLOCK)
    assert isinstance(outcome, Retry)
    assert (outcome.reason, outcome.basis) == (Reason.UNGROUNDED, Basis.UNRELATED)
    assert "does not match what the user asked for" in turn.request().messages[-1].content
    assert isinstance(say(turn, BLOCK), Calls)


def test_the_answer_that_comes_instead_stands():
    turn = turn_for("Who wrote the novel Emma at 70?", reviews=ALL)
    say(turn, BLOCK)
    assert say(turn, "Jane Austen wrote it.") == Answer("Jane Austen wrote it.")


def test_a_forced_call_and_a_turn_without_the_review_are_not_asked():
    forced = turn_for("Who wrote Emma at 70?", choice="determine_body_mass_index", reviews=ALL)
    assert isinstance(say(forced, BLOCK), Calls)
    assert isinstance(say(turn_for("Who wrote Emma at 70?"), BLOCK), Calls)
