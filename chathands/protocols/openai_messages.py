"""OpenAI chat messages ↔ canonical messages, both ways and without loss.

Reading a message and writing it again gives the same message, but for what the protocol itself
holds equal: absent, null and empty content of an assistant. Shapes after OpenAI's API reference
(chat/object); fields and parts it does not know are carried along.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from chathands.conversation import (
    UNREADABLE,
    CallPart,
    Image,
    ImagePart,
    Message,
    OtherPart,
    Part,
    Role,
    Status,
    TextPart,
    ToolCall,
    ToolResult,
    joined_text,
)
from chathands.protocols.status_line import read_status, with_status_line

_UNSPOKEN = (Status.FAILED, Status.DENIED, Status.UNKNOWN)
"""The protocol has no word for how a call ended; the content's first line says it."""

_DATA_URL = re.compile(r"data:(?P<mime>[\w.+-]+/[\w.+-]+)[;,]")


def from_openai(messages: Iterable[Mapping[str, Any]], *, ours: bool = False) -> list[Message]:
    """Messages as the wire has them, in canonical form. Orphan results are kept.

    The shapes must have been checked before (roles, ids, arguments as text). `ours` says that
    `to_openai` wrote them: only then is a first line of a result its status. What a client sends is
    data, whatever it looks like.
    """
    names: dict[str, str] = {}
    out: list[Message] = []
    for wire in messages:
        role = wire["role"]
        text, images, parts = _content(wire.get("content"))
        extra = _rest(wire, "role", "content", "tool_calls", "tool_call_id")
        if role == "tool":
            call_id = str(wire.get("tool_call_id") or "")
            name = names.get(call_id) or str(wire.get("name") or "")
            result = ToolResult(
                call_id, name, Status.OK, text, images=images, parts=parts, extra=extra
            )
            out.append(Message.tool(read_status(result, _UNSPOKEN) if ours else result))
            continue
        calls = tuple(_call(call) for call in wire.get("tool_calls") or ())
        names.update((call.id, call.name) for call in calls)
        if role == "developer":
            role, extra = "system", {**extra, "role": role}
        if parts and calls:
            parts += tuple(CallPart(index) for index in range(len(calls)))
        out.append(Message(Role(role), text, calls, images=images, parts=parts, extra=extra))
    return out


def to_openai(messages: Iterable[Message]) -> list[dict[str, Any]]:
    """Canonical messages as the wire has them. Text between calls comes before them: the protocol
    has no place for it. Thinking stays behind; it has none for that either."""
    return [message_to_openai(message) for message in messages]


def message_to_openai(message: Message) -> dict[str, Any]:
    if message.result is not None:
        result = with_status_line(message.result, _UNSPOKEN)
        content = _wire_content(result.content, result.images, result.ordered, result.parts)
        return {
            "role": "tool",
            "tool_call_id": result.call_id,
            "content": content,
            **result.extra,
        }
    text = f"{message.head}\n{message.text}" if message.head else message.text
    content = _wire_content(text, message.images, message.ordered, message.parts)
    wire: dict[str, Any] = {"role": message.role.value, "content": content}
    if message.calls:
        wire["content"] = content or None
        wire["tool_calls"] = [call_to_openai(call) for call in message.calls]
    return wire | dict(message.extra)


def call_to_openai(call: ToolCall) -> dict[str, Any]:
    """One entry of `tool_calls`; arguments as the client had written them, if it had."""
    written = call.raw if call.raw is not None else json.dumps(call.arguments, ensure_ascii=False)
    own = dict(call.extra)
    function = {"name": call.name, "arguments": written, **own.pop("function", {})}
    return {"id": call.id, "type": "function", "function": function, **own}


def _content(content: Any) -> tuple[str, tuple[Image, ...], tuple[Part, ...]]:
    if content is None or isinstance(content, str):
        return content or "", (), ()
    images: list[Image] = []
    parts: list[Part] = []
    for part in content:
        kind = str(part.get("type"))
        if kind == "text" and isinstance(part.get("text"), str):
            parts.append(TextPart(part["text"], _rest(part, "type", "text")))
        elif kind == "image_url" and isinstance(part.get("image_url"), Mapping):
            image = _image(part)
            parts.append(OtherPart(kind, dict(part)) if image is None else ImagePart(len(images)))
            images += [] if image is None else [image]
        else:
            parts.append(OtherPart(kind, dict(part)))
    return joined_text(parts), tuple(images), tuple(parts)


def _image(part: Mapping[str, Any]) -> Image | None:
    source = part["image_url"]
    url = source.get("url")
    if not isinstance(url, str):
        return None
    extra = _rest(part, "type", "image_url")
    if more := _rest(source, "url"):
        extra["image_url"] = more
    known = _DATA_URL.match(url)
    return Image(url, known["mime"] if known else None, extra)


def _wire_content(
    text: str, images: Sequence[Image], ordered: Sequence[Part], parts: Sequence[Part]
) -> str | list[dict[str, Any]]:
    """A string where the client had one, parts where it had them or a picture needs them."""
    if not parts and not images:
        return text
    written: list[dict[str, Any]] = []
    for part in ordered:
        match part:
            case TextPart():
                written.append({"type": "text", "text": part.text, **part.extra})
            case ImagePart():
                written.append(_wire_image(images[part.index]))
            case OtherPart():
                written.append(dict(part.data))
    return written


def _wire_image(image: Image) -> dict[str, Any]:
    extra = dict(image.extra)
    more = extra.pop("image_url", {})
    return {"type": "image_url", "image_url": {"url": image.url, **more}, **extra}


def _call(wire: Mapping[str, Any]) -> ToolCall:
    function = wire["function"]
    written = function.get("arguments")
    written = written if isinstance(written, str) else ""
    try:
        arguments = json.loads(written or "{}")
    except (ValueError, RecursionError):
        arguments = None
    if not isinstance(arguments, dict):
        # History, not a request to run: what the client holds is kept as it is.
        arguments = {UNREADABLE: written}
    extra = _rest(wire, "id", "type", "function")
    if more := _rest(function, "name", "arguments"):
        extra["function"] = more
    again = json.dumps(arguments, ensure_ascii=False)
    return ToolCall(
        wire["id"],
        function["name"],
        arguments,
        raw=None if again == written else written,
        extra=extra,
    )


def _rest(wire: Mapping[str, Any], *known: str) -> dict[str, Any]:
    return {key: value for key, value in wire.items() if key not in known}
