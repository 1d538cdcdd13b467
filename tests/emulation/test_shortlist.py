"""Which tools are listed when not all fit, and that the right one is among them."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.shortlist import BUDGET, judged, requests, tools
from chathands.conversation import (
    Message,
    Role,
    Status,
    Tag,
    ToolCall,
    ToolExample,
    ToolResult,
    ToolSpec,
)
from chathands.emulation.contract import render_contract, render_tool
from chathands.emulation.offer import offered_tools
from chathands.emulation.shortlist import rank, scores, stem
from chathands.emulation.sizes import tokens


def tool(name: str, description: str = "", **properties: Any) -> ToolSpec:
    return ToolSpec(name, description, {"type": "object", "properties": properties}, "none")


def listed(*args: Any) -> list[str]:
    chosen = offered_tools(*args)
    assert chosen is not None
    return names(chosen[0])


def names(specs: Any) -> list[str]:
    return [spec.name for spec in specs]


MANY = [tool(f"tool_{n:02}", f"处理第 {n} 类单据，登记、核对、归档") for n in range(60)]
RAIN = tool("get_weather", "查询城市天气")
MAIL = tool("send_mail", "Send an email")


@pytest.mark.parametrize("part", ["tune", "held"])
@pytest.mark.parametrize("spoken", ["zh", "en"])
@pytest.mark.parametrize("told", ["zh", "en"])
def test_the_right_one_of_a_hundred_tools_is_near_the_top(part, spoken, told):
    rows, specs = requests(spoken, part=part), tools(told)
    assert len(rows) == 100
    places = [names(rank(specs, row["request"])).index(row["tool"]) + 1 for row in rows]
    assert sum(place <= 12 for place in places) / len(places) >= 0.97


UNSEEN = {("zh", "zh"): 0.83, ("en", "en"): 0.77, ("zh", "en"): 0.72, ("en", "zh"): 0.74}
"""Of the third set, by the language of the request and of the tools: measured 86.8, 81.1, 75.5 and
77.4 % listed; two requests of 53 may go."""


@pytest.mark.parametrize(("spoken", "told"), UNSEEN)
def test_requests_written_afterwards_find_their_tool_listed_or_named(spoken, told):
    found = judged(requests(spoken, part="fresh"), told)
    assert len(found) == 53
    assert sum(entry.listed for entry in found) / len(found) >= UNSEEN[spoken, told]
    assert all(entry.listed or entry.named for entry in found)


def test_synonyms_bring_words_together_that_share_no_letter():
    rows, specs = requests("zh", part="held", words="other"), tools("en")

    def first_twenty(**options):
        return sum(
            row["tool"] in names(rank(specs, row["request"], **options)[:20]) for row in rows
        )

    assert first_twenty() >= 48 > 20 > first_twenty(synonyms=False)


@pytest.mark.parametrize(
    ("text", "best"),
    [
        ("明天要带伞吗", "get_weather"),
        ("Will it rain?", "get_weather"),
        ("给客户写封信", "send_mail"),
        ("emailing the client", "send_mail"),
        ("sendMail to Bob", "send_mail"),
        ("SEND_MAIL", "send_mail"),
    ],
)
def test_words_meet_in_both_languages_and_any_form(text, best):
    assert rank([*MANY, RAIN, MAIL], text)[0].name == best


def test_everything_a_tool_says_counts():
    specs = [
        *MANY,
        tool("a", "x", vessel={"type": "string"}),
        tool("b", "x", q={"type": "string", "description": "哪一条运河"}),
        tool("c", "x", q={"enum": ["pelican", "stork"]}),
        tool("d", "x", q={"type": "array", "items": {"properties": {"harbour": {}}}}),
        ToolSpec("e", "x", examples=(ToolExample("把灯塔点亮", {}),)),
    ]
    for text, best in (
        ("which vessel", "a"),
        ("运河在哪", "b"),
        ("any pelicans?", "c"),
        ("harbours", "d"),
        ("灯塔怎么样了", "e"),
    ):
        assert rank(specs, text)[0].name == best, text


def test_forms_of_a_word_share_a_stem():
    for forms in (("send", "sends", "sending"), ("query", "queries"), ("file", "files", "filing")):
        assert len({stem(form) for form in forms}) == 1, forms
    assert stem("address") == "address"


@given(st.text(max_size=60), st.lists(st.text(max_size=20), max_size=4))
def test_any_text_ranks_all_tools_once(text, descriptions):
    specs = [tool(f"t{n}", description) for n, description in enumerate(descriptions)]
    ranked = rank(specs, text)
    assert sorted(names(ranked)) == sorted(names(specs))
    assert names(rank(specs, text)) == names(ranked)


def test_nothing_in_common_keeps_the_order():
    assert names(rank(MANY, "zzz")) == names(MANY)
    assert scores([], (("x", 1.0),)) == []


def test_a_contract_that_fits_lists_everything():
    assert offered_tools(MANY, [Message.user("q")], 100_000, "zh") is None


@pytest.mark.parametrize("budget", [900, 1500, BUDGET])
@pytest.mark.parametrize("language", ["zh", "en"])
def test_the_contract_stays_in_its_budget(budget, language):
    specs = tools(language)
    offered = offered_tools(specs, [Message.user("查一下库存，再发邮件")], budget, language)
    assert offered
    chosen, unlisted = offered
    assert unlisted.count == len(specs) - len(chosen)
    assert set(unlisted.named).isdisjoint(names(chosen))
    text = render_contract(chosen, language=language, unlisted=unlisted)
    assert tokens(text) <= budget or len(chosen) == 1
    assert all(name in text for name in unlisted.named)
    if len(chosen) > 1:
        assert tokens(text) > 0.85 * budget


def test_a_tool_too_large_to_list_does_not_keep_others_out():
    huge = tool("weather_archive", "天气 " + "很长的说明" * 2000)
    chosen = listed([huge, RAIN, *MANY], [Message.user("天气怎么样")], 1800, "zh")
    assert "get_weather" in chosen


def used(spec: ToolSpec) -> list[Message]:
    call = ToolCall("c1", spec.name, {})
    result = ToolResult("c1", spec.name, Status.OK, "好")
    return [Message.assistant("", [call]), Message.tool(result), Message.assistant("好了")]


def test_what_was_used_before_stays_listed():
    last = MANY[-1]
    talk = [Message.user("归档"), *used(last), Message.user("天气怎么样")]
    chosen = listed([*MANY, RAIN], talk, 1500, "zh")
    assert len(chosen) < 25
    assert {last.name, "get_weather"} <= set(chosen)


def test_the_question_before_counts_a_little():
    talk = [Message.user("给客户发一封邮件"), Message.assistant("好"), Message.user("再来一次")]
    assert "send_mail" in listed([*MANY, RAIN, MAIL], talk, 1500, "zh")


def test_the_list_is_the_same_in_every_round_of_a_run():
    start = [Message.user("天气怎么样")]
    specs = [*MANY, RAIN, MAIL]
    first = offered_tools(specs, start, 1500, "zh")
    rounds = [*start, *used(RAIN)[:2]]
    assert offered_tools(specs, rounds, 1500, "zh") == first
    found = Message(
        Role.USER, f"找到：\n\n{render_tool(MAIL, 'zh')}", tag=Tag.NOTICE, told=(MAIL.name,)
    )
    call = ToolCall("c2", "send_mail", {})
    rounds += [Message.assistant("x", tag=Tag.NOTICE), found, Message.assistant("", [call])]
    assert offered_tools(specs, rounds, 1500, "zh") == first


def test_the_benchmark_data_is_whole():
    known = set(names(tools("zh")))
    assert len(known) == 100
    for language in ("zh", "en"):
        assert set(names(tools(language))) == known
        rows = requests(language)
        assert {row["tool"] for row in rows} == known
        assert len({row["request"] for row in rows}) == len(rows)
        assert sum(row["words"] == "other" for row in rows) * 2 >= len(rows)
