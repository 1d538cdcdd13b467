"""What the benchmarks share: cases read from JSON lines, shares with their interval."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from chathands.evals.metrics import Share


def read_lines(path: Path) -> list[dict[str, Any]]:
    """The cases of a JSONL file. Never splitlines(): U+2028 stands inside strings."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").split("\n") if line]


def wilson(hits: int, of: int) -> tuple[float, float]:
    """The 95 % interval of a share (Wilson 1927), both ends in 0..1."""
    return Share(hits, of).interval
