"""A lock between processes that the system takes back when its holder dies."""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path

POLL_SECONDS = 0.5
"""The systems' own waiting calls would block a thread that cannot be cancelled."""


@contextlib.asynccontextmanager
async def file_lock(path: Path, on_wait: Callable[[], None]) -> AsyncIterator[None]:
    """Held by one task of one process at a time. `on_wait` is called once if one has to wait.

    The file stays: deleting it would let two hold "the" lock on two files of one name. Raises
    OSError where the file cannot be made or the file system knows no locks.
    """
    with path.open("a+b") as file:
        descriptor = file.fileno()
        if not _try_lock(descriptor):
            on_wait()
            while not _try_lock(descriptor):  # noqa: ASYNC110 - another process sets no event
                await asyncio.sleep(POLL_SECONDS)
        try:
            yield
        finally:
            _unlock(descriptor)


if sys.platform == "win32":
    import msvcrt

    def _try_lock(descriptor: int) -> bool:
        os.lseek(descriptor, 0, os.SEEK_SET)
        try:
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        return True

    def _unlock(descriptor: int) -> None:
        os.lseek(descriptor, 0, os.SEEK_SET)
        msvcrt.locking(descriptor, msvcrt.LK_UNLCK, 1)

else:
    import fcntl

    def _try_lock(descriptor: int) -> bool:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def _unlock(descriptor: int) -> None:
        fcntl.flock(descriptor, fcntl.LOCK_UN)
