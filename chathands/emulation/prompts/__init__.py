"""Wordings and phrase evidence as data: TOML files beside this one, read once when asked for."""

from __future__ import annotations

import tomllib
from functools import cache
from importlib.resources import files
from typing import Any

from chathands.emulation.outcome import Language


@cache
def load(name: str) -> dict[str, Any]:
    """The tables of `<name>.toml`. Callers do not change what they get."""
    text = files(__name__).joinpath(f"{name}.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)


def wording(language: Language) -> dict[str, Any]:
    """Everything we say to a model in `language`."""
    return load(f"wording_{language}")
