"""Brings records into a journal from many tasks at once: whoever comes while the disk works waits
for the next write, and one fsync answers for all of them (group commit).

One thread owns the journal, so its calls need no lock and nothing waits in the event loop.
"""

from __future__ import annotations

import logging
import queue
import threading
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from chathands.toolbox.journal import Journal

logger = logging.getLogger(__name__)

MOST_AT_ONCE = 512
"""Lines of one write; a line is under 5 KB as a rule, so that is some 2 MB at worst."""

SYNC_SECONDS = 1.0
"""How long a line nobody waits for may stay off the disk, and how often writing is tried again
while outcomes are owed."""

MOST_OWED = 1000
"""Outcomes kept for a disk that has no space; beyond that the next start calls them unknown."""


@dataclass(slots=True)
class _Waiting:
    record: dict[str, Any]
    durable: bool = True
    owed: bool = False
    """Kept and tried again when the disk does not take it: it speaks of what has happened."""
    done: Future[int] = field(default_factory=Future)


class GroupWriter:
    """Hand records in with `put`; `close()` writes what is waiting and gives the journal up."""

    def __init__(
        self,
        journal: Journal,
        *,
        keep_seconds: float = 0,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """`keep_seconds`: after so long old segments go, when one is full; 0: never."""
        self._journal = journal
        self._keep = keep_seconds
        self._clock = clock
        self._queue: queue.SimpleQueue[_Waiting | None] = queue.SimpleQueue()
        self._owed: deque[dict[str, Any]] = deque(maxlen=MOST_OWED)
        self._full = False
        self._synced = time.monotonic()
        self._closed = False
        self._handing = threading.Lock()
        self._thread = threading.Thread(target=self._work, name="audit", daemon=True)
        self._thread.start()

    def put(
        self, record: dict[str, Any], *, durable: bool = True, owed: bool = False
    ) -> Future[int]:
        """The line's number once it is written (durable: on the disk), or OSError; ValueError for
        what is no JSON. Raises OSError when closed."""
        waiting = _Waiting(record, durable, owed)
        with self._handing:
            if self._closed:
                raise OSError("the audit trail is closed")
            self._queue.put(waiting)
        return waiting.done

    def flush(self) -> None:
        """Return when what was handed in before is written or has failed. Blocking."""
        waiting = _Waiting({}, durable=False)
        with self._handing:
            if self._closed:
                return
            self._queue.put(waiting)
        waiting.done.result()

    def close(self) -> None:
        """Idempotent."""
        with self._handing:
            if not self._closed:
                self._closed = True
                self._queue.put(None)
        self._thread.join()

    def _work(self) -> None:
        going = True
        while going:
            batch = self._taken()
            if batch and batch[-1] is None:
                going = False
            waiting = [one for one in batch if one and one.done.set_running_or_notify_cancel()]
            try:
                if waiting:
                    self._write(waiting)
                if not waiting or time.monotonic() - self._synced > SYNC_SECONDS:
                    self._idle()
            except Exception as error:  # the thread must live: nothing is written without it
                logger.exception("audit: the writer failed")
                for one in waiting:
                    if not one.done.done():
                        one.done.set_exception(OSError(f"the audit writer failed: {error}"))
        with suppress(OSError):
            self._pay()
        self._journal.close()

    def _taken(self) -> list[_Waiting | None]:
        """Everything that waits; an empty list after a second in which there was something left to
        do without it."""
        restless = self._journal.dirty or self._owed
        batch: list[_Waiting | None] = []
        with suppress(queue.Empty):
            batch.append(self._queue.get(timeout=SYNC_SECONDS if restless else None))
            while batch[-1] is not None and len(batch) < MOST_AT_ONCE:
                batch.append(self._queue.get_nowait())
        return batch

    def _idle(self) -> None:
        self._synced = time.monotonic()
        try:
            self._pay()
            self._journal.sync()
        except OSError as error:
            self._trouble(error)

    def _pay(self) -> None:
        """Write the outcomes that a full disk did not take. Raises OSError."""
        if self._owed:
            self._journal.append_all(list(self._owed), durable=True)
            logger.warning("audit: %d outcomes written that waited for space", len(self._owed))
            self._owed.clear()

    def _write(self, waiting: list[_Waiting]) -> None:
        lines = [one for one in waiting if one.record]
        try:
            self._pay()
            results = self._journal.append_all(
                [one.record for one in lines], durable=any(one.durable for one in lines)
            )
        except OSError as error:
            self._trouble(error)
            for one in waiting:
                if one.owed:
                    self._owed.append(one.record)
                one.done.set_exception(error)
            return
        if self._full and lines:
            self._full = False
            logger.warning("audit: it can be written again")
        for one, result in zip(lines, results, strict=True):
            if isinstance(result, Exception):
                one.done.set_exception(result)
            else:
                one.done.set_result(result)
        for one in waiting:
            if not one.record:
                one.done.set_result(0)
        if self._journal.rotated:
            self._journal.rotated = False
            self._prune()

    def _prune(self) -> None:
        now = self._clock()
        if self._keep > 0:
            try:
                self._journal.prune(now - self._keep, now)
            except OSError as error:
                logger.error("audit: old segments stay: %s", error)

    def _trouble(self, error: OSError) -> None:
        if not self._full:
            self._full = True
            logger.error("audit: cannot be written, so that nothing is changed: %s", error)
