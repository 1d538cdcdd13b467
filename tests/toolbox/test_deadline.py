"""Time: a tool's own limit, the run's deadline, hung tools, and cancelled runs."""

from __future__ import annotations

import asyncio
import builtins
import json
import threading
from pathlib import Path
from typing import Any

import pytest

from chathands.conversation import Status
from chathands.toolbox.audit import verify
from chathands.toolbox.journal import Journal
from tests.support.virtual_clock import virtual
from tests.toolbox.kit import ADMIN, NOTE, READ, SEND, Bench, bench, call

STUBBORN = """
import builtins
builtins.gate_of_the_tests = gate = threading.Event()

@tool(side_effect="none", timeout=5)
def hang() -> str:
    \"\"\"卡住的同步工具。\"\"\"
    gate.wait(20)
    return "好了"

@tool(side_effect="outward", timeout=5, target="where")
def push_hanging(where: Annotated[str, Field(description="哪里")]) -> str:
    \"\"\"卡住的同步推送。\"\"\"
    gate.wait(20)
    return "好了"

@tool(side_effect="none", timeout=5)
async def deaf() -> str:
    \"\"\"不听取消的工具。\"\"\"
    for _ in range(100):
        try:
            await asyncio.sleep(5)
        except asyncio.CancelledError:
            pass
    return "终于"

@tool(side_effect="outward", timeout=5)
async def tidy(ctx: ToolContext) -> str:
    \"\"\"被取消时知道自己做完了。\"\"\"
    try:
        await asyncio.sleep(60)
    except asyncio.CancelledError:
        did(ctx, "done after all")
    return "其实做完了"

@tool(side_effect="none", timeout=5)
async def patient(ctx: ToolContext) -> str:
    \"\"\"说还剩多少时间。\"\"\"
    await asyncio.sleep(2)
    return f"{ctx.remaining():.1f}"
"""


@pytest.fixture
def box(tmp_path: Path) -> Any:
    with bench(tmp_path, SEND, READ, NOTE, STUBBORN, approval="never") as it:
        yield it
        gate: threading.Event = builtins.gate_of_the_tests  # type: ignore[attr-defined]
        gate.set()


def now() -> float:
    return asyncio.get_running_loop().time()


@virtual
async def test_a_read_that_takes_too_long_is_failed_after_its_own_timeout(box: Bench):
    start = now()
    (result,) = (await box.run(call("look", what="x", seconds=60))).results
    assert now() - start == pytest.approx(10, abs=0.1)
    assert (result.status, result.content) == ("failed", "工具没有在时限内完成。")
    assert result.cost_ms == pytest.approx(10_000, abs=100)


@virtual
async def test_the_rest_of_the_deadline_limits_a_tool_further(box: Bench):
    start = now()
    batch = await box.run(call("look", what="x", seconds=60), scope=box.scope(seconds=3))
    assert batch.results[0].status == "failed"
    assert now() - start == pytest.approx(3, abs=0.1)


@virtual
async def test_a_side_effect_that_takes_too_long_is_unknown_and_never_retried(box: Bench):
    scope = box.scope()
    sending = call("send", robot="销售群", content="慢", seconds=60)
    (result,) = (await box.run(sending, scope=scope)).results
    assert result.status is Status.UNKNOWN
    assert "send（销售群） 是否已经完成" in result.content
    (again,) = (await box.run(sending, scope=scope)).results
    assert again.status is Status.UNKNOWN
    assert box.effects == ["start 销售群 慢"]


@virtual
async def test_an_approved_call_gets_its_own_timeout_whatever_is_left(tmp_path: Path):
    with bench(tmp_path, SEND) as box:
        scope = box.scope(ADMIN, seconds=0.5)
        sending = call("send", robot="甲", content="一", seconds=9)
        pending = (await box.run(sending, scope=scope)).pending
        await asyncio.sleep(60)
        batch = await box.run(sending, scope=scope, granted=frozenset({pending.call_hash}))
        assert batch.results[0].status == "ok"
        assert box.effects == ["start 甲 一", "sent 甲 一"]


@virtual
async def test_tools_toml_sets_a_tools_timeout(tmp_path: Path):
    with bench(tmp_path, READ, toml="[tools.look]\ntimeout = 2") as box:
        start = now()
        await box.run(call("look", what="x", seconds=60))
        assert now() - start == pytest.approx(2, abs=0.1)


@virtual
async def test_nothing_starts_after_the_deadline(box: Bench):
    batch = await box.run(call("look", what="x"), scope=box.scope(seconds=0))
    assert batch.results[0].status == "denied"
    batch = await box.run(call("note", text="x"), scope=box.scope(seconds=0))
    assert batch.results[0].status == "denied"
    assert "时间用完" in batch.results[0].content
    assert box.effects == []


@virtual
async def test_a_hung_synchronous_tool_does_not_hold_the_run(box: Bench):
    start = now()
    batch = await box.run(call("hang"), call("look", what="x"))
    assert [result.status for result in batch.results] == ["failed", "ok"]
    assert now() - start == pytest.approx(5, abs=0.6)
    (result,) = (await box.run(call("push_hanging", where="甲"))).results
    assert result.status is Status.UNKNOWN


@virtual
async def test_a_tool_that_ignores_being_cancelled_is_left_behind(box: Bench):
    start = now()
    (result,) = (await box.run(call("deaf"))).results
    assert result.status == "failed"
    assert now() - start < 6


@virtual
async def test_a_tool_that_can_tell_while_being_cancelled_is_believed(box: Bench):
    (result,) = (await box.run(call("tidy"))).results
    assert (result.status, result.content) == ("ok", "其实做完了")


@virtual
async def test_a_tool_knows_how_much_time_it_has(box: Bench):
    (result,) = (await box.run(call("patient"))).results
    assert result.content == "3.0"
    (result,) = (await box.run(call("patient"), scope=box.scope(seconds=2.5))).results
    assert result.content == "0.5"


# --- cancellation


async def cancelled_after(seconds: float, running: Any) -> None:
    task = asyncio.create_task(running)
    await asyncio.sleep(seconds)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


@virtual
async def test_cancelling_in_the_middle_of_a_side_effect_leaves_unknown_in_run_and_audit(
    box: Bench,
):
    scope = box.scope()
    sending = (
        call("send", robot="销售群", content="慢", seconds=60), call("note", text="后面的")
    )  # fmt: skip
    await cancelled_after(3, box.run(*sending, scope=scope))
    (entry,) = scope.done
    assert (entry["name"], entry["status"], entry["target"]) == ("send", "unknown", "销售群")
    assert "提问被取消" in entry["content"]
    assert box.effects == ["start 销售群 慢"]
    box.audit.close()
    outcome = [line for line in lines(box) if line["kind"] == "outcome"]
    assert [line["status"] for line in outcome] == ["unknown"]
    assert verify(box.settings.state_dir) == []


@virtual
async def test_cancelling_twice_still_records_what_happened(box: Bench):
    scope = box.scope()
    task = asyncio.create_task(box.run(call("push_hanging", where="甲"), scope=scope))
    await asyncio.sleep(1)
    for _ in range(3):
        task.cancel()
        await asyncio.sleep(0)
    with pytest.raises(asyncio.CancelledError):
        await task
    assert [entry["status"] for entry in scope.done] == ["unknown"]


@virtual
async def test_cancelling_while_the_intent_is_written_starts_nothing(box: Bench, monkeypatch: Any):
    writing, go_on = threading.Event(), threading.Event()
    real = Journal.append_all

    def slow(journal: Journal, records: Any, *, durable: bool) -> Any:
        if records[0]["kind"] == "intent":
            writing.set()
            assert go_on.wait(20)
        return real(journal, records, durable=durable)

    monkeypatch.setattr(Journal, "append_all", slow)
    scope = box.scope()
    task = asyncio.create_task(box.run(call("note", text="x"), scope=scope))
    await asyncio.get_running_loop().run_in_executor(None, writing.wait, 20)
    task.cancel()
    await asyncio.sleep(0)
    go_on.set()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert box.effects == []
    assert [entry["status"] for entry in scope.done] == ["denied"]
    box.audit.close()
    assert [(line["kind"], line.get("status")) for line in lines(box)[1:]] == [
        ("intent", None),
        ("outcome", "denied"),
    ]


@virtual
async def test_cancelling_reads_ends_them(box: Bench):
    start = now()
    await cancelled_after(
        2, box.run(call("look", "1", what="x", seconds=9), call("look", "2", what="y", seconds=9))
    )
    assert now() - start < 3


@virtual
async def test_a_deadline_around_the_batch_still_works_as_a_timeout(box: Bench):
    scope = box.scope()
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(3):
            await box.run(call("send", robot="甲", content="慢", seconds=9), scope=scope)
    assert [entry["status"] for entry in scope.done] == ["unknown"]


def lines(box: Bench) -> list[Any]:
    found = []
    for segment in sorted(box.settings.state_dir.glob("audit/*/*.jsonl")):
        found += [json.loads(line) for line in segment.read_text("utf-8").splitlines()]
    return found
