"""Tags and special tokens: `<tool_call>`, `<function=name>`, `<｜tool▁calls▁begin｜>`."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Final

from chathands.emulation.dialects.data import load
from chathands.emulation.reading_source import Reads, Source
from chathands.emulation.reading_tools import Tools

_DATA: Final[dict[str, Any]] = load("markers.json")
OPEN: Final = frozenset(_DATA["open"])
CLOSE: Final = frozenset(_DATA["close"])
SEPARATORS: Final = frozenset(_DATA["separators"])
ELEMENTS: Final = frozenset(_DATA["elements"])
PARAMETERS: Final = frozenset(_DATA["parameters"])
RESULTS: Final = frozenset(_DATA["results"])
THINKING: Final = frozenset(_DATA["thinking"])
QUOTING: Final = frozenset(_DATA["quoting"])
STOPS: Final = frozenset(_DATA["stops"])
TURNS: Final = frozenset(_DATA["turns"])
KNOWN: Final = frozenset().union(
    OPEN, CLOSE, ELEMENTS, RESULTS, THINKING, QUOTING, STOPS, TURNS, {"channel", "start"}
)
"""Tags that mean something where prose stands."""
_WORDS: Final = KNOWN | PARAMETERS | SEPARATORS | {"arg_key", "arg_value"}
_ONLY_SPECIAL: Final = (
    STOPS
    | TURNS
    | CLOSE
    | {"channel", "start", "plugin", "calls", "start_thinking", "begin_of_thought"}
) - {"s"}
"""Too common as words: these only as `<|…|>`."""

SURE: Final = (OPEN - {"calls", "functions", "plugin", "tool_use", "tool_uses"}) | {"invoke"}
"""No document has these for anything but calls."""

LONGEST: Final = 240
"""Characters of a tag, attributes and all."""

_SPACES: Final = ("minimax", "seed", "antml", "steptml", "ns")
"""Name spaces that models put before these names."""
_VALUE: Final = r"""(?:"[^"\n<>]*"|'[^'\n<>]*'|[^\s<>"'/|｜]+)"""
_TAG: Final = re.compile(
    r"<\s?(?P<bar>[|｜]?)(?P<close>/?)(?P<bar2>[|｜]?)"
    rf"(?:DSML[|｜]\s?|(?:{'|'.join(_SPACES)}):|longcat_)?(?P<name>[\w▁.\-]{{1,80}})"
    rf"(?:\s?=\s?(?P<value>{_VALUE}))?"
    rf"(?P<attributes>(?:\s+[\w:.\-]{{1,60}}\s*=\s*{_VALUE})*)\s*(?P<bar3>[|｜]?)(?P<self>/?)[|｜]?>"
)
_ATTRIBUTE: Final = re.compile(rf"([\w:.\-]{{1,60}})\s*=\s*({_VALUE})")
_BEGUN: Final = re.compile(
    r"<\s?[|｜]?/?[|｜]?(?P<name>(?:DSML[|｜]\s?)?[\w▁.\-:]{0,80})(?P<more>[\s=|｜/][^<>]*)?\Z"
)


@dataclass(slots=True)
class Tag:
    """One tag as it stands at a source's place."""

    name: str
    width: int
    closing: bool = False
    special: bool = False
    """It is a special token, `<|…|>`."""
    whole: bool = False
    """It closes itself: `<get_time/>`."""
    value: str = ""
    """`x` of `<function=x>`, or of `<invoke name="x">`."""
    attributes: tuple[tuple[str, str], ...] = ()


def peek_tag(src: Source) -> Reads[Tag | None]:
    """The tag that begins at the source's place, which is not left; None if it is none."""
    while True:
        found = _TAG.match(src.buf, src.pos)
        if found is not None:
            return _tag(found)
        rest = len(src.buf) - src.pos
        if src.final or rest >= LONGEST or not _BEGUN.match(src.buf, src.pos):
            return None
        yield


def is_begun(src: Source) -> bool:
    """Whether the text ends inside a tag that begins at the source's place."""
    return src.final and _BEGUN.match(src.buf, src.pos) is not None


def peek_known_tag(src: Source, tools: Tools) -> Reads[Tag | None]:
    """The same where prose stands: waits only while it may become a tag that means something."""
    while True:
        found = _TAG.match(src.buf, src.pos)
        if found is not None:
            tag = _tag(found)
            if tag is None or (tag.name in _ONLY_SPECIAL and not tag.special):
                return None
            return tag if tag.name in KNOWN or (tools.leads(tag.name) and not tag.closing) else None
        begun = _BEGUN.match(src.buf, src.pos)
        if src.final or begun is None or len(src.buf) - src.pos >= LONGEST:
            return None
        name = _plain(begun["name"]).removeprefix("dsml|").lstrip().removeprefix("longcat_")
        known = name in KNOWN or tools.leads(name) if begun["more"] else _may_become(name, tools)
        if not known:
            return None
        yield


def _may_become(name: str, tools: Tools) -> bool:
    """Whether a tag's name that goes on may be one of ours."""
    space, colon, local = name.partition(":")
    if colon:
        return space in _SPACES and any(known.startswith(local) for known in KNOWN)
    begun = (*_SPACES, "dsml|", "longcat_")
    return any(k.startswith(name) for names in (KNOWN, begun) for k in names) or tools.begins(name)


def _plain(name: str) -> str:
    return name.lower().replace("▁", "_").replace("｜", "|")


def _tag(found: re.Match[str]) -> Tag | None:
    width = found.end() - found.start()
    if width > LONGEST:
        return None
    name = _plain(found["name"])
    attributes = tuple((m[1], m[2].strip("\"'")) for m in _ATTRIBUTE.finditer(found["attributes"]))
    value = (found["value"] or "").strip("\"'")
    if not value:
        value = next((v for k, v in attributes if k.lower() in ("name", "tool", "function")), "")
    return Tag(
        name if name in _WORDS else found["name"],  # a tool or argument keeps its own spelling
        width,
        # Gemma opens with `<|name>` and closes with `<name|>`
        closing=bool(found["close"] or (found["bar3"] and not found["bar"])),
        special=bool(found["bar"] or found["bar2"] or found["bar3"]),
        whole=bool(found["self"]),
        value=value,
        attributes=attributes,
    )
