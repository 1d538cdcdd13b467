"""Reads a reply while it arrives: text leaves at once, calls when they are whole, markup never.

One coroutine walks over the text once. Where something begins that may be a call it reads on in
silence; what it read then leaves as a call, is kept as broken, or turns out to be text after all. The
forms themselves are in `dialects/`, the judgement in reading_judge.py; here is the order of things:
prose, thinking, quotations, blocks, the end of the batch.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, Final, Literal

from chathands.conversation import ToolCall, ToolSpec, canonical_json
from chathands.emulation.dialects import tags
from chathands.emulation.dialects.fences import (
    FenceKind,
    fence_kind,
    peek_content,
    read_body,
    read_info,
)
from chathands.emulation.dialects.lines import read_line
from chathands.emulation.dialects.markup import Region
from chathands.emulation.dialects.openings import WINDOW, Opening, name_label, opening
from chathands.emulation.dialects.quotation import LEAD, is_quoted, names_a_result
from chathands.emulation.dialects.tags import Tag, peek_known_tag
from chathands.emulation.outcome import BrokenCall, CallReady, Event, ParsedReply, TextDelta
from chathands.emulation.reading_found import Block
from chathands.emulation.reading_judge import Accepted, Judge
from chathands.emulation.reading_source import Reads, Source
from chathands.emulation.reading_tools import Tools
from chathands.limits import BATCH_PROSE, HOLD_CHARACTERS, MAX_CALLS, REPLY_CAP

_BLANKS: Final = re.compile("[ \t\r\ufeff\u200b\u2060]*")
_NEXT: Final = re.compile(r"[\n`｀<:：✿\[]")
_IN_CODE: Final = re.compile(r"[\n`]")
_RUN: Final = re.compile(r"`+|｀+|~+|'+")
_TOKEN: Final = re.compile(r"\[TOOL_CALLS\]|\[THINK\]")
_BRACKET: Final = re.compile(r'\\.|["{}\[\]\n]')
_VALUE_END: Final = re.compile(r"\n[ \t]*(?:\n|```)")
_CHANNEL: Final = re.compile(
    r"<\|channel\|>([^<]{0,100})(?:<\|constrain\|>\s?\w{0,12})?<\|message\|>"
)
_WHITE: Final = " \t\r\n\f\v\ufeff\u200b\u2028\u2029"
_THOUGHT_END: Final = re.compile(
    r"</\s?(?:[\w]{1,12}:)?(?:think|thinking|thought|thoughts|reasoning|inner_monologue|scratchpad)\s?>|"
    r"\[/THINK\]|◁/think▷|<\|end\|>|<\|start\|>",
    re.IGNORECASE,
)
Thinking = Literal["none", "tags", "open"]


@lru_cache(maxsize=64)
def _closing_lines(mark: str, width: int) -> tuple[re.Pattern[str], re.Pattern[str]]:
    """A line that closes a code block, and the beginning of one at the end of the text."""
    blank = r"[ \t]{0,12}"
    return (
        re.compile(rf"{blank}{mark}{{{width},40}}{blank}\r?(?=(\n)|\Z)"),
        re.compile(rf"{blank}{mark}{{0,40}}{blank}\r?\Z"),
    )


class Scanner:
    """Reads one reply. Give it the pieces with `feed`, then `close` it.

    Every split of the same text gives the same reading and the same events, joined.
    """

    def __init__(
        self,
        tools: Sequence[ToolSpec | Mapping[str, Any]],
        *,
        position: int = 0,
        thinking: Thinking = "none",
        language: Literal["zh", "en"] = "zh",
        cap: int = REPLY_CAP,
    ) -> None:
        """`position` is the number of calls already in the conversation; call ids depend on it.

        `thinking` "open" is for models whose replies begin inside their thinking. Characters beyond
        `cap` are not read; the reply then counts as cut off.
        """
        self._tools = Tools(tools)
        self._judge = Judge(self._tools, language)
        self._position = position
        self._src = Source()
        self._left = cap
        self._cut_off = False
        self._events: list[Event] = []
        self._said: list[str] = []
        self._blank = ""
        """White space that leaves only when text follows it."""
        self._recent: list[str] = []
        """The last text said, enough of it to look back at; see `_lead`."""
        self._calls: list[ToolCall] = []
        self._broken: list[BrokenCall] = []
        self._no_tool = False
        self._thought: list[str] = []
        self._seen: set[tuple[str, str]] = set()
        self._aside: str | None = None
        """Text since the last block of the batch; None before the first."""
        self._barrier = False
        """A tool's result was invented; no call after it may run."""
        self._over = False
        """The batch has ended; the rest of the reply counts for nothing."""
        self._line_start = True
        self._code = 0
        """Length of the run of backticks that opened inline code on this line."""
        self._closed: ParsedReply | None = None
        self.retracted = False
        """Text that had left turned out to be thinking: a lone `</think>` in the opening."""
        self._run = self._reply(thinking)
        next(self._run, None)

    @property
    def thought(self) -> str:
        """The thinking set apart so far."""
        return "".join(self._thought).strip()

    def feed(self, text: str) -> list[Event]:
        """Read on; returns what may leave now."""
        if self._closed is not None:
            raise ValueError("this reply is closed")
        if len(text) > self._left:
            text = text[: self._left]
            self._cut_off = True
        self._left -= len(text)
        if text:
            self._src.feed(text)
            next(self._run, None)
        events, self._events = self._events, []
        return events

    def close(self, finish_reason: str | None = None) -> tuple[list[Event], ParsedReply]:
        """There is no more; returns what was still held, and the whole reading."""
        if self._closed is None:
            self._cut_off |= finish_reason == "length"
            self._src.final = True
            next(self._run, None)
            self._closed = ParsedReply(
                "".join(self._said),
                tuple(self._calls),
                tuple(self._broken),
                self.thought,
                finish_reason,
                self._no_tool and not self._calls,
            )
        events, self._events = self._events, []
        return events, self._closed

    # --- prose

    def _reply(self, thinking: Thinking) -> Reads[None]:
        src = self._src
        yield
        if thinking == "open":
            yield from self._think()
        while True:
            if src.pos == len(src.buf) or self._over:
                if src.final:
                    return
                src.pos = len(src.buf)
                yield
            elif self._line_start:
                yield from self._begin_line()
            else:
                yield from self._go_on()

    def _begin_line(self) -> Reads[None]:
        """At the start of a line, where blocks begin."""
        src = self._src
        spot = _BLANKS.match(src.buf, src.pos).end()  # type: ignore[union-attr]
        self._say(src.buf[src.pos : spot])
        src.pos = spot
        if spot == len(src.buf):
            return
        char = src.buf[spot]
        if char in "`｀~'" and (yield from self._fence(line_start=True)):
            return
        if char == "<" and (yield from self._tag(line_start=True)):
            return
        if char == "[" and (yield from self._token()):
            return
        if char == ">":
            yield from src.need(3)
            if not src.buf.startswith(">>>", src.pos):
                self._line_start = False
                yield from self._to_line_end()
                return
        if char not in "\n<`｀" and (yield from self._bare(after_colon=False)):
            return
        self._line_start = False
        if char in "{[":
            yield from self._plain_value()

    def _go_on(self) -> Reads[None]:
        """Inside a line, where only marks begin a block, and a colon that announces one."""
        src = self._src
        found = (_IN_CODE if self._code else _NEXT).search(src.buf, src.pos)
        spot = found.start() if found else len(src.buf)
        self._say(src.buf[src.pos : spot])
        src.pos = spot
        if found is None:
            yield
            return
        mark = found.group()
        if mark in "`｀" and (yield from self._fence(line_start=False)):
            return
        if mark == "<" and (yield from self._tag(line_start=False)):
            return
        if mark == "[" and (yield from self._token()):
            return
        if src.pos < len(src.buf):
            self._say(src.buf[src.pos])
            src.pos += 1
        if mark == "\n":
            self._line_start = True
            self._code = 0
        elif mark in ":：":
            lead = self._lead()
            line = lead[lead.rfind("\n") + 1 :]
            self._barrier = self._barrier or (len(line) < 60 and names_a_result(line))
            spot = _BLANKS.match(src.buf, src.pos).end()  # type: ignore[union-attr]
            self._say(src.buf[src.pos : spot])
            src.pos = spot
            while src.pos == len(src.buf) and not src.final:
                yield
                spot = _BLANKS.match(src.buf, src.pos).end()  # type: ignore[union-attr]
                self._say(src.buf[src.pos : spot])
                src.pos = spot
            after_key = line[-2:-1] in ('"', "'", "”")
            if src.pos < len(src.buf) and not after_key and src.buf[src.pos] not in "\n<`｀:：":
                yield from self._bare(after_colon=True)

    def _plain_value(self) -> Reads[None]:
        """Let an object or list that is not for us pass whole: what stands inside it is data.

        A blank line or a fence ends it too, so that a lone bracket hides nothing.
        """
        src = self._src
        depth = 0
        quoted = False
        while True:
            found = _BRACKET.search(src.buf, src.pos)
            spot = found.start() if found else len(src.buf)
            self._say(src.buf[src.pos : spot])
            src.pos = spot
            if found is None:
                if src.final:
                    return
                yield
                continue
            mark = found.group()
            if mark == "\n":
                yield from src.need(4)
                if _VALUE_END.match(src.buf, src.pos):
                    return
            if mark == '"':
                quoted = not quoted
            elif not quoted:
                depth += (mark in "{[") - (mark in "}]")
            self._say(src.buf[src.pos : src.pos + len(mark)])
            src.pos += len(mark)
            if depth <= 0 and not quoted:
                return

    def _to_line_end(self) -> Reads[None]:
        """Let a quoted line pass as it is."""
        src = self._src
        while True:
            end = src.buf.find("\n", src.pos)
            upto = len(src.buf) if end < 0 else end
            self._say(src.buf[src.pos : upto])
            src.pos = upto
            if end >= 0 or src.final:
                return
            yield

    # --- what begins a block

    def _fence(self, *, line_start: bool, label: int = 0) -> Reads[bool]:
        """Take a run of backticks and what it opens; False if it opens nothing here.

        `label` is the length of a label just read, which belongs to the block if there is one.
        """
        src = self._src
        marks = _RUN.match(src.buf, src.pos)
        while marks and marks.end() == len(src.buf) and not src.final and len(marks.group()) < 40:
            yield
            marks = _RUN.match(src.buf, src.pos)
        if marks is None:
            return False
        mark, width = marks.group()[0], len(marks.group())
        if mark in "~'" and (width < 3 or not line_start):
            return False
        start = src.offset
        if width >= 40 or (width < 3 and not (width == 2 and line_start)) or self._code:
            self._inline_code(marks.group())
            return True
        if not label:
            src.mark()
        src.pos = marks.end()
        if (yield from self._fenced(start - label, mark, width)):
            self._line_start = False
        else:
            src.rewind(start)
            self._say(src.since(start - label))
            src.release()
            if width < 3 or mark == "'":
                self._inline_code(marks.group())
            else:
                yield from self._plain_fence(mark, width)
        src.release()
        return True

    def _fenced(self, start: int, mark: str, width: int) -> Reads[bool]:
        """Read the fence whose marks were just read as a block; False if it is text."""
        src = self._src
        info = yield from read_info(src)
        kind = fence_kind(info) if info is not None else FenceKind.OTHER
        if width < 3 or mark == "'":
            kind = kind if kind is FenceKind.CONTRACT else FenceKind.OTHER
        if kind is FenceKind.OTHER or self._is_shown():
            return False
        begins: Opening | bool = True
        if kind is FenceKind.DATA:
            begins = yield from peek_content(src, self._tools)
            # tags in a fence are more often an explanation: they must be all there is
            if begins is False or (begins is True and (self._said or self._calls)):
                return False
        block = yield from read_body(src, self._tools, mark, width, kind, begins)
        return self._take(block, src.since(start))

    def _inline_code(self, marks: str) -> None:
        self._say(marks)
        self._src.pos += len(marks)
        self._line_start = False
        if marks[0] == "`" and self._code in (0, len(marks)):
            self._code = 0 if self._code else len(marks)

    def _plain_fence(self, mark: str, width: int) -> Reads[None]:
        """Let a code block pass as it is, to its closing line, or to its end on the same line."""
        src = self._src
        self._over = self._over or self._aside is not None  # more than prose between two blocks
        self._line_start = False
        self._say(mark * width)
        src.pos += width
        closing, begun = _closing_lines(mark, width)
        first = True
        while True:
            ends = None if first else closing.match(src.buf, src.pos)
            if ends and (ends[1] or src.final):
                self._say(ends.group())
                src.pos = ends.end()
                return
            if not first and not src.final and begun.match(src.buf, src.pos):
                yield
                continue
            while True:
                end = src.buf.find("\n", src.pos)
                upto = len(src.buf) if end < 0 else end + 1
                inline = src.buf.find(mark * width, src.pos, upto) if first else -1
                if inline >= 0:
                    upto = inline + width
                elif first and end < 0 and not src.final:
                    upto = max(src.pos, upto - width)
                self._say(src.buf[src.pos : upto])
                src.pos = upto
                if inline >= 0:
                    return
                if end >= 0:
                    break
                if src.final:
                    return
                yield
            first = False

    def _tag(self, *, line_start: bool) -> Reads[bool]:
        """Take a tag that means something, with what it opens; False: it is text."""
        src = self._src
        tag = yield from peek_known_tag(src, self._tools)
        if tag is None:
            return False
        name = tag.name
        if name in tags.THINKING:
            if tag.closing:
                return self._retract(tag)
            if self._said and not line_start:
                return False
            src.pos += tag.width
            yield from self._think()
        elif name in tags.QUOTING:
            if tag.closing:
                return False
            yield from self._quoting(tag)
        elif name in tags.RESULTS:
            # no model can know what a tool gives: what follows rests on an invention
            src.pos += tag.width
            self._over = self._aside is not None
            self._barrier = True
        elif name in tags.TURNS:
            self._over = True
        elif name in tags.STOPS or name in tags.CLOSE or tag.closing:
            src.pos += tag.width
        elif name == "channel" and (yield from self._channel(tag)):
            pass
        elif self._is_shown():
            return False
        else:
            start = src.offset
            src.mark()
            block = yield from Region(src, self._tools).read(name)
            if not self._take(block, src.since(start)):
                if block.plain:  # the tag alone is text, what follows is read as usual
                    src.rewind(start + tag.width)
                self._say(src.since(start))
            src.release()
            self._line_start = False
        return True

    def _token(self) -> Reads[bool]:
        """Take `[TOOL_CALLS]` and the calls behind it, or `[THINK]` and the thinking."""
        src = self._src
        while not (found := _TOKEN.match(src.buf, src.pos)):
            rest = src.buf[src.pos : src.pos + 12]
            if src.final or not any(
                token.startswith(rest) for token in ("[TOOL_CALLS]", "[THINK]")
            ):
                return False
            yield
        if found.group() == "[THINK]":
            src.pos = found.end()
            yield from self._think()
            return True
        if self._is_shown():
            return False
        start = src.offset
        src.mark()
        block = yield from Region(src, self._tools).read("tool_calls")
        if not self._take(block, src.since(start)):
            self._say(src.since(start))
        src.release()
        return True

    def _bare(self, *, after_colon: bool) -> Reads[bool]:
        """Take a call that stands in lines of its own, or behind a colon to the line's end."""
        src = self._src
        while True:
            window = src.buf[src.pos : src.pos + WINDOW]
            begins = opening(window, self._tools, src.final)
            if begins is not None:
                break
            yield
        if not begins or (after_colon and begins is Opening.LABEL) or self._is_shown():
            return False
        start = src.offset
        src.mark()
        width = name_label(window) if begins is Opening.LABEL else 0
        if width and window[width : width + 3] == "```":
            src.pos += width
            return (yield from self._fence(line_start=True, label=width))
        block = yield from read_line(src, begins, self._tools)
        if after_colon:
            for found in block.found:
                found.repairs["inline"] = None
        if not self._take(block, src.since(start)):
            self._say(src.since(start))
        src.release()
        self._line_start = False
        return True

    # --- thinking and quoting

    def _think(self) -> Reads[None]:
        """Set aside everything up to the end of the thinking; to the end of the reply if none."""
        src = self._src
        while True:
            found = _THOUGHT_END.search(src.buf, src.pos)
            upto = found.start() if found else len(src.buf)
            if not found and not src.final:
                upto = max(src.pos, upto - 32)  # the end's first characters may be here
            self._thought.append(src.buf[src.pos : upto])
            src.pos = found.end() if found else upto
            if found or src.final:
                self._line_start = True
                return
            yield

    def _retract(self, tag: Tag) -> bool:
        """A lone `</think>`: in the opening it says that what came before was thinking."""
        said = "".join(self._said)
        if len(said) > HOLD_CHARACTERS or self._calls or self._broken:
            return False
        self._src.pos += tag.width
        self._thought.append(said)
        self.retracted = bool(said)
        self._said.clear()
        self._recent.clear()
        self._blank = ""
        self._line_start = True
        return True

    def _quoting(self, tag: Tag) -> Reads[None]:
        """Let an `<example>` pass as it is."""
        src = self._src
        close = f"</{tag.name}>"
        self._say(src.buf[src.pos : src.pos + tag.width])
        src.pos += tag.width
        while True:
            end = src.buf.find(close, src.pos)
            upto = end + len(close) if end >= 0 else len(src.buf)
            if end < 0 and not src.final:
                upto = max(src.pos, upto - len(close) + 1)
            self._say(src.buf[src.pos : upto])
            src.pos = upto
            self._line_start = False
            if end >= 0 or src.final:
                return
            yield

    def _channel(self, tag: Tag) -> Reads[bool]:
        """Take the header of a gpt-oss message; False if it addresses a tool."""
        src = self._src
        while not (header := _CHANNEL.match(src.buf, src.pos)):
            if src.final or len(src.buf) - src.pos > 160:
                src.pos += tag.width
                return True
            yield
        if "to=" in header[1]:
            return False
        src.pos = header.end()
        self._line_start = True
        if header[1].strip().startswith("analysis"):
            yield from self._think()
        return True

    def _is_shown(self) -> bool:
        """Whether a block here is shown, not meant. In a batch that is its end."""
        if self._barrier:
            return True
        if self._aside is None:
            return is_quoted(self._lead())
        self._over = self._over or names_a_result(self._aside) or is_quoted(self._aside)
        return self._over

    # --- what leaves

    def _take(self, block: Block, raw: str) -> bool:
        """Judge a block and keep what it comes to; False if it is text."""
        verdict = self._judge.block(block, raw, cut_off=self._cut_off)
        if verdict.is_text:
            return False
        if verdict.answer is not None:
            self._no_tool = True
            if self._said and verdict.answer:
                self._blank = self._blank or "\n"
            self._say(verdict.answer)
        self._broken += verdict.broken
        for accepted in verdict.calls:
            self._call(accepted)
        self._aside = ""
        return True

    def _call(self, accepted: Accepted) -> None:
        arguments = canonical_json(accepted.arguments)
        key = (accepted.name, arguments)
        if key in self._seen or len(self._calls) >= MAX_CALLS:
            return
        self._seen.add(key)
        parts = [self._position, len(self._calls), accepted.name, arguments]
        text = canonical_json(parts).encode("utf-8", "surrogatepass")
        call = ToolCall(
            f"call_{hashlib.sha256(text).hexdigest()[:12]}",
            accepted.name,
            accepted.arguments,
            accepted.confidence,
            accepted.repairs,
        )
        self._calls.append(call)
        self._events.append(CallReady(call))

    def _lead(self) -> str:
        """The last characters of text before the place where we are."""
        lead = "".join(self._recent)[-LEAD:]
        self._recent = [lead]
        return lead

    def _say(self, text: str) -> None:
        """Text that is for people: out it goes; inside a batch it is dropped and counted."""
        if not text or self._over:
            return
        if self._aside is not None:
            self._aside += text
            self._over = len(self._aside.strip()) > BATCH_PROSE
            return
        self._recent.append(text)
        body = text.rstrip(_WHITE)
        if not self._said:
            body = body.lstrip(_WHITE)
        elif body:
            body = self._blank + body
        if body:
            self._said.append(body)
            self._events.append(TextDelta(body))
            self._blank = ""
        if self._said:
            self._blank += text[len(text.rstrip(_WHITE)) :]
