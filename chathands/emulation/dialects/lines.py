"""Calls that stand in lines of their own, without fence or tag: JSON, Python, `Action:` labels.

The readers begin where `openings` saw something begin. They end at the end of the call; whether the
rest of the line lets it stand is asked here as well (`line_is_over`).
"""

from __future__ import annotations

import re
from typing import Final

from chathands.emulation.dialects.json_values import Read, read_json, read_members
from chathands.emulation.dialects.openings import (
    WINDOW,
    Opening,
    argument_label,
    name_label,
    opening,
)
from chathands.emulation.dialects.yaml_body import NotYaml, read_yaml
from chathands.emulation.lenient_json import LenientReader
from chathands.emulation.reading_envelope import calls_in, complete_ones
from chathands.emulation.reading_found import MISSING, Block, Found
from chathands.emulation.reading_lookahead import Lookahead
from chathands.emulation.reading_source import Reads, Source
from chathands.emulation.reading_tokens import CLOSERS, COMMAS, SPACE, Frame, Hints, State
from chathands.emulation.reading_tools import Tools
from chathands.limits import MAX_CALLS

_WORD: Final = re.compile(
    r"(?:>>>\s?)?[`\"'*]{0,3}([^\W\d][\w.\-]{0,120})(?:\(\))?[`\"'*]{0,3}[ \t]*"
)
_BLANKS: Final = re.compile(r"[ \t\r\ufeff\u200b-\u200d\u2060]*")
_FENCE: Final = re.compile(r"`{3,}[^\n`]{0,20}\n?")
_LABELS: Final = 48
"""Characters in which a label must show itself."""


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


def line_is_over(src: Source, tools: Tools) -> Reads[bool]:
    """Pass over closers and separators; whether nothing else stands on the line."""
    while (yield from src.need(1)):
        char = src.buf[src.pos]
        if char in CLOSERS or char in COMMAS or char in " \t\r.。\ufeff\u200b":
            src.pos += 1
            continue
        return char == "\n" or char in "`<"
    return True


def read_line(src: Source, kind: Opening, tools: Tools) -> Reads[Block]:
    """The block that begins here. `plain` if its line goes on with something else."""
    if kind is Opening.LABEL:
        found = yield from read_labelled(src, tools)
        return Block(
            found, "label", closed=not src.final or src.pos < len(src.buf), plain=not found
        )
    if kind is Opening.JSON:
        found, state = yield from read_values(src, tools)
    elif kind is Opening.PYTHON:
        found, state = yield from _read_calls(src, tools)
    else:
        found, state = yield from _read_named(src, tools)
    if state is State.WHOLE and not (yield from line_is_over(src, tools)):
        return Block(found, str(kind), plain=True)
    return Block(found, str(kind), closed=state is State.WHOLE, plain=state is State.EMPTY)


def _read_calls(src: Source, tools: Tools) -> Reads[tuple[list[Found], State]]:
    """Read calls on one line, `a(); b()`."""
    found, state = yield from read_call(src, tools)
    while state is State.WHOLE and len(found) < MAX_CALLS:
        while (yield from src.need(1)) and src.buf[src.pos] in " \t;,":
            src.pos += 1
        while (begins := opening(src.buf[src.pos : src.pos + WINDOW], tools, src.final)) is None:
            yield
        if begins is not Opening.PYTHON:
            break
        more, state = yield from read_call(src, tools)
        found += more
    return found, state


_PREFIX: Final = re.compile(r"(?:>>>\s?|await\s+|return\s+|[^\W\d]\w{0,40}\s?=\s?(?!=))*")


def read_call(src: Source, tools: Tools) -> Reads[tuple[list[Found], State]]:
    """Read `name(…)`, or a list of such calls."""
    yield from src.need(60)
    src.pos = _PREFIX.match(src.buf, src.pos).end()  # type: ignore[union-attr]
    reader = LenientReader(src, tools)
    yield from reader.read()
    return found_in(Read.of(reader), tools), reader.state


def _read_named(src: Source, tools: Tools) -> Reads[tuple[list[Found], State]]:
    word = _WORD.match(src.buf, src.pos)
    if word is None:
        return [], State.EMPTY
    src.pos = SPACE.match(src.buf, word.end()).end()  # type: ignore[union-attr]
    read = yield from read_json(src, tools)
    given = read.value if read.state in (State.WHOLE, State.CLOSERS) else None
    return [Found(word[1], given, read.state, read.detail, read.repairs)], read.state


def read_labelled(src: Source, tools: Tools) -> Reads[list[Found]]:
    """Read `Action: name` / `Action Input: {…}` and the like, as often as they follow each other."""
    found: list[Found] = []
    while True:
        yield from src.need(_LABELS)
        width = name_label(src.buf[src.pos : src.pos + _LABELS])
        if not width:
            return found
        start = src.offset
        src.pos = SPACE.match(src.buf, src.pos + width).end()  # type: ignore[union-attr]
        if not (yield from src.need(1)):
            return found
        if src.buf[src.pos] in "{[":
            inside, state = yield from read_values(src, tools)
            found += inside
            if state is not State.WHOLE:
                return found
            yield from line_is_over(src, tools)
            continue
        yield from src.need(120)
        word = _WORD.match(src.buf, src.pos)
        if word is None or tools.find(word[1]) is None:
            if found:
                src.rewind(start)
            return found
        if src.buf[word.end(1) : word.end(1) + 1] == "(" and not word.group().endswith("()"):
            inside, state = yield from read_call(src, tools)
            found += inside
            if state is not State.WHOLE:
                return found
        else:
            src.pos = word.end()
            one = Found(word[1])
            found.append(one)
            if not (yield from _read_argument_label(src, one, tools)):
                return found
        yield from _skip_space(src)


def _skip_space(src: Source) -> Reads[None]:
    while (yield from src.need(1)):
        spot = SPACE.match(src.buf, src.pos).end()  # type: ignore[union-attr]
        over = spot < len(src.buf)
        src.pos = spot
        if over:
            return


def _read_argument_label(src: Source, found: Found, tools: Tools) -> Reads[bool]:
    """Read the arguments of a labelled name, if there are any; False when they are not whole."""
    yield from src.need(_LABELS)
    text = src.buf[src.pos : src.pos + _LABELS]
    width = argument_label(text)
    if not width:
        width = len(text) - len(text.lstrip())
        if text[width : width + 1] != "{":
            return True
    src.pos += width
    yield from src.need(40)
    spot = SPACE.match(src.buf, src.pos).end()  # type: ignore[union-attr]
    fence = _FENCE.match(src.buf, spot)
    if fence:
        spot = SPACE.match(src.buf, fence.end()).end()  # type: ignore[union-attr]
    if src.buf[spot : spot + 1] in ("{", "[", "｛"):
        src.pos = spot
        read = yield from read_json(src, tools)
        found.arguments = read.value if read.state in (State.WHOLE, State.CLOSERS) else None
        found.state, found.detail, found.repairs = read.state, read.detail, read.repairs
        if read.state is State.WHOLE and fence:
            yield from _skip_space(src)
            yield from src.need(4)
            closing = _FENCE.match(src.buf, src.pos)
            src.pos = closing.end() if closing else src.pos
        return read.state is State.WHOLE
    if "\n" in src.buf[src.pos : spot]:
        lines = yield from _indented(src)
        try:
            found.arguments = read_yaml("\n".join(lines)) if lines else MISSING
        except NotYaml:
            found.state = State.BROKEN
            found.detail = ("no_object", "")
        found.text_values = True
    else:
        line = yield from _rest_of_line(src)
        found.arguments = line.strip()
    if src.final and src.pos == len(src.buf) and not src.buf.endswith("\n"):
        found.state = State.CLOSERS if found.state is State.WHOLE else found.state
    return found.state is State.WHOLE


def _rest_of_line(src: Source) -> Reads[str]:
    parts: list[str] = []
    while True:
        end = src.buf.find("\n", src.pos)
        over = end >= 0 or src.final
        end = len(src.buf) if end < 0 else end
        parts.append(src.buf[src.pos : end])
        src.pos = end
        if over:
            return "".join(parts)
        yield


def _indented(src: Source) -> Reads[list[str]]:
    """The indented lines that follow; the first line break is still ahead."""
    lines: list[str] = []
    while True:
        yield from src.need(2)
        after = src.buf[src.pos + 1 : src.pos + 2]
        if src.buf[src.pos : src.pos + 1] != "\n" or after not in (" ", "\t", "-"):
            return lines
        src.pos += 1
        lines.append((yield from _rest_of_line(src)))
