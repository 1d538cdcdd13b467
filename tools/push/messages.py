"""From title and content to the messages that are sent: heading, keyword, and parts in size."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

from chathands.errors import ToolFailed

from .client import body_of
from .markdown import Line, adapt, joined, plain, separator

BODY_LIMIT = 20_000
"""Bytes of a request body; one more is errcode 460101."""

MAX_PARTS = 10
"""Half of what a robot takes in a minute. A longer report is a file, not a message."""

_NUMBER_ROOM = "（00/00）"
_SENTENCE_ENDS = "。！？；\n，、,;. "


@dataclass(frozen=True, slots=True)
class Message:
    title: str
    text: str


@dataclass(frozen=True, slots=True)
class Composed:
    messages: tuple[Message, ...]
    remarks: tuple[str, ...]
    """What was changed on the way, for the person."""


def compose(title: str, content: str, keywords: Sequence[str]) -> Composed:
    """Raises ToolFailed when there is nothing to send or far too much."""
    if _size(content) > MAX_PARTS * BODY_LIMIT:
        raise _too_long(-(-_size(content) // BODY_LIMIT))
    title = plain(title)
    adapted = adapt(content)
    lines = list(adapted.lines)
    if lines and plain(lines[0].text) == title:
        lines = lines[1:]  # the title is put above the text anyway
    if not title or not (lines or adapted.lines):
        raise ToolFailed("标题和正文都不能是空的，没有发出。请先写好要推送的内容。")
    keywords = [word for word in keywords if word.strip()]
    room = title + _NUMBER_ROOM + (f"（{keywords[0]}）" if keywords else "")
    parts = _split(lines, BODY_LIMIT - len(body_of(room, _heading(room))))
    if len(parts) > MAX_PARTS:
        raise _too_long(len(parts))
    remarks = []
    if adapted.tables:
        remarks.append("表格已改成列表（手机上的钉钉不显示表格）")
    if len(parts) > 1:
        remarks.append(f"内容较长，分成了 {len(parts)} 条")
    messages, added = [], False
    for number, part in enumerate(parts, 1):
        numbered = f"{title}（{number}/{len(parts)}）" if len(parts) > 1 else title
        message = Message(numbered, _text(numbered, part))
        # Every message is checked on its own, and by its text.
        if keywords and not any(word in message.text for word in keywords):
            numbered, added = f"{numbered}（{keywords[0]}）", True
            message = Message(numbered, _text(numbered, part))
        messages.append(message)
    if added:
        remarks.append(f"标题后补上了机器人要求的关键词“{keywords[0]}”")
    return Composed(tuple(messages), tuple(remarks))


def _too_long(parts: int) -> ToolFailed:
    return ToolFailed(
        f"内容太长，要分成 {parts} 条消息，没有发出。"
        f"请先概括，控制在 {MAX_PARTS} 条（约 6 万字）以内。"
    )


def _heading(title: str) -> str:
    return f"#### {title}"


def _text(title: str, lines: Sequence[Line]) -> str:
    body = joined(lines)
    return f"{_heading(title)}\n\n{body}" if body else _heading(title)


def _size(text: str) -> int:
    """Bytes the text takes inside the JSON body."""
    return len(json.dumps(text, ensure_ascii=False).encode("utf-8", "replace")) - 2


def _split(lines: Sequence[Line], budget: int) -> list[list[Line]]:
    """Parts of at most `budget` bytes, cut between lines; a line longer than that is cut."""
    parts: list[list[Line]] = [[]]
    used = 0
    for line in [piece for whole in lines for piece in _pieces(whole, budget)]:
        size = _size(line.text) + _size("\n\n")
        if parts[-1] and used + size > budget:
            parts.append([])
            used = 0
        if parts[-1] and separator(parts[-1][-1], line) == "\n":
            size -= _size("\n")
        parts[-1].append(line)
        used += size
    return parts


def _pieces(line: Line, budget: int) -> list[Line]:
    room = budget - _size("\n\n")
    if _size(line.text) <= room:
        return [line]
    pieces: list[Line] = []
    start = used = 0
    for index, letter in enumerate(line.text):
        size = _size(letter)
        if used + size > room:
            end = _good_end(line.text, start, index)
            pieces.append(Line(line.text[start:end], line.item and not pieces))
            start, used = end, _size(line.text[end:index])
        used += size
    pieces.append(Line(line.text[start:], line.item and not pieces))
    return pieces


def _good_end(text: str, start: int, end: int) -> int:
    """After the last sentence or word in the last fifth, else just there."""
    for index in range(end, end - (end - start) // 5, -1):
        if text[index - 1] in _SENTENCE_ENDS:
            return index
    return end
