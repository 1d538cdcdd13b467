"""Reads the audit trail for people: every call with what came of it, oldest first.

A line and its outcome become one `Action`. Whether the trail is whole is audit_check.py's matter;
here only lines that do not bear our seal are marked.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from chathands.toolbox.audit_check import KEY_FILE, journals
from chathands.toolbox.journal_lines import raw_lines, read_line, segments, untouched


@dataclass(frozen=True, slots=True)
class Line:
    """A line of the trail. `content` is as it was written, `intact` whether the seal is ours."""

    journal: str
    content: Mapping[str, Any]
    intact: bool

    @property
    def seq(self) -> int:
        return self.content["seq"]

    @property
    def kind(self) -> str:
        return str(self.content.get("kind", ""))

    @property
    def time(self) -> float:
        """Wall clock, seconds; 0 where there is none."""
        when = self.content.get("time")
        if isinstance(when, int | float) and 0 <= when < 1e11:
            return float(when)
        return 0.0


@dataclass(frozen=True, slots=True)
class Action:
    """A call that was made or refused; `outcome` is None while there is none."""

    line: Line
    outcome: Line | None

    @property
    def status(self) -> str:
        """ok, failed, denied, unknown; empty: it began, and nothing more is known."""
        ended = self.line if self.line.kind == "call" else self.outcome
        return str(ended.content.get("status", "")) if ended else ""

    @property
    def intact(self) -> bool:
        return self.line.intact and (self.outcome is None or self.outcome.intact)


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which actions; None: all. Times are wall clock in seconds, `until` not included."""

    since: float | None = None
    until: float | None = None
    user: str | None = None
    tool: str | None = None

    def takes(self, line: Line) -> bool:
        content = line.content
        return (
            line.kind in ("call", "intent")
            and (self.since is None or line.time >= self.since)
            and (self.until is None or line.time < self.until)
            and (self.user is None or str(content.get("user")) == self.user)
            and (self.tool is None or str(content.get("tool")) == self.tool)
        )


def actions(state_dir: Path, wanted: Wanted) -> Iterator[Action]:
    """By time, over all journals. Read twice, so that a large trail costs little memory: outcomes
    first, which are short. Raises OSError."""
    key = key_of(state_dir)
    ended: dict[tuple[str, int], Line] = {}
    for journal in journals(state_dir):
        for line in lines_of(journal, key):
            late = wanted.since is None or line.time >= wanted.since
            if line.kind == "outcome" and late and isinstance(line.content.get("intent"), int):
                ended.setdefault((line.journal, line.content["intent"]), line)
    each = [lines_of(journal, key) for journal in journals(state_dir)]
    for line in heapq.merge(*each, key=lambda line: line.time):
        if wanted.takes(line):
            yield Action(line, ended.get((line.journal, line.seq)))


def newest(state_dir: Path, count: int) -> list[Line]:
    """The last lines of all journals, oldest first. Raises OSError."""
    key = key_of(state_dir)
    found: list[Line] = []
    for journal in journals(state_dir):
        mine: list[Line] = []
        for segment in reversed(segments(journal)):
            mine[:0] = [line for raw in raw_lines(segment) if (line := _line(journal, raw, key))]
            if len(mine) >= count:
                break
        found += mine[-count:] if count else []
    return sorted(found, key=lambda line: line.time)[-count:] if count else []


class Follower:
    """Gives what was added since it was made, or since it was last asked."""

    def __init__(self, state_dir: Path) -> None:
        self._state = state_dir
        self._read = {
            segment: segment.read_bytes().rfind(b"\n") + 1
            for journal in journals(state_dir)
            for segment in segments(journal)
        }

    def new(self) -> list[Line]:
        """Whole lines only; half a line waits for its end. Raises OSError."""
        key = key_of(self._state)
        found: list[Line] = []
        for journal in journals(self._state):
            for segment in segments(journal):
                start = self._read.get(segment, 0)
                try:
                    with segment.open("rb") as file:
                        file.seek(start)
                        data = file.read()
                except FileNotFoundError:  # let go by the retention rule just now
                    continue
                whole = data.rfind(b"\n") + 1
                self._read[segment] = start + whole
                each = data[:whole].split(b"\n")
                found += [line for raw in each if (line := _line(journal, raw, key))]
        return sorted(found, key=lambda line: line.time)


def lines_of(journal: Path, key: bytes) -> Iterator[Line]:
    for segment in segments(journal):
        for raw in raw_lines(segment):
            line = _line(journal, raw, key)
            if line is not None:
                yield line


def key_of(state_dir: Path) -> bytes:
    """Empty when it is missing: then no line is intact."""
    try:
        return (state_dir / KEY_FILE).read_bytes()
    except FileNotFoundError:
        return b""


def local_time(text: str, *, end: bool = False) -> float:
    """Seconds of `2026-12-01` or `2026-12-01 08:30[:00]`, local time; `end`: a bare date means the
    end of that day. Raises ValueError."""
    when = datetime.fromisoformat(text.strip())
    if end and len(text.strip()) == len("2026-12-01"):
        when = when.replace(hour=23, minute=59, second=59, microsecond=999999)
    return when.timestamp()


def shown_time(line: Line, written: Callable[[datetime], str]) -> str:
    """Local time with its offset; empty where the line has none."""
    return written(datetime.fromtimestamp(line.time).astimezone()) if line.time else ""


def _line(journal: Path, raw: bytes, key: bytes) -> Line | None:
    content = read_line(raw)
    if content is None:
        return None
    return Line(journal.name, content, bool(key) and untouched(key, content, raw))
