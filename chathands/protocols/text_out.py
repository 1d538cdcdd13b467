"""What a client asked of the text it gets, done to text on its way out: stop sequences end it,
and a fence around JSON that was asked for bare is taken away."""

from __future__ import annotations

import re
from collections.abc import Sequence

_OPENING = re.compile(r"\s*```[A-Za-z0-9_-]*[ \t]*\r?\n?\s*(?=[{\[])")
_MAY_OPEN = re.compile(r"\s*(?:`{1,3}(?:(?<=```)[A-Za-z0-9_-]*[ \t]*\r?\n?\s*)?)?\Z")
_FENCE = 64
"""Characters of a fence with the blanks around it; more is text."""
_CLOSING = re.compile(r"\s*```\s*\Z")


class TextOut:
    """Text goes in piece by piece; what may leave comes back. `flush()` gives the rest.

    After a stop sequence, which `stopped` then is, nothing comes any more. `bare_json` takes the
    fence off a reply that is one fenced JSON value; any other text stays as it is.
    """

    def __init__(self, stops: Sequence[str] = (), *, bare_json: bool = False) -> None:
        self._stops = tuple(filter(None, stops))
        self._unfence = _Unfence() if bare_json else None
        self._held = ""
        self.stopped: str | None = None

    def feed(self, text: str) -> str:
        if self.stopped is not None:
            return ""
        if self._unfence is not None:
            text = self._unfence.feed(text)
        return self._cut(text) if self._stops else text

    def flush(self) -> str:
        """What was held because it might have become a stop sequence or a fence."""
        if self.stopped is not None:
            return ""
        rest = self._unfence.flush() if self._unfence is not None else ""
        rest = self._cut(rest) if self._stops and rest else rest
        held, self._held = self._held, ""
        return rest + held if self.stopped is None else rest

    def _cut(self, text: str) -> str:
        text = self._held + text
        found = [(at, -len(stop), stop) for stop in self._stops if (at := text.find(stop)) >= 0]
        if found:
            at, _, self.stopped = min(found)
            self._held = ""
            return text[:at]
        keep = max(_overlap(text, stop) for stop in self._stops)
        self._held = text[len(text) - keep :]
        return text[: len(text) - keep]


class _Unfence:
    def __init__(self) -> None:
        self._held = ""
        self._inside: bool | None = None  # None: it is not known yet

    def feed(self, text: str) -> str:
        text = self._held + text
        self._held = ""
        if self._inside is None:
            opening = _OPENING.match(text)
            if opening is None and len(text) <= _FENCE and _MAY_OPEN.match(text):
                self._held = text
                return ""
            self._inside = opening is not None
            text = text[opening.end() :] if opening is not None else text
        if not self._inside:
            return text
        at = max(_tail_at(text), len(text) - _FENCE)
        self._held = text[at:]
        return text[:at]

    def flush(self) -> str:
        held, self._held = self._held, ""
        if self._inside and _CLOSING.fullmatch(held):
            return ""
        return held


def _tail_at(text: str) -> int:
    """Where an end begins that may be the closing fence."""
    at = len(text.rstrip())
    while at and text[at - 1] == "`":
        at -= 1
    return len(text[:at].rstrip())


def _overlap(text: str, stop: str) -> int:
    """Length of the longest end of `text` with which `stop` begins."""
    for size in range(min(len(stop) - 1, len(text)), 0, -1):
        if text.endswith(stop[:size]):
            return size
    return 0
