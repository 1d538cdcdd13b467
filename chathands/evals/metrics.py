"""Figures over case results: shares with Wilson intervals, paired differences, and cost."""

from __future__ import annotations

import hashlib
import math
import statistics
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from chathands.evals.runner import CaseResult

Z = 1.96
"""95 %."""


@dataclass(frozen=True, slots=True)
class Share:
    good: int
    total: int

    @classmethod
    def of(cls, values: Iterable[bool]) -> Share:
        listed = list(values)
        return cls(sum(listed), len(listed))

    @property
    def rate(self) -> float:
        return self.good / self.total if self.total else 0.0

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
        if not self.total:
            return "–"
        low, high = self.interval
        return f"{self.good}/{self.total} {self.rate:.0%} [{low:.0%}-{high:.0%}]"


@dataclass(frozen=True, slots=True)
class Difference:
    """How much better one variant did than another on the same cases."""

    better: int
    """Cases that only this one got right."""
    worse: int
    total: int

    @property
    def rate(self) -> float:
        return (self.better - self.worse) / self.total if self.total else 0.0

    @property
    def interval(self) -> tuple[float, float]:
        """Adjusted Wald interval for paired shares (Agresti and Min 2005), in -1..1."""
        if not self.total:
            return -1.0, 1.0
        n = self.total + 2
        delta = self.better - self.worse
        error = math.sqrt(self.better + self.worse + 1 - delta * delta / n) / n
        return max(-1.0, delta / n - Z * error), min(1.0, delta / n + Z * error)

    def __str__(self) -> str:
        low, high = self.interval
        return (
            f"{self.rate:+.0%} [{low:+.0%} to {high:+.0%}] "
            f"({self.better} better, {self.worse} worse of {self.total})"
        )


LAYERS: dict[str, Callable[[Sequence[CaseResult]], Share]] = {
    "format": lambda rs: Share.of(r.first_format for r in rs if r.first_format is not None),
    "format after result": lambda rs: Share.of(ok for r in rs for ok in r.later_formats),
    "tool choice": lambda rs: Share.of(r.verdict.tools for r in rs),
    "arguments": lambda rs: Share.of(r.verdict.arguments for r in rs),
    "completion": lambda rs: Share.of(r.verdict.completed for r in rs),
    "right": lambda rs: Share.of(r.verdict.arguments for r in rs if r.case.wants_call),
    "kept": lambda rs: Share.of(r.verdict.arguments for r in rs if not r.case.wants_call),
}
"""Layer zero is the two formats. `right`: the right calls where one is wanted; `kept`: no call
where none is wanted; the two must be read together."""


@dataclass(frozen=True, slots=True)
class Cost:
    """The fourth layer: means per case, seconds as the median."""

    seconds: float
    requests: float
    rounds: float
    calls: float
    retries: float
    prompt_tokens: float
    completion_tokens: float
    cached: float
    """Share of the prompt tokens that the upstream took from its cache."""

    def __str__(self) -> str:
        return (
            f"median {self.seconds:.1f} s a case; a case has {self.requests:.2f} requests, "
            f"{self.rounds:.2f} rounds, {self.calls:.2f} calls, {self.retries:.2f} retries, "
            f"{self.prompt_tokens:.0f} + {self.completion_tokens:.0f} tokens, "
            f"{self.cached:.0%} of the prompt cached"
        )


@dataclass(frozen=True, slots=True)
class VariantReport:
    """One variant: a row per category, `all` last; the halves of the case set; cost."""

    name: str
    rows: tuple[tuple[str, dict[str, Share]], ...]
    halves: tuple[tuple[str, dict[str, Share]], ...]
    cost: Cost
    call_seconds: float
    """Median seconds of the cases that want a call."""

    @property
    def all(self) -> dict[str, Share]:
        return self.rows[-1][1]


@dataclass(frozen=True, slots=True)
class Report:
    variants: tuple[VariantReport, ...]
    differences: tuple[tuple[str, str, str, Difference], ...] = ()
    """(variant, compared with, layer, difference)."""
    results: tuple[CaseResult, ...] = field(default=(), repr=False)


def half_of(case_id: str) -> str:
    """`tuning` or `held out`: by a hash of the id, so that no one chooses."""
    return ("tuning", "held out")[hashlib.sha256(case_id.encode()).digest()[0] & 1]


def summarise(results: Sequence[CaseResult]) -> Report:
    """Raises ValueError when there is nothing to summarise."""
    if not results:
        raise ValueError("no results")
    names = list(dict.fromkeys(result.variant for result in results))
    by_variant = {name: [r for r in results if r.variant == name] for name in names}
    return Report(
        variants=tuple(_variant_report(name, by_variant[name]) for name in names),
        differences=tuple(
            (names[0], other, layer, paired(by_variant[names[0]], by_variant[other], layer))
            for other in names[1:]
            for layer in ("right", "kept", "completion")
        ),
        results=tuple(results),
    )


def paired(ours: Sequence[CaseResult], theirs: Sequence[CaseResult], layer: str) -> Difference:
    """Difference on the cases (and repeats) that both have, in `right`, `kept` or `completion`."""
    other = {(r.case.id, r.repeat): r for r in theirs}
    pairs = [(r, other[r.case.id, r.repeat]) for r in ours if (r.case.id, r.repeat) in other]
    if layer != "completion":
        pairs = [(a, b) for a, b in pairs if a.case.wants_call == (layer == "right")]

    def good(result: CaseResult) -> bool:
        verdict = result.verdict
        return verdict.completed if layer == "completion" else verdict.arguments

    marks = [(good(a), good(b)) for a, b in pairs]
    return Difference(
        better=sum(a and not b for a, b in marks),
        worse=sum(b and not a for a, b in marks),
        total=len(marks),
    )


def _variant_report(name: str, results: list[CaseResult]) -> VariantReport:
    categories = sorted({result.case.category for result in results})
    rows = [(c, _layers([r for r in results if r.case.category == c])) for c in categories]
    halves = [
        (half, _layers([r for r in results if half_of(r.case.id) == half]))
        for half in ("tuning", "held out")
    ]
    wanted = [r.seconds for r in results if r.case.wants_call]
    return VariantReport(
        name,
        (*rows, ("all", _layers(results))),
        tuple(halves),
        _cost(results),
        statistics.median(wanted) if wanted else 0.0,
    )


def _layers(results: Sequence[CaseResult]) -> dict[str, Share]:
    return {name: layer(results) for name, layer in LAYERS.items()}


def _cost(results: Sequence[CaseResult]) -> Cost:
    exchanges = [exchange for result in results for exchange in result.exchanges]
    prompt = sum(exchange.prompt_tokens for exchange in exchanges)
    n = len(results)
    return Cost(
        seconds=statistics.median(result.seconds for result in results),
        requests=len(exchanges) / n,
        rounds=sum(result.rounds for result in results) / n,
        calls=sum(len(result.calls) for result in results) / n,
        retries=sum(result.retries for result in results) / n,
        prompt_tokens=prompt / n,
        completion_tokens=sum(e.completion_tokens for e in exchanges) / n,
        cached=sum(e.cached_tokens for e in exchanges) / prompt if prompt else 0.0,
    )
