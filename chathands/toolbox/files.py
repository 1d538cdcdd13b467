"""Which files a person's tools may read: their own, their group's, then what the admin shares."""

from __future__ import annotations

import os
import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Literal, Self

from chathands.errors import ToolFailed
from chathands.toolbox.descend import NotBelow, open_below
from chathands.toolbox.names import directory_name, listable, nearest_paths, path_parts

if TYPE_CHECKING:
    from chathands.toolbox.context import Caller

RootName = Literal["user", "group", "shared"]

MOST_ENTRIES = 5000
"""Directory entries a listing looks at; beyond it a list helps nobody and costs seconds."""
DEEPEST = 4
"""Folders below each other that a listing enters."""


@dataclass(slots=True)
class OpenFile:
    """An open regular file. Close it (`with`), or take the descriptor over with `detach()`."""

    fd: int
    name: str
    """Path below its root, with `/`."""
    size: int
    root: RootName

    def read(self, limit: int) -> bytes:
        """The first `limit` bytes."""
        pieces, left = [], limit
        while left > 0 and (piece := os.read(self.fd, min(left, 1 << 20))):
            pieces.append(piece)
            left -= len(piece)
        return b"".join(pieces)

    def detach(self) -> int:
        """The descriptor, which is the caller's to close from now on."""
        descriptor, self.fd = self.fd, -1
        return descriptor

    def close(self) -> None:
        if self.fd >= 0:
            os.close(self.detach())

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


@dataclass(frozen=True, slots=True)
class FileEntry:
    """A file that can be opened by `name`."""

    name: str
    size: int
    modified: float
    """Wall clock, seconds."""
    root: RootName


# `list` is a method below, so its annotations need these names.
_Names = list[str]
_Entries = list[FileEntry]


class FileRoots:
    """The files of one caller. A path never names a root: the first root that has it gives it."""

    def __init__(self, data_dir: Path, caller: Caller) -> None:
        self._data = data_dir
        roots: list[tuple[RootName, tuple[str, ...]]] = []
        roots.append(("user", ("users", directory_name(caller.user_id))))
        if caller.group_id is not None:
            roots.append(("group", ("groups", directory_name(caller.group_id))))
        roots.append(("shared", ("shared",)))
        self._roots = tuple(roots)
        self.opened_upload = False
        """A member's own file was opened: its text comes from outside, unlike `shared/`."""

    def open(self, path: str) -> OpenFile:
        """Raises ToolFailed (not found, with the nearest names; a folder) or ToolDenied (a path
        that leaves the data, a link), each with one sentence for the person."""
        parts = path_parts(path)
        for root, below in self._roots:
            for spelled in _spellings(parts):
                try:
                    descriptor = open_below(self._data, (*below, *spelled))
                except NotBelow:
                    continue
                size = os.fstat(descriptor).st_size
                self.opened_upload = self.opened_upload or root != "shared"
                return OpenFile(descriptor, "/".join(parts), size, root)
        raise ToolFailed(self._missing(path))

    def nearest(self, path: str) -> _Names:
        """Names of files that may have been meant, best first; at most five."""
        return nearest_paths(path, (entry.name for entry in self.list()))

    def list(self, suffixes: Iterable[str] = ()) -> _Entries:
        """The files there are, by name; of those with one of `suffixes` (`.xlsx`) if any given.

        A file hidden by one of the same name in an earlier root is left out.
        """
        wanted = tuple(suffix.casefold() for suffix in suffixes)
        found: dict[str, FileEntry] = {}
        for entry in self._entries():
            if not wanted or entry.name.casefold().endswith(wanted):
                found.setdefault(entry.name, entry)
        return [found[name] for name in sorted(found)]

    def _missing(self, path: str) -> str:
        said = f"没有找到文件「{path.strip()[:80]}」。"
        if near := self.nearest(path):
            return f"{said}最接近的有：{'、'.join(near)}。"
        if names := [entry.name for entry in self.list()[:8]]:
            return f"{said}现有的文件有：{'、'.join(names)}。"
        return f"{said}现在没有可读的文件。"

    def _entries(self) -> Iterator[FileEntry]:
        seen = 0
        for root, below in self._roots:
            base = self._data.joinpath(*below)
            if any(self._data.joinpath(*below[:n]).is_symlink() for n in range(1, len(below) + 1)):
                continue
            for directory, folders, files in os.walk(base, followlinks=False):
                depth = len(Path(directory).relative_to(base).parts)
                folders[:] = sorted(f for f in folders if listable(f)) if depth < DEEPEST else []
                for name in sorted(files):
                    seen += 1
                    if seen > MOST_ENTRIES:
                        return
                    if listable(name) and (entry := _entry(base, Path(directory), name, root)):
                        yield entry


def _entry(base: Path, directory: Path, name: str, root: RootName) -> FileEntry | None:
    """None for what `open` would refuse: links, special files, and what is gone again."""
    path = directory / name
    try:
        stat = path.lstat()
    except OSError:
        return None
    if not path.is_file() or path.is_symlink() or stat.st_nlink > 1:
        return None
    shown = unicodedata.normalize("NFC", path.relative_to(base).as_posix())
    return FileEntry(shown, stat.st_size, stat.st_mtime, root)


def _spellings(parts: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    """Composed as people type it, then decomposed as macOS writes it to disks and archives."""
    yield parts
    apart = tuple(unicodedata.normalize("NFD", part) for part in parts)
    if apart != parts:
        yield apart
