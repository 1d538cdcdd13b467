"""Calls that go on after their request was answered: bounded, kept for a while, each its owner's.

They live in this process: a restart ends them, and what had started is then unknown (audit). Who
needs the result across a restart sends an Idempotency-Key.
"""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from chathands.server.errors import ApiError

MOST_RUNNING = 20
"""Of one caller; each holds a tool, perhaps a worker process."""
MOST_KEPT = 200
"""Of one caller, results included; the oldest result goes first. At 1 MB each, the most that is
kept of texts, one caller holds 200 MB at the very worst."""
MOST_TOGETHER = 100
"""Running ones of all callers."""

ENDING_SECONDS = 2.0
"""A cancelled call gets so long to say what it had done; tools have half a second to unwind."""


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer over HTTP that is not sent yet."""

    status: int
    body: dict[str, Any]
    headers: dict[str, str] = field(default_factory=dict)


@dataclass(eq=False, slots=True)
class Job:
    id: str
    owner: str
    tool: str
    task: asyncio.Task[Reply]
    created: float
    """Wall clock, seconds."""
    effect: bool
    """It may change something: cancelled, its outcome is unknown."""
    ended: float | None = None
    cancelled: bool = False

    def view(self, keep: float) -> dict[str, Any]:
        """What its owner is shown."""
        shown: dict[str, Any] = {
            "id": self.id,
            "tool": self.tool,
            "status": "running",
            "created": round(self.created, 3),
        }
        if not self.task.done():
            return shown
        shown["expires_at"] = round((self.ended or self.created) + keep, 3)
        if self.task.cancelled():
            shown["status"] = "cancelled"
            if self.effect:
                shown["result"] = {
                    "status": "unknown",
                    "content": "the call was cancelled while it ran; whether it took effect is not"
                    " known, and it is not repeated",
                }
            return shown
        error = self.task.exception()
        reply = self.task.result() if error is None else reply_of(error)
        return shown | {"status": "done", "code": reply.status, "result": reply.body}


class Jobs:
    """`keep`: seconds a result can be fetched. `wall` gives wall-clock seconds."""

    def __init__(self, *, keep: float, wall: Callable[[], float] = time.time) -> None:
        self.keep = keep
        self._wall = wall
        self._jobs: dict[str, Job] = {}
        self._calls: set[asyncio.Task[Reply]] = set()
        """All that run, jobs or not: what a closing server has to end."""

    def call(self, task: asyncio.Task[Reply]) -> asyncio.Task[Reply]:
        """Have an eye on a running call, whether or not it becomes a job."""
        self._calls.add(task)
        task.add_done_callback(self._ended)
        return task

    def room(self, owner: str) -> bool:
        """Whether one more of this owner's calls may become a job."""
        running = [job for job in self._jobs.values() if not job.task.done()]
        mine = sum(job.owner == owner for job in running)
        return mine < MOST_RUNNING and len(running) < MOST_TOGETHER

    def add(self, task: asyncio.Task[Reply], owner: str, tool: str, *, effect: bool) -> Job:
        """Let a call go on as a job."""
        job = Job(secrets.token_hex(12), owner, tool, task, self._wall(), effect)
        self._jobs[job.id] = job

        def ended(_: object) -> None:
            job.ended = self._wall()

        task.add_done_callback(ended)
        self._drop_old(owner)
        return job

    def get(self, job_id: str, owner: str) -> Job | None:
        """The owner's job; somebody else's does not exist for them."""
        self._drop_old(owner)
        job = self._jobs.get(job_id)
        return job if job is not None and job.owner == owner else None

    async def cancel(self, job: Job) -> None:
        """End the job, and wait for what it leaves to be written down; a finished one stays."""
        job.task.cancel()
        await asyncio.wait({job.task}, timeout=ENDING_SECONDS)

    async def aclose(self) -> None:
        """Cancel everything that runs and wait until its outcome is recorded."""
        for task in self._calls:
            task.cancel()
        if self._calls:
            await asyncio.wait(set(self._calls))

    def _ended(self, task: asyncio.Task[Reply]) -> None:
        self._calls.discard(task)
        if not task.cancelled():
            task.exception()  # whoever waits for it has it; a job shows it

    def _drop_old(self, owner: str) -> None:
        now = self._wall()
        for job in list(self._jobs.values()):
            if job.ended is not None and now - job.ended >= self.keep:
                del self._jobs[job.id]
        mine = [job for job in self._jobs.values() if job.owner == owner]
        done = [job for job in mine if job.task.done()]
        for job in done[: max(0, len(mine) - MOST_KEPT)]:
            del self._jobs[job.id]


def reply_of(error: BaseException) -> Reply:
    """What a failed call answers; never what the exception says."""
    if isinstance(error, ApiError):
        return Reply(error.status, error.body, error.headers)
    return Reply(500, ApiError(500, "internal", "internal error; see the server's log").body)
