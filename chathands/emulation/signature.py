"""A tool's JSON Schema as a few plain lines: complete, and shorter than the schema itself."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from chathands.conversation import canonical_json

_DEPTH = 6
"""Levels of nesting that are spelled out; what lies deeper is shown as its schema."""

_SPELLED = {
    *("type", "title", "description", "enum", "const", "default", "nullable", "examples"),
    *("properties", "required", "items", "additionalProperties", "anyOf", "oneOf", "allOf"),
    *("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"),
    *("minLength", "maxLength", "minItems", "maxItems", "uniqueItems", "pattern", "format"),
    *("$ref", "$defs", "definitions", "$schema", "$id", "$comment", "deprecated"),
}
_DESCRIPTION_CAP = 2000


def one_line(text: str, cap: int = _DESCRIPTION_CAP) -> str:
    """Text from outside as one harmless line: it can open no fence, heading or section."""
    text = re.sub(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]+", " ", text)
    text = re.sub(r"`{3,}|~{3,}", "'''", text)
    text = re.sub(r" {2,}", " ", text).strip()
    return text if len(text) <= cap else text[:cap].rstrip() + "…"


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
        rest = {k: v for k, v in schema.items() if k not in _SPELLED}
        if rest:
            lines.append(one_line(self._words["rest"] + canonical_json(rest)))
        if schema.get("additionalProperties") is False and schema.get("properties"):
            lines[-1] += self._words["comma"] + self._words["closed"]
        return lines

    def _keys(self, schema: Mapping[str, Any], depth: int, seen: frozenset[str]) -> list[str]:
        properties = schema.get("properties")
        if not isinstance(properties, Mapping):
            return []
        needed = schema.get("required")
        needed = needed if isinstance(needed, list) else []
        lines = []
        for name, inner in properties.items():
            if not isinstance(inner, Mapping):
                inner = {}
            lines += self._key(str(name), inner, name in needed, depth, seen)
        return lines

    def _key(
        self, name: str, schema: Mapping[str, Any], needed: bool, depth: int, seen: frozenset[str]
    ) -> list[str]:
        words = self._words
        shape, below = self._resolve(schema, seen)
        described = self._describe(shape, depth, below)
        parts = [described.kind, words["required"] if needed else words["optional"]]
        line = f"- {one_line(name, 200)}{words['colon']}{words['comma'].join(parts)}"
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
            return _Described(one_line(canonical_json(schema)))
        branches = schema.get("anyOf") or schema.get("oneOf")
        if isinstance(branches, list) and branches:
            return self._union(schema, branches, depth, seen)
        return self._plain(schema, depth, seen)

    def _union(
        self, schema: Mapping[str, Any], branches: list[Any], depth: int, seen: frozenset[str]
    ) -> _Described:
        kinds: list[str] = []
        notes: list[str] = []
        inner: list[str] = []
        null = False
        for branch in branches:
            shape, below = self._resolve(branch if isinstance(branch, Mapping) else {}, seen)
            if shape.get("type") == "null":
                null = True
                continue
            described = self._describe(shape, depth + 1, below)
            if described.kind not in kinds:
                kinds.append(described.kind)
            notes += [note for note in described.notes if note not in notes]
            inner += described.inner
        if null:
            notes.append(self._words["null"])
        notes += self._notes({k: v for k, v in schema.items() if k == "default"})
        return _Described(
            self._words["or"].join(kinds) or self._words["any"], tuple(notes), tuple(inner)
        )

    def _plain(self, schema: Mapping[str, Any], depth: int, seen: frozenset[str]) -> _Described:
        words = self._words
        kinds = schema.get("type")
        names = [kinds] if isinstance(kinds, str) else kinds if isinstance(kinds, list) else []
        notes = self._notes(schema)
        if ("null" in names and len(names) > 1) or schema.get("nullable") is True:
            names = [n for n in names if n != "null"]
            notes.append(words["null"])
        inner: list[str] = []
        spelled = []
        for name in names or (["object"] if "properties" in schema else []):
            if name == "array":
                items = schema.get("items")
                shape, below = self._resolve(items if isinstance(items, Mapping) else {}, seen)
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
                spelled.append(str(name))
        rest = {k: v for k, v in schema.items() if k not in _SPELLED}
        if isinstance(schema.get("allOf"), list):
            rest["allOf"] = schema["allOf"]
        if rest:
            notes.append(one_line(words["rest"] + canonical_json(rest)))
        return _Described(words["or"].join(spelled) or words["any"], tuple(notes), tuple(inner))

    def _notes(self, schema: Mapping[str, Any]) -> list[str]:
        words = self._words
        notes: list[str] = []
        if isinstance(schema.get("enum"), list):
            values = " | ".join(canonical_json(value) for value in schema["enum"])
            notes.append(words["one_of"] + one_line(values, 4 * _DESCRIPTION_CAP))
        if "const" in schema:
            notes.append(words["one_of"] + one_line(canonical_json(schema["const"])))
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
        if "default" in schema and schema["default"] is not None:
            notes.append(words["default"] + one_line(canonical_json(schema["default"])))
        return notes

    def _span(self, schema: Mapping[str, Any], low: str, high: str, words: str) -> list[str]:
        bottom, top = schema.get(low), schema.get(high)
        if bottom is None and top is None:
            return []
        key = (
            words
            if bottom is not None and top is not None
            else (f"{words}_at_most" if bottom is None else f"{words}_at_least")
        )
        return [self._words[key].format(low=canonical_json(bottom), high=canonical_json(top))]
