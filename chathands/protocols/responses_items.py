"""OpenAI Responses: the items of an input, checked, and as chat messages.

Shapes after OpenAI's API reference (responses/create, input items).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import BaseModel, BeforeValidator, ConfigDict, ValidationError

from chathands.protocols.openai import BadRequest, bad_request, to_json

Item: TypeAlias = dict[str, Any]

_TEXTS = ("input_text", "output_text", "text")

_REQUIRED = "Field required"
"""Pydantic's words for what is not there, and has no place in a body therefore."""

_OWN_ID = re.compile(r"[a-z]+_([0-9a-f]+)[io][0-9]+")


def _as_text(value: Any) -> Any:
    return to_json(value) if isinstance(value, dict) else value


class _Item(BaseModel):
    model_config = ConfigDict(extra="allow")

    id: str | None = None


class _Part(BaseModel):
    model_config = ConfigDict(extra="allow")

    type: str


class _TextPart(_Part):
    text: str


class _RefusalPart(_Part):
    refusal: str


class _MessageItem(_Item):
    type: Literal["message"] = "message"
    role: Literal["user", "assistant", "system", "developer"]
    content: str | list[dict[str, Any]]


class _CallItem(_Item):
    type: Literal["function_call"]
    call_id: str
    name: str
    arguments: Annotated[str, BeforeValidator(_as_text)]


class _OutputItem(_Item):
    type: Literal["function_call_output"]
    call_id: str
    output: str | list[dict[str, Any]]


class _ReasoningItem(_Item):
    type: Literal["reasoning"]


class _ReferenceItem(_Item):
    type: Literal["item_reference"] = "item_reference"
    id: str  # pyright: ignore[reportIncompatibleVariableOverride, reportGeneralTypeIssues]


_KINDS: Mapping[str, type[_Item]] = {
    "message": _MessageItem,
    "function_call": _CallItem,
    "function_call_output": _OutputItem,
    "reasoning": _ReasoningItem,
    "item_reference": _ReferenceItem,
}


def read_items(items: Iterable[Any]) -> list[Item]:
    """Each with its `type`, and content of messages as parts. Raises BadRequest."""
    return [_read_item(item, f"input.{index}") for index, item in enumerate(items)]


def _read_item(item: Any, where: str) -> Item:
    kind = item.get("type")
    if kind is None:
        kind = "message" if "role" in item else "item_reference"
    known = _KINDS.get(kind) if isinstance(kind, str) else None
    if known is None:
        shown = repr(kind[:64]) if isinstance(kind, str) else "this"
        raise BadRequest(f"{where}.type: {shown} is not offered here", f"{where}.type")
    checked = _checked(known, {**item, "type": kind}, where)
    read = checked.model_dump(exclude_unset=True) | {"type": kind}
    if kind == "message":
        if isinstance(read["content"], str):
            text = "output_text" if read["role"] == "assistant" else "input_text"
            read["content"] = [text_part(read["content"], text)]
        _check_parts(read["content"], f"{where}.content")
        read.setdefault("status", "completed")
    elif kind == "function_call_output" and isinstance(read["output"], list):
        _check_parts(read["output"], f"{where}.output")
    return read


def _checked(model: type[BaseModel], value: Mapping[str, Any], where: str) -> BaseModel:
    try:
        return model.model_validate(value)
    except ValidationError as error:
        wrong = wrong_field(error, value)
        raise BadRequest(f"{where}.{wrong}", f"{where}.{wrong.field}") from None


def wrong_field(error: ValidationError, body: Mapping[str, Any]) -> BadRequest:
    """The first field of `body` that is wrong, by its path in there: pydantic's also names the
    branches of our unions."""
    wrong = bad_request(error)
    path = (wrong.field or "").split(".")
    message = str(wrong).removeprefix(f"{wrong.field}: ")
    kept: list[str] = []
    here: Any = body
    for part in path:
        if isinstance(here, Mapping) and part in here:
            here = here[part]
        elif isinstance(here, list) and part.isdigit() and int(part) < len(here):
            here = here[int(part)]
        elif part is not path[-1] or message != _REQUIRED:
            continue
        kept.append(part)
    field = ".".join(kept)
    return BadRequest(f"{field}: {message}", field)


def _check_parts(parts: Sequence[Mapping[str, Any]], where: str) -> None:
    for index, part in enumerate(parts):
        kind = part.get("type")
        model = _RefusalPart if kind == "refusal" else _TextPart if kind in _TEXTS else _Part
        _checked(model, part, f"{where}.{index}")


def text_part(text: str, kind: str) -> dict[str, Any]:
    """A part of a message's content, as replies and listings have it."""
    part: dict[str, Any] = {"type": kind, "text": text}
    return part | ({"annotations": [], "logprobs": []} if kind == "output_text" else {})


def chat_messages(items: Iterable[Item]) -> list[dict[str, Any]]:
    """Items as messages of chat completions. What an assistant said and the calls right after it
    are one message, as they were one reply. Reasoning is its own model's; nothing of it is kept."""
    out: list[dict[str, Any]] = []
    for item in items:
        kind = item["type"]
        if kind == "message":
            out.append({"role": item["role"], "content": _content(item["content"])})
        elif kind == "function_call":
            if not out or out[-1]["role"] != "assistant":
                out.append({"role": "assistant", "content": None})
            function = {"name": item["name"], "arguments": item["arguments"]}
            call = {"id": item["call_id"], "type": "function", "function": function}
            out[-1].setdefault("tool_calls", []).append(call)
        elif kind == "function_call_output":
            output = item["output"]
            content = output if isinstance(output, str) else _content(output)
            out.append({"role": "tool", "tool_call_id": item["call_id"], "content": content})
    return out


def _content(parts: Sequence[Mapping[str, Any]]) -> str | list[dict[str, Any]]:
    """A string where there is nothing but text: that every chat server takes."""
    written = [_part(part) for part in parts]
    if all(part["type"] == "text" for part in written):
        return "\n".join(part["text"] for part in written)
    return written


def _part(part: Mapping[str, Any]) -> dict[str, Any]:
    kind = part["type"]
    if kind in _TEXTS:
        return {"type": "text", "text": part["text"]}
    if kind == "refusal":
        return {"type": "text", "text": part["refusal"]}
    if kind == "input_image" and isinstance(part.get("image_url"), str):
        detail = {"detail": part["detail"]} if isinstance(part.get("detail"), str) else {}
        return {"type": "image_url", "image_url": {"url": part["image_url"], **detail}}
    if kind == "input_file":
        file = {k: part[k] for k in ("file_id", "filename", "file_data") if part.get(k)}
        return {"type": "file", "file": file}
    return dict(part)


def with_ids(items: Iterable[Item], response: str) -> list[Item]:
    """Items that can be listed: each has an id, ours made from that of its response."""
    short = {"message": "msg", "function_call": "fc", "function_call_output": "fco"}
    return [
        {**item, "id": item.get("id") or item_id(short.get(item["type"], "item"), response, n, "i")}
        for n, item in enumerate(items)
    ]


def item_id(prefix: str, response: str, index: int, side: Literal["i", "o"] = "o") -> str:
    """Tells the response that the item is of, so that it can be found again."""
    return f"{prefix}_{response.removeprefix('resp_')}{side}{index}"


def response_of(item: str) -> str | None:
    """The id of the response that made this id; None when it is no id of ours."""
    own = _OWN_ID.fullmatch(item)
    return f"resp_{own[1]}" if own else None
