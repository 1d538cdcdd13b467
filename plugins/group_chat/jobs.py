"""A job: what stands between an accepted question (or decision) and its one reply."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from dataclasses import dataclass
from enum import Enum, IntEnum, auto
from typing import Any, TypeVar

from nonebot.log import logger

from chathands.toolbox.calls import CallStarted
from plugins.group_chat.messages import Place

T = TypeVar("T")


class Stopped(Exception):
    """The job was cancelled; `Job.why` says by what."""


class Again(Exception):
    """The work was dropped because more was said; it begins anew."""


class Crashed(Exception):
    """The engine raised something it should not have; it is in the log."""


class Stage(IntEnum):
    QUEUED = 1
    RUNNING = 2
    REPLYING = 3


class Why(Enum):
    """What stopped a job."""

    ASKER = auto()
    """停."""
    SHUTDOWN = auto()
    RECALLED = auto()
    """The question was taken back."""
    SILENCED = auto()
    """The bot may not speak there."""


@dataclass(eq=False, slots=True)
class Job:
    """One question's way; `do` its steps, `stop` it from outside."""

    place: Place
    message_id: str | None
    """What the reply quotes."""
    stage: Stage = Stage.QUEUED
    run_id: str = ""
    begun: bool = False
    """The run's id has been told."""
    called: bool = False
    """A tool was started: it is too late to begin anew."""
    why: Why | None = None
    """Set once it is stopped."""
    _again: bool = False
    _work: asyncio.Task[Any] | None = None

    async def do(self, work: Coroutine[Any, Any, T]) -> T:
        """The result of `work`, which `stop()` cancels. Raises Stopped, Again or Crashed."""
        task = self._work = asyncio.ensure_future(work)
        if self.why is not None:
            task.cancel()
        try:
            await asyncio.wait({task})
        except asyncio.CancelledError:
            task.cancel()
            raise
        again, self._again = self._again, False
        if task.cancelled():
            raise Again if again and self.why is None else Stopped
        if (error := task.exception()) is not None:
            logger.opt(exception=error).error(f"run {self.run_id or '-'} crashed")
            raise Crashed
        return task.result()

    def stop(self, why: Why) -> None:
        """Cancel it, unless its reply is already on the way."""
        if self.stage is not Stage.REPLYING and self.why is None:
            self.why = why
            if self._work is not None:
                self._work.cancel()

    @property
    def may_grow(self) -> bool:
        """Whether its question may still change: no tool was started and no answer is there."""
        if self.why is not None or self.stage is Stage.REPLYING or self.called:
            return False
        return self.stage is Stage.QUEUED or (self._work is not None and not self._work.done())

    def grown(self) -> None:
        """The question has changed: a run that goes is dropped, and `do` raises Again."""
        if self.stage is Stage.RUNNING and self._work is not None:
            self._again = True
            self._work.cancel()

    def note(self, event: object) -> None:
        """Learn what the run does (an `on_event` callback)."""
        run_id = getattr(event, "run_id", None)
        if run_id is not None:
            self.run_id, self.begun = run_id, True
        elif isinstance(event, CallStarted):
            self.called = True
