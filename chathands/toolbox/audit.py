"""The audit trail: what tools did, for whom, on whose yes. journal.py is how it is written and
sealed, audit_check.py how it is verified.

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
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from chathands.conversation import Status
from chathands.toolbox.audit_check import KEY_FILE, RECEIPT_LENGTH
from chathands.toolbox.audit_check import has_trail as has_trail
from chathands.toolbox.audit_check import verify as verify
from chathands.toolbox.audit_writer import GroupWriter
from chathands.toolbox.calls import Decision
from chathands.toolbox.context import Caller
from chathands.toolbox.journal import Journal
from chathands.toolbox.journal_lines import Head, locked, sync_directory
from chathands.toolbox.journal_marks import anchored, marks_of
from chathands.toolbox.redact import Redactor

logger = logging.getLogger(__name__)

LONGEST_ARGUMENT = 4000
"""Characters of one text argument kept in the trail; what was sent stays readable, a pasted
workbook does not fill the disk."""


KEY_BYTES = 32
DAY_SECONDS = 86400
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
        writer: GroupWriter,
        redactor: Redactor,
        unfinished: tuple[Unfinished, ...] = (),
        finished: tuple[Effect, ...] = (),
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._writer = writer
        self._redactor = redactor
        self._clock = clock
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
        return await self._append(record)

    async def outcome(self, intent: int, status: Status, content: str, size: int) -> None:
        """`content` as the model got it; `size` in characters as the tool gave it. On the disk when
        it returns. Raises OSError; it is then written as soon as there is space again."""
        record = {"kind": "outcome", "intent": intent, **_result(status, content, size)}
        await self._append(record, owed=True)

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
        try:
            written = self._writer.put(record, durable=False)
        except OSError as error:
            logger.error("%s; not written: %s of run %s", error, name, run_id)
            return
        written.add_done_callback(_lost)

    def flush(self) -> None:
        """Return when every line handed in before is written or has failed. Blocking."""
        self._writer.flush()

    def close(self) -> None:
        """Write what is waiting and give the trail up. Blocking; idempotent."""
        self._writer.close()

    async def _append(self, record: dict[str, Any], *, owed: bool = False) -> int:
        record["time"] = self._clock()
        try:
            return await asyncio.wrap_future(self._writer.put(record, owed=owed))
        except ValueError as error:  # no JSON, so no line: what it was to record must not begin
            raise OSError(str(error)) from error

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
    keep_days: float = 0,
    clock: Callable[[], float] = time.time,
) -> Audit:
    """The trail in `state_dir/audit`; intents a dead process left are closed as `unknown`.

    `owner` is the kind of program this is. Open intents in a dead journal of another kind are
    given as well, and stay open for that kind. A second process on the same state (gateway beside
    the bot) gets a journal of its own. Segments older than `keep_days` are let go; 0: never.
    Raises OSError. Blocking: call it at start.
    """
    directory = state_dir / "audit"
    directory.mkdir(parents=True, exist_ok=True)
    key, begun = _key(state_dir)
    keep = keep_days * DAY_SECONDS
    mine: Journal | None = None
    unfinished: list[Unfinished] = []
    finished: list[Effect] = []
    number = 0
    while mine is None or (directory / str(number + 1)).is_dir():
        number += 1
        journal = Journal.take(directory / str(number), key, begun=begun and number == 1)
        if journal is None:
            continue
        lines = journal.lines_since("start")
        for remark in journal.remarks:
            said = {"kind": "recovered", "code": remark.code, "remark": remark.text}
            journal.append({**said, "time": clock()}, durable=False)
            logger.warning("audit %s: %s", number, remark.text)
        ours = not lines or lines[0].get("by", BOT) == owner
        waiting, ended = _effects(lines)
        unfinished += map(_unfinished, waiting.values())
        if ours:
            finished += ended
            there = max(number, sum(1 for _ in directory.glob("[0-9]*/lock")), anchored(directory))
            _close_intents(journal, waiting, owner, there, clock)
            _prune(journal, keep, clock)
        if ours and mine is None:
            mine = journal
        else:
            journal.close()
    logger.info("audit: from line %d, seal %s", mine.head.seq, mine.head.seal[:RECEIPT_LENGTH])
    writer = GroupWriter(mine, keep_seconds=keep, clock=clock)
    return Audit(writer, redactor, tuple(unfinished), tuple(finished), clock)


def _prune(journal: Journal, keep: float, clock: Callable[[], float]) -> None:
    now = clock()
    if keep > 0:
        try:
            journal.prune(now - keep, now)
        except OSError as error:
            logger.error("audit: old segments stay: %s", error)


def _key(state_dir: Path) -> tuple[bytes, bool]:
    """The HMAC key, made on first use and readable by its owner only; whether it was there.

    It gets its name when it is whole and the anchor has been made: a second process that starts at
    the same moment, or after a crash in here, would else seal its lines with nothing, and a trail
    removed together with its marks could not be told from one never begun. Raises OSError.
    """
    path = state_dir / KEY_FILE
    lock = os.open(state_dir / "audit" / "lock", os.O_RDWR | os.O_CREAT, 0o600)
    try:
        locked(lock, wait=True)
        begun = path.exists()
        if not begun:
            key = secrets.token_bytes(KEY_BYTES)
            made = path.with_name(f"{KEY_FILE}.new")
            made.unlink(missing_ok=True)
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
            descriptor = os.open(made, flags, 0o600)
            try:
                os.write(descriptor, key)
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
            mark = marks_of(state_dir / "audit" / "1", key)[1]
            mark.write(Head())
            mark.sync()
            mark.close()
            os.replace(made, path)
            sync_directory(state_dir)
    finally:
        os.close(lock)
    key = path.read_bytes()
    if len(key) < KEY_BYTES:
        raise OSError(f"{path} is cut: {len(key)} bytes")
    return key, begun


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
    journal: Journal,
    waiting: Iterable[int],
    owner: str,
    journals: int,
    clock: Callable[[], float],
) -> None:
    for seq in waiting:
        record = {"kind": "outcome", "intent": seq, "time": clock(), "at_start": True}
        journal.append({**record, "status": Status.UNKNOWN.value}, durable=False)
    start = {"kind": "start", "time": clock(), "journals": journals}
    start |= {} if owner == BOT else {"by": owner}
    journal.hold_from_here()
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


def _lost(written: Future[int]) -> None:
    if error := written.exception():
        logger.error("audit: a line is not written: %s", error)


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
