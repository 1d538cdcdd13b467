"""Which tools exist: one immutable generation at a time, swapped whole."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from chathands.conversation import ToolSpec
from chathands.toolbox.tool import Tool

if TYPE_CHECKING:
    from chathands.toolbox.context import Caller
    from chathands.toolbox.policy import Policy

_ORDER: Mapping[str, int] = MappingProxyType({"everyone": 0, "admin": 1, "superuser": 2})


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class Generation:
    """One version of the toolbox. A run keeps the one it started with until it ends."""

    number: int = 0
    tools: Mapping[str, Tool] = field(default_factory=dict)
    specs: Mapping[str, ToolSpec] = field(default_factory=dict)
    owners: Mapping[str, str] = field(default_factory=dict)
    """Tool name → the file in the tools directory that owns it, e.g. `weather.py`, `excel/`."""
    held: Mapping[str, Any] = field(default_factory=dict, repr=False)
    """File → what keeps its modules loaded; they leave with the last generation that needs them."""
    unconfigured: Mapping[str, str] = field(default_factory=dict)
    """Tool name → file, of tools that nobody is offered because their `enabled_when` says no."""

    @property
    def known(self) -> frozenset[str]:
        """Names of tools that are there, offered or not."""
        return frozenset(self.specs.keys() | self.unconfigured.keys())

    def visible_to(self, caller: Caller, policy: Policy) -> tuple[ToolSpec, ...]:
        """What a model is shown for this person, by audience and then name, so that the contracts
        of people with different rights share all but the tail."""
        visible = []
        for spec in self.specs.values():
            if policy.refusal(caller, spec) is None:
                audience = policy.audience(spec)
                visible.append(
                    spec if audience == spec.audience else replace(spec, audience=audience)
                )
        return tuple(sorted(visible, key=lambda spec: (_ORDER[spec.audience], spec.name)))


class Registry:
    """The current generation. Reading it and swapping it are one assignment each."""

    def __init__(self, generation: Generation | None = None) -> None:
        self._current = generation or Generation()

    @property
    def current(self) -> Generation:
        return self._current

    def swap(self, generation: Generation) -> Generation:
        """Serve `generation` from now on; returns the one before."""
        before, self._current = self._current, generation
        return before
