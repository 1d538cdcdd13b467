"""OpenAI Responses: a whole reply, and the events of a stream.

Shapes and order after OpenAI's API reference (responses/object, responses-streaming) and what the
official SDK's accumulator (3.57) insists on.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from chathands.conversation import ToolCall
from chathands.protocols.openai import to_json
from chathands.protocols.openai_messages import call_to_openai
from chathands.protocols.responses_items import Item, item_id, text_part

KEEP_ALIVE = ": keep-alive\n\n"
"""A comment, which no client takes for an event."""

ErrorCode = Literal["server_error", "rate_limit_exceeded", "invalid_prompt"]
"""Of a response that failed; the protocol has a closed list, of which these can happen here."""

_WHY = {"length": "max_output_tokens", "content_filter": "content_filter"}


def usage_body(prompt: int, completion: int, *, cached: int = 0, estimated: bool = False):
    """The `usage` object. One that is a guess says so, in a field of its own."""
    usage: dict[str, Any] = {
        "input_tokens": prompt,
        "input_tokens_details": {"cached_tokens": cached, "cache_write_tokens": 0},
        "output_tokens": completion,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": prompt + completion,
    }
    return usage | ({"estimated": True} if estimated else {})


class Reply:
    """One response object from its beginning to its end; `echo` is what it repeats of its
    request."""

    def __init__(self, id: str, created: int, model: str, echo: Mapping[str, Any]) -> None:
        self.id = id
        self.output: list[Item] = []
        self._head = {"id": id, "object": "response", "created_at": created, "model": model}
        self._echo = echo
        self.kept = False
        """Whether it is stored."""

    def message(self, text: str, status: str = "completed") -> Item:
        """Append a message; a status of `in_progress` has no content yet."""
        parts = [] if status == "in_progress" else [text_part(text, "output_text")]
        return self._append(
            "msg", {"type": "message", "role": "assistant", "status": status, "content": parts}
        )

    def call(self, call: ToolCall) -> Item:
        function = call_to_openai(call)["function"]
        name, arguments = function["name"], function["arguments"]
        return self._append(
            "fc",
            {
                "type": "function_call",
                "call_id": call.id,
                "name": name,
                "arguments": arguments,
                "status": "completed",
            },
        )

    def _append(self, prefix: str, item: Item) -> Item:
        item = {"id": item_id(prefix, self.id, len(self.output)), **item}
        self.output.append(item)
        return item

    def begun(self) -> dict[str, Any]:
        return self._body("in_progress")

    def ended(self, finish_reason: str, usage: Mapping[str, Any]) -> dict[str, Any]:
        """Incomplete where the model was cut off, unless there are calls, which are whole."""
        why = None if self._called else _WHY.get(finish_reason)
        if why is None:
            return self._body("completed", completed_at=int(time.time()), usage=dict(usage))
        for item in self.output[-1:]:
            item["status"] = "incomplete"
        return self._body("incomplete", incomplete_details={"reason": why}, usage=dict(usage))

    def failed(self, code: ErrorCode, message: str) -> dict[str, Any]:
        return self._body("failed", error={"code": code, "message": message})

    @property
    def _called(self) -> bool:
        return any(item["type"] == "function_call" for item in self.output)

    def _body(self, status: str, **more: Any) -> dict[str, Any]:
        return {
            **self._head,
            "status": status,
            "completed_at": None,
            "error": None,
            "incomplete_details": None,
            "output": self.output,
            "usage": None,
            "store": self.kept,
            **self._echo,
            **more,
        }


def whole(
    reply: Reply, text: str, calls: Sequence[ToolCall], finish_reason: str, usage: Mapping[str, Any]
) -> dict[str, Any]:
    """The response object of a reply that is there at once."""
    if text or not calls:
        reply.message(text)
    for call in calls:
        reply.call(call)
    return reply.ended(finish_reason, usage)


class EventEncoder:
    """Writes the events of one stream, in the order a client expects them."""

    def __init__(self, reply: Reply) -> None:
        self.reply = reply
        self._number = 0
        self._begun = False
        self._message: Item | None = None
        self._text: list[str] = []

    def text(self, text: str) -> str:
        out = self._start()
        if self._message is None:
            self._message = self.reply.message("", "in_progress")
            out += self._item("added", self._message)
            out += self._part("added", "")
        self._text.append(text)
        return out + self._at_text("delta", delta=text)

    def call(self, call: ToolCall) -> str:
        out = self._start() + self.close_message("completed")
        item = self.reply.call(call)
        where = {"item_id": item["id"], "output_index": len(self.reply.output) - 1}
        arguments = item["arguments"]
        kind = "response.function_call_arguments"
        return (
            out
            + self._item("added", {**item, "arguments": "", "status": "in_progress"})
            + self._event(f"{kind}.delta", **where, delta=arguments)
            + self._event(f"{kind}.done", **where, name=item["name"], arguments=arguments)
            + self._item("done", item)
        )

    def close(self, finish_reason: str) -> str:
        """What is open is closed; a reply that has nothing is an empty message."""
        out = "" if self.reply.output else self.text("")
        return out + self.close_message("incomplete" if finish_reason in _WHY else "completed")

    def end(self, body: Mapping[str, Any]) -> str:
        """The last event: `body` is the response as it ended."""
        return self._start() + self._event(f"response.{body['status']}", response=body)

    def keep_alive(self) -> str:
        return self._start() + KEEP_ALIVE

    def _start(self) -> str:
        if self._begun:
            return ""
        self._begun = True
        body = self.reply.begun()
        created = self._event("response.created", response=body)
        return created + self._event("response.in_progress", response=body)

    def close_message(self, status: str) -> str:
        """What ends the message that is open, if one is."""
        item, text = self._message, "".join(self._text)
        if item is None:
            return ""
        out = self._at_text("done", text=text) + self._part("done", text)
        item["status"], item["content"] = status, [text_part(text, "output_text")]
        out += self._item("done", item)
        self._message, self._text = None, []
        return out

    def _item(self, what: str, item: Item) -> str:
        index = len(self.reply.output) - 1
        return self._event(f"response.output_item.{what}", output_index=index, item=item)

    def _part(self, what: str, text: str) -> str:
        part = text_part(text, "output_text")
        return self._event(f"response.content_part.{what}", **self._where, part=part)

    def _at_text(self, what: str, **more: str) -> str:
        return self._event(f"response.output_text.{what}", **self._where, logprobs=[], **more)

    @property
    def _where(self) -> dict[str, Any]:
        assert self._message is not None
        index = len(self.reply.output) - 1
        return {"item_id": self._message["id"], "output_index": index, "content_index": 0}

    def _event(self, kind: str, **fields: Any) -> str:
        data = {"type": kind, "sequence_number": self._number, **fields}
        self._number += 1
        return f"event: {kind}\ndata: {to_json(data)}\n\n"
