"""Traditional characters: the same reply is judged the same in both scripts."""

import pytest

from chathands.emulation.phrases import straightened
from chathands.emulation.prompts import load
from chathands.emulation.refusal import stance_of
from tests.emulation.replies import cases

PAIRS = load("traditional")["pairs"].split()
TRADITIONAL = str.maketrans({simple: traditional for traditional, simple in PAIRS})


def test_every_pair_is_one_character_for_another():
    assert all(len(pair) == 2 and pair[0] != pair[1] for pair in PAIRS)
    assert len({pair[0] for pair in PAIRS}) == len(PAIRS)
    assert straightened("無法為您查詢") == "无法为您查询"


@pytest.mark.parametrize(
    "reply",
    [
        "抱歉，我無法存取網路，不能查詢即時天氣。",
        "作為 AI 語言模型，我無法執行這個操作。",
        "我沒有存取即時資料的能力。",
        "很抱歉，我沒有辦法查詢天氣。",
    ],
)
def test_refusals_as_they_are_written_in_taiwan(reply):
    assert stance_of(reply).kind == "refusal"


def test_a_reply_in_traditional_characters_is_judged_like_the_simplified_one():
    replies = [case["text"] for case in cases("refusals.jsonl") if case["lang"] == "zh"]
    differing = [
        reply
        for reply in replies
        if stance_of(reply.translate(TRADITIONAL)).kind != stance_of(reply).kind
    ]
    assert not differing
