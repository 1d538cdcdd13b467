"""Figures over case results: shares with Wilson intervals, and cost."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from chathands.evals.runner import CaseResult

Z = 1.96
"""95 %."""


@dataclass(frozen=True, slots=True)
class Share:
    good: int
    total: int

    @property
    def interval(self) -> tuple[float, float]:
        """Wilson score interval, both in 0..1; (0, 1) when there is nothing to count."""
        if not self.total:
            return 0.0, 1.0
        n, p = self.total, self.good / self.total
        centre = p + Z * Z / (2 * n)
        spread = Z * math.sqrt(p * (1 - p) / n + Z * Z / (4 * n * n))
        scale = 1 + Z * Z / n
        return max(0.0, (centre - spread) / scale), min(1.0, (centre + spread) / scale)

    def __str__(self) -> str:
        low, high = self.interval
        return f"{self.good}/{self.total} [{low:.0%}-{high:.0%}]"


@dataclass(frozen=True, slots=True)
class Report:
    """One row per category, `all` last."""

    rows: tuple[tuple[str, dict[str, Share]], ...]
    seconds: float
    """Median per case."""
    requests: float
    """Mean per case."""
    retries: int
    prompt_tokens: int
    completion_tokens: int

    def __str__(self) -> str:
        names = list(self.rows[-1][1])
        lines = ["| category | " + " | ".join(names) + " |", "|---" * (len(names) + 1) + "|"]
        lines += [
            f"| {category} | " + " | ".join(str(shares[name]) for name in names) + " |"
            for category, shares in self.rows
        ]
        lines.append(
            f"\nmedian {self.seconds:.1f} s a case, {self.requests:.2f} requests a case, "
            f"{self.retries} retries, {self.prompt_tokens} prompt and "
            f"{self.completion_tokens} completion tokens"
        )
        return "\n".join(lines)


def summarise(results: Sequence[CaseResult]) -> Report:
    """Raises ValueError when there is nothing to summarise."""
    if not results:
        raise ValueError("no results")
    categories = sorted({result.case.category for result in results})
    rows = [
        (category, _shares(r for r in results if r.case.category == category))
        for category in categories
    ]
    return Report(
        rows=(*rows, ("all", _shares(results))),
        seconds=statistics.median(result.seconds for result in results),
        requests=statistics.mean(result.requests for result in results),
        retries=sum(result.retries for result in results),
        prompt_tokens=sum(result.prompt_tokens for result in results),
        completion_tokens=sum(result.completion_tokens for result in results),
    )


def _shares(results: Iterable[CaseResult]) -> dict[str, Share]:
    listed = list(results)
    layers = {
        "format": [r.first_is_format for r in listed],
        "tool choice": [r.right_tools for r in listed],
        "arguments": [r.right_arguments for r in listed],
        "completion": [r.completed for r in listed],
    }
    return {name: Share(sum(values), len(values)) for name, values in layers.items()}
