"""Opens the files a call names, and runs a worker function on them."""

from __future__ import annotations

import asyncio
import contextlib
import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from chathands.errors import ToolDenied, ToolFailed, WorkerRejected
from chathands.toolbox import FileRoots, OpenFile, ToolContext
from chathands.toolbox.files import FileEntry

from .saying import meant_by

SUFFIXES = (".xlsx", ".xlsm", ".xls", ".xlsb", ".ods", ".csv", ".tsv")

MARGIN_SECONDS = 0.5
"""Kept of the call's time, so that a slow file is told in the worker's words and not cut off."""

_NAMED = 6


@dataclass(frozen=True, slots=True)
class Found:
    """The files that may be meant, or what to say when there are none. `by_time`: none is called
    so, they were taken for when they were changed."""

    files: Sequence[FileEntry]
    missing: str = ""
    by_time: bool = False


@dataclass(frozen=True, slots=True)
class Taken:
    """`asked`: what was said, if the file was found by guessing; the answer then says so."""

    file: OpenFile
    asked: str | None = None


def files_meant(files: FileRoots, said: str, now: dt.datetime | None = None) -> Found:
    """Every file that `said` may mean, the latest first; all there are when nothing is said."""
    entries = sorted(files.list(SUFFIXES), key=lambda entry: -entry.modified)
    if not entries:
        return Found((), "现在没有可读的表格文件。把文件发到群里，或请管理员放进 data/shared。")
    said = said.strip()
    if not said:
        return Found(entries)
    if same := [entry for entry in entries if entry.name == said]:
        return Found(same)
    found, by_time = meant_by(said, entries, now or dt.datetime.now())
    if found:
        return Found(found, "", by_time)
    near = files.nearest(said) or [entry.name for entry in entries[:_NAMED]]
    return Found((), f"没有找到「{said[:80]}」。现有的表格有：{'、'.join(near[:_NAMED])}。")


async def run(
    ctx: ToolContext, function: str, payload: dict[str, Any], files: Sequence[int] = ()
) -> dict[str, Any]:
    """What the worker function returned. Raises ToolFailed or WorkerLimit with a sentence."""
    try:
        return await ctx.workers.run(
            function, payload, timeout=ctx.remaining() - MARGIN_SECONDS, file=files
        )
    except WorkerRejected as rejected:
        raise ToolFailed(rejected.sentence, detail=str(rejected)) from rejected


async def run_on_file(
    ctx: ToolContext, file_path: str, function: str, payload: dict[str, Any]
) -> tuple[str, str | None, dict[str, Any]]:
    """(the file's name, what was asked if it was guessed, what the worker function returned).

    Raises ToolFailed, ToolDenied or WorkerLimit, each with a sentence.
    """
    taken = await asyncio.to_thread(_open, ctx.files, file_path)
    with taken.file as file:
        payload = payload | {"name": file.name, "hidden": _may_see_hidden(ctx)}
        result = await run(ctx, function, payload, [file.fd])
    return file.name, taken.asked, result


async def run_on_files(
    ctx: ToolContext, paths: tuple[str, str], function: str, payload: dict[str, Any]
) -> tuple[list[tuple[str, str | None]], dict[str, Any]]:
    """As run_on_file, with two files: for each its name and what was asked if it was guessed."""
    with contextlib.ExitStack() as stack:
        taken = []
        for path in paths:
            taken.append(await asyncio.to_thread(_open, ctx.files, path))
            stack.enter_context(taken[-1].file)
        old, new = (each.file for each in taken)
        if old.name == new.name:
            raise ToolFailed(f"两个文件是同一个：{old.name}。请写出要比较的两个文件。")
        payload = payload | {
            "name": old.name,
            "new_name": new.name,
            "hidden": _may_see_hidden(ctx),
        }
        result = await run(ctx, function, payload, [old.fd, new.fd])
    return [(each.file.name, each.asked) for each in taken], result


def _may_see_hidden(ctx: ToolContext) -> bool:
    """Salary sheets are hidden for a reason."""
    return ctx.caller.audience != "everyone"


def _open(files: FileRoots, path: str) -> Taken:
    """Raises ToolFailed with the nearest names when it is not clear which file is meant."""
    try:
        return Taken(files.open(path))
    except ToolDenied:
        raise
    except ToolFailed:
        entries = sorted(files.list(SUFFIXES), key=lambda entry: -entry.modified)
        found, by_time = meant_by(path, entries, dt.datetime.now())
        if not found or (by_time and len(found) > 1):
            raise
        asked = path.strip()[:80]
        if len(found) > 1:
            names = "、".join(entry.name for entry in found[:_NAMED])
            more = f" 等 {len(found)} 个" if len(found) > _NAMED else ""
            raise ToolFailed(
                f"「{asked}」可能是：{names}{more}。请写明是哪一个，不清楚就问用户。"
            ) from None
        return Taken(files.open(found[0].name), asked)
