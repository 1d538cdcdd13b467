"""Loads the lists beside this file."""

from __future__ import annotations

import json
from importlib.resources import files
from typing import Any


def load(name: str) -> dict[str, Any]:
    """The content of one of the package's JSON files."""
    path = files("chathands.emulation.dialects").joinpath(name)
    return json.loads(path.read_text(encoding="utf-8"))
