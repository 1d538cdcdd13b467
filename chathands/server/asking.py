"""What goes into an exchange and how it ends, in no protocol's terms."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from chathands.conversation import Message, Role, ToolCall, ToolChoice, ToolSpec
from chathands.emulation.state import has_tool_history
from chathands.errors import (
    UpstreamAuthError,
    UpstreamBusy,
    UpstreamError,
    UpstreamRefused,
    UpstreamTimeout,
)
from chathands.upstreams.base import Usage


@dataclass(frozen=True, slots=True)
class Ask:
    """What a request asks for."""

    conversation: Sequence[Message]
    specs: tuple[ToolSpec, ...] | None = None
    """Declared tools; None when the request has no word of tools, which is not the same as ()."""
    choice: ToolChoice = field(default_factory=ToolChoice)
    single: bool = False
    """At most one call may leave."""
    stops: tuple[str, ...] = ()
    exact_stop: bool = False
    """The client wants to know which of `stops` ended the text. Upstreams do not say, so that they
    are not told either."""
    sampling: Mapping[str, Any] = field(default_factory=dict)
    """Under the names that chat completions have for them."""
    response_format: Mapping[str, Any] | None = None
    """As chat completions have it."""
    body: Mapping[str, Any] | None = None
    """The client's request itself, to be passed on as it is where it is `plain`: only where it is
    one for chat completions."""

    @property
    def plain(self) -> bool:
        """Neither tools nor tool history: nothing is to be done but to pass it on."""
        return not self.specs and not has_tool_history(self.conversation)

    @property
    def wants_json(self) -> bool:
        """The text of the answer is to be one JSON value."""
        kind = (self.response_format or {}).get("type")
        return kind in ("json_object", "json_schema")

    @property
    def messages(self) -> Sequence[Message]:
        """The conversation for the model. Beside tools its JSON mode cannot be switched on, which
        would forbid the form of a call, so that it is told what an answer has to look like."""
        if self.plain or not self.wants_json:
            return self.conversation
        assert self.response_format is not None
        told = _JSON_ANSWER
        shape = self.response_format.get("json_schema")
        schema = shape.get("schema") if isinstance(shape, Mapping) else None
        if schema:
            told += _OF_SCHEMA + json.dumps(schema, ensure_ascii=False)
        head, *rest = self.conversation
        if head.role is Role.SYSTEM:
            return [replace(head, text=f"{head.text}\n\n{told}", parts=()), *rest]
        return [Message.system(told), *self.conversation]


_JSON_ANSWER = (
    "The final answer to the user, once no tool has to be called any more, is one JSON value and "
    "nothing else: no sentence and no fence around it."
)
_OF_SCHEMA = " It follows this JSON Schema:\n"

FinishReason = Literal["stop", "length", "content_filter"]


@dataclass(frozen=True, slots=True)
class End:
    """The reply is whole: `text` and `calls` are all of it, also what events have carried.
    `finish_reason` is how the upstream's writing ended, also beside calls."""

    text: str
    calls: tuple[ToolCall, ...]
    finish_reason: FinishReason
    usage: Usage
    estimated: bool = False
    """The upstream has not counted; `usage` is a rough guess."""
    stopped: str | None = None
    """The stop sequence that ended the text, as far as that is known."""


def finish_reason_of(reason: str | None) -> FinishReason:
    """An upstream's finish reason in the words that protocols have for it."""
    if reason in ("length", "max_tokens", "model_length"):
        return "length"
    return "content_filter" if reason == "content_filter" else "stop"


FailureKind = Literal["request", "busy", "timeout", "upstream", "no_call", "internal"]


class Failure(Exception):
    """The exchange ends without a reply. `status` fits the kind; the text may be shown."""

    def __init__(
        self,
        kind: FailureKind,
        message: str,
        code: str | None = None,
        *,
        retry_after: float | None = None,
    ) -> None:
        super().__init__(message)
        self.kind: FailureKind = kind
        self.message = message
        self.code = code
        self.retry_after = retry_after

    @property
    def status(self) -> int:
        """Of HTTP."""
        return _STATUS[self.kind]

    @property
    def headers(self) -> dict[str, str]:
        """Of an answer over HTTP that is nothing but this."""
        if self.retry_after is None:
            return {}
        return {"retry-after": str(max(1, math.ceil(self.retry_after)))}


_STATUS: Mapping[FailureKind, int] = {
    "request": 400,
    "busy": 429,
    "timeout": 504,
    "upstream": 502,
    "no_call": 502,
    "internal": 500,
}


def failure_of(error: UpstreamError) -> Failure:
    """An upstream's failure as one that a client understands; never its text."""
    if isinstance(error, UpstreamBusy):
        return Failure("busy", "the upstream is busy", retry_after=error.retry_after)
    if isinstance(error, UpstreamTimeout):
        return Failure("timeout", "the upstream did not answer in time")
    if isinstance(error, UpstreamAuthError):
        return Failure("upstream", "the gateway's key was refused by the upstream")
    if isinstance(error, UpstreamRefused):
        message = "the upstream refused the request: too long, or a field that it does not take"
        return Failure("request", message)
    return Failure("upstream", f"upstream: {type(error).__name__}")
