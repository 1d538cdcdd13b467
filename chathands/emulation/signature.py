"""A tool's JSON Schema as a few plain lines: complete, and shorter than the schema itself."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from chathands.conversation import canonical_json
from chathands.schema_values import json_types, kind_of

_DEPTH = 6
"""Levels of nesting that are spelled out; what lies deeper is shown as its schema."""

_SPELLED = {
    *("type", "title", "description", "enum", "const", "default", "nullable"),
    *("examples", "example", "optional"),
    *("properties", "required", "items", "additionalProperties", "anyOf", "oneOf", "allOf"),
    *("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"),
    *("minLength", "maxLength", "minItems", "maxItems", "uniqueItems", "pattern", "format"),
    *("$ref", "$defs", "definitions", "$schema", "$id", "$comment", "deprecated"),
}
NAME_CAP = 200
"""Characters of a name that are shown: three times what any protocol allows (64), so that only a
hostile one is cut."""
_DESCRIPTION_CAP = 2000
_VALUES_CAP = 8000
_EXAMPLES = 2
"""Example values of a parameter that are shown."""

_BREAKS = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]+")
_UNSEEN = re.compile(r"[\u200b\u200e\u200f\u202a-\u202e\u2060-\u2069\ufeff\ud800-\udfff]")
"""Zero width, direction marks (they turn what follows around on a screen), lone surrogates (no
request can carry them)."""

_FENCES = re.compile(r"`{3,}|~{3,}")
_CONTROL = re.compile(r"<(?=[|/])")
"""`<|im_end|>` ends the system message of many chat templates, `</tools>` a section; as `＜` they
are only text."""

_LEADING = re.compile(r"^(?:[#>*+\-=|\s]|\d+[.)](?=\s))+")


def one_line(text: str, cap: int = _DESCRIPTION_CAP) -> str:
    """Text from outside as one harmless line: it can open no fence, heading or section."""
    text = re.sub(r" {2,}", " ", _plain(text)).strip()
    return text if len(text) <= cap else text[:cap].rstrip() + "…"


def own_line(text: str) -> str:
    """As `one_line`, for text that begins a line: nor is it a heading or an item of a list."""
    return one_line(_LEADING.sub("", _plain(text)))


def _plain(text: str) -> str:
    text = _UNSEEN.sub("", _BREAKS.sub(" ", text))
    return _CONTROL.sub("＜", _FENCES.sub("'''", text))


def _value(value: Any, cap: int = _DESCRIPTION_CAP) -> str:
    """A JSON value as it is to be written, but for what could break the contract."""
    text = _plain(canonical_json(value))
    return text if len(text) <= cap else text[:cap] + "…"


@dataclass(frozen=True, slots=True)
class _Described:
    kind: str
    """The type in words."""
    notes: tuple[str, ...] = ()
    """Enum, ranges, default: each a short phrase."""
    inner: tuple[str, ...] = ()
    """Lines for nested keys, not yet indented."""


def parameter_lines(parameters: Mapping[str, Any], words: Mapping[str, str]) -> list[str]:
    """One line per parameter, nested ones indented below; `words` is the `schema` table."""
    return _Lines(parameters, words).top()


class _Lines:
    def __init__(self, root: Mapping[str, Any], words: Mapping[str, str]) -> None:
        self._root = root
        self._words = words

    def top(self) -> list[str]:
        schema, _ = self._resolve(self._root, frozenset())
        lines = self._keys(schema, 0, frozenset())
        if not lines:
            lines = [self._words["no_parameters"]]
        rest = _unspelled(schema) | _branches_of_keys(schema)
        if rest:
            lines.append(self._words["rest"] + _value(rest))
        if schema.get("additionalProperties") is False and schema.get("properties"):
            lines.append(self._words["closed"] + self._words["stop"])
        return lines

    def _keys(self, schema: Mapping[str, Any], depth: int, seen: frozenset[str]) -> list[str]:
        properties = schema.get("properties")
        if not isinstance(properties, Mapping):
            return []
        needed = schema.get("required")
        needed = needed if isinstance(needed, list) else []
        lines = []
        for name, inner in properties.items():
            lines += self._key(str(name), inner, name in needed, depth, seen)
        return lines

    def _key(
        self, name: str, written: Any, needed: bool, depth: int, seen: frozenset[str]
    ) -> list[str]:
        words = self._words
        schema = _as_schema(written)
        shape, below = self._resolve(schema, seen)
        described = self._describe(shape, depth, below)
        parts = [described.kind, words["required"] if needed else words["optional"]]
        line = f"- {one_line(name, NAME_CAP)}{words['colon']}{words['comma'].join(parts)}"
        if described.notes:
            line += words["comma"] + words["comma"].join(described.notes)
        text = one_line(str(schema.get("description") or shape.get("description") or ""))
        line += words["stop"] + (" " if words["stop"] == "." and text else "") + text
        return [line, *("  " + inner for inner in described.inner)]

    def _resolve(
        self, schema: Mapping[str, Any], seen: frozenset[str]
    ) -> tuple[Mapping[str, Any], frozenset[str]]:
        """The schema behind local references and single `allOf`, and the references passed."""
        while True:
            reference = schema.get("$ref")
            if isinstance(reference, str) and reference.startswith("#/") and reference not in seen:
                target: Any = self._root
                for step in reference[2:].split("/"):
                    step = step.replace("~1", "/").replace("~0", "~")
                    target = target.get(step) if isinstance(target, Mapping) else None
                if not isinstance(target, Mapping):
                    return schema, seen
                seen = seen | {reference}
                schema = {**target, **{k: v for k, v in schema.items() if k != "$ref"}}
                continue
            parts = schema.get("allOf")
            if isinstance(parts, list) and len(parts) == 1 and isinstance(parts[0], Mapping):
                schema = {**parts[0], **{k: v for k, v in schema.items() if k != "allOf"}}
                continue
            return schema, seen

    def _describe(self, schema: Mapping[str, Any], depth: int, seen: frozenset[str]) -> _Described:
        words = self._words
        reference = schema.get("$ref")
        if isinstance(reference, str):
            return _Described(words["again"].format(name=reference.rsplit("/", 1)[-1]))
        if depth >= _DEPTH:
            return _Described(_value(schema))
        branches = schema.get("anyOf") or schema.get("oneOf")
        if isinstance(branches, list) and branches and not _branches_of_keys(schema):
            return self._union(schema, branches, depth, seen)
        return self._plain(schema, depth, seen)

    def _union(
        self, schema: Mapping[str, Any], branches: list[Any], depth: int, seen: frozenset[str]
    ) -> _Described:
        kinds: list[str] = []
        notes: list[str] = []
        nested: list[tuple[str, ...]] = []
        null = False
        for branch in branches:
            shape, below = self._resolve(_as_schema(branch), seen)
            if json_types(shape.get("type")) == ("null",):
                null = True
                continue
            described = self._describe(shape, depth + 1, below)
            if described.kind not in kinds:
                kinds.append(described.kind)
            notes += [note for note in described.notes if note not in notes]
            if described.inner:
                nested.append(described.inner)
        if null:
            notes.append(self._words["null"])
        notes += self._notes(schema)
        return _Described(
            self._words["or"].join(kinds) or self._words["any"],
            tuple(notes),
            self._variants(nested),
        )

    def _variants(self, nested: list[tuple[str, ...]]) -> tuple[str, ...]:
        """The keys of alternative objects, each below a line of its own where there are several."""
        if len(nested) < 2:
            return nested[0] if nested else ()
        lines: list[str] = []
        for number, inner in enumerate(nested, 1):
            lines.append(self._words["variant"].format(number=number).rstrip())
            lines += ["  " + line for line in inner]
        return tuple(lines)

    def _plain(self, schema: Mapping[str, Any], depth: int, seen: frozenset[str]) -> _Described:
        words = self._words
        names = json_types(schema.get("type")) or _implied(schema)
        of_items = names == ("array",) and "enum" in schema and "items" not in schema
        notes = self._notes({k: v for k, v in schema.items() if k != "enum" or not of_items})
        if ("null" in names and len(names) > 1) or schema.get("nullable") is True:
            names = tuple(name for name in names if name != "null")
            notes.append(words["null"])
        inner: list[str] = []
        spelled = []
        for name in names:
            if name == "array":
                # An enum put one level too high lists what the items may be.
                items = {"enum": schema["enum"]} if of_items else schema.get("items")
                shape, below = self._resolve(_as_schema(items), seen)
                item = self._describe(shape, depth + 1, below)
                joined = words["comma"].join((item.kind, *item.notes))
                if item.notes:
                    joined = f"({joined})"
                spelled.append(words["array"].format(item=joined))
                inner += item.inner
            elif name == "object":
                inner += self._keys(schema, depth + 1, seen)
                values = schema.get("additionalProperties")
                if isinstance(values, Mapping):
                    shape, below = self._resolve(values, seen)
                    item = self._describe(shape, depth + 1, below)
                    spelled.append(words["map"].format(item=item.kind))
                    inner += item.inner
                else:
                    spelled.append("object")
            else:
                spelled.append(name)
        rest = _unspelled(schema) | _branches_of_keys(schema)
        if isinstance(schema.get("items"), list):
            rest["items"] = schema["items"]
        if rest:
            notes.append(words["rest"] + _value(rest))
        return _Described(words["or"].join(spelled) or words["any"], tuple(notes), tuple(inner))

    def _notes(self, schema: Mapping[str, Any]) -> list[str]:
        words = self._words
        notes: list[str] = []
        if isinstance(schema.get("enum"), list | tuple) and schema["enum"]:
            notes.append(words["one_of"] + self._values(schema["enum"]))
        if "const" in schema:
            notes.append(words["one_of"] + _value(schema["const"]))
        notes += self._span(schema, "minimum", "maximum", "range")
        above, below = schema.get("exclusiveMinimum"), schema.get("exclusiveMaximum")
        if above is not None:
            notes.append(words["above"].format(low=canonical_json(above)))
        if below is not None:
            notes.append(words["below"].format(high=canonical_json(below)))
        notes += self._span(schema, "minLength", "maxLength", "length")
        notes += self._span(schema, "minItems", "maxItems", "items")
        if "multipleOf" in schema:
            notes.append(words["multiple"].format(step=canonical_json(schema["multipleOf"])))
        if schema.get("uniqueItems") is True:
            notes.append(words["unique"])
        for key in ("pattern", "format"):
            if isinstance(schema.get(key), str):
                notes.append(words[key].format(**{key: one_line(schema[key])}))
        if schema.get("default") is not None:
            notes.append(words["default"] + _value(schema["default"], 400))
        shown = schema.get("examples", schema.get("example"))
        if shown not in (None, [], "", {}) and "enum" not in schema:
            samples = shown if isinstance(shown, list) else [shown]
            texts = [_value(sample, 200) for sample in samples[:_EXAMPLES]]
            notes.append(words["example"] + " | ".join(texts))
        if schema.get("deprecated") is True:
            notes.append(words["deprecated"])
        return notes

    def _values(self, values: Sequence[Any]) -> str:
        """Allowed values up to a size, never one cut in two, and how many there are."""
        shown: list[str] = []
        room = _VALUES_CAP
        for value in values:
            text = _value(value, _VALUES_CAP)
            room -= len(text) + 3
            if room < 0 and shown:
                return " | ".join(shown) + self._words["more_values"].format(count=len(values))
            shown.append(text)
        return " | ".join(shown)

    def _span(self, schema: Mapping[str, Any], low: str, high: str, words: str) -> list[str]:
        bottom, top = schema.get(low), schema.get(high)
        if bottom is None and top is None:
            return []
        key = (
            words
            if bottom is not None and top is not None
            else (f"{words}_at_most" if bottom is None else f"{words}_at_least")
        )
        return [self._words[key].format(low=_value(bottom), high=_value(top))]


def _as_schema(written: Any) -> Mapping[str, Any]:
    """A schema, also where only a type's name was written (`"city": "string"`)."""
    if isinstance(written, str):
        return {"type": written}
    return written if isinstance(written, Mapping) else {}


def _implied(schema: Mapping[str, Any]) -> tuple[str, ...]:
    """The types a schema without one is about, where its other words leave no doubt."""
    if isinstance(schema.get("properties"), Mapping):
        return ("object",)
    if "items" in schema or "prefixItems" in schema:
        return ("array",)
    values = [schema["const"]] if "const" in schema else schema.get("enum")
    if isinstance(values, list | tuple) and values:
        return tuple(dict.fromkeys(kind_of(value) for value in values))
    return ()


def _unspelled(schema: Mapping[str, Any]) -> dict[str, Any]:
    """What has no words of its own here; vendors' remarks (`x-…`) are none of the model's."""
    rest = {k: v for k, v in schema.items() if k not in _SPELLED and not str(k).startswith("x-")}
    if isinstance(schema.get("allOf"), list):
        rest["allOf"] = schema["allOf"]
    return rest


def _branches_of_keys(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Alternatives that only say which of an object's keys belong together."""
    if not isinstance(schema.get("properties"), Mapping):
        return {}
    return {key: schema[key] for key in ("anyOf", "oneOf") if schema.get(key)}
