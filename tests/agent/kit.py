"""An agent on real files: tool modules, SQLite, audit; only the model is a script."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from chathands.agent import Agent, Finished, Question, RunStarted, Suspended, build_agent
from chathands.conversation import Role
from chathands.emulation.contract import render_block
from chathands.emulation.outcome import ChatMessage, ModelRequest, Text
from chathands.settings import Settings
from chathands.toolbox import Caller
from chathands.upstreams.base import Upstream
from chathands.upstreams.scripted import Scripted
from tests.toolbox.kit import ADMIN, BOSS, HEAD, MEMBER, NOTE, READ, SEND, settings_in, write

__all__ = ["ADMIN", "BOSS", "MEMBER", "NOTE", "NOW", "READ", "SEND", "Clockwork", "World", "world"]

NOW = datetime(2026, 9, 30, 14, 5)


def block(name: str, /, **arguments: Any) -> str:
    """A call in the contract's form."""
    return render_block(name, arguments)


class Events(list[Any]):
    """What a run tells on its way."""

    def __init__(self) -> None:
        super().__init__()
        self._waiting: list[tuple[type, int, asyncio.Event]] = []

    def append(self, event: Any) -> None:
        super().append(event)
        for kind, count, reached in self._waiting:
            if self.count_of(kind) >= count:
                reached.set()

    def count_of(self, kind: type) -> int:
        return sum(isinstance(event, kind) for event in self)

    async def reach(self, kind: type, count: int = 1) -> None:
        """Wait until `count` events of this kind have come, and a moment longer."""
        reached = asyncio.Event()
        self._waiting.append((kind, count, reached))
        if self.count_of(kind) < count:
            await reached.wait()
        await asyncio.sleep(1)


@dataclass
class World:
    agent: Agent
    model: Any
    settings: Settings
    events: Events = field(default_factory=Events)

    @property
    def effects(self) -> list[str]:
        """What tools really did, in order."""
        file = self.settings.state_dir / "effects.txt"
        return file.read_text("utf-8").splitlines() if file.exists() else []

    @property
    def requests(self) -> list[ModelRequest]:
        return self.model.requests

    @property
    def run_id(self) -> str:
        """Of the run that started last."""
        return [e.run_id for e in self.events if isinstance(e, RunStarted)][-1]

    def last_text(self, at: int = -1) -> str:
        """The last message of a request."""
        return self.requests[at].messages[-1].content

    async def ask(self, text: str, caller: Caller = MEMBER, **fields: Any) -> Finished | Suspended:
        question = Question(text, caller, now=NOW, **fields)
        return await self.agent.ask(question, on_event=self.events.append)

    async def decide(self, suspended: Any, approve: bool, by: Caller = ADMIN) -> Any:
        return await self.agent.decide(
            suspended.approval.id, approve, by, on_event=self.events.append
        )


@asynccontextmanager
async def world(
    directory: Path,
    replies: Iterable[Any] | Callable[..., Any] | Upstream,
    *sources: str,
    toml: str = "",
    **overrides: Any,
) -> AsyncIterator[World]:
    """An agent with the tools of `sources`; may be entered again on the same directory."""
    settings = settings_in(directory, **overrides)
    if sources:
        write(settings.tools_dir, {"box.py": HEAD + "\n".join(sources)})
    if toml:
        write(directory, {"tools.toml": toml})
    model: Any = replies if hasattr(replies, "stream") else Scripted(replies)  # type: ignore[arg-type]
    async with build_agent(settings, upstream=model) as agent:
        assert agent.describe().load_errors == ()
        yield World(agent, model, settings)


class Clockwork:
    """A model that takes its time and minds no timeout: (seconds, reply) for each request.

    With seconds None it never says anything.
    """

    name = "clockwork"
    context = 8192

    def __init__(self, *replies: tuple[float | None, str], local: bool = False) -> None:
        self.local = local
        self.requests: list[ModelRequest] = []
        self.times: list[float] = []
        self.open = 0
        self._replies = iter(replies)

    def stream(self, request: ModelRequest, *, timeout: float) -> _Ticking:
        self.requests.append(request)
        self.times.append(asyncio.get_running_loop().time())
        return _Ticking(self, *next(self._replies))

    async def aclose(self) -> None:
        pass


class _Ticking:
    finish_reason = None
    usage = None

    def __init__(self, clockwork: Clockwork, seconds: float | None, reply: str) -> None:
        self._clockwork = clockwork
        self._seconds = seconds
        self._reply = reply
        clockwork.open += 1

    async def __aiter__(self) -> AsyncIterator[Text]:
        if self._seconds is None:
            await asyncio.Event().wait()
        for character in self._reply:
            await asyncio.sleep((self._seconds or 0) / len(self._reply))
            yield Text(character)
        self.finish_reason = "stop"

    async def aclose(self) -> None:
        self._clockwork.open -= 1


def grows(earlier: ModelRequest, later: ModelRequest) -> bool:
    """Whether `later` repeats `earlier` and only adds to its end: what a prompt cache needs."""
    *head, last = earlier.messages
    rest = later.messages[len(head) :]
    return (
        later.messages[: len(head)] == tuple(head)
        and bool(rest)
        and rest[0].role is last.role
        and rest[0].content.startswith(last.content)
    )


def user_texts(request: ModelRequest) -> list[str]:
    return [message.content for message in request.messages if message.role is Role.USER]


def system_text(request: ModelRequest) -> str:
    first: ChatMessage = request.messages[0]
    return first.content if first.role is Role.SYSTEM else ""
