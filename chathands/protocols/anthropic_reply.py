"""Anthropic Messages: a whole reply, and the events of a stream.

Shapes after Anthropic's API reference (Messages, Streaming messages, Errors).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from chathands.conversation import ToolCall
from chathands.protocols.openai import to_json


def stop_reason(finish_reason: str, *, calls: bool, stopped: str | None) -> str:
    """The protocol's word for how a reply ended."""
    if calls:
        return "tool_use"
    if stopped is not None:
        return "stop_sequence"
    return {"length": "max_tokens", "content_filter": "refusal"}.get(finish_reason, "end_turn")


def usage_body(prompt: int, completion: int, *, cached: int = 0, estimated: bool = False):
    """The `usage` object. One that is a guess says so, in a field of its own."""
    cached = min(cached, prompt)
    usage: dict[str, Any] = {
        "input_tokens": prompt - cached,
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": cached,
        "output_tokens": completion,
    }
    return usage | ({"estimated": True} if estimated else {})


def message_body(
    *,
    id: str,
    model: str,
    text: str,
    calls: Sequence[ToolCall],
    finish_reason: str,
    stopped: str | None,
    usage: Mapping[str, Any],
) -> dict[str, Any]:
    """A `message` object."""
    content: list[dict[str, Any]] = [{"type": "text", "text": text}] if text else []
    content += [_tool_use(call) | {"input": dict(call.arguments)} for call in calls]
    reason = stop_reason(finish_reason, calls=bool(calls), stopped=stopped)
    return {
        **_head(id, model),
        "content": content,
        "stop_reason": reason,
        "stop_sequence": stopped if reason == "stop_sequence" else None,
        "usage": dict(usage),
    }


def error_body(
    kind: str,
    message: str,
    request_id: str | None = None,
    details: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """The protocol's error object; `details` are for programs."""
    body: dict[str, Any] = {"type": "error", "error": {"type": kind, "message": message}}
    if details:
        body["error"]["details"] = dict(details)
    return body | ({"request_id": request_id} if request_id else {})


class EventEncoder:
    """Writes the events of one stream, in the order a client expects them.

    `input_tokens` is asked at the start, when an upstream has not counted yet; the last event
    carries what it counted.
    """

    def __init__(self, *, id: str, model: str, input_tokens: Callable[[], int]) -> None:
        self._id = id
        self._model = model
        self._input_tokens = input_tokens
        self._begun = False
        self._index = -1
        self._in_text = False
        self._calls = False

    def text(self, text: str) -> str:
        out = self._start()
        if not self._in_text:
            out += self._open({"type": "text", "text": ""})
            self._in_text = True
        return out + self._delta({"type": "text_delta", "text": text})

    def call(self, call: ToolCall) -> str:
        self._calls = True
        out = self._start() + self._close_text()
        # Arguments stand in deltas only: clients build them from there, and begin with nothing.
        out += self._open(_tool_use(call) | {"input": {}})
        out += self._delta({"type": "input_json_delta", "partial_json": ""})
        arguments = to_json(dict(call.arguments))
        out += self._delta({"type": "input_json_delta", "partial_json": arguments})
        return out + self._stop_block()

    def end(self, finish_reason: str, stopped: str | None, usage: Mapping[str, Any]) -> str:
        out = self._start() + self._close_text()
        reason = stop_reason(finish_reason, calls=self._calls, stopped=stopped)
        delta = {
            "stop_reason": reason,
            "stop_sequence": stopped if reason == "stop_sequence" else None,
        }
        out += _event("message_delta", {"delta": delta, "usage": dict(usage)})
        return out + _event("message_stop", {})

    def keep_alive(self) -> str:
        return self._start() + _event("ping", {})

    def error(self, body: Mapping[str, Any]) -> str:
        """An error in mid-stream; nothing follows it."""
        return f"event: error\ndata: {to_json(body)}\n\n"

    def _start(self) -> str:
        if self._begun:
            return ""
        self._begun = True
        message = {
            **_head(self._id, self._model),
            "content": [],
            "stop_reason": None,
            "stop_sequence": None,
            "usage": usage_body(self._input_tokens(), 1),
        }
        return _event("message_start", {"message": message}) + _event("ping", {})

    def _open(self, block: Mapping[str, Any]) -> str:
        self._index += 1
        return _event("content_block_start", {"index": self._index, "content_block": block})

    def _delta(self, delta: Mapping[str, Any]) -> str:
        return _event("content_block_delta", {"index": self._index, "delta": delta})

    def _stop_block(self) -> str:
        return _event("content_block_stop", {"index": self._index})

    def _close_text(self) -> str:
        if not self._in_text:
            return ""
        self._in_text = False
        return self._stop_block()


def _head(id: str, model: str) -> dict[str, Any]:
    return {"id": id, "type": "message", "role": "assistant", "model": model}


def _tool_use(call: ToolCall) -> dict[str, Any]:
    return {"type": "tool_use", "id": call.id, "name": call.name}


def _event(name: str, fields: Mapping[str, Any]) -> str:
    return f"event: {name}\ndata: {to_json({'type': name, **fields})}\n\n"
