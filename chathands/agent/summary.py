"""What stands for earlier rounds that left: a model's summary, or what we can say without one.

Pure: what is asked, what of the reply is taken, and the digest that needs no model.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from chathands.agent.prompts import summary_request
from chathands.conversation import Message, Role
from chathands.emulation.cleaning import without_leaks
from chathands.emulation.outcome import ChatMessage, Language, ModelRequest
from chathands.emulation.refusal import stance_of
from chathands.toolbox.render import cut, one_line

SUMMARY_CHARACTERS = 600
"""Of a summary: some ten sentences, and about as many tokens in front of every question."""
SUMMARY_SHARE = 1 / 3
"""Of the memory's budget at most: in a small context the rounds themselves are worth more."""
MATERIAL_CHARACTERS = 6000
"""Of what a model is given to summarise; fits a context of 8192 with everything else."""
SUMMARY_MAX_TOKENS = 700
"""Of the reply: 600 characters and a little more."""
QUESTION_CHARACTERS, ANSWER_CHARACTERS = 60, 100
"""Of each round in a digest."""
LEAST_CHARACTERS = 6
"""A shorter reply is no summary of anything."""

_ASKED: Mapping[Language, str] = {
    "zh": "问：{question} 答：{answer}",
    "en": "Q: {question} A: {answer}",
}


def summary_characters(budget: float) -> int:
    """How long a summary may be where the memory has `budget` tokens."""
    return int(min(SUMMARY_CHARACTERS, budget * SUMMARY_SHARE))


def digest(
    earlier: str,
    rounds: Iterable[Sequence[Message]],
    language: Language = "zh",
    *,
    characters: int = SUMMARY_CHARACTERS,
) -> str:
    """`earlier`, then each round as one line of question and answer; what is oldest is cut off."""
    lines = [line for line in earlier.splitlines() if line.strip()]
    lines += [line for one in rounds if (line := _line_of(one, language))]
    kept: list[str] = []
    left = characters
    for line in reversed(lines):
        if len(line) > left:
            if not kept or left > QUESTION_CHARACTERS:
                kept.append("…" + line[len(line) - max(left - 1, 0) :])
            break
        kept.append(line)
        left -= len(line) + 1
    return "\n".join(reversed(kept))


def asked_for(
    earlier: str,
    rounds: Iterable[Sequence[Message]],
    language: Language = "zh",
    *,
    characters: int = SUMMARY_CHARACTERS,
) -> ModelRequest:
    """The request for a summary of `earlier` and these rounds; without tools in every mode."""
    said = [text for one in rounds for message in one if (text := _said(message, language))]
    material, left = [earlier] if earlier else [], MATERIAL_CHARACTERS - len(earlier)
    share = max(left // max(len(said), 1), QUESTION_CHARACTERS)
    material += [one_line(text, share) for text in said]
    task, text = summary_request("\n".join(material), characters, language)
    return ModelRequest(
        messages=(ChatMessage(Role.SYSTEM, task), ChatMessage(Role.USER, text)),
        sampling={"max_tokens": SUMMARY_MAX_TOKENS},
    )


def accepted(reply: str, *, characters: int = SUMMARY_CHARACTERS) -> str | None:
    """The summary in a model's reply; None when it is none: empty, a refusal, or only markup."""
    text = "\n".join(line for line in without_leaks(reply).splitlines() if line.strip()).strip()
    if len(text) < LEAST_CHARACTERS:
        return None
    stance = stance_of(text)
    if stance.kind == "refusal" and stance.strong:
        return None
    return cut(text, characters)


def _line_of(one: Sequence[Message], language: Language) -> str:
    asked = next((m.text for m in one if m.role is Role.USER), "")
    answers = [m.text for m in one if m.role is Role.ASSISTANT and not m.calls]
    if not asked and not answers:
        return ""
    answer = without_leaks(answers[-1]) if answers else ""
    return _ASKED[language].format(
        question=one_line(asked, QUESTION_CHARACTERS), answer=one_line(answer, ANSWER_CHARACTERS)
    )


_WHO: Mapping[Language, Mapping[Role, str]] = {
    "zh": {Role.USER: "问", Role.ASSISTANT: "答", Role.TOOL: "工具结果"},
    "en": {Role.USER: "Question", Role.ASSISTANT: "Answer", Role.TOOL: "Tool result"},
}


def _said(message: Message, language: Language) -> str:
    text = message.result.content if message.result is not None else message.text
    who = _WHO[language].get(message.role)
    text = " ".join(without_leaks(text).split())
    return f"{who}: {text}" if who and text else ""
