"""What goes into and comes out of the executor, besides ToolCall and ToolResult themselves."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from chathands.conversation import ToolCall, ToolResult, ToolSpec
from chathands.toolbox.tool import Tool


@dataclass(frozen=True, slots=True)
class CallStarted:
    """A call passed every check and is being run."""

    call: ToolCall
    spec: ToolSpec


@dataclass(frozen=True, slots=True)
class CallFinished:
    """A call has its result, run or not."""

    result: ToolResult


OnEvent = Callable[[CallStarted | CallFinished], Any]


@dataclass(frozen=True, slots=True)
class PendingCall:
    """A call that waits for a person's yes. Its arguments are the checked ones."""

    call: ToolCall
    call_hash: str
    target: str
    shown: str
    """The full content, for the person."""
    reason: str
    """Why a yes is needed, one sentence."""


@dataclass(frozen=True, slots=True)
class Decision:
    """How a PendingCall was decided. `by`: the user id; empty when nobody answered in time."""

    answer: Literal["yes", "no", "expired"]
    by: str = ""


@dataclass(frozen=True, slots=True)
class Batch:
    """Results in the order of the calls. With `pending`, `remaining` starts with that call and
    holds all that have no result yet."""

    results: tuple[ToolResult, ...]
    pending: PendingCall | None = None
    remaining: tuple[ToolCall, ...] = ()
    closes_run: bool = False
    """The model repeats itself: ask it for its answer now."""


@dataclass(frozen=True, slots=True)
class Ready:
    """A call that is known, fits and is permitted."""

    call: ToolCall
    tool: Tool
    spec: ToolSpec
    effective: dict[str, Any]
    """The arguments with the defaults of those left out: what a person is shown, and what makes
    two calls the same."""
    hash: str
    target: str

    @property
    def reads(self) -> bool:
        return self.spec.side_effect == "none"


@dataclass(frozen=True, slots=True)
class Refused:
    """A call that is answered without being run."""

    result: ToolResult
    hash: str
    arguments: dict[str, Any]
    spec: ToolSpec | None

    @property
    def reads(self) -> bool:
        return self.spec is not None and self.spec.side_effect == "none"
