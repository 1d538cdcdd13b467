"""Schemas and values drawn at random, and what checking one against the other promises."""

from __future__ import annotations

import json
from random import Random
from typing import Any

from chathands.schema import compile_schema
from tests.fuzz.laws import Broken, misfit

_NAMES = ("path", "filePath", "file_path", "城市", "x", "items", "type", "a b", "", "__proto__")
_SCALARS = (None, True, False, 0, 1, -3, 2.5, 1e400, float("nan"), 10**30, "", "5", "true", "null")
_TEXTS = ("北京", "[1]", '{"x":1}', "1,2", "a", " a ", "A", "\ud83d", "c")

_ENUMS: dict[str, tuple[Any, ...]] = {
    "string": ("a", "c", "北京"),
    "integer": (0, 1, -3, 5),
    "number": (0, 2.5, 5),
    "boolean": (True,),
    "null": (None,),
}


class Drawer:
    def __init__(self, rng: Random) -> None:
        self.rng = rng

    def schema(self, depth: int = 0) -> dict[str, Any]:
        """What clients send: mostly sound, with the odd keyword nobody expects."""
        rng = self.rng
        out: dict[str, Any] = {}
        kinds = ("string", "integer", "number", "boolean", "null", "array", "object")
        kind = rng.choice(kinds if depth < 4 else kinds[:5])
        if rng.random() < 0.85:
            out["type"] = [kind, "null"] if rng.random() < 0.1 else kind
            if kind in _ENUMS and out["type"] == kind and rng.random() < 0.2:
                # of its own type: an enum that contradicts its type wins over it, which is no law
                out["enum"] = rng.choices(_ENUMS[kind], k=3)
        if rng.random() < 0.05 and depth < 4:
            branches = [self.schema(depth + 1) for _ in range(rng.randint(1, 3))]
            # without a type beside them: one that contradicts them is no law either
            out = {rng.choice(("anyOf", "oneOf", "allOf")): branches}
        if rng.random() < 0.04:
            out["$ref"] = rng.choice(("#", "#/$defs/node", "#/nowhere", "http://x", "#/properties"))
        if out.get("type") in ("object", None) and depth < 4:
            out |= self._shape(depth)
        if out.get("type") == "array" and rng.random() < 0.8:
            out["items"] = self.schema(depth + 1)
        for keyword in ("minimum", "maximum", "minLength", "maxItems", "multipleOf", "nullable"):
            if rng.random() < 0.05:
                out[keyword] = rng.choice((0, 1, 3, True, "x", None))
        return out

    def _shape(self, depth: int) -> dict[str, Any]:
        rng = self.rng
        names = rng.sample(_NAMES, rng.randint(0, 4))
        out: dict[str, Any] = {"properties": {name: self.schema(depth + 1) for name in names}}
        if rng.random() < 0.5:
            out["required"] = rng.choices(_NAMES, k=rng.randint(0, 2))
        if rng.random() < 0.3:
            out["additionalProperties"] = rng.choice((True, False, {"type": "string"}))
        return out

    def tool(self) -> dict[str, Any]:
        return {"type": "object", **self._shape(0), "$defs": {"node": self.schema(1)}}

    def value(self, schema: Any, depth: int = 0) -> Any:
        """Near the schema as often as not, and else anything."""
        rng = self.rng
        schema = schema if isinstance(schema, dict) else {}
        kind = schema.get("type")
        if depth < 5 and rng.random() < 0.75:
            if kind == "object" or (depth == 0) or "properties" in schema:
                inner = schema.get("properties", {})
                out = {k: self.value(v, depth + 1) for k, v in inner.items() if rng.random() < 0.8}
                if rng.random() < 0.3:
                    out[rng.choice(_NAMES)] = self.value({}, depth + 1)
                return out
            if kind == "array":
                return [
                    self.value(schema.get("items"), depth + 1) for _ in range(rng.randint(0, 3))
                ]
        if depth == 0:
            return {}
        if "enum" in schema and rng.random() < 0.6:
            return rng.choice(schema["enum"])
        if rng.random() < 0.08 and depth < 5:
            return rng.choice(([self.value({}, depth + 1)], {"x": self.value({}, depth + 1)}))
        return rng.choice(_SCALARS + _TEXTS + _TEXTS)


def checked(rng: Random) -> None:
    """Checking never raises; what it lets through fits, and is left as it is the second time."""
    drawer = Drawer(rng)
    tool = drawer.tool()
    arguments = drawer.value(tool)
    case = (tool, arguments)
    try:
        schema = compile_schema(tool)
        first = schema.check(arguments)
        [p.sentence(language) for p in first.problems for language in ("zh", "en")]
    except Exception as error:
        raise Broken("checking never raises", case, repr(error)) from error
    if first.problems:
        return
    second = schema.check(first.arguments)
    if second.problems or _shown(second.arguments) != _shown(first.arguments):
        detail = f"{first}\n  then {second}"
        raise Broken("what was let through is let through again", case, detail)
    if problem := _misfit(tool, first.arguments):
        raise Broken("what is let through fits", case, f"{first}: {problem}")


def _misfit(schema: dict[str, Any], value: Any) -> str:
    """The test's own checker, for schemas without references and branches only."""
    written = json.dumps(schema)
    if any(word in written for word in ('"$ref"', '"anyOf"', '"oneOf"', '"allOf"', "nullable")):
        return ""
    return misfit(schema, value, closed=False)


def _shown(value: Any) -> str:
    return json.dumps(value, sort_keys=True)
