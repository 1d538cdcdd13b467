"""How large a text is for a model, guessed without its vocabulary."""

from __future__ import annotations

from collections.abc import Iterable

from chathands.conversation import canonical_json
from chathands.emulation.outcome import ChatMessage, ModelRequest

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
    return sum(
        tokens(message.content)
        + (tokens(canonical_json(message.tool_calls)) if message.tool_calls else 0)
        + MESSAGE_TOKENS
        for message in messages
    )


def whole_request_tokens(request: ModelRequest) -> float:
    """As `request_tokens`, with the tools that a template writes into the prompt."""
    declared = tokens(canonical_json(request.tools)) if request.tools else 0
    return request_tokens(request.messages) + declared
