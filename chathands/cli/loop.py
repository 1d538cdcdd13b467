"""Runs coroutines from the main thread, so that Ctrl-C interrupts `input()` and runs alike."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine
from types import TracebackType
from typing import Any, Self, TypeVar

T = TypeVar("T")


class LoopThread:
    """An event loop in its own thread.

    `input()` cannot be cancelled from a coroutine; in the main thread Ctrl-C just raises.
    """

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(timeout=5)
        if not self._thread.is_alive():
            self._loop.run_until_complete(self._loop.shutdown_asyncgens())
            self._loop.run_until_complete(self._loop.shutdown_default_executor())
            self._loop.close()

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """The coroutine's result; Ctrl-C cancels it, waits for its end, and raises."""
        future = asyncio.run_coroutine_threadsafe(coroutine, self._loop)
        try:
            return future.result()
        except KeyboardInterrupt:
            future.cancel()
            self._settle()
            raise

    def _settle(self) -> None:
        """Wait until cancelled tasks have ended, so that what they leave behind can be read."""

        async def others() -> None:
            tasks = [t for t in asyncio.all_tasks() if t is not asyncio.current_task()]
            cancelling = [t for t in tasks if t.cancelling()]
            if cancelling:
                await asyncio.wait(cancelling, timeout=5)

        asyncio.run_coroutine_threadsafe(others(), self._loop).result()
