"""Declared tools, the very same objects for the same declaration.

A client sends its tools with every request, and what is made of them (compiled schemas, contract)
is kept by the objects' identity.
"""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Iterable
from threading import Lock
from typing import Any

from chathands.conversation import ToolSpec

KEPT = 64
"""Lists of tools; a program has one or two, and a gateway a few dozen programs."""
KEPT_CHARACTERS = 64 * 1024
"""Of a declaration that is kept; together at most 4 MB."""

_known: OrderedDict[str, tuple[ToolSpec, ...]] = OrderedDict()
_lock = Lock()


def known_tools(specs: Iterable[ToolSpec]) -> tuple[ToolSpec, ...]:
    """These, or equal ones that came before."""
    specs = tuple(specs)
    key = _key(specs)
    if key is None:
        return specs
    with _lock:
        if (known := _known.get(key)) is not None:
            _known.move_to_end(key)
            return known
        _known[key] = specs
        if len(_known) > KEPT:
            _known.popitem(last=False)
    return specs


def _key(specs: tuple[ToolSpec, ...]) -> str | None:
    """All that a declaration holds, in its order; None where it is too long to be kept."""
    wire: list[Any] = [[spec.name, spec.description, spec.parameters, spec.extra] for spec in specs]
    try:
        key = json.dumps(wire, ensure_ascii=False)
    except TypeError:
        return None
    return key if len(key) <= KEPT_CHARACTERS else None
