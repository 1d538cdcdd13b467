"""Signals: a farewell first, then the server's own handler; a second one is obeyed at once."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Iterator

import pytest

from plugins.group_chat.lifecycle import Farewell


@pytest.fixture
def obeyed() -> Iterator[list[int]]:
    """What reaches the handler that was there before."""
    numbers: list[int] = []
    before = signal.signal(signal.SIGTERM, lambda number, _: numbers.append(number))
    yield numbers
    signal.signal(signal.SIGTERM, before)


async def test_the_farewell_comes_before_the_servers_handler(obeyed: list[int]):
    begun, said = asyncio.Event(), asyncio.Event()

    async def say() -> None:
        begun.set()
        await said.wait()

    farewell = Farewell(say)
    farewell.install()
    try:
        signal.raise_signal(signal.SIGTERM)
        async with asyncio.timeout(5):
            await begun.wait()
        assert obeyed == []
        signal.raise_signal(signal.SIGTERM)
        assert obeyed == [signal.SIGTERM]
        said.set()
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert len(obeyed) == 2
    finally:
        farewell.remove()


async def test_a_farewell_that_fails_does_not_keep_the_process(obeyed: list[int]):
    async def fail() -> None:
        raise ValueError("no connection")

    failures: list[dict] = []
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(lambda _, context: failures.append(context))
    farewell = Farewell(fail)
    farewell.install()
    try:
        signal.raise_signal(signal.SIGTERM)
        for _ in range(5):
            await asyncio.sleep(0)
        assert obeyed == [signal.SIGTERM]
    finally:
        farewell.remove()
        loop.set_exception_handler(None)


async def test_handlers_are_put_back(obeyed: list[int]):
    before = signal.getsignal(signal.SIGTERM)
    farewell = Farewell(lambda: asyncio.sleep(0))
    farewell.install()
    assert signal.getsignal(signal.SIGTERM) is not before
    farewell.remove()
    assert signal.getsignal(signal.SIGTERM) is before
