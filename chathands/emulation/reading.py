"""The entry for a whole reply: one scanner, fed once and closed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from chathands.conversation import ToolSpec
from chathands.emulation.outcome import ParsedReply
from chathands.emulation.scanner import Scanner, Thinking
from chathands.limits import REPLY_CAP


def parse_reply(
    text: str,
    tools: Sequence[ToolSpec | Mapping[str, Any]],
    finish_reason: str | None = None,
    *,
    position: int = 0,
    thinking: Thinking = "none",
    language: Literal["zh", "en"] = "zh",
    cap: int = REPLY_CAP,
) -> ParsedReply:
    """The text, calls and broken calls of a reply; for the parameters see `Scanner`.

    Never raises, whatever the text is. Raises TypeError for what is no text, ValueError for a tool
    without a name and for another language than zh and en.
    """
    if not isinstance(text, str):
        raise TypeError(f'a reply is text, not {type(text).__name__}; one without any is ""')
    scanner = Scanner(tools, position=position, thinking=thinking, language=language, cap=cap)
    scanner.feed(text)
    return scanner.close(finish_reason)[1]
