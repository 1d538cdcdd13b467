"""Earlier runs as the next one should see them: what went wrong in them is not shown again.

A model imitates what stands in its history: leaked markup, a refusal and the words that corrected
it all come back in later replies.
"""

from __future__ import annotations

import re
from dataclasses import replace
from functools import cache, lru_cache

from chathands.conversation import Conversation, Message, Role, Tag
from chathands.emulation.marks import result_head
from chathands.emulation.outcome import Language
from chathands.emulation.prompts import wording
from chathands.emulation.refusal import stance_of

_LEAKED = (
    r"((?<!`)`{3,}+|(?<!~)~{3,}+) ?(?:json )?(?:action|tool_calls?)\b.*?(?:\1`*|\Z)"
    r"|((?<!`)`{3,}+|(?<!~)~{3,}+) ?json\s*\{\s*\"(?:tool|tool_name|tool_calls)\"\s*:.*?(?:\2`*|\Z)"
    r"|<(tool_calls?|function_calls?|invoke|tool_response|think|thinking)\b[^<>]{0,400}>.*?(?:</\3>|\Z)"
    r"|<function=[^<>]{0,200}>.*?(?:</function>|\Z)"
    r"|</?(?:tool_calls?|function_calls?|function|invoke|tool_response|think|thinking)>"
    r"|^[ \t]*\{\s*\"tool\"\s*:\s*\"[^\"\n]*\"\s*,\s*\"parameters\"\s*:[^\n]*\}[ \t]*$"
)
"""Blocks that were shown as text; broken ones run to the end."""


@cache
def _leaked() -> re.Pattern[str]:
    heads = rf"|^[ \t]*{result_head()}[ \t]*$"
    return re.compile(_LEAKED + heads, re.DOTALL | re.IGNORECASE | re.MULTILINE)


def clean(conversation: Conversation, *, language: Language = "zh") -> tuple[Message, ...]:
    """The conversation as the next run should see it.

    Rejected replies, corrections and notices leave; markup that leaked into what the assistant said
    is cut out; an answer that was a refusal becomes a neutral remark. Cleaning twice changes
    nothing.
    """
    out: list[Message] = []
    for message in conversation:
        if message.tag is not Tag.PLAIN:
            continue
        if message.role is Role.ASSISTANT:
            if not message.calls and not message.text.strip():
                continue
            message = _cleaned(message, language)
        out.append(message)
    return tuple(out)


def _cleaned(message: Message, language: Language) -> Message:
    text = without_leaks(message.text)
    if not message.calls and (not text or _is_refusal(text)):
        text = wording(language)["history"]["dropped_refusal"]
    return message if text == message.text else replace(message, text=text)


@lru_cache(maxsize=256)
def without_leaks(text: str) -> str:
    """The text without markup of calls, thinking and results."""
    if "`" not in text and "~" not in text and "<" not in text and "{" not in text:
        return text.strip() if "[status=" not in text else _leaked().sub("", text).strip()
    return _leaked().sub("", text).strip()


@lru_cache(maxsize=512)
def _is_refusal(text: str) -> bool:
    stance = stance_of(text)
    return stance.kind == "refusal" and stance.strong
