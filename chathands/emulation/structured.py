"""The mode `structured`: the contract, and a reply that is one JSON object.

The object is read tolerantly (in a fence, with mistakes, cut, text around it) and handed on as
the contract's own text, so that the one reader judges its calls. A reply that is no such object is
read as in `emulated`. A whole object has to be there before anything of it may leave: under commit
`stream`, text and calls leave with `finish()`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from chathands.conversation import Conversation, ToolSpec, canonical_json
from chathands.emulation.dialects.words import plain_key
from chathands.emulation.forms import (
    Entries,
    PlainReading,
    Reading,
    Setting,
    projected,
    scanner_for,
)
from chathands.emulation.lenient_json import read_value
from chathands.emulation.outcome import ModelRequest, ParsedReply, Piece, Text
from chathands.emulation.reading_tokens import State
from chathands.emulation.reading_tools import Tools
from chathands.emulation.structured_schema import reply_schema
from chathands.emulation.writing import WRITERS, Writer
from chathands.limits import REPLY_CAP, THOUGHT_BEFORE_BLOCK

THOUGHT: Final = frozenset({"thought", "thoughts", "thinking", "reasoning"})
CALLS: Final = frozenset({"calls", "call", "toolcalls", "actions"})
ANSWER: Final = frozenset({"answer", "response", "reply", "finalanswer"})
"""The keys of the form, and what models make of them; as `plain_key` gives them."""

_QUOTE = "[\"'“”]"
_KEY = "|".join(sorted(THOUGHT | CALLS | ANSWER | {"tool_calls", "final_answer"}))
_OPENING = re.compile(rf"\{{\s*{_QUOTE}?(?:{_KEY}){_QUOTE}?\s*[:：]", re.IGNORECASE)
_ANSWER_SO_FAR = re.compile(
    r"\"(?:answer|response|reply|final_answer)\"\s*:\s*\"((?:[^\"\\]|\\.)*)\\?\Z", re.DOTALL
)
_THINKING_ENDS = re.compile(r"</think(?:ing)?>", re.IGNORECASE)
_SENTENCE_END = re.compile(r"(?<=[。！？!?])|(?<=\.)\s|\n")


@dataclass(frozen=True, slots=True)
class Translated:
    """A structured reply as the contract's text."""

    text: str
    thought: str
    thinks: bool
    """Thinking of the model stands before it, still in the text."""


class Structured:
    """The contract in its own words, enforced by `response_format` as far as the upstream can."""

    writer: Writer = WRITERS["structured"]

    def __init__(self, setting: Setting) -> None:
        self._setting = setting

    def request(self, conversation: Conversation) -> ModelRequest:
        messages = projected(self._setting, conversation, self.writer)
        return ModelRequest(messages, response_format=self._response_format())

    def reading(self, *, position: int, taken: Collection[str]) -> Reading:
        return _Reading(self._setting, position, taken)

    def _response_format(self) -> dict[str, Any] | None:
        match self._setting.enforcement:
            case "json_schema":
                offer = self._setting.offer
                hidden = offer.readable if offer.listed is not None else self._setting.specs
                schema, strict = reply_schema(hidden, self._setting.choice)
                named = {"name": "reply", "strict": strict, "schema": schema}
                return {"type": "json_schema", "json_schema": named}
            case "json_object":
                return {"type": "json_object"}
            case "prompt":
                return None


class _Reading(PlainReading):
    """Keeps the text back until it is whole."""

    def __init__(self, setting: Setting, position: int, taken: Collection[str]) -> None:
        super().__init__(scanner_for(setting, position, taken, setting.thinking))
        self._setting = setting
        self._position = position
        self._taken = taken
        self._size = 0

    def feed(self, piece: Piece) -> Entries:
        if not isinstance(piece, Text):
            return super().feed(piece)
        if self._size <= REPLY_CAP:
            self._text.append(piece.text)
            self._size += len(piece.text)
        return ()

    def end(self, finish_reason: str | None) -> tuple[Entries, ParsedReply]:
        said = "".join(self._text)
        read = translated(said, self._setting.offer.readable)
        if read is not None and not read.thinks:
            # The object came without the thinking that such a model begins with.
            self._scanner = scanner_for(self._setting, self._position, self._taken, "none")
        entries = self._scanner.read(said if read is None else read.text)
        last, parsed = super().end(finish_reason)
        if read is not None:
            self.plan = first_sentence(read.thought)
            both = "\n".join(filter(None, (parsed.thought, read.thought)))
            parsed = replace(parsed, thought=both)
        return [*entries, *last], parsed


def first_sentence(thought: str) -> str:
    return _SENTENCE_END.split(thought.strip(), maxsplit=1)[0].strip()[:THOUGHT_BEFORE_BLOCK]


def translated(text: str, tools: Sequence[ToolSpec]) -> Translated | None:
    """The reply as contract text: its calls as blocks, or its answer; None if it is no object of
    the form. Calls go before an answer, which was written without their results."""
    start = 0
    if text.lstrip()[:1] not in ("{", "`") and (ended := _THINKING_ENDS.search(text)):
        start = ended.end()
    opening = _OPENING.search(text, start)
    if opening is None:
        return None
    body = text[opening.start() :]
    read = read_value(body, Tools(tools))
    whole = read.state in (State.WHOLE, State.CLOSERS)
    begun = read.begun()
    value = read.value if whole else begun[0][0] if begun else None
    if not isinstance(value, dict):
        return None
    thought, calls, answer = _parts(value)
    stopped_in = "" if whole or not begun else plain_key(begun[0][1] or "")
    sure = not read.repairs and (whole or len(begun) == 1)
    if sure and isinstance(calls, list) and calls:
        said = "\n".join(f"```json action\n{canonical_json(call)}\n```" for call in calls)
    elif calls or stopped_in in CALLS:
        # Mistakes in it are for the one reader to judge; what is cut off stays open.
        said = f"```json action\n{body[: read.src.pos].rstrip()}\n```\n" if whole else body
        said = said if whole else f"```json action\n{said}"
    elif answer is not None:
        said = answer if isinstance(answer, str) else canonical_json(answer)
    elif whole and calls is None:
        return None  # an object of the model's own, which the ordinary reader knows better
    else:
        said = _answer_so_far(body) if stopped_in in ANSWER else ""
    thinking = text[:start]
    return Translated(
        f"{thinking}\n{said}" if thinking else said,
        thought if isinstance(thought, str) else "",
        bool(thinking),
    )


def _parts(value: dict[str, Any]) -> tuple[Any, Any, Any]:
    """Thought, calls and answer of an object, each None when it is not there."""
    found: list[Any] = [None, None, None]
    for key, held in value.items():
        plain = plain_key(str(key))
        for at, names in enumerate((THOUGHT, CALLS, ANSWER)):
            if plain in names and found[at] is None:
                found[at] = held
    thought, calls, answer = found
    return thought, [calls] if isinstance(calls, dict) and calls else calls, answer


def _answer_so_far(body: str) -> str:
    """The answer that was being written when the reply was cut off."""
    found = _ANSWER_SO_FAR.search(body)
    if found is None:
        return ""
    written = re.sub(r"\\(?:u[0-9a-fA-F]{0,3})?\Z", "", found[1])
    try:
        return json.loads(f'"{written}"', strict=False)
    except ValueError:
        return written
