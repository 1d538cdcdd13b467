"""OpenAI chat completions: a whole reply, and the events of a stream.

Shapes after OpenAI's API reference (chat/object, chat/streaming).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from chathands.conversation import ToolCall
from chathands.protocols.openai import to_json
from chathands.protocols.openai_messages import call_to_openai
from chathands.protocols.text_out import TextOut

KEEP_ALIVE = ": keep-alive\n\n"
"""A comment, which no client takes for an event."""

_LINE_END = re.compile(r"[\r\n]+")

DONE = "data: [DONE]\n\n"


def usage_body(prompt: int, completion: int, *, cached: int = 0, estimated: bool = False):
    """The `usage` object. One that is a guess says so, in a field of its own."""
    usage: dict[str, Any] = {
        "prompt_tokens": prompt,
        "completion_tokens": completion,
        "total_tokens": prompt + completion,
    }
    if cached:
        usage["prompt_tokens_details"] = {"cached_tokens": cached}
    return usage | ({"estimated": True} if estimated else {})


def completion(
    *,
    id: str,
    created: int,
    model: str,
    text: str,
    calls: Sequence[ToolCall],
    finish_reason: str,
    usage: Mapping[str, Any] | None,
    legacy: bool = False,
) -> dict[str, Any]:
    """A `chat.completion` object; `finish_reason` is `tool_calls` whenever there are calls, and in
    the `legacy` form `function_call`."""
    message: dict[str, Any] = {"role": "assistant", "content": text or None, "refusal": None}
    if calls and legacy:
        message["function_call"] = call_to_openai(calls[0])["function"]
    elif calls:
        message["tool_calls"] = [call_to_openai(call) for call in calls]
    elif not text:
        message["content"] = ""
    called = "function_call" if legacy else "tool_calls"
    choice = {
        "index": 0,
        "message": message,
        "logprobs": None,
        "finish_reason": called if calls else finish_reason,
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
    """Writes the events of one stream, in the order a client expects them.

    With `include_usage` every chunk has the field, and one without choices carries it at the end.
    """

    def __init__(
        self,
        *,
        id: str,
        created: int,
        model: str,
        include_usage: bool = False,
        legacy: bool = False,
    ) -> None:
        self._head = {
            "id": id,
            "object": "chat.completion.chunk",
            "created": created,
            "model": model,
        }
        self._begun = False
        self._calls = 0
        self._include_usage = include_usage
        self._legacy = legacy

    def text(self, text: str) -> str:
        return self._start() + self._chunk({"content": text})

    def call(self, call: ToolCall) -> str:
        wire = {"index": self._calls, **call_to_openai(call)}
        self._calls += 1
        if self._legacy:
            return self._start() + self._chunk({"function_call": wire["function"]})
        return self._start() + self._chunk({"tool_calls": [wire]})

    def end(self, finish_reason: str, usage: Mapping[str, Any] | None = None) -> str:
        called = "function_call" if self._legacy else "tool_calls"
        last = self._start() + self._chunk({}, called if self._calls else finish_reason)
        return last + self.usage(usage) + DONE

    def usage(self, usage: Mapping[str, Any] | None) -> str:
        """The chunk that carries it, if the client asked for it."""
        if not self._include_usage or usage is None:
            return ""
        return f"data: {to_json(self._head | {'choices': [], 'usage': dict(usage)})}\n\n"

    def keep_alive(self) -> str:
        return KEEP_ALIVE

    @staticmethod
    def error(body: Mapping[str, Any]) -> str:
        """An error in mid-stream; nothing follows it."""
        return f"data: {to_json(body)}\n\n"

    def _start(self) -> str:
        if self._begun:
            return ""
        self._begun = True
        return self._chunk({"role": "assistant", "content": ""})

    def _chunk(self, delta: Mapping[str, Any], finish_reason: str | None = None) -> str:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish_reason}
        chunk = self._head | {"choices": [choice]}
        if self._include_usage:
            chunk["usage"] = None
        return f"data: {to_json(chunk)}\n\n"


class PassedOn:
    """A reply that is an upstream's own, whole or in events.

    It leaves as it came, but for the model's name, which is the client's again, and for what the
    protocol has in every reply and some upstreams leave out. `bare_json` takes the fence off JSON
    that was asked for; with `include_usage` a stream's usage has a chunk of its own.
    """

    def __init__(
        self,
        *,
        id: str,
        created: int,
        model: str,
        bare_json: bool = False,
        include_usage: bool = False,
    ) -> None:
        self._model = model
        self._include_usage = include_usage
        self._missing = {"id": id, "created": created}
        self._head: dict[str, Any] = dict(self._missing)
        self._out = TextOut(bare_json=True) if bare_json else None
        self.has_usage = False
        self._usage: dict[str, Any] | None = None
        self.characters = 0
        """Of text, where usage may have to be guessed."""

    def event(self, data: str, document: dict[str, Any]) -> str:
        """The event for a chunk."""
        changed = self._completed(document, "chat.completion.chunk")
        if self._include_usage and document.get("choices"):
            usage = document.get("usage")
            changed = changed or usage is not None or "usage" not in document
            self._usage, document["usage"] = usage or self._usage, None
        for choice, delta in _parts(document, "delta"):
            text = delta.get("content")
            text = text if isinstance(text, str) else None
            self.characters += len(text or "")
            done = bool(choice.get("finish_reason"))
            if self._out is not None and (text is not None or done):
                left = self._out.feed(text or "") + (self._out.flush() if done else "")
                if left != (text or ""):
                    delta["content"], changed = left, True
        if changed:
            data = to_json(document)
        # In JSON a line end can only stand between two values; it would end the field here.
        return f"data: {_LINE_END.sub(' ', data)}\n\n"

    def end(self, usage: Mapping[str, Any]) -> str:
        """What is missing behind the upstream's events; `usage` if it gave none."""
        if not self._include_usage or (self.has_usage and self._usage is None):
            return DONE
        chunk = {
            **self._head,
            "object": "chat.completion.chunk",
            "model": self._model,
            "choices": [],
            "usage": self._usage or dict(usage),
        }
        return f"data: {to_json(chunk)}\n\n{DONE}"

    def whole(self, data: str, document: dict[str, Any], usage: Mapping[str, Any]) -> str:
        """The body of a whole reply; `usage` for one that has none."""
        changed = self._completed(document, "chat.completion")
        if not self.has_usage:
            document["usage"], changed = dict(usage), True
        for choice, message in _parts(document, "message"):
            text = message.get("content")
            if self._out is not None and isinstance(text, str):
                left = self._out.feed(text) + self._out.flush()
                if left != text:
                    message["content"], changed = left, True
            if choice.get("finish_reason") is None:
                choice["finish_reason"], changed = "stop", True
        return to_json(document) if changed else data

    def _completed(self, document: dict[str, Any], kind: str) -> bool:
        """Whether something had to be put in."""
        before = len(document)
        for key, value in self._missing.items():
            if document.get(key) is None:
                document[key] = value
        document.setdefault("object", kind)
        self._head = {key: document[key] for key in self._missing}
        changed = len(document) != before
        if document.get("model") != self._model:
            document["model"], changed = self._model, True
        usage = document.get("usage")
        if isinstance(usage, dict) and "prompt_tokens" in usage:
            self.has_usage = True
            if "total_tokens" not in usage:
                total = sum(usage.get(key) or 0 for key in ("prompt_tokens", "completion_tokens"))
                usage["total_tokens"], changed = total, True
        choices = document.get("choices")
        for at, choice in enumerate(choices if isinstance(choices, list) else ()):
            if isinstance(choice, dict) and "index" not in choice:
                choice["index"], changed = at, True
        return changed


def _parts(document: Mapping[str, Any], key: str) -> Iterator[tuple[dict[str, Any], Any]]:
    """Each choice with its `delta` or `message`."""
    choices = document.get("choices")
    for choice in choices if isinstance(choices, list) else ():
        if isinstance(choice, dict) and isinstance(part := choice.get(key), dict):
            yield choice, part
