"""Text that is still arriving, with a place in it. Nothing here knows what the text means.

Readers are generators that `yield` when they need more text and end with what they read; whoever
drives them puts the next piece into the source and resumes them. A decision may rest on the text
alone, never on where a piece happened to end: a reader that could decide otherwise with more text
yields, unless `final` says that there is no more. That is all split invariance takes.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import TypeVar

from chathands.emulation.reading_tokens import SPACE

_T = TypeVar("_T")
Reads = Generator[None, None, _T]
"""A reader: yields to ask for more text, returns what it read."""


def run(reader: Reads[_T]) -> _T:
    """What a reader of a final source returns."""
    try:
        next(reader)
    except StopIteration as over:
        return over.value
    raise AssertionError("a reader of a final text asked for more")


class Source:
    """A window on the text: `buf` from `base` on, read up to `pos`.

    What lies before `pos` is forgotten with the next piece, so that a piece costs its own length
    and not that of the reply; after `mark()` it is set aside instead, for `since()` and `rewind()`.
    """

    __slots__ = ("_aside", "_start", "base", "buf", "final", "pos")

    def __init__(self, text: str = "", *, final: bool = False) -> None:
        self.base = 0
        self.buf = text
        self.pos = 0
        self.final = final
        self._aside: list[str] | None = None
        self._start = 0

    @property
    def offset(self) -> int:
        """Where the next character stands in the whole text."""
        return self.base + self.pos

    def feed(self, piece: str) -> None:
        """Append what arrived."""
        if self._aside is not None:
            self._aside.append(self.buf[self._start : self.pos])
            self._start = 0
        self.base += self.pos
        self.buf = self.buf[self.pos :] + piece
        self.pos = 0

    def need(self, count: int) -> Reads[bool]:
        """Wait for so many characters; False when the text ends before."""
        while len(self.buf) - self.pos < count:
            if self.final:
                return False
            yield
        return True

    def skip_space(self) -> Reads[bool]:
        """Pass over white space and invisible marks; False when the text ends there."""
        while True:
            self.pos = SPACE.match(self.buf, self.pos).end()  # type: ignore[union-attr]
            if self.pos < len(self.buf):
                return True
            if self.final:
                return False
            yield

    def mark(self) -> None:
        """Keep everything from here on."""
        self._aside = []
        self._start = self.pos

    def release(self) -> None:
        """Keep nothing any longer."""
        self._aside = None

    def since(self, offset: int) -> str:
        """The text from `offset`, which must not lie before the mark, up to here."""
        if offset >= self.base:
            return self.buf[offset - self.base : self.pos]
        self._gather()
        return self.buf[offset - self.base : self.pos]

    def rewind(self, offset: int) -> None:
        """Go back to `offset`, which must not lie before the mark."""
        if offset < self.base:
            self._gather()
        self.pos = offset - self.base

    def _gather(self) -> None:
        """Put what was set aside back in front of the window."""
        if self._aside:
            aside = "".join(self._aside)
            self.buf = aside + self.buf[self._start :]
            self.base -= len(aside) - self._start
            self.pos += len(aside) - self._start
            self._aside = []
            self._start = 0
