"""Whether what a reply claims, and what a call passes on, comes from somewhere.

`unbacked_claim`: a deed without the call that did it. `ungrounded`: arguments that a person must
have said and nobody did. Figures are judged in figures.py. All need the conversation.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any

from chathands.conversation import Conversation, Message, Role, Status, Tag, ToolCall, ToolSpec
from chathands.emulation.matching import PLAUSIBLE, effects_asked_for, has_known_effect, score
from chathands.emulation.phrases import sentences_of
from chathands.emulation.prompts import load
from chathands.emulation.state import question_of, run_start

_EFFECTS = ("local", "outward", "unknown")


@cache
def _claim_patterns(kind: str) -> tuple[re.Pattern[str], ...]:
    return tuple(re.compile(pattern) for pattern in load("claims")["claim"][kind])


@cache
def _pattern(table: str, name: str) -> re.Pattern[str]:
    return re.compile(load("claims")[table][name], re.IGNORECASE)


def relative_date() -> re.Pattern[str]:
    """What names a day or time by its distance from now: dates that follow from it are said."""
    return _pattern("grounding", "relative_date")


def default_words() -> Sequence[str]:
    """Values that stand for no value in particular, lower case: all, none, today."""
    return load("claims")["grounding"]["default_words"]


def results_since(
    conversation: Conversation, start: int
) -> Iterator[tuple[ToolCall | None, Message]]:
    """Calls with their result messages after index `start`."""
    calls = {call.id: call for message in conversation for call in message.calls}
    for message in conversation[start + 1 :]:
        if message.result is not None:
            yield calls.get(message.result.call_id), message


def asks_for_explanation(question: str) -> bool:
    """Whether a question wants something explained or written, not looked up or done."""
    explain = load("claims")["figure"]["explain"]
    return re.search(explain, question, re.IGNORECASE) is not None


def evidence(conversation: Conversation, specs: Sequence[ToolSpec]) -> list[Message]:
    """The messages that can back something: all but what non-deterministic tools said, for their
    results are themselves a model's words."""
    models = {spec.name for spec in specs if not spec.deterministic}
    return [
        message
        for message in conversation
        if message.result is None or message.result.name not in models
    ]


def has_results(conversation: Conversation) -> bool:
    """Whether the current run has any tool result."""
    return any(True for _ in results_since(conversation, run_start(conversation)))


def has_failed(conversation: Conversation) -> bool:
    """Whether something in the current run failed, so that leaving a later step out is fair."""
    return any(
        message.result is not None and message.result.status in (Status.FAILED, Status.UNKNOWN)
        for _, message in results_since(conversation, run_start(conversation))
    )


# --- claims of deeds


def unbacked_claim(text: str, specs: Sequence[ToolSpec], conversation: Conversation) -> str | None:
    """The sentence that claims a deed nothing in this run has done, or None."""
    effects = {spec.name for spec in specs if spec.side_effect in _EFFECTS}
    conversation = evidence(conversation, specs)
    start = run_start(conversation)
    done_here = _has_effect(conversation, start, effects)
    if done_here:
        return None
    question = question_of(conversation)
    told = "\n".join(message.text for _, message in results_since(conversation, -1))
    asks_state = re.search(r"[吗嘛么没]|是否|\b(?:did|have you|has|was|were|is)\b", question)
    if asks_state and _has_effect(conversation, -1, effects):
        return None
    wanted = bool(effects_asked_for(question, specs))
    if asks_for_explanation(question) and not wanted:
        return None
    any_result = any(
        message.result is not None and message.result.status is Status.OK
        for _, message in results_since(conversation, -1)
    )
    for sentence, asked in sentences_of(text):
        if asked:
            continue
        if found := _claimed(sentence, "effect"):
            if found not in told.casefold() and found not in question.casefold():
                return sentence.replace(" ⟦⟧ ", "…")
        elif (wanted and _claimed(sentence, "general")) or (
            not any_result and _claimed(sentence, "read")
        ):
            return sentence.replace(" ⟦⟧ ", "…")
    return None


def _has_effect(conversation: Conversation, start: int, effects: set[str]) -> bool:
    return any(
        message.result is not None
        and message.result.status is Status.OK
        and (message.result.name in effects or (call is not None and call.name in effects))
        for call, message in results_since(conversation, start)
    )


def _claimed(sentence: str, kind: str) -> str | None:
    for pattern in _claim_patterns(kind):
        for found in pattern.finditer(sentence):
            before = re.split(r"[,，;；]", sentence[: found.start()])[-1]
            around = before + found.group() + sentence[found.end() : found.end() + 6]
            if not _pattern("claim", "undone").search(around):
                return found.group()
    return None


# --- grounding


def ungrounded(call: ToolCall, spec: ToolSpec | None, conversation: Conversation) -> str | None:
    """The parameter whose value comes from nowhere, when more than half of those that a person
    must have said are absent from the conversation; else None. A conversation without what
    non-deterministic tools said is `evidence`."""
    known = _known_text(conversation)
    if spec is not None and (copied := _copied_from_example(call, spec, known)):
        return copied
    properties = spec.parameters.get("properties", {}) if spec is not None else {}
    said: list[tuple[str, Any]] = []
    for name, value in call.arguments.items():
        schema = properties.get(name) if isinstance(properties, Mapping) else None
        said += _must_be_said(str(name), value, schema if isinstance(schema, Mapping) else {})
    absent = [name for name, value in said if not _is_known(value, known)]
    if not said or 2 * len(absent) <= len(said):
        return None
    question = question_of(conversation)
    if (
        spec is not None
        and _may_be_translated(absent, said, question)
        and score(question, spec) >= PLAUSIBLE
    ):
        return None
    return absent[0]


def unasked(call: ToolCall, specs: Sequence[ToolSpec], conversation: Conversation) -> bool:
    """Whether a call, after a failure in this run, would send out what nobody asked to be sent.

    Small models that cannot find a file push the error message to the group instead. Asked is what
    the question of this run says, or the one before it if that is still open ("which group?").
    Without a failure a person's approval is check enough: wordings for "send it" have no end.
    """
    spec = next((spec for spec in specs if spec.name == call.name), None)
    if spec is None or spec.side_effect != "outward" or not has_known_effect(spec):
        return False
    since = results_since(conversation, run_start(conversation))
    if not any(m.result is not None and m.result.status is Status.FAILED for _, m in since):
        return False
    questions = [
        at
        for at, message in enumerate(conversation)
        if message.role is Role.USER and message.tag is Tag.PLAIN
    ]
    asked = [spec.name in effects_asked_for(conversation[at].text, specs) for at in questions[-2:]]
    if not asked or asked[-1]:
        return False
    if not asked[0]:
        return True
    done = {
        message.result.name
        for message in conversation[questions[-2] :]
        if message.result is not None and message.result.status in (Status.OK, Status.UNKNOWN)
    }
    return spec.name in done


def _copied_from_example(call: ToolCall, spec: ToolSpec, known: str) -> str | None:
    """The parameter of a call that repeats the contract's worked example unasked."""
    strings = [(k, v) for k, v in call.arguments.items() if isinstance(v, str) and v.strip()]
    for example in spec.examples:
        copied = [
            name
            for name, value in strings
            if example.arguments.get(name) == value and value.casefold() not in known
        ]
        if strings and 2 * len(copied) > len(strings):
            return copied[0]
    return None


def _known_text(conversation: Conversation) -> str:
    texts: list[str] = []
    for message in conversation:
        said = message.tag is Tag.PLAIN
        ours = message.tag is Tag.CORRECTION and message.role is not Role.ASSISTANT
        if said or ours:
            texts += [message.head, message.text]
    return "\n".join(texts).casefold()


def _must_be_said(name: str, value: Any, schema: Mapping[str, Any]) -> list[tuple[str, Any]]:
    """Leaves of one argument that only a person can have named."""
    if isinstance(value, bool) or value is None or "enum" in schema or "const" in schema:
        return []
    if "default" in schema and schema["default"] == value:
        return []
    if isinstance(value, Mapping):
        properties = schema.get("properties")
        inner = properties if isinstance(properties, Mapping) else {}
        return [
            leaf
            for key, entry in value.items()
            for leaf in _must_be_said(
                str(key), entry, inner[key] if isinstance(inner.get(key), Mapping) else {}
            )
        ]
    if isinstance(value, list | tuple):
        items = schema.get("items")
        items = items if isinstance(items, Mapping) else {}
        return [leaf for entry in value for leaf in _must_be_said(name, entry, items)]
    lowered = name.casefold()
    if _pattern("grounding", "exempt_name").search(lowered) and not _pattern(
        "grounding", "said_name"
    ).search(lowered):
        return []
    text = str(value).strip()
    if not text or len(text) > 40 or "\n" in text:
        return []
    if text.casefold() in default_words():
        return []
    if re.search(r"[/\\]|\.\w{2,5}$|^https?:", text):
        return []
    if isinstance(value, int | float) and not _pattern("grounding", "said_name").search(lowered):
        return []
    return [(name, value)]


_DIGITS = {"零": 0, "一": 1, "二": 2, "两": 2, "三": 3, "四": 4, "五": 5}
_DIGITS |= {"六": 6, "七": 7, "八": 8, "九": 9, "十": 10, "半": 0.5}


def _is_known(value: Any, known: str) -> bool:
    text = str(value).strip().casefold()
    if text in known:
        return True
    numbers = re.findall(r"\d+(?:\.\d+)?", text)
    looks_like_date = re.fullmatch(r"[\d\s:年月日时点分T./+-]+", str(value).strip())
    if looks_like_date and numbers:
        plain = {n.lstrip("0") or "0" for n in numbers}
        present = set(re.findall(r"\d+", known)) | {
            str(_DIGITS[char]) for char in known if char in _DIGITS
        }
        present = {n.lstrip("0") or "0" for n in present}
        if _pattern("grounding", "relative_date").search(known):
            return True
        return 2 * len(plain & present) >= len(plain)
    if isinstance(value, int | float):
        loose = known.replace(",", "")
        return f"{value:g}" in loose or any(
            digit == value and char in known for char, digit in _DIGITS.items()
        )
    pieces = re.findall(r"[a-z0-9]{2,}", text)
    pieces += [
        run[at : at + 2]
        for run in re.findall(r"[\u4e00-\u9fff]{2,}", text)
        for at in range(len(run) - 1)
    ]
    if not pieces:
        return False
    return 2 * sum(piece in known for piece in pieces) >= len(pieces)


def _may_be_translated(
    absent: Sequence[str], said: Sequence[tuple[str, Any]], question: str
) -> bool:
    """Latin values under a Chinese question, or the reverse, may be the same name elsewhere."""
    han = bool(re.search(r"[\u4e00-\u9fff]", question))
    values = [str(value) for name, value in said if name in absent]
    return bool(question) and all(
        bool(re.search(r"[\u4e00-\u9fff]", value)) is not han and re.search(r"[^\W\d]", value)
        for value in values
    )
