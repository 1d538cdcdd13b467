"""Quick lines become one question, nobody waits for a line that may come, and signs of life."""

from __future__ import annotations

import asyncio

import pytest

from chathands.settings import GroupSettings
from chathands.upstreams.scripted import HANG
from plugins.group_chat.messages import Incoming, Place, Quoted
from plugins.group_chat.pace import MOST_MERGED, merged
from tests.group_chat.kit import PUSH, chatting
from tests.group_chat.test_chat import Held
from tests.support.virtual_clock import virtual

TOGETHER = GroupSettings(merge="all")


@virtual
async def test_a_single_question_does_not_wait_for_a_second_one(tmp_path):
    clock = asyncio.get_running_loop().time
    async with chatting(tmp_path, lambda _: "好。") as chat:
        began = clock()
        await chat.says("Q1", group=None)
        assert clock() - began < 0.3


@pytest.mark.parametrize("group", [None, "700"], ids=["private", "group"])
@virtual
async def test_a_line_added_while_the_model_thinks_is_answered_together_with_the_first(
    tmp_path, group
):
    async with chatting(tmp_path, [HANG, "都好。"], group=TOGETHER) as chat:
        first = chat.says("Q1 看看九月", group=group)
        await asyncio.sleep(1)
        second = chat.says("Q2 只看北京", group=group, quoted=Quoted("9", "一张表", "乙"))
        await asyncio.gather(first, second)
        assert [(m.quote, m.text) for m in chat.line.sent] == [("m2", "都好。")]
        asked = chat.model.requests[-1].messages[-1].content
        assert asked.index("Q1 看看九月") < asked.index("Q2 只看北京")
        assert "乙：一张表" in asked
        assert "Q1" not in chat.model.requests[-1].messages[0].content


@virtual
async def test_in_a_group_each_mention_is_answered_by_itself_by_default(tmp_path):
    model = Held()
    async with chatting(tmp_path, [], upstream=model) as chat:
        tasks = [chat.says("Q1"), chat.says("Q2")]
        model.go("Q1", "Q2")
        await asyncio.gather(*tasks)
        assert [m.quote for m in chat.line.sent] == ["m1", "m2"]


@virtual
async def test_lines_of_two_people_are_never_one_question(tmp_path):
    model = Held()
    group = GroupSettings(merge="all", session="group")
    async with chatting(tmp_path, [], upstream=model, group=group) as chat:
        tasks = [chat.says("Q1", user="1"), chat.says("Q2", user="2"), chat.says("Q3", user="2")]
        await model.begun("Q1")
        model.go("Q1", "Q2", "Q3")
        await asyncio.gather(*tasks)
        assert [m.quote for m in chat.line.sent] == ["m1", "m3"]
        assert all("Q2" not in r.messages[-1].content for r in chat.model.requests[:1])


@virtual
async def test_a_line_that_comes_later_is_a_question_of_its_own(tmp_path):
    model = Held()
    async with chatting(tmp_path, [], upstream=model, group=TOGETHER) as chat:
        tasks = [chat.says("Q1")]
        await asyncio.sleep(2)
        tasks.append(chat.says("Q2"))
        await asyncio.sleep(0.1)
        model.go("Q1", "Q2")
        await asyncio.gather(*tasks)
        assert [m.quote for m in chat.line.sent] == ["m1", "m2"]


@virtual
async def test_a_run_that_has_called_a_tool_does_not_begin_anew(tmp_path):
    replies = [PUSH, HANG, "好。"]
    async with chatting(tmp_path, replies, group=TOGETHER, approval="never", deadline=10) as chat:
        first = chat.says("推送")
        await asyncio.sleep(1)
        assert len(chat.pushed) == 1
        await asyncio.gather(first, chat.says("还有一件"))
        assert len(chat.pushed) == 1
        assert [m.quote for m in chat.line.sent] == ["m1", "m2"]


@virtual
async def test_a_flood_is_not_one_question(tmp_path):
    model = Held()
    async with chatting(tmp_path, [], upstream=model, group=TOGETHER) as chat:
        tasks = [chat.says(f"Q{n}") for n in range(MOST_MERGED + 1)]
        await model.begun(f"Q{MOST_MERGED - 1}")
        model.go(*(f"Q{n}" for n in range(MOST_MERGED + 1)))
        await asyncio.gather(*tasks)
        assert [m.quote for m in chat.line.sent] == [f"m{MOST_MERGED}", f"m{MOST_MERGED + 1}"]


@virtual
async def test_by_setting_a_run_begins_once_the_person_is_quiet(tmp_path):
    group = GroupSettings(merge="all", debounce=1)
    async with chatting(tmp_path, ["好。"], group=group) as chat:
        tasks = [chat.says("Q1")]
        await asyncio.sleep(0.7)
        tasks.append(chat.says("Q2"))
        await asyncio.sleep(0.7)
        assert chat.model.requests == []
        await asyncio.gather(*tasks)
        assert len(chat.model.requests) == 1
        assert [m.quote for m in chat.line.sent] == ["m2"]


@virtual
async def test_stop_ends_a_merged_question_with_one_reply(tmp_path):
    async with chatting(tmp_path, lambda _: HANG, group=TOGETHER) as chat:
        tasks = [chat.says("Q1"), chat.says("Q2")]
        await asyncio.sleep(1)
        await chat.says("停")
        await asyncio.gather(*tasks)
        assert [m.quote for m in chat.line.sent] == ["m2"]
        assert "已停止" in chat.line.texts[0]


def test_merging_keeps_words_quotes_and_what_is_carried():
    def said(text: str, number: int, **more) -> Incoming:
        return Incoming(Place("qq", "1", "7", "5"), f"m{number}", text, **more)

    both = merged(
        [said("一", 1, quoted=Quoted("9", "旧"), mentioned=False), said("", 2), said("三", 3)]
    )
    assert (both.text, both.message_id, both.mentioned) == ("一\n三", "m3", True)
    assert both.quoted is not None
    assert merged([said("一", 1)]) == said("一", 1)


@virtual
async def test_a_question_that_takes_long_gets_one_reaction_and_no_text(tmp_path):
    async with chatting(tmp_path, lambda _: HANG, deadline=20) as chat:
        quick = chat.says("停")
        await quick
        slow, waiting = chat.says("Q1"), chat.says("Q2")
        await asyncio.sleep(10)
        assert chat.line.reactions == ["m2", "m3"]
        assert len(chat.line.texts) == 1
        await asyncio.gather(slow, waiting)
        assert chat.line.reactions == ["m2", "m3"]


@virtual
async def test_by_setting_one_line_says_that_it_goes_on(tmp_path):
    group = GroupSettings(progress_seconds=5, busy_seconds=0)
    async with chatting(tmp_path, [HANG, "好。"], group=group, deadline=20) as chat:
        await chat.says("Q1")
        assert "还在处理" in chat.line.texts[0]
        assert sum("还在处理" in text for text in chat.line.texts) == 1
        assert len(chat.line.texts) == 2
        assert chat.line.reactions == []
        await chat.says("Q2")
        assert len(chat.line.texts) == 3
