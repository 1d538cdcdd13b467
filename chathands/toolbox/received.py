"""Files people send to the bot: kept below the sender's own root, where only their tools read."""

from __future__ import annotations

import hashlib
import os
import re
import threading
import time
import unicodedata
from collections.abc import Callable
from pathlib import Path

from chathands.errors import ToolFailed
from chathands.toolbox.names import directory_name

FOLDER = "received"
"""Below the person's root. A folder of its own: a file somebody sends must not hide one of the
same name that the admin shares."""

LONGEST_STEM = 120
"""Bytes of a name before its ending; with folder and number it stays a file name anywhere."""

_FORBIDDEN = re.compile(r'[<>:"|?*`\[\]{}]')
_BRACKETED = re.compile(r"\s*[（(]([^（）()]*)[)）]")
_RESERVED = re.compile(r"(?i)(con|prn|aux|nul|com\d|lpt\d)(\.|$)")
_ENDING = re.compile(r"\.[A-Za-z0-9]{1,10}$")
_MAGIC = (
    (b"\x89PNG", ".png"),
    (b"\xff\xd8\xff", ".jpg"),
    (b"GIF8", ".gif"),
    (b"RIFF", ".webp"),
    (b"BM", ".bmp"),
)


def safe_name(name: str) -> str:
    """A file name for one that somebody typed: no folders, no marks a file system, a prompt or a
    person would stumble over; the ending is kept. `文件` when nothing is left."""
    name = unicodedata.normalize("NFC", name.encode("utf-8", "replace").decode())
    name = re.split(r"[/\\]", name)[-1]
    name = "".join(c for c in name if unicodedata.category(c)[0] != "C")
    name = _FORBIDDEN.sub("_", _BRACKETED.sub(r"_\1", name))
    name = re.sub(r"[（）()]", "_", re.sub(r"\s+", " ", name)).strip(" .~$_")
    ending = found[0] if (found := _ENDING.search(name)) else ""
    stem = name.removesuffix(ending).rstrip(" .")
    stem = stem.encode()[:LONGEST_STEM].decode("utf-8", "ignore") or "文件"
    return f"_{stem}{ending}" if _RESERVED.match(stem) else f"{stem}{ending}"


def image_name(content: bytes) -> str:
    """A name for a picture: what implementations call it is a number nobody reads."""
    ending = next((ending for magic, ending in _MAGIC if content.startswith(magic)), ".img")
    return f"图片-{hashlib.sha256(content).hexdigest()[:8]}{ending}"


class Received:
    """The folders of received files. `per_person` bytes are kept of one person, for `days`."""

    def __init__(
        self,
        data_dir: Path,
        *,
        per_person: int,
        days: float,
        wall: Callable[[], float] = time.time,
    ) -> None:
        self._data = data_dir
        self._per_person = per_person
        self._age = days * 86400
        self._wall = wall
        self._lock = threading.Lock()

    def keep(self, user_id: str, name: str, content: bytes) -> str:
        """Write it; gives the path under which that person's tools open it.

        The same content under the same name is kept once; another content gets a number. Oldest
        files go first when there is too much. Blocks on the disk: call it in a thread. Raises
        ToolFailed with a sentence.
        """
        if len(content) > self._per_person:
            raise ToolFailed("超过每人可存的上限。")
        with self._lock:
            try:
                folder = self._folder(user_id)
                self._make_room(folder, len(content))
                return f"{FOLDER}/{_write(folder, safe_name(name), content)}"
            except OSError as error:
                raise ToolFailed("文件没能存下来，请管理员检查磁盘。", detail=str(error)) from error

    def _folder(self, user_id: str) -> Path:
        folder = self._data
        for part in ("users", directory_name(user_id), FOLDER):
            folder = folder / part
            folder.mkdir(parents=True, exist_ok=True)
            if folder.is_symlink():
                raise ToolFailed("存放文件的目录是一个链接，请管理员检查。", detail=str(folder))
        return folder

    def _make_room(self, folder: Path, wanted: int) -> None:
        files = [(path.lstat(), path) for path in folder.iterdir() if path.is_file()]
        files.sort(key=lambda one: one[0].st_mtime)
        total = sum(stat.st_size for stat, _ in files)
        oldest = self._wall() - self._age
        for stat, path in files:
            if stat.st_mtime >= oldest and total + wanted <= self._per_person:
                break
            path.unlink(missing_ok=True)
            total -= stat.st_size


def _write(folder: Path, name: str, content: bytes) -> str:
    ending = found[0] if (found := _ENDING.search(name)) else ""
    stem = name.removesuffix(ending)
    number = 1
    while (path := folder / name).exists() or path.is_symlink():
        if _same(path, content):
            os.utime(path)  # the newest again
            return name
        number += 1
        name = f"{stem}-{number}{ending}"
    half = folder / f".{os.getpid()}.part"
    try:
        half.write_bytes(content)
        os.replace(half, path)
    finally:
        half.unlink(missing_ok=True)
    return name


def _same(path: Path, content: bytes) -> bool:
    if path.is_symlink() or not path.is_file() or path.stat().st_size != len(content):
        return False
    return path.read_bytes() == content
