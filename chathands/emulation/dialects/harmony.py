"""Headers of gpt-oss messages, `<|start|>assistant<|channel|>commentary to=functions.x`.

Source: the harmony response format of gpt-oss; Gemma 3n's `<|channel>thought` looks much like it.
"""

from __future__ import annotations

import re
from enum import StrEnum
from typing import Final

from chathands.emulation.dialects.tags import Tag
from chathands.emulation.reading_source import Reads, Source

NAMES: Final = frozenset({"channel", "start"})
"""The special tokens that begin a header."""

_WIDTH: Final = 160
_CHANNEL: Final = re.compile(
    r"<\|channel\|>([^<]{0,100})(?:<\|constrain\|>\s?\w{0,12})?<\|message\|>"
)
_START: Final = re.compile(r"<\|start\|>([^<]{0,140})(?=<)")


class Header(StrEnum):
    CALL = "call"
    """It addresses a tool; nothing was taken."""
    THINKING = "thinking"
    TEXT = "text"
    OTHER = "other"
    """Somebody else speaks: the model goes on without waiting."""


def read_header(src: Source, tag: Tag) -> Reads[Header]:
    """Take the header whose first token, `tag`, is ahead."""
    if not src.buf.startswith(f"<|{tag.name}|", src.pos):
        src.pos += tag.width
        if (yield from src.need(7)) and src.buf.startswith("thought", src.pos):
            src.pos += 7
        return Header.THINKING
    pattern = _CHANNEL if tag.name == "channel" else _START
    while not (header := pattern.match(src.buf, src.pos)):
        if src.final or len(src.buf) - src.pos > _WIDTH:
            src.pos += tag.width
            return Header.TEXT
        yield
    said = header[1].strip()
    if "to=" in said and not said.startswith("functions."):
        return Header.CALL
    src.pos = header.end()
    if tag.name == "start":
        return Header.TEXT if said in ("assistant", "") else Header.OTHER
    return Header.THINKING if said.startswith("analysis") else Header.TEXT
