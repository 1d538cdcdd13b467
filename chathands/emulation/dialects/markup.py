"""Calls between tags and special tokens, of whichever model.

Three contents are told apart by their first character: JSON, a name followed by its arguments, and
elements with one element per argument. Wrappers are counted, not matched: models close `<tool_call>`
with `</function_call>`, or not at all.
"""

from __future__ import annotations

import re
from typing import Any, Final

from chathands.emulation.dialects import tags
from chathands.emulation.dialects.json_values import read_json
from chathands.emulation.dialects.lines import found_in, read_call
from chathands.emulation.dialects.tags import Tag, peek_tag
from chathands.emulation.dialects.words import ARGUMENT_KEYS, NAME_KEYS, plain_key
from chathands.emulation.reading_envelope import calls_in
from chathands.emulation.reading_found import MISSING, Block, Found
from chathands.emulation.reading_source import Reads, Source
from chathands.emulation.reading_strings import without_entities
from chathands.emulation.reading_tokens import OPENERS, SPACE, State
from chathands.emulation.reading_tools import Tools
from chathands.limits import MAX_CALLS

_WORD: Final = re.compile(r"[^\s<{\[(（｛`]{1,200}")
_TOKEN: Final = re.compile(
    r"\[/?(?:TOOL_CALLS?|ARGS|CALL_ID|END_TOOL_CALLS?|TOOL_CONTENT)\]", re.IGNORECASE
)
_NOISE: Final = frozenset(
    {"function", "json", "assistant", "commentary", "tool", "call", ",", ";", "```", "action"}
)
_FENCE: Final = re.compile(r"`{3,8}(?:[ \t]*json\b)?", re.IGNORECASE)
_CDATA: Final = re.compile(r"\s*<!\[CDATA\[(.*)\]\]>\s*", re.DOTALL)
_END_OF_VALUE: Final = re.compile(
    r"</?\s?[|｜]?(?:DSML[|｜]|\w{1,20}:)?(?:parameter|param|arg_value|arg_key|arg|argument|function|invoke|tool_call|"
    r"function_calls?)(?=[\s=>|｜])",
    re.IGNORECASE,
)


class Region:
    """Reads from an opening tag, still ahead, to the end of what it opens."""

    def __init__(self, src: Source, tools: Tools) -> None:
        self.src = src
        self._tools = tools
        self._found: list[Found] = []
        self._open = 0
        self._name: str | None = None
        """A name that waits for its arguments."""
        self._fields: dict[str, Any] = {}
        """Leaf elements and argument pairs that wait for the end of their wrapper."""

    def read(self, form: str) -> Reads[Block]:
        """The block; `plain` if nothing in the region reads like a call and the text goes on."""
        closed = yield from self._items()
        self._flush()
        closed = closed and not (self._found and self._found[-1].state is State.CLOSERS)
        goes_on = closed or (yield from self.src.need(1))
        plain = not self._found and not closed and goes_on
        return Block(self._found, form, marked=True, closed=goes_on, plain=plain)

    def _items(self) -> Reads[bool]:
        src = self.src
        while len(self._found) < MAX_CALLS:
            src.pos = SPACE.match(src.buf, src.pos).end()  # type: ignore[union-attr]
            if src.pos == len(src.buf):
                if src.final:
                    return False
                yield
                continue
            char = src.buf[src.pos]
            if char == "<":
                over = yield from self._tag()
                if over is not None:
                    return over
                continue
            if char in "[`":
                yield from src.need(16)
            token = _TOKEN.match(src.buf, src.pos)
            if token:
                src.pos = token.end()
                self._open = max(self._open, 1)
            elif char in OPENERS or char == '"':
                before = src.offset
                yield from self._value()
                if src.offset == before or (
                    self._found and self._found[-1].state is not State.WHOLE
                ):
                    return False
            elif fence := _FENCE.match(src.buf, src.pos):
                src.pos = fence.end()
            elif not (yield from self._text()):
                return bool(self._found)
        return True

    def _tag(self) -> Reads[bool | None]:
        """Take one tag with what belongs to it; True or False: the region ends, closed or not."""
        src = self.src
        tag = yield from peek_tag(src)
        if tag is None:
            return bool(self._found)
        name = tag.name
        if tag.closing or name in tags.CLOSE:
            src.pos += tag.width
            self._flush()
            self._open -= 1
            return True if self._open <= 0 else None
        if (name in tags.ELEMENTS and tag.value) or self._tools.find(name):
            yield from self._element(tag)
            return True if self._open <= 0 else None
        if name in tags.OPEN or name in ("function", "invoke", "channel"):
            src.pos += tag.width
            self._flush()
            # a second opener with none closed between: the first one was never closed
            self._open = 1 if self._found and name == "function_call" else self._open + 1
            return None
        if name in tags.SEPARATORS:
            src.pos += tag.width
            return None
        if name in tags.RESULTS or name in tags.STOPS or name in tags.TURNS or not self._open:
            return bool(self._found)
        yield from self._leaf(tag)
        return None

    # --- elements

    def _element(self, tag: Tag) -> Reads[None]:
        """`<function=name>…</function>`, `<invoke name="name">…`, `<name>…</name>`."""
        src = self.src
        src.pos += tag.width
        is_tool = tag.name not in tags.ELEMENTS
        found = Found(tag.name if is_tool else tag.value, text_values=True)
        given = {k: v for k, v in tag.attributes if is_tool or plain_key(k) not in NAME_KEYS}
        found.arguments = given or MISSING
        self._found.append(found)
        if tag.whole:
            return
        text = ""
        while True:
            if not text:
                src.pos = SPACE.match(src.buf, src.pos).end()  # type: ignore[union-attr]
            if src.pos == len(src.buf):
                if src.final:
                    found.state = State.CUT if text or not given else State.CLOSERS
                    found.detail = ("cut", "")
                    break
                yield
                continue
            if src.buf[src.pos] == "<":
                inner = yield from peek_tag(src)
                if inner is None:
                    found.state = State.BROKEN
                    found.detail = ("unexpected", tag.name)
                    break
                if not (yield from self._inner(inner, found, given)):
                    break
            elif src.buf[src.pos] == "{" and not given and not text:
                read = yield from read_json(src, self._tools)
                found.arguments, found.state, found.detail = read.value, read.state, read.detail
                found.repairs.update(read.repairs)
                if read.state is not State.WHOLE:
                    return
            else:
                text += yield from _until_tag(src)
        if given:
            found.arguments = given
        elif text.strip() and found.arguments is MISSING:
            found.arguments = text

    def _inner(self, tag: Tag, found: Found, given: dict[str, Any]) -> Reads[bool]:
        """Take a tag inside an element, with the argument it holds; False at the element's end."""
        src = self.src
        holds_all = plain_key(tag.name) in ARGUMENT_KEYS and tag.name not in tags.PARAMETERS
        if holds_all and not tag.value and tag.name not in self._properties(found.name):
            src.pos += tag.width
            return True
        if tag.closing:
            if tag.name in tags.OPEN:
                found.repairs["missing_closer"] = None
            else:
                src.pos += tag.width
            return False
        if tag.name in tags.OPEN or (tag.name in tags.ELEMENTS and tag.value):
            found.repairs["missing_closer"] = None
            return False
        return (yield from self._argument(tag, found, given))

    def _properties(self, name: str | None) -> Any:
        spec = self._tools.find(name) if name else None
        return self._tools.schema(spec).properties if spec else ()

    def _argument(self, tag: Tag, found: Found, given: dict[str, Any]) -> Reads[bool]:
        """One argument of an element; False when the text ended inside it."""
        src = self.src
        src.pos += tag.width
        key = tag.value if tag.name in tags.PARAMETERS else tag.name
        value = yield from self._raw(tag.name, found.repairs) if not tag.whole else _nothing()
        if value is None:
            found.state = State.CUT
            found.detail = ("cut", key)
            return False
        if tag.name == "arg_key":
            src.pos = SPACE.match(src.buf, src.pos).end()  # type: ignore[union-attr]
            self._fields["arg_key"] = value
            return True
        if tag.name == "arg_value":
            key = self._fields.pop("arg_key", "")
        if not key:
            free = [name for name in self._properties(found.name) if name not in given]
            key = free[0] if free else ""
            found.repairs["positional"] = None
        given[key] = value
        return True

    def _raw(self, name: str, repairs: dict[str, None]) -> Reads[str | None]:
        """The text up to the closing tag, which is taken; None when the text ends before."""
        src = self.src
        body: list[str] = []
        known = name in tags.PARAMETERS or name in ("arg_value", "arg_key")
        proper = re.compile(
            rf"</\s?[|｜]?(?:DSML[|｜]|\w{{1,20}}:)?{re.escape(name)}\s?[|｜]?>", re.IGNORECASE
        )
        while True:
            at = src.buf.find("<", src.pos)
            if at < 0:
                body.append(src.buf[src.pos :])
                src.pos = len(src.buf)
                if src.final:
                    return None
                yield
                continue
            body.append(src.buf[src.pos : at])
            src.pos = at
            enough = yield from src.need(min(120, len(name) + 36))
            end = proper.match(src.buf, at if enough and src.pos == at else src.pos)
            if end:
                src.pos = end.end()
                return _trimmed("".join(body))
            if src.buf.startswith("<![CDATA[", src.pos):
                while (over := src.buf.find("]]>", src.pos)) < 0 and not src.final:
                    body.append(src.buf[src.pos : max(src.pos, len(src.buf) - 2)])
                    src.pos = max(src.pos, len(src.buf) - 2)
                    yield
                over = len(src.buf) if over < 0 else over + 3
                body.append(src.buf[src.pos : over])
                src.pos = over
                continue
            if known and _END_OF_VALUE.match(src.buf, src.pos):
                repairs["missing_closer"] = None
                return _trimmed("".join(body))
            body.append("<")
            src.pos += 1

    def _leaf(self, tag: Tag) -> Reads[None]:
        """`<name>x</name>`, `<arguments>…</arguments>`, `<arg_key>`: parts of a call by name."""
        src = self.src
        src.pos += tag.width
        if tag.name == "arg_key" or tag.name == "arg_value" or tag.name in tags.PARAMETERS:
            holder = Found(self._name)
            given = self._fields.setdefault("arguments", {})
            src.pos -= tag.width
            if not (yield from self._argument(tag, holder, given)):
                self._found.append(Found(self._name, given, State.CUT, holder.detail))
                self._name, self._fields = None, {}
            return
        if plain_key(tag.name) in ARGUMENT_KEYS:
            src.pos = SPACE.match(src.buf, src.pos).end()  # type: ignore[union-attr]
            if (yield from src.need(1)) and src.buf[src.pos] == "<":
                inner = yield from peek_tag(src)
                if inner is not None and not inner.closing:
                    self._open += 1
                    self._fields[tag.name] = yield from self._children(tag.name)
                    self._open -= 1
                    return
        value = yield from self._raw(tag.name, {})
        if value is None:
            named = self._fields.get("name") or self._fields.get("tool_name") or self._name
            self._found.append(Found(named, None, State.CUT, ("cut", tag.name)))
            self._name, self._fields = None, {}
        else:
            self._fields[tag.name] = value

    def _children(self, name: str) -> Reads[dict[str, str]]:
        src = self.src
        given: dict[str, str] = {}
        while True:
            src.pos = SPACE.match(src.buf, src.pos).end()  # type: ignore[union-attr]
            if not (yield from src.need(1)) or src.buf[src.pos] != "<":
                return given
            tag = yield from peek_tag(src)
            if tag is None:
                return given
            src.pos += tag.width
            if tag.closing:
                return given
            value = yield from self._raw(tag.name, {})
            if value is None:
                return given
            given[tag.value if tag.name in tags.PARAMETERS else tag.name] = value

    # --- values and names

    def _value(self) -> Reads[None]:
        read = yield from read_json(self.src, self._tools)
        if (
            self._name is not None
            and isinstance(read.value, dict | list)
            and not calls_in(read.value, self._tools)
        ):
            self._found.append(Found(self._name, read.value, read.state, read.detail, read.repairs))
            self._name = None
            return
        self._found += found_in(read, self._tools)
        self._name = None

    def _text(self) -> Reads[bool]:
        """A name that stands as text; False when this is no part of a call."""
        src = self.src
        while True:
            word = _WORD.match(src.buf, src.pos)
            if word is None:
                return False
            if word.end() < len(src.buf) or src.final or word.end() - src.pos >= 200:
                break
            yield
        name = word.group().removeprefix("call:").removeprefix("to=").rstrip(",;:")
        if src.buf[word.end() : word.end() + 1] == "(":
            found, state = yield from read_call(src, self._tools)
            self._found += found
            return state is State.WHOLE
        if self._tools.find(name) is not None:
            src.pos = word.end()
            self._flush()
            self._name = name
            return True
        if not name or name.lower() in _NOISE:
            src.pos = word.end()
            return True
        if self._open and self._name is None and src.buf[word.end() : word.end() + 1] in ("{", "<"):
            src.pos = word.end()
            self._name = name
            return True
        return False

    def _flush(self) -> None:
        """A wrapper ends: what waited for more gets no more."""
        if self._fields:
            if self._name is not None:
                self._found.append(
                    Found(self._name, self._fields.get("arguments", MISSING), text_values=True)
                )
            else:
                for found in calls_in(self._fields, self._tools):
                    found.text_values = True
                    self._found.append(found)
        elif self._name is not None:
            self._found.append(Found(self._name))
        self._name, self._fields = None, {}


def _until_tag(src: Source) -> Reads[str]:
    parts: list[str] = []
    while True:
        end = src.buf.find("<", src.pos)
        upto = len(src.buf) if end < 0 else end
        parts.append(src.buf[src.pos : upto])
        src.pos = upto
        if end >= 0 or src.final:
            return "".join(parts)
        yield


def _nothing() -> Reads[str]:
    return ""
    yield


def _trimmed(value: str) -> str:
    """An element's text without the line breaks that only lay out the tags."""
    cdata = _CDATA.fullmatch(value)
    if cdata:
        return cdata.group(1)
    if "\n" not in value.strip():
        value = value.strip()
    else:
        value = value.removeprefix("\r").removeprefix("\n")
        value = value[: len(value) - 1] if value.endswith("\n") else value
    return value if "<" in value or ">" in value else without_entities(value)
