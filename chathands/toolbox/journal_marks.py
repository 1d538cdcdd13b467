"""Marks: small sealed notes, outside the lines, of how far a journal was written.

A cut tail leaves a chain that is whole, so something else has to know how long it was: `head.json`
beside the segments, and a place in `audit.anchor` beside the directory of journals. Whoever puts
an older copy of the journals back would have to put back the other as well.

A mark has two slots, written in turn and in place: a write that a power cut tears leaves the older
one, and nothing is created or renamed 20 times a second. It is written after the lines it speaks of
are on the disk, so it never promises what a power cut may take.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

from chathands.toolbox.journal_lines import Head, authentic, encoded, seal, sync_directory

SLOT_BYTES = 256
"""A mark is about 190 bytes, and half a disk sector is written whole or not at all."""

MARK_BYTES = 2 * SLOT_BYTES


class Mark:
    """One mark in a file that may hold others; used by one process at a time."""

    def __init__(self, path: Path, key: bytes, journal: str, index: int = 0) -> None:
        self._path = path
        self._key = key
        self._journal = journal
        self._start = index * MARK_BYTES
        self._descriptor = -1
        self._next = 0

    def read(self) -> Head | None:
        """The further of the two slots that are sealed by our key; None: nothing valid there."""
        return max(self._slots(), key=lambda slot: slot[0].seq, default=(None, 0))[0]

    def write(self, head: Head) -> None:
        """Raises OSError; the slot that was valid before still is."""
        if self._descriptor < 0:
            self._open()
        record = {"journal": self._journal, "seq": head.seq, "last": head.seal}
        data = encoded({**record, "seal": seal(self._key, record)})
        os.lseek(self._descriptor, self._start + self._next * SLOT_BYTES, os.SEEK_SET)
        os.write(self._descriptor, data.ljust(SLOT_BYTES - 1) + b"\n")
        self._next = 1 - self._next

    def sync(self) -> None:
        """Onto the disk. Raises OSError."""
        if self._descriptor >= 0:
            os.fsync(self._descriptor)

    def close(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def _open(self) -> None:
        made = not self._path.exists()
        newest = max(self._slots(), key=lambda slot: slot[0].seq, default=(None, 1))[1]
        flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_BINARY", 0)
        self._descriptor = os.open(self._path, flags, 0o600)
        self._next = 1 - newest
        if made:
            sync_directory(self._path.parent)

    def _slots(self) -> list[tuple[Head, int]]:
        try:
            with self._path.open("rb") as file:
                file.seek(self._start)
                data = file.read(MARK_BYTES)
        except OSError:
            return []
        found = []
        for slot in (0, 1):
            head = self._valid(data[slot * SLOT_BYTES : (slot + 1) * SLOT_BYTES])
            if head is not None:
                found.append((head, slot))
        return found

    def _valid(self, data: bytes) -> Head | None:
        try:
            record = json.loads(data.rstrip(b"\0 \n"))
            if record.get("journal", self._journal) == self._journal and authentic(
                self._key, record
            ):
                return Head(int(record["seq"]), str(record["last"]))
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            return None
        return None


def marks_of(directory: Path, key: bytes) -> tuple[Mark, Mark]:
    """The mark beside the lines of a journal, and the one outside."""
    number = int(directory.name) if directory.name.isdigit() else 1
    return (
        Mark(directory / "head.json", key, directory.name),
        Mark(anchor_of(directory.parent), key, directory.name, max(number, 1) - 1),
    )


def anchor_of(journals: Path) -> Path:
    return journals.with_name(f"{journals.name}.anchor")


def anchored(journals: Path) -> int:
    """How many journals the anchor has room for: those beyond the directories were taken away."""
    try:
        return -(-anchor_of(journals).stat().st_size // MARK_BYTES)
    except OSError:
        return 0
