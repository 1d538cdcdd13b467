import asyncio

import pytest

from chathands.agent.locks import KeyedLocks


async def test_one_key_is_held_by_one_and_another_key_does_not_wait():
    locks = KeyedLocks()
    seen = []

    async def work(key, number):
        async with locks.hold(key):
            seen.append(("in", key, number))
            await asyncio.sleep(0)
            seen.append(("out", key, number))

    await asyncio.gather(work("a", 1), work("a", 2), work("b", 1))
    mine = [entry for entry in seen if entry[1] == "a"]
    assert mine == [("in", "a", 1), ("out", "a", 1), ("in", "a", 2), ("out", "a", 2)]
    assert seen.index(("in", "b", 1)) < seen.index(("out", "a", 2))
    assert len(locks) == 0


async def test_a_waiter_that_is_cancelled_leaves_nothing():
    locks = KeyedLocks()
    async with locks.hold("a"):
        waiter = asyncio.create_task(locks.hold("a").__aenter__())
        await asyncio.sleep(0)
        waiter.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiter
        assert len(locks) == 1
    assert len(locks) == 0


async def test_an_error_inside_releases():
    locks = KeyedLocks()
    with pytest.raises(ValueError, match="x"):
        async with locks.hold("a"):
            raise ValueError("x")
    async with locks.hold("a"):
        assert len(locks) == 1
