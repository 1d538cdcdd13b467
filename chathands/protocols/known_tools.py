"""Declared tools, the very same objects for the same declaration.

A client sends its tools with every request, and what is made of them (compiled schemas, contract)
is kept by the objects' identity.
"""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Callable, Iterable
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
    return known_by(_key(specs), lambda: specs)


def known_by(key: str | None, read: Callable[[], tuple[ToolSpec, ...]]) -> tuple[ToolSpec, ...]:
    """What `read` gives, or what it gave for the same key, which holds all of a declaration; None
    is kept for nobody. Reading and comparing the specs takes several times as long as this."""
    if key is None or len(key) > KEPT_CHARACTERS:
        return read()
    with _lock:
        if (known := _known.get(key)) is not None:
            _known.move_to_end(key)
            return known
    specs = read()
    with _lock:
        if (known := _known.get(key)) is not None:
            _known.move_to_end(key)
            return known
        _known[key] = specs
        if len(_known) > KEPT:
            _known.popitem(last=False)
    return specs


def _key(specs: tuple[ToolSpec, ...]) -> str | None:
    """All that a declaration holds, in its order; None where that is no JSON."""
    wire: list[Any] = [[spec.name, spec.description, spec.parameters, spec.extra] for spec in specs]
    try:
        return json.dumps(wire, ensure_ascii=False)
    except TypeError:
        return None
