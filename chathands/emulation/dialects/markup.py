"""Calls between tags and special tokens, of whichever model.

Three contents are told apart by their first character: JSON, a name followed by its arguments, and
elements with one element per argument. Wrappers are counted, not matched: models close
`<tool_call>` with `</function_call>`, or not at all.
"""

from __future__ import annotations

import re
from typing import Any, Final

from chathands.emulation.dialects import harmony, tags
from chathands.emulation.dialects.elements import Arguments, read_children, read_element, read_raw
from chathands.emulation.dialects.json_values import read_json
from chathands.emulation.dialects.tags import Tag, peek_tag
from chathands.emulation.dialects.values import found_in, read_call
from chathands.emulation.dialects.words import ARGUMENT_KEYS, plain_key
from chathands.emulation.reading_envelope import calls_in
from chathands.emulation.reading_found import MISSING, Block, Found
from chathands.emulation.reading_source import Reads, Source
from chathands.emulation.reading_tokens import OPENERS, State
from chathands.emulation.reading_tools import Tools
from chathands.limits import MAX_CALLS

_WORD: Final = re.compile(r"[^\s<{\[(（｛`]{1,200}")
_TOKEN: Final = re.compile(
    r"\[CALL_ID\]\w{0,40}|\[/?(?:TOOL_CALLS?|ARGS|END_TOOL_CALLS?|TOOL_CONTENT)\]", re.IGNORECASE
)
_NAME: Final = re.compile(r"[^\W\d][\w.\-/]{0,99}(?::\d{1,4})?")
_NOISE: Final = frozenset({"function", "json", "assistant", "commentary", "tool", "call", "action"})
"""Words that formats put between their tokens."""
_FENCE: Final = re.compile(r"`{3,8}(?:[ \t]*json\b)?", re.IGNORECASE)


class Region:
    """Reads from an opening tag, still ahead, to the end of what it opens."""

    def __init__(self, src: Source, tools: Tools) -> None:
        self._src = src
        self._tools = tools
        self._found: list[Found] = []
        self._open = 0
        self._name: str | None = None
        """A name that waits for its arguments."""
        self._arguments: Arguments | None = None
        """Arguments of that name, in elements of their own."""
        self._fields: dict[str, Any] = {}
        """Elements named after the parts of a call, `<name>x</name>`."""
        self._torn = False
        """The text ends inside a tag that would have opened another part."""

    def read(self, form: str) -> Reads[Block]:
        """The block; `plain` if nothing in the region reads like a call and the text goes on."""
        closed = yield from self._items()
        self._flush(over=closed)
        closed = closed and not (self._found and self._found[-1].state is State.CLOSERS)
        goes_on = closed or (yield from self._src.need(1))
        plain = not self._found and not closed and goes_on
        return Block(self._found, form, marked=True, closed=goes_on, plain=plain)

    def _items(self) -> Reads[bool]:
        """Whether the region was closed, or is over since something else begins."""
        src = self._src
        while len(self._found) < MAX_CALLS:
            if not (yield from src.skip_space()):
                return False
            char = src.buf[src.pos]
            if char in "[`":
                yield from src.need(64)
            if char == "<":
                over = yield from self._tag()
                if over is not None:
                    return over
            elif token := _TOKEN.match(src.buf, src.pos):
                src.pos = token.end()
                self._open = max(self._open, 1)
            elif char in OPENERS or char == '"':
                if not (yield from self._value()):
                    return False
            elif fence := _FENCE.match(src.buf, src.pos):
                src.pos = fence.end()
            elif char in ",;":
                src.pos += 1
            elif not (yield from self._text()):
                return bool(self._found)
        return True

    def _tag(self) -> Reads[bool | None]:
        """Take one tag with what belongs to it; True or False: the region ends, closed or not."""
        src = self._src
        tag = yield from peek_tag(src)
        if tag is None:
            if tags.is_begun(src):
                self._torn = not src.buf.startswith("</", src.pos)
                src.pos = len(src.buf)
                return False
            return bool(self._found)
        name = tag.name
        if tag.closing or name in tags.CLOSE:
            src.pos += tag.width
            self._flush()
            self._open -= 1
            return True if self._open <= 0 else None
        named = tag.value and (name in tags.ELEMENTS or self._tools.find(tag.value) is not None)
        if named or self._tools.find(name):
            self._found.append((yield from read_element(src, self._tools, tag)))
            return True if self._open <= 0 else None
        if self._name is not None and name in harmony.NAMES:
            src.pos += tag.width  # `to=functions.x<|channel|>commentary`
            return None
        if name in tags.OPEN or name in ("function", "invoke", *harmony.NAMES):
            src.pos += tag.width
            self._flush()
            # behind a call, another opener means that the first one was never closed
            self._open = 1 if self._found and name == "function_call" else self._open + 1
            return None
        if name in tags.SEPARATORS:
            src.pos += tag.width
            return None
        if name in tags.RESULTS or name in tags.STOPS or name in tags.TURNS or not self._open:
            return bool(self._found)
        yield from self._part(tag)
        return None

    def _part(self, tag: Tag) -> Reads[None]:
        """`<arg_key>`, `<parameter=…>`; `<name>`, `<arguments>`: parts of a call by name."""
        src = self._src
        if tag.name in ("arg_key", "arg_value") or tag.name in tags.PARAMETERS:
            if self._arguments is None:
                self._arguments = Arguments(src, self._tools, self._name)
            if not (yield from self._arguments.take(tag)):
                self._lose(self._name, self._arguments.cut or "")
            return
        src.pos += tag.width
        holds_all = plain_key(tag.name) in ARGUMENT_KEYS
        if holds_all and (yield from src.skip_space()) and src.buf[src.pos] == "<":
            inner = yield from peek_tag(src)
            if inner is not None and not inner.closing:
                self._fields[tag.name] = yield from read_children(src)
                return
        value = yield from read_raw(src, tag.name, {})
        if value is None:
            named = self._fields.get("name") or self._fields.get("tool_name") or self._name
            self._lose(named, tag.name)
        else:
            self._fields[tag.name] = value

    def _lose(self, name: str | None, part: str) -> None:
        """The text ends inside this part of a call."""
        self._found.append(Found(name, None, State.CUT, ("cut", part)))
        self._name, self._arguments, self._fields = None, None, {}

    def _value(self) -> Reads[bool]:
        """Take a JSON value: whole calls, or the arguments of the name before it."""
        before = self._src.offset
        read = yield from read_json(self._src, self._tools)
        # an argument may be called `operation` or `name`: only a declared name makes it a call
        is_arguments = isinstance(read.value, dict | list) and not any(
            self._tools.find(found.name or "") for found in calls_in(read.value, self._tools)
        )
        if self._name is not None and is_arguments:
            self._found.append(Found(self._name, read.value, read.state, read.detail, read.repairs))
        else:
            self._found += found_in(read, self._tools)
        self._name = None
        return self._src.offset > before and read.state is State.WHOLE

    def _text(self) -> Reads[bool]:
        """Take a name that stands as text; False when this is no part of a call."""
        src = self._src
        while True:
            word = _WORD.match(src.buf, src.pos)
            if word is None:
                return False
            if word.end() < len(src.buf) or src.final or word.end() - src.pos >= 200:
                break
            yield
        name = word.group().removeprefix("call:").removeprefix("to=").rstrip(",;:")
        after = src.buf[word.end() : word.end() + 1]
        if after == "(":
            found, state = yield from read_call(src, self._tools)
            self._found += found
            return state is State.WHOLE
        known = self._tools.find(name) is not None
        if known:
            self._flush()
        else:
            ahead = word.end() - src.pos
            yield from src.need(ahead + 4)
            after = src.buf[src.pos + ahead : src.pos + ahead + 4].lstrip()[:1]
        waits = self._open > 0 and self._name is None and after in ("{", "<")
        if known or (waits and name not in _NOISE and _NAME.fullmatch(name)):
            self._name = name
        elif name and name.lower() not in _NOISE:
            return False
        src.pos += len(word.group())
        return True

    def _flush(self, *, over: bool = True) -> None:
        """A wrapper ends, or else the text: what waited for more gets no more."""
        if self._name is not None or self._arguments is not None:
            arguments = self._arguments.given if self._arguments else self._fields.get("arguments")
            if arguments is None and self._fields:
                arguments = self._fields  # elements nobody knows never make a call without any
            found = Found(self._name, MISSING if arguments is None else arguments, text_values=True)
            if self._arguments:
                found.repairs.update(self._arguments.repairs)
            if not over:
                torn = self._torn or (self._arguments is not None and self._arguments.waits)
                found.state = State.CUT if torn else State.CLOSERS
            self._found.append(found)
        elif self._fields:
            for found in calls_in(self._fields, self._tools):
                found.text_values = True
                self._found.append(found)
        self._name, self._arguments, self._fields = None, None, {}
