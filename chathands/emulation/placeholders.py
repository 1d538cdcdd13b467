"""Arguments that are no values yet: `...`, `<city>`, `[在此填写通知内容]`, `your_api_key`.

A tool would take them as they stand and send them on. What the person wrote, or the schema lists,
is a value whatever it looks like.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

from chathands.conversation import Conversation, Role, ToolCall, ToolSpec
from chathands.emulation.prompts import load
from chathands.emulation.signature import one_line
from chathands.schema import compile_schema, plain_name

_DEPTH = 4
_SHOWN = 60


@cache
def _pattern(table: str, name: str) -> re.Pattern[str]:
    return re.compile(load("placeholders")[table][name], re.IGNORECASE)


def placeholder_in(
    call: ToolCall, spec: ToolSpec, conversation: Conversation | None, *, gaps: bool = True
) -> str | None:
    """The first argument that holds a placeholder, with what it holds; None when all are filled in.

    `gaps`: a text with a gap in it counts as well; off where a form to fill in was asked for.
    """
    known = compile_schema(spec.parameters).properties
    for path, text in _texts(call.arguments, ""):
        name = re.split(r"[.\[]", path, maxsplit=1)[0]
        found = _whole(text.strip(), path, known.get(name)) or (gaps and _gap(text))
        if found and not _listed(text, known.get(name)) and not _said(found, conversation):
            return f'`{path}` "{one_line(found, _SHOWN)}"'
    return None


def _texts(value: Any, path: str, depth: int = 0) -> Iterator[tuple[str, str]]:
    """Every text in the arguments, with where it stands."""
    if isinstance(value, str):
        yield path, value
    elif isinstance(value, Mapping) and depth < _DEPTH:
        for key, item in value.items():
            yield from _texts(item, f"{path}.{key}" if path else str(key), depth + 1)
    elif isinstance(value, list | tuple) and depth < _DEPTH:
        for at, item in enumerate(value):
            yield from _texts(item, f"{path}[{at}]", depth + 1)


def _whole(text: str, path: str, part: Any) -> str | None:
    """The text, if all of it is a placeholder."""
    for kind in ("dots", "form", "yours"):
        if _pattern("whole", kind).fullmatch(text):
            return text
    brackets = _pattern("whole", "brackets").fullmatch(text)
    if brackets is None:
        return None
    slot = next(filter(None, brackets.groups())).strip()
    name = plain_name(re.split(r"[.\]]", path.rstrip("]"))[-1])
    own = bool(name) and plain_name(slot) in (name, f"the{name}", f"{name}name")
    described = isinstance(part, Mapping) and slot in str(part.get("description", ""))
    words = _pattern("slot", "words").search(slot) or _pattern("slot", "ends").search(slot)
    return text if own or words or (described and not slot.isascii()) else None


def _gap(text: str) -> str | None:
    found = _pattern("composed", "gap").search(text)
    return found.group() if found else None


def _listed(text: str, part: Any) -> bool:
    """Whether the schema names this very value."""
    if not isinstance(part, Mapping):
        return False
    listed = [part.get("const"), part.get("default"), *(part.get("enum") or ())]
    return text in listed


def _said(found: str, conversation: Conversation | None) -> bool:
    """Whether a person or a result has it: dots only in quotes, since they end many sentences."""
    dots = _pattern("whole", "dots").fullmatch(found) is not None
    for message in conversation or ():
        if message.role not in (Role.USER, Role.TOOL, Role.SYSTEM):
            continue
        if dots and re.search(rf"[\"'“‘「`]{re.escape(found)}[\"'”’」`]", message.text):
            return True
        if not dots and found.casefold() in message.text.casefold():
            return True
    return False
