"""Content cut into parts of so many bytes, between lines where that is possible."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace

from .markdown import Line

_SENTENCE_ENDS = "。！？；\n，、,;. "

Size = Callable[[str], int]
Gap = Callable[[Line, Line], str]
"""What stands between two lines."""


def json_size(text: str) -> int:
    """Bytes the text takes inside a JSON body."""
    return len(json.dumps(text, ensure_ascii=False).encode("utf-8", "replace")) - 2


def byte_size(text: str) -> int:
    return len(text.encode("utf-8", "replace"))


def split(
    lines: Sequence[Line], budget: int, *, size: Size = json_size, gap: str = "\n\n"
) -> list[list[Line]]:
    """Parts of at most `budget` bytes; a line longer than that is cut. `gap` is the longest thing
    between two lines."""
    parts: list[list[Line]] = [[]]
    used = 0
    for line in [piece for whole in lines for piece in _pieces(whole, budget, size, gap)]:
        part = parts[-1]
        cost = size(line.text) + size(gap)
        closing = size(line.closer) + size(gap) if line.closer else 0
        if part and used + cost + closing > budget:
            if part[-1].closer:
                part.append(Line(part[-1].closer))
            part = []
            parts.append(part)
            used = 0
            if line.opener:
                part.append(Line(line.opener))
                used += size(line.opener) + size(gap)
        part.append(line)
        # List items stand closer, which a part may as well use.
        if len(part) > 1 and part[-2].item and line.item and gap == "\n\n":
            cost -= size("\n")
        used += cost
    return parts


def _pieces(line: Line, budget: int, size: Size, gap: str) -> list[Line]:
    around = sum(size(part) + size(gap) for part in (line.opener, line.closer) if part)
    if around > budget // 3:  # the head of a table of fifty columns: it is shown once
        line, around = replace(line, opener="", closer=""), 0
    room = budget - size(gap) - around
    if size(line.text) <= room:
        return [line]
    pieces: list[Line] = []
    start = used = 0
    for index, letter in enumerate(line.text):
        width = size(letter)
        if used + width > room:
            end = _good_end(line.text, start, index)
            text = line.text[start:end]
            pieces.append(replace(line, text=text, item=line.item and not pieces))
            start, used = end, size(line.text[end:index])
        used += width
    pieces.append(replace(line, text=line.text[start:], item=line.item and not pieces))
    return pieces


def _good_end(text: str, start: int, end: int) -> int:
    """After the last sentence or word in the last fifth, else just there."""
    for index in range(end, end - (end - start) // 5, -1):
        if text[index - 1] in _SENTENCE_ENDS:
            return index
    return end
