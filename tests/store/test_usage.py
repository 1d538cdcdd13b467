"""Counts per person, place and day."""

from chathands.store import Used, open_store
from chathands.store.usage import KEPT_DAYS, UsageCounts

DAY = 86400.0


async def test_counts_are_there_after_a_restart(tmp_path):
    async with await open_store(tmp_path) as store:
        for _ in range(3):
            store.usage.question("g1", "1")
        store.usage.tokens("g1", "1", 500)
        store.usage.tokens("g1", "1", 0)
        store.usage.question("g2", "1")
        store.usage.question("g1", "2")
        assert store.usage.today("g1", "1") == Used(3, 500)
    async with await open_store(tmp_path) as store:
        assert store.usage.today("g1", "1") == Used(3, 500)
        assert store.usage.today("g1", "3") == Used()
        assert store.usage.today_in("g1") == [("1", Used(3, 500)), ("2", Used(1, 0))]
        store.usage.question("g1", "1")
        assert await store.usage.over("g1", "1", 30) == Used(4, 500)


async def test_a_new_day_begins_at_nothing_and_old_days_leave(tmp_path):
    now = [1_790_000_000.0]
    async with await open_store(tmp_path) as store:
        usage = UsageCounts(store._state, wall=lambda: now[0])
        await usage.load()
        usage.question("g1", "1")
        now[0] += DAY
        assert usage.today("g1", "1") == Used()
        assert usage.today_in("g1") == []
        usage.question("g1", "1")
        assert await usage.over("g1", "1", 2) == Used(2)
        assert await usage.over("g1", "1", 1) == Used(1)
        now[0] += (KEPT_DAYS + 2) * DAY
        later = UsageCounts(store._state, wall=lambda: now[0])
        await later.load()
        assert await later.over("g1", "1", 400) == Used()
