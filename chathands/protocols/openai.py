"""OpenAI chat completions: what a request is, and what an error looks like.

Shapes after OpenAI's API reference (chat/object). The official SDK's own types accept
`role: "bogus"` when used as validators, so the models here are ours. Fields they do not name are
kept: a request without tools is passed on with all of them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError
from pydantic_core import PydanticSerializationError

from chathands.conversation import Message, ToolChoice, ToolSpec
from chathands.protocols.known_tools import known_by, known_tools
from chathands.protocols.openai_legacy import without_functions
from chathands.protocols.openai_messages import from_openai

SAMPLING = (
    "temperature",
    "top_p",
    "top_k",
    "min_p",
    "max_tokens",
    "presence_penalty",
    "frequency_penalty",
    "seed",
    "logit_bias",
    "reasoning_effort",
)
"""Passed on beside tools too. `max_completion_tokens` is the newer name of `max_tokens`, which
servers of plain-chat models know."""


class BadRequest(ValueError):
    """The request is not the protocol; `field` is the path of what is wrong."""

    def __init__(self, message: str, field: str | None = None) -> None:
        super().__init__(message)
        self.field = field


def _as_text(value: Any) -> Any:
    """Arguments as clients write them: some send the object, or nothing, where a string belongs."""
    if value is None:
        return ""
    return json.dumps(value, ensure_ascii=False) if isinstance(value, dict) else value


def _as_word(value: Any) -> Any:
    """A choice that some clients write as an object of nothing but its kind."""
    kind = value.get("type") if isinstance(value, dict) and len(value) == 1 else None
    return kind if kind in ("auto", "none", "required") else value


ToolName = Annotated[str, Field(min_length=1, max_length=128, pattern=r"^[^\s\x00-\x1f\x7f`\"]+$")]
"""Wider than OpenAI's own rule, for names with dots and in Chinese; what would break a line or the
form of a call is no name."""


class Wire(BaseModel):
    model_config = ConfigDict(extra="allow")


class WireFunction(Wire):
    name: ToolName
    description: str | None = None
    parameters: dict[str, Any] | None = None


class WireTool(Wire):
    type: Literal["function"]
    function: WireFunction


class WireCallFunction(Wire):
    name: str
    arguments: Annotated[str, BeforeValidator(_as_text)] = ""


class WireCall(Wire):
    id: str
    type: Literal["function"] = "function"
    function: WireCallFunction


class WireMessage(Wire):
    role: Literal["system", "developer", "user", "assistant", "tool"]
    content: str | list[dict[str, Any]] | None = None
    tool_calls: list[WireCall] | None = None
    tool_call_id: str | None = None


class WireNamed(Wire):
    name: str


class WireNamedChoice(Wire):
    type: Literal["function"]
    function: WireNamed


class WireAllowed(Wire):
    mode: Literal["auto", "required"]
    tools: list[WireNamedChoice]


class WireAllowedChoice(Wire):
    type: Literal["allowed_tools"]
    allowed_tools: WireAllowed


class WireStreamOptions(Wire):
    include_usage: bool | None = None


class ChatRequest(Wire):
    """The body of `POST /v1/chat/completions`."""

    model: str
    messages: Annotated[list[WireMessage], Field(min_length=1)]
    tools: list[WireTool] | None = None
    tool_choice: Annotated[
        Literal["auto", "none", "required"] | WireNamedChoice | WireAllowedChoice | None,
        BeforeValidator(_as_word),
    ] = None
    parallel_tool_calls: bool | None = None
    stream: bool | None = None
    stream_options: WireStreamOptions | None = None
    stop: str | list[str] | None = None
    response_format: dict[str, Any] | None = None
    n: Annotated[int, Field(ge=1)] | None = None
    max_tokens: Annotated[int, Field(ge=1)] | None = None
    max_completion_tokens: Annotated[int, Field(ge=1)] | None = None
    temperature: float | None = None
    top_p: float | None = None
    logprobs: bool | None = None
    legacy: Annotated[bool, Field(exclude=True)] = False
    """The client speaks of `functions`, as before 2023-11, and is answered in the same way."""

    @classmethod
    def read(cls, body: Any) -> ChatRequest:
        """Raises BadRequest naming the first field that is wrong."""
        if not isinstance(body, Mapping):
            raise BadRequest("the body must be a JSON object")
        try:
            modern = without_functions(body)
            request = cls.model_validate({**(modern or body), "legacy": modern is not None})
        except ValidationError as error:
            raise bad_request(error) from None
        request._check()
        return request

    def _check(self) -> None:
        if self.n not in (None, 1):
            raise BadRequest("n: only one choice is given at a time; ask again for another", "n")
        if self.logprobs and not self.plain:
            message = "logprobs: calls are read from the text, so that there are none beside tools"
            raise BadRequest(message, "logprobs")
        names = [tool.function.name for tool in self.tools or ()]
        if twice := next((name for name in names if names.count(name) > 1), None):
            raise BadRequest(f"tools: {twice!r} is declared twice", "tools")
        if self.tools is None:  # those of the history, if there is one
            names = [c.function.name for m in self.messages for c in m.tool_calls or ()]
        choice = self.choice
        if choice.kind == "required" and not names:
            raise BadRequest("tool_choice: 'required' needs tools", "tool_choice")
        wanted = self._allowed or ((choice.name,) if choice.kind == "named" else ())
        for name in wanted:
            if name not in names:
                raise BadRequest(f"tool_choice: {name!r} is not declared", "tool_choice")

    @property
    def plain(self) -> bool:
        """Neither tools nor tool history."""
        return not self.tools and not any(m.role == "tool" or m.tool_calls for m in self.messages)

    @property
    def specs(self) -> tuple[ToolSpec, ...] | None:
        """Declared tools that may be used; None when the request has no `tools` at all, which is
        not the same as none."""
        if self.tools is None:
            return None
        tools, allowed = self.tools, self._allowed

        def read() -> tuple[ToolSpec, ...]:
            specs = (ToolSpec.from_openai(tool.model_dump()) for tool in tools)
            return known_tools(spec for spec in specs if allowed is None or spec.name in allowed)

        try:
            key = "\n".join([repr(allowed), *(tool.model_dump_json() for tool in tools)])
        except PydanticSerializationError:  # half a surrogate pair is no JSON
            return read()
        return known_by(key, read)

    @property
    def choice(self) -> ToolChoice:
        if isinstance(self.tool_choice, WireNamedChoice):
            return ToolChoice("named", self.tool_choice.function.name)
        if isinstance(self.tool_choice, WireAllowedChoice):
            return ToolChoice(self.tool_choice.allowed_tools.mode)
        return ToolChoice(self.tool_choice or "auto")

    @property
    def _allowed(self) -> tuple[str, ...] | None:
        if not isinstance(self.tool_choice, WireAllowedChoice):
            return None
        return tuple(tool.function.name for tool in self.tool_choice.allowed_tools.tools)

    @property
    def single(self) -> bool:
        """At most one call may leave."""
        return self.parallel_tool_calls is False or self.legacy

    @property
    def stops(self) -> tuple[str, ...]:
        return (self.stop,) if isinstance(self.stop, str) else tuple(self.stop or ())

    @property
    def sampling(self) -> dict[str, Any]:
        given = {**(self.model_extra or {}), **_given(self)}
        chosen = {key: given[key] for key in SAMPLING if given.get(key) is not None}
        if self.max_completion_tokens is not None:
            chosen.setdefault("max_tokens", self.max_completion_tokens)
        return chosen

    @property
    def include_usage(self) -> bool:
        """A last chunk of the stream is to carry it."""
        return bool(self.stream_options and self.stream_options.include_usage)

    def conversation(self) -> list[Message]:
        """The messages in canonical form. Orphan results are kept; the projection rules on them."""
        return from_openai(wire.model_dump(exclude_unset=True) for wire in self.messages)


_TOOL_FIELDS = ("tools", "tool_choice", "parallel_tool_calls", "functions", "function_call")


def without_tool_fields(body: Mapping[str, Any]) -> dict[str, Any]:
    """A request that has no tools, without the fields that say so (`tools: []`): a model that can
    only chat refuses them whatever they hold."""
    bare = {key: value for key, value in body.items() if key not in _TOOL_FIELDS}
    messages = body.get("messages")
    if isinstance(messages, list) and any("tool_calls" in wire for wire in messages):
        bare["messages"] = [
            {key: value for key, value in wire.items() if key != "tool_calls"} for wire in messages
        ]
    return bare


def _given(request: ChatRequest) -> dict[str, Any]:
    return {name: getattr(request, name) for name in ("temperature", "top_p", "max_tokens")}


def bad_request(error: ValidationError) -> BadRequest:
    """The first field that is wrong, in a sentence. Of a union's several complaints, that of the
    branch which got furthest."""
    errors = error.errors(include_url=False, include_input=False)
    first = errors[0]
    same = [e for e in errors if e["loc"][: len(first["loc"]) - 1] == first["loc"][:-1]]
    chosen = max(same or errors, key=lambda e: len(e["loc"])) if len(same) > 1 else first
    field = ".".join(str(part) for part in chosen["loc"])
    return BadRequest(f"{field}: {chosen['msg']}", field)


def to_json(value: Mapping[str, Any] | Sequence[Any]) -> str:
    """What leaves, fit for UTF-8: a client's or a model's lone surrogate is replaced."""
    return json.dumps(value, ensure_ascii=False).encode("utf-8", "replace").decode("utf-8")


def error_body(message: str, kind: str, *, param: str | None = None, code: str | None = None):
    """The protocol's error object."""
    return {"error": {"message": message, "type": kind, "param": param, "code": code}}
