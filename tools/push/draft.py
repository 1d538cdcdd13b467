"""What is to be pushed, and what it becomes: messages, each a whole request's content."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from chathands.errors import ToolFailed

from .markdown import plain

MAX_PARTS = 10
"""Half of what a robot takes in a minute. A longer report is a file, not a message."""

NUMBER_ROOM = "（00/00）"


@dataclass(frozen=True, slots=True)
class Call:
    """Somebody who is to be called: `id` is what the platform knows them by, `all` is everybody."""

    name: str
    id: str


@dataclass(frozen=True, slots=True)
class Draft:
    title: str
    """May be empty."""
    content: str
    """Markdown."""
    keywords: tuple[str, ...] = ()
    calls: tuple[Call, ...] = ()


@dataclass(frozen=True, slots=True)
class Message:
    title: str
    text: str
    """As it is sent, for a rehearsal."""
    body: dict[str, Any] = field(default_factory=dict)
    """The request, without a sign."""


@dataclass(frozen=True, slots=True)
class Composed:
    messages: tuple[Message, ...]
    remarks: tuple[str, ...] = ()
    """What was changed on the way, for the person."""


def too_long(parts: int, bytes_each: int) -> ToolFailed:
    letters = MAX_PARTS * bytes_each // 3 // 1000
    return ToolFailed(
        f"内容太长，要分成 {parts} 条消息，没有发出。"
        f"请先概括，控制在 {MAX_PARTS} 条（约 {letters} 千字）以内。"
    )


def refuse_far_too_long(size: int, bytes_each: int) -> None:
    """Before anything is worked out. Raises ToolFailed."""
    if size > MAX_PARTS * bytes_each:
        raise too_long(-(-size // bytes_each), bytes_each)


def numbered(title: str, number: int, count: int) -> str:
    return f"{title}（{number}/{count}）" if count > 1 else title


def with_keyword(
    title: str, keywords: Sequence[str], made: Callable[[str], Message]
) -> tuple[Message, bool]:
    """The message, and whether a keyword had to be added. Every message is checked on its own, and
    by its text."""
    message = made(title)
    words = [word for word in keywords if word.strip()]
    if not words or any(word in message.text for word in words):
        return message, False
    return made(f"{title}（{words[0]}）" if title else f"（{words[0]}）"), True


def longest_title(title: str, keywords: Sequence[str]) -> str:
    """As long as one of its parts' may become."""
    words = [word for word in keywords if word.strip()]
    return title + NUMBER_ROOM + (f"（{words[0]}）" if words else "")


def remarks_on(
    *, whom: str, tables: int, parts: int, keyword: str, phones: bool = False
) -> tuple[str, ...]:
    said = []
    if tables:
        where = f"手机上的{whom}" if phones else f"{whom}的这种消息"
        said.append(f"表格已改成列表（{where}不显示表格）")
    if parts > 1:
        said.append(f"内容较长，分成了 {parts} 条")
    if keyword:
        said.append(f"标题后补上了机器人要求的关键词“{keyword}”")
    return tuple(said)


def title_of(draft: Draft) -> str:
    """Its title, or what its first line says in short."""
    if title := plain(draft.title):
        return title
    first = next((line for line in draft.content.splitlines() if plain(line)), "")
    return plain(first)[:20]
