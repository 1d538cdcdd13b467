"""The audit trail: what tools did, for whom, on whose yes. See journal.py for how it is sealed.

    intent    durable before a side effect starts
    outcome   after it: status, size and hash of the result; refers to its intent
    call      one line for a read, or for a call that was refused

Where a person was asked, `decision` (yes, no, expired) and `decided_by` (user id) say what came of
it; they stand in the intent, or in the line of the call that was not run.

An intent without an outcome means the process died in between: the side effect may have happened.

A journal belongs to the kind of program that began it (`start` lines say `by`): only that kind
closes its open intents, because only that kind can tell whoever asked.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import os
import secrets
import time
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from chathands.conversation import Status
from chathands.toolbox.calls import Decision
from chathands.toolbox.context import Caller
from chathands.toolbox.journal import Journal, faults
from chathands.toolbox.redact import Redactor

logger = logging.getLogger(__name__)

LONGEST_ARGUMENT = 4000
"""Characters of one text argument kept in the trail; what was sent stays readable, a pasted
workbook does not fill the disk."""


KEY_BYTES = 32

_ABOUT = ("run", "tool", "target")


BOT = "bot"
"""The owner of journals that do not name one."""


@dataclass(frozen=True, slots=True)
class Unfinished:
    """A side effect found at start that may or may not have happened."""

    run_id: str
    name: str
    target: str
    caller: Caller
    time: float
    """Wall clock, seconds, when it was about to start."""


@dataclass(frozen=True, slots=True)
class Effect:
    """A side effect of an earlier process and its outcome."""

    run_id: str
    name: str
    target: str
    status: Status


class Audit:
    """The writing side; open with `open_audit`, close with `close()`."""

    def __init__(
        self,
        journal: Journal,
        redactor: Redactor,
        unfinished: tuple[Unfinished, ...] = (),
        finished: tuple[Effect, ...] = (),
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._journal = journal
        self._redactor = redactor
        self._clock = clock
        self._closed = False
        self._writer = ThreadPoolExecutor(1, thread_name_prefix="audit")
        self.unfinished = unfinished
        """Side effects of an earlier process without an outcome; whoever asked is to be told."""
        self.finished = finished
        """Those with one, of processes of this kind since their last start: a run that was cut off
        later has done this."""

    async def intent(
        self,
        caller: Caller,
        run_id: str,
        name: str,
        arguments: Mapping[str, Any],
        *,
        target: str = "",
        decision: Decision | None = None,
    ) -> int:
        """On the disk when it returns the number to give to `outcome`. Raises OSError."""
        record = self._call("intent", caller, run_id, name, arguments)
        record |= {"target": self._redactor.text(target), "approved": decision is not None}
        record |= _decided(decision)
        return await self._append(record, durable=True)

    async def outcome(self, intent: int, status: Status, content: str, size: int) -> None:
        """`content` as the model got it; `size` in characters as the tool gave it."""
        await self._append({"kind": "outcome", "intent": intent, **_result(status, content, size)})

    def call(
        self,
        caller: Caller,
        run_id: str,
        name: str,
        arguments: Mapping[str, Any],
        status: Status,
        content: str,
        size: int,
        decision: Decision | None = None,
    ) -> None:
        """Written soon; nobody waits for it."""
        record = self._call("call", caller, run_id, name, arguments)
        record |= {"time": self._clock(), **_result(status, content, size), **_decided(decision)}
        if self._closed:
            logger.error("audit is closed; not written: %s of run %s", name, run_id)
            return
        self._writer.submit(self._journal.append, record, durable=False).add_done_callback(
            lambda done: done.exception() and logger.error("audit: %s", done.exception())
        )

    def close(self) -> None:
        """Write what is waiting and give the trail up."""
        self._closed = True
        self._writer.shutdown(wait=True)
        self._journal.close()

    async def _append(self, record: dict[str, Any], *, durable: bool = False) -> int:
        if self._closed:
            raise OSError("the audit trail is closed")
        record["time"] = self._clock()
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(
            self._writer, lambda: self._journal.append(record, durable=durable)
        )

    def _call(
        self, kind: str, caller: Caller, run_id: str, name: str, arguments: Mapping[str, Any]
    ) -> dict[str, Any]:
        return {
            "kind": kind,
            "run": run_id,
            "user": caller.user_id,
            "name": self._redactor.text(caller.name),
            "group": caller.group_id,
            "role": caller.role,
            "platform": caller.platform,
            "bot": caller.bot_id,
            "tool": name,
            "arguments": _cut(self._redactor.arguments(arguments)),
        }


def open_audit(
    state_dir: Path,
    redactor: Redactor,
    *,
    owner: str = BOT,
    clock: Callable[[], float] = time.time,
) -> Audit:
    """The trail in `state_dir/audit`; intents a dead process left are closed as `unknown`.

    `owner` is the kind of program this is. Open intents in a dead journal of another kind are
    given as well, and stay open for that kind. A second process on the same state (gateway beside
    the bot) gets a journal of its own. Raises OSError. Blocking: call it at start.
    """
    directory = state_dir / "audit"
    directory.mkdir(parents=True, exist_ok=True)
    key = _key(state_dir)
    mine: Journal | None = None
    unfinished: list[Unfinished] = []
    finished: list[Effect] = []
    number = 0
    while mine is None or (directory / str(number + 1)).is_dir():
        number += 1
        journal = Journal.take(directory / str(number), key)
        if journal is None:
            continue
        for remark in journal.remarks:
            journal.append({"kind": "recovered", "time": clock(), "remark": remark}, durable=False)
        lines = journal.lines_since("start")
        ours = not lines or lines[0].get("by", BOT) == owner
        waiting, ended = _effects(lines)
        unfinished += map(_unfinished, waiting.values())
        if ours:
            finished += ended
            _close_intents(journal, waiting, owner, clock)
        if ours and mine is None:
            mine = journal
        else:
            journal.close()
    return Audit(mine, redactor, tuple(unfinished), tuple(finished), clock)


def has_trail(state_dir: Path) -> bool:
    """Whether anything was ever written there (and was not removed whole)."""
    return bool(_journals(state_dir))


def verify(state_dir: Path) -> list[str]:
    """What was cut, edited, put elsewhere or torn in the trail, one English line each; empty when
    it is whole. The tail of a journal being written right now may be reported as torn."""
    key_file = state_dir / "audit.key"
    if not key_file.exists():
        return ["audit.key is missing"] if has_trail(state_dir) else []
    if not has_trail(state_dir):
        return ["the trail is gone, only audit.key is left"]
    key = key_file.read_bytes()
    return [fault for journal in _journals(state_dir) for fault in faults(journal, key)]


def _journals(state_dir: Path) -> list[Path]:
    return sorted(path for path in (state_dir / "audit").glob("*") if path.is_dir())


def _key(state_dir: Path) -> bytes:
    """The HMAC key, made on first use and readable by its owner only.

    It gets its name when it is whole: a second process that starts at the same moment, or after a
    crash in here, would else seal its lines with nothing. Raises OSError.
    """
    path = state_dir / "audit.key"
    if not path.exists():
        made = path.with_name(f"audit.key.{secrets.token_hex(4)}")
        descriptor = os.open(made, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            os.write(descriptor, secrets.token_bytes(KEY_BYTES))
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        try:
            with suppress(FileExistsError):  # the other process was first: its key is the key
                os.link(made, path)
        finally:
            made.unlink()
    key = path.read_bytes()
    if len(key) < KEY_BYTES:
        raise OSError(f"{path} is cut: {len(key)} bytes")
    return key


def _effects(
    lines: Iterable[Mapping[str, Any]],
) -> tuple[dict[int, Mapping[str, Any]], list[Effect]]:
    """Intents without an outcome by their number, and the effects of the others.

    Every start closes what is open, so only lines after the last `start` can be open.
    """
    waiting: dict[int, Mapping[str, Any]] = {}
    ended: list[Effect] = []
    for line in lines:
        if line.get("kind") == "intent":
            waiting[line["seq"]] = line
        elif line.get("kind") == "outcome":
            intent = waiting.pop(line.get("intent", 0), None)
            status = line.get("status")
            if intent is not None and status in list(Status):
                run_id, name, target = (str(intent.get(key, "")) for key in _ABOUT)
                ended.append(Effect(run_id, name, target, Status(status)))
    return waiting, ended


def _close_intents(
    journal: Journal, waiting: Iterable[int], owner: str, clock: Callable[[], float]
) -> None:
    for seq in waiting:
        record = {"kind": "outcome", "intent": seq, "time": clock(), "at_start": True}
        journal.append({**record, "status": Status.UNKNOWN.value}, durable=False)
    start = {"kind": "start", "time": clock()} | ({} if owner == BOT else {"by": owner})
    journal.append(start, durable=True)


def _unfinished(line: Mapping[str, Any]) -> Unfinished:
    caller = Caller(
        user_id=str(line.get("user")),
        group_id=line.get("group"),
        role=line.get("role", "member"),
        name=str(line.get("name", "")),
        platform=str(line.get("platform", "")),
        bot_id=str(line.get("bot", "")),
    )
    when = line.get("time")
    return Unfinished(
        str(line.get("run")), str(line.get("tool")), str(line.get("target", "")), caller,
        float(when) if isinstance(when, int | float) else 0.0,
    )  # fmt: skip


def _result(status: Status, content: str, size: int) -> dict[str, Any]:
    digest = hashlib.sha256(content.encode("utf-8", "replace")).hexdigest()
    return {"status": status.value, "size": size, "sha256": digest}


def _decided(decision: Decision | None) -> dict[str, Any]:
    return {} if decision is None else {"decision": decision.answer, "decided_by": decision.by}


def _cut(value: Any) -> Any:
    if isinstance(value, str) and len(value) > LONGEST_ARGUMENT:
        return f"{value[:LONGEST_ARGUMENT]}…（共 {len(value)} 个字符）"
    if isinstance(value, dict):
        return {key: _cut(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_cut(item) for item in value]
    return value
