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
Face = Literal["bot", "http", "mcp", "cli"]
"""Where a call comes from: groups and private chats, programs, MCP clients, the terminal."""
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


class Notice(StrEnum):
    """What a remark of ours says. Everything goes by this, and nothing by its words."""

    REQUIRED = "required"
    """Some tool must be used."""
    NAMED = "named"
    """One certain tool must be used."""
    NONE = "none"
    """This time no tool may be used."""
    ANSWERED = "answered"
    """The user has said what was asked for: it can be acted on."""
    UNRELATED = "unrelated"
    """Nothing in the question speaks of what the tools do."""
    LAST_ROUND = "last_round"
    """No tool any more: the rounds are used up."""
    DEADLINE = "deadline"
    """No tool any more: the time is."""
    SIBLINGS = "siblings"
    """Blocks beside those that ran could not be read."""
    LISTING = "listing"
    """Tools that the contract did not list."""


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
    version: int | str = 1
    """Changes when the schema or what the tool does changes."""
    faces: tuple[Face, ...] = ()
    """Where it makes sense at all; empty is everywhere."""
    deprecated: str | None = None
    """What to use instead, or why not; such a tool still runs."""
    extra: Mapping[str, Any] = field(default_factory=dict)
    """Fields of a client's declaration that nothing here reads (`strict`, `cache_control`)."""

    @classmethod
    def from_openai(cls, tool: Mapping[str, Any]) -> Self:
        """Read `{"type": "function", "function": {...}}`, or the inner object alone.

        Raises ValueError when there is no name.
        """
        function = tool.get("function", tool)
        name = function.get("name") if isinstance(function, Mapping) else None
        if not isinstance(name, str) or not name:
            raise ValueError("a tool needs a name")
        given = (function.get(key) for key in ("parameters", "input_schema", "inputSchema"))
        parameters = next(filter(None, given), None)
        if not isinstance(parameters, Mapping):
            parameters = {"type": "object", "properties": {}}
        extra = {key: value for key, value in function.items() if key not in _DECLARED}
        return cls(
            name=name,
            description=str(function.get("description") or ""),
            parameters=parameters,
            extra=extra,
        )


_DECLARED = ("name", "description", "parameters", "input_schema", "inputSchema", "type")


def as_specs(tools: Sequence[ToolSpec | Mapping[str, Any]]) -> tuple[ToolSpec, ...]:
    """Specs from specs or OpenAI-style dicts, in the same order."""
    return tuple(t if isinstance(t, ToolSpec) else ToolSpec.from_openai(t) for t in tools)


class SameSpecs:
    """A list of specs as a key of a cache: equal to another only when it holds the very same
    objects. Specs hold plain dicts, which have no hash, and comparing them whole would cost as
    much as what is cached."""

    __slots__ = ("_hash", "specs")

    def __init__(self, specs: Sequence[ToolSpec]) -> None:
        self.specs = tuple(specs)
        self._hash = hash(tuple(map(id, self.specs)))

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, SameSpecs)
            and len(self.specs) == len(other.specs)
            and all(mine is theirs for mine, theirs in zip(self.specs, other.specs, strict=True))
        )


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A request to run a tool. `repairs` says what had to be done to read it, for traces."""

    id: str
    name: str
    arguments: Mapping[str, Any]
    confidence: Confidence = "strict"
    repairs: tuple[str, ...] = ()
    raw: str | None = None
    """The arguments as a client wrote them, where writing `arguments` again would differ."""
    extra: Mapping[str, Any] = field(default_factory=dict)
    """Fields of the wire that nothing here reads (an item's own id, `cache_control`)."""


UNREADABLE = "_unparsed"
"""The one key of the arguments of a past call whose text was no JSON object; its value is it."""


# --- content: what a message or a result holds, in the order it was written


@dataclass(frozen=True, slots=True)
class Image:
    """A picture in a message or a result; the model is told of it by a placeholder."""

    url: str
    """http(s), or `data:<mime>;base64,…`; "" when only `extra` says where it is."""
    mime: str | None = None
    extra: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class TextPart:
    text: str
    extra: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ImagePart:
    """Image number `index` of the same message or result stands here."""

    index: int


@dataclass(frozen=True, slots=True)
class CallPart:
    """Call number `index` of the same message stands here."""

    index: int


@dataclass(frozen=True, slots=True)
class ThinkingPart:
    """What a model thought before or between; carried, never shown and never sent as text."""

    text: str
    extra: Mapping[str, Any] = field(default_factory=dict)
    """Its signature or encrypted form: without it the protocol's own server refuses the history."""


@dataclass(frozen=True, slots=True)
class OtherPart:
    """A part that nothing here reads (audio, a document, a server's own tool), as it came."""

    kind: str
    data: Mapping[str, Any]


Part = TextPart | ImagePart | CallPart | ThinkingPart | OtherPart


def joined_text(parts: Sequence[Part]) -> str:
    """The text of content in parts: one line break between two texts."""
    return "\n".join(part.text for part in parts if isinstance(part, TextPart))


def _in_order(
    parts: tuple[Part, ...], text: str, images: Sequence[Image], calls: Sequence[ToolCall]
) -> tuple[Part, ...]:
    """The parts while they say the same as the fields; else the fields in their usual order."""
    shown = [part.index for part in parts if isinstance(part, ImagePart)]
    called = [part.index for part in parts if isinstance(part, CallPart)]
    as_fields = shown == list(range(len(images))) and called == list(range(len(calls)))
    if parts and as_fields and joined_text(parts) == text:
        return parts
    texts = (TextPart(text),) if text else ()
    pictures = tuple(ImagePart(index) for index in range(len(images)))
    return (*texts, *pictures, *(CallPart(index) for index in range(len(calls))))


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
    images: tuple[Image, ...] = ()
    parts: tuple[Part, ...] = ()
    """As `Message.parts`, for the content of this result."""
    extra: Mapping[str, Any] = field(default_factory=dict)

    @property
    def ordered(self) -> tuple[Part, ...]:
        """The content in its own order."""
        return _in_order(self.parts, self.content, self.images, ())


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
    parts: tuple[Part, ...] = ()
    """The content part by part, where `text`, `images`, `calls` in this order would not say it:
    several texts, text between calls, thinking, parts of a protocol. Read it through `ordered`: a
    message whose fields were replaced since has outlived its parts."""
    extra: Mapping[str, Any] = field(default_factory=dict)
    """Fields of the wire that nothing here reads (`name`, `refusal`, a `developer` role)."""
    notice: Notice | None = None
    """What a message tagged NOTICE says; None where it is nothing to go by."""
    told: tuple[str, ...] = ()
    """Names of the tools whose listing one of our remarks carries."""
    foreign: bool = False
    """An answer that was written after text from outside had been read: it may repeat it."""
    joined: bool = False
    """Stands in one wire message with the entry before it: text beside tool results, which is a
    remark on them and not the next question."""

    @property
    def ordered(self) -> tuple[Part, ...]:
        """The content in its own order."""
        return _in_order(self.parts, self.text, self.images, self.calls)

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
