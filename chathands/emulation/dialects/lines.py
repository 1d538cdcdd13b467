"""Calls that stand in lines of their own, without fence or tag.

The readers begin where `openings` saw something begin; whether the rest of the line lets a call
stand is asked here.
"""

from __future__ import annotations

import re
from typing import Final

from chathands.emulation.dialects.json_values import read_json
from chathands.emulation.dialects.labels import read_labelled
from chathands.emulation.dialects.openings import Opening
from chathands.emulation.dialects.values import peek_opening, read_several
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
        closed = closed and (yield from src.need(1))
        return Block(found, "label", closed=closed, plain=not found)
    if kind is Opening.STRANGE:
        # nothing in it may run
        found, state = [], (yield from read_json(src, tools)).state
    elif kind is Opening.JSON or kind is Opening.PYTHON:
        found, state = yield from read_several(src, tools, kind)
    else:
        found, state = yield from _read_named(src, tools)
    if state is State.WHOLE and not (yield from _line_is_over(src)):
        return Block(found, str(kind), plain=True)
    return Block(found, str(kind), closed=state is State.WHOLE, plain=state is State.EMPTY)


def _read_named(src: Source, tools: Tools) -> Reads[tuple[list[Found], State]]:
    word = _NAME.match(src.buf, src.pos)
    if word is None:
        return [], State.EMPTY
    src.pos = SPACE.match(src.buf, word.end()).end()  # type: ignore[union-attr]
    read = yield from read_json(src, tools)
    given = read.value if read.state in (State.WHOLE, State.CLOSERS) else None
    return [Found(word[1], given, read.state, read.detail, read.repairs)], read.state


def read_backticked(src: Source, tools: Tools, marks: str) -> Reads[Block | None]:
    """Read calls that stand in inline code, if they and nothing else are the rest of the reply."""
    block = Block([], "backticks", closed=False)
    while len(block.found) < MAX_CALLS:
        src.pos += len(marks)
        begins = yield from peek_opening(src, tools)
        if begins is not Opening.JSON and begins is not Opening.PYTHON:
            return None
        inside = yield from read_line(src, begins, tools)
        if inside.plain or not inside.closed:
            return None
        if not (yield from src.need(len(marks))) or not src.buf.startswith(marks, src.pos):
            return None
        src.pos += len(marks)
        block.found += inside.found
        while (yield from src.skip_space()) and src.buf[src.pos] in _AFTER:
            src.pos += 1
        if not (yield from src.need(1)):
            block.closed = True
            return block
        if not (yield from src.need(len(marks))) or not src.buf.startswith(marks, src.pos):
            return None
    return None
