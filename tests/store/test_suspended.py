import asyncio
import sqlite3
from dataclasses import replace

import pytest

from chathands.store import STATE_FILE, SuspendedRow, open_store


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
    assert store.suspended.rows == (row("a"),)
    assert await store.suspended.list() == [row("a")]


def at(number: int, *, created: float, place: str = "qq:1:42") -> SuspendedRow:
    one = row(f"{place}#{number}@{created}", created=created, number=number)
    return replace(one, place=place)


async def test_a_number_rests_for_an_hour_after_its_approval_ended(store):
    first = at(store.suspended.free_number("qq:1:42", 0), created=0)
    await store.suspended.put(first)
    assert store.suspended.free_number("qq:1:42", 1e6) == 2  # it still waits
    await store.suspended.take(first.approval_id, now=2000.0)  # expired late: it was not running
    assert store.suspended.free_number("qq:1:42", 2000.0) == 2
    assert store.suspended.free_number("qq:1:43", 2000.0) == 1
    assert store.suspended.free_number("qq:1:42", 5599.0) == 2
    assert store.suspended.free_number("qq:1:42", 5600.0) == 1


async def test_numbers_rest_over_a_restart(tmp_path):
    async with await open_store(tmp_path) as store:
        await store.suspended.put(at(1, created=0))
        await store.suspended.put(at(2, created=0))
        await store.suspended.take(at(1, created=0).approval_id, now=30.0)
    async with await open_store(tmp_path) as store:
        assert store.suspended.free_number("qq:1:42", 100.0) == 3
        await store.suspended.take(at(2, created=0).approval_id, now=9000.0)
        assert store.suspended.free_number("qq:1:42", 9000.0) == 1


@pytest.mark.parametrize("data", [b"\xff", "{}", 5, b"[" * 100_000])
async def test_one_that_cannot_be_read_does_not_keep_the_rest_from_starting(tmp_path, data):
    async with await open_store(tmp_path) as store:
        await store.suspended.put(row("a"))
        await store.suspended.put(row("b", created=2.0, number=2))
    with sqlite3.connect(tmp_path / STATE_FILE) as database:
        database.execute("UPDATE suspended SET data = ? WHERE approval_id = 'a'", [data])
    database.close()
    async with await open_store(tmp_path) as store:
        assert [one.approval_id for one in store.suspended.rows] == ["b"]
