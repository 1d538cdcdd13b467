"""Who asks and what a tool may reach: Caller, ToolContext, RunScope. Never part of a schema."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from chathands.conversation import Audience

if TYPE_CHECKING:
    import httpx

    from chathands.reminders import ReminderBook
    from chathands.settings import Settings
    from chathands.toolbox.delivery import Deliver
    from chathands.toolbox.files import FileRoots
    from chathands.toolbox.registry import Generation
    from chathands.workers.pool import WorkerPool

CallerRole = Literal["member", "admin", "owner", "superuser"]


@dataclass(frozen=True, slots=True)
class Caller:
    """A person, as the event says; never as text says."""

    user_id: str
    group_id: str | None = None
    role: CallerRole = "member"
    name: str = ""
    platform: str = "terminal"
    bot_id: str = ""

    @property
    def private(self) -> bool:
        return self.group_id is None

    @property
    def audience(self) -> Audience:
        """The widest audience whose tools this person may use."""
        if self.role == "superuser":
            return "superuser"
        return "admin" if self.role in ("admin", "owner") else "everyone"

    @property
    def conversation_id(self) -> str:
        return f"{self.platform}:{self.bot_id}:{self.group_id or '-'}:{self.user_id}"


@dataclass(slots=True)
class RunScope:
    """What the executor remembers of one run; plain data, so that a suspended run can be stored."""

    run_id: str
    caller: Caller
    generation: Generation
    remaining: Callable[[], float]
    """Seconds until tools must stop."""
    done: list[dict[str, Any]] = field(default_factory=list)
    """Finished calls, oldest first: {"hash", "name", "arguments", "side_effect", "status",
    "content", "repeats", "target", "started", "decided", "told", "files"}; JSON-safe."""
    read_foreign: bool = False
    """Text from outside has entered this run: outward side effects need a person's yes."""


@dataclass(frozen=True, slots=True)
class ToolContext:
    """Injected into a tool for the parameter annotated `ToolContext`, wherever that stands."""

    caller: Caller
    run_id: str
    settings: Settings
    files: FileRoots
    http: Callable[[], httpx.AsyncClient]
    """A shared client for addresses named in settings; call it where it is used (lazy import)."""
    workers: WorkerPool
    remaining: Callable[[], float]
    """Seconds this call may still take."""
    tell: Callable[[str], None] = lambda _: None
    """Takes a sentence the person must hear whatever the model writes ("nothing was really sent"):
    the final reply gets it when it does not hold it already."""
    attach: Callable[[str, bytes], None] = lambda *_: None
    """Takes a file, name and content, that the person gets behind the final reply; a picture is
    shown as one. Raises ToolFailed over 4 files or 10 MB in a run."""
    deliver: Deliver | None = None
    """Brings something to another chat of the platform; None where there is none (terminal)."""
    reminders: ReminderBook | None = None
    """Where reminders are kept; None where nobody would say them (terminal, HTTP)."""
    result_limit: int | None = None
    """Characters the model gets of this result; more is cut from its middle."""
