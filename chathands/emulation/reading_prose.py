"""Walks over a reply once and tells prose from what may be more than prose.

Blocks begin at the start of a line, behind a colon that announces them, or with marks of their own.
The forms are in `dialects/`; here is only where they may stand. What was read as a block and turns
out to be none is said as the text it is.
"""

from __future__ import annotations

import re
from typing import Final

from chathands.emulation.dialects import harmony, tags
from chathands.emulation.dialects.fences import (
    FenceKind,
    fence_kind,
    peek_content,
    read_body,
    read_info,
)
from chathands.emulation.dialects.harmony import Header
from chathands.emulation.dialects.lines import read_backticked, read_line
from chathands.emulation.dialects.markup import Region
from chathands.emulation.dialects.openings import Opening, name_label
from chathands.emulation.dialects.quotation import names_a_result
from chathands.emulation.dialects.tags import Tag, peek_known_tag
from chathands.emulation.dialects.values import peek_opening
from chathands.emulation.reading_aside import pass_result, pass_thinking, read_thought
from chathands.emulation.reading_outlet import Outlet
from chathands.emulation.reading_passing import (
    opens_code,
    pass_element,
    pass_fence,
    pass_line,
    pass_value,
)
from chathands.emulation.reading_source import Reads, Source
from chathands.emulation.reading_tools import Tools

_BLANKS: Final = re.compile("[ \t\r\ufeff\u200b\u2060]*")
_NEXT: Final = re.compile(r"[\n`｀<:：\[◁]")
_NEXT_IN_CODE: Final = re.compile(r"[\n`]")
_MARKS: Final = re.compile(r"`+|｀+|~+|'+")
_LONGEST_MARKS: Final = 40
_TOKENS: Final = ("[TOOL_CALLS]", "[THINK]", "◁think▷")
_DOUBLED: Final = "<<function>>"
"""What Gorilla puts before each call."""


class Prose:
    """The coroutine over a reply: `walk()` yields when it needs more text."""

    def __init__(self, src: Source, tools: Tools, outlet: Outlet) -> None:
        self._src = src
        self._tools = tools
        self._out = outlet
        self._line_start = True
        self._code = 0
        """Length of the run of backticks that opened inline code on this line."""

    def walk(self, *, inside_thinking: bool) -> Reads[None]:
        """Read the whole reply."""
        src = self._src
        yield
        if inside_thinking:
            yield from self._think()
        while True:
            if self._out.over:
                src.pos = len(src.buf)
            if src.pos == len(src.buf):
                if src.final:
                    return
                yield
            elif self._line_start:
                yield from self._begin_line()
            else:
                yield from self._go_on()

    def _begin_line(self) -> Reads[None]:
        """At the start of a line, where blocks begin."""
        src = self._src
        self._say_blanks()
        if src.pos == len(src.buf):
            return
        char = src.buf[src.pos]
        if char in "`｀~'" and (yield from self._fence(line_start=True)):
            return
        if char == "<" and (yield from self._tag(line_start=True)):
            return
        if char in "[◁" and (yield from self._token()):
            return
        if char == ">":
            yield from src.need(3)
            if not src.buf.startswith(">>>", src.pos):  # a quoted line; `>>>` is a prompt
                self._line_start = False
                yield from pass_line(src, self._out.say)
                return
        if (
            self._out.is_empty
            and (thought := (yield from read_thought(src, self._tools))) is not None
        ):
            self._out.thought.append(thought)
            return
        if char not in "\n<`｀" and (yield from self._bare(after_colon=False)):
            return
        self._line_start = False
        if char in "{[":
            yield from pass_value(src, self._out.say)

    def _go_on(self) -> Reads[None]:
        """Inside a line."""
        src = self._src
        found = (_NEXT_IN_CODE if self._code else _NEXT).search(src.buf, src.pos)
        spot = found.start() if found else len(src.buf)
        self._out.say(src.buf[src.pos : spot])
        src.pos = spot
        if found is None or self._out.over:
            return
        mark = found.group()
        if mark in "`｀" and (yield from self._fence(line_start=False)):
            return
        if mark == "<" and (yield from self._tag(line_start=False)):
            return
        if mark in "[◁" and (yield from self._token()):
            return
        self._out.say(mark)
        src.pos += 1
        if mark == "\n":
            self._line_start = True
            self._code = 0
        elif mark in ":：":
            yield from self._after_colon()

    def _after_colon(self) -> Reads[None]:
        """A colon may announce a block on its line, or a result that nobody can know yet."""
        src = self._src
        lead = self._out.lead()
        line = lead[lead.rfind("\n") + 1 :]
        if len(line) < 60 and names_a_result(line, after_call=False):
            self._out.invented = True
        self._say_blanks()
        while src.pos == len(src.buf) and not src.final:
            yield
            self._say_blanks()
        is_key = line[-2:-1] in ('"', "'", "”")
        if src.pos < len(src.buf) and not is_key and src.buf[src.pos] not in "\n<`｀:：":
            yield from self._bare(after_colon=True)

    def _say_blanks(self) -> None:
        src = self._src
        spot = _BLANKS.match(src.buf, src.pos).end()  # type: ignore[union-attr]
        self._out.say(src.buf[src.pos : spot])
        src.pos = spot

    # --- fences

    def _fence(self, *, line_start: bool, label: int = 0) -> Reads[bool]:
        """Take a run of backticks and what it opens; False if it opens nothing here.

        `label` is the length of a label just read, which belongs to the block if there is one.
        """
        src = self._src
        marks = _MARKS.match(src.buf, src.pos)
        while marks and marks.end() == len(src.buf) and len(marks.group()) < _LONGEST_MARKS:
            if src.final:
                break
            yield
            marks = _MARKS.match(src.buf, src.pos)
        if marks is None:
            return False
        mark, width = marks.group()[0], len(marks.group())
        if mark in "~'" and (width < 3 or not line_start):
            return False
        short = width < 3 and not (width == 2 and line_start)
        if short or width >= _LONGEST_MARKS or self._code:
            yield from self._inline_code(marks.group(), alone=line_start and width < 3)
            return True
        start = src.offset
        if not label:
            src.mark()
        src.pos = marks.end()
        taken = yield from self._fenced(start - label, mark, width)
        if not taken:
            src.rewind(start)
            self._out.say(src.since(start - label))
        src.release()
        self._line_start = False
        if not taken and (width < 3 or mark == "'"):
            yield from self._inline_code(marks.group(), alone=not label and mark != "'")
        elif not (taken or line_start or (yield from opens_code(src, width))):
            self._out.say(src.buf[src.pos : src.pos + width])
            src.pos += width
        elif not taken:
            self._out.end_batch()
            yield from pass_fence(src, self._out.say, mark, width)
        return True

    def _fenced(self, start: int, mark: str, width: int) -> Reads[bool]:
        """Read the fence whose marks were just read as a block; False if it is text."""
        src = self._src
        info = yield from read_info(src)
        kind = fence_kind(info) if info is not None else FenceKind.OTHER
        if (width < 3 or mark == "'") and kind is not FenceKind.CONTRACT:
            return False
        if kind is FenceKind.OTHER or (kind is not FenceKind.DATA and self._out.is_shown()):
            return False
        begins: Opening | bool = True
        self._out.begin(sure=kind is FenceKind.CONTRACT)
        if kind is FenceKind.DATA:
            begins = yield from peek_content(src, self._tools, alone=self._out.is_bare)
            # tags and printed calls in a fence explain more often than they call: they must be
            # all there is
            explains = begins is True or src.buf.startswith("print(", src.pos)
            explains = explains and not self._out.is_bare
            if begins is False or explains or self._out.is_shown(plain=True):
                return False
        block = yield from read_body(src, self._tools, mark, width, kind, begins)
        return self._out.take(block, src.since(start))

    def _all_in_backticks(self, marks: str) -> Reads[bool]:
        """Take a reply that is only calls in inline code; in a sentence they are mentions."""
        src = self._src
        start = src.offset
        src.mark()
        block = yield from read_backticked(src, self._tools, marks)
        taken = block is not None and not self._out.is_shown()
        taken = taken and self._out.take(block, src.since(start))  # type: ignore[arg-type]
        if not taken:
            src.rewind(start)
        src.release()
        self._line_start = self._line_start and not taken
        return taken

    def _inline_code(self, marks: str, *, alone: bool) -> Reads[None]:
        """Pass a run of backticks; `alone`: it may open a reply that is nothing but calls."""
        alone = alone and self._out.is_bare and not self._code
        if alone and (yield from self._all_in_backticks(marks)):
            return
        self._out.say(marks)
        self._src.pos += len(marks)
        self._line_start = False
        if marks[0] == "`" and self._code in (0, len(marks)):
            self._code = 0 if self._code else len(marks)

    # --- tags and tokens

    def _tag(self, *, line_start: bool) -> Reads[bool]:
        """Take a tag that means something, with what it opens; False: it is text."""
        src = self._src
        second = src.buf[src.pos + 1] if (yield from src.need(2)) else ""
        if second == "!":
            if not ((yield from src.need(4)) and src.buf.startswith("<!--", src.pos)):
                return False
            self._line_start = False
            yield from pass_element(src, self._out.say, "-->", 4)
            return True
        if second == "<":  # no tag begins like that but one
            yield from src.need(3)
            if not src.buf.startswith(_DOUBLED[:3], src.pos):
                return False
            yield from src.need(len(_DOUBLED))
            src.pos += src.buf.startswith(_DOUBLED, src.pos)
        tag = yield from peek_known_tag(src, self._tools)
        if tag is None:
            return False
        name = tag.name
        if name in tags.THINKING or (name == "channel" and tag.closing):
            return (yield from self._thinking_tag(tag, line_start=line_start))
        if name in tags.QUOTING:
            if tag.closing:
                return False
            self._line_start = False
            yield from pass_element(src, self._out.say, f"</{name}>", tag.width)
        elif name in tags.RESULTS:
            if not tag.closing and self._out.is_quoting():
                self._line_start = False
                yield from pass_element(src, self._out.say, f"</{name}>", tag.width)
                return True
            src.pos += tag.width
            self._out.invent()
            if not tag.closing:
                yield from pass_result(src, name)
        elif name in tags.TURNS:
            self._out.over = True  # the model goes on as somebody else
        elif name in tags.STOPS or name in tags.CLOSE:
            src.pos += tag.width
        elif tag.closing:
            if not (line_start and name in tags.SURE):
                return False
            src.pos += tag.width
        elif name not in harmony.NAMES or not (yield from self._header(tag)):
            sure = name in tags.SURE or src.buf.startswith("<function=", src.pos)
            return (yield from self._region(name, tag.width, sure=sure, alone=line_start))
        return True

    def _region(self, form: str, width: int, *, sure: bool, alone: bool) -> Reads[bool]:
        """Read the calls behind a tag or token of this width. `alone`: it begins a line; then even
        one that holds no call is not for people.
        """
        src = self._src
        if self._out.is_shown():
            return False
        start = src.offset
        src.mark()
        self._out.begin(sure=sure and alone)
        block = yield from Region(src, self._tools).read(form)
        block.sure = sure and (alone or bool(block.found))
        if not self._out.take(block, src.since(start)):
            if block.plain:  # the tag alone is text, what follows is read as usual
                src.rewind(start + width)
            around_prose = block.plain and sure and alone and src.buf[src.pos : src.pos + 1] == "\n"
            if not around_prose:
                self._out.say(src.since(start))
        src.release()
        self._line_start = False
        return True

    def _token(self) -> Reads[bool]:
        """Take `[TOOL_CALLS]` and the calls behind it, or `[THINK]` and the thinking."""
        src = self._src
        while True:
            rest = src.buf[src.pos : src.pos + 12]
            token = next((t for t in _TOKENS if t.startswith(rest) or rest.startswith(t)), None)
            if token is None or (len(rest) < len(token) and src.final):
                return False
            if len(rest) >= len(token):
                break
            yield
        if token != "[TOOL_CALLS]":
            src.pos += len(token)
            yield from self._think()
            return True
        return (yield from self._region("tool_calls", len(token), sure=True, alone=False))

    def _header(self, tag: Tag) -> Reads[bool]:
        """Take the header of a gpt-oss message; False if it addresses a tool."""
        header = yield from harmony.read_header(self._src, tag)
        if header is Header.CALL:
            return False
        if header is Header.OTHER:
            self._out.over = True
        self._line_start = True
        if header is Header.THINKING:
            yield from self._think()
        return True

    # --- lines of their own

    def _bare(self, *, after_colon: bool) -> Reads[bool]:
        """Take a call that stands in lines of its own, or behind a colon to the line's end."""
        src = self._src
        alone = self._out.is_bare and not after_colon
        begins = yield from peek_opening(src, self._tools, assigned=alone)
        window = src.buf[src.pos : src.pos + self._tools.window]
        labelled = after_colon and begins is Opening.LABEL
        if not begins or labelled or self._out.is_shown(plain=True):
            return False
        start = src.offset
        src.mark()
        width = name_label(window) if begins is Opening.LABEL else 0
        if width and window.startswith("```", width):
            src.pos += width
            return (yield from self._fence(line_start=True, label=width))
        self._out.begin(sure=False)
        block = yield from read_line(src, begins, self._tools)
        for found in block.found if after_colon else ():
            found.repairs["inline"] = None
        taken = self._out.take(block, src.since(start))
        if not taken and begins is Opening.STRANGE:
            src.rewind(start)
        elif not taken:
            self._out.say(src.since(start))
        src.release()
        self._line_start = False
        if not taken and begins is Opening.STRANGE:
            yield from pass_value(src, self._out.say)
        return True

    # --- thinking

    def _thinking_tag(self, tag: Tag, *, line_start: bool) -> Reads[bool]:
        src = self._src
        if tag.closing:
            if not self._out.retract():
                return False
            src.pos += tag.width
            self._line_start = True
            return True
        if not line_start and not self._out.is_empty:
            return False  # a word in a sentence
        src.pos += tag.width
        yield from self._think()
        return True

    def _think(self) -> Reads[None]:
        """Set aside everything up to the end of the thinking; to the end of the reply if none."""
        yield from pass_thinking(self._src, self._out.thought.append)
        self._line_start = True
