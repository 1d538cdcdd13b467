"""Traces of runs in a file of their own, written in the background and kept for a while."""

from __future__ import annotations

import asyncio
import logging
import time
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from chathands.errors import StoreError
from chathands.store import codec
from chathands.store.db import Database, Row

_log = logging.getLogger(__name__)

QUEUE_LENGTH = 256
"""Traces waiting to be written; beyond it the disk is the problem and new ones are dropped."""

CLEAN_EVERY = 50
"""Traces between two looks at age and size."""

SCHEMA = (
    """
    CREATE TABLE traces (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        ref TEXT NOT NULL,
        started REAL NOT NULL,
        place TEXT NOT NULL,
        question TEXT NOT NULL,
        outcome TEXT NOT NULL,
        verdict TEXT NOT NULL,
        size INTEGER NOT NULL,
        data BLOB NOT NULL,
        UNIQUE (ref, started)
    )
    """,
    "CREATE INDEX traces_started ON traces (started)",
)

Redact = Callable[[str], str]


@dataclass(frozen=True, slots=True)
class TraceLine:
    """A trace in a list."""

    ref: str
    started: float
    place: str
    question: str
    outcome: str
    verdict: str


class Traces:
    """Write with `record`, which returns at once; read with `last`, `get` and `list`.

    A trace is a JSON-safe dict with at least `ref` and `started`; recording the same pair again
    replaces it (a run that was suspended and went on).
    """

    def __init__(
        self, database: Database, *, days: float, megabytes: float, redact: Redact | None = None
    ) -> None:
        self._database = database
        self._seconds = days * 86400
        self._bytes = int(megabytes * 1024 * 1024)
        self._redact = redact
        self._queue: asyncio.Queue[Mapping[str, Any]] = asyncio.Queue(QUEUE_LENGTH)
        self._writer: asyncio.Task[None] | None = None
        self._since_cleaning = CLEAN_EVERY
        self._closing = False

    def record(self, trace: Mapping[str, Any]) -> None:
        """Hand over a trace, which is not changed afterwards. Never waits and never raises."""
        if self._closing:
            _log.warning("trace %s came after closing and is lost", trace.get("ref"))
            return
        try:
            self._queue.put_nowait(trace)
        except asyncio.QueueFull:
            _log.warning("trace %s dropped: the trace file does not keep up", trace.get("ref"))
            return
        if self._writer is None or self._writer.done():
            self._writer = asyncio.create_task(self._write_all(), name="chathands-traces")

    async def flush(self) -> None:
        """Wait until everything recorded so far is on disk (or was given up, and logged)."""
        await self._queue.join()

    async def last(self) -> dict[str, Any] | None:
        """The newest trace, as `get` gives it; None when there is none. Raises StoreError."""
        await self.flush()
        rows = await self._database.query("SELECT ref FROM traces ORDER BY id DESC LIMIT 1")
        return await self.get(rows[0][0]) if rows else None

    async def get(self, ref: str) -> dict[str, Any] | None:
        """The newest trace with this reference, forgiving O for 0, I and L for 1, and case.

        When it says that it `goes_on`, the one before it is in its key `earlier`.
        Raises StoreError.
        """
        await self.flush()
        newest = "WHERE ref = ? ORDER BY id DESC LIMIT 1"
        trace = await self._one(newest, [normal_ref(ref)])
        if trace is not None and trace.get("goes_on"):
            trace["earlier"] = await self._one(f"{newest} OFFSET 1", [normal_ref(ref)])
        return trace

    async def list(self, count: int = 20, *, place: str = "") -> list[TraceLine]:
        """The newest `count` traces whose place begins with `place`, newest first.

        Raises StoreError.
        """
        await self.flush()
        rows = await self._database.query(
            "SELECT ref, started, place, question, outcome, verdict FROM traces"
            " WHERE substr(place, 1, ?) = ? ORDER BY id DESC LIMIT ?",
            [len(place), place, count],
        )
        return [TraceLine(*row) for row in rows]

    async def aclose(self) -> None:
        """Write what waits and close the file."""
        self._closing = True
        await self.flush()
        if self._writer is not None:
            self._writer.cancel()
            await asyncio.wait([self._writer])
        await self._database.aclose()

    async def _one(self, clause: str, parameters: list[Any]) -> dict[str, Any] | None:
        rows = await self._database.query(f"SELECT data FROM traces {clause}", parameters)
        return await asyncio.to_thread(_unpack, rows[0]) if rows else None

    async def _write_all(self) -> None:
        while True:
            trace = await self._queue.get()
            try:
                await self._write(trace)
            except (StoreError, TypeError, ValueError):  # the latter two: not JSON-safe
                _log.warning("trace %s could not be written", trace.get("ref"), exc_info=True)
            finally:
                self._queue.task_done()

    async def _write(self, trace: Mapping[str, Any]) -> None:
        clean, data = await asyncio.to_thread(_pack, trace, self._redact)
        await self._database.query(
            "INSERT OR REPLACE INTO traces"
            " (ref, started, place, question, outcome, verdict, size, data)"
            " VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            [
                normal_ref(clean["ref"]),
                clean["started"],
                _column(clean.get("place")),
                _column(clean.get("question")),
                _column(clean.get("outcome")),
                _column(clean.get("verdict")),
                len(data),
                data,
            ],
        )
        self._since_cleaning += 1
        if self._since_cleaning >= CLEAN_EVERY:
            self._since_cleaning = 0
            await self.clean()

    async def clean(self) -> None:
        """Drop what is too old, then the oldest until the rest fits. Raises StoreError."""
        await self._database.query(
            "DELETE FROM traces WHERE started < ?", [time.time() - self._seconds]
        )
        await self._database.query(
            "DELETE FROM traces WHERE id IN (SELECT id FROM ("
            "SELECT id, sum(size) OVER (ORDER BY id DESC) AS total FROM traces"
            ") WHERE total > ?)",
            [self._bytes],
        )
        await self._database.query("PRAGMA incremental_vacuum")


def normal_ref(ref: str) -> str:
    """A reference as people type it, in the form it is stored in (Crockford's base 32)."""
    return ref.strip().upper().translate(str.maketrans("OIL", "011"))


def _column(value: Any) -> str:
    """Short text for lists; lone surrogates would be refused by SQLite."""
    return str(value or "").encode("utf-8", "replace").decode("utf-8")[:200]


def _pack(trace: Mapping[str, Any], redact: Redact | None) -> tuple[dict[str, Any], bytes]:
    clean = codec.plain(trace) if redact is None else _redacted(trace, redact)
    return clean, zlib.compress(codec.dumps(clean), 3)


def _unpack(row: Row) -> dict[str, Any]:
    try:
        return codec.loads(zlib.decompress(row[0]))
    except zlib.error as error:
        raise StoreError(f"a stored trace cannot be read: {error}") from error


def _redacted(value: Any, redact: Redact) -> Any:
    if isinstance(value, str):
        return redact(value)
    if isinstance(value, Mapping):
        return {redact(str(key)): _redacted(item, redact) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_redacted(item, redact) for item in value]
    return value
