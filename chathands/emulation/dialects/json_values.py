"""JSON by the letter first; what fails that is read again leniently, from its beginning."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

from chathands.emulation.dialects.words import duplicated
from chathands.emulation.lenient_json import LenientReader
from chathands.emulation.reading_source import Reads, Source
from chathands.emulation.reading_tokens import Detail, Hints, State
from chathands.limits import JSON_DEPTH

_SPACE: Final = re.compile(r"[ \t\n\r]*")
_PLAIN: Final = re.compile(r'[^"\\\x00-\x1f]*')
_ESCAPE: Final = re.compile(r'\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})')
_SCALAR: Final = re.compile(
    r"(?:-?(?:0|[1-9]\d{0,400})(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null)", re.A
)
_SCALAR_TEXT: Final = re.compile(r"[-+.\w]{0,800}", re.ASCII)


@dataclass(slots=True)
class Read:
    """One value from a text: what it is, how its reading ended, what was put right.

    Where the state is CUT or BROKEN, `value` is the list of the brackets that were open, from the
    outside in, with what they held so far.
    """

    value: Any
    state: State
    detail: Detail = ("", "")
    repairs: dict[str, None] = field(default_factory=dict)

    @classmethod
    def of(cls, reader: LenientReader) -> Read:
        """What a reader came to."""
        lost = reader.state in (State.CUT, State.BROKEN)
        value = reader.begun() if lost else reader.value
        return cls(value, reader.state, reader.detail, reader.repairs)


def read_json(src: Source, hints: Hints) -> Reads[Read]:
    """Read one value. The source must have been marked at or before its place."""
    start = src.offset
    if (yield from _walk(src)):
        repairs: dict[str, None] = {}
        try:
            value = json.loads(src.since(start), object_pairs_hook=_pairs(repairs))
        except (ValueError, RecursionError):  # digits beyond sys.get_int_max_str_digits
            return Read([], State.BROKEN, ("long_number", ""))
        return Read(value, State.WHOLE, repairs=repairs)
    src.rewind(start)
    reader = LenientReader(src, hints)
    yield from reader.read()
    return Read.of(reader)


def read_members(src: Source, value: dict[str, Any], hints: Hints) -> Reads[Read]:
    """Go on inside an object that a stray closer had ended: `{"a": {…}}, "b": 1}`."""
    reader = LenientReader(src, hints, members=value)
    yield from reader.read()
    return Read.of(reader)


def _pairs(repairs: dict[str, None]) -> Callable[[list[tuple[str, Any]]], dict[str, Any]]:
    def build(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        built = dict(pairs)
        for key, value in pairs if len(built) < len(pairs) else ():
            if built[key] != value:
                repairs[duplicated(key, value, built[key])] = None
        return built

    return build


_FIRST, _VALUE, _FIRST_KEY, _KEY, _COLON, _NEXT = range(6)
"""What may come next: `_FIRST` is a value or the end of a list, `_FIRST_KEY` a key or that of an
object."""


def _walk(src: Source) -> Reads[bool]:
    """Pass over one object, list or string of strict JSON (RFC 8259); False as soon as it is none.

    A text that ends inside is no strict value either: the lenient reader says what is missing.
    """
    closers: list[str] = []
    want = _VALUE
    while True:
        src.pos = _SPACE.match(src.buf, src.pos).end()  # type: ignore[union-attr]
        if src.pos == len(src.buf):
            if src.final:
                return False
            yield
            continue
        char = src.buf[src.pos]
        if char == '"' and want <= _KEY:
            src.pos += 1
            if not (yield from _walk_string(src)):
                return False
            want = _NEXT if want <= _VALUE else _COLON
        elif want == _COLON:
            if char != ":":
                return False
            src.pos += 1
            want = _VALUE
        elif closers and char == closers[-1] and want in (_NEXT, _FIRST, _FIRST_KEY):
            src.pos += 1
            closers.pop()
            want = _NEXT
        elif want == _NEXT:
            if char != ",":
                return False
            src.pos += 1
            want = _KEY if closers[-1] == "}" else _VALUE
        elif want >= _FIRST_KEY:
            return False
        elif char in "{[":
            if len(closers) >= JSON_DEPTH:
                return False
            src.pos += 1
            closers.append("}" if char == "{" else "]")
            want = _FIRST_KEY if char == "{" else _FIRST
        else:
            text = _SCALAR_TEXT.match(src.buf, src.pos).group()  # type: ignore[union-attr]
            if src.pos + len(text) == len(src.buf) and not src.final and len(text) < 800:
                yield
                continue
            if not closers or not _SCALAR.fullmatch(text):
                return False
            src.pos += len(text)
            want = _NEXT
        if not closers and want == _NEXT:
            return True


def _walk_string(src: Source) -> Reads[bool]:
    while True:
        src.pos = _PLAIN.match(src.buf, src.pos).end()  # type: ignore[union-attr]
        if src.pos == len(src.buf):
            if src.final:
                return False
            yield
            continue
        char = src.buf[src.pos]
        if char == '"':
            src.pos += 1
            return True
        escape = _ESCAPE.match(src.buf, src.pos)
        if escape:
            src.pos = escape.end()
        elif char == "\\" and len(src.buf) - src.pos < 6 and not src.final:
            yield
        else:
            return False
