"""What a run may not do twice. Works on RunScope.done, which is plain data and can be stored."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from chathands.conversation import SideEffect, Status, ToolResult

FAILED_READS = 2
"""How often the same read may fail before it counts as repeated: once more helps against a hiccup
of a network, a third time never did."""

Done = dict[str, Any]


def done_entry(
    result: ToolResult,
    *,
    call_hash: str,
    arguments: Mapping[str, Any],
    side_effect: SideEffect,
    target: str = "",
    started: bool = False,
    decided: bool = False,
    told: Sequence[str] = (),
    files: Sequence[Mapping[str, str]] = (),
) -> Done:
    """The record of one finished call. `started`: its function was entered; `decided`: it was
    refused for the whole run (a person said no, or nobody could say yes); `told`: what the person
    must hear of it; `files`: what it attached for them, as `attachments` stores it."""
    return {
        "hash": call_hash,
        "name": result.name,
        "arguments": dict(arguments),
        "side_effect": side_effect,
        "status": str(result.status),
        "content": result.content,
        "repeats": 0,
        "target": target,
        "started": started,
        "decided": decided,
        "told": list(told),
        "files": list(files),
    }


@dataclass(frozen=True, slots=True)
class Repeat:
    """The call was made before in this run; it is answered, not run."""

    status: Status
    content: str
    closes_run: bool


def repeat_of(done: Sequence[Done], call_hash: str, *, reads: bool) -> Repeat | None:
    """How to answer a call that was made before; None when it may run. Counts the repeat."""
    earlier = _earlier_read(done, call_hash) if reads else _earlier_effect(done, call_hash)
    if earlier is None:
        return None
    earlier["repeats"] += 1
    status = Status(earlier["status"])
    again = earlier["repeats"] > 1
    if not reads:
        what = "这个操作在本次提问中已经执行过"
        if earlier["decided"]:
            what = "这个操作已经被拒绝过"
        content = f"{what}，没有再次执行。上次的结果：{earlier['content']}"
        return Repeat(status, content, closes_run=again)
    if again:
        content = "同样的调用已经重复多次，没有再执行；请根据已有的结果直接回答。"
        return Repeat(Status.DENIED, content, closes_run=True)
    note = "（与前面的调用相同，没有重新执行，以下是上次的结果。）"
    return Repeat(status, f"{note}\n{earlier['content']}", closes_run=False)


def _earlier_read(done: Sequence[Done], call_hash: str) -> Done | None:
    """The last same read, unless something was changed since or it may still be tried again."""
    failed = 0
    latest: Done | None = None
    for entry in done:
        if entry["side_effect"] != "none":
            if entry["started"]:
                latest, failed = None, 0
        elif entry["hash"] == call_hash and entry["started"]:
            latest = entry
            failed += entry["status"] == Status.FAILED
    if latest and latest["status"] == Status.FAILED and failed < FAILED_READS:
        return None
    return latest


def _earlier_effect(done: Sequence[Done], call_hash: str) -> Done | None:
    for entry in done:
        if entry["hash"] == call_hash and (entry["started"] or entry["decided"]):
            return entry
    return None
