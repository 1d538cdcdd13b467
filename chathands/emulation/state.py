"""What a conversation says about itself: tools, run, question, and the state it stands in."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from enum import StrEnum
from typing import Any

from chathands.conversation import (
    UNREADABLE,
    Conversation,
    Message,
    Notice,
    Role,
    Status,
    Tag,
    ToolCall,
    ToolChoice,
    ToolResult,
    ToolSpec,
    as_specs,
)
from chathands.emulation.outcome import Language, Mode
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


class Sign(StrEnum):
    """What one step of a conversation means for its state."""

    ASKED = "asked"
    """A person's message: a run begins."""
    FORCED = "forced"
    """Our notice that a tool must be used."""
    WITHDRAWN = "withdrawn"
    """Our notice that no tool may be used any more."""
    CORRECTED = "corrected"
    """Our answer to a reply that could not stand."""
    REPLIED = "replied"
    """An answer of the model; what comes next is a new decision."""
    OK = "ok"
    FAILED = "failed"
    DENIED = "denied"
    UNKNOWN = "unknown"
    """The last four: a group of results, by the worst that is in it; a call that got none is
    unknown."""


_ANYWHERE: dict[Sign, State] = {
    Sign.ASKED: State.FIRST_DECISION,
    Sign.FORCED: State.FORCED,
    Sign.WITHDRAWN: State.WITHDRAWN,
    Sign.CORRECTED: State.AFTER_CORRECTION,
    Sign.REPLIED: State.FIRST_DECISION,
    Sign.OK: State.AFTER_RESULT,
    Sign.FAILED: State.AFTER_ERROR,
    Sign.DENIED: State.AFTER_DENIAL,
    Sign.UNKNOWN: State.AFTER_UNKNOWN,
}
TRANSITIONS: Mapping[State, Mapping[Sign, State]] = {
    **dict.fromkeys(State, _ANYWHERE),
    # A correction lifts neither: what was forced stays forced, what was withdrawn stays away.
    State.FORCED: {**_ANYWHERE, Sign.CORRECTED: State.FORCED},
    State.WITHDRAWN: {**_ANYWHERE, Sign.CORRECTED: State.WITHDRAWN},
}
"""The state machine of a conversation, whole: every state, every sign, the next state."""


def has_tool_history(conversation: Conversation) -> bool:
    return any(message.calls or message.result is not None for message in conversation)


def declared_tools(conversation: Conversation, tools: Tools | None) -> tuple[ToolSpec, ...]:
    """The given tools; with None those of the history, open over the argument keys seen there."""
    if tools is not None:
        return as_specs(tools)
    keys: dict[str, dict[str, Any]] = {}
    for message in conversation:
        for call in message.calls:
            seen = keys.setdefault(call.name, {})
            seen.update({key: {} for key in call.arguments if key != UNREADABLE})
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
    """Index of the question the current run answers: the last plain user message; -1 if none.

    Text that stands beside tool results in one wire message is a remark on them, no new question.
    """
    for at in range(len(conversation) - 1, -1, -1):
        if is_question(conversation, at):
            return at
    return -1


def is_question(conversation: Conversation, at: int) -> bool:
    message = conversation[at]
    if message.role is not Role.USER or message.tag is not Tag.PLAIN:
        return False
    return not (message.joined and at and conversation[at - 1].role is Role.TOOL)


def question_of(conversation: Conversation) -> str:
    """The text of the current run's question, without the lines it quotes ("> "): what somebody
    else said is not what is asked for."""
    at = run_start(conversation)
    if at < 0:
        return ""
    text = conversation[at].text
    own = [line for line in text.split("\n") if not line.startswith("> ")]
    return "\n".join(own).strip() or text


def calls_of(conversation: Conversation) -> list[ToolCall]:
    """Every call so far; its number in prompts is its position in this list, from 1."""
    return [call for message in conversation for call in message.calls]


def notice(language: Language, kind: str, mode: Mode = "emulated", **values: Any) -> Message:
    """One of our own remarks, with its words from the `notice` table."""
    text = wording(language, mode)["notice"][kind].format(**values)
    return Message(Role.USER, text, tag=Tag.NOTICE, notice=Notice(kind))


def is_notice(message: Message, *kinds: str) -> bool:
    """Whether a message is our remark of one of these kinds."""
    return message.notice is not None and message.notice in kinds


def state_of(conversation: Conversation) -> State:
    """What the model is about to decide, read off the conversation by `TRANSITIONS`."""
    state = State.FIRST_DECISION
    for sign in signs_of(conversation):
        state = TRANSITIONS[state][sign]
    return state


def signs_of(conversation: Conversation) -> Iterator[Sign]:
    """The steps of a conversation, oldest first.

    Other remarks of ours (broken siblings), rejected replies and system text are no steps. Results
    and calls up to the next step are one group, however they are ordered.
    """
    waiting: set[str] = set()
    statuses: set[Status] = set()
    for at, message in enumerate(conversation):
        if message.result is not None:
            statuses.add(message.result.status)
            waiting.discard(message.result.call_id)
            continue
        sign = None if continues_batch(conversation, at) else _sign_at(conversation, at)
        if sign is not None:
            yield from _group_sign(statuses, waiting)
            statuses.clear()
            waiting.clear()
            if not message.calls:
                yield sign
        waiting.update(call.id for call in message.calls)
    yield from _group_sign(statuses, waiting)


def continues_batch(conversation: Conversation, at: int) -> bool:
    """Whether a message has more calls of the batch that the message before it began: some clients
    write one assistant message for each of several parallel calls."""
    if not at or not conversation[at].calls:
        return False
    before = conversation[at - 1]
    return before.role is Role.ASSISTANT and before.result is None and bool(before.calls)


def _sign_at(conversation: Conversation, at: int) -> Sign | None:
    message = conversation[at]
    if message.tag is Tag.CORRECTION:
        return Sign.CORRECTED
    if is_notice(message, Notice.REQUIRED, Notice.NAMED):
        return Sign.FORCED
    if is_notice(message, Notice.NONE, Notice.LAST_ROUND, Notice.DEADLINE):
        return Sign.WITHDRAWN
    if is_question(conversation, at):
        return Sign.ASKED
    if message.role is Role.ASSISTANT and message.tag is Tag.PLAIN:
        return Sign.REPLIED
    return None


def _group_sign(statuses: set[Status], waiting: set[str]) -> Iterator[Sign]:
    ended = statuses | ({Status.UNKNOWN} if waiting else set())
    for status in (Status.UNKNOWN, Status.FAILED, Status.DENIED, Status.OK):
        if status in ended:
            yield Sign(status.value)
            return


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


def siblings_notice(
    language: Language, told: Sequence[tuple[str, str]], mode: Mode = "emulated"
) -> Message:
    """Answers calls that did not run beside one that did: name and reason of each."""
    head = notice(language, Notice.SIBLINGS, mode, count=len(told))
    line = wording(language, mode)["notice"]["sibling"]
    lines = [line.format(name=name, detail=detail) for name, detail in told]
    return replace(head, text="\n".join([head.text, *lines]))
