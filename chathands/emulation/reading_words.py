"""What stands without quotes: words, numbers, literals, text between separators, comments."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from chathands.emulation.reading_lookahead import Lookahead
from chathands.emulation.reading_source import Reads, Source
from chathands.emulation.reading_tokens import CLOSERS, COMMAS, FAMILY, INVISIBLE, QUOTES, Frame

JSON_WORDS: Final[Mapping[str, Any]] = {"true": True, "false": False, "null": None}
_WORDS: Final[Mapping[str, Any]] = {
    "True": True, "False": False, "None": None, "TRUE": True, "FALSE": False, "NULL": None,
    "undefined": None, "nil": None,
}  # fmt: skip
_EDGE: Final = r"""\s,，、;；:：=＝(（)）{}｛｝\[\]［］【】"“”„＂'‘’`<\\"""
_WORD: Final = re.compile(rf"(?:[^{_EDGE}]|\\_){{1,200}}")
_RUN: Final = re.compile(r"""[^,，、;；}｝\]］)）\n"“”＂'`<]+""")
_JSON_NUMBER: Final = re.compile(r"-?(?:0|[1-9]\d{0,400})(?:\.\d+)?(?:[eE][+-]?\d+)?", re.ASCII)
_NUMBER: Final = re.compile(
    r"[+-]?(?:\d(?:_?\d){0,400}\.?\d*|\.\d+)(?:[eE][+-]?\d+)?|0[xX][0-9a-fA-F]{1,16}", re.ASCII
)
_THOUSANDS: Final = re.compile(r"(?:,\d{3})+(?=\s*[}\n,])(?!,\s*\d)", re.ASCII)
_BLANK: Final = re.compile(rf"[ \t\r{INVISIBLE}]{{0,256}}")
_AFTER_SCALAR: Final = frozenset(",，、;；}｝]］)）】\n<`#/")


def peek_word(src: Source) -> Reads[str]:
    """The word at the source's place, "" if none is there. Nothing is taken.

    What ends the word is in the buffer then, unless the text ends or the word is longer than 200.
    """
    while True:
        found = _WORD.match(src.buf, src.pos)
        end = found.end() if found else src.pos
        open_end = end == len(src.buf) or (end == len(src.buf) - 1 and src.buf[end] == "\\")
        if not open_end or src.final or end - src.pos >= 200:
            return src.buf[src.pos : end]
        yield  # the word may go on, with a letter or an escaped underscore


def peek_after_blanks(src: Source, ahead: int) -> Reads[int]:
    """How far from here, from `ahead` on, the first character is that is no blank of this line."""
    while True:
        spot = _BLANK.match(src.buf, src.pos + ahead).end()  # type: ignore[union-attr]
        if spot < len(src.buf) or src.final:
            return spot - src.pos
        yield


def is_scalar_end(char: str) -> bool:
    """Whether a word before this character is a value of its own; "" is the end of the text."""
    return not char or char in _AFTER_SCALAR


def word_value(word: str, repairs: dict[str, None]) -> Any:
    """The value a bare word stands for: a literal, a number, else the word itself.

    Numbers with leading zeros stay text: the schema reads them where a number is wanted, and where
    text is wanted (a phone number, a code) the zeros are part of it.
    """
    if word in JSON_WORDS:
        return JSON_WORDS[word]
    if word in _WORDS:
        repairs["python"] = None
        return _WORDS[word]
    if _JSON_NUMBER.fullmatch(word):
        return int(word) if word.lstrip("-").isdecimal() else float(word)
    if not _NUMBER.fullmatch(word):
        repairs["bare_word"] = None
        return word
    repairs["numbers"] = None
    plain = word.replace("_", "")
    if plain[:2] in ("0x", "0X"):
        return int(plain, 16)
    if plain.lstrip("+-").isdecimal():
        return plain if plain.lstrip("+-").startswith("0") else int(plain)
    return float(plain)


def is_typed(word: str) -> bool:
    """Whether the word is a literal or a number, not just text."""
    return word in JSON_WORDS or word in _WORDS or _NUMBER.fullmatch(word) is not None


def take_thousands(src: Source, word: str, repairs: dict[str, None]) -> Reads[str]:
    """`1,000` where no second value can follow: the digits without the comma."""
    if not (word.isdecimal() and len(word) < 4 and src.buf[src.pos] == ","):
        return word
    yield from src.need(24)
    more = _THOUSANDS.match(src.buf, src.pos)
    if more:
        repairs["thousands"] = None
        src.pos = more.end()
        word += more.group().replace(",", "")
    return word


def take_text(
    src: Source, stack: Sequence[Frame], look: Lookahead, repairs: dict[str, None]
) -> Reads[str | None]:
    """Words without quotes up to the next separator that is structure; None if the text ends."""
    frame = stack[-1]
    body: list[str] = []
    inside: set[str] = set()
    """Quotes that opened inside the text."""
    while True:
        found = _RUN.match(src.buf, src.pos)
        if found:
            body.append(found.group())
            src.pos = found.end()
        if src.pos == len(src.buf):
            if src.final:
                return None
            yield
            continue
        char = src.buf[src.pos]
        over: bool | None
        if char in inside:  # the second of a pair
            inside.discard(char)
            over = False
        elif char in QUOTES and char != "`":
            over = look.string_ends(src.pos + 1, FAMILY[char], None)
            if over:  # the opening quote was forgotten
                repairs["missing_quote"] = None
                src.pos += 1
            elif over is not None:
                inside.add(char)
        elif char in CLOSERS:
            over = any(open_.kind in CLOSERS[char] for open_ in stack)
        elif char in COMMAS and frame.kind == "{":
            over = look.comma_ends(src.pos, len(stack) - 1)
        elif char == "`":
            yield from src.need(3)
            over = src.buf.startswith("```", src.pos)
        else:
            over = char in "\n<,"
        if over is None:
            yield
            continue
        if over:
            return "".join(body).strip()
        body.append(char)
        src.pos += 1


def skip_comment(src: Source, end: str) -> Reads[None]:
    """Pass over a comment that ends with `end`; its opening mark is still ahead."""
    yield from src.need(2)
    src.pos += min(len(end), len(src.buf) - src.pos)
    while (found := src.buf.find(end, src.pos)) < 0:
        src.pos = max(src.pos, len(src.buf) - len(end) + 1)
        if src.final:
            src.pos = len(src.buf)
            return
        yield
    src.pos = found + len(end)


def skip_dots(src: Source) -> Reads[None]:
    """Pass over an ellipsis."""
    while (yield from src.need(1)) and src.buf[src.pos] in ".…":
        src.pos += 1
