"""What is left of a run for whoever has to find out what went wrong."""

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chathands.agent import render_trace, replay
from chathands.agent.trace import pieces_from_rows, pieces_to_rows
from chathands.agent.trace_reading import verdict_of
from chathands.emulation.outcome import NativeCall, Text, Thinking
from chathands.errors import UpstreamFailed
from chathands.upstreams.base import Usage
from chathands.upstreams.scripted import HANG, Reply
from tests.agent.kit import NOTE, READ, SEND, Clockwork, block, world
from tests.support.virtual_clock import virtual

REFUSAL = "抱歉，作为一个语言模型，我无法访问外部工具，没有办法查看库存。"


async def last_trace(w):
    trace = await w.agent.traces.last()
    json.dumps(trace)
    return trace


async def test_a_trace_holds_requests_replies_calls_timings_and_ends_with_the_verdict(tmp_path):
    replies = [
        REFUSAL,
        Reply(block("look", what="库存"), usage=Usage(700, 40, 600)),
        "库存一切正常。",
    ]
    async with world(tmp_path, replies, READ) as w:
        finished = await w.ask("看看库存")
        trace = await last_trace(w)
    page = render_trace(trace)
    assert page.startswith(f"运行 {finished.run_id}")
    for request in w.requests:
        for message in request.messages:
            assert message.content in page
    assert REFUSAL in page
    assert block("look", what="库存") in page
    assert "tokens 700+40，缓存 600" in page
    assert "调用 look" in page
    assert "库存一切正常。" in page
    assert page.splitlines()[-1] == "判定 ok（纠正过：refusal）"
    assert trace["outcome"] == "answered"


async def test_each_request_can_be_printed_whole(tmp_path):
    replies = [block("look", what="库存"), "库存一切正常。"]
    async with world(tmp_path, replies, READ) as w:
        await w.ask("看看库存")
        trace = await last_trace(w)
    system = w.requests[0].messages[0].content
    assert render_trace(trace).count(system) == 1
    assert render_trace(trace, full=True).count(system) == 2


async def test_replaying_gives_the_same_requests_and_outcomes(tmp_path):
    replies = [
        REFUSAL,
        f"先看两样。\n{block('look', what='甲')}\n{block('look', what='乙')}",
        '```json action\n{"tool": "look", "parameters": {"what": "丙\n',
        block("look", what="丙"),
        "都正常。",
    ]
    async with world(tmp_path, replies, READ, NOTE) as w:
        await w.ask("看看甲乙丙", quoted="一段引用")
        trace = await last_trace(w)
    result = replay(trace)
    assert result.differences == ()
    assert result.equal


async def test_replaying_notices_what_has_changed(tmp_path):
    async with world(tmp_path, [block("look", what="库存"), "一切正常。"], READ) as w:
        await w.ask("看看库存")
        trace = await last_trace(w)
    trace["steps"][0]["requests"][0]["outcome"] = {"kind": "answer", "text": "别的"}
    trace["steps"][0]["requests"][0]["messages"][0]["content"] += "改过"
    result = replay(trace)
    assert not result.equal
    assert len(result.differences) >= 2


pieces = st.lists(
    st.builds(Text, st.text(max_size=5))
    | st.builds(Thinking, st.text(max_size=5))
    | st.builds(
        NativeCall,
        st.integers(0, 2),
        st.none() | st.text(max_size=2),
        st.none() | st.text(max_size=2),
        st.text(max_size=5),
    ),
    max_size=12,
)


@given(pieces)
def test_pieces_come_back_as_they_were(some):
    rows = json.loads(json.dumps(pieces_to_rows(some)))
    assert list(pieces_from_rows(rows)) == some


async def test_a_reply_of_thinking_and_native_calls_is_kept_too(tmp_path):
    reply = [Thinking("想一想"), Text("好的。"), NativeCall(0, "id", "look", '{"what":')]
    async with world(tmp_path, lambda _: reply, READ) as w:
        await w.ask("看看库存")
        trace = await last_trace(w)
    page = render_trace(trace)
    assert "⟦thinking 想一想⟧" in page
    assert "⟦call 0 id look" in page
    assert replay(trace).equal


async def test_a_suspended_run_is_one_trace_in_the_end(tmp_path):
    push = block("send", robot="销售群", content="周报")
    async with world(tmp_path, [push, "推送好了。"], SEND) as w:
        suspended = await w.ask("发周报")
        waiting = await last_trace(w)
        assert (waiting["outcome"], waiting["verdict"]) == ("suspended", "ok: 等待确认")
        await w.decide(suspended, True)
        trace = await last_trace(w)
        assert len(await w.agent.traces.list()) == 1
    assert trace["ref"] == suspended.run_id
    assert "等待确认：send（销售群）" in render_trace(trace)
    assert "已确认" in render_trace(trace)
    assert replay(trace).equal


async def test_secrets_do_not_reach_the_file(tmp_path):
    robots = {"销售群": {"webhook": "https://x.test/send?access_token=geheim123456"}}
    replies = [block("look", what="geheim123456"), "geheim123456 一切正常。"]
    async with world(tmp_path, replies, READ, dingtalk={"robots": robots}) as w:
        await w.ask("geheim123456 是什么")
        trace = await last_trace(w)
    page = render_trace(trace)
    assert "geheim" not in json.dumps(trace)
    assert "geheim" not in page
    assert "***" in page
    assert replay(trace).equal


async def test_the_reference_finds_it(tmp_path):
    async with world(tmp_path, ["一。", "二。"]) as w:
        first = await w.ask("一")
        await w.ask("二")
        assert (await w.agent.traces.get(first.run_id.lower()))["question"] == "一"


async def test_a_run_that_went_on_after_a_restart_is_shown_from_its_beginning(tmp_path):
    push = block("send", robot="销售群", content="周报")
    async with world(tmp_path, [push], SEND) as w:
        suspended = await w.ask("发周报")
    async with world(tmp_path, ["推送好了。"], SEND) as w:
        await w.decide(suspended, True)
        trace = await last_trace(w)
    page = render_trace(trace)
    assert page.index("等待确认") < page.index("重启后继续") < page.index("推送好了。")
    assert replay(trace).equal


async def test_when_a_call_began_and_ended_is_shown(tmp_path):
    replies = [f"{block('look', what='库存')}\n{block('note', text='买菜')}", "库存正常。"]
    async with world(tmp_path, replies, READ, NOTE) as w:
        await w.ask("看看库存，记一下")
        page = render_trace(await last_trace(w))
    assert re.search(r'\[\d\.\d\ds\] 调用 look \{"what": "库存"\}', page)
    assert re.search(r'\[\d\.\d\ds\] 没有运行 note \{"text": "买菜"\}', page)


# --- the verdict


async def verdict(tmp_path, replies, *sources, ask="看看库存", **options):
    async with world(tmp_path, replies, *sources, **options) as w:
        await w.ask(ask)
        return (await last_trace(w))["verdict"]


async def test_a_model_that_is_down_is_to_blame(tmp_path):
    assert (await verdict(tmp_path, [UpstreamFailed("500")], READ)).startswith(
        "upstream: UpstreamFailed"
    )


async def test_a_model_that_only_refuses_did_not_take_the_contract(tmp_path):
    replies = [REFUSAL, f"{REFUSAL}真的不行。", f"真的很抱歉。{REFUSAL}"]
    assert await verdict(tmp_path, replies, READ) == "contract: refusal"


async def test_blocks_that_cannot_be_read_are_the_parser_s(tmp_path):
    def broken(request):
        return (
            f'```json action\n{{"tool": "look", "parameters": {{"what": "{len(request.messages)}\n'
        )

    assert await verdict(tmp_path, broken, READ) in ("parser: broken_call", "upstream: truncated")


async def test_an_unbacked_claim_is_the_review_s(tmp_path):
    def claiming(request):
        return f"已经发送到销售群了。{len(request.messages)}"

    assert (await verdict(tmp_path, claiming, SEND, READ, ask="发周报")).startswith(
        "review: unbacked_"
    )


async def test_a_failed_tool_is_named(tmp_path):
    replies = [block("note", text="坏"), "没有记下来。"]
    assert await verdict(tmp_path, replies, NOTE, ask="记一下") == "tool: note failed"


async def test_no_model_is_the_state_s(tmp_path):
    async with world(tmp_path, [], READ) as w:
        trace = {"outcome": "failed", "steps": [{"kind": "note", "what": "state", "detail": "x"}]}
        assert verdict_of(trace) == "state: x"
        assert w


@virtual
async def test_a_hanging_model_took_the_time(tmp_path):
    assert (await verdict(tmp_path, [HANG, HANG], READ)).startswith("upstream: 模型用了")


@virtual
async def test_a_slow_tool_took_the_time(tmp_path):
    slow = READ.replace("timeout=10", "timeout=60")
    replies = [(1, block("look", what="库存", seconds=50)), (None, "")]
    blamed = await verdict(tmp_path, Clockwork(*replies), slow)
    assert blamed.startswith("tool: 工具用了")


@pytest.mark.parametrize("outcome", ["answered", "cancelled"])
def test_nothing_wrong_is_ok(outcome):
    assert verdict_of({"outcome": outcome, "steps": []}).startswith("ok")


async def test_a_crash_of_ours_leaves_a_trace(tmp_path):
    async with world(tmp_path, [RuntimeError("a bug")], READ) as w:
        with pytest.raises(RuntimeError):
            await w.ask("看看库存")
        trace = await last_trace(w)
        assert trace["outcome"] == "crashed"
        assert trace["verdict"] == "state: RuntimeError('a bug')"
        assert len(w.agent._locks) == 0
