"""A call of a tool that nobody declared, in a form that hardly anything but a call has.

Elsewhere a name that is not declared makes its block text. Here the keys are exactly those of a
call, nothing else stands beside them, and whoever asks also knows that nothing else was said.
"""

from __future__ import annotations

import re
from typing import Any, Final

from chathands.emulation.lenient_json import LenientReader
from chathands.emulation.reading_source import Source, run
from chathands.emulation.reading_tokens import Hints, State
from chathands.limits import MAX_CALLS

PAIRS: Final = {"tool": "parameters", "name": "arguments"}
"""Key of the name → key of the arguments: the contract's form, and OpenAI's."""

_MARKS: Final = re.compile(
    r"\A\s*(?:`{2,}|~{3,}|'{3,})[^\n{\[]{0,40}\s*|\s*(?:`{2,}|~{3,}|'{3,})\s*\Z"
)
_HEAD: Final = re.compile(
    r"""\[?\s*\{\s*["'](?:tool["']\s*:\s*["']([^"'\n]{1,100})["']\s*,\s*["']parameters"""
    r"""|name["']\s*:\s*["']([^"'\n]{1,100})["']\s*,\s*["']arguments)["']\s*:\s*["']?\{"""
)
_NAME: Final = re.compile(r"[^\W\d][\w.\-]{0,99}")
_BETWEEN: Final = re.compile(r"[\s,;]*")


def called_in(raw: str) -> tuple[str, ...]:
    """The names in a block that is nothing but objects with the exact keys of a call; () if it is
    anything else. One that is not whole counts by its beginning."""
    text = _MARKS.sub("", raw)
    head = _HEAD.match(text)
    if head is None and "arguments" not in text and "parameters" not in text:
        return ()
    src = Source(text, final=True)
    names: list[str] = []
    while src.pos < len(src.buf) and len(names) < MAX_CALLS:
        reader = LenientReader(src, Hints())
        run(reader.read())
        if reader.state is not State.WHOLE:
            begun = head is not None and not names and reader.state is not State.EMPTY
            names = [head[1] or head[2]] if head is not None and begun else []
            break
        value = reader.value
        found = [_called(each) for each in (value if isinstance(value, list) else [value])]
        if not found or None in found:
            return ()
        names += [name for name in found if name is not None]
        src.pos = _BETWEEN.match(src.buf, src.pos).end()  # type: ignore[union-attr]
    return tuple(names) if all(_NAME.fullmatch(name) for name in names) else ()


def _called(value: Any) -> str | None:
    """The name in an object that has the keys of a call and no others."""
    if not isinstance(value, dict) or len(value) != 2:
        return None
    for name_key, given_key in PAIRS.items():
        name, given = value.get(name_key), value.get(given_key)
        written_out = isinstance(given, str) and given.lstrip().startswith("{")
        if isinstance(name, str) and (isinstance(given, dict) or written_out):
            return None if _is_schema(given) else name
    return None


def _is_schema(given: Any) -> bool:
    """Whether the arguments are a declaration of some: `{"type": "object", "properties": …}`."""
    return isinstance(given, dict) and "type" in given and "properties" in given
