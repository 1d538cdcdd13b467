"""How far our token estimates are from what an upstream counts, learned from its own reports."""

from __future__ import annotations

from chathands.emulation.outcome import ModelRequest
from chathands.emulation.sizes import whole_request_tokens

LEAST_TOKENS = 200
"""Of a request that teaches something; below it the template's own words are most of the count."""
LOWEST, HIGHEST = 0.5, 2.0
"""No report moves an estimate further: some servers count only what was not cached, and some add
a hidden system text to the first request."""
WEIGHT = 0.3
"""Of a new report against what is known: a single odd one is forgotten within a few requests."""
MARGIN = 1.05
"""On top of a learned ratio: requests differ in how much of them is Chinese, JSON or figures."""


class TokenScale:
    """The ratio of counted to estimated tokens for one upstream, whatever the mode.

    It starts at 1: estimates are upper guesses. A report above the estimate counts at once and in
    full, because a request that is too long is refused; one below it counts little by little.
    """

    def __init__(self) -> None:
        self._ratio: float | None = None

    @property
    def ratio(self) -> float:
        if self._ratio is None:
            return 1.0
        return min(HIGHEST, max(LOWEST, self._ratio * MARGIN))

    def learn(self, request: ModelRequest, counted: int) -> None:
        """The upstream says that `request` had `counted` prompt tokens; 0 is no report."""
        estimate = whole_request_tokens(request)
        if counted <= 0 or estimate < LEAST_TOKENS:
            return
        seen = min(HIGHEST, max(LOWEST, counted / estimate))
        known = seen if self._ratio is None else self._ratio
        self._ratio = seen if seen > known else known + WEIGHT * (seen - known)

    def tokens(self, request: ModelRequest) -> float:
        """The tokens of a request, as this upstream would count them."""
        return whole_request_tokens(request) * self.ratio
