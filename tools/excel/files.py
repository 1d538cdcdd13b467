"""Opens the file a call names, and runs a worker function on it."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any

from chathands.errors import ToolFailed, WorkerRejected
from chathands.toolbox import FileRoots, OpenFile, ToolContext

from .matching import clear_match

SUFFIXES = (".xlsx", ".xlsm", ".xls", ".xlsb", ".ods", ".csv", ".tsv")

MARGIN_SECONDS = 0.5
"""Kept of the call's time, so that a slow file is told in the worker's words and not cut off."""


@dataclass(frozen=True, slots=True)
class Taken:
    """`asked`: what was said, if the file was found by guessing; the answer then says so."""

    file: OpenFile
    asked: str | None = None


async def run_on_file(
    ctx: ToolContext, file_path: str, function: str, payload: dict[str, Any]
) -> tuple[str, str | None, dict[str, Any]]:
    """(the file's name, what was asked if it was guessed, what the worker function returned).

    Raises ToolFailed, ToolDenied or WorkerLimit, each with a sentence.
    """
    taken = await asyncio.to_thread(_open, ctx.files, file_path)
    with taken.file as file:
        payload = payload | {
            "name": file.name,
            # Salary sheets are hidden for a reason.
            "hidden": ctx.caller.audience != "everyone",
        }
        try:
            result = await ctx.workers.run(
                function, payload, timeout=ctx.remaining() - MARGIN_SECONDS, file=file.fd
            )
        except WorkerRejected as rejected:
            raise ToolFailed(rejected.sentence, detail=str(rejected)) from rejected
    return file.name, taken.asked, result


def _open(files: FileRoots, path: str) -> Taken:
    """Raises ToolFailed with the nearest names when it is not clear which file is meant."""
    try:
        return Taken(files.open(path))
    except ToolFailed:
        match = clear_match(path, [entry.name for entry in files.list(SUFFIXES)])
        if match is None:
            raise
        return Taken(files.open(match), path.strip()[:80])
