"""An append-only file of JSON lines, each sealed by an HMAC over itself and the one before.

The journal is a directory of segments. `head.json`, beside them, names the last line, so that a
cut tail shows. One process writes a journal at a time (lock file). Nothing here knows about tools.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from chathands.conversation import canonical_json

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None
    import msvcrt

SEGMENT_BYTES = 8 * 1024 * 1024
"""A segment is closed past this: small enough to read, copy and throw away as one file."""

GENESIS = "0" * 64

_APPEND = os.O_WRONLY | os.O_APPEND | getattr(os, "O_BINARY", 0)


@dataclass(frozen=True, slots=True)
class Head:
    """The last line of a journal."""

    seq: int = 0
    seal: str = GENESIS


def seal(key: bytes, record: Mapping[str, Any]) -> str:
    """HMAC-SHA256 of a line without its own seal; `prev` in it ties it to the line before."""
    return hmac.new(key, _encoded(record), hashlib.sha256).hexdigest()


def _encoded(record: Mapping[str, Any]) -> bytes:
    """A lone surrogate (models do write them) becomes the JSON escape it reads back from."""
    return canonical_json(record).encode("utf-8", "backslashreplace")


class Journal:
    """The writing side. Not thread-safe: all calls come from one writer thread, or from start."""

    def __init__(self, directory: Path, key: bytes, lock: int) -> None:
        self._directory = directory
        self._key = key
        self._lock = lock
        self.remarks: list[str] = []
        """What was not in order when the journal was taken, one English line each."""
        self.head = self._recover()
        self._descriptor = -1
        self._size = 0

    @classmethod
    def take(cls, directory: Path, key: bytes) -> Journal | None:
        """Open the journal for writing; None while another process writes it."""
        directory.mkdir(parents=True, exist_ok=True)
        lock = os.open(directory / "lock", os.O_RDWR | os.O_CREAT, 0o600)
        if not _locked(lock):
            os.close(lock)
            return None
        return cls(directory, key, lock)

    def append(self, record: Mapping[str, Any], *, durable: bool) -> int:
        """Write one line and return its number; `durable`: it is on the disk when this returns.

        Raises OSError; the line then does not count.
        """
        head = Head(self.head.seq + 1)
        line = {**record, "seq": head.seq, "prev": self.head.seal}
        head = Head(head.seq, seal(self._key, line))
        data = _encoded({**line, "seal": head.seal}) + b"\n"
        descriptor = self._segment(head.seq)
        start = self._size
        try:
            written = 0
            while written < len(data):
                written += os.write(descriptor, data[written:])
            if durable:
                os.fsync(descriptor)
        except OSError:
            os.ftruncate(descriptor, start)
            raise
        self._size = start + len(data)
        self.head = head
        self._write_head()
        return head.seq

    def lines_since(self, kind: str) -> list[dict[str, Any]]:
        """The readable lines from the last one of this kind on (all if there is none), oldest
        first. Reads no more segments than that takes."""
        found: list[dict[str, Any]] = []
        for segment in reversed(segments(self._directory)):
            lines = [line for raw in segment.read_bytes().splitlines() if (line := _read(raw))]
            last = max((n for n, line in enumerate(lines) if line.get("kind") == kind), default=-1)
            found[:0] = lines[max(last, 0) :]
            if last >= 0:
                break
        return found

    def close(self) -> None:
        """Give the journal up, so that another process may take it. Idempotent."""
        for descriptor in (self._descriptor, self._lock):
            if descriptor >= 0:
                os.close(descriptor)
        self._descriptor = self._lock = -1

    def _segment(self, seq: int) -> int:
        """Descriptor of the segment that line `seq` goes to."""
        if self._descriptor >= 0 and self._size < SEGMENT_BYTES:
            return self._descriptor
        if self._descriptor >= 0:
            os.close(self._descriptor)
        existing = segments(self._directory)
        last = existing[-1] if existing else None
        if last is None or last.stat().st_size >= SEGMENT_BYTES:
            last = self._directory / f"{seq:09d}.jsonl"
        self._descriptor = os.open(last, _APPEND | os.O_CREAT, 0o600)
        self._size = os.fstat(self._descriptor).st_size
        if not self._size:
            _sync_directory(self._directory)
        return self._descriptor

    def _recover(self) -> Head:
        """Where to go on. A torn last line (power cut) is taken away: it was never durable, so
        nothing was started on its account. Anything else that is wrong stays for verify()."""
        existing = segments(self._directory)
        noted = read_head(self._directory, self._key)
        if not existing:
            return noted or Head()
        if noted is None:
            self.remarks.append("head.json was missing or not ours")
        data = existing[-1].read_bytes()
        whole = data.rfind(b"\n") + 1
        if whole < len(data):
            os.truncate(existing[-1], whole)
            self.remarks.append(f"{len(data) - whole} bytes of a torn line were taken away")
        last = next((_read(raw) for raw in reversed(data[:whole].splitlines())), None)
        found = Head(last["seq"], last["seal"]) if last else Head()
        # The line is written before the head, so a head that is further means a cut tail: going on
        # from the head leaves the gap for everyone to see.
        return noted if noted and noted.seq > found.seq else found

    def _write_head(self) -> None:
        path = self._directory / "head.json"
        record = {"seq": self.head.seq, "last": self.head.seal}
        fresh = path.with_suffix(".new")
        fresh.write_text(canonical_json({**record, "seal": seal(self._key, record)}))
        os.replace(fresh, path)


def segments(directory: Path) -> list[Path]:
    """Segment files, oldest first."""
    return sorted(directory.glob("*.jsonl"))


def read_head(directory: Path, key: bytes) -> Head | None:
    """What `head.json` says; None when it is missing or not sealed by `key`."""
    try:
        record = json.loads((directory / "head.json").read_bytes())
        given = record.pop("seal")
        if hmac.compare_digest(given, seal(key, record)):
            return Head(record["seq"], record["last"])
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None
    return None


def faults(directory: Path, key: bytes) -> Iterator[str]:
    """What is wrong with a journal, one English line each; nothing when it is whole."""
    expected = Head()
    for segment in segments(directory):
        for number, raw in enumerate(segment.read_bytes().splitlines(), 1):
            where = f"{segment.parent.name}/{segment.name}:{number}"
            line = _read(raw)
            if line is None:
                yield f"{where}: not a journal line"
                continue
            given = line.pop("seal")
            if not hmac.compare_digest(given, seal(key, line)):
                yield f"{where}: line {line['seq']} was edited"
            elif (line["seq"], line["prev"]) != (expected.seq + 1, expected.seal):
                yield f"{where}: line {line['seq']} does not follow line {expected.seq}"
            expected = Head(line["seq"], given)
    noted = read_head(directory, key)
    if noted is None and expected.seq:
        yield f"{directory.name}/head.json: missing or edited"
    elif noted is not None and noted.seq > expected.seq:
        yield f"{directory.name}: cut after line {expected.seq}, {noted.seq} were written"


def _read(raw: bytes) -> dict[str, Any] | None:
    try:
        line = json.loads(raw)
    except ValueError:
        return None
    whole = isinstance(line, dict) and isinstance(line.get("seq"), int)
    return line if whole and isinstance(line.get("seal"), str) and "prev" in line else None


def _sync_directory(directory: Path) -> None:
    """Make a new file's name as durable as its content will be (POSIX only)."""
    if fcntl is not None:
        descriptor = os.open(directory, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _locked(descriptor: int) -> bool:
    """Whether this process now holds the lock; the system lets it go when the process ends."""
    try:
        if fcntl is not None:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        else:
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)  # pyright: ignore
    except OSError:
        return False
    return True
