"""A schema in the words of JSON Schema: what an upstream that checks it will take."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from chathands.limits import JSON_DEPTH
from chathands.schema_values import json_types

_NAMED = ("properties", "$defs", "definitions", "patternProperties")
_ONE = ("items", "additionalProperties", "not")
_MANY = ("anyOf", "oneOf", "allOf", "prefixItems")


def in_json_words(schema: Mapping[str, Any], depth: int = 0) -> dict[str, Any]:
    """A copy in which `dict`, `float`, `String` and the like are JSON's own types, and a word
    nobody knows is left out; a schema that says it right comes back as it was.

    llama.cpp's server answers 400 to a type it does not know ("unrecognized type dict").
    """
    out = dict(schema)
    if depth > JSON_DEPTH:
        return out
    if "type" in out:
        types = json_types(out["type"])
        if not types:
            del out["type"]
        elif isinstance(out["type"], str):
            out["type"] = types[0] if len(types) == 1 else list(types)
        else:
            out["type"] = list(types)
    for key in _NAMED:
        if isinstance(out.get(key), Mapping):
            out[key] = {name: _in_words(part, depth) for name, part in out[key].items()}
    for key in _ONE:
        if isinstance(out.get(key), Mapping | str):
            out[key] = _in_words(out[key], depth)
    for key in _MANY:
        if isinstance(out.get(key), list | tuple):
            out[key] = [_in_words(part, depth) for part in out[key]]
    return out


def _in_words(part: Any, depth: int) -> Any:
    if isinstance(part, str):  # `"city": "string"`
        part = {"type": part}
    return in_json_words(part, depth + 1) if isinstance(part, Mapping) else part
