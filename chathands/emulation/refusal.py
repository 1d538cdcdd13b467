"""What a reply without a call is: refusal, missed call, safety refusal, question, normal.

Sentences and their marks come from phrases.py and stance_marks.py; here they are weighed by what
is said besides, where in the reply they stand, and what is declared.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from chathands.conversation import ToolSpec
from chathands.emulation.phrases import (
    Sentence,
    holds,
    rule,
    says_nothing,
    sentences_in,
    straightened,
    testimony,
)
from chathands.emulation.stance_marks import does_one_of, marks_of

Kind = Literal["refusal", "missed_call", "safety_refusal", "clarify", "normal"]


@dataclass(frozen=True, slots=True)
class Stance:
    """How a reply relates to acting; `evidence` names the rules that decided."""

    kind: Kind
    evidence: tuple[str, ...] = ()
    strong: bool = False
    """For a refusal: it pleads having no tools or being a model, which no result could explain."""
    none_at_all: bool = False
    """For a refusal: it denies that there are any tools, which is never the truth."""


_INABILITY = (
    "cannot_tool",
    "zh_cannot",
    "zh_no",
    "zh_dead",
    "zh_role",
    "zh_only",
    "zh_cutoff",
    "zh_were_i",
)
_INABILITY += ("en_cannot", "en_no", "en_dead", "en_role", "en_only", "en_cutoff", "en_were_i")
_LACKS = frozenset({"zh_no_tool", "zh_dead_tool", "en_no_tool", "en_dead_tool"})
_STRONG = _LACKS | {
    f"{lang}_{name}" for lang in ("zh", "en") for name in ("role", "only", "cutoff")
}
_HANDING_OVER = ("give_back", "yourself", "elsewhere", "tool_task")
_PROMISES = ("intent", "explain", "wait", "doing", "soon")
_LOOSE = ("soon",)
"""Promises of an open class of verbs: they count only where nothing else is said."""

_SUBSTANCE = 90
"""Columns of plain text that make a reply more than its announcement."""
_LOOSE_SUBSTANCE = 24
"""The same for a promise whose verb is not known to be an act."""
_CAVEAT_AFTER = 120
"""Columns of plain text after which an inability is a caveat and no refusal."""
_SHORT = 320
"""Columns of a reply that may be nothing but a pointer to somewhere else."""

_STEP = re.compile(r"\b(?:step|part) ?\d+|第 ?\d+ ?步|步骤 ?\d+")


def stance_of(text: str, *, tools: Sequence[ToolSpec] = (), after_result: bool = False) -> Stance:
    """Judge a reply that holds no call.

    `tools` are the declared ones: telling the person to do what one of them does is a missed call.
    `after_result` says that results stand before it: then an inability may be a report, and only
    the plea of having no tools at all is a refusal.
    """
    sentences = sentences_in(testimony(text))
    for at, sentence in enumerate(sentences):
        following = sentences[at + 1].text if at + 1 < len(sentences) else ""
        sentence.marks += marks_of(sentence, following, tools)
    found = _safety(sentences) or _refusal(sentences, after_result=after_result)
    if found is not None and found.kind == "refusal" and _tells_limits(sentences, tools):
        return Stance("normal", ("limits",))
    found = found or _delegation(sentences, tools)
    if found is None and sentences and _asks(sentences):
        found = Stance("clarify", ("question",))
    if found is None and holds("staged", straightened(text).strip()):
        found = Stance("missed_call", ("staged",))
    names = [spec.name for spec in tools]
    return found or _promise(sentences) or _explains_tool(text, names) or Stance("normal")


def _starts(marks: Sequence[str], prefixes: tuple[str, ...]) -> list[str]:
    return [mark for mark in marks if mark.startswith(prefixes)]


# --- the kinds, firmest first


def _safety(sentences: Sequence[Sentence]) -> Stance | None:
    whole = " ".join(sentence.text for sentence in sentences)
    topic, scruple = holds("decline_topic", whole), holds("scruple", whole)
    tools = holds("about_tools", whole)
    for sentence in sentences:
        if _LACKS & set(sentence.marks) or not holds("decline", sentence.text):
            continue
        near = sentence.text + whole[-200:]
        if topic and holds("decline_topic", near):
            return Stance("safety_refusal", ("decline_topic",))
        # "For reasons of privacy I cannot open your files" is a plea, whatever reason it gives.
        if scruple and holds("scruple", near) and not holds("persons_own", sentence.text):
            return Stance("safety_refusal", ("scruple",))
        unable = _starts(sentence.marks, ("zh_cannot", "en_cannot"))
        if holds("decline_general", sentence.text) and not tools and not unable:
            return Stance("safety_refusal", ("decline_general",))
    return None


def _refusal(sentences: Sequence[Sentence], *, after_result: bool) -> Stance | None:
    said = 0
    for sentence in sentences:
        found = _starts(sentence.marks, _INABILITY)
        strong = not _STRONG.isdisjoint(found)
        if found and (strong or not after_result):
            # What stands far behind a substantial answer is a caveat.
            if said > _CAVEAT_AFTER:
                return None
            return Stance("refusal", tuple(found), strong, "none_at_all" in sentence.marks)
        if not found and not _starts(sentence.marks, _PROMISES):
            said += sentence.weight
    return None


def _tells_limits(sentences: Sequence[Sentence], tools: Sequence[ToolSpec]) -> bool:
    """Whether a refusal is the truth: what is refused no declared tool does, and what the speaker
    says they can do instead is what a declared tool does."""
    offers = False
    for sentence in sentences:
        if {"zh_role", "en_role", "zh_cutoff", "en_cutoff"} & set(sentence.marks):
            return False
        for clause in rule("clause_end").split(sentence.text):
            if holds("negative", clause):
                if does_one_of(tools, clause):
                    return False
            elif holds("can_do", clause) and not holds("by_words", clause):
                offers = offers or does_one_of(tools, clause)
    return offers


def _delegation(sentences: Sequence[Sentence], tools: Sequence[ToolSpec]) -> Stance | None:
    total = sum(sentence.weight for sentence in sentences)
    found: list[str] = []
    said = 0
    for sentence in sentences:
        if said <= _CAVEAT_AFTER:
            found += _starts(sentence.marks, _HANDING_OVER)
        if not sentence.marks:
            said += sentence.weight
    pointer = "elsewhere" in found and total <= _SHORT and said < _SUBSTANCE
    task = "tool_task" in found and total <= _SHORT and said < _SUBSTANCE
    if "give_back" in found or "yourself" in found or pointer or task:
        return Stance("missed_call", ("delegates", *dict.fromkeys(found)))
    return None


def _asks(sentences: Sequence[Sentence]) -> bool:
    """Whether a reply waits for the person; a closing courtesy waits for nothing."""
    if sentences[-1].question:
        return not holds("courtesy", sentences[-1].text)
    return any(holds("asks", sentence.text) for sentence in sentences[-2:])


def _promise(sentences: Sequence[Sentence]) -> Stance | None:
    """An announcement with nothing of substance around it."""
    promised = [at for at, s in enumerate(sentences) if _starts(s.marks, _PROMISES)]
    if not promised:
        return None
    marks = [mark for at in promised for mark in _starts(sentences[at].marks, _PROMISES)]
    loose = len(_starts(marks, _LOOSE)) == len(marks)
    plain = [s for s in sentences[promised[0] :] if _has_substance(s)]
    before = [s for s in sentences[: promised[0]] if _has_substance(s)]
    if any(re.search(r"\d", _STEP.sub("", sentence.text)) for sentence in plain):
        return None
    if sum(s.weight for s in plain) >= (_LOOSE_SUBSTANCE if loose else _SUBSTANCE):
        return None
    if sum(s.weight for s in before) > (_LOOSE_SUBSTANCE if loose else _CAVEAT_AFTER):
        return None
    return Stance("missed_call", tuple(dict.fromkeys(marks)))


def _has_substance(sentence: Sentence) -> bool:
    empty = says_nothing(sentence.text) or holds("courtesy", sentence.text)
    return not sentence.marks and not empty


def _explains_tool(text: str, tool_names: Sequence[str]) -> Stance | None:
    """A reply that talks about calling one declared tool and does not call it."""
    named = [name for name in tool_names if len(name) > 3 and name in text]
    if len(named) != 1 or holds("used", text):
        return None
    mention = rule("use_of").pattern + re.escape(named[0])
    if re.search(mention, text, re.IGNORECASE):
        return Stance("missed_call", ("names_tool",))
    return None
