"""SIGTERM and restart: whoever waits is told while the sockets are open, and nothing is lost."""

from __future__ import annotations

import signal
import time

import pytest

from tests.black_box.harness import Ring, action
from tests.sim.onebot_sim import World, at, reply, text
from tests.standins.model_server import Reply

PUSH = action("send_dingtalk_message", robot="销售群", title="周报", content="本周一切正常")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT], ids=["SIGTERM", "SIGINT"])
async def test_everybody_who_waits_is_told_before_the_process_ends(start_ring, number):
    ring: Ring = await start_ring(CHATHANDS__GROUP__QUEUE_LENGTH=3)
    ring.brain.plays("永远", Reply(hang="head"))
    ring.brain.plays("推送周报", PUSH)
    pending = await ring.ask(700, 1, "@bot 推送周报")
    await ring.reply(pending)
    running = await ring.ask(700, 2, "@bot 永远")
    await ring.brain.was_asked("永远")
    queued = await ring.ask(700, 2, "@bot 永远排着")
    elsewhere = await ring.ask(701, 3, "@bot 永远")
    await ring.brain.was_asked("永远", 2)  # by then the one before it stands in the queue

    began = time.monotonic()
    ring.bot.signal(number)
    await ring.bot.ended(within=5)
    assert time.monotonic() - began < 2
    said = [delivered.t - began for delivered in ring.world.delivered if delivered.t > began]
    assert len(said) == 4
    assert max(said) < 2

    for question in (running, queued, elsewhere):
        assert "重启" in await ring.reply(question, within=1)
    assert len(await ring.replies(pending, count=2, within=1)) == 2
    farewell = (await ring.replies(pending, count=2))[1]
    assert "还没有执行" in farewell
    assert "Traceback" not in ring.bot.text


async def test_what_already_happened_is_said_at_the_end(start_ring, dingtalk):
    ring: Ring = await start_ring()
    ring.brain.plays("推送周报", PUSH, Reply(hang="head"))
    before = len(dingtalk.accepted)
    question = await ring.ask(700, 1, "@bot 推送周报")
    await ring.reply(question)
    asking = ring.message_id("待确认")
    await ring.ask(700, 9001, [reply(asking), at(10000), text("确认")])
    await ring.brain.was_asked("推送周报", 2)
    assert len(dingtalk.accepted) == before + 1
    ring.bot.signal()
    await ring.bot.ended(within=5)
    last = (await ring.replies(question, count=2, within=1))[1]
    assert "send_dingtalk_message（销售群）：已完成" in last
    assert "重启" in last


async def test_after_a_kill_each_is_answered_once_and_an_approval_still_waits(start_ring, dingtalk):
    first: Ring = await start_ring()
    first.brain.plays("推送周报", PUSH)
    question = await first.ask(700, 1, "@bot 推送周报")
    notice = await first.reply(question)
    asking = first.message_id("待确认")
    first.brain.plays("永远", Reply(hang="head"))
    running = await first.ask(700, 2, "@bot 永远")
    await first.brain.was_asked("永远")
    queued = await first.ask(700, 2, "@bot 永远排着")
    first.brain.plays("还活着", "在。")
    await first.reply(await first.ask(700, 3, "@bot 还活着"))  # by then the one before is written
    first.bot.signal(signal.SIGKILL)
    await first.bot.ended()

    before = len(dingtalk.accepted)
    world = World()
    world.group(700)
    second: Ring = await start_ring(world=world)
    for question_left in (running, queued):
        assert "重启前没做完" in await second.reply(question_left)
    second.brain.plays("推送周报", "已经推送。")
    second.world.messages[asking] = {
        "time": 1,
        "message_type": "group",
        "message_id": asking,
        "real_id": asking,
        "sender": {"user_id": 10000, "nickname": "bot"},
        "message": [text(notice)],
    }
    await second.ask(700, 9001, [reply(asking), at(10000), text("确认")])
    assert await second.reply(question) == "已经推送。"
    assert len(dingtalk.accepted) == before + 1
    assert len(second.world.delivered) == 3
