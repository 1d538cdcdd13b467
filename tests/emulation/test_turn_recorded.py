"""Replies that a real small model wrote to this contract (and to none), and what they come to."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from chathands.conversation import Message, Status, ToolResult
from chathands.emulation import Answer, Calls, Retry, Text, Turn, parse_reply
from tests.emulation.recorded_tools import MORE_TOOLS, TOOLS, tools_of

RECORDED = [
    json.loads(line)
    for line in (Path(__file__).parents[1] / "data" / "recorded_turns.jsonl")
    .read_text(encoding="utf-8")
    .split("\n")
    if line
]


UNDER_CONTRACT = [case for case in RECORDED if case["case"] != "without-a-contract"]
PLAIN = [case for case in RECORDED if case["case"] == "without-a-contract"]


@pytest.mark.parametrize("case", UNDER_CONTRACT, ids=lambda case: case["case"])
def test_a_recorded_run_comes_to_what_it_came_to(case):
    questions = list(case.get("questions") or [case["question"]])
    conversation = [Message.user(questions.pop(0))]
    language = case.get("language", "zh")
    turn, before = None, ()
    for step in case["steps"]:
        if turn is None:
            options = {key: step[key] for key in ("choice", "withdraw") if key in step}
            turn = Turn(conversation, tools_of(case), language=language, fence="k7f3", **options)
        messages = turn.request().messages
        assert messages[-1].role == "user"
        assert messages[: len(before)] == before
        turn.feed(Text(step["reply"]))
        outcome = turn.finish(step["finish"])
        assert type(outcome).__name__ == step["outcome"]
        if step.get("reason"):
            assert outcome.reason == step["reason"]
        before = messages
        if isinstance(outcome, Retry):
            continue
        conversation += turn.transcript
        turn = None
        if isinstance(outcome, Calls):
            assert [call.name for call in outcome.calls] == step["calls"]
            for call, (status, content) in zip(outcome.calls, step["results"], strict=True):
                result = ToolResult(call.id, call.name, Status(status), content, 80)
                conversation.append(Message.tool(result))
        elif questions:
            conversation.append(Message.user(questions.pop(0)))
            before = ()
    assert not questions


def test_the_recorded_runs_cover_both_languages_and_several_rounds():
    rounds = {"zh": [], "en": []}
    statuses = set()
    for case in UNDER_CONTRACT:
        calls = [step for step in case["steps"] if step["outcome"] == "Calls"]
        rounds[case.get("language", "zh")].append(len(calls))
        statuses |= {status for step in calls for status, _ in step["results"]}
    assert max(rounds["zh"]) >= 3
    assert max(rounds["en"]) >= 2
    assert len(rounds["en"]) >= 3
    assert statuses == {status.value for status in Status}


@pytest.mark.parametrize("case", PLAIN, ids=lambda case: case["question"])
def test_what_a_model_says_without_a_contract_is_never_taken_for_an_answer(case):
    """Pleas, invented deeds, invented figures, lessons, drafts: real ways of not acting."""
    (step,) = case["steps"]
    turn = Turn([Message.user(case["question"])], MORE_TOOLS)
    turn.feed(Text(step["reply"]))
    outcome = turn.finish(step["finish"])
    assert isinstance(outcome, Retry)
    assert outcome.reason == step["reason"]


def test_a_final_answer_of_the_recorded_chain_is_plain_text():
    chain = next(case for case in UNDER_CONTRACT if case["case"] == "chain")
    last = chain["steps"][-1]["reply"]
    assert parse_reply(last, TOOLS).calls == ()
    assert Answer(last).text == last
