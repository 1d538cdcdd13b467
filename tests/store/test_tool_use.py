"""How often somebody has used a tool today outlives a restart, but not the day."""

from chathands.store import ToolUse, open_store
from chathands.toolbox import Caller, Executor
from tests.toolbox.kit import READ, bench, call

DAY = 86400.0


async def test_counts_of_today_are_there_after_a_restart(tmp_path):
    async with await open_store(tmp_path) as store:
        for _ in range(3):
            store.tool_use.count("qq:1", "push")
        store.tool_use.count("qq:2", "push")
    async with await open_store(tmp_path) as store:
        assert store.tool_use.today("qq:1", "push") == 3
        assert store.tool_use.today("qq:2", "push") == 1
        assert store.tool_use.today("qq:1", "look") == 0


async def test_two_processes_add_to_the_same_count(tmp_path):
    async with await open_store(tmp_path) as one, await open_store(tmp_path) as other:
        one.tool_use.count("http:报表", "push")
        await one.tool_use.flush()
        other.tool_use.count("http:报表", "push")
        await other.tool_use.flush()
        one.tool_use.count("http:报表", "push")
    async with await open_store(tmp_path) as store:
        assert store.tool_use.today("http:报表", "push") == 3


async def test_a_new_day_begins_at_nothing_and_the_old_one_leaves(tmp_path):
    now = [1_790_000_000.0]
    async with await open_store(tmp_path) as store:
        use = ToolUse(store._state, wall=lambda: now[0])
        await use.load()
        use.count("qq:1", "push")
        now[0] += DAY
        assert use.today("qq:1", "push") == 0
        use.count("qq:1", "push")
        assert use.today("qq:1", "push") == 1
        await use.flush()
        await use.load()
        rows = await store._state.query("SELECT calls FROM tool_use")
        assert [tuple(row) for row in rows] == [(1,)]


async def test_a_disk_that_fails_stops_nobody(tmp_path, caplog):
    async with await open_store(tmp_path) as store:
        use = store.tool_use
        await store._state.query("DROP TABLE tool_use")
        use.count("qq:1", "push")
        await use.flush()
        assert use.today("qq:1", "push") == 1
    assert "could not be written" in caplog.text


async def test_a_quota_holds_after_a_restart(tmp_path):
    someone = Caller("1", "2", "member", "", "onebot11", "9")
    with bench(tmp_path, READ, toml="[tools.look]\nquota = 2\n") as box:
        for n in range(3):
            async with await open_store(tmp_path / "store") as store:
                made = Executor(
                    box.settings, box.executor.policy, box.audit, None, None, daily=store.tool_use
                )
                batch = await made.run_batch([call("look", what=str(n))], box.scope(someone))
                assert batch.results[0].status == ("ok" if n < 2 else "denied")
        assert batch.why["c_look"].code == "quota"
