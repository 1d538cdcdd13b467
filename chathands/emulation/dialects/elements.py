"""Elements of a call written with tags: one element per argument, its text taken as it is."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any, Final

from chathands.emulation.dialects import tags
from chathands.emulation.dialects.json_values import read_json
from chathands.emulation.dialects.tags import Tag, peek_tag
from chathands.emulation.dialects.words import ARGUMENT_KEYS, NAME_KEYS, plain_key
from chathands.emulation.reading_found import MISSING, Found
from chathands.emulation.reading_source import Reads, Source
from chathands.emulation.reading_strings import without_entities
from chathands.emulation.reading_tokens import State
from chathands.emulation.reading_tools import Tools

_SPACE_NAME: Final = r"(?:DSML[|｜]\s?|\w{1,20}:|longcat_)?"
_END_OF_VALUE: Final = re.compile(
    rf"</?\s?[|｜]?{_SPACE_NAME}(?:parameter|param|arg_value|arg_key|arg|argument|function|invoke|"
    r"tool_call|function_calls?)(?=[\s=>|｜])",
    re.IGNORECASE,
)
_CDATA_BEGIN: Final = "<![CDATA["
_CDATA: Final = re.compile(r"\s*<!\[CDATA\[(.*)\]\]>\s*", re.DOTALL)


@lru_cache(maxsize=256)
def _closing(name: str) -> re.Pattern[str]:
    return re.compile(rf"</\s?[|｜]?{_SPACE_NAME}{re.escape(name)}\s?[|｜]?>", re.IGNORECASE)


class Arguments:
    """Arguments as they come, element by element; `given` holds them as text."""

    def __init__(self, src: Source, tools: Tools, name: str | None) -> None:
        self.given: dict[str, Any] = {}
        self.repairs: dict[str, None] = {}
        self.cut: str | None = None
        """The argument the text ended in."""
        self.element = ""
        """The name of the element they stand in."""
        self._src = src
        self._key = ""
        spec = tools.find(name) if name else None
        self.schema = tools.schema(spec) if spec else None

    @property
    def waits(self) -> bool:
        """Whether a key came without its value."""
        return bool(self._key)

    def take(self, tag: Tag) -> Reads[bool]:
        """Take the element whose opening tag is ahead; False when the text ends inside it."""
        src = self._src
        src.pos += tag.width
        is_parameter = tag.name in tags.PARAMETERS
        key = tag.value if is_parameter else tag.name
        if tag.name == "arg_value":
            key, self._key = self._key, ""
        value = "" if tag.whole else (yield from read_raw(src, tag.name, self.repairs))
        if value == "" and is_parameter:  # `<param name="base" value="10"/>`
            value = next((without_entities(v) for k, v in tag.attributes if k == "value"), "")
        if value is None:
            self.cut = key
            return False
        if tag.name == "arg_key":
            self._key = value
            return True
        if not key:
            key = self._only_one_left()
            self.repairs["positional"] = None
        if self.given.get(key, value) != value:
            self.repairs["duplicate_key"] = None
        self.given[key] = value
        return True

    def _only_one_left(self) -> str:
        """The argument an element without a name must be; "" if it might be several."""
        if self.schema is None:
            return ""
        required = [name for name in self.schema.required if name not in self.given]
        free = required or [name for name in self.schema.properties if name not in self.given]
        return free[0] if len(free) == 1 else ""


def read_element(src: Source, tools: Tools, tag: Tag) -> Reads[Found]:
    """Read `<function=name>…</function>`, `<invoke name="name">…`, `<name>…</name>`."""
    src.pos += tag.width
    is_tool = tag.name not in tags.ELEMENTS and tag.name not in tags.OPEN
    found = Found(tag.name if is_tool else tag.value, text_values=True)
    arguments = Arguments(src, tools, found.name)
    arguments.element = tag.name
    given = arguments.given
    given.update((k, v) for k, v in tag.attributes if is_tool or plain_key(k) not in NAME_KEYS)
    text = ""
    over = tag.whole
    while not over:
        if not (yield from src.need(1) if text else src.skip_space()):
            found.state = State.CUT if text or not given else State.CLOSERS
            break
        if src.buf[src.pos] == "<":
            over = yield from _tag_inside(src, found, arguments)
        elif src.buf[src.pos] == "{" and not given and not text:
            read = yield from read_json(src, tools)
            found.arguments, found.state, found.detail = read.value, read.state, read.detail
            found.repairs.update(read.repairs)
            over = read.state is not State.WHOLE
        else:
            text += yield from _until_tag(src)
    found.repairs.update(arguments.repairs)
    if given:
        found.arguments = given
    elif text.strip() and found.arguments is MISSING:
        found.arguments = text
    return found


def _tag_inside(src: Source, found: Found, arguments: Arguments) -> Reads[bool]:
    """Take a tag inside an element, with the argument it holds; True at the element's end."""
    tag = yield from peek_tag(src)
    if tag is None:
        found.state = State.BROKEN
        found.detail = ("unexpected", found.name or "")
        return True
    holds_all = plain_key(tag.name) in ARGUMENT_KEYS and tag.name not in tags.PARAMETERS
    own = arguments.schema is not None and tag.name in arguments.schema.properties
    if holds_all and not tag.value and not own:
        src.pos += tag.width  # `<parameters>` around the arguments
        return False
    opens_next = tag.name in tags.OPEN or (tag.name in tags.ELEMENTS and tag.value)
    if tag.closing and (tag.name not in tags.OPEN or tag.name == arguments.element):
        src.pos += tag.width
        return True
    if tag.closing or opens_next:
        found.repairs["missing_closer"] = None
        return True
    if not (yield from arguments.take(tag)):
        found.state = State.CUT
        found.detail = ("cut", arguments.cut or "")
        return True
    return False


def read_children(src: Source) -> Reads[dict[str, str]]:
    """Read elements up to a closing tag, `<city>…</city></arguments>`, which is taken."""
    given: dict[str, str] = {}
    while True:
        if not (yield from src.skip_space()) or src.buf[src.pos] != "<":
            return given
        tag = yield from peek_tag(src)
        if tag is None:
            return given
        src.pos += tag.width
        value = None if tag.closing else (yield from read_raw(src, tag.name, {}))
        if value is None:
            return given
        given[tag.value if tag.name in tags.PARAMETERS else tag.name] = value


def read_raw(src: Source, name: str, repairs: dict[str, None]) -> Reads[str | None]:
    """The text up to the closing tag of this name, which is taken; None when the text ends before.

    The next argument or the end of the call ends it as well: then its own end was forgotten.
    """
    body: list[str] = []
    has_siblings = name in tags.PARAMETERS or name in ("arg_value", "arg_key")
    closing = _closing(name)
    while True:
        body.append((yield from _until_tag(src)))
        if not (yield from src.need(1)):
            return None
        yield from src.need(min(120, len(name) + 36))
        end = closing.match(src.buf, src.pos)
        if end:
            src.pos = end.end()
            return _trimmed("".join(body), exact=name in tags.PARAMETERS)
        if src.buf.startswith(_CDATA_BEGIN, src.pos):
            body.append((yield from _cdata(src)))
        elif has_siblings and _END_OF_VALUE.match(src.buf, src.pos):
            repairs["missing_closer"] = None
            return _trimmed("".join(body), exact=name in tags.PARAMETERS)
        else:
            body.append("<")
            src.pos += 1


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


def _cdata(src: Source) -> Reads[str]:
    parts: list[str] = []
    while True:
        end = src.buf.find("]]>", src.pos)
        over = end >= 0 or src.final
        upto = end + 3 if end >= 0 else len(src.buf) - (0 if over else 2)
        upto = max(upto, src.pos)
        parts.append(src.buf[src.pos : upto])
        src.pos = upto
        if over:
            return "".join(parts)
        yield


def _trimmed(value: str, *, exact: bool) -> str:
    """An element's text without the white space that only lays out the tags.

    `exact`: the format puts the value between two line breaks as it is, so that the indentation of
    a single line counts as well.
    """
    cdata = _CDATA.fullmatch(value)
    if cdata:
        return cdata.group(1)
    wrapped = value[:1] in ("\r", "\n") and value[-1:] == "\n"
    if "\n" not in value.strip() and not (exact and wrapped):
        value = value.strip()
    else:
        value = value.removeprefix("\r").removeprefix("\n").removesuffix("\n").removesuffix("\r")
    return value if "<" in value or ">" in value else without_entities(value)
