"""Calls that stand in lines of their own, without fence or tag.

The readers begin where `openings` saw something begin; whether the rest of the line lets a call
stand is asked here.
"""

from __future__ import annotations

import re
from typing import Final

from chathands.emulation.dialects.json_values import read_json
from chathands.emulation.dialects.labels import read_labelled
from chathands.emulation.dialects.openings import WINDOW, Opening, opening
from chathands.emulation.dialects.values import read_call, read_values
from chathands.emulation.reading_found import Block, Found
from chathands.emulation.reading_source import Reads, Source
from chathands.emulation.reading_tokens import CLOSERS, COMMAS, SPACE, State
from chathands.emulation.reading_tools import Tools
from chathands.limits import MAX_CALLS

_NAME: Final = re.compile(
    r"(?:>>>\s?)?[`\"'*]{0,3}([^\W\d][\w.\-]{0,120})(?:\(\))?[`\"'*]{0,3}[ \t]*"
)
_AFTER: Final = frozenset(CLOSERS) | COMMAS | frozenset(" \t\r.。\ufeff\u200b")


def _line_is_over(src: Source) -> Reads[bool]:
    """Pass over closers and separators; whether nothing else stands on the line."""
    while (yield from src.need(1)):
        char = src.buf[src.pos]
        if char not in _AFTER:
            return char in "\n`<"
        src.pos += 1
    return True


def read_line(src: Source, kind: Opening, tools: Tools) -> Reads[Block]:
    """The block that begins here. `plain` if its line goes on with something else."""
    if kind is Opening.LABEL:
        found = yield from read_labelled(src, tools)
        closed = not found or found[-1].state is State.WHOLE
        return Block(found, "label", closed=closed, plain=not found)
    if kind is Opening.JSON:
        found, state = yield from read_values(src, tools)
    elif kind is Opening.PYTHON:
        found, state = yield from _read_calls(src, tools)
    else:
        found, state = yield from _read_named(src, tools)
    if state is State.WHOLE and not (yield from _line_is_over(src)):
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


def _read_named(src: Source, tools: Tools) -> Reads[tuple[list[Found], State]]:
    word = _NAME.match(src.buf, src.pos)
    if word is None:
        return [], State.EMPTY
    src.pos = SPACE.match(src.buf, word.end()).end()  # type: ignore[union-attr]
    read = yield from read_json(src, tools)
    given = read.value if read.state in (State.WHOLE, State.CLOSERS) else None
    return [Found(word[1], given, read.state, read.detail, read.repairs)], read.state
