"""Models, tools and sockets that misbehave: each question still ends in exactly one reply."""

from __future__ import annotations

import re
import time

import pytest

from tests.black_box.harness import Ring, action
from tests.sim.onebot_sim import at, text
from tests.standins.model_server import Reply

DEADLINE = 3.0
REFERENCE = r"[0-9A-Z]{4}-[0-9A-Z]{2}"
READ = action("read_excel_data", file_path="sales/2024/09.xlsx")


def broken(call: str) -> str:
    """A call whose last string has no end: never closed by guessing."""
    return call[: call.rindex('"')] + "\n```"


@pytest.mark.parametrize(
    ("word", "replies"),
    [
        ("拒绝一次", ("抱歉，作为一个语言模型，我没有可用的工具，无法访问文件。", READ, "好了。")),
        ("坏一次", (broken(READ), READ, "好了。")),
        ("编造工具", (action("teleport_everyone", to="月球"), "好了。")),
    ],
)
async def test_a_model_that_stumbles_once_still_answers(ring: Ring, fresh, word, replies):
    ring.brain.plays(word, *replies)
    question = await ring.ask(fresh(), fresh(), f"@bot {word}：看看九月的表")
    assert await ring.reply(question) == "好了。"
    assert len(ring.brain.asked[word]) == len(replies)


async def test_a_model_that_never_stops_calling_is_stopped(ring: Ring, fresh):
    rows = iter(range(1, 200))

    def another(_: list[str]) -> str:
        return action("read_excel_data", file_path="sales/2024/09.xlsx", row_limit=next(rows))

    ring.brain.plays("停不下来", another)
    began = time.monotonic()
    question = await ring.ask(fresh(), fresh(), "@bot 停不下来地查")
    answer = await ring.reply(question)
    assert time.monotonic() - began < DEADLINE + 2
    assert "read_excel_data" in answer
    assert re.search(REFERENCE, answer)
    assert "```" not in answer
    assert len(ring.brain.asked["停不下来"]) <= 12


@pytest.mark.parametrize(
    ("word", "reply"),
    [
        ("断线", Reply(down=True)),
        ("五百", Reply(status=500, text="internal secret detail /srv/x.py")),
        ("答成登录页", Reply(body="<html>登录</html>", content_type="text/html")),
        ("限流", Reply(status=429, text="slow down")),
    ],
)
async def test_a_model_that_is_down_is_one_sentence_with_a_reference(
    ring: Ring, fresh, word, reply
):
    ring.brain.plays(word, reply)
    question = await ring.ask(fresh(), fresh(), f"@bot {word}")
    answer = await ring.reply(question)
    assert re.search(REFERENCE, answer)
    assert "secret" not in answer
    assert "模型" in answer


async def test_a_model_slower_than_the_deadline(ring: Ring, fresh):
    ring.brain.plays("慢得很", Reply(hang="head"))
    began = time.monotonic()
    question = await ring.ask(fresh(), fresh(), "@bot 慢得很")
    answer = await ring.reply(question)
    assert time.monotonic() - began < DEADLINE + 2
    assert re.search(REFERENCE, answer)


async def test_a_dropped_socket_in_mid_run_delays_the_reply_until_the_reconnect(ring: Ring, fresh):
    ring.brain.plays("掉线", Reply("我还在。", delay=0.3))
    question = await ring.ask(fresh(), fresh(), "@bot 掉线")
    await ring.brain.was_asked("掉线")
    await ring.sim.drop("abort")
    assert await ring.reply(question) == "我还在。"
    assert len([d for d in ring.world.delivered if d.reply_to == question]) == 1


async def test_an_ambiguous_send_is_not_repeated(ring: Ring, fresh):
    group, user = fresh(), fresh()
    ring.brain.plays("含糊", "只说一遍。")
    ring.sim.fault("send_msg", "ambiguous", retcode=1200)
    question = await ring.ask(group, user, "@bot 含糊")
    assert await ring.reply(question) == "只说一遍。"
    after = await ring.ask(group, user, "@bot 含糊")
    await ring.reply(after)
    assert sum(d.group_id == group for d in ring.world.delivered) == 2


async def test_a_refused_quote_is_sent_without_it(ring: Ring, fresh):
    group, user = fresh(), fresh()
    ring.brain.plays("拒引用", "没有引用。")
    ring.sim.fault("send_msg", "fail", retcode=1400, message="reply message not found")
    await ring.ask(group, user, "@bot 拒引用")
    delivered = await ring.sim.wait_delivered(group_id=group)
    assert (delivered.text, delivered.reply_to) == ("没有引用。", None)


async def test_codes_from_users_models_and_tools_never_become_segments(ring: Ring, fresh):
    group, user = fresh(), fresh()
    code = "[CQ:at,qq=all][CQ:image,file=file:///etc/passwd]"
    ring.brain.plays("注入", f"你说的是 {code} 对吗？")
    question = await ring.ask(group, user, [at(10000), text(f" 注入 {code}")])
    assert code in await ring.reply(question)
    (delivered,) = [d for d in ring.world.delivered if d.group_id == group]
    assert [segment["type"] for segment in delivered.message] == ["reply", "text"]


async def test_a_long_reply_is_announced_and_comes_as_one_forward(ring: Ring, fresh):
    group, user = fresh(), fresh()
    lines = [f"第 {n} 条：" + "内容" * 30 for n in range(60)]
    ring.brain.plays("长文", "\n".join(lines))
    question = await ring.ask(group, user, "@bot 长文")
    last = await ring.sim.wait_delivered(group_id=group, match="第 59 条")
    announced, forward = [d for d in ring.world.delivered if d.group_id == group]
    assert announced.reply_to == question
    assert announced.text.startswith("第 0 条")
    assert (forward, forward.action) == (last, "send_group_forward_msg")
    assert forward.text.splitlines() == lines


async def test_stop_cancels_the_askers_run(ring: Ring, fresh):
    group, user = fresh(), fresh()
    ring.brain.plays("停一停", Reply(hang="head"))
    question = await ring.ask(group, user, "@bot 停一停")
    await ring.brain.was_asked("停一停")
    await ring.ask(group, user, "@bot 停")
    assert "已停止" in await ring.reply(question)


async def test_a_peer_that_stopped_reading_gets_the_reply_once_it_is_back(ring: Ring, fresh):
    ring.brain.plays("冻住", Reply("我在。", delay=0.4))
    before = len(ring.sim.calls)
    question = await ring.ask(fresh(), fresh(), "@bot 冻住")
    await ring.brain.was_asked("冻住")
    await ring.sim.drop("freeze")
    await ring.bot.wait_log("holding messages back")
    await ring.sim.drop("abort")
    assert await ring.reply(question) == "我在。"
    assert len([d for d in ring.world.delivered if d.reply_to == question]) == 1
    sends = [call for call in ring.sim.calls[before:] if call["action"] == "send_msg"]
    assert not [call for call in sends if "fault" in call]


async def test_a_recalled_question_is_not_answered(ring: Ring, fresh):
    group, user = fresh(), fresh()
    ring.brain.plays("撤回", Reply(hang="head"))
    question = await ring.ask(group, user, "@bot 撤回")
    await ring.brain.was_asked("撤回")
    recalled = {"notice_type": "group_recall", "group_id": group, "user_id": user}
    await ring.sim.raw(
        {**recalled, "post_type": "notice", "operator_id": user, "message_id": question}
    )
    ring.brain.plays("再问", "好。")
    after = await ring.ask(group, user, "@bot 再问")
    assert await ring.reply(after) == "好。"
    assert not [d for d in ring.world.delivered if d.reply_to == question]
