"""What a tool gave, brought to a size that can be looked at, before it is written out.

Runs in the tool's own time: a value that never ends being written is the tool's fault.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from chathands.toolbox import render
from chathands.toolbox.threads import run_in_thread

MAX_ITEMS = 50_000
"""Values inside a nested result that are looked at; with OUTPUT_CAP characters together."""

MAX_DEPTH = 200
"""Levels. Deeper nesting is a mistake (a value that holds itself), and Python's own writers fail at
about a thousand."""

CUT = "……（太大，后面的省略）"

_PLAIN = (bool, int, float, type(None))


async def written(value: Any) -> tuple[str, int]:
    """(the text of at most OUTPUT_CAP characters, how many there were as far as is known).

    Raises what writing the value raises.
    """
    if value is None:
        return "", 0
    if isinstance(value, render.Excerpt):
        return value, len(value)
    if isinstance(value, str):
        return _kept(value)
    if isinstance(value, _PLAIN):
        return _text(value)
    budget = _Budget()
    small = _cut(value, budget, 0)
    if budget.foreign:
        # Code of somebody else writes it: in a thread it can hang without taking the bot along.
        return await run_in_thread(partial(_text, small))
    return _text(small)


class _Budget:
    """What may still be taken over. `foreign`: there are values that only their own code writes."""

    def __init__(self) -> None:
        self.items = MAX_ITEMS
        self.characters = render.OUTPUT_CAP
        self.foreign = False

    @property
    def spent(self) -> bool:
        return self.items <= 0 or self.characters <= 0


def _cut(value: Any, budget: _Budget, depth: int) -> Any:
    """A copy with as much as the budget allows; what is left out is marked."""
    budget.items -= 1
    if depth > MAX_DEPTH:
        raise ValueError(f"a result nested more than {MAX_DEPTH} levels deep")
    if isinstance(value, str):
        text = str.__getitem__(value, slice(max(budget.characters, 0)))
        budget.characters -= len(text)
        return text if len(text) == str.__len__(value) else text + CUT
    if isinstance(value, _PLAIN):
        budget.characters -= 8
        return value
    if type(value) in (list, tuple, set, frozenset):
        found: list[Any] = []
        for each in value:
            if budget.spent:
                found.append(CUT)
                break
            found.append(_cut(each, budget, depth + 1))
        return found
    if type(value) is dict:
        kept: dict[Any, Any] = {}
        for key, each in value.items():
            if budget.spent:
                kept[CUT] = CUT
                break
            named = _cut(key, budget, depth) if isinstance(key, str) else key
            budget.foreign = budget.foreign or not isinstance(key, (str, *_PLAIN))
            kept[named] = _cut(each, budget, depth + 1)
        return kept
    budget.foreign = True
    return value


def _text(value: Any) -> tuple[str, int]:
    return _kept(render.as_text(value))


def _kept(text: str) -> tuple[str, int]:
    """From both ends, without the text's own methods (a Markup escapes what is cut from it)."""
    size = str.__len__(text)
    if size <= render.OUTPUT_CAP:
        return str.__str__(text), size
    half = render.OUTPUT_CAP // 2
    head = str.__getitem__(text, slice(half))
    return head + str.__getitem__(text, slice(size - half, size)), size
