"""What a conversation says about itself: tools, run, question, and the state it stands in."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from enum import StrEnum
from functools import cache
from typing import Any

from chathands.conversation import (
    Conversation,
    Message,
    Role,
    Status,
    Tag,
    ToolCall,
    ToolChoice,
    ToolResult,
    ToolSpec,
    as_specs,
)
from chathands.emulation.outcome import Language
from chathands.emulation.prompts import wording

Tools = Sequence[ToolSpec | Mapping[str, Any]]


class State(StrEnum):
    """Where a conversation stands when the model is asked; corrections are worded by it."""

    FIRST_DECISION = "first_decision"
    FORCED = "forced"
    AFTER_RESULT = "after_result"
    AFTER_ERROR = "after_error"
    AFTER_DENIAL = "after_denial"
    AFTER_UNKNOWN = "after_unknown"
    AFTER_CORRECTION = "after_correction"
    WITHDRAWN = "withdrawn"
    """No more tools: by choice, in the last round, or because time is up."""


def has_tool_history(conversation: Conversation) -> bool:
    return any(message.calls or message.result is not None for message in conversation)


def declared_tools(conversation: Conversation, tools: Tools | None) -> tuple[ToolSpec, ...]:
    """The given tools; with None those of the history, open over the argument keys seen there."""
    if tools is not None:
        return as_specs(tools)
    keys: dict[str, dict[str, Any]] = {}
    for message in conversation:
        for call in message.calls:
            keys.setdefault(call.name, {}).update({key: {} for key in call.arguments})
    return tuple(
        ToolSpec(
            name,
            parameters={
                "type": "object",
                "properties": {key: {} for key in sorted(seen)},
                "additionalProperties": True,
            },
        )
        for name, seen in keys.items()
    )


def run_start(conversation: Conversation) -> int:
    """Index of the question the current run answers: the last plain user message; -1 if none."""
    for at in range(len(conversation) - 1, -1, -1):
        if conversation[at].role is Role.USER and conversation[at].tag is Tag.PLAIN:
            return at
    return -1


def question_of(conversation: Conversation) -> str:
    """The text of the current run's question."""
    at = run_start(conversation)
    return conversation[at].text if at >= 0 else ""


def calls_of(conversation: Conversation) -> list[ToolCall]:
    """Every call so far; its number in prompts is its position in this list, from 1."""
    return [call for message in conversation for call in message.calls]


def notice(language: Language, kind: str, **values: Any) -> Message:
    """One of our own remarks (the `notice` table) as a message."""
    text = wording(language)["notice"][kind].format(**values)
    return Message.user(text, tag=Tag.NOTICE)


@cache
def _notice_patterns(kind: str) -> tuple[re.Pattern[str], ...]:
    texts = [wording("zh")["notice"][kind], wording("en")["notice"][kind]]
    return tuple(
        re.compile(r".+?".join(re.escape(part) for part in re.split(r"\{\w+\}", text)), re.DOTALL)
        for text in texts
    )


def is_notice(message: Message, *kinds: str) -> bool:
    """Whether a message is our remark of one of these kinds, in either language."""
    return message.tag is Tag.NOTICE and any(
        pattern.match(message.text) for kind in kinds for pattern in _notice_patterns(kind)
    )


def state_of(conversation: Conversation) -> State:
    """What the model is about to decide, read off the end of the list."""
    for at in range(len(conversation) - 1, -1, -1):
        message = conversation[at]
        if is_notice(message, "none", "last_round", "deadline"):
            return State.WITHDRAWN
        if is_notice(message, "required", "named"):
            return State.FORCED
        if message.tag is Tag.NOTICE:
            continue
        if message.tag is Tag.CORRECTION:
            return State.AFTER_CORRECTION
        if message.role is Role.TOOL:
            return _state_of_results(conversation, at)
        return State.FIRST_DECISION
    return State.FIRST_DECISION


def _state_of_results(conversation: Conversation, last: int) -> State:
    statuses = set()
    for message in reversed(conversation[: last + 1]):
        if message.role is not Role.TOOL:
            break
        if message.result is not None:
            statuses.add(message.result.status)
    for status, state in (
        (Status.UNKNOWN, State.AFTER_UNKNOWN),
        (Status.FAILED, State.AFTER_ERROR),
        (Status.DENIED, State.AFTER_DENIAL),
    ):
        if status in statuses:
            return state
    return State.AFTER_RESULT


def settled_tools(
    conversation: Conversation, specs: Sequence[ToolSpec], *, upto: int | None = None
) -> set[str]:
    """Tools of the current run whose call needs no further try: done, perhaps done, or denied.

    A side effect that was put off because it stood beside a read in the same reply is not settled:
    it is to be decided again with the results at hand.
    """
    effects = {spec.name for spec in specs if spec.side_effect in ("local", "outward")}
    end = len(conversation) if upto is None else upto
    settled: set[str] = set()
    group: list[ToolResult] = []
    for message in [*conversation[run_start(conversation) + 1 : end], None]:
        if message is not None and message.result is not None:
            group.append(message.result)
            continue
        beside_a_read = any(result.name not in effects for result in group)
        for result in group:
            put_off = result.status is Status.DENIED and beside_a_read and result.name in effects
            if result.status is not Status.FAILED and not put_off:
                settled.add(result.name)
        group = []
    return settled


def effective_choice(
    choice: ToolChoice, conversation: Conversation, specs: Sequence[ToolSpec]
) -> ToolChoice:
    """The choice as it applies now: relaxed to auto once its call has a result in this run.

    A choice that stays forced after its result loops for ever (spring-ai issue 4464). Raises
    ValueError for a named tool that is not declared.
    """
    if choice.kind == "named" and all(spec.name != choice.name for spec in specs):
        raise ValueError(f"tool {choice.name!r} is chosen but not declared")
    if choice.kind not in ("required", "named"):
        return choice
    answered = {
        message.result.name
        for message in conversation[run_start(conversation) + 1 :]
        if message.result is not None
    }
    met = choice.name in answered if choice.kind == "named" else bool(answered)
    return ToolChoice() if met or not specs else choice


def siblings_notice(language: Language, told: Sequence[tuple[str, str]]) -> Message:
    """Answers calls that did not run beside one that did: name and reason of each."""
    head = notice(language, "siblings", count=len(told))
    lines = [notice(language, "sibling", name=name, detail=detail).text for name, detail in told]
    return Message.user("\n".join([head.text, *lines]), tag=Tag.NOTICE)
