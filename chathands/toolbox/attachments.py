"""Files that tools hand to the person beside their result (`ctx.attach`): charts, tables, exports.

They wait in `RunScope.done`, so that they outlive a suspension, and leave with the reply.
"""

from __future__ import annotations

import base64
import binascii
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from chathands.errors import ToolFailed

MOST_FILES = 4
"""In one run; more is a folder, which a tool can zip."""
MOST_BYTES = 10_000_000
"""In one run. They stand in memory three times while they are sent as base64, and in the store
while a run waits for a person."""
LONGEST_NAME = 80
"""Characters, kept from the end; three bytes each in Chinese, and file systems take 255."""

NOTE = "（{names} 会跟在回复后面发给提问的人，不用复述里面的内容。）"


def file_name(name: str) -> str:
    """The last part of a path as one line, its end when it is long; `文件` when nothing is left."""
    short = "".join(" " if c in "\n\r\t\u2028\u2029" else c for c in name)
    short = "".join(c for c in short if unicodedata.category(c) not in ("Cc", "Cs", "Cf"))
    short = short.replace("\\", "/").rstrip("/").rpartition("/")[2].strip()
    return short[-LONGEST_NAME:] or "文件"


class Attachments:
    """What one call attaches; `done` are the finished calls of its run."""

    def __init__(self, done: Sequence[Mapping[str, Any]]) -> None:
        earlier = files_of(done)
        self._room = MOST_BYTES - sum(len(data) for _, data in earlier)
        self._places = MOST_FILES - len(earlier)
        self._files: list[tuple[str, bytes]] = []

    def attach(self, name: str, data: bytes) -> None:
        """Hand over a file under `name` (only its last part counts). Raises ToolFailed when it is
        too large, one too many, empty, or no file."""
        if not isinstance(name, str) or not isinstance(data, bytes | bytearray | memoryview):
            raise ToolFailed("工具给的不是文件：要有名字（str）和内容（bytes）。")
        data = bytes(data)
        if not data:
            raise ToolFailed("工具给的文件是空的，没有发送。")
        if len(self._files) >= self._places:
            raise ToolFailed(f"一次提问最多发 {MOST_FILES} 个文件。")
        if len(data) > self._room:
            raise ToolFailed(f"文件太大，一次提问最多发 {MOST_BYTES // 1_000_000} MB。")
        self._room -= len(data)
        self._files.append((file_name(name), data))

    @property
    def note(self) -> str:
        """What the model is told; empty when nothing was attached."""
        names = "、".join(f"「{name}」" for name, _ in self._files)
        return NOTE.format(names=f"文件{names}") if names else ""

    def stored(self) -> list[dict[str, str]]:
        """For `RunScope.done`: JSON-safe."""
        return [
            {"name": name, "data": base64.b64encode(data).decode("ascii")}
            for name, data in self._files
        ]


def files_of(done: Iterable[Mapping[str, Any]]) -> tuple[tuple[str, bytes], ...]:
    """(name, content) of everything the calls attached, in order. What cannot be read any more (a
    store of another version) is left out: the reply matters more."""
    found: list[tuple[str, bytes]] = []
    for entry in done:
        for file in entry.get("files", ()):
            try:
                found.append((str(file["name"]), base64.b64decode(file["data"], validate=True)))
            except (KeyError, TypeError, ValueError, binascii.Error):
                continue
    return tuple(found)
