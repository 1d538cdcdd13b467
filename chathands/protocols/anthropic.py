"""Anthropic messages ↔ canonical messages, both ways and without loss. No requests, no streams.

Reading messages and writing them again gives the same messages, but for what the protocol itself
holds equal: neighbouring user messages that hold nothing but results are one, and a text alone in
a list is kept as a list. Shapes after Anthropic's API reference (Messages, tool use, extended
thinking); blocks and fields it does not know are carried along.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from chathands.conversation import (
    CallPart,
    Image,
    ImagePart,
    Message,
    OtherPart,
    Part,
    Role,
    Status,
    TextPart,
    ThinkingPart,
    ToolCall,
    ToolResult,
    joined_text,
)
from chathands.protocols.status_line import read_status, with_status_line

_UNSPOKEN = (Status.DENIED, Status.UNKNOWN)
"""`is_error` says failed; what it cannot say stands in the content's first line."""

Content = str | Sequence[Mapping[str, Any]] | None


def from_anthropic(
    system: Content, messages: Iterable[Mapping[str, Any]], *, ours: bool = False
) -> list[Message]:
    """`system` and `messages` of a request in canonical form. Orphan results are kept.

    A user message with results becomes one message for each of them; text beside them is `joined`.
    `ours` says that `to_anthropic` wrote them: only then is a first line of a result its status.
    """
    out: list[Message] = []
    if system:
        out.append(_plain(Role.SYSTEM, system, {}))
    names: dict[str, str] = {}
    for wire in messages:
        role, content = Role(wire["role"]), wire.get("content")
        extra = _rest(wire, "role", "content")
        if role is Role.ASSISTANT or isinstance(content, str | None):
            message = _plain(role, content, extra)
            names.update((call.id, call.name) for call in message.calls)
            out.append(message)
        else:
            out += _user_messages(content, extra, names)
    return [_with_status(message) for message in out] if ours else out


def _with_status(message: Message) -> Message:
    if message.result is None or message.result.status is not Status.FAILED:
        return message
    result = read_status(message.result, _UNSPOKEN)
    return replace(message, result=result, text=result.content)


def to_anthropic(
    conversation: Iterable[Message],
) -> tuple[str | list[dict[str, Any]] | None, list[dict[str, Any]]]:
    """`system` and `messages` of a request.

    Results that stand together share one user message, as the protocol demands of parallel calls.
    A system message further on becomes a user message: the protocol has no place for it.
    """
    system: str | list[dict[str, Any]] | None = None
    messages: list[dict[str, Any]] = []
    after_result = False
    for message in conversation:
        if message.role is Role.SYSTEM and not messages and system is None:
            system = _wire_content(message)
            continue
        result = message.result
        content = _wire_content(message) if result is None else [_wire_result(result)]
        joins = message.joined or (result is not None and after_result)
        after_result = result is not None
        if joins and messages and isinstance(messages[-1]["content"], list):
            messages[-1]["content"] += _as_list(content)
            messages[-1].update(message.extra)
            continue
        role = "assistant" if message.role is Role.ASSISTANT else "user"
        messages.append({"role": role, "content": content, **message.extra})
    return system, messages


def _user_messages(
    content: Sequence[Mapping[str, Any]], extra: Mapping[str, Any], names: Mapping[str, str]
) -> list[Message]:
    out: list[Message] = []
    beside: list[Mapping[str, Any]] = []

    def end_text() -> None:
        if beside:
            out.append(_plain(Role.USER, beside, {}, joined=bool(out)))
            beside.clear()

    for block in content:
        if block.get("type") != "tool_result":
            beside.append(block)
            continue
        end_text()
        out.append(replace(Message.tool(_result(block, names)), joined=bool(out)))
    end_text()
    if not out:
        return [Message.user("")]
    return [*out[:-1], replace(out[-1], extra=dict(extra))]


def _plain(
    role: Role, content: Content, extra: Mapping[str, Any], *, joined: bool = False
) -> Message:
    """A message without results."""
    if content is None or isinstance(content, str):
        return Message(role, content or "", extra=dict(extra), joined=joined)
    calls: list[ToolCall] = []
    images: list[Image] = []
    parts: list[Part] = []
    for block in content:
        if block.get("type") == "tool_use" and isinstance(block.get("input"), Mapping):
            parts.append(CallPart(len(calls)))
            rest = _rest(block, "type", "id", "name", "input")
            calls.append(ToolCall(block["id"], block["name"], dict(block["input"]), extra=rest))
        else:
            parts.append(_part(block, images))
    return Message(
        role,
        joined_text(parts),
        tuple(calls),
        images=tuple(images),
        parts=tuple(parts),
        extra=dict(extra),
        joined=joined,
    )


def _part(block: Mapping[str, Any], images: list[Image]) -> Part:
    kind = str(block.get("type"))
    if kind == "text" and isinstance(block.get("text"), str):
        return TextPart(block["text"], _rest(block, "type", "text"))
    if kind == "thinking" and isinstance(block.get("thinking"), str):
        return ThinkingPart(block["thinking"], _rest(block, "type", "thinking"))
    source = block.get("source")
    if kind == "image" and isinstance(source, Mapping):
        images.append(_image(block, source))
        return ImagePart(len(images) - 1)
    return OtherPart(kind, dict(block))


def _image(block: Mapping[str, Any], source: Mapping[str, Any]) -> Image:
    extra = _rest(block, "type", "source")
    mime, data, url = source.get("media_type"), source.get("data"), source.get("url")
    if source.get("type") == "base64" and isinstance(mime, str) and isinstance(data, str):
        rest, url = _rest(source, "type", "media_type", "data"), f"data:{mime};base64,{data}"
    elif source.get("type") == "url" and isinstance(url, str):
        rest, mime = _rest(source, "type", "url"), None
    else:
        rest, url, mime = dict(source), "", None
    return Image(url, mime, extra | ({"source": rest} if rest else {}))


def _result(block: Mapping[str, Any], names: Mapping[str, str]) -> ToolResult:
    call_id = str(block.get("tool_use_id") or "")
    content = block.get("content")
    images: list[Image] = []
    parts: tuple[Part, ...] = ()
    if not isinstance(content, str | None):
        parts = tuple(_part(inner, images) for inner in content)
        content = joined_text(parts)
    extra = _rest(block, "type", "tool_use_id", "content")
    failed = extra.get("is_error") is True
    if failed:
        extra.pop("is_error")
    return ToolResult(
        call_id,
        names.get(call_id, ""),
        Status.FAILED if failed else Status.OK,
        content or "",
        images=tuple(images),
        parts=parts,
        extra=extra,
    )


def _wire_result(result: ToolResult) -> dict[str, Any]:
    result = with_status_line(result, _UNSPOKEN)
    block: dict[str, Any] = {"type": "tool_result", "tool_use_id": result.call_id}
    if result.parts or result.images:
        block["content"] = [_block(part, (), result.images) for part in result.ordered]
    elif result.content:
        block["content"] = result.content
    if result.status is not Status.OK:
        block["is_error"] = True
    return block | dict(result.extra)


def _wire_content(message: Message) -> str | list[dict[str, Any]]:
    if not (message.parts or message.images or message.calls):
        return f"{message.head}\n{message.text}" if message.head else message.text
    return [_block(part, message.calls, message.images) for part in message.ordered]


def _as_list(content: str | list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


def _block(part: Part, calls: Sequence[ToolCall], images: Sequence[Image]) -> dict[str, Any]:
    match part:
        case TextPart():
            return {"type": "text", "text": part.text, **part.extra}
        case ThinkingPart():
            return {"type": "thinking", "thinking": part.text, **part.extra}
        case ImagePart():
            return _wire_image(images[part.index])
        case CallPart():
            call = calls[part.index]
            core = {"type": "tool_use", "id": call.id, "name": call.name}
            return {**core, "input": dict(call.arguments), **call.extra}
        case OtherPart():
            return dict(part.data)


def _wire_image(image: Image) -> dict[str, Any]:
    extra = dict(image.extra)
    source = dict(extra.pop("source", {}))
    head, comma, data = image.url.partition(";base64,")
    if comma and head.startswith("data:"):
        source = {
            "type": "base64",
            "media_type": head.removeprefix("data:"),
            "data": data,
        } | source
    elif image.url:
        source = {"type": "url", "url": image.url} | source
    return {"type": "image", "source": source, **extra}


def _rest(wire: Mapping[str, Any], *known: str) -> dict[str, Any]:
    return {key: value for key, value in wire.items() if key not in known}
