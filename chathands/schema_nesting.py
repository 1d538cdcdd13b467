"""Arguments written one level too high or too low, put where their names belong.

Small models flatten a wrapper object (`{"city": …}` for `{"query": {"city": …}}`) or add one of
their own. Names decide: all of them must be declared, exactly, in one place only.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol, TypeVar


class Nested(Protocol):
    """What is needed of a compiled schema here."""

    @property
    def properties(self) -> Mapping[str, Any]: ...

    @property
    def items(self) -> Any: ...


N = TypeVar("N", bound=Nested)


def renested(
    value: Mapping[str, Any], properties: Mapping[str, N]
) -> tuple[Mapping[str, Any], str] | None:
    """The value with its names at their level, and which property that was; None: nothing to do.

    For an array of objects the one object is enough: the check makes a list of it.
    """
    unknown = [name for name in value if name not in properties]
    if not unknown:
        return None
    homes = [
        name
        for name, node in properties.items()
        if all(key in _inside(node) for key in unknown) and _has_room(value.get(name, {}), unknown)
    ]
    if len(homes) == 1:
        inner = {key: value[key] for key in unknown}
        known = {key: item for key, item in value.items() if key in properties}
        return {**known, homes[0]: {**value.get(homes[0], {}), **inner}}, homes[0]
    only = next(iter(value.values())) if len(value) == 1 else None
    if isinstance(only, Mapping) and only and all(key in properties for key in only):
        return only, unknown[0]
    return None


def _has_room(there: Any, names: list[str]) -> bool:
    """Whether an object can take these names: one that is written already and has none of them."""
    return isinstance(there, Mapping) and not any(name in there for name in names)


def _inside(node: Nested) -> Mapping[str, Any]:
    if node.properties:
        return node.properties
    return node.items.properties if node.items is not None else {}
