"""What the request for a run's first decision ends in when the situation calls for a word of it.

A small model loses the contract out of sight in the middle of a talk: where its last message asked
for something and the user has now said it, it talks on instead of acting. And it uses a tool for
anything because tools are there: where nothing in the question speaks of them, it has to be told.
"""

from __future__ import annotations

from collections.abc import Sequence

from chathands.conversation import Conversation, Message, Notice, Role, Tag, ToolSpec
from chathands.emulation.matching import fitting
from chathands.emulation.phrases import asks_back, asks_to_look, declines
from chathands.emulation.related import gist, unrelated

_BEFORE = 2
"""Questions of the user that a talk is judged by, this one included."""


def reminder_for(
    conversation: Conversation, specs: Sequence[ToolSpec], *, beside: bool = True
) -> Notice | None:
    """The remark to put behind the user's message; None, mostly. With `beside` one that no tool
    has to do with is worth a remark too."""
    if not specs or not conversation or not _is_question(conversation[-1]):
        return None
    if _answers_us(conversation, specs):
        return Notice.ANSWERED
    return Notice.UNRELATED if beside and _is_beside_the_tools(conversation, specs) else None


def _is_beside_the_tools(conversation: Conversation, specs: Sequence[ToolSpec]) -> bool:
    """Whether nothing speaks for a tool. A talk in which tools were used goes on about the same
    thing in few words ("and tomorrow?"); what only a look can tell needs one, however it is put."""
    if any(message.calls for message in conversation):
        return False
    asked = _asked(conversation)
    return not asks_to_look(asked[-1]) and unrelated("\n".join(asked), specs)


def _answers_us(conversation: Conversation, specs: Sequence[ToolSpec]) -> bool:
    """Whether the user now gave what the assistant had asked for, about something a tool does."""
    before = [message for message in conversation if message.tag is Tag.PLAIN]
    if len(before) < 3 or before[-2].role is not Role.ASSISTANT or before[-2].calls:
        return False
    if not asks_back(before[-2].text) or declines(gist(before[-1].text)):
        return False
    asked = _asked(before)
    return bool(fitting("\n".join(asked), specs))


def _asked(conversation: Sequence[Message]) -> list[str]:
    asked = [message.text for message in conversation if _is_question(message)]
    return [gist(text) for text in asked[-_BEFORE:]]


def _is_question(message: Message) -> bool:
    return message.role is Role.USER and message.tag is Tag.PLAIN and message.result is None
