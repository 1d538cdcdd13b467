"""How large a text is for a model, guessed without its vocabulary."""

from __future__ import annotations

from collections.abc import Iterable

from chathands.emulation.outcome import ChatMessage

WIDE_TOKENS = 1.0
NARROW_TOKENS = 0.3
"""Tokens of a character: Chinese up to 1 with older vocabularies (0.6 with Qwen's), ASCII 0.25 to
0.3 and more in JSON. Too many is only a little less history; too few is a refused request."""

MESSAGE_TOKENS = 4
"""What a chat template adds to each message."""


def tokens(text: str) -> float:
    """An upper guess of the tokens in `text`."""
    narrow = len(text.encode("ascii", "ignore"))
    return narrow * NARROW_TOKENS + (len(text) - narrow) * WIDE_TOKENS


def request_tokens(messages: Iterable[ChatMessage]) -> float:
    """An upper guess of the tokens of a request."""
    return sum(tokens(message.content) + MESSAGE_TOKENS for message in messages)
