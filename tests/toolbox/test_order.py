"""The order inside one reply: reads together, side effects one by one, never both."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from chathands.conversation import Status
from chathands.toolbox import Decision
from tests.support.virtual_clock import virtual
from tests.toolbox.kit import BOSS, MEMBER, NOTE, READ, SEND, Bench, bench, call


@pytest.fixture
def box(tmp_path: Path) -> Any:
    with bench(tmp_path, SEND, READ, NOTE, approval="never") as it:
        yield it


def statuses(batch: Any) -> list[str]:
    return [str(result.status) for result in batch.results]


@virtual
async def test_reads_run_together_and_answer_in_the_order_of_the_calls(box: Bench):
    start = asyncio.get_running_loop().time()
    batch = await box.run(
        call("look", "1", what="甲", seconds=3),
        call("look", "2", what="乙", seconds=1),
        call("look", "3", what="丙", seconds=2),
    )
    assert asyncio.get_running_loop().time() - start == pytest.approx(3, abs=0.5)
    assert [result.call_id for result in batch.results] == ["1", "2", "3"]
    assert [result.content[0] for result in batch.results] == ["甲", "乙", "丙"]
    finished = [e.result.call_id for e in box.events if hasattr(e, "result")]
    assert finished == ["2", "3", "1"]


@virtual
async def test_no_more_reads_run_at_once_than_services_bear(box: Bench):
    start = asyncio.get_running_loop().time()
    await box.run(*(call("look", str(n), what=str(n), seconds=1) for n in range(17)))
    assert asyncio.get_running_loop().time() - start == pytest.approx(3, abs=0.5)


async def test_a_side_effect_beside_a_read_is_not_run(box: Bench):
    batch = await box.run(
        call("send", robot="销售群", content="数"), call("look", what="x"), call("note", text="y")
    )
    assert statuses(batch) == ["denied", "ok", "denied"]
    assert "先看结果再决定" in batch.results[0].content
    assert box.effects == ["look x"]


async def test_that_side_effect_may_run_in_the_next_round(box: Bench):
    scope = box.scope()
    sending = call("send", robot="销售群", content="数")
    await box.run(sending, call("look", what="x"), scope=scope)
    batch = await box.run(sending, scope=scope)
    assert statuses(batch) == ["ok"]
    assert box.effects == ["look x", "start 销售群 数", "sent 销售群 数"]


async def test_a_read_that_does_not_fit_still_keeps_the_side_effect_back(box: Bench):
    batch = await box.run(call("look"), call("send", robot="销售群", content="数"))
    assert statuses(batch) == ["failed", "denied"]
    assert box.effects == []


@virtual
async def test_several_side_effects_run_one_by_one_in_order(box: Bench):
    batch = await box.run(
        call("send", "1", robot="甲", content="一", seconds=2),
        call("send", "2", robot="乙", content="二"),
    )
    assert statuses(batch) == ["ok", "ok"]
    assert box.effects == ["start 甲 一", "sent 甲 一", "start 乙 二", "sent 乙 二"]


async def test_after_a_failed_side_effect_the_rest_are_denied(box: Bench):
    batch = await box.run(
        call("note", "1", text="一"), call("send", "2", robot="甲", content="坏"),
        call("note", "3", text="三"),
    )  # fmt: skip
    assert statuses(batch) == ["ok", "failed", "denied"]
    assert "前面的操作没有成功" in batch.results[2].content
    assert box.effects == ["note 一", "start 甲 坏"]


async def test_an_unknown_name_between_side_effects_counts_as_failed(box: Bench):
    batch = await box.run(call("note", "1", text="一"), call("nope"), call("note", "3", text="三"))
    assert statuses(batch) == ["ok", "failed", "denied"]
    assert box.effects == ["note 一"]


@virtual
async def test_after_an_unknown_outcome_the_rest_are_denied(box: Bench):
    batch = await box.run(
        call("send", robot="甲", content="慢", seconds=60), call("note", text="二")
    )
    assert statuses(batch) == ["unknown", "denied"]


async def test_an_empty_reply_gives_an_empty_batch(box: Bench):
    batch = await box.run()
    assert (batch.results, batch.pending, batch.remaining) == ((), None, ())
    assert not batch.closes_run


# --- approval in the middle


@pytest.fixture
def asking(tmp_path: Path) -> Any:
    with bench(tmp_path, SEND, READ, NOTE) as it:
        yield it


async def test_an_approval_in_the_middle_keeps_what_came_before(asking: Bench):
    batch = await asking.run(
        call("note", "1", text="一"),
        call("send", "2", robot="销售群", content="正文", seconds="0"),
        call("note", "3", text="三"),
    )
    assert [result.call_id for result in batch.results] == ["1"]
    assert [one.id for one in batch.remaining] == ["2", "3"]
    assert batch.remaining[0] == batch.pending.call
    assert batch.pending.call.arguments == {"robot": "销售群", "content": "正文", "seconds": 0}
    assert batch.pending.target == "销售群"
    assert batch.pending.shown == "正文：正文\n用多久：0"
    assert "群外" in batch.pending.reason
    assert asking.effects == ["note 一"]


async def test_a_person_also_sees_the_defaults_that_do_something(tmp_path: Path):
    source = SEND.replace('robot: Annotated[str, Field(description="机器人")],', "").replace(
        '(description="用多久")] = 0',
        '(description="用多久")] = 3,\n    robot: Annotated[str, '
        'Field(description="机器人")] = "全员群",\n    quiet: Annotated[bool, '
        'Field(description="静音")] = False',
    )
    with bench(tmp_path, source) as box:
        pending = (await box.run(call("send", content="一"))).pending
        assert pending.target == "全员群"
        assert pending.shown == "正文：一\n用多久：3"


async def test_a_yes_runs_exactly_that_call_and_goes_on(asking: Bench):
    scope = asking.scope()
    first = await asking.run(
        call("send", "1", robot="甲", content="一"), call("send", "2", robot="乙", content="二"),
        scope=scope,
    )  # fmt: skip
    second = await asking.run(
        *first.remaining, scope=scope, granted=frozenset({first.pending.call_hash})
    )
    assert statuses(second) == ["ok"]
    assert second.pending.call.id == "2"
    assert asking.effects == ["start 甲 一", "sent 甲 一"]


async def test_a_yes_to_one_call_is_none_to_another(asking: Bench):
    scope = asking.scope()
    first = await asking.run(call("send", robot="甲", content="一"), scope=scope)
    for changed in ({"content": "二"}, {"robot": "乙"}, {"seconds": 1}):
        arguments: Any = {"robot": "甲", "content": "一"} | changed
        batch = await asking.run(
            call("send", **arguments), scope=scope, granted=frozenset({first.pending.call_hash})
        )
        assert batch.pending is not None
    assert asking.effects == []


async def test_a_no_denies_that_call_and_those_after_it_and_is_not_asked_again(asking: Bench):
    scope = asking.scope()
    sending = call("send", robot="甲", content="一")
    first = await asking.run(sending, call("note", text="二"), scope=scope)
    second = asking.executor.deny(first.remaining, scope, "没有同意。", Decision("no", "1002"))
    assert statuses(second) == ["denied", "denied"]
    assert second.results[0].content == "没有同意。"
    again = await asking.run(sending, scope=scope)
    assert (again.pending, statuses(again)) == (None, ["denied"])
    assert asking.effects == []


async def test_a_no_is_to_the_call_as_it_takes_effect(asking: Bench):
    """The same call with a default written out is not asked about again."""
    scope = asking.scope()
    first = await asking.run(call("send", robot="甲", content="一"), scope=scope)
    asking.executor.deny(first.remaining, scope, "没有同意。", Decision("no", "1002"))
    batch = await asking.run(call("send", robot="甲", content="一", seconds=0), scope=scope)
    assert (batch.pending, statuses(batch)) == (None, ["denied"])


async def test_in_private_where_the_asker_has_no_say_nobody_is_asked(tmp_path: Path):
    alone = replace(MEMBER, group_id=None)
    sending = call("send", robot="甲", content="一")
    with bench(tmp_path, SEND, NOTE) as box:
        scope = box.scope(alone)
        batch = await box.run(sending, call("note", text="二"), scope=scope)
        assert (batch.pending, statuses(batch)) == (None, ["denied", "denied"])
        why = batch.results[0].content
        assert all(part in why for part in ("没有执行", "群管理员", "超级用户", "群里"))
        again = await box.run(sending, scope=scope)
        assert (again.pending, statuses(again)) == (None, ["denied"])
        boss = replace(BOSS, group_id=None)
        assert (await box.run(sending, scope=box.scope(boss))).pending is not None
        assert box.effects == []
    with bench(tmp_path, SEND, toml='[tools.send]\napprove = "asker"') as box:
        assert (await box.run(sending, scope=box.scope(alone))).pending is not None


async def test_a_read_the_policy_asks_about_waits_while_the_others_answer(tmp_path: Path):
    other = READ.replace("def look", "def peek")
    with bench(tmp_path, READ, other, toml='[tools.peek]\napproval = "always"') as box:
        scope = box.scope()
        batch = await box.run(
            call("peek", "1", what="密"),
            call("look", "2", what="x"),
            call("peek", "3", what="密2"),
            scope=scope,
        )
        assert [result.call_id for result in batch.results] == ["2"]
        assert [one.id for one in batch.remaining] == ["1", "3"]
        granted = frozenset({batch.pending.call_hash})
        batch = await box.run(*batch.remaining, scope=scope, granted=granted)
        assert [result.call_id for result in batch.results] == ["1"]
        assert batch.pending.call.id == "3"


async def test_a_repaired_outward_call_says_so_when_it_asks(asking: Bench):
    sending = replace(call("send", robot="甲", content="一"), confidence="repaired")
    batch = await asking.run(sending)
    assert "修复" in batch.pending.reason


async def test_a_granted_call_is_still_checked_against_the_policy(tmp_path: Path):
    with bench(tmp_path, SEND, toml="[tools.send]\nenabled = false") as box:
        from chathands.toolbox.approval import call_hash

        scope = box.scope()
        arguments = {"robot": "甲", "content": "一", "seconds": 0}
        granted = frozenset({call_hash(scope.caller, "send", arguments)})
        batch = await box.run(call("send", **arguments), scope=scope, granted=granted)
        assert [result.status for result in batch.results] == [Status.DENIED]
        assert "停用" in batch.results[0].content
