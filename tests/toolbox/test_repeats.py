"""What a run does not do twice."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.toolbox.kit import ADMIN, NOTE, READ, SEND, Bench, bench, call

FLAKY = """
tries = []

@tool(side_effect="none")
async def flaky(ctx: ToolContext, good_at: Annotated[int, Field(description="第几次成功")]) -> str:
    \"\"\"有时失败。\"\"\"
    tries.append(1)
    did(ctx, "try")
    if len(tries) < good_at:
        raise ToolFailed("网络不稳。")
    return "成了"
"""


@pytest.fixture
def box(tmp_path: Path) -> Any:
    with bench(tmp_path, SEND, READ, NOTE, FLAKY, approval="never") as it:
        yield it


async def test_a_repeated_read_gets_its_earlier_result_once_with_a_note(box: Bench):
    scope = box.scope()
    await box.run(call("look", what="x"), scope=scope)
    batch = await box.run(call("look", "2", what="x"), scope=scope)
    (result,) = batch.results
    assert (result.call_id, result.status) == ("2", "ok")
    assert "没有重新执行" in result.content
    assert "x：一切正常" in result.content
    assert not batch.closes_run
    assert box.effects == ["look x"]


async def test_the_second_repeat_closes_the_run(box: Bench):
    scope = box.scope()
    for _ in range(2):
        await box.run(call("look", what="x"), scope=scope)
    batch = await box.run(call("look", what="x"), scope=scope)
    assert batch.closes_run
    assert "直接回答" in batch.results[0].content
    assert box.effects == ["look x"]


async def test_repeats_are_found_whatever_the_order_and_the_spelled_out_defaults(box: Bench):
    scope = box.scope()
    await box.run(call("look", what="x"), scope=scope)
    await box.run(call("look", seconds=0, what="x"), scope=scope)
    await box.run(call("look", what="x", seconds="0"), scope=scope)
    assert box.effects == ["look x"]


async def test_other_arguments_are_no_repeat(box: Bench):
    scope = box.scope()
    for what in "abc":
        assert not (await box.run(call("look", what=what), scope=scope)).closes_run
    assert box.effects == ["look a", "look b", "look c"]


async def test_two_equal_reads_in_one_reply_run_once(box: Bench):
    batch = await box.run(call("look", "1", what="x"), call("look", "2", what="x"))
    assert [result.status for result in batch.results] == ["ok", "ok"]
    assert "没有重新执行" in batch.results[1].content
    assert not batch.closes_run
    assert box.effects == ["look x"]


async def test_after_a_side_effect_a_read_is_fresh_again(box: Bench):
    scope = box.scope()
    await box.run(call("look", what="x"), scope=scope)
    await box.run(call("note", text="y"), scope=scope)
    batch = await box.run(call("look", what="x"), scope=scope)
    assert "没有重新执行" not in batch.results[0].content
    assert box.effects == ["look x", "note y", "look x"]


async def test_a_side_effect_that_was_not_run_does_not_make_reads_fresh(box: Bench):
    scope = box.scope()
    await box.run(call("look", what="x"), call("note", text="y"), scope=scope)
    await box.run(call("look", what="x"), scope=scope)
    assert box.effects == ["look x"]


async def test_a_failed_read_may_be_tried_once_more(box: Bench):
    scope = box.scope()
    assert (await box.run(call("flaky", good_at=2), scope=scope)).results[0].status == "failed"
    assert (await box.run(call("flaky", good_at=2), scope=scope)).results[0].content == "成了"


async def test_a_read_that_keeps_failing_is_not_tried_for_ever(box: Bench):
    scope = box.scope()
    closed = [(await box.run(call("flaky", good_at=9), scope=scope)).closes_run for _ in range(4)]
    assert closed == [False, False, False, True]
    assert box.effects == ["try", "try"]


async def test_a_repeated_side_effect_is_never_run_and_answered_with_what_happened(box: Bench):
    scope = box.scope()
    sending = call("send", robot="甲", content="一")
    await box.run(sending, scope=scope)
    batch = await box.run(sending, scope=scope)
    (result,) = batch.results
    assert result.status == "ok"
    assert "没有再次执行" in result.content
    assert "已推送到 甲" in result.content
    assert (await box.run(sending, scope=scope)).closes_run
    assert box.effects == ["start 甲 一", "sent 甲 一"]


async def test_a_failed_side_effect_is_not_run_again_with_the_same_arguments(box: Bench):
    scope = box.scope()
    for _ in range(2):
        batch = await box.run(call("send", robot="甲", content="坏"), scope=scope)
        assert batch.results[0].status == "failed"
    assert box.effects == ["start 甲 坏"]
    batch = await box.run(call("send", robot="甲", content="好"), scope=scope)
    assert batch.results[0].status == "ok"


async def test_the_same_side_effect_twice_in_one_reply_happens_once(box: Bench):
    sending = {"robot": "甲", "content": "一"}
    batch = await box.run(call("send", "1", **sending), call("send", "2", **sending))
    assert [result.status for result in batch.results] == ["ok", "ok"]
    assert box.effects == ["start 甲 一", "sent 甲 一"]


async def test_a_yes_does_not_make_a_done_side_effect_happen_again(tmp_path: Path):
    with bench(tmp_path, SEND) as box:
        scope = box.scope(ADMIN)
        sending = call("send", robot="甲", content="一")
        granted = frozenset({(await box.run(sending, scope=scope)).pending.call_hash})
        for _ in range(3):
            await box.run(sending, scope=scope, granted=granted)
        assert box.effects == ["start 甲 一", "sent 甲 一"]


async def test_another_run_may_do_it_again(box: Bench):
    for _ in range(2):
        await box.run(call("note", text="同样"), scope=box.scope())
    assert box.effects == ["note 同样", "note 同样"]


async def test_the_memory_of_a_run_can_be_stored_and_taken_up_again(box: Bench):
    import json

    scope = box.scope()
    await box.run(call("send", robot="甲", content="一"), scope=scope)
    later = box.scope()
    later.done = json.loads(json.dumps(scope.done))
    await box.run(call("send", robot="甲", content="一"), scope=later)
    assert box.effects == ["start 甲 一", "sent 甲 一"]
