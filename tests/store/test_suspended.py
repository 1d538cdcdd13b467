import asyncio

import pytest

from chathands.store import SuspendedRow, open_store


@pytest.fixture
async def store(tmp_path):
    async with await open_store(tmp_path) as opened:
        yield opened


def row(approval_id: str, *, created: float = 1.0, number: int = 1) -> SuspendedRow:
    return SuspendedRow(
        approval_id=approval_id,
        run_id="A7F3-09",
        place="qq:1:42",
        number=number,
        created=created,
        expires_at=created + 60,
        data={"messages": [{"role": "user", "text": "发周报"}], "left": 12.5},
    )


async def test_a_waiting_run_comes_back_as_it_was(store):
    await store.suspended.put(row("a"))
    assert await store.suspended.take("a") == row("a")


async def test_it_is_taken_once(store):
    await store.suspended.put(row("a"))
    taken = await asyncio.gather(*(store.suspended.take("a") for _ in range(10)))
    assert [one for one in taken if one is not None] == [row("a")]
    assert store.suspended.rows == ()


async def test_two_processes_cannot_both_take_it(tmp_path, store):
    await store.suspended.put(row("a"))
    async with await open_store(tmp_path) as other:
        assert other.suspended.rows == (row("a"),)
        taken = await asyncio.gather(store.suspended.take("a"), other.suspended.take("a"))
        assert sum(one is not None for one in taken) == 1
        assert await store.suspended.list() == []


async def test_waiting_runs_survive_a_restart_in_their_order(tmp_path):
    async with await open_store(tmp_path / "s") as store:
        await store.suspended.put(row("b", created=2.0, number=2))
        await store.suspended.put(row("a", created=1.0))
    async with await open_store(tmp_path / "s") as store:
        assert [one.approval_id for one in store.suspended.rows] == ["a", "b"]
        assert await store.suspended.list() == list(store.suspended.rows)


async def test_putting_again_replaces(store):
    await store.suspended.put(row("a"))
    await store.suspended.put(row("a", number=7))
    assert [one.number for one in await store.suspended.list()] == [7]


async def test_a_cancelled_taker_does_not_leave_it_half_taken(store):
    await store.suspended.put(row("a"))
    task = asyncio.create_task(store.suspended.take("a"))
    await asyncio.sleep(0)
    task.cancel()
    await asyncio.wait([task])
    assert await store.suspended.list() == list(store.suspended.rows)
