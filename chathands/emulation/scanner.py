"""Reads a reply while it arrives: text leaves at once, calls when they are whole, markup never.

One coroutine (reading_prose.py) walks over the text once. Where something begins that may be a call
it reads on in silence; what it read then leaves as a call, is kept as broken, or is text after all.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Literal

from chathands.conversation import ToolSpec
from chathands.emulation.given import known_language
from chathands.emulation.outcome import CallReady, Event, ParsedReply, Sign, TextDelta
from chathands.emulation.reading_judge import Judge
from chathands.emulation.reading_outlet import Outlet
from chathands.emulation.reading_prose import Prose
from chathands.emulation.reading_source import Source
from chathands.emulation.reading_strings import without_surrogates
from chathands.emulation.reading_tools import Tools
from chathands.limits import REPLY_CAP

Thinking = Literal["none", "tags", "open"]


class Scanner:
    """Reads one reply. Give it the pieces with `feed`, then `close` it.

    Every split of the same text gives the same reading and the same events, joined. The text of the
    events is the text of the reading, with one exception: see `retracted`.
    """

    def __init__(
        self,
        tools: Sequence[ToolSpec | Mapping[str, Any]],
        *,
        position: int = 0,
        taken: Collection[str] = (),
        thinking: Thinking = "none",
        language: Literal["zh", "en"] = "zh",
        cap: int = REPLY_CAP,
        strangers: bool = True,
    ) -> None:
        """`position` is the number of calls already in the conversation; call ids depend on it,
        and are none of those `taken`.

        `thinking` "open" is for models whose replies begin inside their thinking. Characters beyond
        `cap` are not read; the reply then counts as cut off. `language` is that of the sentences in
        `BrokenCall.detail`. A reply that is nothing but a call of an undeclared tool is broken, not
        text, unless `strangers` is off: then such JSON was asked for.
        """
        self._src = Source()
        known = Tools(tools)
        self._outlet = Outlet(
            Judge(known, known_language(language)), position, taken, strangers=strangers
        )
        self._left = cap
        self._half = ""
        self._reading: ParsedReply | None = None
        self._walk = Prose(self._src, known, self._outlet).walk(inside_thinking=thinking == "open")
        next(self._walk)

    @property
    def thought(self) -> str:
        """The thinking set apart so far."""
        return "".join(self._outlet.thought).strip()

    @property
    def retracted(self) -> bool:
        """A lone `</think>` in the opening has made thinking of the text that left before it.

        The reading does not have that text; who still holds the events can drop it as well.
        """
        return self._outlet.retracted

    def feed(self, text: str) -> list[Event]:
        """Read on; returns what may leave now. Raises ValueError when the reply is closed."""
        return _events(self.read(text))

    def read(self, text: str) -> list[Event | Sign]:
        """As `feed`, with the signs between the events."""
        if self._reading is not None:
            raise ValueError("this reply is closed")
        beyond = len(text) > self._left
        text = text[: self._left]
        self._left -= len(text)
        if text and (self._half or not text.isascii()):
            text = self._paired(text)
        if text:
            self._src.feed(text)
            next(self._walk, None)
        self._outlet.cut_off |= beyond  # behind the reading: how a reply is cut decides nothing
        return self._fetch()

    def close(self, finish_reason: str | None = None) -> tuple[list[Event], ParsedReply]:
        """There is no more; returns what was still held, and the whole reading."""
        left, reading = self.end(finish_reason)
        return _events(left), reading

    def end(self, finish_reason: str | None = None) -> tuple[list[Event | Sign], ParsedReply]:
        """As `close`, with the signs between the events."""
        if self._reading is None:
            self._outlet.cut_off |= finish_reason == "length"
            if self._half:
                self._src.feed(without_surrogates(self._half))
            self._src.final = True
            next(self._walk, None)
            self._reading = self._outlet.reading(finish_reason)
        return self._fetch(), self._reading

    def _paired(self, text: str) -> str:
        """The text with pairs of surrogates as characters; the first half of one waits for the
        second. Halves alone cannot be written to any wire.
        """
        text, self._half = self._half + text, ""
        if "\ud800" <= text[-1] <= "\udbff":
            text, self._half = text[:-1], text[-1]
        return without_surrogates(text)

    def _fetch(self) -> list[Event | Sign]:
        events = self._outlet.events
        if events:
            self._outlet.events = []
        return events


def _events(entries: list[Event | Sign]) -> list[Event]:
    return [entry for entry in entries if isinstance(entry, TextDelta | CallReady)]
