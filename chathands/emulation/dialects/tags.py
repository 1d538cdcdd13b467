"""Tags and special tokens: `<tool_call>`, `<function=name>`, `<｜tool▁calls▁begin｜>`, `[TOOL_CALLS]`."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from importlib.resources import files
from typing import Any, Final

from chathands.emulation.reading_source import Reads, Source
from chathands.emulation.reading_tools import Tools

_DATA: Final[dict[str, Any]] = json.loads(
    files(__package__).joinpath("markers.json").read_text(encoding="utf-8")
)
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
    OPEN, CLOSE, ELEMENTS, RESULTS, THINKING, QUOTING, STOPS, TURNS, {"channel"}
)
"""Tags that mean something where prose stands."""
_WORDS: Final = KNOWN | PARAMETERS | SEPARATORS | {"arg_key", "arg_value"}
_ONLY_SPECIAL: Final = (STOPS | TURNS | CLOSE | {"channel", "plugin"}) - {"s"}
"""Too common as words: these only as `<|…|>`."""

LONGEST: Final = 240
"""Characters of a tag, attributes and all."""

_ATTRIBUTE: Final = r"""[\w:.\-]{1,60}\s*=\s*(?:"[^"\n<>]*"|'[^'\n<>]*'|[^\s<>"'/|｜]+)"""
_TAG: Final = re.compile(
    r"<\s?(?P<bar>[|｜]?)(?P<close>/?)[|｜]?(?:DSML[|｜]|(?P<space>[a-zA-Z]\w{0,19}):)?(?P<name>[\w▁.\-]{1,80})"
    r"""(?:\s?=\s?(?P<value>"[^"\n<>]*"|'[^'\n<>]*'|[^\s<>"'/|｜]+))?"""
    rf"(?P<attributes>(?:\s+{_ATTRIBUTE})*)\s*[|｜]?(?P<self>/?)[|｜]?>"
)
_ATTRIBUTES: Final = re.compile(
    r"""([\w:.\-]{1,60})\s*=\s*(?:"([^"\n]*)"|'([^'\n]*)'|([^\s<>"'/|｜]+))"""
)
_BEGUN: Final = re.compile(
    r"<\s?[|｜]?/?[|｜]?(?P<name>(?:DSML[|｜])?[\w▁.\-]{0,80}(?::[\w▁.\-]{0,80})?)(?P<more>[\s=|｜/][^<>]*)?\Z"
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


def peek_known_tag(src: Source, tools: Tools) -> Reads[Tag | None]:
    """The same where prose stands: waits only while it may become a tag that means something."""
    while True:
        found = _TAG.match(src.buf, src.pos)
        if found is not None:
            tag = _tag(found)
            if tag.special or tag.name not in _ONLY_SPECIAL:
                return (
                    tag if tag.name in KNOWN or (tools.find(tag.name) and not tag.closing) else None
                )
            return None
        begun = _BEGUN.match(src.buf, src.pos)
        rest = len(src.buf) - src.pos
        if src.final or begun is None or rest >= LONGEST:
            return None
        name = _plain(begun.group("name")).removeprefix("dsml|")
        if begun.group("more"):
            if name not in KNOWN and tools.find(name) is None:
                return None
        elif rest > 80 or not _may_become(name, tools):
            return None
        yield


def _may_become(name: str, tools: Tools) -> bool:
    space, colon, local = name.rpartition(":")
    if colon:
        return len(space) <= 20 and (not local or any(k.startswith(local) for k in KNOWN))
    return (
        "dsml|".startswith(name)
        or any(known.startswith(name) for known in KNOWN)
        or any(spaced.startswith(name) for spaced in _SPACES)
        or tools.begins(name)
    )


_SPACES: Final = ("minimax:", "seed:", "antml:", "steptml:", "ns:")


def _plain(name: str) -> str:
    return name.lower().replace("▁", "_").replace("｜", "|")


def _tag(found: re.Match[str]) -> Tag:
    name = _plain(found["name"])
    attributes = tuple(
        (m[1], next(g for g in m.groups()[1:] if g is not None))
        for m in _ATTRIBUTES.finditer(found["attributes"])
    )
    value = (found["value"] or "").strip("\"'")
    if not value:
        value = next((v for k, v in attributes if k.lower() in ("name", "tool", "function")), "")
    if name not in _WORDS:
        name = found["name"]  # a tool or an argument keeps its own spelling
    return Tag(
        name,
        found.end() - found.start(),
        bool(found["close"]),
        bool(found["bar"]),
        bool(found["self"]),
        value,
        attributes,
    )
