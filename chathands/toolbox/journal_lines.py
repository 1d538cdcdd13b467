"""What a line of a journal looks like: JSON, sealed by an HMAC over itself and the one before.

    {"kind": ..., "seq": 7, "prev": <seal of line 6>, "seal": <HMAC of all the rest>}

Whoever changes a line can compute any plain hash again, but not a seal without the key.
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

GENESIS = "0" * 64

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None
    import msvcrt


@dataclass(frozen=True, slots=True)
class Head:
    """A line's number and seal: how far a journal goes."""

    seq: int = 0
    seal: str = GENESIS


def seal(key: bytes, record: Mapping[str, Any]) -> str:
    """HMAC-SHA256 of a record without its own seal; `prev` in it ties it to the line before."""
    return hmac.new(key, encoded(record), hashlib.sha256).hexdigest()


def encoded(record: Mapping[str, Any]) -> bytes:
    """A lone surrogate (models do write them) becomes the JSON escape it reads back from."""
    return canonical_json(record).encode("utf-8", "backslashreplace")


def sealed(key: bytes, record: Mapping[str, Any], before: Head) -> tuple[bytes, Head]:
    """The line that follows `before`, with its line end, and the head it makes."""
    line = {**record, "seq": before.seq + 1, "prev": before.seal}
    if b"\\ud" in encoded(line):  # halves of one character are read back as the whole of it
        line = json.loads(encoded(line))
    head = Head(before.seq + 1, seal(key, line))
    return encoded({**line, "seal": head.seal}) + b"\n", head


def read_line(raw: bytes) -> dict[str, Any] | None:
    """A line as it was written, sealed rightly or not; None when it is none."""
    try:
        line = json.loads(raw)
    except (ValueError, RecursionError):
        return None
    if not isinstance(line, dict) or type(line.get("seq")) is not int:
        return None
    whole = isinstance(line.get("seal"), str) and isinstance(line.get("prev"), str)
    return line if whole else None


def authentic(key: bytes, line: Mapping[str, Any]) -> bool:
    """Whether a line (or mark) is exactly as it was sealed."""
    given = line.get("seal")
    bare = {name: value for name, value in line.items() if name != "seal"}
    return isinstance(given, str) and hmac.compare_digest(
        given.encode("utf-8", "replace"), seal(key, bare).encode()
    )


def untouched(key: bytes, line: Mapping[str, Any], raw: bytes) -> bool:
    """As `authentic`, and to the byte: a key that stands twice reads one way here and another way
    elsewhere."""
    return encoded(line) == raw.rstrip(b"\n") and authentic(key, line)


def segments(directory: Path) -> list[Path]:
    """Segment files, oldest first; each is named after its first line."""
    return sorted(directory.glob("*.jsonl"))


def raw_lines(segment: Path) -> Iterator[bytes]:
    """With their line ends: only a torn last one has none. One at a time, so that a large trail
    costs no memory. (`splitlines` would also split at a lone carriage return.)"""
    with segment.open("rb") as file:
        yield from file


def sync_directory(directory: Path) -> None:
    """Make a new file's name as durable as its content will be (POSIX only)."""
    if fcntl is not None:
        descriptor = os.open(directory, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def locked(descriptor: int, *, wait: bool = False) -> bool:
    """Whether this process now holds the lock; the system lets it go when the process ends.

    `wait` for another to give it up (Windows: ten seconds at most).
    """
    try:
        if fcntl is not None:
            fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        else:
            mode = msvcrt.LK_LOCK if wait else msvcrt.LK_NBLCK  # pyright: ignore
            msvcrt.locking(descriptor, mode, 1)  # pyright: ignore
    except OSError:
        return False
    return True
