"""Notices that files change while the program runs, and says so once they have come to rest.

What counts is a look at the files themselves, every second: it sees a directory that appears or is
replaced, what a link points to, and network drives, on all of which notifications fail. The
notifications (watchfiles) only make the look happen at once.
"""

from __future__ import annotations

import asyncio
import logging
import os
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from pathlib import Path

_log = logging.getLogger(__name__)

LOOK_SECONDS = 1.0
"""Between two looks when nothing is notified: a hundred files take about a millisecond."""
LOOK_SHARE = 0.05
"""Of the time, at most, goes into looking at a very large directory."""
QUIET_SECONDS = 0.1
"""Without a change before one counts: editors write in several steps."""
GONE_QUIET_SECONDS = 0.5
"""The same when a file has vanished: many remove it and put a new one there."""
SETTLE_SECONDS = 5.0
"""Beyond this what changes all the time is loaded as it is."""
STEP_MS, GATHER_MS = 50, 200
"""watchfiles gathers what comes within 50 ms of each other, up to 200 ms."""
CLOSE_SECONDS = 1.0
"""For the thread of watchfiles to end."""
MAX_FILES = 5000
"""Of one directory. More is no directory of tools, and what is beyond is not watched."""

Stat = tuple[int, ...]
Look = Mapping[str, Stat]
"""What is watched, by path: device, file number, size, times of change."""


class Watcher:
    """Watches files and directories of Python files, each with what is to be done about it."""

    def __init__(self, *, look_seconds: float = LOOK_SECONDS) -> None:
        self._look_seconds = look_seconds
        self._subjects: list[_Subject] = []
        self._tasks: list[asyncio.Task[None]] | None = None

    def add(
        self,
        path: Path,
        changed: Callable[[], Awaitable[object]],
        *,
        due: Callable[[], bool] = lambda: False,
    ) -> None:
        """Call `changed` after a change of the file, or of a `*.py` below the directory, at `path`.

        It need not exist. What it is now is what changes are measured by, so add it before it is
        read. `due` says whether to call it although nothing there has changed; it is asked at every
        look, in a thread. What `changed` raises is logged. It is called again when something
        changed meanwhile.
        """
        subject = _Subject(path, changed, due, self._look_seconds)
        self._subjects.append(subject)
        if self._tasks is not None:
            self._tasks.append(asyncio.ensure_future(subject.run()))

    def start(self) -> None:
        """Watch what was added, and what will be."""
        if self._tasks is None:
            self._tasks = [asyncio.ensure_future(each.run()) for each in self._subjects]

    async def aclose(self) -> None:
        """Watch no more; a `changed` that goes on is cancelled."""
        tasks, self._tasks = self._tasks or [], None
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)


class _Subject:
    def __init__(
        self,
        path: Path,
        changed: Callable[[], Awaitable[object]],
        due: Callable[[], bool],
        look_seconds: float,
    ) -> None:
        self._path = path
        self._changed = changed
        self._due = due
        self._look_seconds = look_seconds
        self._known = look_at(path)
        self._hint = asyncio.Event()
        self._other = asyncio.Event()
        """What is being notified of may be another directory than this."""
        self._closing = False

    async def run(self) -> None:
        notices = asyncio.ensure_future(self._notices())
        try:
            while True:
                pause = await self._look()
                with suppress(TimeoutError):
                    async with asyncio.timeout(pause):
                        await self._hint.wait()
        finally:
            self._closing = True
            self._other.set()  # the thread of watchfiles ends by itself, within a step
            await asyncio.wait([notices], timeout=CLOSE_SECONDS)
            notices.cancel()

    async def _look(self) -> float:
        """See to what has changed; gives the seconds until the next look."""
        hinted = self._hint.is_set()
        self._hint.clear()
        began = time.monotonic()
        now = await asyncio.to_thread(look_at, self._path)
        due = await asyncio.to_thread(self._due)
        pause = max(self._look_seconds, (time.monotonic() - began) / LOOK_SHARE)
        if now != self._known:
            if not hinted:  # another directory of that name, or one that notifies of nothing
                self._other.set()
            now = await self._settled(now)
        if due or now != self._known:
            await self._follow(now)
        return pause

    async def _follow(self, now: Look) -> None:
        self._known = now
        try:
            await self._changed()
        except Exception:
            _log.exception("what follows from a change of %s failed", self._path)

    async def _settled(self, now: Look) -> Look:
        """What is there once it has been the same for a while."""
        clock = asyncio.get_running_loop().time
        until = clock() + SETTLE_SECONDS
        while clock() < until:
            vanished = self._known.keys() - now.keys()
            await asyncio.sleep(GONE_QUIET_SECONDS if vanished else QUIET_SECONDS)
            later = await asyncio.to_thread(look_at, self._path)
            if later == now:
                break
            now = later
        return now

    async def _notices(self) -> None:
        """Hint at a look whenever the system says that something happened there."""
        from watchfiles import awatch

        complained = False
        while not self._closing:
            self._other.clear()
            tree = self._path.is_dir()
            watched = self._path if tree else self._path.parent
            try:
                if watched.is_dir():
                    async for changes in awatch(
                        watched,
                        recursive=tree,
                        debounce=GATHER_MS,
                        step=STEP_MS,
                        stop_event=self._other,
                        ignore_permission_denied=True,
                    ):
                        if tree or any(Path(name).name == self._path.name for _, name in changes):
                            self._hint.set()
            except (OSError, RuntimeError) as error:  # e.g. the system's limit of watches
                if not complained:
                    complained = True
                    _log.warning("%s is only looked at every second: %s", self._path, error)
            await self._other.wait()


def look_at(path: Path) -> dict[str, Stat]:
    """The state of a file, or of the Python files below a directory (hidden ones and caches apart);
    empty when there is nothing, or nothing can be seen."""
    found: dict[str, Stat] = {}
    try:
        root = path.stat()
    except (OSError, ValueError):
        return found
    if not path.is_dir():
        return {".": _of(root)}
    found["."] = (root.st_dev, root.st_ino)
    seen: set[tuple[int, int]] = set()
    for directory, below, names in os.walk(path, followlinks=True):
        try:
            here = os.stat(directory)
        except OSError:  # just removed
            continue
        if (here.st_dev, here.st_ino) in seen:  # a link has led back
            below.clear()
            continue
        seen.add((here.st_dev, here.st_ino))
        below[:] = sorted(n for n in below if not n.startswith((".", "__pycache__")))
        for name in names:
            if name.endswith(".py") and not name.startswith("."):
                with suppress(OSError):
                    file = os.path.join(directory, name)
                    found[file] = _of(os.stat(file))
        if len(found) > MAX_FILES:
            break
    return found


def _of(stat: os.stat_result) -> Stat:
    # st_ctime_ns is there because copies that keep times may also keep the size.
    return (stat.st_dev, stat.st_ino, stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns)
