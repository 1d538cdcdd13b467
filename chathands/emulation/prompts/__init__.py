"""Wordings and phrase evidence as data: TOML files beside this one, read once when asked for."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any

from chathands.emulation.outcome import Language, Mode

_LAID_OVER: Mapping[Mode, tuple[str, ...]] = {
    "emulated": (),
    "structured": ("called", "structured"),
    "native": ("called", "native"),
}
"""Tables whose entries replace those of the same path, later ones before earlier ones."""


@cache
def load(name: str) -> dict[str, Any]:
    """The tables of `<name>.toml`. Callers do not change what they get."""
    text = files(__name__).joinpath(f"{name}.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)


@cache
def wording(language: Language, mode: Mode = "emulated") -> dict[str, Any]:
    """Everything we say to a model in `language`, as it is said in `mode`."""
    words = load(f"wording_{language}")
    for table in _LAID_OVER[mode]:
        words = _laid_over(words, words[table])
    return words


def _laid_over(base: dict[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    out = dict(base)
    for key, value in over.items():
        known = out.get(key)
        both = isinstance(known, dict) and isinstance(value, dict)
        out[key] = _laid_over(known, value) if both else value  # type: ignore[arg-type]
    return out
