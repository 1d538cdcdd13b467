"""A loop whose clock jumps to the next timer, so that a 60 s deadline is tested in milliseconds.

    def test_something():
        async def story(): ...
        run_virtual(story())

Work in the loop's executors and futures of other threads (`asyncio.wrap_future`: the writer of the
audit trail) are waited for in real time before the clock moves; so is everything inside `with
real_time():` (child processes, other threads). Other real I/O (sockets on loopback, a tool's own
thread) gets `patience` real seconds before each jump.
"""

from __future__ import annotations

import asyncio
import selectors
import time
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any

STEP = 0.02


class VirtualLoop(asyncio.SelectorEventLoop):
    def __init__(self, patience: float = 0.01, limit: float = 30) -> None:
        self.now = 1000.0
        self.held = 0
        self.patience = patience
        self.end = time.monotonic() + limit
        selector = _JumpingSelector()
        selector.loop = self
        super().__init__(selector)

    def time(self) -> float:
        return self.now

    def run_in_executor(self, executor: Any, func: Callable[..., Any], *args: Any) -> Any:
        future = super().run_in_executor(executor, func, *args)
        self.held += 1
        future.add_done_callback(lambda _: self._release())
        return future

    async def shutdown_default_executor(self, timeout: Any = None) -> None:  # noqa: ASYNC109
        """Python 3.12 and later give its threads 300 s: of a clock that does not jump meanwhile."""
        self.held += 1
        try:
            await super().shutdown_default_executor()
        finally:
            self.held -= 1

    def _release(self) -> None:
        self.held -= 1


class _JumpingSelector(selectors.DefaultSelector):
    loop: VirtualLoop

    def select(self, timeout: float | None = None) -> Any:
        ready = super().select(0)
        if ready or timeout == 0:
            return ready
        if time.monotonic() > self.loop.end:
            raise AssertionError("the virtual loop waited too long for something real")
        if self.loop.held or timeout is None:
            return super().select(STEP)
        ready = super().select(self.loop.patience) if self.loop.patience else []
        if not ready:
            self.loop.now += timeout or 0
        return ready


@contextmanager
def real_time() -> Iterator[None]:
    """The clock of the running virtual loop stands still inside."""
    loop = asyncio.get_running_loop()
    assert isinstance(loop, VirtualLoop)
    loop.held += 1
    try:
        yield
    finally:
        loop.held -= 1


def run_virtual(
    story: Coroutine[Any, Any, Any], *, patience: float = 0.01, limit: float = 30
) -> Any:
    """What `story` returns, run on a virtual clock; `limit` is in real seconds."""
    factory = lambda: VirtualLoop(patience, limit)  # noqa: E731
    with _held_for_threads(), asyncio.Runner(loop_factory=factory) as runner:
        return runner.run(story)


@contextmanager
def _held_for_threads() -> Iterator[None]:
    wrap = asyncio.wrap_future

    def held(future: Any, *, loop: Any = None) -> Any:
        running = asyncio.get_running_loop()
        assert isinstance(running, VirtualLoop)
        wrapped = wrap(future, loop=loop)
        running.held += 1
        wrapped.add_done_callback(lambda _: running._release())
        return wrapped

    asyncio.wrap_future = held
    try:
        yield
    finally:
        asyncio.wrap_future = wrap


def virtual(story: Callable[..., Coroutine[Any, Any, Any]]) -> Callable[..., None]:
    """Decorator: an async test that runs on a virtual clock."""

    @wraps(story)
    def test(*args: Any, **kwargs: Any) -> None:
        run_virtual(story(*args, **kwargs))

    return test
