"""`Action: name` with `Action Input: {…}`, in whatever words; arguments as JSON, YAML or text."""

from __future__ import annotations

import re
from typing import Final

from chathands.emulation.dialects.json_values import read_json
from chathands.emulation.dialects.openings import Opening, argument_label, name_label
from chathands.emulation.dialects.values import read_several, read_values
from chathands.emulation.dialects.words import ARGUMENT_KEYS, plain_key
from chathands.emulation.dialects.yaml_body import NotYaml, read_yaml
from chathands.emulation.reading_found import MISSING, Found
from chathands.emulation.reading_source import Reads, Source
from chathands.emulation.reading_tokens import State
from chathands.emulation.reading_tools import Tools

_NAME: Final = re.compile(r"[`\"'*]{0,3}([^\W\d][\w.\-]{0,120})(?:\(\))?[`\"'*]{0,3}[ \t]*")
_FENCE: Final = re.compile(r"`{3,}[^\n`]{0,20}\n?")
_BLANK: Final = re.compile(r"\s{1,256}\Z")
_LONGEST_GAP: Final = 256
_GAP: Final = re.compile(rf"(?=[\r\n])\s{{1,{_LONGEST_GAP}}}")
"""Line breaks, blank lines and the indentation of the next line with text."""
_LABELS: Final = 48
"""Characters in which a label must show itself."""


def read_labelled(src: Source, tools: Tools) -> Reads[list[Found]]:
    """Read a labelled name and its arguments, as often as they follow each other."""
    found: list[Found] = []
    while True:
        yield from src.need(_LABELS)
        width = name_label(src.buf[src.pos : src.pos + _LABELS])
        start = src.offset
        src.pos += width
        if not width or not (yield from src.skip_space()):
            return found
        if src.buf[src.pos] in "{[":
            inside, state = yield from read_values(src, tools)
            found += inside
        else:
            yield from src.need(120)
            word = _NAME.match(src.buf, src.pos)
            if word is None or tools.find(word[1]) is None:
                src.rewind(start)  # another label of this name, in the prose that follows
                return found
            if src.buf.startswith("(", word.end(1)) and not src.buf.startswith("()", word.end(1)):
                inside, state = yield from read_several(src, tools, Opening.PYTHON)
                found += inside
            else:
                src.pos = word.end()
                one = Found(word[1])
                yield from _read_arguments(src, one, tools)
                found.append(one)
                state = one.state
        if state is not State.WHOLE or not (yield from src.skip_space()):
            return found


def _read_arguments(src: Source, found: Found, tools: Tools) -> Reads[None]:
    """Read what stands behind a label for arguments, or an object without one, if there is one."""
    yield from src.need(_LABELS)
    ahead = src.buf[src.pos : src.pos + _LABELS]
    width = argument_label(ahead)
    if not width and not ahead.lstrip().startswith("{"):
        begun = plain_key(ahead)
        if src.final and begun and any(key.startswith(begun) for key in ARGUMENT_KEYS):
            found.state = State.CUT
        return
    src.pos += width
    line = src.offset
    yield from src.skip_space()
    yield from src.need(40)
    fence = _FENCE.match(src.buf, src.pos)
    if fence:
        src.pos = fence.end()
        yield from src.skip_space()
    if src.buf[src.pos : src.pos + 1] in ("{", "[", "｛"):
        read = yield from read_json(src, tools)
        lost = read.state in (State.CUT, State.BROKEN)
        found.arguments = None if lost else read.value
        found.state, found.detail, found.repairs = read.state, read.detail, read.repairs
        if fence and read.state is State.WHOLE:
            yield from src.skip_space()
            yield from src.need(4)
            closing = _FENCE.match(src.buf, src.pos)
            src.pos = closing.end() if closing else src.pos
        return
    on_this_line = "\n" not in src.since(line)
    src.rewind(line)
    if on_this_line:
        found.arguments = (yield from read_to_line_end(src)).strip()
    else:
        lines = yield from _indented_lines(src)
        found.text_values = True
        try:
            found.arguments = read_yaml("\n".join(lines)) if lines else MISSING
        except NotYaml:
            found.state = State.BROKEN
            found.detail = ("no_object", "")
        while _BLANK.match(src.buf, src.pos):
            if src.final:
                src.pos = len(src.buf)
                break
            yield
    if found.state is State.WHOLE and not (yield from src.need(1)):
        # no line break says that the last word is whole, no other line that this one is the last
        found.state = State.CLOSERS


def read_to_line_end(src: Source) -> Reads[str]:
    """The rest of the line; the line break is left."""
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


def _indented_lines(src: Source) -> Reads[list[str]]:
    """The indented lines that follow; the line break before them is still ahead."""
    lines: list[str] = []
    while True:
        gap = _GAP.match(src.buf, src.pos)
        if gap is None or (gap.end() == len(src.buf) and len(gap.group()) < _LONGEST_GAP):
            if gap is None and src.pos < len(src.buf):
                return lines
            if src.final:
                return lines
            yield
            continue
        blank, _, indent = gap.group().rpartition("\n")
        if not (indent or src.buf.startswith("-", gap.end())) or blank.count("\n") > 3:
            return lines
        lines += [""] * blank.count("\n")
        src.pos = gap.end() - len(indent)
        lines.append((yield from read_to_line_end(src)))
