"""Runs in each mode: what is asked, what happens when the upstream refuses it, and the trace."""

from __future__ import annotations

import json

import pytest

from chathands.agent import Finished, replay
from chathands.emulation.outcome import NativeCall
from chathands.errors import UpstreamRefused
from chathands.upstreams.ways import Measured, Way, store
from tests.agent.kit import MEMBER, READ, block, world

REFUSED = UpstreamRefused("HTTP 400: no", nothing_received=True, status=400)


def object_of(*calls, answer=""):
    actions = [{"tool": name, "parameters": given} for name, given in calls]
    return json.dumps({"thought": "看表。", "calls": actions, "answer": answer}, ensure_ascii=False)


LOOKS = {
    "emulated": [block("look", what="表"), "看到了。"],
    "structured": [object_of(("look", {"what": "表"})), object_of(answer="看到了。")],
    "native": [[NativeCall(0, "n1", "look", '{"what": "表"}')], "看到了。"],
}


def named(request):
    """In which mode a request was put."""
    if request.tools is not None:
        return "native"
    kind = (request.response_format or {}).get("type")
    return kind or ("prompt" if '"calls"' in request.messages[0].content else "emulated")


async def trace_of(w, run_id):
    trace = await w.agent.traces.get(run_id)
    assert trace is not None
    return trace


@pytest.mark.parametrize("mode", LOOKS)
async def test_a_run_asks_in_the_configured_mode_and_replays(tmp_path, mode):
    async with world(tmp_path, LOOKS[mode], READ, model={"mode": mode}) as w:
        end = await w.ask("看看那张表")
        assert isinstance(end, Finished)
        assert end.text == "看到了。"
        assert w.agent.describe().mode == mode
        kinds = {"emulated": "emulated", "structured": "json_schema", "native": "native"}
        assert [named(r) for r in w.requests] == [kinds[mode]] * 2
        first, second = (request.messages for request in w.requests)
        assert second[: len(first)] == first
        trace = await trace_of(w, end.run_id)
        assert trace["verdict"].startswith("ok")
        assert replay(trace).equal, replay(trace).differences


@pytest.mark.parametrize(
    ("mode", "script", "asked"),
    [
        (
            "structured",
            [REFUSED, *LOOKS["structured"], object_of(answer="你好。")],
            ["json_schema", "json_object", "json_object", "json_object"],
        ),
        (
            "structured",
            [REFUSED, REFUSED, *LOOKS["structured"], object_of(answer="你好。")],
            ["json_schema", "json_object", "prompt", "prompt", "prompt"],
        ),
        ("native", [REFUSED, *LOOKS["emulated"], "你好。"], ["native", *["emulated"] * 3]),
    ],
)
async def test_what_the_upstream_refuses_is_asked_again_with_less_and_remembered(
    tmp_path, mode, script, asked
):
    async with world(tmp_path, script, READ, model={"mode": mode}) as w:
        end = await w.ask("看看那张表")
        assert isinstance(end, Finished)
        assert end.text == "看到了。"
        again = await w.ask("你好")
        assert isinstance(again, Finished)
        assert again.text == "你好。"
        assert [named(r) for r in w.requests] == asked
        assert "上游不接受" in w.agent.describe().mode_line
        trace = await trace_of(w, end.run_id)
        notes = [step["detail"] for step in trace["steps"] if step["kind"] == "note"]
        assert mode in notes[0]
        assert "上游" not in trace["verdict"], trace["verdict"]
        assert replay(trace).equal, replay(trace).differences


async def test_a_refusal_of_an_emulated_request_or_of_another_kind_is_a_fault(tmp_path):
    other = UpstreamRefused("HTTP 413: too long", nothing_received=True, status=413)
    for mode, error in (("emulated", REFUSED), ("native", other), ("structured", other)):
        async with world(tmp_path, [error], READ, model={"mode": mode}) as w:
            end = await w.ask("看看那张表")
            assert isinstance(end, Finished)
            assert end.status == "failed"
            assert len(w.requests) == 1


async def test_a_way_that_does_not_help_is_not_remembered(tmp_path):
    """A request that is too long is refused in every way."""
    script = [REFUSED, REFUSED, *LOOKS["native"]]
    async with world(tmp_path, script, READ, model={"mode": "native"}) as w:
        assert (await w.ask("看看那张表")).status == "failed"  # type: ignore[union-attr]
        assert (await w.ask("看看那张表")).text == "看到了。"  # type: ignore[union-attr]
        assert [named(r) for r in w.requests] == ["native", "emulated", "native", "native"]


async def test_auto_takes_what_was_measured_and_says_so(tmp_path):
    measured = Measured(
        "local", "qwen2.5-coder-1.5b-instruct", "2026-11-30", Way("native", thinking="open"), "", {}
    )
    store(tmp_path / "state", measured)
    thinks = [["想一下</think>", *LOOKS["native"][0]], "想</think>看到了。"]
    async with world(tmp_path, thinks, READ) as w:
        end = await w.ask("看看那张表", MEMBER)
        assert isinstance(end, Finished)
        assert end.text == "看到了。"
        assert named(w.requests[0]) == "native"
        assert w.agent.describe().mode_line == "auto → native（按 2026-11-30 的测量）"


async def test_an_approval_goes_on_in_the_same_mode(tmp_path):
    from tests.agent.kit import SEND

    script = [
        [NativeCall(0, "n1", "send", '{"robot": "销售群", "content": "周报"}')],
        "已发送周报。",
    ]
    async with world(tmp_path, script, SEND, model={"mode": "native"}) as w:
        waiting = await w.ask("把周报发到销售群")
        assert not isinstance(waiting, Finished), waiting.text
        end = await w.decide(waiting, True)
        assert isinstance(end, Finished)
        second = w.requests[1]
        assert named(second) == "native"
        assert [str(m.role) for m in second.messages[-2:]] == ["assistant", "tool"]
