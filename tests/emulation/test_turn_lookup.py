"""A toolbox over the contract's budget: what is listed, and how a model finds the rest."""

from __future__ import annotations

import re
from itertools import pairwise

import pytest

from chathands.conversation import Message, Notice, Status, Tag, ToolCall, ToolResult, ToolSpec
from chathands.emulation import Answer, Calls, GiveUp, Reason, Retry, Turn
from chathands.emulation.contract import render_block, render_tool
from chathands.emulation.outcome import CallReady, Text, TextDelta
from chathands.emulation.sizes import tokens
from chathands.emulation.state import State

MANY = [ToolSpec(f"tool_{n:02}", f"处理第 {n} 类单据，登记、核对、归档") for n in range(60)]
RAIN = ToolSpec("get_weather", "查询城市天气", side_effect="none")
PLANT = ToolSpec(
    "water_plants",
    "给办公室的绿植浇水",
    {"type": "object", "properties": {"row": {"type": "integer"}}, "required": ["row"]},
    "none",
)
TOOLS = [*MANY, RAIN, PLANT]
QUESTION = [Message.user("天气怎么样")]
BUDGET = 1500
FIND = render_block("find_tools", {"query": "浇水"})
WATER = render_block("water_plants", {"row": 3})


def turn_on(conversation=QUESTION, tools=TOOLS, **options) -> Turn:
    settings = {"contract_budget": BUDGET, "fence": "f00d", **options}
    return Turn(conversation, tools, **settings)


def say(turn: Turn, text: str, **options):
    turn.request()
    turn.feed(Text(text))
    return turn.finish("stop", **options)


def contract_of(turn: Turn) -> str:
    return turn.request().messages[0].content


def starts_with(later: Turn, earlier) -> bool:
    messages = later.request().messages
    return messages[: len(earlier)] == earlier


def test_what_fits_the_question_is_listed_and_the_rest_can_be_found():
    contract = contract_of(turn_on())
    assert "### get_weather" in contract
    assert "### water_plants" not in contract
    assert contract.count("### ") < 25
    assert f"还有 {62 - contract.count('### ') + 1} 个" in contract
    assert contract.index("### find_tools") > contract.rindex("### tool_")


def test_what_is_not_listed_is_named_as_far_as_there_is_room():
    contract = contract_of(turn_on())
    listed = set(re.findall(r"(?m)^### (\S+)", contract))
    named = set(re.findall(r"tool_\d\d|water_plants", contract.partition("### find_tools")[2]))
    assert len(named) > 10
    assert named.isdisjoint(listed)
    everything = Turn(QUESTION, TOOLS, contract_budget=2000, fence="f00d")
    assert "water_plants" in contract_of(everything)


@pytest.mark.parametrize("budget", [None, 100_000])
def test_a_toolbox_that_fits_is_listed_whole_and_has_no_pseudo_tool(budget):
    turn = Turn(QUESTION, TOOLS, contract_budget=budget, fence="f00d")
    contract = contract_of(turn)
    assert contract.count("### ") == 62
    assert "find_tools" not in contract
    assert say(turn, FIND).reason is Reason.UNKNOWN_TOOL


def test_a_lookup_is_answered_in_the_contract_s_form_and_is_no_correction():
    turn = turn_on(max_corrections=0)
    first = turn.request().messages
    outcome = say(turn, FIND)
    assert outcome == Retry(Reason.SELECTION, "浇水", "find_tools")
    said, found = turn.transcript
    assert (said.text, said.tag, found.tag) == (FIND, Tag.NOTICE, Tag.NOTICE)
    assert (found.notice, found.told) == (Notice.LISTING, (PLANT.name,))
    assert render_tool(PLANT, "zh") in found.text
    assert starts_with(turn, first)
    assert turn.state is State.FIRST_DECISION
    outcome = say(turn, WATER)
    assert isinstance(outcome, Calls)
    assert outcome.calls[0].arguments == {"row": 3}
    assert turn.log[0]["reason"] == "selection"
    assert turn.log[0]["correction"] == turn.log[0]["firmness"] == 0


def test_thinking_aloud_before_a_lookup_stays_in_history():
    turn = turn_on()
    say(turn, f"我先找找工具。\n{FIND}")
    assert turn.transcript[0].text == f"我先找找工具。\n{FIND}"


def test_the_second_lookup_is_the_last():
    turn = turn_on()
    say(turn, FIND)
    say(turn, render_block("find_tools", {"query": "zzz"}))
    assert "没有找到别的工具" in turn.transcript[-1].text
    assert "不要再查找工具" in turn.transcript[-1].text
    outcome = say(turn, FIND)
    assert outcome == Retry(Reason.UNKNOWN_TOOL, name="find_tools")
    assert turn.transcript[-1].tag is Tag.CORRECTION


def test_a_lookup_shows_each_tool_once_and_names_those_already_listed():
    turn = turn_on()
    say(turn, FIND)
    say(turn, render_block("find_tools", {"query": "浇水 天气"}))
    assert "### water_plants" not in turn.transcript[-1].text
    assert "water_plants" in turn.transcript[-1].text
    assert "get_weather" in turn.transcript[-1].text


def test_other_calls_of_the_same_reply_run_and_the_lookup_is_answered_behind_them():
    turn = turn_on()
    outcome = say(turn, f"{render_block('get_weather', {})}\n{FIND}")
    assert isinstance(outcome, Calls)
    assert [call.name for call in outcome.calls] == ["get_weather"]
    accepted, found = turn.transcript
    assert [call.name for call in accepted.calls] == ["get_weather"]
    assert render_tool(PLANT, "zh") in found.text


def test_a_run_with_a_lookup_keeps_its_prefix_round_after_round():
    conversation = list(QUESTION)
    requests, outcomes = [], []
    for replies in ([FIND, WATER], [render_block("get_weather", {})], ["都好了，花也浇过了。"]):
        turn = turn_on(conversation, reviews=frozenset())
        for reply in replies:
            requests.append(turn.request().messages)
            outcomes.append(say(turn, reply))
        conversation += turn.transcript
        for call in turn.transcript[-1].calls:
            conversation.append(Message.tool(ToolResult(call.id, call.name, Status.OK, "好")))
    for before, after in pairwise(requests):
        assert after[: len(before)] == before
    assert [type(outcome) for outcome in outcomes] == [Retry, Calls, Calls, Answer]
    assert "结果 #1 water_plants" in requests[-1][-3].content
    assert "结果 #2 get_weather" in requests[-1][-1].content


def test_a_tool_called_unseen_is_told_behind_its_call():
    turn = turn_on()
    first = turn.request().messages
    say(turn, WATER)
    accepted, told = turn.transcript
    assert accepted.calls[0].name == "water_plants"
    assert told.tag is Tag.NOTICE
    assert render_tool(PLANT, "zh") in told.text
    result = Message.tool(ToolResult(accepted.calls[0].id, "water_plants", Status.OK, "好"))
    assert starts_with(turn_on([*QUESTION, *turn.transcript, result]), first)


def test_a_client_that_keeps_no_remarks_still_sees_the_tool_it_used():
    call = ToolCall("c1", "water_plants", {"row": 3})
    result = Message.tool(ToolResult("c1", "water_plants", Status.OK, "好"))
    turn = turn_on([*QUESTION, Message.assistant("", [call]), result])
    assert "### water_plants" in contract_of(turn)


def test_wrong_arguments_of_an_unlisted_tool_bring_its_listing():
    turn = turn_on()
    outcome = say(turn, render_block("water_plants", {"row": "many"}))
    assert outcome.reason is Reason.INVALID_ARGUMENTS
    assert render_tool(PLANT, "zh") in turn.transcript[-1].text


def test_a_named_tool_that_is_not_listed_comes_with_the_notice():
    turn = turn_on(choice="water_plants")
    assert render_tool(PLANT, "zh") in turn.request().messages[-1].content
    assert turn.state is State.FORCED
    assert say(turn, FIND).reason is Reason.WRONG_TOOL
    assert isinstance(say(turn, WATER), Calls)


@pytest.mark.parametrize("options", [{"choice": "none"}, {"withdraw": "last_round"}])
def test_nothing_is_looked_up_once_tools_are_over(options):
    turn = turn_on(**options)
    assert say(turn, FIND) == Retry(Reason.WRONG_TOOL, name="find_tools")


def test_without_a_next_reply_a_lookup_ends_the_turn():
    assert isinstance(say(turn_on(), FIND, may_retry=False), GiveUp)
    outcome = say(turn_on(), f"今天多云。\n{FIND}", may_retry=False)
    assert outcome == Answer("今天多云。")


def test_a_declared_tool_of_that_name_wins():
    real = ToolSpec("find_tools", "查找扳手和钳子", side_effect="none")
    turn = turn_on(tools=[*TOOLS, real])
    contract = contract_of(turn)
    assert contract.count("### find_tools") == 1
    assert "查找扳手和钳子" in contract
    outcome = say(turn, render_block("find_tools", {}))
    assert isinstance(outcome, Calls)


def test_streamed_no_lookup_leaves_and_what_follows_goes_on():
    turn = turn_on(commit="stream")
    turn.request()
    events = turn.feed(Text(f"这个问题很有意思。\n{FIND}"))
    assert turn.finish("stop").reason is Reason.SELECTION
    events += turn.tail
    turn.request()
    events += turn.feed(Text("天气晴，二十度，适合出门走走。明天也是晴天，记得防晒。"))
    outcome = turn.finish("stop")
    events += turn.tail
    assert not [event for event in events if isinstance(event, CallReady)]
    text = "".join(event.text for event in events if isinstance(event, TextDelta))
    assert text == "这个问题很有意思。\n\n天气晴，二十度，适合出门走走。明天也是晴天，记得防晒。"
    assert outcome == Answer(text)


def test_streamed_calls_beside_a_lookup_leave_in_order():
    turn = turn_on(commit="stream")
    turn.request()
    weather = render_block("get_weather", {})
    events = turn.feed(Text(f"{weather}\n{FIND}\n{WATER}"))
    outcome = turn.finish("stop")
    events += turn.tail
    left = [event.call.name for event in events if isinstance(event, CallReady)]
    assert left == ["get_weather", "water_plants"]
    assert isinstance(outcome, Calls)
    assert [call.name for call in outcome.calls] == left


def test_the_pseudo_tool_is_told_in_english_too():
    turn = turn_on(language="en", contract_budget=1300)
    assert "Finds tools that are not listed above" in contract_of(turn)
    say(turn, FIND)
    assert "These tools were found" in turn.transcript[-1].text


@pytest.mark.parametrize("language", ["zh", "en"])
def test_where_room_is_short_tools_come_before_worked_examples(language):
    listed, shown = {}, {}
    for budget in range(300, 1700, 100):
        contract = contract_of(turn_on(tools=MANY, contract_budget=budget, language=language))
        listed[budget] = contract.count("### ") - 1  # without the one that finds the others
        shown[budget] = "reserve_book" in contract
        assert "```json action\n" in contract  # the form is always there
        assert listed[budget] == 1 or tokens(contract) <= budget
    assert listed[300] == 1  # the least there is: rules, form, one tool
    assert not any(shown[budget] for budget in range(300, 1100, 100))
    assert listed[1000] >= 8
    assert shown[1600]
    assert all(listed[budget] >= 5 for budget in listed if shown[budget])
