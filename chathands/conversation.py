"""The canonical values every layer speaks: messages, tool specs, calls, results, choice.

No wire format and no prompt wording lives here.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Literal, Self

SideEffect = Literal["none", "local", "outward", "unknown"]
Confidence = Literal["strict", "repaired", "recovered"]
Audience = Literal["everyone", "admin", "superuser"]


class Role(StrEnum):
    SYSTEM = "system"
    USER = "user"
    ASSISTANT = "assistant"
    TOOL = "tool"


class Status(StrEnum):
    """How a tool call ended."""

    OK = "ok"
    FAILED = "failed"
    """Did not happen; the model may correct it."""
    DENIED = "denied"
    """Was not allowed, or not run."""
    UNKNOWN = "unknown"
    """A side effect that may have happened; never retried by itself, and said so."""


class Tag(StrEnum):
    """Why a message is in the list; everything but PLAIN leaves when a run is over."""

    PLAIN = "plain"
    REJECTED = "rejected"
    """A reply that was refused or broken, kept while its correction stands behind it."""
    CORRECTION = "correction"
    """Our answer to a rejected reply."""
    NOTICE = "notice"
    """Our own remark: forced choice, tools withdrawn, last round."""


@dataclass(frozen=True, slots=True)
class ToolExample:
    """One request as a person would say it, and the arguments that answer it."""

    request: str
    arguments: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """What a model is told about a tool. `parameters` is a JSON Schema of type object."""

    name: str
    description: str = ""
    parameters: Mapping[str, Any] = field(
        default_factory=lambda: {"type": "object", "properties": {}}
    )
    side_effect: SideEffect = "unknown"
    examples: tuple[ToolExample, ...] = ()
    audience: Audience = "everyone"
    foreign: bool = False
    """Its results carry text from outside (pages, searches, uploads)."""
    deterministic: bool = True

    @classmethod
    def from_openai(cls, tool: Mapping[str, Any]) -> Self:
        """Read `{"type": "function", "function": {...}}`, or the inner object alone.

        Raises ValueError when there is no name.
        """
        function = tool.get("function", tool)
        name = function.get("name") if isinstance(function, Mapping) else None
        if not isinstance(name, str) or not name:
            raise ValueError("a tool needs a name")
        parameters = function.get("parameters") or function.get("input_schema")
        if not isinstance(parameters, Mapping):
            parameters = {"type": "object", "properties": {}}
        return cls(
            name=name, description=str(function.get("description") or ""), parameters=parameters
        )


def as_specs(tools: Sequence[ToolSpec | Mapping[str, Any]]) -> tuple[ToolSpec, ...]:
    """Specs from specs or OpenAI-style dicts, in the same order."""
    return tuple(t if isinstance(t, ToolSpec) else ToolSpec.from_openai(t) for t in tools)


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A request to run a tool. `repairs` says what had to be done to read it, for traces."""

    id: str
    name: str
    arguments: Mapping[str, Any]
    confidence: Confidence = "strict"
    repairs: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ToolResult:
    """What came back for one call. `content` is text for the model, already cut to size."""

    call_id: str
    name: str
    status: Status
    content: str
    cost_ms: int | None = None
    truncated: bool = False
    """`content` is shorter than what the tool gave; the true size is stated in it."""
    foreign: bool = False


@dataclass(frozen=True, slots=True)
class ToolChoice:
    kind: Literal["auto", "none", "required", "named"] = "auto"
    name: str | None = None

    @classmethod
    def of(cls, value: str | ToolChoice) -> ToolChoice:
        """`auto`, `none`, `required`, or a tool's name."""
        if isinstance(value, ToolChoice):
            return value
        if value in ("auto", "none", "required"):
            return cls(value)  # type: ignore[arg-type]
        return cls("named", value)


@dataclass(frozen=True, slots=True)
class Image:
    """A picture in a message; the model is told of it by a placeholder."""

    url: str
    mime: str | None = None


@dataclass(frozen=True, slots=True)
class Message:
    """One entry of a conversation. Only assistants have `calls`; only tool messages a `result`."""

    role: Role
    text: str = ""
    calls: tuple[ToolCall, ...] = ()
    result: ToolResult | None = None
    images: tuple[Image, ...] = ()
    tag: Tag = Tag.PLAIN
    head: str = ""
    """Our own lines before a user's text in the prompt (time, asker, files): known to the model,
    but nothing the person said."""

    @classmethod
    def system(cls, text: str) -> Self:
        return cls(Role.SYSTEM, text)

    @classmethod
    def user(
        cls, text: str, *, head: str = "", images: Sequence[Image] = (), tag: Tag = Tag.PLAIN
    ) -> Self:
        return cls(Role.USER, text, images=tuple(images), tag=tag, head=head)

    @classmethod
    def assistant(cls, text: str, calls: Sequence[ToolCall] = (), *, tag: Tag = Tag.PLAIN) -> Self:
        return cls(Role.ASSISTANT, text, calls=tuple(calls), tag=tag)

    @classmethod
    def tool(cls, result: ToolResult) -> Self:
        return cls(Role.TOOL, result.content, result=result)


Conversation = Sequence[Message]
"""The canonical message list, oldest first."""


def canonical_json(value: Any) -> str:
    """JSON for prompts and hashes: sorted keys, characters as they are (never `\\u` escapes)."""
    return json.dumps(value, ensure_ascii=False, sort_keys=True)
