"""Waiting for what must not be left half done, whoever is cancelled meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import TypeVar

import anyio

T = TypeVar("T")


async def undisturbed(work: Awaitable[T]) -> tuple[T, bool]:
    """(the result of `work`, whether we were cancelled meanwhile).

    Whoever gets True has to raise CancelledError when it has tidied up. The shield is for callers
    inside the `mcp` package, whose way to cancel comes again and again.
    """
    task = asyncio.ensure_future(work)
    cancelled = False
    with anyio.CancelScope(shield=True):
        while not task.done():
            try:
                await asyncio.wait({task})
            except asyncio.CancelledError:
                cancelled = True
    return task.result(), cancelled
