"""The last line of `chathands trace last`: who is to blame, provoked in real runs."""

from __future__ import annotations

import asyncio
import sqlite3

import pytest

from chathands.agent import Finished, Suspended
from chathands.conversation import Message, Status, ToolResult
from chathands.emulation.outcome import Thinking
from chathands.errors import ConfigError, UpstreamFailed, UpstreamUnreachable
from chathands.store import STATE_FILE, codec
from chathands.toolbox import CallStarted
from chathands.upstreams.scripted import HANG, Reply
from tests.agent.kit import ADMIN, NOTE, READ, SEND, Clockwork, block, world
from tests.cli.trace_cli import last_line
from tests.support.virtual_clock import virtual

REFUSAL = "抱歉，作为一个语言模型，我无法访问外部工具，没有办法查看库存。"
UNREADABLE = "```json action\nlook at the stock, try {}\n```"
LOOK = block("look", what="库存")
STOCK = READ.replace("查询。", "查看库存。")
TRANSLATE = """
@tool(side_effect="none", timeout=10)
async def translate(text: Annotated[str, Field(description="原文")]) -> str:
    \"\"\"翻译成英文。\"\"\"
    return text
"""


async def verdict(tmp_path, replies, *sources, ask="看看库存", **options):
    """The whole way: agent, executor, store, and the command that prints it."""
    async with world(tmp_path, replies, *(sources or (STOCK,)), **options) as w:
        finished = await w.ask(ask)
        assert isinstance(finished, Finished)
    return await last_line(w.settings.state_dir)


# --- contract, parser, review: the reply


async def test_a_model_that_only_refuses_did_not_take_the_contract(tmp_path):
    replies = [REFUSAL, f"{REFUSAL}真的不行。", f"真的很抱歉。{REFUSAL}"]
    said = await verdict(tmp_path, replies)
    assert said.startswith("contract: 模型一直说自己没有工具（refusal×3，")
    assert "；换一个更听指令的模型" in said


async def test_a_model_that_only_promises_did_not_take_the_contract(tmp_path):
    replies = ["我来查看一下库存。", "好的，我马上查看库存。", "我现在就去查看库存。"]
    said = await verdict(tmp_path, replies)
    assert said.startswith("contract: 模型只说要做，没有写出调用（missed_call×3")


async def test_a_tool_that_does_not_exist_three_times_is_the_contract_s(tmp_path):
    replies = [block(f"stock_{n}", what="库存") for n in range(3)]
    said = await verdict(tmp_path, replies)
    assert said.startswith("contract: 模型调用了没有的工具（unknown_tool×3")


async def test_arguments_that_never_fit_are_the_contract_s(tmp_path):
    replies = [block("look", seconds=f"很久{n}", what=["库存"] * n) for n in (2, 3, 4)]
    said = await verdict(tmp_path, replies)
    assert said.startswith("contract: 模型给的参数不合要求（invalid_arguments×3，")


async def test_blocks_that_cannot_be_read_are_the_parser_s(tmp_path):
    async with world(tmp_path, [UNREADABLE.format(n) for n in range(3)], READ) as w:
        finished = await w.ask("看看库存")
    said = await last_line(w.settings.state_dir)
    assert said.startswith("parser: 模型写了调用，但没有读懂（broken_call×3")
    assert said.endswith(f"用 chathands trace case {finished.run_id} 记成用例")


async def test_a_block_that_stops_in_the_middle_by_itself_is_the_parser_s(tmp_path):
    replies = [f'```json action\n{{"tool": "look", "parameters": {{"what": "{n}' for n in "甲乙丙"]
    assert (await verdict(tmp_path, replies)).startswith("parser: 调用写到一半就停了（truncated×3")


async def test_an_unbacked_claim_is_the_review_s(tmp_path):
    replies = [f"已经发送到销售群了。第 {n} 次。" for n in range(3)]
    said = await verdict(tmp_path, replies, SEND, READ, ask="发周报")
    assert said.startswith("review: 模型说办好了，但没有对应的成功操作，没有放行（")
    assert "unbacked_claim×2" in said


async def test_figures_from_nowhere_are_the_review_s(tmp_path):
    made_up = [f"库存还有 {n} 箱。" for n in (25, 26)]
    forced = ["库存有很多。", UNREADABLE.format(1), block("translate", text="库存")]
    said = await verdict(tmp_path, [*made_up, *forced], STOCK, TRANSLATE)
    assert said.startswith("review: 模型报了没有来源的数字，没有放行（unbacked_figure×2、")


async def test_a_call_that_was_never_confirmed_is_the_review_s(tmp_path):
    loose = "```json action\n{{'tool': 'note', 'parameters': {{'text': '{}'}}}}\n```"
    replies = [loose.format(what) for what in ("买菜", "睡觉")]
    said = await verdict(tmp_path, replies, NOTE, ask="记一下买菜")
    assert said.startswith("review: 要执行的调用没有得到确认，没有放行（unconfirmed×2）")


async def test_another_tool_than_the_forced_one_is_the_contract_s(tmp_path):
    made_up = [f"库存还有 {n} 箱。" for n in (25, 26)]
    other = [block("translate", text=f"库存{n}") for n in range(3)]
    said = await verdict(tmp_path, [*made_up, *other], STOCK, TRANSLATE)
    assert said.startswith("contract: 模型没有用指定的工具（unbacked_figure×2、wrong_tool×3）")


async def test_calls_after_a_denial_when_tools_are_over_are_named_as_such(tmp_path):
    push = [block("send", robot="销售群", content=f"周报{mark}") for mark in ("", "！", "。", "～")]
    async with world(tmp_path, push, SEND, max_rounds=2) as w:
        suspended = await w.ask("发周报")
        await w.decide(suspended, False)
    said = await last_line(w.settings.state_dir)
    assert said.startswith("contract: 工具已经收回，模型还在写调用，没有给出答复（wrong_tool×3")
    assert "此前 send denied：" in said


async def test_a_plea_that_stood_after_it_was_asked_once_is_not_ok(tmp_path):
    replies = ["抱歉，我没法替您订机票。", "很抱歉，我没法替您订机票。"]
    said = await verdict(tmp_path, replies, ask="订一张机票")
    assert said.startswith("contract: 模型推说做不了，问过一次还是这样答（很抱歉，我没法替您")


async def test_thinking_without_a_word_is_the_contract_s(tmp_path):
    replies = [[Thinking(f"想想库存，{n}")] for n in range(3)]
    said = await verdict(tmp_path, replies)
    assert said.startswith("contract: 模型只写了思考或空话，没有回答（empty×")


async def test_what_ended_the_run_is_blamed_and_the_reasons_are_counted(tmp_path):
    replies = [UNREADABLE.format(1), REFUSAL, f"{REFUSAL}真的不行。"]
    said = await verdict(tmp_path, replies)
    assert said.startswith("contract: 模型一直说自己没有工具（broken_call、refusal×2")


# --- state: what we keep


async def test_a_store_that_cannot_be_read_is_the_state_s(tmp_path):
    async with world(tmp_path, ["好。"], READ) as w:
        with sqlite3.connect(w.settings.state_dir / STATE_FILE) as connection:
            connection.execute("DROP TABLE rounds")
        connection.close()
        assert (await w.ask("你好")).status == "failed"
    said = await last_line(w.settings.state_dir)
    assert said.startswith("state: 状态库读写失败（")
    assert "CHATHANDS__STATE_DIR" in said


async def test_an_answer_that_could_not_be_remembered_is_the_state_s(tmp_path):
    async with world(tmp_path, lambda _: answer(), READ) as w:

        def answer():
            with sqlite3.connect(w.settings.state_dir / STATE_FILE) as connection:
                connection.execute("DROP TABLE rounds")
            connection.close()
            return "你好！"

        assert (await w.ask("你好")).status == "answered"
    assert (await last_line(w.settings.state_dir)).startswith("state: 已经回答，但这一轮没有记住（")


async def test_a_stored_result_without_its_call_is_the_state_s(tmp_path):
    async with world(tmp_path, ["一。", "二。"], READ) as w:
        await w.ask("一")
        damaged = [
            Message.user("看看库存"),
            Message.tool(ToolResult("gone", "look", Status.OK, "库存：3 箱")),
            Message.assistant("三箱。"),
        ]
        place = (await w.agent.traces.last())["place"]
        await w.agent._store.conversations.append(place, damaged)
        await w.ask("二")
    said = await last_line(w.settings.state_dir)
    assert said.startswith("state: 历史里有结果找不到它的调用（1 条）")


async def test_a_bug_of_ours_is_the_state_s(tmp_path):
    async with world(tmp_path, [RuntimeError("a bug")], READ) as w:
        with pytest.raises(RuntimeError):
            await w.ask("看看库存")
        assert (await w.agent.traces.last())["outcome"] == "crashed"
        assert len(w.agent._locks) == 0
    said = await last_line(w.settings.state_dir)
    assert said == "state: 程序自己出错（RuntimeError('a bug')）；请带上这份记录报告问题"


async def test_a_yes_that_comes_after_the_tool_is_gone_is_the_state_s(tmp_path):
    push = block("send", robot="销售群", content="周报")
    async with world(tmp_path, [push, "没有发出去。"], SEND) as w:
        suspended = await w.ask("发周报")
        (w.settings.tools_dir / "box.py").write_text("", "utf-8")
        await w.agent.reload_tools()
        await w.decide(suspended, True)
    said = await last_line(w.settings.state_dir)
    assert said.startswith("state: 确认之后情况已变，没有执行（工具 send 已经不在了")


async def test_a_suspended_run_that_cannot_be_read_is_the_state_s(tmp_path):
    push = block("send", robot="销售群", content="周报")
    async with world(tmp_path, [push], SEND) as w:
        suspended = await w.ask("发周报")
        with sqlite3.connect(w.settings.state_dir / STATE_FILE) as connection:
            connection.execute("UPDATE suspended SET data = ?", [codec.dumps({"round": 1})])
        connection.close()
        finished = await w.decide(suspended, True)
        assert finished.status == "failed"
    assert (await last_line(w.settings.state_dir)).startswith("state: 状态库读写失败（")


# --- tool


async def test_a_failed_tool_is_named_although_the_answer_is_honest(tmp_path):
    replies = [block("note", text="坏"), "没有记下来。"]
    said = await verdict(tmp_path, replies, NOTE, ask="记一下")
    assert said == "tool: note failed：记不下来。；看上面这次调用的参数和结果"


async def test_an_outcome_nobody_knows_is_the_tool_s(tmp_path):
    lost = NOTE.replace('raise ToolFailed("记不下来。")', "raise ToolOutcomeUnknown('没有回音。')")
    replies = [block("note", text="坏"), "不确定是否记下了，请看一下。"]
    said = await verdict(tmp_path, replies, lost, ask="记一下")
    assert said.startswith("tool: note unknown：")


async def test_a_failure_that_a_second_try_mended_is_worth_a_remark(tmp_path):
    replies = [block("note", text="坏"), block("note", text="买菜"), "记好了。"]
    said = await verdict(tmp_path, replies, NOTE, ask="记一下")
    assert said == "ok: note 失败 1 次，再试成功"


async def test_a_call_that_went_well_beside_one_that_failed_does_not_mend_it(tmp_path):
    brittle = READ.replace(
        "return f", 'if what == "坏":\n        raise ToolFailed("没有。")\n    return f'
    )
    replies = [f"{block('look', what='坏')}\n{block('look', what='好')}", "只查到一样。"]
    assert (await verdict(tmp_path, replies, brittle, ask="look")).startswith("tool: look failed")


@virtual
async def test_a_slow_tool_took_the_time(tmp_path):
    slow = READ.replace("timeout=10", "timeout=60")
    replies = [(1, block("look", what="库存", seconds=50)), (None, "")]
    said = await verdict(tmp_path, Clockwork(*replies), slow, ask="look")
    assert said.startswith("tool: 时间用完（模型用了")
    assert "最久的是 look）" in said


# --- upstream


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (UpstreamFailed("500"), "模型服务出错，请稍后再试。（UpstreamFailed）"),
        (UpstreamUnreachable("connection refused"), "连不上模型服务"),
    ],
)
async def test_a_model_that_is_down_is_the_upstream_s(tmp_path, error, told):
    assert (await verdict(tmp_path, [error])).startswith(f"upstream: {told}")


async def test_a_model_that_goes_down_after_a_call_is_the_upstream_s(tmp_path):
    said = await verdict(tmp_path, [LOOK, UpstreamFailed("stream broke")])
    assert said.startswith("upstream: 模型服务出错")


async def test_a_reply_cut_at_the_limit_is_the_upstream_s(tmp_path):
    cut = [
        Reply(f'```json action\n{{"tool": "look", "parameters": {{"what": "{n}', "length")
        for n in range(3)
    ]
    said = await verdict(tmp_path, cut)
    assert said.startswith("upstream: 回复被模型服务截断（truncated×3")
    assert "CHATHANDS__MODEL__MAX_TOKENS" in said


async def test_nothing_at_all_is_the_upstream_s(tmp_path):
    assert (await verdict(tmp_path, ["", " ", "\n"])).startswith("upstream: 模型返回的是空内容")


async def test_without_a_model_the_upstream_is_missing(tmp_path):
    missing = ConfigError("no model", sentence="没有配置模型，请设置 CHATHANDS__MODEL__BASE_URL。")
    async with world(tmp_path, ["不会问到"], READ) as w:
        w.agent._no_model, w.agent._runner = missing, None
        await w.ask("看看库存")
    said = await last_line(w.settings.state_dir)
    assert said.startswith("upstream: 没有可用的模型（没有配置模型")


@virtual
async def test_a_hanging_model_took_the_time(tmp_path):
    said = await verdict(tmp_path, [HANG, HANG])
    assert said.startswith("upstream: 时间用完（模型用了 30.0 秒，工具用了 0.0 秒）")


@virtual
async def test_a_model_that_hung_until_the_reserve_is_named_although_it_answered_then(tmp_path):
    said = await verdict(tmp_path, [HANG, "还没有查到。"])
    assert said.startswith("upstream: 时间用完（模型用了 24.0 秒")


@virtual
async def test_time_that_went_into_corrections_is_the_contract_s(tmp_path):
    replies = [(10, REFUSAL), (10, f"{REFUSAL}不行。"), (None, ""), (None, "")]
    said = await verdict(tmp_path, Clockwork(*replies))
    assert said.startswith("contract: 时间用在纠正上（refusal×2，共 20.")


# --- nothing to blame


async def test_a_run_without_anything_odd_is_ok_and_no_more(tmp_path):
    assert await verdict(tmp_path, [LOOK, "库存一切正常。"]) == "ok"


async def test_an_answer_after_corrections_is_ok(tmp_path):
    said = await verdict(tmp_path, [REFUSAL, UNREADABLE.format(1), LOOK, "库存一切正常。"])
    assert said == "ok: 纠正 2 次后答出：refusal、broken_call"


async def test_a_call_that_was_left_out_beside_a_good_one_is_mentioned(tmp_path):
    said = await verdict(tmp_path, [f"{LOOK}\n{block('gone', x=1)}", "库存一切正常。"])
    assert said == "ok: 并排的调用有 1 个没有执行：unknown_tool"


async def test_a_run_that_used_up_its_rounds_and_answered_is_ok(tmp_path):
    replies = [block("look", what="甲"), block("look", what="乙"), "都正常。"]
    said = await verdict(tmp_path, replies, ask="look", max_rounds=3)
    assert said == "ok: 收回工具后才答出"


@pytest.mark.parametrize("approve", [True, False])
async def test_what_a_person_decided_is_nobody_s_fault(tmp_path, approve):
    push = block("send", robot="销售群", content="周报")
    last = "推送好了。" if approve else "没有推送。"
    async with world(tmp_path, [push, last], SEND) as w:
        suspended = await w.ask("发周报")
        assert isinstance(suspended, Suspended)
        assert await last_line(w.settings.state_dir) == "ok: 等待确认"
        await w.decide(suspended, approve)
    said = await last_line(w.settings.state_dir)
    denied = "ok: send denied：有权确认的人选择了取消，没有执行。"
    assert said == ("ok" if approve else denied)


async def test_a_run_that_went_on_after_a_restart_is_judged_by_its_end(tmp_path):
    push = block("send", robot="销售群", content="坏")
    async with world(tmp_path, [push], SEND) as w:
        suspended = await w.ask("发周报")
    async with world(tmp_path, ["机器人没有接受。"], SEND) as w:
        await w.decide(suspended, True, ADMIN)
    said = await last_line(w.settings.state_dir)
    assert said.startswith("tool: send failed：机器人不接受这条消息。")


@virtual
async def test_a_stopped_run_says_where_it_stood(tmp_path):
    slow = NOTE.replace("did(ctx", "await asyncio.sleep(50); did(ctx")
    async with world(tmp_path, [block("note", text="买菜")], slow, deadline=100) as w:
        task = asyncio.create_task(w.ask("记一下"))
        await w.events.reach(CallStarted)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    assert await last_line(w.settings.state_dir) == "ok: 已停止（当时正在运行 note：unknown）"


@virtual
async def test_a_run_stopped_while_the_model_spoke_is_ok_too(tmp_path):
    async with world(tmp_path, Clockwork((50, "慢慢说")), READ, deadline=100) as w:
        task = asyncio.create_task(w.ask("看看库存"))
        await asyncio.sleep(5)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    assert await last_line(w.settings.state_dir) == "ok: 已停止（当时模型正在回答）"
