"""Stretches of a reply that pass as they are: code blocks, quoted lines, examples, foreign data.

Nothing in them is looked at except their end.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from typing import Final

from chathands.emulation.reading_source import Reads, Source

Say = Callable[[str], None]

_BRACKET: Final = re.compile(r'\\.|["{}\[\]\n]')
_VALUE_END: Final = re.compile(r"\n[ \t]{0,64}(?:\n|```)")
_VALUE_END_BEGUN: Final = re.compile(r"\n[ \t]{0,64}`{0,2}\Z")


def pass_line(src: Source, say: Say) -> Reads[None]:
    """To the end of the line, which is left."""
    while True:
        end = src.buf.find("\n", src.pos)
        upto = len(src.buf) if end < 0 else end
        say(src.buf[src.pos : upto])
        src.pos = upto
        if end >= 0 or src.final:
            return
        yield


def pass_element(src: Source, say: Say, close: str, width: int) -> Reads[None]:
    """From an opening tag of this width to the text that closes it, `<example>…</example>`."""
    say(src.buf[src.pos : src.pos + width])
    src.pos += width
    while True:
        end = src.buf.find(close, src.pos)
        upto = end + len(close) if end >= 0 else len(src.buf)
        if end < 0 and not src.final:
            upto = max(src.pos, upto - len(close) + 1)
        say(src.buf[src.pos : upto])
        src.pos = upto
        if end >= 0 or src.final:
            return
        yield


def pass_value(src: Source, say: Say) -> Reads[None]:
    """From an opening bracket to its closing one; to a blank line or fence if that comes first,
    so that a lone bracket hides nothing.
    """
    depth = 0
    quoted = False
    spot = src.pos
    while True:
        found = _BRACKET.search(src.buf, spot)
        mark = found.group() if found else ""
        over = src.final if found is None else mark == "\n" and _is_end(src, found.start())
        if found is None or over is None:
            upto = found.start() if found else len(src.buf)
            if found is None and not src.final and src.buf.endswith("\\"):
                upto = max(src.pos, upto - 1)  # what it escapes comes next
            say(src.buf[src.pos : upto])
            src.pos = upto
            if over:
                return
            yield
            spot = src.pos
            continue
        spot = found.start() if over else found.end()
        if mark == '"':
            quoted = not quoted
        elif not quoted and mark != "\n":
            depth += (mark in "{[") - (mark in "}]")
        if over or (depth <= 0 and not quoted):
            say(src.buf[src.pos : spot])
            src.pos = spot
            return


def _is_end(src: Source, at: int) -> bool | None:
    """Whether a blank line or a fence follows the line break; None if that is not known yet."""
    if not src.final and _VALUE_END_BEGUN.match(src.buf, at):
        return None
    return _VALUE_END.match(src.buf, at) is not None


_INFO: Final = re.compile(r"[ \t]{0,8}[\w+#.\-]{0,40}[ \t]{0,8}\r?")


@lru_cache(maxsize=64)
def _closing_lines(mark: str, width: int) -> tuple[re.Pattern[str], re.Pattern[str]]:
    """A line that closes a code block, and the beginning of one at the end of the text."""
    blank = r"[ \t]{0,12}"
    return (
        re.compile(rf"{blank}{mark}{{{width},40}}{blank}\r?(?=(\n)|\Z)"),
        re.compile(rf"{blank}{mark}{{0,40}}{blank}\r?\Z"),
    )


def opens_code(src: Source, width: int) -> Reads[bool]:
    """Whether marks in the middle of a line open a code block: at most a word stands behind them
    on the line. Otherwise they are part of a sentence.
    """
    while True:
        info = _INFO.match(src.buf, src.pos + width)
        if info is not None and info.end() < len(src.buf):
            return src.buf[info.end()] == "\n" or "`" in src.buf[src.pos + width : info.end() + 1]
        if src.final or info is None:
            return False
        if len(src.buf) - src.pos > 120:
            return False
        yield


def pass_fence(src: Source, say: Say, mark: str, width: int) -> Reads[None]:
    """From a run of marks to the line that closes the code block, or to a run on the same line."""
    say(mark * width)
    src.pos += width
    if (yield from _pass_first_line(src, say, mark * width)):
        return
    closing, begun = _closing_lines(mark, width)
    while True:
        ends = closing.match(src.buf, src.pos)
        if ends and (ends[1] or src.final):
            say(ends.group())
            src.pos = ends.end()
            return
        if not src.final and begun.match(src.buf, src.pos):
            yield
            continue
        yield from pass_line(src, say)
        if src.pos == len(src.buf):
            return
        say("\n")
        src.pos += 1


def _pass_first_line(src: Source, say: Say, marks: str) -> Reads[bool]:
    """Whether the marks are closed before the line ends; its line break is taken."""
    while True:
        line = src.buf.find("\n", src.pos)
        end = src.buf.find(marks, src.pos, line if line >= 0 else len(src.buf))
        if end >= 0:
            upto = end + len(marks)
        elif line >= 0:
            upto = line + 1
        else:
            upto = len(src.buf) if src.final else max(src.pos, len(src.buf) - len(marks) + 1)
        say(src.buf[src.pos : upto])
        src.pos = upto
        if end >= 0 or line >= 0 or src.final:
            return end >= 0
        yield
