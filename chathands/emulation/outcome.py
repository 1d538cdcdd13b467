"""What goes into a turn and what comes out: pieces, events, requests, parsed replies, outcomes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, ClassVar, Literal

from chathands.conversation import Message, Role, ToolCall

# --- in: what an upstream streams


@dataclass(frozen=True, slots=True)
class Text:
    text: str


@dataclass(frozen=True, slots=True)
class Thinking:
    text: str


@dataclass(frozen=True, slots=True)
class NativeCall:
    """A piece of a native tool call: fragments of one `index` belong together."""

    index: int
    id: str | None = None
    name: str | None = None
    arguments: str = ""


@dataclass(frozen=True, slots=True)
class Verbatim:
    """A part of the reply to a request that was passed on as it came (`ModelRequest.body`): the
    JSON of one event of a stream, or the whole reply. No turn reads it."""

    data: str
    document: dict[str, Any]
    """The same, read; whoever has the piece may change it."""


Piece = Text | Thinking | NativeCall | Verbatim

# --- out while feeding


@dataclass(frozen=True, slots=True)
class TextDelta:
    """Text that may leave now."""

    text: str


@dataclass(frozen=True, slots=True)
class CallReady:
    """A call that is whole, declared and fits; it may leave now."""

    call: ToolCall


Event = TextDelta | CallReady


@dataclass(frozen=True, slots=True)
class Begins:
    """A sign beside the events: something that is read in silence begins here. `sure`: it can only
    be meant as a call."""

    sure: bool


@dataclass(frozen=True, slots=True)
class Retracted:
    """A sign beside the events: the text before it was thinking."""


Sign = Begins | Retracted

# --- the request


@dataclass(frozen=True, slots=True)
class ChatMessage:
    """One plain message of a request; in native mode calls and results as the protocol has them."""

    role: Role
    content: str
    tool_calls: tuple[Mapping[str, Any], ...] = ()
    tool_call_id: str | None = None
    source: Message | None = None
    """The message itself, where it is passed on untouched: pictures, names, parts."""


@dataclass(frozen=True, slots=True)
class ModelRequest:
    messages: tuple[ChatMessage, ...]
    response_format: Mapping[str, Any] | None = None
    tools: tuple[Mapping[str, Any], ...] | None = None
    tool_choice: str | Mapping[str, Any] | None = None
    stop: tuple[str, ...] = ()
    sampling: Mapping[str, Any] = field(default_factory=dict)
    """Parameters a client asked for (temperature, max_tokens …); they win over the settings."""
    body: Mapping[str, Any] | None = None
    """A client's own chat-completions request, to be passed on as it is but for the model's name.
    `messages` then only say what it holds; an upstream that speaks this protocol gives its reply
    as `Verbatim`, and any other one goes by `messages`."""


# --- the reading


class Reason(StrEnum):
    REFUSAL = "refusal"
    MISSED_CALL = "missed_call"
    BROKEN_CALL = "broken_call"
    UNKNOWN_TOOL = "unknown_tool"
    WRONG_TOOL = "wrong_tool"
    INVALID_ARGUMENTS = "invalid_arguments"
    UNGROUNDED = "ungrounded"
    UNCONFIRMED = "unconfirmed"
    TRUNCATED = "truncated"
    EMPTY = "empty"
    FAR_FETCHED = "far_fetched"
    """A call of invented values to a tool that the request hardly speaks of."""
    INCOMPLETE = "incomplete"
    """Good calls, but the question lists more of the same kind."""
    UNBACKED_CLAIM = "unbacked_claim"
    UNBACKED_FIGURE = "unbacked_figure"
    SELECTION = "selection"
    """Not a fault: the reply looked for tools, and the next request holds what was found."""


class Basis(StrEnum):
    """What a retry rests on, where that changes how it is worded and how often it is asked."""

    PLAIN = "plain"
    """The reply's own words or its block."""
    SOFT = "soft"
    """Only signs: asked once, then the reply stands."""
    UNASKED = "unasked"
    """A call for an effect that nobody asked for."""
    IN_CALL = "in_call"
    """A call's content, not the text beside it."""
    PLACEHOLDER = "placeholder"
    """An argument that was not filled in."""
    IN_LIST = "in_list"
    """Items of a list are missing, not calls."""
    WRONG_ROW = "wrong_row"
    """A figure that the results hold, but not for what it is said of."""


@dataclass(frozen=True, slots=True)
class BrokenCall:
    """Something that was meant as a call and cannot be run.

    `reason` is one of broken_call, unknown_tool, invalid_arguments, truncated; `detail` is one
    plain sentence naming the field or the spot; `in_contract` says it stood in a contract fence.
    """

    reason: Reason
    raw: str
    name: str | None = None
    detail: str = ""
    in_contract: bool = True
    basis: Basis = Basis.PLAIN


@dataclass(frozen=True, slots=True)
class ParsedReply:
    """`text` is what a person may see (markup removed); `calls` only declared calls that fit."""

    text: str
    calls: tuple[ToolCall, ...] = ()
    broken: tuple[BrokenCall, ...] = ()
    thought: str = ""
    """Thinking that was set apart; never shown, never a call."""
    finish_reason: str | None = None
    no_tool: bool = False
    """The model said in the contract's form that no tool is needed."""
    plan: str = ""
    """The first sentence of a thought that stood in a call: never shown, kept in history."""


# --- the outcome


@dataclass(frozen=True, slots=True)
class Answer:
    text: str
    retry: ClassVar[bool] = False
    reason: ClassVar[Reason | None] = None


@dataclass(frozen=True, slots=True)
class Calls:
    text: str
    calls: tuple[ToolCall, ...]
    broken: tuple[BrokenCall, ...] = ()
    retry: ClassVar[bool] = False
    reason: ClassVar[Reason | None] = None


@dataclass(frozen=True, slots=True)
class Retry:
    """Ask again; the turn has already written the correction into its next request."""

    reason: Reason
    detail: str = ""
    name: str | None = None
    basis: Basis = Basis.PLAIN
    retry: ClassVar[bool] = True


@dataclass(frozen=True, slots=True)
class GiveUp:
    reason: Reason
    text: str
    """The last text, for faces that pass it on; a bot never shows it."""
    detail: str = ""
    retry: ClassVar[bool] = False


Outcome = Answer | Calls | Retry | GiveUp

Commit = Literal["finish", "stream"]
Mode = Literal["emulated", "structured", "native"]
Enforcement = Literal["json_schema", "json_object", "prompt"]
"""What makes a `structured` reply an object: a schema, JSON mode, or the words alone."""
ThinkingStyle = Literal["none", "tags", "open"]
"""How an upstream thinks in its text: not at all, in tags, or from the first character on."""
Language = Literal["zh", "en"]
