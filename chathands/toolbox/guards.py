"""What a run may not do twice. Works on RunScope.done, which is plain data and can be stored."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from chathands.bounded import Bounded
from chathands.conversation import SideEffect, Status, ToolResult
from chathands.toolbox.render import one_line

FAILED_READS = 2
"""How often the same read may fail before it counts as repeated: once more helps against a hiccup
of a network, a third time never did."""

GIVE_UP_AFTER = 3
"""Calls of one tool in a row that came to nothing, whatever the arguments. Then it is not run any
more in this run and the person is told."""

DOUBT_SECONDS = 600.0
"""How long a side effect that may have happened is remembered beyond its run."""
MAX_DOUBTS = 1000
"""More at once means that everything fails; the newest are what somebody asks again about."""

TOLD_CHARACTERS = 120
"""Of a failure, where the person is told of it beside the reply."""

NO_FAILURE = frozenset({"order", "repeated", "given_up", "undecided", "too_late"})
"""Codes of calls that were not run for no fault of theirs."""

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
    code: str = "",
) -> Done:
    """The record of one finished call. `started`: its function was entered; `decided`: it was
    refused for the whole run (a person said no, or nobody could say yes); `told`: what the person
    must hear of it; `files`: what it attached for them, as `attachments` stores it; `code`: why it
    is not `ok`, as `calls.Why` has it."""
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
        "code": code,
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


def failures(done: Sequence[Done], name: str) -> int:
    """How often in a row the last calls of this tool came to nothing; an `unknown` one ends the
    row, for it is no failure."""
    count = 0
    for entry in reversed(done):
        if entry["name"] != name or entry.get("code") in NO_FAILURE:
            continue
        if entry["status"] not in (Status.FAILED, Status.DENIED):
            break
        count += 1
    return count


def report_failure(done: Sequence[Done], name: str) -> str | None:
    """When the tool has just failed for the last time it may: what the model is told beside its
    result. What the person is told goes into the entry. None otherwise."""
    if failures(done, name) < GIVE_UP_AFTER:
        return None
    last = next(entry for entry in reversed(done) if entry["name"] == name)
    if not any(entry["name"] == name and entry.get("gave_up") for entry in done):
        last["gave_up"] = True
        target = f"（{last['target']}）" if last.get("target") else " "
        last["told"] = [
            *last["told"],
            f"{name}{target}没有成功：{one_line(last['content'], TOLD_CHARACTERS)}",
        ]
    return (
        f"（{name} 已经接连 {GIVE_UP_AFTER} 次没有成功，本次提问不再执行它。"
        "不要再调用，请直接告诉用户哪一步没有办成和原因。）"
    )


class Doubts:
    """Exact calls (by hash: person, place, tool, arguments) whose outcome is not known, for a
    while: asked again in another run, a person has to say yes. Within the run they are never run
    again."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._since: Bounded[str, float] = Bounded(MAX_DOUBTS)

    def add(self, call_hash: str) -> None:
        self._since[call_hash] = self._clock()

    def settle(self, call_hash: str) -> None:
        """It has been run again since, and its outcome is known."""
        self._since.pop(call_hash, None)

    def __contains__(self, call_hash: str) -> bool:
        since = self._since.get(call_hash)
        return since is not None and self._clock() - since < DOUBT_SECONDS
