"""The table of corrections: complete, worded in both languages, firmer each time, limited."""

from __future__ import annotations

import re
import string

import pytest

from chathands.conversation import Message, ToolSpec
from chathands.emulation import Answer, GiveUp, Reason, Retry, Text, Turn
from chathands.emulation.corrections import BY_BASIS, TABLE, correction, rule_for
from chathands.emulation.outcome import Basis
from chathands.emulation.prompts import wording
from chathands.emulation.state import State
from chathands.limits import MAX_CORRECTIONS

TOOLS = [ToolSpec("read_table", "读取表格", side_effect="none"), ToolSpec("send_note", "发送通知")]
NOT_A_FAULT = {Reason.SELECTION}
ONLY_OF_A_CALL = {
    Reason.UNKNOWN_TOOL,
    Reason.INVALID_ARGUMENTS,
    Reason.TRUNCATED,
    Reason.UNGROUNDED,
    Reason.UNCONFIRMED,
}
ONLY_AT_FIRST = {Reason.INCOMPLETE, Reason.FAR_FETCHED}
"""Later decisions may well leave something for the next step."""
GOES_ON = "incomplete"
"""Not a correction that grows firmer: it says the same as long as each reply brings some."""
RULES = {*TABLE.values(), *BY_BASIS.values()}


def said(retry, state, level, language):
    return correction(
        retry, state, level, specs=TOOLS, language=language, forced="send_note", block="BLOCK"
    )


def test_every_state_and_reason_that_can_meet_has_a_rule():
    for state in State:
        for reason in set(Reason) - NOT_A_FAULT:
            withdrawn = state is State.WITHDRAWN
            cannot = withdrawn and (reason in ONLY_OF_A_CALL or reason is Reason.REFUSAL)
            if reason in ONLY_AT_FIRST:
                first = {State.FIRST_DECISION, State.AFTER_CORRECTION}
                forced = {State.FORCED} if reason is Reason.INCOMPLETE else set()
                cannot = state not in first | forced
            assert ((state, reason) in TABLE) is not cannot, (state, reason)


@pytest.mark.parametrize("language", ["zh", "en"])
@pytest.mark.parametrize("rule", sorted(RULES, key=lambda rule: rule.wording), ids=str)
def test_each_rule_has_one_text_for_every_time_it_may_be_said(rule, language):
    texts = wording(language)["correction"][rule.wording]
    times = 1 if rule.wording == GOES_ON else rule.limit
    assert len(texts) == len(set(texts)) == times <= MAX_CORRECTIONS
    for text in texts:
        fields = {name for _, name, _, _ in string.Formatter().parse(text) if name}
        assert fields <= {"name", "forced", "detail", "why", "hint", "nearest", "block"}
        assert bool(re.search("[\u4e00-\u9fff]", text)) is (language == "zh")


@pytest.mark.parametrize("language", ["zh", "en"])
def test_no_wording_is_left_without_a_rule(language):
    words = {k for k, v in wording(language)["correction"].items() if isinstance(v, list)}
    assert words == {rule.wording for rule in RULES}


@pytest.mark.parametrize("language", ["zh", "en"])
@pytest.mark.parametrize(("state", "reason"), sorted(TABLE), ids=str)
def test_what_is_said_grows_firmer_and_then_stays(state, reason, language):
    retry = Retry(reason, "D", "read_table")
    texts = [said(retry, state, level, language) for level in range(MAX_CORRECTIONS + 1)]
    limit = 1 if reason == GOES_ON else rule_for(retry, state).limit
    assert len(set(texts)) == limit
    assert texts[-1] == texts[limit - 1]
    assert not any("{" in text.replace('{"', "") for text in texts)


@pytest.mark.parametrize("basis", [basis for _, basis in BY_BASIS], ids=str)
def test_what_a_retry_rests_on_says_more_than_its_state(basis):
    reason = next(reason for reason, b in BY_BASIS if b is basis)
    resting = Retry(reason, "D", "read_table", basis)
    plain = Retry(reason, "D", "read_table")
    for state in State:
        if state is not State.WITHDRAWN:
            assert said(resting, state, 0, "zh") != said(plain, state, 0, "zh")


def test_a_forced_choice_is_never_told_that_text_will_do():
    for (state, reason), rule in TABLE.items():
        if state is State.FORCED and reason not in (
            Reason.INVALID_ARGUMENTS,
            Reason.UNGROUNDED,
            Reason.UNCONFIRMED,
            Reason.UNBACKED_CLAIM,
            Reason.UNBACKED_FIGURE,
        ):
            text = " ".join(wording("zh")["correction"][rule.wording])
            assert "直接回答" not in text
            assert "普通文字" not in text


def play(question, *replies, tools=TOOLS):
    turn = Turn([Message.user(question)], tools)
    outcomes = []
    for reply in replies:
        turn.feed(Text(reply))
        outcomes.append(turn.finish("stop"))
    return outcomes


def test_a_firm_reason_is_corrected_twice_and_a_soft_one_once():
    firm = play("读一下表格", *(f"我没有可用的工具{mark}" for mark in ("。", "！", "，真的。")))
    assert [type(outcome) for outcome in firm] == [Retry, Retry, GiveUp]
    soft = play("订一张机票", "抱歉，我没法替您订机票。", "很抱歉，我没法替您订机票。")
    assert [type(outcome) for outcome in soft] == [Retry, Answer]
    assert soft[0].basis is Basis.SOFT


FIRST_TIMES = {
    Reason.REFUSAL: "我没有可用的工具，没法读表格。",
    Reason.MISSED_CALL: "好的，我来读一下表格。",
    Reason.UNKNOWN_TOOL: '```json action\n{"tool": "open_door", "parameters": {}}\n```',
    Reason.BROKEN_CALL: '```json action\n{"tool": "read_table", "parameters": {"a" b}}\n```',
    Reason.TRUNCATED: '```json action\n{"tool": "read_table", "parameters": {"a": "b',
    Reason.EMPTY: "",
}


@pytest.mark.parametrize("language", ["zh", "en"])
@pytest.mark.parametrize("second", FIRST_TIMES, ids=str)
@pytest.mark.parametrize("first", FIRST_TIMES, ids=str)
def test_firmness_counts_the_times_of_this_reason_only(first, second, language):
    turn = Turn([Message.user("读一下表格")], TOOLS, language=language)
    for reason in (first, second):
        turn.feed(Text(FIRST_TIMES[reason]))
        outcome = turn.finish("stop")
        if first is second and reason is second and turn.log[1:]:
            break  # the same reply again ends the turn
        assert outcome.reason is reason
        assert turn.log[-1]["firmness"] == 1
        last = turn.request().messages[-1].content
        rule = rule_for(outcome, turn.state)
        opening = wording(language)["correction"][rule.wording][0].partition("{")[0]
        assert last.startswith(opening)
        assert "又断" not in last
        assert "again. Cut" not in last
