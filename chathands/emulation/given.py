"""What callers hand over, checked where it comes in: one sentence instead of a puzzle later on."""

from __future__ import annotations

from collections.abc import Iterable
from typing import get_args

from chathands.conversation import Message
from chathands.emulation.outcome import Language


def messages_in(conversation: Iterable[Message]) -> tuple[Message, ...]:
    """The messages. Raises TypeError for dicts and everything else that is no `Message`."""
    given = tuple(conversation)
    for message in given:
        if not isinstance(message, Message):
            raise TypeError(
                f"a conversation holds chathands.Message, not {type(message).__name__}; "
                "chathands.from_openai(messages) reads OpenAI's"
            )
    return given


def known_language(language: Language) -> Language:
    """The language. Raises ValueError for one that has no wording."""
    if language not in (known := get_args(Language)):
        raise ValueError(f"language {language!r} is none of {', '.join(known)}")
    return language
