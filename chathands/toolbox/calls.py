"""What goes into and comes out of the executor, besides ToolCall and ToolResult themselves."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
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


Code = Literal[
    "unknown_tool",
    "invalid_arguments",
    "forbidden",
    "rate",
    "quota",
    "busy",
    "breaker",
    "stuck",
    "given_up",
    "too_late",
    "order",
    "repeated",
    "undecided",
    "denied",
    "audit",
    "timeout",
    "failed",
    "unknown",
]
"""`order`: its place in the reply; `undecided`: nobody could be asked, or a person said no;
`denied`: by the tool itself; `given_up`: it has failed too often in this run."""


@dataclass(frozen=True, slots=True)
class Why:
    """Why a call is not `ok`, for programs; the sentence is for models and people.
    `retry_after`: seconds, where waiting helps."""

    code: Code
    retry_after: float | None = None


@dataclass(frozen=True, slots=True)
class Ran:
    """A call's result, and why when it is not `ok`."""

    result: ToolResult
    why: Why | None = None


@dataclass(frozen=True, slots=True)
class Batch:
    """Results in the order of the calls. With `pending`, `remaining` starts with that call and
    holds all that have no result yet."""

    results: tuple[ToolResult, ...]
    pending: PendingCall | None = None
    remaining: tuple[ToolCall, ...] = ()
    closes_run: bool = False
    """The model repeats itself: ask it for its answer now."""
    why: Mapping[str, Why] = field(default_factory=lambda: MappingProxyType({}))
    """By call id, for results that are not `ok`."""


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
    why: Why

    @property
    def reads(self) -> bool:
        return self.spec is not None and self.spec.side_effect == "none"
