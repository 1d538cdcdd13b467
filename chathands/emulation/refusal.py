"""What a reply without a call is: refusal, missed call, delegation, question, safety refusal.

Sentences and their marks come from phrases.py and stance_marks.py; here they are weighed by what
is said besides, where in the reply they stand, and what is declared.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from chathands.conversation import ToolSpec
from chathands.emulation.figures_read import figures_of
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

Kind = Literal["refusal", "missed_call", "delegates", "safety_refusal", "clarify", "normal"]

UNDONE: tuple[Kind, ...] = ("missed_call", "delegates")
"""Stances of a reply that does nothing: it promises, or it hands the deed over."""


@dataclass(frozen=True, slots=True)
class Stance:
    """How a reply relates to acting; `evidence` names the rules that decided."""

    kind: Kind
    evidence: tuple[str, ...] = ()
    strong: bool = False
    """For a refusal: it pleads having no tools or being a model, which no result could explain."""
    blanket: bool = False
    """For a refusal: it denies that there are any tools, or pleads being a model. That is never the
    plain truth, as not having one certain tool may be."""


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
_PLEAS = frozenset({"zh_role", "zh_only", "zh_cutoff", "en_role", "en_only", "en_cutoff"})
_STRONG = _LACKS | _PLEAS
_HANDING_OVER = ("give_back", "yourself", "elsewhere", "tool_task")
_PROMISES = ("intent", "explain", "wait", "doing", "soon")
_LOOSE = ("soon",)
"""Promises of an open class of verbs: they count only where nothing else is said."""

# None of these sits on an edge: half or twice of one changes at most four of the 852 decisions of
# benchmarks/refusals.py.
_SUBSTANCE = 90
"""Columns of plain text that make a reply more than its announcement: two sentences. One sentence
about what will be done, or why, is usual beside a promise and answers nothing."""
_LOOSE_SUBSTANCE = 24
"""The same for a promise whose verb is not known to be an act: a clause. Anything said besides lets
such a reply stand."""
_CAVEAT_AFTER = 120
"""Columns of plain text after which an inability is a caveat and no refusal: the apologies and
reasons before a plea seldom take more than two or three sentences."""
_SHORT = 320
"""Columns of a reply that may be nothing but a pointer to somewhere else: a paragraph. Longer ones
tell something themselves, and point further at the end."""

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
    found = found or _promise(sentences, text, tools)
    return found or _explains_tool(text, tools) or Stance("normal")


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
    said, figures = 0, False
    for sentence in sentences:
        found = _starts(sentence.marks, _INABILITY)
        figures = figures or _gives_a_figure(sentence.text if not found else _opening(sentence))
        strong = not _STRONG.isdisjoint(found)
        if found and (strong or not after_result):
            # What stands far behind a substantial answer is a caveat.
            if said > _CAVEAT_AFTER or figures:
                return None
            blanket = not {"none_at_all", *_PLEAS}.isdisjoint(sentence.marks)
            return Stance("refusal", tuple(found), strong, blanket)
        if not found and not _starts(sentence.marks, _PROMISES):
            said += sentence.weight
    return None


def _opening(sentence: Sentence) -> str:
    """The clauses of a sentence before the one that pleads."""
    clauses = rule("clause_end").split(sentence.text)
    at = next((n for n, clause in enumerate(clauses) if holds("negative", clause)), 0)
    return "，".join(clauses[:at])


def _gives_a_figure(text: str) -> bool:
    """Whether a text states something measured: what stands behind it is a caveat."""
    return any(figure.measured for figure in figures_of(text))


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
    by_hand = "yourself" in found and total <= 2 * _SHORT
    if "give_back" in found or by_hand or pointer or task:
        return Stance("delegates", tuple(dict.fromkeys(found)))
    return None


def _asks(sentences: Sequence[Sentence]) -> bool:
    """Whether a reply waits for the person; a closing courtesy waits for nothing."""
    if sentences[-1].question:
        return not holds("courtesy", sentences[-1].text)
    if any(sentence.question for sentence in sentences) and holds("then_i", sentences[-1].text):
        return True
    return any(holds("asks", sentence.text) for sentence in sentences[-2:])


def _promise(sentences: Sequence[Sentence], text: str, tools: Sequence[ToolSpec]) -> Stance | None:
    """An announcement with nothing of substance around it; a list of tools announces nothing."""
    promised = [at for at, s in enumerate(sentences) if _starts(s.marks, _PROMISES)]
    if not promised or (len(_named(text, tools)) > 1 and not holds("in_order", text)):
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


def _named(text: str, tools: Sequence[ToolSpec]) -> list[str]:
    return [spec.name for spec in tools if len(spec.name) > 3 and spec.name in text]


def _explains_tool(text: str, tools: Sequence[ToolSpec]) -> Stance | None:
    """A reply that talks about calling one declared tool and does not call it."""
    named = _named(text, tools)
    if len(named) != 1 or holds("used", text):
        return None
    mention = rule("use_of").pattern + re.escape(named[0])
    if re.search(mention, text, re.IGNORECASE):
        return Stance("missed_call", ("names_tool",))
    return None
