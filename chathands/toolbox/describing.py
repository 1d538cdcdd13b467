"""What a model has to be told about a parameter, and what cannot be told: checks when a tool loads.

A schema that promises what validation refuses makes a tool nobody can call, so both are looked at.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pydantic import BaseModel

_STRAY = {"ge", "gt", "le", "lt", "multiple_of"}
"""Where pydantic puts a limit that the type knows nothing of: into the schema under its own name;
validating then raises TypeError."""

_SIDES = {"json-or-python": "json_schema", "lax-or-strict": "strict_schema"}
"""Core schemas with two sides, and the one that arguments from JSON take."""

_SCALARS = (str, int, float, bool, type(None))


def tidy(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema as a model should see it, changed in place.

    Without titles pydantic derives from names (tokens that tell nothing); a description written on
    the one branch of `X | None` stands at the parameter; allowed keys are spelt out.
    """
    definitions = schema.get("$defs", {})
    for root in (schema, *definitions.values()):
        for _, node in nodes(root, {}):
            if isinstance(node.get("title"), str):
                del node["title"]
            node.pop("discriminator", None)  # OpenAPI's, about $defs; the branches' const says it
            for child in node.get("properties", {}).values():
                _lift(child)
            if reference := node.get("propertyNames", {}).get("$ref"):
                named = definitions.get(reference.rsplit("/", 1)[-1], {})
                node["propertyNames"] = {k: v for k, v in named.items() if k != "title"}
    return schema


def _lift(child: dict[str, Any]) -> None:
    if child.get("description"):
        return
    branches = [branch for branch in child.get("anyOf", ()) if "description" in branch]
    if len(branches) == 1:
        child["description"] = branches[0].pop("description")


def nodes(
    schema: Any, definitions: Mapping[str, Any], path: str = "", seen: frozenset[str] = frozenset()
) -> Iterator[tuple[str, dict[str, Any]]]:
    """(path, schema) of this schema and all below it, references followed once on each way."""
    if not isinstance(schema, dict):
        return
    yield path, schema
    reference = str(schema.get("$ref", "")).rsplit("/", 1)[-1]
    if reference in definitions and reference not in seen:
        yield from nodes(definitions[reference], definitions, path, seen | {reference})
    for name, child in schema.get("properties", {}).items():
        yield from nodes(child, definitions, f"{path}.{name}".lstrip("."), seen)
    for key in ("anyOf", "oneOf", "allOf"):
        for child in schema.get(key, ()):
            yield from nodes(child, definitions, path, seen)
    for child in (schema.get("items"), *schema.get("prefixItems", ())):
        yield from nodes(child, definitions, f"{path}[]", seen)
    yield from nodes(schema.get("additionalProperties"), definitions, f"{path}.*", seen)


def undescribed(schema: Mapping[str, Any]) -> str | None:
    """The path of the first parameter, or field of a nested model, that has no description.

    A field with one possible value (what tells the models of a union apart) describes itself.
    """
    root = dict(schema)
    for path, node in nodes(root, schema.get("$defs", {})):
        for name, child in node.get("properties", {}).items():
            if "const" not in child and not str(child.get("description", "")).strip():
                return f"{path}.{name}".lstrip(".")
    return None


def unfit(model: type[BaseModel], schema: Mapping[str, Any]) -> str | None:
    """Why a model that follows the schema could not call this, in Chinese; None when it could."""
    for _, node in nodes(dict(schema), schema.get("$defs", {})):
        if stray := _STRAY & node.keys():
            return f"{'、'.join(sorted(stray))} 用在了不能比大小的类型上"
    return _unfit_core(model.__pydantic_core_schema__)


def _unfit_core(schema: Any) -> str | None:
    if isinstance(schema, list | tuple):
        return next(filter(None, map(_unfit_core, schema)), None)
    if not isinstance(schema, Mapping):
        return None
    match schema.get("type"):
        case "generator":
            return "Iterable、Iterator、Generator 到用的时候才检查，请写 list"
        case "is-subclass":
            return "类型本身不能当参数"
        case "literal" if not all(type(each) in _SCALARS for each in schema["expected"]):
            return "Literal 里只能写文本、数字、true/false；枚举的成员请直接写枚举类型"
        case "enum" if not all(type(each.value) in _SCALARS for each in schema["members"]):
            return "枚举的值只能是文本或数字"
        case str(kind) if kind in _SIDES:
            return _unfit_core(schema[_SIDES[kind]])
    inner = (value for key, value in schema.items() if key not in ("metadata", "serialization"))
    return next(filter(None, map(_unfit_core, inner)), None)


def wrong_default(model: type[BaseModel]) -> str | None:
    """The name of a parameter whose default does not fit its own type or range: the schema would
    tell it to the model as a good value."""
    from pydantic import ValidationError

    for name, info in model.__pydantic_fields__.items():
        if info.is_required() or info.default_factory is not None:
            continue
        try:
            checked = model.__pydantic_validator__.validate_assignment(
                model.model_construct(), name, info.default
            )
        except (ValidationError, TypeError):
            return name
        given = checked.__dict__[name]
        if isinstance(info.default, str) and not isinstance(given, str):
            return name  # the function would get the text, not the number or the enum
    return None
