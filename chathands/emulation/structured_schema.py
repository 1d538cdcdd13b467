"""The JSON Schema of a structured reply, in the subset that servers enforce.

The rules are those of OpenAI's structured outputs with `strict` (platform.openai.com/docs/guides/
structured-outputs, "supported schemas"): every object closed, every property required, no
lengths, references resolved. llama.cpp, vLLM and others enforce what is within them too. An
optional parameter may be null, which the reading takes for "not given".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from chathands.conversation import ToolChoice, ToolSpec

MAX_CALLS: Final = 8
"""Of one reply: beyond that a small model under a grammar is in a loop; the next round has more."""

_DEPTH: Final = 12
"""Objects in objects; deeper ones are left open."""
_KEPT: Final = (
    *("type", "enum", "const", "minimum", "maximum", "multipleOf"),
    *("exclusiveMinimum", "exclusiveMaximum", "minItems", "maxItems"),
)


def reply_schema(tools: Sequence[ToolSpec], choice: ToolChoice) -> tuple[dict[str, Any], bool]:
    """The schema of a reply under this choice, and whether it keeps to the strict rules (a tool
    with free keys or untyped values does not)."""
    if choice.kind == "named":
        tools = [tool for tool in tools if tool.name == choice.name]
    strict = _Strict()
    actions = [_action(tool, strict) for tool in tools]
    calls: dict[str, Any] = {"type": "array", "maxItems": MAX_CALLS}
    if choice.kind == "none":
        # `items` must say something although there are none.
        calls = {"type": "array", "maxItems": 0, "items": _closed({})}
    else:
        calls["items"] = actions[0] if len(actions) == 1 else {"anyOf": actions}
    answer: dict[str, Any] = {"type": "string"}
    if choice.kind in ("required", "named"):
        calls["minItems"] = 1
        answer["enum"] = [""]
    return _closed({"thought": {"type": "string"}, "calls": calls, "answer": answer}), strict.kept


def _action(tool: ToolSpec, strict: _Strict) -> dict[str, Any]:
    parameters = strict.schema({"type": "object", "properties": {}, **tool.parameters})
    return _closed({"tool": {"type": "string", "enum": [tool.name]}, "parameters": parameters})


def _closed(properties: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": dict(properties),
        "required": list(properties),
        "additionalProperties": False,
    }


class _Strict:
    """Brings schemas into the subset; `kept` tells whether all of them could be."""

    def __init__(self) -> None:
        self.kept = True

    def schema(self, schema: Any) -> dict[str, Any]:
        return self._of(schema, schema if isinstance(schema, Mapping) else {}, 0, ())

    def _of(
        self, schema: Any, root: Mapping[str, Any], depth: int, seen: tuple[str, ...]
    ) -> dict[str, Any]:
        if not isinstance(schema, Mapping) or depth > _DEPTH:
            return self._anything()
        if isinstance(reference := schema.get("$ref"), str):
            target = _resolved(reference, root)
            if reference in seen or target is None:
                return self._anything()
            inner = {**target, **{k: v for k, v in schema.items() if k != "$ref"}}
            return self._of(inner, root, depth, (*seen, reference))
        parts = schema.get("allOf")
        if isinstance(parts, list) and len(parts) == 1 and isinstance(parts[0], Mapping):
            inner = {**parts[0], **{k: v for k, v in schema.items() if k != "allOf"}}
            return self._of(inner, root, depth, seen)
        branches = schema.get("anyOf") or schema.get("oneOf")
        if isinstance(branches, list) and branches and "properties" not in schema:
            made = [self._of(branch, root, depth + 1, seen) for branch in branches]
            return _or_null({"anyOf": made}) if schema.get("nullable") is True else {"anyOf": made}
        out = {key: schema[key] for key in _KEPT if key in schema}
        if not _is_plain_type(out.get("type")):
            out.pop("type", None)
        if "properties" in schema or out.get("type") == "object":
            self._object(out, schema, root, depth, seen)
        if "items" in schema or out.get("type") == "array":
            out["type"] = out.get("type", "array")
            out["items"] = self._of(schema.get("items"), root, depth + 1, seen)
        if not out.keys() & {"type", "enum", "const"}:
            return self._anything()
        return _or_null(out) if schema.get("nullable") is True else out

    def _object(
        self,
        out: dict[str, Any],
        schema: Mapping[str, Any],
        root: Mapping[str, Any],
        depth: int,
        seen: tuple[str, ...],
    ) -> None:
        properties = schema.get("properties")
        properties = properties if isinstance(properties, Mapping) else {}
        free = schema.get("additionalProperties")
        maps = isinstance(free, Mapping) or free is True or "patternProperties" in schema
        if maps or (depth and not properties):
            self.kept = False
            out["additionalProperties"] = True
            if properties:
                out["properties"] = {
                    name: self._of(part, root, depth + 1, seen) for name, part in properties.items()
                }
            return
        required = schema.get("required")
        required = required if isinstance(required, list | tuple) else ()
        made = {}
        for name, part in properties.items():
            inner = self._of(part, root, depth + 1, seen)
            made[name] = inner if name in required or not inner else _or_null(inner)
        out.update(_closed(made))

    def _anything(self) -> dict[str, Any]:
        self.kept = False
        return {}


def _or_null(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema, or null."""
    if "anyOf" in schema:
        if any(branch.get("type") == "null" for branch in schema["anyOf"]):
            return schema
        return {**schema, "anyOf": [*schema["anyOf"], {"type": "null"}]}
    kinds = schema.get("type")
    if isinstance(kinds, str) and not schema.keys() & {"enum", "const"}:
        return schema if kinds == "null" else {**schema, "type": [kinds, "null"]}
    if isinstance(kinds, list) and "null" in kinds:
        return schema
    return {"anyOf": [schema, {"type": "null"}]}


def _is_plain_type(kind: Any) -> bool:
    known = {"string", "number", "integer", "boolean", "object", "array", "null"}
    kinds = kind if isinstance(kind, list) else [kind]
    return bool(kinds) and all(isinstance(one, str) and one in known for one in kinds)


def _resolved(reference: str, root: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The part of `root` that a local reference (`#/$defs/x`) means."""
    at: Any = root
    if not reference.startswith("#"):
        return None
    for step in reference.removeprefix("#").strip("/").split("/"):
        step = step.replace("~1", "/").replace("~0", "~")
        if step and isinstance(at, Mapping):
            at = at.get(step)
    return at if isinstance(at, Mapping) else None
