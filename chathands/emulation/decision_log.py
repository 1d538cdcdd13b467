"""What a decision of a turn looks like in a trace: one event, plain data, JSON-safe.

`Turn.log` holds one `Decision` for each reply that was judged. The types below are its schema;
whoever reads traces (a person, a verdict, a dashboard) may rely on every key being there.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Literal, TypedDict

from chathands.conversation import Conversation, Role, Tag, ToolChoice, ToolSpec
from chathands.emulation.corrections import TABLE
from chathands.emulation.outcome import (
    Answer,
    Calls,
    ChatMessage,
    Outcome,
    ParsedReply,
    Retry,
)
from chathands.emulation.phrases import sentences_of
from chathands.emulation.review import stance_in
from chathands.emulation.sizes import request_tokens, tokens
from chathands.emulation.state import state_of

_CORRECTED = frozenset(reason for _, reason in TABLE)
"""A reply that only looks for tools is asked again too, without a correction."""

PHRASE_CHARACTERS = 120
"""Of the sentence that shows the stance."""


class History(TypedDict):
    """What was recognised in the conversation the model was asked with."""

    messages: int
    calls: int
    results: int
    """Tool results, orphans and duplicates among them."""
    orphans: int
    """Results whose call is nowhere before them."""
    duplicates: int
    """Results that came again after their call had one."""
    unanswered: int
    """Calls without a result."""
    rejected: int
    """Replies of this run that were turned down."""


class Asked(TypedDict):
    """What the model was asked with."""

    state: str
    """Where the conversation stood: a `State`."""
    choice: str
    """auto, none, required, or `named:<tool>`."""
    tools: int
    """How many were offered."""
    contract_characters: int
    contract_tokens: int
    """A guess, rather too high."""
    request_messages: int
    request_tokens: int
    """A guess, the contract included."""
    history: History


class CallRow(TypedDict):
    name: str
    confidence: Literal["strict", "repaired", "recovered"]
    repairs: list[str]


class BrokenRow(TypedDict):
    name: str | None
    reason: str
    detail: str
    in_contract: bool
    """Whether it stood in the contract's own form."""


class StanceRow(TypedDict):
    """How the text relates to acting."""

    kind: str
    evidence: list[str]
    """The rules that decided, as `prompts/stance.toml` names them, and structural marks."""
    phrase: str
    """The sentence they were found in; empty for a normal answer."""


class Decision(TypedDict):
    """One reply judged, with everything the judgement rests on."""

    event: Literal["decision"]
    asked: Asked
    reply_characters: int
    thought_characters: int
    held_characters: int
    """The most text held back at one time; 0 under commit `finish`, where nothing leaves early."""
    finish_reason: str | None
    """As the upstream gave it."""
    calls: list[CallRow]
    """Read, declared and fitting."""
    broken: list[BrokenRow]
    """Meant as calls and not to be run."""
    stance: StanceRow
    outcome: Literal["Answer", "Calls", "Retry", "GiveUp"]
    reason: str | None
    """Of a Retry or GiveUp."""
    detail: str
    """Of the reason: the field, the figure, the claim, the rule."""
    basis: str | None
    """What a Retry rests on: a `Basis`."""
    correction: int
    """Corrections asked in this turn, the one that follows this reply included."""
    firmness: int
    """How firmly the correction that follows is worded, from 1; 0 when none follows."""
    corrections_left: int


def asked(
    conversation: Conversation,
    specs: Sequence[ToolSpec],
    choice: ToolChoice,
    messages: Sequence[ChatMessage],
) -> Asked:
    """What a model is asked with: `messages` are those of the request made from the rest."""
    contract = messages[0].content if messages and specs else ""
    return {
        "state": state_of(conversation).value,
        "choice": choice.kind if choice.name is None else f"{choice.kind}:{choice.name}",
        "tools": len(specs),
        "contract_characters": len(contract),
        "contract_tokens": round(tokens(contract)),
        "request_messages": len(messages),
        "request_tokens": round(request_tokens(messages)),
        "history": recognised(conversation),
    }


def recognised(conversation: Conversation) -> History:
    """Calls matched with results, in order, as the projection matches them."""
    waiting: Counter[str] = Counter()
    known: set[str] = set()
    calls = results = orphans = duplicates = 0
    for message in conversation:
        for call in message.calls:
            calls += 1
            known.add(call.id)
            waiting[call.id] += 1
        if message.role is not Role.TOOL or message.result is None:
            continue
        results += 1
        call_id = message.result.call_id
        if waiting[call_id]:
            waiting[call_id] -= 1
        elif call_id in known:
            duplicates += 1
        else:
            orphans += 1
    return {
        "messages": len(conversation),
        "calls": calls,
        "results": results,
        "orphans": orphans,
        "duplicates": duplicates,
        "unanswered": waiting.total(),
        "rejected": sum(message.tag is Tag.REJECTED for message in conversation),
    }


def decision(
    outcome: Outcome,
    parsed: ParsedReply,
    asked_with: Asked,
    *,
    stance: StanceRow,
    characters: int,
    held: int,
    correction: int,
    firmness: int,
    corrections_left: int,
) -> Decision:
    """The event of one judged reply. `correction` counts the one that a Retry has just written,
    `firmness` how often its reason was corrected."""
    plain = isinstance(outcome, Answer | Calls)
    corrects = isinstance(outcome, Retry) and outcome.reason in _CORRECTED
    return {
        "event": "decision",
        "asked": asked_with,
        "reply_characters": characters,
        "thought_characters": len(parsed.thought),
        "held_characters": held,
        "finish_reason": parsed.finish_reason,
        "calls": [
            {"name": call.name, "confidence": call.confidence, "repairs": list(call.repairs)}
            for call in parsed.calls
        ],
        "broken": [
            {
                "name": broken.name,
                "reason": broken.reason.value,
                "detail": broken.detail,
                "in_contract": broken.in_contract,
            }
            for broken in parsed.broken
        ],
        "stance": stance,
        "outcome": type(outcome).__name__,  # type: ignore[typeddict-item]
        "reason": None if plain else outcome.reason.value,
        "detail": "" if plain else outcome.detail,
        "basis": outcome.basis.value if isinstance(outcome, Retry) else None,
        "correction": correction,
        "firmness": firmness if corrects else 0,
        "corrections_left": corrections_left,
    }


def judged(
    outcome: Outcome,
    parsed: ParsedReply,
    asked_with: tuple[Conversation, Sequence[ToolSpec], ToolChoice, Sequence[ChatMessage]],
    said: tuple[str, Sequence[ToolSpec], Conversation],
    **figures: int,
) -> Decision:
    """`decision` from what `asked` and `stance_row` are made of. They take longer than reading the
    reply does, so that a turn whose log nobody reads leaves them out."""
    return decision(outcome, parsed, asked(*asked_with), stance=stance_row(*said), **figures)


def stance_row(text: str, specs: Sequence[ToolSpec], conversation: Conversation) -> StanceRow:
    """The stance of a reply's text, and the sentence that shows it."""
    stance = stance_in(text, specs, conversation)
    phrase = ""
    if stance.kind != "normal":
        for sentence, _ in sentences_of(text):
            alone = stance_in(sentence, specs, conversation)
            if alone.kind == stance.kind and not set(stance.evidence).isdisjoint(alone.evidence):
                phrase = sentence[:PHRASE_CHARACTERS]
                break
    return {"kind": stance.kind, "evidence": list(stance.evidence), "phrase": phrase}
