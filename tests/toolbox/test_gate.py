"""Before a permitted call runs: rates, quotas, its turn, what hangs, a tool that is broken."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from chathands.conversation import Status, ToolCall, ToolResult
from chathands.toolbox import Caller
from chathands.toolbox.breaker import FAILURES, FIRST_PAUSE, Breakers
from chathands.toolbox.gate import Gate
from chathands.toolbox.lanes import MAX_LEFT_BEHIND, Lanes
from chathands.toolbox.policy_file import rules_of
from chathands.toolbox.rates import (
    MAX_WINDOWS,
    DailyUseInMemory,
    Rates,
    seconds_to_midnight,
)
from chathands.toolbox.rules import Rate
from tests.toolbox.kit import ADMIN, BOSS, MEMBER, NOTE, READ, SEND, Bench, bench, call

OTHER = Caller("1009", "2001", "member", "", "onebot11", "9")
ELSEWHERE = Caller("1001", "2002", "member", "", "onebot11", "9")

HANG = """
free = threading.Event()

@tool(side_effect="none", timeout=0.02)
def hang(n: Annotated[int, Field(description="第几次")] = 0) -> str:
    \"\"\"卡住。\"\"\"
    free.wait(30)
    return "好了"

@tool(side_effect="none", timeout=0.02)
async def stubborn(n: Annotated[int, Field(description="第几次")] = 0) -> str:
    \"\"\"不肯停。\"\"\"
    while not free.is_set():
        try:
            await asyncio.sleep(0.001)
        except asyncio.CancelledError:
            pass
    return "好了"
"""

BROKEN = """
mood = {"raises": None}

@tool(side_effect="none", timeout=5)
async def shaky(n: Annotated[int, Field(description="第几次")] = 0) -> str:
    \"\"\"有时坏。\"\"\"
    if mood["raises"] is not None:
        raise mood["raises"]
    return "好了"
"""


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


async def one(box: Bench, name: str, caller: Caller = MEMBER, **arguments: Any) -> ToolResult:
    """The result in a run of its own."""
    return (await box.run(call(name, **arguments), scope=box.scope(caller))).results[0]


# --- rates


@contextmanager
def rated(directory: Path, rate: str, *sources: str) -> Iterator[tuple[Bench, Clock]]:
    with bench(directory, *(sources or (READ,)), toml=f"[tools.look]\nrate = {rate}\n") as box:
        clock = Clock()
        box.executor.gate.rates = Rates(clock)
        yield box, clock


async def test_a_person_has_their_own_window_and_it_moves(tmp_path: Path):
    with rated(tmp_path, '{ user = "2/minute" }') as (box, clock):
        assert (await one(box, "look", what="1")).status == "ok"
        clock.now += 40
        assert (await one(box, "look", what="2")).status == "ok"
        refused = await one(box, "look", what="3")
        assert refused.status == "denied"
        assert "每人每分钟最多 2 次，请 21 秒后（" in refused.content
        assert "tools.toml" in refused.content
        assert (await one(box, "look", OTHER, what="4")).status == "ok"
        assert (await one(box, "look", ELSEWHERE, what="5")).status == "denied"
        clock.now += 20.5  # the first one is a minute old, the second is not
        assert (await one(box, "look", what="6")).status == "ok"
        assert (await one(box, "look", what="7")).status == "denied"


async def test_a_group_and_a_tool_have_windows_too(tmp_path: Path):
    with rated(tmp_path, '{ group = "2/hour", tool = "3/day" }') as (box, _):
        assert (await one(box, "look", what="1")).status == "ok"
        assert (await one(box, "look", OTHER, what="2")).status == "ok"
        assert "每个群每小时最多 2 次" in (await one(box, "look", BOSS, what="3")).content
        assert (await one(box, "look", ELSEWHERE, what="4")).status == "ok"
        assert "所有人合计每天最多 3 次" in (await one(box, "look", ELSEWHERE, what="5")).content


async def test_programs_learn_when_from_the_batch(tmp_path: Path):
    with rated(tmp_path, '{ user = "1/minute" }') as (box, clock):
        await one(box, "look", what="1")
        clock.now += 10
        batch = await box.run(call("look", what="2"))
        why = batch.why["c_look"]
        assert (why.code, why.retry_after) == ("rate", 50)


async def test_of_many_at_once_no_more_pass_than_may(tmp_path: Path):
    with rated(tmp_path, '{ user = "3/minute" }') as (box, _):
        results = await asyncio.gather(*(one(box, "look", what=str(n)) for n in range(20)))
        assert [result.status for result in results].count(Status.OK) == 3
        assert len(box.effects) == 3


async def test_what_does_not_run_is_not_counted(tmp_path: Path):
    with rated(tmp_path, '{ user = "1/minute" }') as (box, _):
        assert (await one(box, "look", nothing=1)).status == "failed"
        scope = box.scope()
        assert (await box.run(call("look", what="1"), scope=scope)).results[0].status == "ok"
        repeat = (await box.run(call("look", what="1"), scope=scope)).results[0]
        assert repeat.status == "ok"  # answered from before
        assert len(box.effects) == 1


async def test_several_windows_hold_together_and_one_that_is_full_counts_nothing(tmp_path: Path):
    rates, clock = Rates(Clock()), Clock()
    rates = Rates(clock)
    rate = Rate(user="1/second; 3/minute")
    assert await rates.spend(MEMBER, "t", rate) is None
    for _ in range(5):
        full = await rates.spend(MEMBER, "t", rate)
        assert full is not None
        assert full.window == 1
    for _ in range(2):
        clock.now += 1.1
        assert await rates.spend(MEMBER, "t", rate) is None
    clock.now += 1.1
    full = await rates.spend(MEMBER, "t", rate)
    assert full is not None
    assert full.window == 60


async def test_invented_people_do_not_fill_the_memory():
    rates = Rates(Clock())
    rate = Rate(user="5/day")
    await rates.spend(Caller("0"), "t", rate)
    storage: Any = rates._ready().storage
    for n in range(MAX_WINDOWS):
        storage.times[f"invented {n}"] = storage._current("x", 1)
    await rates.spend(Caller("1"), "t", rate)
    assert len(storage.times) <= MAX_WINDOWS


async def test_a_rate_that_is_full_is_said_before_a_person_is_asked(tmp_path: Path):
    toml = '[tools.send]\nrate = { tool = "1/hour" }\n'
    with bench(tmp_path, SEND, toml=toml) as box:
        for text, pending in (("一", True), ("二", False)):
            wish = call("send", robot="甲", content=text)
            batch = await box.run(wish, scope=box.scope())
            assert (batch.pending is not None) == pending
            if batch.pending is not None:
                granted = frozenset({batch.pending.call_hash})
                done = await box.run(wish, scope=box.scope(), granted=granted, granted_by="1002")
                assert done.results[0].status == "ok"
        assert "太频繁" in batch.results[0].content


# --- quotas


async def test_a_quota_is_of_one_person_and_a_day(tmp_path: Path):
    with bench(tmp_path, READ, toml="[tools.look]\nquota = 1\n") as box:
        day = [1_800_000_000.0]
        box.executor.gate = box.executor._performer._gate = Gate(
            box.executor.policy, print, daily=DailyUseInMemory(wall=lambda: day[0])
        )
        assert (await one(box, "look", what="1")).status == "ok"
        refused = await one(box, "look", ELSEWHERE, what="2")
        assert refused.status == "denied"
        assert "每人每天最多用 1 次" in refused.content
        assert "tools.toml 的 quota" in refused.content
        assert (await one(box, "look", OTHER, what="3")).status == "ok"
        for n in range(3):  # who sets quotas has none
            assert (await one(box, "look", BOSS, what=f"b{n}")).status == "ok"
        day[0] += 86_400
        assert (await one(box, "look", what="4")).status == "ok"


async def test_a_quota_of_none_a_day_closes_the_tool_for_all_but_superusers(tmp_path: Path):
    with bench(tmp_path, READ, toml="[tools.look]\nquota = 0\n") as box:
        assert (await one(box, "look", ADMIN, what="1")).status == "denied"


def test_midnight_is_within_a_day():
    for now in (0.0, 1_800_000_000.25, 1_799_999_999.9):
        assert 0 < seconds_to_midnight(now) <= 86_400


# --- turns


async def test_calls_of_one_tool_wait_for_their_turn_in_order():
    lanes = Lanes()
    first = await lanes.enter("t", 1, 1)
    assert first is not None
    order: list[int] = []

    async def next_one(n: int) -> None:
        stay = await lanes.enter("t", 1, 5)
        assert stay is not None
        order.append(n)
        stay.let_go()

    tasks = [asyncio.create_task(next_one(n)) for n in range(5)]
    await asyncio.sleep(0)
    first.let_go()
    await asyncio.gather(*tasks)
    assert order == [0, 1, 2, 3, 4]


async def test_a_place_is_not_lost_by_who_gives_up_waiting():
    lanes = Lanes()
    stay = await lanes.enter("t", 1, 1)
    assert stay is not None
    assert await lanes.enter("t", 1, 0.001) is None
    waiting = [asyncio.create_task(lanes.enter("t", 1, 5)) for _ in range(3)]
    await asyncio.sleep(0)
    waiting[0].cancel()
    stay.let_go()  # in the same moment as the next is let in
    waiting[1].cancel()
    got = await asyncio.wait_for(waiting[2], 1)
    assert got is not None
    got.let_go()
    again = await lanes.enter("t", 1, 0)
    assert again is not None


async def test_more_room_lets_in_who_waits_and_less_keeps_who_is_in():
    lanes = Lanes()
    first = await lanes.enter("t", 1, 1)
    waiting = asyncio.create_task(lanes.enter("t", 1, 5))
    await asyncio.sleep(0)
    third = await lanes.enter("t", 3, 1)
    second = await waiting
    assert first
    assert second
    assert third
    for stay in (first, second):
        stay.let_go()
    assert await lanes.enter("t", 1, 0) is None
    third.let_go()
    assert await lanes.enter("t", 1, 0) is not None


async def test_no_more_calls_run_at_once_than_the_file_says(tmp_path: Path):
    source = """
at_once = [0, 0]

@tool(side_effect="none")
async def busy(n: Annotated[int, Field(description="第几次")]) -> str:
    \"\"\"忙。\"\"\"
    at_once[0] += 1
    at_once[1] = max(at_once)
    await asyncio.sleep(0.002)
    at_once[0] -= 1
    return "好了"
"""
    with bench(tmp_path, source, toml="[tools.busy]\nconcurrency = 2\n") as box:
        results = await asyncio.gather(*(one(box, "busy", n=n) for n in range(10)))
        assert {result.status for result in results} == {Status.OK}
        assert box.generation.tools["busy"].function.__globals__["at_once"] == [0, 2]


async def test_waiting_for_a_turn_ends_with_the_runs_time(tmp_path: Path):
    with bench(tmp_path, READ, toml="[tools.look]\nconcurrency = 1\n") as box:
        slow = asyncio.create_task(box.run(call("look", what="慢", seconds=5)))
        await asyncio.sleep(0.01)
        batch = await box.run(call("look", what="快"), scope=box.scope(OTHER, seconds=0.03))
        assert batch.results[0].status == "denied"
        assert "正忙（同时最多 1 次）" in batch.results[0].content
        assert batch.why["c_look"].code == "busy"
        slow.cancel()
        with pytest.raises(asyncio.CancelledError):
            await slow
        assert (await one(box, "look", what="再来")).status == "ok"  # its place is free again


async def test_what_waits_for_its_turn_is_checked_by_the_rules_of_then(tmp_path: Path):
    with bench(tmp_path, READ, toml="[tools.look]\nconcurrency = 1\n") as box:
        slow = asyncio.create_task(box.run(call("look", what="慢", seconds=5)))
        waits = asyncio.create_task(one(box, "look", what="等着", caller=OTHER))
        await asyncio.sleep(0.01)
        box.executor.policy.rules = rules_of("[tools.look]\nenabled = false\n", "outward")
        slow.cancel()
        result = await waits
        assert (result.status, box.effects) == ("denied", ["look 慢"])
        assert "已被停用" in result.content


# --- what hangs


@pytest.mark.parametrize("name", ["hang", "stubborn"])
async def test_a_tool_that_hangs_is_refused_after_a_few_until_one_ends(
    tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("chathands.toolbox.perform.UNWIND_SECONDS", 0.02)
    with bench(tmp_path, HANG) as box:
        free: threading.Event = box.generation.tools[name].function.__globals__["free"]
        for n in range(MAX_LEFT_BEHIND):
            assert (await one(box, name, n=n)).status == "failed"
        threads = threading.active_count()
        for n in range(100, 110):
            batch = await box.run(call(name, n=n))
            assert batch.why[f"c_{name}"].code == "stuck"
            assert "卡住" in batch.results[0].content
        assert threading.active_count() == threads
        free.set()
        lane = box.executor.gate.lanes._lanes[name]
        done = asyncio.Event()
        monkeypatch.setattr(type(lane), "next", lambda _: lane.active or done.set())
        await asyncio.wait_for(done.wait(), 5)
        monkeypatch.undo()
        box.executor.gate.breakers = Breakers(print)
        assert (lane.active, lane.left_behind) == (0, 0)
        assert (await one(box, name, n=200)).status == "ok"


# --- a tool that keeps failing


class Shaky:
    def __init__(self, box: Bench) -> None:
        self.box, self.clock, self.n = box, Clock(), 0
        self.told: list[str] = []
        breakers = Breakers(self.told.append, clock=self.clock)
        box.executor.gate.breakers = breakers
        self.mood = box.generation.tools["shaky"].function.__globals__["mood"]

    async def call(self, raises: BaseException | None = None) -> str:
        """What became of one call: its code, or ok."""
        self.mood["raises"], self.n = raises, self.n + 1
        batch = await self.box.run(call("shaky", n=self.n), scope=self.box.scope())
        why = batch.why.get("c_shaky")
        return why.code if why else "ok"


@contextmanager
def shaky(directory: Path) -> Iterator[Shaky]:
    with bench(directory, BROKEN) as box:
        yield Shaky(box)


async def test_a_tool_that_keeps_failing_is_left_alone_and_tried_once(tmp_path: Path):
    with shaky(tmp_path) as tool:
        for _ in range(FAILURES):
            assert await tool.call(RuntimeError("坏了")) == "failed"
        assert await tool.call() == "breaker"
        assert len(tool.told) == 1
        assert "shaky 连续失败 5 次" in tool.told[0]
        tool.clock.now += FIRST_PAUSE
        assert await tool.call(RuntimeError("还坏")) == "failed"  # the one that tries
        assert await tool.call() == "breaker"
        tool.clock.now += FIRST_PAUSE
        assert await tool.call() == "breaker"  # twice as long after a try that failed
        tool.clock.now += FIRST_PAUSE
        assert await tool.call() == "ok"
        assert await tool.call() == "ok"
        assert len(tool.told) == 1


async def test_only_one_call_tries_a_broken_tool(tmp_path: Path):
    with shaky(tmp_path) as tool:
        for _ in range(FAILURES):
            await tool.call(RuntimeError("坏了"))
        tool.clock.now += FIRST_PAUSE
        breakers = tool.box.executor.gate.breakers
        made = tool.box.generation.tools["shaky"]
        assert breakers.begin(made) is None
        assert breakers.begin(made) is not None
        breakers.report(made, "none")  # it was cancelled
        assert breakers.begin(made) is None


async def test_what_is_not_its_own_doing_does_not_count(tmp_path: Path):
    from chathands.errors import ToolDenied, ToolFailed, WorkerRejected

    with shaky(tmp_path) as tool:
        for error in (ToolFailed("没有这个城市。"), ToolDenied("不行。"), WorkerRejected("x")) * 5:
            assert await tool.call(error) in ("failed", "denied")
        for _ in range(FAILURES * 2):
            batch = await tool.box.run(call("shaky", n="几"))
            assert batch.why["c_shaky"].code == "invalid_arguments"
        assert await tool.call() == "ok"


async def test_a_success_between_begins_anew(tmp_path: Path):
    with shaky(tmp_path) as tool:
        for _ in range(3):
            for _ in range(FAILURES - 1):
                await tool.call(RuntimeError("坏了"))
            assert await tool.call() == "ok"


async def test_a_sentence_about_something_out_of_reach_counts(tmp_path: Path):
    from chathands.errors import ToolFailed

    with shaky(tmp_path) as tool:
        for _ in range(FAILURES):
            error = ToolFailed("天气服务连不上。")
            error.__cause__ = ConnectionRefusedError()
            assert await tool.call(error) == "failed"
        assert await tool.call() == "breaker"


async def test_a_tool_that_was_loaded_anew_begins_anew(tmp_path: Path):
    from chathands.toolbox import load_tools

    with shaky(tmp_path) as tool:
        for _ in range(FAILURES):
            await tool.call(RuntimeError("坏了"))
        path = tool.box.settings.tools_dir / "box.py"
        path.write_text(path.read_text("utf-8") + "\n# 修好了\n", "utf-8")
        tool.box.generation = load_tools(tool.box.settings.tools_dir, tool.box.settings).generation
        assert await tool.call() == "ok"


async def test_a_refusal_by_the_breaker_says_when_and_who(tmp_path: Path):
    with shaky(tmp_path) as tool:
        for _ in range(FAILURES):
            await tool.call(RuntimeError("坏了"))
        batch = await tool.box.run(call("shaky", n=99))
        assert "约 31 秒后自动再试" in batch.results[0].content
        assert "管理员" in batch.results[0].content
        assert batch.why["c_shaky"].retry_after == FIRST_PAUSE


# --- what may have happened


async def test_a_side_effect_in_doubt_needs_a_yes_in_the_next_run(tmp_path: Path):
    source = NOTE.replace(
        "    if text ==", "    if text == '悬':\n        raise KeyError\n    if text =="
    )
    with bench(tmp_path, source) as box:
        assert (await one(box, "note", text="悬")).status == "unknown"
        batch = await box.run(call("note", text="悬"), scope=box.scope())
        assert batch.pending is not None
        assert "可能已经做过" in batch.pending.reason
        assert (await one(box, "note", text="别的")).status == "ok"
        assert (await one(box, "note", OTHER, text="悬")).status == "unknown"  # another person's
        assert box.effects == ["note 悬", "note 别的", "note 悬"]
        private = Caller("1001", None, "member", "", "onebot11", "9")
        assert (await one(box, "note", private, text="悬")).status == "unknown"
        assert "私聊里没有人能确认" in (await one(box, "note", private, text="悬")).content


# --- a tool that fails again and again in one run


async def test_after_three_failures_the_tool_is_over_and_the_person_is_told(tmp_path: Path):
    with bench(tmp_path, NOTE, READ, SEND) as box:
        scope = box.scope()
        for n, arguments in enumerate(({"text": "坏"}, {"wrong": 1}, {"text": [5]}, {})):
            batch = await box.run(ToolCall("c", "note", arguments), scope=scope)
            assert ("不再执行它" in batch.results[0].content) == (n >= 2)
            assert batch.closes_run == (n > 2)
        told = [sentence for entry in scope.done for sentence in entry["told"]]
        assert len(told) == 1
        assert told[0].startswith("note（[5]）没有成功：参数")
        batch = await box.run(call("note", text="好的"), scope=scope)
        assert batch.closes_run
        assert batch.why["c_note"].code == "given_up"
        assert "note 好的" not in box.effects
        assert (await box.run(call("look", what="别的"), scope=scope)).results[0].status == "ok"


async def test_a_success_ends_the_row_of_failures(tmp_path: Path):
    with bench(tmp_path, NOTE) as box:
        scope = box.scope()
        for n in range(8):
            arguments = {"text": f"好 {n}"} if n % 3 == 2 else {"wrong": n}
            batch = await box.run(ToolCall("c", "note", arguments), scope=scope)
            assert batch.results[0].status == ("ok" if n % 3 == 2 else "failed")
        assert not any(entry["told"] for entry in scope.done)
