"""WorkerPool: runs a function of `functions.py` in a warm child process, under limits.

The pipes are read by threads, not by the loop: asyncio's own subprocesses need a particular event
loop on Windows (uvicorn does not always use it) and a child watcher elsewhere.
"""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from chathands.errors import WorkerError, WorkerLimit, WorkerRejected
from chathands.settings import WorkerSettings
from chathands.workers.process import PASSES_DESCRIPTORS, Child, ChildDied
from chathands.workers.protocol import FILE_CAP

CONCURRENCY = 2
"""Children at once: each may take `memory_mb`, and small hosts have two cores."""

JOBS_PER_CHILD = 50
"""A child is replaced after so many jobs, whatever it leaks."""


class WorkerPool:
    """Child processes that are started when first needed and kept warm. Close with `aclose()`."""

    def __init__(
        self,
        settings: WorkerSettings,
        *,
        concurrency: int = CONCURRENCY,
        jobs_per_child: int = JOBS_PER_CHILD,
        pass_descriptors: bool = PASSES_DESCRIPTORS,
    ) -> None:
        """`pass_descriptors`: hand files over by descriptor; without it (Windows) by content."""
        self._settings = settings
        self._jobs_per_child = jobs_per_child
        self._pass_descriptors = pass_descriptors
        self._concurrency = concurrency
        self._slots = asyncio.Semaphore(concurrency)
        self._threads: ThreadPoolExecutor | None = None
        self._children: set[Child] = set()
        self._idle: list[Child] = []
        self._jobs: set[asyncio.Future[dict[str, Any]]] = set()
        self._closed = False

    @property
    def pids(self) -> tuple[int, ...]:
        """Process ids of the living children."""
        return tuple(sorted(child.pid for child in self._children if child.pid is not None))

    async def run(
        self,
        function: str,
        payload: dict[str, Any],
        *,
        timeout: float | None = None,  # noqa: ASYNC109 - the limit is the child's, not the task's
        file: int | Sequence[int] | None = None,
    ) -> dict[str, Any]:
        """What `function` returns for `payload`, and for the files behind the descriptors `file`.

        `timeout` can only shorten the wall limit of the settings; waiting for a free child counts.
        A file that it made is in `blob`. Descriptors stay the caller's. A cancelled run kills its
        child.
        Raises WorkerRejected (its sentence says what is wrong with the input), WorkerLimit
        (memory, CPU, time, or the child was killed), WorkerError (a fault of ours, or closed).
        """
        if self._closed:
            raise _closed()
        wall = self._settings.wall_seconds
        wall = wall if timeout is None else min(timeout, wall)
        if wall <= 0:
            raise WorkerLimit("no time left", sentence="时间用完了，没有读取文件。")
        given = [] if file is None else [file] if isinstance(file, int) else list(file)
        sizes = [_size_of(each) for each in given]
        loop = asyncio.get_running_loop()
        began = loop.time()
        await self._free_slot(wall)
        left = wall - (loop.time() - began)
        if left <= 0:
            self._slots.release()
            raise _busy()
        child = self._warm_child() or self._new_child()
        held = dict(zip(map(os.dup, given), sizes, strict=True))
        request = {"function": function, "payload": payload, "wall": left}
        job = loop.run_in_executor(self._pipe_threads(), child.ask, request, held)
        self._jobs.add(job)
        job.add_done_callback(lambda done: self._settle(child, held, done))
        try:
            await asyncio.wait({job}, timeout=left)
        finally:
            late = not job.done()
            if late:
                child.kill()
                await asyncio.wait({job})
        return self._answer(job, wall, late)

    async def aclose(self) -> None:
        """Ends every child and waits until they are gone. Running jobs fail."""
        self._closed = True
        for child in self._children:
            child.kill()
        if self._jobs:
            await asyncio.wait(set(self._jobs))
        if self._threads is None:
            return
        loop = asyncio.get_running_loop()
        await asyncio.gather(
            *(loop.run_in_executor(self._threads, child.close) for child in self._children)
        )
        self._children.clear()
        self._idle.clear()
        self._threads.shutdown(wait=False)
        self._threads = None

    async def _free_slot(self, wall: float) -> None:
        try:
            async with asyncio.timeout(wall):
                await self._slots.acquire()
        except TimeoutError:
            raise _busy() from None
        if self._closed:
            self._slots.release()
            raise _closed()

    def _pipe_threads(self) -> ThreadPoolExecutor:
        if self._threads is None:
            self._threads = ThreadPoolExecutor(self._concurrency, "worker-pipe")
        return self._threads

    def _warm_child(self) -> Child | None:
        """An idle child that still lives; the system may have killed one for its memory."""
        while self._idle:
            child = self._idle.pop()
            if child.alive:
                return child
            self._children.discard(child)
            child.close()
        return None

    def _new_child(self) -> Child:
        child = Child(self._settings, self._jobs_per_child, self._pass_descriptors)
        self._children.add(child)
        return child

    def _settle(
        self, child: Child, held: Iterable[int], job: asyncio.Future[dict[str, Any]]
    ) -> None:
        """Runs when a job is over, also when nobody waits for it any more."""
        self._jobs.discard(job)
        for descriptor in held:
            os.close(descriptor)
        if not job.cancelled():
            job.exception()  # looked at, so that asyncio does not report it as lost
        if child.alive:
            self._idle.append(child)
        else:
            self._children.discard(child)
        self._slots.release()

    def _answer(
        self, job: asyncio.Future[dict[str, Any]], wall: float, late: bool
    ) -> dict[str, Any]:
        memory = (
            f"处理这个文件需要的内存超过了 {self._settings.memory_mb} MB 的上限，没有读取。"
            "请把文件拆小，或删掉远处的空白单元格后再试。"
        )
        try:
            reply = job.result()
        except ChildDied as died:
            if self._closed:
                raise _closed() from died
            if late:
                raise WorkerLimit(
                    f"killed after {wall:.3g} s",
                    sentence=f"处理这个文件超过了 {wall:.3g} 秒的时间上限，已停止。"
                    "请把文件拆小后再试。",
                ) from died
            if died.returncode == -getattr(signal, "SIGXCPU", 0):
                raise WorkerLimit(
                    str(died),
                    sentence=f"处理这个文件超过了 {self._settings.cpu_seconds} 秒的计算上限，"
                    "已停止。请把文件拆小后再试。",
                ) from died
            if died.returncode == -getattr(signal, "SIGABRT", 0):
                # Rust ends a process that has no memory left so, and nothing can catch it.
                raise WorkerLimit(str(died), sentence=memory) from died
            if died.by_signal:
                raise WorkerLimit(str(died)) from died
            raise WorkerError(str(died)) from died
        if "result" in reply:
            made = {"blob": reply["blob"]} if reply["blob"] else {}
            return reply["result"] | made
        if "rejected" in reply:
            raise WorkerRejected(reply["rejected"], sentence=reply["rejected"])
        if reply.get("limit") == "memory":
            raise WorkerLimit("MemoryError", sentence=memory)
        raise WorkerLimit("the answer is over the frame cap", sentence="结果太大，没有返回。")


def _size_of(file: int) -> int:
    size = os.fstat(file).st_size
    if size > FILE_CAP:
        raise WorkerLimit(
            f"a file of {size} bytes",
            sentence=f"文件有 {size / 1024 / 1024:.0f} MB，超过了 "
            f"{FILE_CAP // 1024 // 1024} MB 的上限，没有读取。请把文件拆小后再试。",
        )
    return size


def _closed() -> WorkerError:
    return WorkerError("the pool is closed", sentence="机器人正在关闭，没有处理文件。")


def _busy() -> WorkerLimit:
    return WorkerLimit("no free child in time", sentence="正在处理别的文件，没有轮到，请稍后再试。")
