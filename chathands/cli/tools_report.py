"""`chathands tools report`: the traces of the last days, as a page."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Mapping
from typing import TYPE_CHECKING, Any

import typer

from chathands.errors import StoreError
from chathands.settings import Settings

if TYPE_CHECKING:
    from chathands.store import Store

MOST_RUNS = 100_000
"""Traces that are looked at, newest first; the store keeps far fewer by its size."""


async def show(settings: Settings, days: int | None, only: str | None) -> int:
    """Print the report; the exit code."""
    from chathands.agent.tool_report import Reading, report_lines
    from chathands.store import open_store
    from chathands.toolbox import Redactor

    reading = Reading(Redactor.of(settings).text)
    since = 0.0 if days is None else time.time() - days * 86400
    async with await open_store(settings.state_dir) as store:
        async for trace in _traces(store, since):
            reading.add(trace or {})
    for line in report_lines(reading.report, only):
        typer.echo(line)
    return 0


async def _traces(store: Store, since: float) -> AsyncIterator[Mapping[str, Any] | None]:
    """Each run's; None for one that is damaged."""
    seen: set[str] = set()
    for line in await store.traces.list(MOST_RUNS):
        # A run that went on after a restart has two, and reading the later one gives both.
        if line.started >= since and line.ref not in seen:
            seen.add(line.ref)
            try:
                yield await store.traces.get(line.ref)
            except StoreError:
                yield None
