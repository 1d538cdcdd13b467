"""Runs what a tool file does while it is imported, for a limited time and in a thread of its own.

Python cannot end a thread, so an import that never returns is left behind: the others go on, the
admin is told at which line it stands, and it is not begun again before somebody changes that file.
"""

from __future__ import annotations

import ctypes
import hashlib
import sys
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeVar

T = TypeVar("T")


class _Abandoned(BaseException):
    """Raised inside an import that is not waited for any more, to end one that runs in circles."""


@dataclass(frozen=True, slots=True)
class Hung:
    """An import that did not return in time, and where it stands. `line` is None when no file of
    the tools directory is being run in it."""

    file: Path | None
    line: int | None
    sources: Mapping[Path, bytes]
    """The files that are being run in it, as they were."""

    @property
    def unchanged(self) -> bool:
        return self.sources == _sources(self.sources)


class Imports:
    """Bounded imports of one program. It remembers what hung, so that one bad file costs its time
    once and not at every reload."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._hung: dict[Path, Hung] = {}
        self._waiting: set[threading.Event] = set()
        self._closed = False

    def run(self, entry: Path, work: Callable[[], T]) -> T | Hung:
        """What `work` returns; it must not raise. `entry` is the file or package it imports."""
        before = self._hung.pop(entry, None)
        if before is not None and before.unchanged:
            self._hung[entry] = before
            return before
        running = _Running(work)
        self._waiting.add(running.over)
        if self._closed:
            running.over.set()
        running.thread.start()
        running.over.wait(self.seconds)
        self._waiting.discard(running.over)
        if running.result:
            return running.result[0]
        hung = self._hung[entry] = _where(running.thread, entry)
        running.abandon()
        return hung

    def forget(self) -> None:
        """Begin everything again that hung; for an admin who asks."""
        self._hung.clear()

    def close(self) -> None:
        """Wait for nothing any more."""
        self._closed = True
        for over in list(self._waiting):
            over.set()


class _Running(Generic[T]):
    def __init__(self, work: Callable[[], T]) -> None:
        self._work = work
        self.result: list[T] = []
        self.over = threading.Event()
        # A daemon: the interpreter does not wait for it when it ends.
        self.thread = threading.Thread(target=self._run, name="tool-import", daemon=True)

    def _run(self) -> None:
        with suppress(_Abandoned):
            self.result.append(self._work())
            self.over.set()

    def abandon(self) -> None:
        """A loop in Python ends now; a call that blocks ends when it returns, if ever."""
        thread = ctypes.c_ulong(self.thread.ident or 0)
        ctypes.pythonapi.PyThreadState_SetAsyncExc(thread, ctypes.py_object(_Abandoned))


def _where(thread: threading.Thread, entry: Path) -> Hung:
    """The deepest line of the tools directory that the thread is at."""
    frame = sys._current_frames().get(thread.ident or 0)
    found: list[tuple[Path, int]] = []
    while frame is not None:
        path = Path(frame.f_code.co_filename)
        if path.is_relative_to(entry.parent):
            found.append((path, frame.f_lineno))
        frame = frame.f_back
    file, line = found[0] if found else (None, None)
    own = entry / "__init__.py" if entry.is_dir() else entry
    return Hung(file, line, _sources([path for path, _ in found] or [own]))


def _sources(paths: Mapping[Path, bytes] | list[Path]) -> dict[Path, bytes]:
    """File → a hash of what it says; empty for one that cannot be read."""
    sources = {}
    for path in paths:
        try:
            sources[path] = hashlib.sha256(path.read_bytes()).digest()
        except OSError:
            sources[path] = b""
    return sources
