"""Mentions as NapCat and its relatives send them, over the real websocket."""

from __future__ import annotations

import asyncio
import time

import pytest

from tests.black_box.harness import TOKEN, Ring
from tests.sim.onebot_sim import Sim, World, at, image, reply, text

ME = at(10000)


async def test_a_mention_is_heard_anywhere(ring: Ring, fresh):
    group, user = fresh(), fresh()
    ring.brain.plays("问天", "我在。")
    ring.world.group(group).member(user, "甲").member(66, "乙")
    forms = [
        [text("问天 "), ME, text(" 在吗")],
        [image(), ME, text(" 问天")],
        [at(66), ME, text(" 问天")],
        [text("\u200b"), ME, text(" 问天")],
        f"[CQ:image,file=a.png][CQ:at,qq={10000}] 问天",
    ]
    for form in forms:
        # A string is left as it is: some implementations send CQ codes instead of segments.
        override = {} if isinstance(form, list) else {"message": form}
        question = await ring.ask(group, user, form, **override)
        assert await ring.reply(question) == "我在。"
    for missing in ("font", "raw_message"):
        question = await ring.ask(group, user, [ME, text(" 问天")], **{missing: ...})
        assert await ring.reply(question) == "我在。"
    assert "@乙" in ring.brain.contents("问天", 2)


async def test_what_is_not_for_the_bot_stays_unanswered(ring: Ring, fresh):
    group, user = fresh(), fresh()
    ring.brain.plays("问地", "我在。")
    ring.world.group(group).member(user, "甲")
    for message in ([at("all"), text(" 问地")], [text("@bot 问地")], [at(66), text(" 问地")]):
        await ring.ask(group, user, message)
    await ring.ask(group, 10000, [ME, text(" 问地")], post_type="message")
    once = await ring.ask(group, user, [ME, text(" 问地")])
    await ring.ask(group, user, [ME, text(" 问地")], message_id=once)
    assert await ring.reply(once) == "我在。"
    last = await ring.ask(group, user, [ME, text(" 问地")])
    assert await ring.reply(last) == "我在。"
    assert sum(d.group_id == group for d in ring.world.delivered) == 2


async def test_the_quoted_text_comes_along_and_a_failing_get_msg_costs_nothing(ring: Ring, fresh):
    group, user, other = fresh(), fresh(), fresh()
    ring.brain.plays("问引用", "好。")
    ring.world.group(group).member(user, "甲").member(other, "乙", card="阿乙")
    quoted = await ring.ask(group, other, [text("九月一共卖了 7788 件")])
    question = await ring.ask(group, user, [reply(quoted), at(other), ME, text(" 问引用")])
    assert await ring.reply(question) == "好。"
    assert "阿乙：九月一共卖了 7788 件" in ring.brain.contents("问引用")

    lost = ring.sim.fault("get_msg", "fail", times=-1, message="message not found")
    question = await ring.ask(group, user, [reply(quoted), ME, text(" 问引用")])
    assert await ring.reply(question) == "好。"
    ring.sim.faults.remove(lost)


async def test_a_get_msg_that_never_answers_delays_by_three_seconds_at_most(ring: Ring, fresh):
    group, user = fresh(), fresh()
    ring.brain.plays("问沉默", "好。")
    ring.world.group(group).member(user, "甲")
    silent = ring.sim.fault("get_msg", "silent", times=-1)
    began = time.monotonic()
    question = await ring.ask(group, user, [reply(12345), ME, text(" 问沉默")])
    assert await ring.reply(question) == "好。"
    assert time.monotonic() - began < 4.5
    ring.sim.faults.remove(silent)


async def test_two_groups_and_three_people_at_once_get_their_own_replies(ring: Ring, fresh):
    def own_word(users: list[str]) -> str:
        return "给" + users[-1].split("密语")[1][:4]

    ring.brain.plays("密语", own_word)
    groups = [fresh(), fresh()]
    people = [fresh(), fresh(), fresh()]
    questions = {}
    for number in range(2):
        for group in groups:
            for person in people:
                word = f"{len(questions):04d}"
                mine = await ring.ask(group, person, f"@bot 密语{word} 第{number}次")
                questions[mine] = word
    replies = await asyncio.gather(*(ring.reply(question) for question in questions))
    assert dict(zip(questions, replies, strict=True)) == {
        question: f"给{word}" for question, word in questions.items()
    }


async def test_a_private_chat_is_answered_without_a_mention(ring: Ring, fresh):
    user = fresh()
    ring.brain.plays("问私聊", "私下说。")
    event = {
        "message_type": "private",
        "sub_type": "friend",
        "message_id": 7_000_001,
        "user_id": user,
        "message": [text("问私聊")],
        "raw_message": "问私聊",
        "font": 0,
        "sender": {"user_id": user, "nickname": "甲"},
    }
    await ring.sim.raw(event)
    delivered = await ring.sim.wait_for(
        lambda: next((d for d in ring.world.delivered if d.user_id == user), None)
    )
    assert (delivered.text, delivered.group_id) == ("私下说。", None)


@pytest.mark.parametrize(
    ("profile", "self_id"), [("llonebot", 10001), ("lagrange", 10002), ("gocq", 10003)]
)
async def test_other_implementations_are_heard_and_not_their_own_echo(
    ring: Ring, fresh, profile, self_id
):
    group, user = fresh(), fresh()
    ring.brain.plays("问家", "我在。")
    world = World(self_id=self_id, profile=profile)
    world.group(group).member(user, "甲")
    async with Sim(world, ring.bot.url, token=TOKEN, echo_self=True) as sim:
        other = Ring(ring.bot, sim, ring.brain, ring.model)
        for message in ("@bot 问家", "问家 @bot 在吗", [image(), at(self_id), text("问家")]):
            question = await other.ask(group, user, message)
            assert await other.reply(question) == "我在。"
        assert len(world.delivered) == 3
