"""The agent's life inside the bot's: built at start, closed at the end, a farewell on signals."""

from __future__ import annotations

import asyncio
import signal
import threading
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager, suppress
from types import FrameType
from typing import TYPE_CHECKING, Any

from nonebot.log import logger

from chathands.errors import ChatHandsError

if TYPE_CHECKING:
    from chathands.agent import Agent

Build = Callable[[], AbstractAsyncContextManager["Agent"]]

START_SECONDS = 3.0
"""How long the start waits for the agent. A local model that is still being fetched must not keep
QQ from connecting: NapCat gives a connection 2 s."""

FAILED = "我没能启动，请管理员查看日志。"
PREPARING = "我还在准备（{what}），请过一会儿再问。"


class NotReady(Exception):
    """There is no agent: not yet, or something must be set first."""

    def __init__(self, sentence: str) -> None:
        super().__init__(sentence)
        self.sentence = sentence


class Engine:
    """Holds the agent. It is entered and left in one task, as its task groups demand."""

    def __init__(self, build: Build) -> None:
        self._build = build
        self._agent: Agent | None = None
        self._why_not = PREPARING.format(what="正在启动")
        self._settled = asyncio.Event()
        self._closing = asyncio.Event()
        self._life: asyncio.Task[None] | None = None

    def agent(self) -> Agent:
        """The agent; raises NotReady with the sentence for people."""
        if self._agent is None:
            raise NotReady(self._why_not)
        return self._agent

    def progress(self, what: str) -> None:
        """What the start is busy with, for those who ask meanwhile."""
        self._why_not = PREPARING.format(what=what)

    async def start(self, on_ready: Callable[[Agent], Awaitable[object]]) -> None:
        """Build the agent; returns when it is there, has failed, or takes its time.

        `on_ready` runs once with it.
        """
        self._life = asyncio.ensure_future(self._live(on_ready))
        self._life.add_done_callback(self._ended)
        with suppress(TimeoutError):
            await asyncio.wait_for(self._settled.wait(), START_SECONDS)

    async def stop(self) -> None:
        """Close the agent: model child, workers, files."""
        self._agent = None
        self._closing.set()
        if self._life is not None:
            if not self._settled.is_set():
                self._life.cancel()
            await asyncio.wait({self._life})

    async def _live(self, on_ready: Callable[[Agent], Awaitable[object]]) -> None:
        try:
            async with self._build() as agent:
                self._agent = agent
                await on_ready(agent)
                self._settled.set()
                await self._closing.wait()
        except ChatHandsError as error:
            self._why_not = error.sentence
            logger.error(f"{error.sentence}（{error}）")
        finally:
            self._agent = None
            self._settled.set()

    def _ended(self, life: asyncio.Task[None]) -> None:
        if not life.cancelled() and (error := life.exception()) is not None:
            self._why_not = FAILED
            logger.opt(exception=error).error("the agent could not be started")


class Farewell:
    """Runs `say_goodbye` on the first SIGTERM or SIGINT, then lets the server's handler have it.

    uvicorn closes the websockets before any shutdown hook runs, so whoever wants to say something
    must do so here. A second signal is obeyed at once.
    """

    def __init__(self, say_goodbye: Callable[[], Awaitable[object]]) -> None:
        self._say_goodbye = say_goodbye
        self._previous: dict[int, Any] = {}
        self._task: asyncio.Task[None] | None = None
        self._signalled = False
        self._loop: asyncio.AbstractEventLoop | None = None

    def install(self) -> None:
        """Wrap the handlers that are there now; call it when the server has set its own."""
        if threading.current_thread() is not threading.main_thread():
            return  # Python sets signal handlers in the main thread only
        self._loop = asyncio.get_running_loop()
        names = ("SIGTERM", "SIGINT", "SIGBREAK")  # the last one is Ctrl-Break on Windows
        for number in (getattr(signal, name) for name in names if hasattr(signal, name)):
            previous = signal.getsignal(number)
            if callable(previous):  # nobody's handler: the default action is fine as it is
                self._previous[number] = previous
                signal.signal(number, self._handle)

    def remove(self) -> None:
        for number, previous in self._previous.items():
            if signal.getsignal(number) == self._handle:
                signal.signal(number, previous)
        self._previous.clear()

    def _handle(self, number: int, frame: FrameType | None) -> None:
        previous = self._previous[number]
        if self._signalled or self._loop is None or self._loop.is_closed():
            previous(number, frame)
            return
        self._signalled = True
        self._loop.call_soon_threadsafe(self._start, number, frame)

    def _start(self, number: int, frame: FrameType | None) -> None:
        self._task = asyncio.ensure_future(self._leave(number, frame))

    async def _leave(self, number: int, frame: FrameType | None) -> None:
        try:
            await self._say_goodbye()
        finally:
            self._previous[number](number, frame)
