"""The main job through every real part: a mention, a workbook, a yes, a push, one reply."""

from __future__ import annotations

import json

from tests.black_box.harness import Ring, action
from tests.sim.onebot_sim import at, reply, text
from tests.standins.dingtalk import DingTalk

SUMMARY = "**结论**\n\n- 华东最高\n- 详见附件 [CQ:at,qq=all]"


async def test_from_a_mention_to_a_push_and_one_reply(ring: Ring, dingtalk: DingTalk, fresh):
    group, member, admin = fresh(), fresh(), fresh()
    ring.world.group(group).member(member, "小王").member(admin, "老李", role="admin")
    ring.brain.plays(
        "整理九月",
        action("read_excel_data", file_path="sales/2024/09.xlsx"),
        action("send_dingtalk_message", robot="销售群", title="九月销售", content=SUMMARY),
        "九月的汇总已经推送到销售群。",
    )
    before = len(dingtalk.accepted)

    question = await ring.ask(group, member, "@bot 把整理九月的销售汇总发到钉钉群")
    notice = await ring.reply(question)
    assert "待确认" in notice
    assert "小王" in notice
    assert "销售群" in notice
    assert "九月销售" in notice
    assert all(line in notice for line in SUMMARY.split("\n"))
    assert len(dingtalk.accepted) == before

    asking = ring.message_id("待确认")
    refused = await ring.ask(group, member, [reply(asking), at(10000), text(" 确认")])
    assert "管理员" in await ring.reply(refused)
    assert len(dingtalk.accepted) == before

    yes = await ring.ask(group, admin, [reply(asking), at(10000), text(" 确认")])
    notice_again, final = await ring.replies(question, count=2)
    assert (notice_again, final) == (notice, "九月的汇总已经推送到销售群。")
    (push,) = dingtalk.accepted[before:]
    assert push.title == "九月销售"
    assert push.text.endswith(SUMMARY)
    assert all(d.reply_to != yes for d in ring.world.delivered)

    # The rows the model saw are the workbook's, and no native tool field was ever sent.
    assert "华东" in ring.brain.contents("整理九月", 1)
    assert all("tools" not in request.body for request in ring.model.requests)
    # What left were text segments, and one quote at the front.
    for delivered in ring.world.delivered:
        if delivered.group_id == group:
            kinds = [segment["type"] for segment in delivered.message]
            assert kinds in (["reply", "text"], ["text"])


async def test_the_audit_and_the_trace_know_of_it(ring: Ring, dingtalk: DingTalk):
    """After the main job; the secrets are in none of the files."""
    state = ring.bot.directory / "state"
    audit = "".join(file.read_text("utf-8") for file in state.rglob("*.jsonl"))
    lines = [json.loads(line) for line in audit.splitlines()]
    assert any("send_dingtalk_message" in json.dumps(line) for line in lines)
    for file in [*state.rglob("*"), *ring.bot.directory.glob("*.log")]:
        if file.is_file():
            data = file.read_bytes()
            assert dingtalk.token.encode() not in data, file.name
            assert b"SECring0123456789abcdef" not in data, file.name
