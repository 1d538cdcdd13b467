"""JSON Schema for tool arguments: compiled once, then check, align and coerce. Standard library.

Models write `"5"` for 5, `filePath` for `file_path`, one value where a list is wanted. What has one
meaning only is put right and named in `Checked.repairs`; everything else is a `Problem`. Defaults
are not filled in: what a tool does without an argument is the tool's business.

Keywords are those of JSON Schema 2020-12 that tools use, plus `definitions` and `nullable` of older
drafts. `pattern`, `format`, `not` and `if` are not evaluated: patterns come with clients' schemas,
`re` has no time limit, and one bad pattern would stop the process. The tool validates its input.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from chathands.limits import JSON_DEPTH
from chathands.schema_nesting import renested
from chathands.schema_values import (
    Problem,
    admits,
    is_finite,
    is_multiple,
    json_types,
    kind_of,
    near_name,
    near_value,
    plain_name,
    read_string,
    unambiguous,
)

__all__ = ["Checked", "Problem", "Schema", "compile_schema", "plain_name"]


@dataclass(frozen=True, slots=True)
class Checked:
    """Arguments as the tool will get them. They may run only when there are no problems."""

    arguments: dict[str, Any]
    problems: tuple[Problem, ...] = ()
    repairs: tuple[str, ...] = ()
    """`coerced:`, `renamed:`, `dropped:`, `enum:`, `nested:`, each with the argument's path."""


_KEPT: Final = 512
_cache: dict[int, tuple[Mapping[str, Any], Schema]] = {}


def compile_schema(parameters: Mapping[str, Any]) -> Schema:
    """The compiled form of a tool's parameters, kept by the identity of the mapping.

    A schema must not be changed after it was given here.
    """
    kept = _cache.get(id(parameters))
    if kept is not None:
        return kept[1]
    schema = Schema(parameters)
    if len(_cache) >= _KEPT:
        _cache.pop(next(iter(_cache)))
    _cache[id(parameters)] = (parameters, schema)  # holding the mapping keeps its id taken
    return schema


_LIMITS: Final[Mapping[str, tuple[str, str]]] = {
    "minimum": ("number", "minimum"), "maximum": ("number", "maximum"),
    "exclusiveMinimum": ("number", "above"), "exclusiveMaximum": ("number", "below"),
    "multipleOf": ("number", "multiple"), "minLength": ("string", "short"),
    "maxLength": ("string", "long"), "minItems": ("array", "few"), "maxItems": ("array", "many"),
}  # fmt: skip
_NEAR_NAMES: Final = 64
"""Unknown arguments up to which one may be a misspelt known one; nobody misspells more."""
_STEPS: Final = 100_000
"""Visits of nodes in one check; recursive `anyOf` can ask for any number of them."""


@dataclass(slots=True, eq=False)
class _Node:
    """One schema, compiled. Recursive schemas are recursive nodes."""

    types: tuple[str, ...] = ()
    allowed: tuple[Any, ...] | None = None
    near: dict[str, Any] = field(default_factory=dict)
    limits: tuple[tuple[str, str, Any], ...] = ()
    unique: bool = False
    properties: dict[str, _Node] = field(default_factory=dict)
    required: tuple[str, ...] = ()
    unknown: str = "keep"
    """What becomes of properties that are not declared: keep, drop or refuse."""
    extra: _Node | None = None
    items: _Node | None = None
    branches: tuple[_Node, ...] = ()


_ANY: Final = _Node()


@dataclass(slots=True)
class _Findings:
    problems: list[Problem] = field(default_factory=list)
    repairs: list[str] = field(default_factory=list)
    steps: list[int] = field(default_factory=lambda: [0])

    def trial(self) -> _Findings:
        return _Findings(steps=self.steps)


class Schema:
    """A compiled schema of type object. `properties` and `required` are those of its root."""

    def __init__(self, parameters: Mapping[str, Any]) -> None:
        self._document = parameters
        self._nodes: dict[int, tuple[_Node, Any]] = {}
        root = self._flat(parameters)
        self._root = self._compile(parameters)
        declared = root.get("properties")
        self.properties: Mapping[str, Any] = declared if isinstance(declared, Mapping) else {}
        self.required: tuple[str, ...] = self._root.required
        if declared is not None and not declared and not root.get("additionalProperties"):
            self._root.unknown = "drop"  # a tool that says it takes nothing

    def check(self, arguments: Mapping[str, Any]) -> Checked:
        """The arguments aligned and coerced, with what does not fit and what was changed."""
        out = _Findings()
        value = self._object(self._root, arguments, "", out, 0, combined=False)
        if self._root.branches and not out.problems:
            value = self._branch(self._root, value, "", out, 0)
        return Checked(value, tuple(out.problems), tuple(out.repairs))

    def takes(self, name: str, type_name: str) -> bool:
        """Whether the property may be of this JSON type; a property not declared takes nothing."""
        node = self._root.properties.get(name)
        return node is not None and _takes(node, type_name, 0)

    # --- compiling

    def _flat(self, schema: Any, depth: int = 0) -> dict[str, Any]:
        """One level with `$ref` and `allOf` merged into it, the level's own keywords first."""
        flat = dict(schema) if isinstance(schema, Mapping) else {}
        parts = flat.pop("allOf", ())
        reference = flat.pop("$ref", None)
        merged = [self._at(reference)] if isinstance(reference, str) else []
        merged += parts if isinstance(parts, list | tuple) else ()
        for part in merged if depth < 16 else ():
            for key, value in self._flat(part, depth + 1).items():
                if key == "properties" and isinstance(value, Mapping):
                    flat[key] = {**value, **flat.get(key, {})}
                elif key == "required" and isinstance(value, list | tuple):
                    flat[key] = [*flat.get(key, ()), *value]
                else:
                    flat.setdefault(key, value)
        return flat

    def _at(self, reference: str) -> Any:
        """What a local JSON pointer names; anything unresolvable admits every value."""
        spot: Any = self._document
        for step in reference.removeprefix("#").split("/")[1:]:
            step = step.replace("~1", "/").replace("~0", "~")
            spot = spot.get(step) if isinstance(spot, Mapping) else None
        return spot if reference.startswith("#") else None

    def _compile(self, schema: Any, depth: int = 0) -> _Node:
        for _ in range(32):  # a chain of bare references; a circle of them admits everything
            if not (isinstance(schema, Mapping) and set(schema) == {"$ref"}):
                break
            schema = self._at(str(schema["$ref"]))
        if isinstance(schema, str):  # `"city": "string"`
            schema = {"type": schema}
        known = self._nodes.get(id(schema))
        if known is not None:
            return known[0]
        if depth > JSON_DEPTH:
            return _ANY  # nothing that deep is ever read
        node = _Node()
        self._nodes[id(schema)] = (node, schema)
        flat = self._flat(schema)
        node.types = json_types(flat.get("type"))
        allowed = [flat["const"]] if "const" in flat else flat.get("enum")
        items = flat.get("items")
        if schema is False:
            node.allowed = ()
        elif isinstance(allowed, list | tuple) and allowed:
            if node.types == ("array",) and not any(isinstance(a, list | tuple) for a in allowed):
                # an enum put one level too high: it lists what the items may be
                items = {"enum": allowed, **(items if isinstance(items, Mapping) else {})}
            else:
                node.allowed = tuple(allowed)
                node.near = unambiguous((near_value(item), item) for item in allowed)
        if flat.get("nullable") is True:
            node.types += ("null",) if node.types else ()
            node.allowed = None if node.allowed is None else (*node.allowed, None)
        node.limits = tuple(
            (kind, code, flat[key])
            for key, (kind, code) in _LIMITS.items()
            if isinstance(flat.get(key), int | float) and not isinstance(flat[key], bool)
        )
        node.unique = flat.get("uniqueItems") is True
        properties = flat.get("properties")
        if isinstance(properties, Mapping):
            node.properties = {
                name: self._compile(part, depth + 1) for name, part in properties.items()
            }
        required = flat.get("required")
        if isinstance(required, list | tuple):
            node.required = tuple(dict.fromkeys(n for n in required if isinstance(n, str)))
        extra = flat.get("additionalProperties")
        node.extra = self._compile(extra, depth + 1) if isinstance(extra, Mapping) else None
        if "patternProperties" not in flat and not isinstance(extra, Mapping) and extra is not True:
            node.unknown = "refuse" if extra is False else "drop" if node.properties else "keep"
        if isinstance(items, Mapping | str):
            node.items = self._compile(items, depth + 1)
        branches = flat.get("anyOf") or flat.get("oneOf")
        if isinstance(branches, list | tuple):
            node.branches = tuple(self._compile(branch, depth + 1) for branch in branches)
        return node

    # --- checking

    def _fit(
        self, node: _Node, value: Any, path: str, out: _Findings, depth: int, combined: bool = False
    ) -> Any:
        out.steps[0] += 1
        if depth > JSON_DEPTH or out.steps[0] > _STEPS:
            out.problems.append(Problem(path, "deep"))
            return value
        kind = kind_of(value)
        if kind == "number" and not is_finite(value):
            out.problems.append(Problem(path, "infinite"))
            return value
        if node.allowed is not None:
            return self._choose(node, value, path, out)
        if node.branches:
            value = self._branch(node, value, path, out, depth)
            kind = kind_of(value)
        if node.types and not admits(node.types, value, kind):
            coerced = self._coerce(node, value, path, out, depth)
            if coerced is None:
                out.problems.append(Problem(path, "type", "|".join(node.types)))
                return value
            out.repairs.append(f"coerced:{path}")
            value = coerced[0]
            kind = kind_of(value)
        elif kind == "number" and "integer" in node.types and "number" not in node.types:
            value = int(value)
        if kind == "object" and (node.properties or node.required or node.unknown != "keep"):
            return self._object(node, value, path, out, depth, combined)
        if kind == "object" and node.extra is not None:
            return self._object(node, value, path, out, depth, combined)
        if kind in ("array", "object") and node.items is None and not is_finite(value):
            out.problems.append(Problem(path, "infinite"))
        if kind == "array" and node.items is not None:
            items = node.items
            value = [
                self._fit(items, item, f"{path}[{i}]", out, depth + 1)
                for i, item in enumerate(value)
            ]
        _limits(node, value, kind, path, out)
        return value

    def _choose(self, node: _Node, value: Any, path: str, out: _Findings) -> Any:
        for item in node.allowed or ():
            if value == item and isinstance(value, bool) == isinstance(item, bool):
                return value
        one = value[0] if isinstance(value, list) and len(value) == 1 else value
        near = near_value(one)
        if near in node.near:
            out.repairs.append(f"enum:{path}")
            return node.near[near]
        shown = [json.dumps(item, ensure_ascii=False) for item in (node.allowed or ())[:12]]
        out.problems.append(Problem(path, "enum", ", ".join(shown)))
        return value

    def _branch(self, node: _Node, value: Any, path: str, out: _Findings, depth: int) -> Any:
        """The value as the branch sees it that changes it least; the least bad one if none fits."""
        best: tuple[int, int, Any, _Findings] | None = None
        kind = kind_of(value)
        # branches of the value's own type first: those need no guess
        ordered = sorted(
            node.branches, key=lambda b: not (not b.types or admits(b.types, value, kind))
        )
        for branch in ordered:
            trial = out.trial()
            fitted = self._fit(branch, value, path, trial, depth + 1, bool(node.properties))
            rank = (len(trial.problems), len(trial.repairs))
            if best is None or rank < best[:2]:
                best = (*rank, fitted, trial)
            if rank == (0, 0):
                break
        if best is None:
            return value
        out.problems += best[3].problems
        out.repairs += best[3].repairs
        return best[2]

    def _object(
        self,
        node: _Node,
        value: Mapping[str, Any],
        path: str,
        out: _Findings,
        depth: int,
        combined: bool,
    ) -> dict[str, Any]:
        """`combined`: other parts of the schema know more properties, so that none is dropped."""
        prefix = f"{path}." if path else ""
        parts = node.properties
        if not combined and parts and (moved := renested(value, parts)) is not None:
            value, where = moved
            out.repairs.append(f"nested:{prefix}{where}")
        known = {
            name: item
            for name, item in value.items()
            if name in parts and (name in node.required or not _means_nothing(item, parts[name]))
        }
        extra: dict[str, Any] = {}
        if len(known) < len(value):
            unknown = [name for name in value if name not in node.properties]
            nothing = value.keys() & node.properties.keys() - known.keys()
            out.repairs += [f"dropped:{prefix}{name}" for name in sorted(nothing)]
            free = [name for name in node.properties if name not in known]
            near = len(unknown) <= _NEAR_NAMES  # each is compared with each
            for name in unknown:
                target = near_name(name, free, node.required, unknown) if near else None
                if target is not None:
                    out.repairs.append(f"renamed:{prefix}{name}>{target}")
                    known[target] = value[name]
                    free.remove(target)
                elif node.unknown == "refuse":
                    out.problems.append(Problem(prefix + name, "unknown"))
                elif node.unknown == "keep" or combined or (depth and not known):
                    extra[name] = value[name]  # no declared key at all: a map, which JSON admits
                else:
                    out.repairs.append(f"dropped:{prefix}{name}")
        fitted: dict[str, Any] = {}
        for name, item in {**known, **extra}.items():
            part = parts.get(name) or node.extra or _ANY
            fitted[name] = self._fit(part, item, prefix + name, out, depth + 1)
        absent = [name for name in node.required if name not in fitted]
        out.problems += [Problem(prefix + name, "missing") for name in absent]
        return fitted

    def _coerce(
        self, node: _Node, value: Any, path: str, out: _Findings, depth: int
    ) -> tuple[Any] | None:
        """The value as one of the wanted types, when there is only one way to read it so."""
        kind = kind_of(value)
        only = value[0] if isinstance(value, list) and len(value) == 1 else None
        for wanted in node.types:
            read = read_string(str(value), wanted) if kind == "string" else None
            if read is not None:
                return read
            if wanted == "string" and kind in ("integer", "number", "boolean"):
                return (json.dumps(value),)
            if wanted == "boolean" and kind == "integer" and value in (0, 1):
                return (value == 1,)
            if wanted == "array" and value != "" and value is not None:
                trial = out.trial()
                one = self._fit(node.items or _ANY, value, path, trial, depth + 1)
                if not trial.problems:
                    return ([one],)
            if only is not None and kind_of(only) == wanted and is_finite(only):
                return (only,)
        return None


def _takes(node: _Node, type_name: str, depth: int) -> bool:
    if node.branches and depth < 8:
        return any(_takes(branch, type_name, depth + 1) for branch in node.branches)
    return not node.types or type_name in node.types


def _means_nothing(value: Any, node: _Node) -> bool:
    """null or "" for an optional argument that takes neither: models write it for "not given"."""
    if value is not None and value not in ("", "null", "None"):
        return False
    if node.allowed is not None:
        return value not in node.allowed and near_value(value) not in node.near
    wanted = "null" if value is None else "string"
    return bool(node.types or node.branches) and not _takes(node, wanted, 0)


def _limits(node: _Node, value: Any, kind: str, path: str, out: _Findings) -> None:
    kind = "number" if kind == "integer" else kind
    for wanted, code, limit in node.limits:
        if wanted != kind:
            continue
        size = value if kind == "number" else len(value)
        broken = (
            (code in ("minimum", "short", "few") and size < limit)
            or (code in ("maximum", "long", "many") and size > limit)
            or (code == "above" and size <= limit)
            or (code == "below" and size >= limit)
            or (code == "multiple" and not is_multiple(size, limit))
        )
        if broken:
            out.problems.append(Problem(path, code, str(limit)))
    if node.unique and kind == "array":
        distinct = {json.dumps(item, sort_keys=True) for item in value}
        if len(distinct) < len(value):
            out.problems.append(Problem(path, "repeated"))
