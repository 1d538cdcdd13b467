"""Values with the calls in them, for every dialect that ends in JSON or in `name(…)`."""

from __future__ import annotations

import re
from typing import Final, Literal

from chathands.emulation.dialects.json_values import Read, read_json, read_members
from chathands.emulation.dialects.openings import Opening, opening
from chathands.emulation.lenient_json import LenientReader
from chathands.emulation.reading_envelope import calls_in, complete_ones
from chathands.emulation.reading_found import Found
from chathands.emulation.reading_lookahead import Lookahead
from chathands.emulation.reading_source import Reads, Source
from chathands.emulation.reading_tokens import COMMAS, INVISIBLE, SPACE, Frame, Hints, State
from chathands.emulation.reading_tools import Tools
from chathands.limits import MAX_CALLS

_BLANKS: Final = re.compile(rf"[ \t\r{INVISIBLE}]*")


def found_in(read: Read, tools: Tools) -> list[Found]:
    """What a value holds. One that was cut still gives the calls in it that are whole."""
    if read.state in (State.CUT, State.BROKEN):
        whole, name = complete_ones(read.value, tools)
        return [*whole, Found(name, None, read.state, read.detail, read.repairs)]
    found = calls_in(read.value, tools)
    for each in found:
        each.repairs = {**read.repairs, **each.repairs}
        if each.state is State.WHOLE:
            each.state = read.state
    return found


def read_values(src: Source, tools: Tools) -> Reads[tuple[list[Found], State]]:
    """Read one value and, if a stray closer ended it too early, its other members."""
    start = src.offset
    read = yield from read_json(src, tools)
    if isinstance(read.value, str) and (yield from _colon_follows(src)):
        src.rewind(start)  # `"tool": …`, the members of an object without its brackets
        read = yield from read_members(src, {}, tools)
    while read.state is State.WHOLE and isinstance(read.value, dict):
        ahead = yield from _members_follow(src)
        if not ahead:
            break
        src.pos += ahead
        read.repairs["reopened"] = None
        more = yield from read_members(src, read.value, tools)
        read = Read(more.value, more.state, more.detail, {**read.repairs, **more.repairs})
    return found_in(read, tools), read.state


def _colon_follows(src: Source) -> Reads[bool]:
    while True:
        spot = _BLANKS.match(src.buf, src.pos).end()  # type: ignore[union-attr]
        if spot < len(src.buf) or src.final or spot - src.pos > 64:
            return src.buf[spot : spot + 1] in (":", "：")
        yield


def _members_follow(src: Source) -> Reads[int]:
    """How far away the next member is when the text goes on with `, "key":`; 0 otherwise."""
    outside = [Frame("{", {})]
    while True:
        spot = _BLANKS.match(src.buf, src.pos).end()  # type: ignore[union-attr]
        if spot == len(src.buf):
            if src.final or spot - src.pos > 64:
                return 0
            yield
            continue
        if src.buf[spot] not in COMMAS:
            return 0
        after = SPACE.match(src.buf, spot + 1).end()  # type: ignore[union-attr]
        if after == len(src.buf):
            if src.final or after - src.pos > 200:
                return 0
            yield
            continue
        follows = Lookahead(src, outside, Hints()).key_follows(after, 0, bare=False)
        if follows is not None:
            return after - src.pos if follows else 0
        yield


def peek_opening(
    src: Source, tools: Tools, *, assigned: bool = False
) -> Reads[Opening | Literal[False]]:
    """What begins at the source's place; see `opening`."""
    while True:
        window = src.buf[src.pos : src.pos + tools.window]
        answer = opening(window, tools, src.final, assigned=assigned)
        if answer is not None:
            return answer
        yield


_PREFIX: Final = re.compile(r"(?:>>>\s?|await\s+|return\s+|[^\W\d]\w{0,40}\s?=\s?(?!=))*")


def read_call(src: Source, tools: Tools) -> Reads[tuple[list[Found], State]]:
    """Read `name(…)`, or a list of such calls."""
    yield from src.need(60)
    src.pos = _PREFIX.match(src.buf, src.pos).end()  # type: ignore[union-attr]
    reader = LenientReader(src, tools)
    yield from reader.read()
    return found_in(Read.of(reader), tools), reader.state


def read_several(
    src: Source, tools: Tools, kind: Literal[Opening.PYTHON, Opening.JSON]
) -> Reads[tuple[list[Found], State]]:
    """Read calls or objects on one line: `a(); b()`, `{…}; {…}`."""
    read_one = read_call if kind is Opening.PYTHON else read_values
    found, state = yield from read_one(src, tools)
    while state is State.WHOLE and len(found) < MAX_CALLS:
        while (yield from src.need(1)) and src.buf[src.pos] in " \t;,":
            src.pos += 1
        if (yield from peek_opening(src, tools)) is not kind:
            break
        more, state = yield from read_one(src, tools)
        found += more
    return found, state
