"""State on disk: conversations, suspended runs, traces. Nothing here knows what they mean."""

from __future__ import annotations

import logging
import time
from contextlib import AsyncExitStack
from pathlib import Path

from chathands.errors import StoreError
from chathands.store import (
    conversations,
    idempotency,
    places,
    reminders,
    suspended,
    tickets,
    tool_use,
    traces,
    usage,
)
from chathands.store.conversations import Conversations as Conversations
from chathands.store.conversations import Round as Round
from chathands.store.conversations import Summary as Summary
from chathands.store.db import Database
from chathands.store.idempotency import IdempotencyKeys as IdempotencyKeys
from chathands.store.places import EVERYWHERE as EVERYWHERE
from chathands.store.places import Places as Places
from chathands.store.reminders import Reminders as Reminders
from chathands.store.suspended import SuspendedRow as SuspendedRow
from chathands.store.suspended import SuspendedRuns as SuspendedRuns
from chathands.store.tickets import TicketRow as TicketRow
from chathands.store.tickets import Tickets as Tickets
from chathands.store.tool_use import ToolUse as ToolUse
from chathands.store.traces import Redact
from chathands.store.traces import TraceLine as TraceLine
from chathands.store.traces import Traces as Traces
from chathands.store.usage import UsageCounts as UsageCounts
from chathands.store.usage import Used as Used

__all__ = [
    "EVERYWHERE",
    "Conversations",
    "IdempotencyKeys",
    "Places",
    "Reminders",
    "Round",
    "Store",
    "Summary",
    "SuspendedRow",
    "SuspendedRuns",
    "TicketRow",
    "Tickets",
    "ToolUse",
    "TraceLine",
    "Traces",
    "UsageCounts",
    "Used",
    "open_store",
]

_log = logging.getLogger(__name__)

STATE_FILE = "state.db"
TRACE_FILE = "traces.db"

_STATE_MIGRATIONS = (
    (*conversations.SCHEMA, *suspended.SCHEMA),
    suspended.NUMBERS_SCHEMA,
    (*conversations.SUMMARY_SCHEMA, *places.SCHEMA, *usage.SCHEMA),
    (*tickets.SCHEMA, *idempotency.SCHEMA),
    tool_use.SCHEMA,
    reminders.SCHEMA,
)
_TRACE_MIGRATIONS = (traces.SCHEMA,)


class Store:
    """The open files of a state directory. End it with `await aclose()` or use `async with`."""

    def __init__(
        self, state: Database, traces: Traces, *, memory_days: float | None = None
    ) -> None:
        self._state = state
        self.conversations = Conversations(state, days=memory_days)
        self.places = Places(state)
        self.usage = UsageCounts(state)
        self.tool_use = ToolUse(state)
        self.suspended = SuspendedRuns(state)
        self.tickets = Tickets(state)
        self.idempotency = IdempotencyKeys(state)
        self.reminders = Reminders(state)
        self.traces = traces

    async def aclose(self) -> None:
        """Write what waits and close both files."""
        try:
            await self.traces.aclose()
            await self.usage.flush()
            await self.tool_use.flush()
        finally:
            await self._state.aclose()

    async def __aenter__(self) -> Store:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.aclose()


async def open_store(
    state_dir: Path,
    *,
    trace_days: float = 7,
    trace_mb: float = 500,
    memory_days: float | None = None,
    redact: Redact | None = None,
) -> Store:
    """Open or create the files below `state_dir`; `redact` takes secrets out of what traces keep.

    Raises StoreError when the state cannot be used. A broken trace file is only moved aside:
    nobody should lose their bot to a diagnosis.
    """
    async with AsyncExitStack() as undo:
        state = await Database.open(state_dir / STATE_FILE, _STATE_MIGRATIONS)
        undo.push_async_callback(state.aclose)
        trace_file = await _open_traces(state_dir / TRACE_FILE)
        undo.push_async_callback(trace_file.aclose)
        # What a person had forgotten must not be found in the file's free pages.
        await state.query("PRAGMA secure_delete = ON")
        kept = Traces(trace_file, days=trace_days, megabytes=trace_mb, redact=redact)
        store = Store(state, kept, memory_days=memory_days)
        await store.suspended.list()
        await store.places.load()
        await store.usage.load()
        await store.tool_use.load()
        try:
            await store.conversations.sweep()
        except StoreError:  # what has expired is not read all the same
            _log.warning("expired conversations could not be removed", exc_info=True)
        undo.pop_all()
    return store


async def _open_traces(path: Path) -> Database:
    try:
        return await Database.open(path, _TRACE_MIGRATIONS, synchronous="NORMAL")
    except StoreError:
        aside = path.with_name(f"{path.name}.broken-{int(time.time())}")
        _log.warning("the trace file cannot be read and becomes %s", aside.name, exc_info=True)
        _move(path, aside)
        return await Database.open(path, _TRACE_MIGRATIONS, synchronous="NORMAL")


def _move(path: Path, aside: Path) -> None:
    try:
        path.replace(aside)
    except OSError as error:
        raise StoreError(f"{path}: {error}") from error
    for suffix in ("-wal", "-shm"):
        path.with_name(path.name + suffix).unlink(missing_ok=True)
