"""Canonical values as plain dicts and bytes, and back, without loss. No SQL here.

Fields that hold their default are left out, so that a stored conversation stays readable by eye.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from chathands.conversation import (
    CallPart,
    Image,
    ImagePart,
    Message,
    Notice,
    OtherPart,
    Part,
    Role,
    Status,
    Tag,
    TextPart,
    ThinkingPart,
    ToolCall,
    ToolExample,
    ToolResult,
    ToolSpec,
)
from chathands.errors import StoreError


def dumps(value: Any) -> bytes:
    """JSON as bytes. Lone surrogates survive: models cut emoji in half, and SQLite refuses."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return text.encode("utf-8", "surrogatepass")


def loads(data: bytes) -> Any:
    """The value `dumps` was given. Raises StoreError when the bytes are not its work."""
    try:
        return json.loads(data.decode("utf-8", "surrogatepass"))
    except (AttributeError, ValueError, RecursionError) as error:  # the first: SQLite gave no blob
        raise StoreError(f"stored JSON cannot be read: {error}") from error


def call_to_dict(call: ToolCall) -> dict[str, Any]:
    row: dict[str, Any] = {"id": call.id, "name": call.name, "arguments": plain(call.arguments)}
    if call.confidence != "strict":
        row["confidence"] = call.confidence
    if call.repairs:
        row["repairs"] = list(call.repairs)
    if call.raw is not None:
        row["raw"] = call.raw
    return row | _extra(call.extra)


def call_from_dict(row: Mapping[str, Any]) -> ToolCall:
    return ToolCall(
        id=row["id"],
        name=row["name"],
        arguments=row["arguments"],
        confidence=row.get("confidence", "strict"),
        repairs=tuple(row.get("repairs", ())),
        raw=row.get("raw"),
        extra=row.get("extra", {}),
    )


def _extra(extra: Mapping[str, Any]) -> dict[str, Any]:
    return {"extra": plain(extra)} if extra else {}


def image_to_row(image: Image) -> list[Any]:
    row = [image.url, image.mime]
    return [*row, plain(image.extra)] if image.extra else row


def image_from_row(row: Sequence[Any]) -> Image:
    url, mime, *more = row
    return Image(url, mime, more[0] if more else {})


def part_to_row(part: Part) -> list[Any]:
    """One letter for the kind, then its fields; `extra` only where there is one."""
    match part:
        case TextPart():
            row = ["t", part.text, plain(part.extra)]
        case ThinkingPart():
            row = ["h", part.text, plain(part.extra)]
        case ImagePart():
            return ["i", part.index]
        case CallPart():
            return ["c", part.index]
        case OtherPart():
            return ["o", part.kind, plain(part.data)]
    return row if row[-1] else row[:-1]


def part_from_row(row: Sequence[Any]) -> Part:
    kind, first, *more = row
    extra = more[0] if more else {}
    match kind:
        case "t":
            return TextPart(first, extra)
        case "h":
            return ThinkingPart(first, extra)
        case "i":
            return ImagePart(first)
        case "c":
            return CallPart(first)
        case "o":
            return OtherPart(first, extra)
    raise ValueError(f"a part of kind {kind!r}")


def result_to_dict(result: ToolResult) -> dict[str, Any]:
    row: dict[str, Any] = {
        "call_id": result.call_id,
        "name": result.name,
        "status": str(result.status),
        "content": result.content,
    }
    if result.cost_ms is not None:
        row["cost_ms"] = result.cost_ms
    if result.truncated:
        row["truncated"] = True
    if result.foreign:
        row["foreign"] = True
    if result.images:
        row["images"] = [image_to_row(image) for image in result.images]
    if result.parts:
        row["parts"] = [part_to_row(part) for part in result.parts]
    return row | _extra(result.extra)


def result_from_dict(row: Mapping[str, Any]) -> ToolResult:
    return ToolResult(
        call_id=row["call_id"],
        name=row["name"],
        status=Status(row["status"]),
        content=row["content"],
        cost_ms=row.get("cost_ms"),
        truncated=row.get("truncated", False),
        foreign=row.get("foreign", False),
        images=tuple(image_from_row(image) for image in row.get("images", ())),
        parts=tuple(part_from_row(part) for part in row.get("parts", ())),
        extra=row.get("extra", {}),
    )


def message_to_dict(message: Message) -> dict[str, Any]:
    row: dict[str, Any] = {"role": str(message.role)}
    if message.text:
        row["text"] = message.text
    if message.calls:
        row["calls"] = [call_to_dict(call) for call in message.calls]
    if message.result is not None:
        row["result"] = result_to_dict(message.result)
    if message.images:
        row["images"] = [image_to_row(image) for image in message.images]
    if message.head:
        row["head"] = message.head
    if message.tag is not Tag.PLAIN:
        row["tag"] = str(message.tag)
    if message.notice is not None:
        row["notice"] = str(message.notice)
    if message.told:
        row["told"] = list(message.told)
    if message.parts:
        row["parts"] = [part_to_row(part) for part in message.parts]
    if message.joined:
        row["joined"] = True
    if message.foreign:
        row["foreign"] = True
    return row | _extra(message.extra)


def message_from_dict(row: Mapping[str, Any]) -> Message:
    result = row.get("result")
    return Message(
        role=Role(row["role"]),
        text=row.get("text", ""),
        calls=tuple(call_from_dict(call) for call in row.get("calls", ())),
        result=None if result is None else result_from_dict(result),
        images=tuple(image_from_row(image) for image in row.get("images", ())),
        tag=Tag(row.get("tag", Tag.PLAIN)),
        head=row.get("head", ""),
        parts=tuple(part_from_row(part) for part in row.get("parts", ())),
        notice=_notice(row.get("notice")),
        told=tuple(row.get("told", ())),
        joined=row.get("joined", False),
        foreign=row.get("foreign", False),
        extra=row.get("extra", {}),
    )


def _notice(kind: str | None) -> Notice | None:
    """A remark of a kind that this version does not know is one to read, not to go by."""
    return Notice(kind) if kind in list(Notice) else None


def messages_to_dicts(messages: Iterable[Message]) -> list[dict[str, Any]]:
    return [message_to_dict(message) for message in messages]


def messages_from_dicts(rows: Iterable[Mapping[str, Any]]) -> list[Message]:
    """Raises StoreError when a row is not a message (a database written by something else)."""
    try:
        return [message_from_dict(row) for row in rows]
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise StoreError(f"a stored message cannot be read: {error!r}") from error


def spec_to_dict(spec: ToolSpec) -> dict[str, Any]:
    row: dict[str, Any] = {
        "name": spec.name,
        "description": spec.description,
        "parameters": plain(spec.parameters),
        "side_effect": spec.side_effect,
    }
    if spec.examples:
        row["examples"] = [[e.request, plain(e.arguments)] for e in spec.examples]
    if spec.audience != "everyone":
        row["audience"] = spec.audience
    if spec.foreign:
        row["foreign"] = True
    if not spec.deterministic:
        row["deterministic"] = False
    if spec.version != 1:
        row["version"] = spec.version
    if spec.faces:
        row["faces"] = list(spec.faces)
    if spec.deprecated is not None:
        row["deprecated"] = spec.deprecated
    return row | _extra(spec.extra)


def spec_from_dict(row: Mapping[str, Any]) -> ToolSpec:
    return ToolSpec(
        name=row["name"],
        description=row["description"],
        parameters=row["parameters"],
        side_effect=row["side_effect"],
        examples=tuple(
            ToolExample(request, arguments) for request, arguments in row.get("examples", ())
        ),
        audience=row.get("audience", "everyone"),
        foreign=row.get("foreign", False),
        deterministic=row.get("deterministic", True),
        version=row.get("version", 1),
        faces=tuple(row.get("faces", ())),
        deprecated=row.get("deprecated"),
        extra=row.get("extra", {}),
    )


def plain(value: Any) -> Any:
    """The same JSON value built of dict and list only: schemas come as proxies and tuples."""
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [plain(item) for item in value]
    return value
