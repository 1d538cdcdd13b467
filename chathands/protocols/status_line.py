"""How a result ended, in protocols that have no word for it: a first line of its content.

Written for whoever reads the wire, and read back only where we wrote it: in a client's result such
a line is foreign text like the rest.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import replace

from chathands.conversation import Part, Status, TextPart, ToolResult, joined_text

_LINE = re.compile(r"\[status=(?P<status>failed|denied|unknown)\](?:\n|\Z)")


def read_status(result: ToolResult, spoken: Collection[Status]) -> ToolResult:
    """The result without its status line, and with that status, if it is one of `spoken`."""
    found = _LINE.match(result.content)
    if found is None or Status(found["status"]) not in spoken:
        return result
    parts = result.parts
    if parts:
        first = parts[0]
        if not isinstance(first, TextPart) or first.extra or not _LINE.fullmatch(first.text):
            return result
        parts = parts[1:]
    content = joined_text(parts) if parts else result.content[found.end() :]
    return replace(result, status=Status(found["status"]), content=content, parts=parts)


def with_status_line(result: ToolResult, spoken: Collection[Status]) -> ToolResult:
    """The reverse of `read_status`."""
    if result.status not in spoken:
        return result
    line = f"[status={result.status.value}]"
    parts: tuple[Part, ...] = (TextPart(line), *result.ordered) if result.parts else ()
    if not parts and not result.content:
        return replace(result, content=line)
    return replace(result, content=f"{line}\n{result.content}", parts=parts)
