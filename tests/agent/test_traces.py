"""What is left of a run for whoever has to find out what went wrong."""

import json
import re

from hypothesis import given
from hypothesis import strategies as st

from chathands.agent import render_trace, replay
from chathands.agent.trace import pieces_from_rows, pieces_to_rows
from chathands.emulation.outcome import NativeCall, Text, Thinking
from chathands.upstreams.base import Usage
from chathands.upstreams.scripted import Reply
from tests.agent.kit import NOTE, READ, SEND, block, world

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
    assert page.splitlines()[-1] == "判定 ok: 纠正 1 次后答出：refusal"
    assert trace["outcome"] == "answered"


async def test_the_log_of_a_reply_stands_right_behind_it(tmp_path):
    replies = [REFUSAL, block("look", what="库存"), "库存一切正常。"]
    async with world(tmp_path, replies, READ) as w:
        await w.ask("看看库存")
        trace = await last_trace(w)
    lines = render_trace(trace).splitlines()
    marks = [line.split()[0] for line in lines if re.match(r"  (?:结果|日志) \{", line)]
    assert marks == ["结果", "日志"] * 3
    reasons = [json.loads(line.split(" ", 3)[3])["reason"] for line in lines if "  日志 " in line]
    assert reasons == ["refusal", None, None]


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
