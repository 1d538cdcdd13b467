"""Frames between parent and child: four bytes of length, then JSON in UTF-8. Never pickle.

A child that has been taken over can then lie, but not make the parent run anything.
"""

from __future__ import annotations

import json
import struct
from typing import Any, BinaryIO

FRAME_CAP = 4 * 1024 * 1024
"""Bytes of one frame. The largest honest answer (200 rows of long cells) is under 1 MB; the cap
keeps the parent small whatever a child sends."""

FILE_CAP = 64 * 1024 * 1024
"""Bytes of one file. The 300,000-row workbook is 20 MB; calamine holds the whole file in memory."""

BLOB_CAP = 10_000_000
"""Bytes of a file that a child makes: what may be attached to one reply."""

MADE_BYTES = 64 * 1024 * 1024
"""Bytes of one temporary file while a workbook is made: its sheet, unpacked (45 MB at 500,000
cells), on the way into the archive."""

CHUNK = 256 * 1024

_LENGTH = struct.Struct(">I")


class Rejected(Exception):
    """A function in the child refuses its input; `sentence` is Chinese and reaches the person."""

    def __init__(self, sentence: str) -> None:
        super().__init__(sentence)
        self.sentence = sentence


class FrameError(Exception):
    """The other side ended, or what it sent is not a frame."""


def encode(value: dict[str, Any]) -> bytes:
    """One frame. Raises FrameError if it would be longer than the cap."""
    body = json.dumps(value, ensure_ascii=False, allow_nan=False).encode("utf-8", "replace")
    if len(body) > FRAME_CAP:
        raise FrameError(f"a frame of {len(body)} bytes is over the cap")
    return _LENGTH.pack(len(body)) + body


def send(stream: BinaryIO, value: dict[str, Any]) -> None:
    stream.write(encode(value))
    stream.flush()


def receive(stream: BinaryIO) -> dict[str, Any]:
    """The next frame. Raises FrameError at the end of the stream and for anything malformed."""
    (length,) = _LENGTH.unpack(receive_bytes(stream, _LENGTH.size))
    if length > FRAME_CAP:
        raise FrameError(f"a frame of {length} bytes is announced")
    try:
        value = json.loads(receive_bytes(stream, length))
    except (ValueError, RecursionError) as error:
        raise FrameError(f"not JSON: {error}") from error
    if not isinstance(value, dict):
        raise FrameError("not an object")
    return value


def receive_bytes(stream: BinaryIO, length: int) -> bytes:
    """Exactly `length` bytes. Raises FrameError if the stream ends before."""
    data = stream.read(length)
    if data is None or len(data) < length:
        raise FrameError("the other side ended")
    return data
