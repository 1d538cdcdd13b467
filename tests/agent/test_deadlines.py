"""The reply is out in time, whoever is slow. On a virtual clock."""

import asyncio

import pytest

from chathands.agent import Withdrawn
from chathands.upstreams.scripted import HANG
from tests.agent.kit import ADMIN, NOTE, READ, SEND, Clockwork, block, grows, world
from tests.support.virtual_clock import virtual

DEAF = """
@tool(side_effect="none", timeout=60)
async def deaf(ctx: ToolContext) -> str:
    \"\"\"不听取消的工具。\"\"\"
    for refusals in range(3):
        try:
            await asyncio.sleep(1000)
        except asyncio.CancelledError:
            if refusals == 1:
                raise
    return "好"
"""


def clock():
    return asyncio.get_running_loop().time()


@virtual
async def test_a_model_that_hangs_is_asked_once_more_and_then_accounted_for(tmp_path):
    async with world(tmp_path, [HANG, HANG], READ) as w:
        began = clock()
        finished = await w.ask("看看库存")
        took = clock() - began
    assert finished.status == "failed"
    assert finished.text == f"时间到了，没来得及写出完整的回答。（编号 {finished.run_id}）"
    assert 29 <= took <= 32
    assert [e.why for e in w.events if isinstance(e, Withdrawn)] == ["deadline"]


@virtual
async def test_one_that_minds_no_timeout_is_left_all_the_same(tmp_path):
    model = Clockwork((None, ""), (None, ""))
    async with world(tmp_path, model, READ) as w:
        began = clock()
        finished = await w.ask("看看库存")
        took = clock() - began
    assert finished.status == "failed"
    assert took <= 32
    assert model.open == 0


@virtual
async def test_a_slow_model_loses_its_first_try_and_answers_in_the_reserve(tmp_path):
    model = Clockwork((26, "这个回答来得太晚"), (3, "来得及的回答。"))
    async with world(tmp_path, model, READ) as w:
        began = clock()
        finished = await w.ask("看看库存")
        took = clock() - began
    assert (finished.status, finished.text) == ("answered", "来得及的回答。")
    assert model.times[1] - model.times[0] == pytest.approx(24, abs=0.5)
    assert took <= 30
    assert grows(*model.requests)


@virtual
async def test_an_answer_already_under_way_after_the_withdrawal_may_use_all_the_time(tmp_path):
    replies = [(1, block("look", what=f"第{n}")) for n in range(4)]
    model = Clockwork(*replies, (24, "第0到第3都正常。"))
    async with world(tmp_path, model, READ) as w:
        finished = await w.ask("look at four")
    assert finished.text == "第0到第3都正常。"
    assert len(model.requests) == 5


@virtual
async def test_a_tool_that_hangs_is_stopped_where_the_reserve_begins(tmp_path):
    replies = [block("look", what="库存", seconds=500), "没查到，超时了。"]
    async with world(tmp_path, replies, READ, deadline=12) as w:
        began = clock()
        finished = await w.ask("看看库存")
        took = clock() - began
    assert finished.text == "没查到，超时了。"
    assert 7.5 <= took <= 12
    assert "status=failed" in w.last_text()


@virtual
async def test_a_tool_that_will_not_be_cancelled_is_left_behind(tmp_path):
    async with world(tmp_path, [block("deaf"), "没查到。"], DEAF, deadline=12) as w:
        began = clock()
        finished = await w.ask("看看")
        took = clock() - began
    assert finished.text == "没查到。"
    assert took <= 12


@virtual
async def test_what_was_done_failed_and_is_unknown_is_all_said(tmp_path):
    replies = [
        block("look", what="库存"),
        block("note", text="买菜"),
        block("note", text="坏"),
        block("slow_note", text="交电费"),
        HANG,
        HANG,
    ]
    slow = NOTE.replace("def note", "def slow_note").replace(
        "did(ctx", "await asyncio.sleep(500); did(ctx"
    )
    async with world(tmp_path, replies, READ, NOTE, slow, max_rounds=9) as w:
        began = clock()
        finished = await w.ask("看库存，再记三件事")
        took = clock() - began
    assert finished.status == "fallback"
    lines = finished.text.splitlines()
    assert lines[0] == "时间到了，没来得及写出完整的回答。"
    assert "- look：已查到：库存：一切正常" in lines
    assert "- note（买菜）：已完成" in lines
    assert "- note（坏）：没有成功：记不下来。" in lines
    assert "- slow_note（交电费）：不确定是否完成，请人工核对；不会自动重试" in lines
    assert finished.run_id in lines[-1]
    assert took <= 32


@virtual
async def test_time_stands_still_while_a_person_thinks(tmp_path):
    replies = [(20, block("send", robot="销售群", content="周报")), (3, "推送好了。")]
    async with world(tmp_path, Clockwork(*replies), SEND) as w:
        suspended = await w.ask("发周报")
        await asyncio.sleep(40)
        finished = await w.decide(suspended, True, ADMIN)
    assert (finished.status, finished.text) == ("answered", "推送好了。")


@virtual
async def test_an_approved_call_gets_its_own_timeout(tmp_path):
    replies = [(23, block("send", robot="销售群", content="周报", seconds=9)), (3, "推送好了。")]
    async with world(tmp_path, Clockwork(*replies), SEND) as w:
        suspended = await w.ask("发周报")
        finished = await w.decide(suspended, True, ADMIN)
    assert finished.text == "推送好了。"
    assert w.effects == ["start 销售群 周报", "sent 销售群 周报"]


@virtual
async def test_a_local_model_has_180_seconds(tmp_path):
    model = Clockwork((120, "慢慢写的回答。"), local=True)
    async with world(tmp_path, model, READ) as w:
        finished = await w.ask("看看库存")
    assert finished.text == "慢慢写的回答。"
