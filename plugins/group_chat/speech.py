"""Text as QQ shows it: Markdown made plain, long text in parts, our own headings kept apart."""

from __future__ import annotations

import re
import unicodedata

from plugins.group_chat.rendering import pieces_of, text_of

APPROVAL_HEAD = "【待确认"
"""How a message that asks for approval begins. A quoted one is recognised by it (after a restart,
or when the send was not acknowledged), so that nothing a model writes may begin this way."""

_UNSEEN = (
    "[\\s\u00ad\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2060-\u206f\u3164"
    "\ufe00-\ufe0f\ufeff\uffa0]*"
)
_HEAD_SEEN = re.compile(_UNSEEN.join(APPROVAL_HEAD))
"""What people read as that head, whatever stands in it that nobody sees."""

_JOINERS = "\u200d\ufe0f\ufe0e"
_TOKEN = re.compile(r"[!-~]+")
LONGEST_TOKEN = 300
"""An address or number up to this long is not cut in two."""


def plain(text: str) -> str:
    """Markdown as plain lines; tables one line per row, since none lines up there."""
    return not_approval(text_of(pieces_of(text)))


def not_approval(text: str) -> str:
    """The text, unable to pass for a request for approval. Of what is about to be shown: marks
    that are made plain first can hide the head."""
    return _HEAD_SEEN.sub("〔待确认", text)


def file_size(count: int) -> str:
    """Bytes as people read them: at least 1 KB, from 1 MB on in MB."""
    return f"{count / 2**20:.1f} MB" if count >= 2**20 else f"{max(1, round(count / 1024))} KB"


def split(text: str, limit: int) -> list[str]:
    """Parts of at most `limit` characters, cut at paragraphs, else lines, else sentences."""
    parts: list[str] = []
    rest = text.strip("\n").rstrip()
    while len(rest) > limit:
        cut = _cut(rest, limit)
        parts.append(rest[:cut].rstrip())
        rest = rest[cut:].lstrip("\n")
    return [part for part in (*parts, rest) if part.strip()]


def _cut(text: str, limit: int) -> int:
    # A cut in the first third would make a ragged row of tiny messages.
    for mark in ("\n\n", "\n", "。", "；", "，", " "):
        at = text.rfind(mark, limit // 3, limit + 1 - len(mark))
        if at > 0:
            return at + len(mark)
    return _whole(text, limit)


def _whole(text: str, limit: int) -> int:
    """Not inside an address, and not between a character and what belongs to it."""
    head = text[max(0, limit - LONGEST_TOKEN) : limit]
    token = _TOKEN.search(head[::-1])
    if token and token.start() == 0 and _TOKEN.match(text, limit) and token.end() < len(head):
        return limit - token.end()
    at = limit
    while (
        limit - at < 10
        and at > 1
        and (text[at] in _JOINERS or text[at - 1] == "\u200d" or unicodedata.combining(text[at]))
    ):
        at -= 1
    return at
