"""Synchronous tool functions, each in a daemon thread of its own.

Not the loop's default executor: a hung function would keep one of its few threads for good, and
the interpreter waits for them when it ends.
"""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections.abc import Callable
from typing import Any

from chathands.errors import ToolFailed
from chathands.toolbox.lanes import current_stay

MAX_THREADS = 128
"""Threads that may be alive at once: of one tool at most 64 work and 4 hang (`lanes`). A hung one
cannot be killed; past this a refusal is kinder."""

_slots = threading.BoundedSemaphore(MAX_THREADS)


async def run_in_thread(function: Callable[[], Any]) -> Any:
    """What `function` returns or raises. Cancelling stops the waiting, never the thread."""
    if not _slots.acquire(blocking=False):
        raise ToolFailed("同时运行的工具太多，请稍后再试。", detail="no thread left")
    loop = asyncio.get_running_loop()
    future: asyncio.Future[Any] = loop.create_future()
    context = contextvars.copy_context()
    stay = current_stay.get()

    def settle(result: Any, error: Exception | None) -> None:
        if stay is not None:
            stay.let_go()
        if future.done():
            return
        if error is not None:
            future.set_exception(error)
        else:
            future.set_result(result)

    def work() -> None:
        result, error = None, None
        try:
            result = context.run(function)
        except StopIteration as stop:  # a future does not take it
            error = RuntimeError(f"tool raised StopIteration: {stop}")
        except Exception as raised:
            error = raised
        except BaseException as raised:  # sys.exit() in a tool must not end the bot
            error = RuntimeError(f"tool raised {type(raised).__name__}")
        finally:
            _slots.release()
        try:
            loop.call_soon_threadsafe(settle, result, error)
        except RuntimeError:
            return  # the loop is closed: nobody waits any more

    if stay is not None:
        stay.hold()
    try:
        threading.Thread(target=work, name="sync-tool", daemon=True).start()
    except RuntimeError:  # the system gives no more threads
        _slots.release()
        if stay is not None:
            stay.let_go()
        raise
    return await future
