"""Opens a file below a directory so that no link leads out of it.

Where the system can, every step is opened relative to the descriptor of the step before, without
following links: what is checked is what is opened. Elsewhere (Windows) every step is looked at,
the file opened, and the opened file compared with the path again.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Sequence
from pathlib import Path

from chathands.errors import ToolDenied, ToolFailed

WALKS_DESCRIPTORS = os.open in os.supports_dir_fd and hasattr(os, "O_NOFOLLOW")

_CLOEXEC = getattr(os, "O_CLOEXEC", 0)
_FILE = os.O_RDONLY | _CLOEXEC | getattr(os, "O_BINARY", 0) | getattr(os, "O_NOCTTY", 0)
# A named pipe would otherwise block the open until somebody writes.
_FILE |= getattr(os, "O_NONBLOCK", 0)


class NotBelow(Exception):
    """There is no such file below this directory; the next root may have it."""


def open_below(base: Path, parts: Sequence[str]) -> int:
    """Descriptor of the regular file `base / *parts`. `base` itself may be reached over links.

    Raises NotBelow when there is none, ToolDenied for links and special files, ToolFailed for a
    directory or a file the process may not read.
    """
    open_it = _open_by_descriptors if WALKS_DESCRIPTORS else _open_by_paths
    try:
        descriptor = open_it(base, parts)
    except PermissionError as error:
        raise ToolFailed("这个文件没有读取权限，请管理员检查。", detail=str(error)) from error
    except (FileNotFoundError, NotADirectoryError) as error:
        raise NotBelow from error
    try:
        _check(os.fstat(descriptor))
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def _check(found: os.stat_result) -> None:
    if stat.S_ISDIR(found.st_mode):
        raise ToolFailed("这是一个文件夹，请给出里面的文件名。")
    if not stat.S_ISREG(found.st_mode):
        raise ToolDenied("这不是普通文件，不能读取。")
    if found.st_nlink > 1:
        # The other name may lie anywhere, and nothing tells where.
        raise ToolDenied("这个文件还有别的硬链接，可能指向数据目录以外，不能读取。")


def _is_link(found: os.stat_result) -> bool:
    """A symbolic link, or on Windows anything that redirects (junctions, mount points)."""
    redirects = getattr(found, "st_file_attributes", 0) & getattr(
        stat, "FILE_ATTRIBUTE_REPARSE_POINT", 0
    )
    return stat.S_ISLNK(found.st_mode) or bool(redirects)


def _deny_link() -> ToolDenied:
    return ToolDenied("这个路径经过一个链接，不能读取；请放入真实的文件。")


def _open_by_descriptors(base: Path, parts: Sequence[str]) -> int:
    current = os.open(base, os.O_RDONLY | os.O_DIRECTORY | _CLOEXEC)
    try:
        for number, part in enumerate(parts, 1):
            last = number == len(parts)
            flags = _FILE if last else os.O_RDONLY | os.O_DIRECTORY | _CLOEXEC
            try:
                following = os.open(part, flags | os.O_NOFOLLOW, dir_fd=current)
            except FileNotFoundError:
                raise
            except OSError:
                # ELOOP, or ENOTDIR on Linux and EMLINK on BSD, when the part is a link.
                found = os.stat(part, dir_fd=current, follow_symlinks=False)
                if _is_link(found):
                    raise _deny_link() from None
                if last:
                    _check(found)  # a socket cannot be opened at all
                raise
            os.close(current)
            current = following
    except BaseException:
        os.close(current)
        raise
    return current


def _open_by_paths(base: Path, parts: Sequence[str]) -> int:
    base = base.resolve(strict=True)
    path = base
    for part in parts:
        path = path / part
        if _is_link(os.lstat(path)):
            raise _deny_link()
    if stat.S_ISDIR(os.lstat(path).st_mode):  # Windows does not open one
        raise ToolFailed("这是一个文件夹，请给出里面的文件名。")
    descriptor = os.open(path, _FILE)
    try:
        opened, named = os.fstat(descriptor), os.lstat(path)
        moved = (opened.st_dev, opened.st_ino) != (named.st_dev, named.st_ino)
        if moved or path.resolve() != path:
            raise _deny_link()
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor
