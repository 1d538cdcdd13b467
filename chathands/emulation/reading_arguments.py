"""The arguments of a call as one object, however they were written: as text, pairs, a list.

What cannot be told is never made up: then there is no object, and `Found.detail` says why.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from chathands.emulation.dialects.words import ARGUMENT_KEYS, plain_key
from chathands.emulation.lenient_json import read_value
from chathands.emulation.reading_found import MISSING, Found
from chathands.emulation.reading_tokens import Call, Gap, Hints, State, Variable
from chathands.schema import Schema

_DEPTH: Final = 6
"""Strings inside strings; deeper is nobody's format."""


def as_object(found: Found, schema: Schema) -> dict[str, Any] | None:
    """The arguments as an object; None, with `found.detail` set, when they cannot be one."""
    raw = found.arguments
    for _ in range(_DEPTH):
        if raw is MISSING or raw is None:
            return {}
        if isinstance(raw, dict):
            inner = _inner_object(raw, schema)
            raw = _without_enum_words(raw, schema) if inner is None else raw
            if inner is None:
                return None if _is_unknown(raw, found) else raw
            found.repairs["keys"] = None
            raw = inner
        elif isinstance(raw, str):
            text = raw.strip()
            if text in ("", "null", "None", "{}"):
                return {}
            read = _object_in(text)
            if read is None:
                return _only_text(found, raw, schema)
            found.repairs["stringified"] = None
            found.repairs.update(read[1])
            raw = read[0]
        elif isinstance(raw, list):
            raw = _from_list(found, raw, schema)
            if raw is None:
                return None
        else:
            break
    if not _is_unknown(raw, found):
        found.detail = ("no_object", "")
    return None


def _without_enum_words(raw: dict[str, Any], schema: Schema) -> dict[str, Any]:
    """The arguments, a bare word being a text where it is one of those the schema lists."""
    if not any(isinstance(value, Variable) for value in raw.values()):
        return raw
    fitted = dict(raw)
    for name, value in raw.items():
        part = schema.properties.get(name)
        listed = part.get("enum") if isinstance(part, Mapping) else None
        if isinstance(value, Variable) and isinstance(listed, list) and value in listed:
            fitted[name] = str(value)
    return fitted


def _inner_object(raw: dict[str, Any], schema: Schema) -> dict[str, Any] | str | None:
    """What `{"arguments": {…}}` holds where the arguments themselves are expected."""
    if len(raw) != 1:
        return None
    ((key, held),) = raw.items()
    if plain_key(key) in ARGUMENT_KEYS and key not in schema.properties:
        return held if isinstance(held, dict | str) else None
    return None


def _is_unknown(value: Any, found: Found) -> bool:
    """Whether an argument cannot be told: a call, `f(x=g(1))`, or nothing, `{"x": }`."""
    if isinstance(value, Variable):
        found.detail = ("no_value", str(value))
        return True
    if isinstance(value, Call | Gap):
        is_call = isinstance(value, Call)
        found.detail = ("nested_call", value.name) if is_call else ("no_value", value.key)
        return True
    inside = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return any(_is_unknown(item, found) for item in inside)


def _object_in(text: str) -> tuple[Any, dict[str, None]] | None:
    """What a string of JSON holds, or keyword arguments without their call."""
    if text[:1] not in ("{", "[", '"', "｛", "“", "\\"):
        if "=" not in text[:80]:
            return None
        text = f"arguments({text})"
    read = read_value(text, Hints())
    if read.state is not State.WHOLE or read.src.buf[read.src.pos :].strip():
        return None
    if isinstance(read.value, Call):
        return None if read.value.args else (read.value.kwargs, read.repairs)
    return read.value, read.repairs


def _only_text(found: Found, text: str, schema: Schema) -> dict[str, Any] | None:
    """Plain text for a tool that takes one text and nothing else that is required."""
    names = list(schema.required) or list(schema.properties)
    if (
        len(names) == 1
        and not found.repairs.keys() & {"inner_quotes", "missing_quote"}
        and schema.takes(names[0], "string")
        and text.strip()[:1] not in ("{", "[", '"')
    ):
        found.repairs["positional"] = None
        return {names[0]: text}
    found.detail = ("no_object", "")
    return None


def _from_list(found: Found, raw: list[Any], schema: Schema) -> dict[str, Any] | None:
    """A list in place of the object: empty, around it, of its pairs, or the one list wanted."""
    if not raw:
        return {}
    if all(isinstance(i, list) and len(i) == 2 and isinstance(i[0], str) for i in raw):
        found.repairs["pairs"] = None
        return dict(raw)
    if all(isinstance(item, dict) for item in raw):
        if len(raw) == 1 and not set(raw[0]) <= {"name", "key", "value"}:
            found.repairs["unwrapped"] = None
            return raw[0]
        pairs = [(item.get("name", item.get("key")), item.get("value", MISSING)) for item in raw]
        if all(isinstance(key, str) and value is not MISSING for key, value in pairs):
            found.repairs["pairs"] = None
            return dict(pairs)
        merged = {key: value for item in raw for key, value in item.items()}
        if len(merged) == sum(len(item) for item in raw) and set(merged) <= set(schema.properties):
            found.repairs["pairs"] = None
            return merged
    names = list(schema.properties)
    if len(names) == 1 and schema.takes(names[0], "array"):
        found.repairs["positional"] = None
        return {names[0]: raw}
    found.detail = ("positional", "")
    return None
