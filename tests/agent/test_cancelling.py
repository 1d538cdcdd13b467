"""A run that is stopped says what already happened and leaves nothing behind."""

import asyncio

import pytest

from chathands.agent import Suspended, render_trace
from chathands.toolbox import CallStarted
from tests.agent.kit import ADMIN, NOTE, READ, SEND, Clockwork, block, world
from tests.support.virtual_clock import virtual

SLOW_NOTE = NOTE.replace("def note", "def slow_note").replace(
    "did(ctx", 'did(ctx, "began"); await asyncio.sleep(50); did(ctx'
)


async def cancelled(task):
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


@virtual
async def test_a_side_effect_that_was_under_way_is_called_unknown(tmp_path):
    replies = [block("note", text="买菜"), block("slow_note", text="交电费")]
    async with world(tmp_path, replies, NOTE, SLOW_NOTE, deadline=100) as w:
        task = asyncio.create_task(w.ask("记两件事"))
        await w.events.reach(CallStarted, 2)
        await cancelled(task)
        reply = w.agent.cancelled_reply(w.run_id)
        assert reply.splitlines()[0] == "已停止。"
        assert "- note（买菜）：已完成" in reply
        assert "- slow_note（交电费）：不确定是否完成，请人工核对；不会自动重试" in reply
        assert w.run_id in reply
        trace = await w.agent.traces.last()
        assert trace["outcome"] == "cancelled"
        assert "被打断：slow_note：unknown" in render_trace(trace)
        assert len(w.agent._locks) == 0


@virtual
async def test_a_stopped_run_that_only_read_changed_nothing(tmp_path):
    replies = [(1, block("look", what="库存")), (None, "")]
    model = Clockwork(*replies)
    async with world(tmp_path, model, READ, deadline=100) as w:
        task = asyncio.create_task(w.ask("看看库存"))
        await w.events.reach(CallStarted)
        await asyncio.sleep(5)
        await cancelled(task)
        assert "没有执行任何操作" in w.agent.cancelled_reply(w.run_id)
        assert model.open == 0


@virtual
async def test_the_next_question_knows_what_a_stopped_run_did(tmp_path):
    replies = [(1, block("note", text="买菜")), (None, ""), (1, "已经记过了。")]
    model = Clockwork(*replies)
    async with world(tmp_path, model, NOTE) as w:
        task = asyncio.create_task(w.ask("记一下买菜"))
        await w.events.reach(CallStarted)
        await asyncio.sleep(1)
        await cancelled(task)
        await w.ask("记了吗")
        assert any("已停止" in message.content for message in model.requests[-1].messages)


@virtual
async def test_a_question_stopped_while_it_waits_for_another_never_ran(tmp_path):
    model = Clockwork((20, "第一个。"))
    async with world(tmp_path, model, READ) as w:
        first = asyncio.create_task(w.ask("一"))
        await asyncio.sleep(1)
        second = asyncio.create_task(w.ask("二"))
        await asyncio.sleep(1)
        await cancelled(second)
        assert "没有执行任何操作" in w.agent.cancelled_reply(w.run_id)
        assert (await first).text == "第一个。"
        assert len(w.agent._locks) == 0


@virtual
async def test_a_decision_stopped_under_way_says_so_too(tmp_path):
    push = block("send", robot="销售群", content="周报", seconds=8)
    async with world(tmp_path, [push], SEND, deadline=100) as w:
        suspended = await w.ask("发周报")
        assert isinstance(suspended, Suspended)
        task = asyncio.create_task(w.decide(suspended, True, ADMIN))
        await w.events.reach(CallStarted)
        await cancelled(task)
        assert "send（销售群）：不确定" in w.agent.cancelled_reply(suspended.run_id)
        assert w.agent.waiting() == []


@virtual
async def test_stopping_at_any_moment_leaves_no_lock_and_no_half_approval(tmp_path):
    push = block("send", robot="销售群", content="周报")
    for moment in range(0, 60, 3):
        directory = tmp_path / str(moment)
        directory.mkdir()
        async with world(directory, [push], SEND) as w:
            task = asyncio.create_task(w.ask("发周报"))
            for _ in range(moment):
                await asyncio.sleep(0)
            task.cancel()
            (outcome,) = await asyncio.gather(task, return_exceptions=True)
            assert len(w.agent._locks) == 0
            if isinstance(outcome, Suspended):
                assert w.agent.waiting() == [outcome]
            else:
                assert isinstance(outcome, asyncio.CancelledError)
                assert w.agent.waiting() == []
                assert await w.agent._store.suspended.list() == []
            assert w.effects == []
