"""The local default model as an upstream: fetched once, run in a child, restarted if it crashes."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import sys
from pathlib import Path
from typing import Self

from chathands.emulation.outcome import ModelRequest, Piece
from chathands.errors import LocalModelError, UpstreamError, UpstreamFailed, UpstreamTimeout
from chathands.upstreams.base import Usage
from chathands.upstreams.local_fetch import fetch_weights
from chathands.upstreams.local_process import ChildConfig, ModelProcess
from chathands.upstreams.openai_chat import ChatStream, OpenAIChat
from chathands.upstreams.weights import Progress, Report, Weights, runtime_installed

DEATH_SECONDS = 1.0
"""How long after a broken connection the child's death is waited for."""
WORTH_RESTARTING_SECONDS = 10.0
"""Time a request must have left to be tried again after a crash: 5 s to load, 5 s to answer."""

_log = logging.getLogger(__name__)

_CRASHED = "本地模型的进程意外退出了（可能内存不够），下一个问题会重新启动它，请再问一次。"
_STARTING = "本地模型还在启动，请过一会儿再问。"


class LocalModel:
    """An Upstream on this machine. `fetch()` and `start()` it first; a request starts it as well.

    Only `fetch` and `start` raise LocalModelError; a request raises UpstreamError like that of any
    upstream. `threads`: None for the machine's usable cores.
    """

    local = True

    def __init__(
        self,
        weights: Weights,
        *,
        cache_dir: Path,
        log_file: Path,
        context: int = 8192,
        temperature: float = 0.0,
        max_tokens: int = 1024,
        threads: int | None = None,
    ) -> None:
        self.name = weights.name
        self.context = context
        self.weights = weights
        self._cache_dir = cache_dir
        self._log_file = log_file
        self._temperature = temperature
        self._max_tokens = max_tokens
        self._threads = threads or usable_cores()
        self._process: ModelProcess | None = None
        self._chat: OpenAIChat | None = None
        self._starting: asyncio.Task[OpenAIChat] | None = None
        self._closed = False

    @property
    def ready(self) -> bool:
        """The child runs and answers."""
        return self._chat is not None and self._process is not None and self._process.alive

    async def fetch(self, report: Report | None = None) -> Path:
        """The verified weights, brought to this machine if need be."""
        return await fetch_weights(self.weights, self._cache_dir, report=report)

    async def start(self, report: Report | None = None) -> None:
        """Fetch if need be, start the child and wait until it answers."""
        await self.running(report)

    async def running(self, report: Report | None = None) -> OpenAIChat:
        """The way to the running child, which is started if there is none. For LocalStream."""
        if self._chat is not None and self.ready:
            return self._chat
        if self._closed:
            raise LocalModelError("the local model has been closed")
        if self._starting is None or self._starting.done():
            self._starting = asyncio.create_task(self._start(report))
            self._starting.add_done_callback(_log_failure)
        # Shielded: one impatient request must not take the start from those that wait with it.
        return await asyncio.shield(self._starting)

    async def _start(self, report: Report | None) -> OpenAIChat:
        await self._drop()
        if not runtime_installed():
            raise LocalModelError(
                "xllamacpp is not installed",
                sentence='没有安装本地模型的运行库，请运行：pip install "chathands[local]"。',
            )
        path = await self.fetch(report)
        if report is not None:
            report(Progress("starting"))
        process = await ModelProcess.start(
            ChildConfig(path, self.name, self.context, self._threads, self._log_file)
        )
        self._process = process
        self._chat = OpenAIChat(
            f"{process.address}/v1",
            name=self.name,
            api_key=process.api_key,
            temperature=self._temperature,
            max_tokens=self._max_tokens,
            context=self.context,
            local=True,
        )
        return self._chat

    async def prefill(self, request: ModelRequest, *, seconds: float = 120.0) -> None:
        """Let the child read `request` now, so that the same beginning is in its cache later.

        Raises UpstreamError. Reading goes at 60 to 80 tokens a second on two cores.
        """
        stream = LocalStream(self, request, seconds, max_tokens=1)
        try:
            async for _ in stream:
                pass
        finally:
            await stream.aclose()

    def stream(self, request: ModelRequest, *, timeout: float) -> LocalStream:
        return LocalStream(self, request, timeout)

    async def died(self) -> bool:
        """Whether the child is gone, now that a connection to it broke."""
        return self._process is None or await self._process.died(DEATH_SECONDS)

    async def aclose(self) -> None:
        """End the child."""
        self._closed = True
        starting, self._starting = self._starting, None
        if starting is not None:
            starting.cancel()
            with contextlib.suppress(asyncio.CancelledError, LocalModelError):
                await starting
        await self._drop()

    async def _drop(self) -> None:
        chat, self._chat = self._chat, None
        process, self._process = self._process, None
        if chat is not None:
            await chat.aclose()
        if process is not None:
            await process.stop()


class LocalStream:
    """A ModelStream from the child; when that crashes before a word came, from its successor."""

    def __init__(
        self,
        model: LocalModel,
        request: ModelRequest,
        timeout: float,
        max_tokens: int | None = None,
    ) -> None:
        self.finish_reason: str | None = None
        self.usage: Usage | None = None
        self._model = model
        self._request = request
        self._timeout = timeout
        self._max_tokens = max_tokens
        self._deadline: float | None = None
        self._inner: ChatStream | None = None
        self._repeated = False
        self._closed = False

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Piece:
        while not self._closed:
            try:
                inner = self._inner or await self._begin()
                return await anext(inner)
            except StopAsyncIteration:
                break
            except UpstreamError as error:
                await self._after(error)
            finally:
                if self._inner is not None:
                    self.finish_reason = self._inner.finish_reason
                    self.usage = self._inner.usage
        raise StopAsyncIteration

    async def aclose(self) -> None:
        self._closed = True
        if self._inner is not None:
            await self._inner.aclose()

    async def _begin(self) -> ChatStream:
        loop = asyncio.get_running_loop()
        if self._deadline is None:
            self._deadline = loop.time() + self._timeout
        try:
            async with asyncio.timeout_at(self._deadline):
                chat = await self._model.running()
        except TimeoutError:
            raise UpstreamTimeout(
                "the local model is still starting", sentence=_STARTING, nothing_received=True
            ) from None
        except LocalModelError as error:
            raise UpstreamFailed(
                str(error), sentence=error.sentence, nothing_received=True
            ) from error
        left = self._deadline - loop.time()
        self._inner = chat.stream(self._request, timeout=left, max_tokens=self._max_tokens)
        return self._inner

    async def _after(self, error: UpstreamError) -> None:
        """Make ready for another try, or raise what a person should be told."""
        if self._inner is None or isinstance(error, UpstreamTimeout):
            raise error
        if not await self._model.died():
            raise error
        assert self._deadline is not None
        left = self._deadline - asyncio.get_running_loop().time()
        if error.nothing_received and not self._repeated and left > WORTH_RESTARTING_SECONDS:
            self._repeated = True
            self._inner = None
            return
        raise UpstreamFailed(
            f"the local model's process died: {error}",
            sentence=_CRASHED,
            nothing_received=error.nothing_received,
        ) from error


def _log_failure(starting: asyncio.Task[OpenAIChat]) -> None:
    """Those who waited may have gone when it fails, and the log must have it all the same."""
    if not starting.cancelled() and (error := starting.exception()) is not None:
        _log.error("the local model did not start: %s", error)


def usable_cores() -> int:
    """Cores that this process may use, those of hyperthreading not counted.

    llama.cpp gains nothing from a second thread on a core. A container's share (cgroup v2,
    `cpu.max`) counts; more threads than that are throttled all together.
    """
    count = os.cpu_count() or 1
    if not sys.platform.startswith("linux"):
        # Not told by the standard library; nearly every machine beyond four has two a core.
        return count if count <= 4 else count // 2
    allowed = os.sched_getaffinity(0)
    cores = {_siblings(cpu) for cpu in allowed}
    return max(1, min(len(cores), _cgroup_share(Path("/sys/fs/cgroup/cpu.max"), len(allowed))))


def _siblings(cpu: int) -> str:
    path = Path(f"/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list")
    try:
        return path.read_text("ascii").strip()
    except OSError:
        return str(cpu)


def _cgroup_share(path: Path, otherwise: int) -> int:
    """Whole cores of a `cpu.max` file: quota and period in microseconds, or `max`."""
    try:
        quota, period = path.read_text("ascii").split()
        return max(1, round(int(quota) / int(period)))
    except (OSError, ValueError):
        return otherwise
