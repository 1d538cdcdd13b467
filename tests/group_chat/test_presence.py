"""Recalled questions, mutes and removals: what stops, what is said, and when it goes on."""

from __future__ import annotations

import asyncio
import math

import pytest

from chathands.settings import GroupSettings
from chathands.upstreams.scripted import HANG
from plugins.group_chat.messages import Fate, Place
from plugins.group_chat.notices import Allowed, Joined, Recalled, Removed, Silenced
from plugins.group_chat.presence import Presence
from tests.group_chat.kit import PUSH, chatting
from tests.support.virtual_clock import virtual

HERE = ("qq", "10000", "700")


def recall(message_id: str) -> Recalled:
    return Recalled("10000", message_id)


# -- recalled


@virtual
async def test_a_recalled_question_is_cancelled_and_nothing_is_said(tmp_path):
    async with chatting(tmp_path, [HANG, HANG, "好。"]) as chat:
        running, queued = chat.says("Q1"), chat.says("Q2")
        await asyncio.sleep(1)
        await chat.notice(recall("m1"))
        await running
        await chat.notice(recall("m2"))
        await queued
        assert chat.line.sent == []
        await chat.says("Q3")
        assert chat.line.texts == ["好。"]


@virtual
async def test_a_recall_that_overtakes_its_message_counts(tmp_path):
    async with chatting(tmp_path, []) as chat:
        await chat.notice(recall("m1"))
        await chat.says("Q1")
        assert chat.line.sent == []


@virtual
async def test_what_a_recalled_question_had_caused_is_said_without_quoting_it(tmp_path):
    async with chatting(tmp_path, [PUSH, HANG], approval="never") as chat:
        task = chat.says("推送")
        await asyncio.sleep(1)
        await chat.notice(recall("m1"))
        await task
        (message,) = chat.line.sent
        assert message.quote is None
        assert "user1 的提问已撤回" in message.text
        assert "push（销售群）：已完成" in message.text


@virtual
async def test_recalling_the_question_takes_back_what_waits_for_a_yes(tmp_path):
    async with chatting(tmp_path, [PUSH]) as chat:
        await chat.says("推送")
        await chat.notice(recall("m1"))
        assert "push（销售群）：没有执行" in chat.line.texts[1]
        await chat.says("确认 1", user="5", role="admin")
        assert chat.pushed == []


@virtual
async def test_a_recalled_line_is_taken_out_of_the_question(tmp_path):
    async with chatting(tmp_path, [HANG, HANG, "好。"], group=GroupSettings(merge="all")) as chat:
        tasks = [chat.says("Q1"), chat.says("Q2")]
        await asyncio.sleep(1)
        await chat.notice(recall("m2"))
        await asyncio.gather(*tasks)
        assert [m.quote for m in chat.line.sent] == ["m1"]
        assert "Q2" not in chat.model.requests[-1].messages[-1].content


# -- muted, removed


@pytest.mark.parametrize("everybody", [False, True], ids=["the bot", "everybody"])
@virtual
async def test_muted_nothing_starts_and_what_runs_is_cancelled_until_it_is_lifted(
    tmp_path, everybody
):
    async with chatting(tmp_path, [HANG, "好。", "另一个群。"]) as chat:
        running = chat.says("Q1")
        queued = chat.says("Q2")
        await asyncio.sleep(1)
        await chat.notice(Silenced(*HERE, everybody=everybody))
        await asyncio.gather(running, queued)
        await chat.says("Q3")
        await chat.says("Q4", group="701")
        assert chat.line.texts == ["好。"]
        requests = len(chat.model.requests)
        await chat.notice(Allowed(*HERE, everybody=everybody))
        told = (await chat.line.so_many(3))[1:]
        assert all("不能发言" in text for text in told)
        assert {m.quote for m in chat.line.sent[1:]} == {"m1", "m2"}
        await chat.says("Q5")
        assert len(chat.model.requests) == requests + 1


@virtual
async def test_a_mute_that_runs_out_is_noticed_without_being_told(tmp_path):
    async with chatting(tmp_path, [HANG]) as chat:
        task = chat.says("Q1")
        await asyncio.sleep(1)
        chat.presence._clock = asyncio.get_running_loop().time
        await chat.notice(Silenced(*HERE, seconds=60))
        await task
        assert "不能发言" in (await chat.line.so_many(1))[0]


@virtual
async def test_after_a_long_mute_only_what_happened_is_told(tmp_path):
    async with chatting(tmp_path, [PUSH, HANG, HANG], approval="never") as chat:
        pushing, asking = chat.says("推送"), chat.says("Q", user="2")
        await asyncio.sleep(1)
        await chat.notice(Silenced(*HERE))
        await asyncio.gather(pushing, asking)
        outbox = chat.accepted._outbox
        assert outbox is not None
        rows = sorted(await outbox.open(), key=lambda row: row.expires_at)
        assert rows[0].expires_at - rows[0].created < 700
        assert rows[1].expires_at - rows[1].created > 80_000
        assert "push（销售群）：已完成" in rows[1].data["text"]


@virtual
async def test_removed_everything_ends_and_nothing_is_owed(tmp_path):
    async with chatting(tmp_path, [PUSH, HANG, "好。"]) as chat:
        await chat.says("推送")
        task = chat.says("Q", user="2")
        await asyncio.sleep(1)
        await chat.notice(Removed(*HERE))
        await task
        assert chat.agent.waiting() == []
        await chat.notice(Joined(*HERE))
        await asyncio.sleep(100)
        assert len(chat.line.sent) == 1  # the approval that was asked for before
        await chat.says("Q2")
        assert chat.line.texts[-1] == "好。"


@pytest.mark.parametrize("everybody", [False, True], ids=["the bot", "everybody"])
@virtual
async def test_a_refused_send_asks_whether_the_bot_is_muted_and_waits(tmp_path, everybody):
    async with chatting(tmp_path, ["好。"]) as chat:
        chat.line.mute_seconds = math.inf if everybody else 600
        chat.line.fates = [Fate.REFUSED] * 2
        await chat.says("Q1")
        sent = len(chat.line.sent)
        await chat.says("Q2")
        assert len(chat.line.sent) == sent
        await chat.notice(Allowed(*HERE, everybody=everybody))
        texts = await chat.line.so_many(sent + 1)
        assert texts[-1] == "好。"


@virtual
async def test_a_mute_that_only_a_refusal_told_of_is_waited_out(tmp_path):
    async with chatting(tmp_path, ["好。"]) as chat:
        chat.presence._clock = asyncio.get_running_loop().time
        chat.line.mute_seconds = 60
        chat.line.fates = [Fate.REFUSED] * 2
        await chat.says("Q1")
        sent = len(chat.line.sent)
        assert (await chat.line.so_many(sent + 1))[-1] == "好。"


@virtual
async def test_a_new_connection_forgets_mutes_that_may_be_over(tmp_path):
    async with chatting(tmp_path, ["好。"]) as chat:
        await chat.notice(Silenced(*HERE, everybody=True))
        chat.connected("qq", "10000")
        await chat.says("Q1")
        assert chat.line.texts == ["好。"]


def test_the_two_kinds_of_mute_are_apart_and_times_out_of_range_have_no_end():
    now = [0.0]
    presence = Presence(lambda: now[0])
    place = Place("qq", "10000", "700", "1")
    presence.note(Silenced(*HERE, seconds=60))
    presence.note(Silenced(*HERE, everybody=True))
    presence.note(Allowed(*HERE, everybody=True))
    assert presence.silent(place)
    now[0] = 61
    assert not presence.silent(place)
    for odd in (None, 0, -1, 1e12):
        presence.note(Silenced(*HERE, seconds=odd))
        now[0] += 1e10
        assert presence.silent(place)
        presence.note(Allowed(*HERE))
    assert not presence.silent(Place("qq", "10000", None, "1"))
    assert not presence.silent(Place("qq", "10000", "701", "1"))
