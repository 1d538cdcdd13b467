"""OpenAI chat completions: wire ↔ canonical, and the events of a stream.

Shapes after OpenAI's API reference (chat/object, chat/streaming). The official SDK's own types
accept `role: "bogus"` when used as validators, so the models here are ours.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from chathands.conversation import Message, ToolCall, ToolChoice, ToolSpec
from chathands.protocols.openai_messages import call_to_openai, from_openai

SAMPLING = ("temperature", "top_p", "max_tokens", "presence_penalty", "frequency_penalty", "seed")


class BadRequest(ValueError):
    """The request is not the protocol; `field` is the path of what is wrong."""

    def __init__(self, message: str, field: str | None = None) -> None:
        super().__init__(message)
        self.field = field


class _Wire(BaseModel):
    model_config = ConfigDict(extra="allow")


class WireFunction(_Wire):
    name: Annotated[str, Field(min_length=1, max_length=128)]
    description: str | None = None
    parameters: dict[str, Any] | None = None


class WireTool(_Wire):
    type: Literal["function"]
    function: WireFunction


class WireCallFunction(_Wire):
    name: str
    arguments: str = ""


class WireCall(_Wire):
    id: str
    type: Literal["function"] = "function"
    function: WireCallFunction


class WireMessage(_Wire):
    role: Literal["system", "developer", "user", "assistant", "tool"]
    content: str | list[dict[str, Any]] | None = None
    tool_calls: list[WireCall] | None = None
    tool_call_id: str | None = None


class WireNamed(_Wire):
    name: str


class WireNamedChoice(_Wire):
    type: Literal["function"]
    function: WireNamed


class ChatRequest(_Wire):
    """The body of `POST /v1/chat/completions`."""

    model: str
    messages: Annotated[list[WireMessage], Field(min_length=1)]
    tools: list[WireTool] | None = None
    tool_choice: Literal["auto", "none", "required"] | WireNamedChoice | None = None
    stream: bool = False
    stop: str | list[str] | None = None
    response_format: dict[str, Any] | None = None

    @classmethod
    def read(cls, body: Any) -> ChatRequest:
        """Raises BadRequest naming the first field that is wrong."""
        try:
            request = cls.model_validate(body)
        except ValidationError as error:
            first = error.errors(include_url=False, include_input=False)[0]
            field = ".".join(str(part) for part in first["loc"])
            raise BadRequest(f"{field}: {first['msg']}", field) from None
        request._check_tools()
        return request

    def _check_tools(self) -> None:
        names = [tool.function.name for tool in self.tools or ()]
        if twice := next((name for name in names if names.count(name) > 1), None):
            raise BadRequest(f"tools: {twice!r} is declared twice", "tools")
        choice = self.choice
        if choice.kind == "required" and not names:
            raise BadRequest("tool_choice: 'required' needs tools", "tool_choice")
        if choice.kind == "named" and choice.name not in names:
            raise BadRequest(f"tool_choice: {choice.name!r} is not declared", "tool_choice")

    @property
    def specs(self) -> tuple[ToolSpec, ...] | None:
        """Declared tools; None when the request has no `tools` at all, which is not the same."""
        if self.tools is None:
            return None
        return tuple(ToolSpec.from_openai(tool.model_dump()) for tool in self.tools)

    @property
    def choice(self) -> ToolChoice:
        if isinstance(self.tool_choice, WireNamedChoice):
            return ToolChoice("named", self.tool_choice.function.name)
        return ToolChoice(self.tool_choice or "auto")

    @property
    def stops(self) -> tuple[str, ...]:
        return (self.stop,) if isinstance(self.stop, str) else tuple(self.stop or ())

    @property
    def sampling(self) -> dict[str, Any]:
        extra = self.model_extra or {}
        chosen = {key: extra[key] for key in SAMPLING if extra.get(key) is not None}
        if "max_completion_tokens" in extra:
            chosen.setdefault("max_tokens", extra["max_completion_tokens"])
        return chosen

    def conversation(self) -> list[Message]:
        """The messages in canonical form. Orphan results are kept; the projection rules on them."""
        return from_openai(wire.model_dump(exclude_unset=True) for wire in self.messages)


def completion(
    *,
    id: str,
    created: int,
    model: str,
    text: str,
    calls: Sequence[ToolCall],
    finish_reason: str,
    usage: Mapping[str, int] | None,
) -> dict[str, Any]:
    """A `chat.completion` object; `finish_reason` is `tool_calls` whenever there are calls."""
    message: dict[str, Any] = {"role": "assistant", "content": text or None, "refusal": None}
    if calls:
        message["tool_calls"] = [call_to_openai(call) for call in calls]
    elif not text:
        message["content"] = ""
    choice = {
        "index": 0,
        "message": message,
        "logprobs": None,
        "finish_reason": "tool_calls" if calls else finish_reason,
    }
    reply = {
        "id": id,
        "object": "chat.completion",
        "created": created,
        "model": model,
        "choices": [choice],
    }
    return reply | ({"usage": dict(usage)} if usage else {})


class ChunkEncoder:
    """Builds the `data:` lines of one stream, in the order a client expects them."""

    def __init__(self, *, id: str, created: int, model: str) -> None:
        self._head = {
            "id": id,
            "object": "chat.completion.chunk",
            "created": created,
            "model": model,
        }
        self._calls = 0

    def start(self) -> str:
        return self._chunk({"role": "assistant", "content": ""})

    def text(self, text: str) -> str:
        return self._chunk({"content": text})

    def call(self, call: ToolCall) -> str:
        wire = {"index": self._calls, **call_to_openai(call)}
        self._calls += 1
        return self._chunk({"tool_calls": [wire]})

    def end(self, finish_reason: str) -> str:
        reason = "tool_calls" if self._calls else finish_reason
        return self._chunk({}, reason) + "data: [DONE]\n\n"

    @staticmethod
    def error(body: Mapping[str, Any]) -> str:
        """An error in mid-stream; nothing follows it."""
        return f"data: {to_json(body)}\n\n"

    def _chunk(self, delta: Mapping[str, Any], finish_reason: str | None = None) -> str:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish_reason}
        return f"data: {to_json(self._head | {'choices': [choice]})}\n\n"


def to_json(value: Mapping[str, Any]) -> str:
    """What leaves, fit for UTF-8: a client's or a model's lone surrogate is replaced."""
    return json.dumps(value, ensure_ascii=False).encode("utf-8", "replace").decode("utf-8")


def error_body(message: str, kind: str, *, param: str | None = None, code: str | None = None):
    """The protocol's error object."""
    return {"error": {"message": message, "type": kind, "param": param, "code": code}}
