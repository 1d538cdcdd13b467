"""GET /metrics: what the gateway did, for Prometheus.

Labels are names of entries and our own words, never anything a client sent, so that their number is
known.

Format: https://prometheus.io/docs/instrumenting/exposition_formats/
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest

from chathands.emulation.outcome import ModelRequest
from chathands.upstreams.base import ModelStream
from chathands.upstreams.router import Route, Router

CONTENT_TYPE = CONTENT_TYPE_LATEST

FIRST_BUCKETS = (0.05, 0.1, 0.25, 0.5, 1, 2, 4, 8, 15, 30, 60, 120)
"""Seconds to the first token: hosted models 0.3 to 2, a local one with a contract 10 to 60."""
WHOLE_BUCKETS = (0.25, 0.5, 1, 2, 4, 8, 15, 30, 60, 120, 300)

_P = "chathands_gateway"


class Metrics:
    """Counts for one application; it is the `Watch` of the router too."""

    def __init__(self) -> None:
        own = self._registry = CollectorRegistry()
        self.requests = Counter(
            f"{_P}_requests", "Requests by how they ended", ["model", "outcome"], registry=own
        )
        self.retries = Counter(
            f"{_P}_retries", "Replies that were corrected", ["model", "reason"], registry=own
        )
        self.calls = Counter(
            f"{_P}_calls", "Tool calls by how they were read", ["model", "confidence"], registry=own
        )
        self.first = Histogram(
            f"{_P}_first_token_seconds", "Until text or a call leaves, of streams", ["model"],
            buckets=FIRST_BUCKETS, registry=own,
        )  # fmt: skip
        self.whole = Histogram(
            f"{_P}_request_seconds", "Until the end", ["model"],
            buckets=WHOLE_BUCKETS, registry=own,
        )  # fmt: skip
        self.in_flight = Gauge(f"{_P}_in_flight", "Requests on their way", ["model"], registry=own)
        self.errors = Counter(
            f"{_P}_upstream_errors", "Faults of upstreams", ["upstream", "kind"], registry=own
        )
        self.rests = Counter(
            f"{_P}_key_rests", "Keys left alone for a while", ["upstream", "reason"], registry=own
        )
        self.falls = Counter(
            f"{_P}_fallbacks", "Another upstream stepped in", ["upstream", "to"], registry=own
        )
        self._asleep = Gauge(f"{_P}_keys_resting", "Keys that rest now", ["upstream"], registry=own)

    def upstream_error(self, entry: str, kind: str) -> None:
        self.errors.labels(entry, kind).inc()

    def key_rests(self, entry: str, reason: str) -> None:
        self.rests.labels(entry, reason).inc()

    def falls_back(self, entry: str, to: str) -> None:
        self.falls.labels(entry, to).inc()

    def text(self, router: Router | None) -> bytes:
        """All of it in Prometheus' text format."""
        for name, member in (router.members if router else {}).items():
            self._asleep.labels(name).set(member.keys.asleep)
        return generate_latest(self._registry)


@dataclass(slots=True)
class Meter:
    """One request; used once."""

    metrics: Metrics
    model: str
    _started: float = field(default_factory=time.monotonic)
    _first: bool = field(default=False)

    def began(self) -> None:
        self.metrics.in_flight.labels(self.model).inc()

    def leaves(self) -> None:
        """Something of the reply leaves."""
        if not self._first:
            self._first = True
            self.metrics.first.labels(self.model).observe(time.monotonic() - self._started)

    def retried(self, reason: str) -> None:
        self.metrics.retries.labels(self.model, reason).inc()

    def called(self, confidence: str) -> None:
        self.metrics.calls.labels(self.model, confidence).inc()

    def ended(self, outcome: str) -> None:
        self.metrics.in_flight.labels(self.model).dec()
        self.metrics.requests.labels(self.model, outcome).inc()
        self.metrics.whole.labels(self.model).observe(time.monotonic() - self._started)


@dataclass(frozen=True, slots=True)
class Measured:
    """A route whose exchanges are counted."""

    route: Route
    metrics: Metrics

    @property
    def name(self) -> str:
        return self.route.name

    @property
    def context(self) -> int:
        return self.route.context

    @property
    def local(self) -> bool:
        return self.route.local

    def meter(self) -> Meter:
        return Meter(self.metrics, self.route.label)

    def stream(self, request: ModelRequest, *, timeout: float) -> ModelStream:
        return self.route.stream(request, timeout=timeout)

    async def aclose(self) -> None:
        return None
