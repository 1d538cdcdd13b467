"""The writing side of a journal: a directory of segments that only grow.

One process writes a journal at a time (lock file). What a line is: journal_lines.py; how a cut tail
shows: journal_marks.py; what is checked: journal_check.py. Nothing here knows about tools.

Lines about the journal itself: `recovered` (what was found when it was taken, with a `code`) and
`pruned` (which old lines were let go by the retention rule; written before they go).
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from chathands.toolbox.journal_lines import (
    Head,
    authentic,
    locked,
    raw_lines,
    read_line,
    sealed,
    segments,
    sync_directory,
)
from chathands.toolbox.journal_marks import marks_of

logger = logging.getLogger(__name__)

SEGMENT_BYTES = 8 * 1024 * 1024
"""A segment is closed past this: small enough to read, copy and throw away as one file; a busy
group fills one in about two weeks."""

_APPEND = os.O_WRONLY | os.O_APPEND | os.O_CREAT | getattr(os, "O_BINARY", 0)


@dataclass(frozen=True, slots=True)
class Remark:
    """Something that was not in order; `code`s in LOSSES stay faults for good."""

    code: str
    text: str


LOSSES = ("unmarked", "interfered")
"""Remarks after which nobody can tell whether lines are gone: both marks were missing, or somebody
else changed the files of a running process."""


class Journal:
    """Not thread-safe: all calls come from one writer thread, or from start."""

    def __init__(self, directory: Path, key: bytes, lock: int, *, begun: bool) -> None:
        self._directory = directory
        self._key = key
        self._lock = lock
        self._marks = marks_of(directory, key)
        self.remarks: list[Remark] = []
        """What was not in order when the journal was taken."""
        self._descriptor = -1
        self._segment = directory
        self._size = 0
        self._spoilt = False
        self._noticed: list[str] = []
        self._waiting = self._unsynced = 0
        self._start = ""
        self.rotated = False
        """Whether a segment was closed since somebody last looked (and set it back)."""
        self.head = self._recover(begun)
        self._marked = self.head

    @classmethod
    def take(cls, directory: Path, key: bytes, *, begun: bool = False) -> Journal | None:
        """Open the journal for writing; None while another process writes it. `begun`: it is known
        that it has a mark somewhere. Raises OSError."""
        directory.mkdir(parents=True, exist_ok=True)
        lock = os.open(directory / "lock", os.O_RDWR | os.O_CREAT, 0o600)
        if not locked(lock):
            os.close(lock)
            return None
        try:
            return cls(directory, key, lock, begun=begun)
        except BaseException:
            os.close(lock)
            raise

    def append(self, record: Mapping[str, Any], *, durable: bool) -> int:
        """Write one line and return its number; `durable`: it is on the disk when this returns.

        Raises OSError, or ValueError for what is no JSON; the line then does not count.
        """
        (result,) = self.append_all([record], durable=durable)
        if isinstance(result, Exception):
            raise result
        return result

    def append_all(
        self, records: Sequence[Mapping[str, Any]], *, durable: bool
    ) -> list[int | Exception]:
        """Write lines with one write and, when `durable`, one fsync for all of them.

        Their numbers in order; an exception stands for a record that is no JSON, which takes no
        number. Raises OSError: then none of them counts.
        """
        self._look()
        results: list[int | Exception] = []
        head, data = self.head, bytearray()
        for text in self._noticed:
            said = {"kind": "recovered", "code": "interfered", "remark": text, "time": time.time()}
            line, head = sealed(self._key, said, head)
            data += line
        for record in records:
            try:
                line, head = sealed(self._key, record, head)
            except (TypeError, ValueError, RecursionError) as error:
                results.append(ValueError(f"no line of a journal: {error}"))
                continue
            data += line
            results.append(head.seq)
        if not data:
            return results
        descriptor = self._open(self.head.seq + 1)
        try:
            _write(descriptor, bytes(data))
            if durable:
                os.fsync(descriptor)
        except OSError:
            self._undo()
            raise
        self._size += len(data)
        self.head = head
        self._noticed.clear()
        self._unsynced += 1
        if durable:
            self._synced()
        return results

    def sync(self) -> None:
        """Bring what was not durable onto the disk, marks included. Raises OSError."""
        if self._unsynced and self._descriptor >= 0:
            os.fsync(self._descriptor)
            self._synced()
        for mark in self._marks:
            mark.sync()
        self._waiting = 0

    @property
    def dirty(self) -> bool:
        """Whether `sync` would do anything."""
        return bool(self._unsynced or self._waiting)

    def lines_since(self, kind: str) -> list[dict[str, Any]]:
        """The readable lines from the last one of this kind on (all if there is none), oldest
        first. Reads no more segments than that takes."""
        found: list[dict[str, Any]] = []
        for segment in reversed(segments(self._directory)):
            lines = [line for raw in raw_lines(segment) if (line := read_line(raw))]
            last = max((n for n, line in enumerate(lines) if line.get("kind") == kind), default=-1)
            found[:0] = lines[max(last, 0) :]
            if last >= 0:
                break
        return found

    def hold_from_here(self) -> None:
        """Lines from the next one on are needed at the next start: `prune` leaves them."""
        self._start = self._name(self.head.seq + 1)

    def prune(self, before: float, now: float) -> int:
        """Let segments go whose lines are all older than `before` (wall clock, seconds), and say so
        first in a line: how many segments went. Raises OSError."""
        through, going = Head(), []
        existing = segments(self._directory)
        for segment, following in pairwise(existing):
            first = self._first(following)
            when = first.get("time") if first else None
            past = isinstance(when, int | float) and when < before
            if first is None or not past or following.name > (self._start or "~"):
                break
            through = Head(first["seq"] - 1, first["prev"])
            going.append(segment)
        if not going:
            return 0
        record = {"kind": "pruned", "time": now, "through": through.seq, "last": through.seal}
        self.append(record, durable=True)
        for segment in going:
            try:
                segment.unlink()
            except PermissionError:  # Windows, while somebody reads it: next time
                break
        return len(going)

    def close(self) -> None:
        """Give the journal up, so that another process may take it. Idempotent."""
        if self._lock < 0:
            return
        try:
            self.sync()
        except OSError as error:
            logger.error("audit: the last lines may not be on the disk: %s", error)
        for mark in self._marks:
            mark.close()
        for descriptor in (self._descriptor, self._lock):
            if descriptor >= 0:
                os.close(descriptor)
        self._descriptor = self._lock = -1

    def _synced(self) -> None:
        """Mark how far the journal is on the disk. A mark that cannot be written does not undo the
        lines: without it, a cut of exactly these would not show."""
        self._unsynced = 0
        self._marked = self.head
        for mark in self._marks:
            try:
                mark.write(self.head)
                self._waiting = 1
            except OSError as error:
                logger.error("audit: mark not written: %s", error)

    def _open(self, seq: int) -> int:
        """Descriptor of the segment that line `seq` goes to."""
        if self._descriptor >= 0 and self._size < SEGMENT_BYTES:
            return self._descriptor
        if self._descriptor >= 0:
            if self._unsynced:
                os.fsync(self._descriptor)
                self._synced()
            self._leave()
            self.rotated = True
        existing = segments(self._directory)
        last = existing[-1] if existing else None
        if last is None or last.stat().st_size >= SEGMENT_BYTES:
            last = self._directory / self._name(seq)
        self._use(last)
        return self._descriptor

    def _use(self, segment: Path) -> None:
        self._segment = segment
        self._descriptor = os.open(segment, _APPEND, 0o600)
        self._size = os.fstat(self._descriptor).st_size
        if not self._size:
            sync_directory(self._directory)

    def _leave(self) -> None:
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)

    def _undo(self) -> None:
        """Take what was half written away. Where not even that works, it is tried again first."""
        self._spoilt = True
        try:
            os.ftruncate(self._descriptor, self._size)
        except OSError as error:
            logger.error("audit: half a line stays for now: %s", error)
            return
        self._spoilt = False

    def _look(self) -> None:
        """Whether the segment is still the file we left: not gone, not replaced, not changed in
        length by somebody else. Else the chain goes on in a new one, so that no line of ours ends
        in somebody else's half line, and it is said for good."""
        if self._descriptor < 0:
            return
        if self._spoilt:
            os.ftruncate(self._descriptor, self._size)
            self._spoilt = False
        ours = os.fstat(self._descriptor)
        try:
            named = os.stat(self._segment)
            same = (named.st_ino, named.st_dev) == (ours.st_ino, ours.st_dev)
            what = "was replaced"
        except FileNotFoundError:
            same, what = False, "was removed"
        if same and ours.st_size == self._size:
            return
        if same:
            what = f"had {ours.st_size} bytes instead of {self._size}"
        text = f"{self._segment.name} {what} while it was being written"
        logger.error("audit: %s", text)
        self._noticed.append(text)
        self._leave()
        self._use(self._directory / self._name(self.head.seq + 1))

    def _recover(self, begun: bool) -> Head:
        """Where to go on. Half a line that nobody was told of is set aside; anything else that is
        wrong stays as it is for verify()."""
        inner, outer = (mark.read() for mark in self._marks)
        noted = max((head for head in (inner, outer) if head), key=lambda h: h.seq, default=None)
        existing = segments(self._directory)
        found = self._end_of(existing, noted or Head())
        if noted is None and (found.seq or begun):
            self._remark("unmarked", "both marks of how far the journal goes were missing")
        elif inner is None and found.seq:
            self._remark("no_head", "head.json was missing or not ours; the anchor says the same")
        elif outer is None and found.seq:
            self._remark("no_anchor", "the anchor was missing or not ours; head.json says the same")
        # Marks are written after their lines, so a mark that is further means a cut tail: going on
        # from the mark leaves the gap for everyone to see.
        head = noted if noted and noted.seq > found.seq else found
        if head.seq > found.seq:
            logger.error(
                "audit: lines %d to %d of %s are gone",
                found.seq + 1,
                head.seq,
                self._directory.name,
            )
        if noted is None or inner is None or outer is None:
            for mark in self._marks:
                mark.write(head)
        return head

    def _end_of(self, existing: Sequence[Path], noted: Head) -> Head:
        if existing:
            self._mend_end(existing[-1], noted)
        for segment in reversed(existing):
            best = Head()
            for raw in raw_lines(segment):
                line = read_line(raw)
                if line and line["seq"] > best.seq and authentic(self._key, line):
                    best = Head(line["seq"], line["seal"])
            if best.seq:
                return best
        return Head()

    def _mend_end(self, segment: Path, noted: Head) -> None:
        descriptor = os.open(segment, os.O_RDWR | getattr(os, "O_BINARY", 0))
        try:
            torn, whole = _torn_end(descriptor)
            if not torn:
                return
            line = read_line(torn)
            if line and line["seq"] <= noted.seq and authentic(self._key, line):
                os.lseek(descriptor, 0, os.SEEK_END)
                _write(descriptor, b"\n")
                text = f"line {line['seq']} had lost its line end and got it again"
                self._remark("no_line_end", text)
                return
            aside = self._aside(torn)
            os.ftruncate(descriptor, whole)
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        text = f"{len(torn)} bytes of a torn line were set aside in {aside.name}"
        self._remark("torn", text)

    def _aside(self, torn: bytes) -> Path:
        """Nothing that was in the trail is thrown away, however little it says."""
        number = 1
        while (path := self._directory / f"torn-{number}.part").exists():
            number += 1
        descriptor = os.open(path, _APPEND | os.O_EXCL, 0o600)
        try:
            _write(descriptor, torn)
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        return path

    def _remark(self, code: str, text: str) -> None:
        self.remarks.append(Remark(code, text))

    def _first(self, segment: Path) -> dict[str, Any] | None:
        line = read_line(next(raw_lines(segment), b""))
        return line if line and authentic(self._key, line) else None

    @staticmethod
    def _name(seq: int) -> str:
        return f"{seq:09d}.jsonl"


def _write(descriptor: int, data: bytes) -> None:
    written = 0
    while written < len(data):
        written += os.write(descriptor, data[written:])


def _torn_end(descriptor: int) -> tuple[bytes, int]:
    """What stands behind the last line end of a file, and where that begins."""
    size = end = os.fstat(descriptor).st_size
    tail = b""
    while end:
        start = max(end - 65536, 0)
        os.lseek(descriptor, start, os.SEEK_SET)
        tail = os.read(descriptor, end - start) + tail
        at = tail.rfind(b"\n")
        if at >= 0:
            return tail[at + 1 :], start + at + 1
        end = start
    return tail, size - len(tail)
