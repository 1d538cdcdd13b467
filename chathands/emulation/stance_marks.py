"""Evidence in one sentence about whether its speaker acts, pleads, promises or hands over.

A mark is the name of the piece of grammar that was met. Phrases are data (`prompts/stance.toml`);
here they are combined with who the subject is, negation and condition. refusal.py weighs the marks.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from chathands.conversation import ToolSpec
from chathands.emulation.matching import PLAUSIBLE, RELATED, score
from chathands.emulation.phrases import Sentence, holds, rule, with_parts
from chathands.emulation.prompts import load


def marks_of(sentence: Sentence, following: str, tools: Sequence[ToolSpec]) -> list[str]:
    """All evidence in a sentence; `following` is the sentence behind it."""
    text = sentence.text
    third = load("stance")["third_person"]
    if re.search(f"{third['zh']}|{third['en']}", text):
        return []
    marks = [*_inability_zh(text, following), *_inability_en(text, following)]
    if set(marks) <= _OPEN and not _concerns_means(text, tools):
        marks = []
    if not sentence.question and not marks and _lacks(text, tools):
        marks.append("cannot_tool")
    if marks and holds("none_at_all", text):
        marks.append("none_at_all")
    if marks and holds("human", text) and not holds("about_tools", text):
        marks = []
    if not sentence.question or holds("gives_back_asked", text):
        marks += _handing_over(text, tools)
    if not sentence.question:
        marks += _intent_zh(text) + _intent_en(text) or _intent_to_do(text, tools)
    return marks


# --- inability

_OPEN = frozenset({"zh_cannot_open", "en_cannot_open", "zh_cannot_me"})
"""Inability of an open class of verbs: it counts where the person or a tool's matter is named."""


def _concerns_means(text: str, tools: Sequence[ToolSpec]) -> bool:
    return (
        holds("addressed", text) or holds("about_tools", text) or does_one_of(tools, text, RELATED)
    )


def _with_reason(text: str, following: str) -> str:
    """A sentence with what its colon announces."""
    return f"{text} {following}" if text.endswith((":", "：")) else text


def _inability_zh(text: str, following: str) -> list[str]:
    marks: list[str] = []
    clauses = [clause for clause in re.split(r"[,，;；：:]", text) if clause.strip()]
    external = holds("zh_reason", _with_reason(text, following))
    sorry = holds("zh_sorry", text)
    for at, clause in enumerate(clauses):
        before = clauses[at - 1] if at else ""
        if external or holds("zh_not_about_me", clause) or holds("zh_if", before):
            continue
        for name in ("zh_cannot_act", "zh_cannot_verb", "zh_no_tool", "zh_dead_tool"):
            for found in rule(name).finditer(clause):
                if _speaker(clause[: found.start()], clauses[:at]):
                    marks.append(name)
        for name in ("zh_cannot_me", "zh_cannot_open", "zh_no_means"):
            for found in rule(name).finditer(clause) if not marks else ():
                prefix = clause[: found.start()]
                mine = sorry or any("我" in earlier for earlier in clauses[:at])
                if holds("zh_i_near", prefix) or (mine and _speaker(prefix, clauses[:at])):
                    marks.append(name)
        names = ("zh_cannot_idiom", "zh_cannot_here", "zh_cannot_for_you")
        marks += [name for name in names if holds(name, clause)]
    role = rule("zh_role").search(text)
    if role and holds("zh_negative", text[role.start() :] + following):
        marks.append("zh_role")
    marks += [name for name in ("zh_only", "zh_cutoff", "zh_were_i") if holds(name, text)]
    return marks


def _speaker(prefix: str, earlier: Sequence[str]) -> bool:
    """Whether the subject before a Chinese verb is the speaker, said or left out."""
    if holds("zh_i_near", prefix):
        return True
    # Atomic: what a hostile reply repeats must not be tried in every combination.
    if not re.fullmatch(with_parts("(?>{zh_subject_ok})*+"), prefix):
        return False
    if "我" in prefix or not earlier:
        return True
    # The subject is left out: it is that of the sentence's first clause.
    return holds("zh_first_ok", earlier[0]) and (
        not holds("zh_other", earlier[0]) or re.search("我(?!的)", earlier[0]) is not None
    )


def _inability_en(text: str, following: str) -> list[str]:
    marks: list[str] = []
    external = holds("en_reason", _with_reason(text, following))
    for found in rule("en_cannot").finditer(text):
        before, after = text[: found.start()], text[found.end() : found.end() + 70]
        after = rule("en_clause_end").split(after)[0]
        if external or not _i_speak(before, found.group()) or holds("en_condition", before):
            continue
        if holds("en_has", found.group()):
            if holds("en_then_thing", after):
                marks.append("en_no_tool")
        elif holds("en_then_act", after):
            marks.append("en_cannot_act")
        elif holds("en_then_help", after) and holds("en_act_hard", text):
            marks.append("en_cannot_help")
        elif holds("en_modal", found.group()) and holds("en_then_open", after):
            marks.append("en_cannot_open")
    role = rule("en_role").search(text)
    if role and holds("en_negative", f"{text[role.start() :]} {following}"):
        marks.append("en_role")
    if not external:
        marks += ["en_dead_tool"] * holds("en_dead", text)
        names = ("en_only", "en_cutoff", "en_were_i", "en_cannot_here", "en_cannot_idiom")
        marks += [name for name in names if holds(name, text)]
    return marks


def _i_speak(before: str, matched: str) -> bool:
    if holds("en_i", before):
        return True
    if matched.startswith(("without", "there", "no way")):
        return not holds("en_other", before)
    return holds("en_elided", before)


def _lacks(text: str, tools: Sequence[ToolSpec]) -> bool:
    """Whether the speaker denies having what a declared tool gives."""
    if any(holds(name, text) for name in ("conditional", "reported", "zh_reason", "en_reason")):
        return False
    lacks = any(holds(name, text) for name in ("lacks_en", "lacks_zh", "not_known"))
    return lacks and does_one_of(tools, text)


# --- handing over

_TOLD = ("told_to_act", "own_means")
"""Told to do it, told to use their own means: handing over if a declared tool does just that."""


def _handing_over(text: str, tools: Sequence[ToolSpec]) -> list[str]:
    marks = []
    mine = holds("i_do", text)
    wants_a_value = holds("asks_value", text) and not holds("source_noun", text)
    idle = holds("polish", text) or holds("open_offer", text)
    wants_it_back = holds("give_back", text) and not idle
    wants_data = holds("asks_data", text) and does_one_of(tools, text)
    if (wants_it_back or wants_data) and not wants_a_value:
        marks.append("give_back")
    by_hand_en = holds("yourself_en", text) and holds("by_hand_en", text)
    if not mine and (holds("yourself_zh", text) or by_hand_en):
        marks.append("yourself")
    looked_up_zh = holds("elsewhere_zh", text) and holds("to_look_zh", text)
    if not mine and (looked_up_zh or holds("elsewhere_en", text)):
        marks.append("elsewhere")
    told = any(holds(f"{name}_{lang}", text) for name in _TOLD for lang in ("zh", "en"))
    told = told and not mine and not holds("conditional", text)
    if not marks and told and does_one_of(tools, text, RELATED):
        marks.append("tool_task")
    return marks


def does_one_of(tools: Sequence[ToolSpec], text: str, least: float = PLAUSIBLE) -> bool:
    """Whether what a text is about is what one of the tools does; `least` is how much they share,
    in points of `matching.score`."""
    return any(spec.description and score(text, spec, parameters=False) >= least for spec in tools)


# --- promises


def _intent_zh(text: str) -> list[str]:
    marks = []
    for found in rule("intent_zh").finditer(text):
        past = holds("zh_past", text[: found.start()])
        if not past and not holds("not_intent_zh", text[: found.end()]):
            marks.append("intent_zh")
    if not marks and holds("ready_zh", text):
        marks.append("intent_zh")
    if not marks and not holds("zh_if", text):
        for found in rule("zh_at_once").finditer(text):
            if holds("zh_open_act", text[found.end() :]) and not holds("zh_past", text):
                marks.append("soon_zh")
    if holds("explain_zh", text) and not holds("not_explain_zh", text):
        marks.append("explain_zh")
    if holds("plan_zh", text) or holds("step_zh", text):
        marks.append("intent_plan")
    if holds("zh_wait", text):
        marks.append("wait_zh")
    return marks


def _intent_to_do(text: str, tools: Sequence[ToolSpec]) -> list[str]:
    """A first person's future with the task of a declared tool for its object."""
    promised = holds("will_do", text) and not holds("conditional", text)
    if promised and does_one_of(tools, text):
        return ["intent_task"]
    return ["soon_task"] * (holds("fragment_en", text) and does_one_of(tools, text, RELATED))


def _unconditional(name: str, text: str) -> bool:
    found = rule(name).search(text)
    return found is not None and not holds("en_if", text[: found.end()])


def _intent_en(text: str) -> list[str]:
    marks = []
    # What is promised first may well have a condition behind it.
    if any(_unconditional(name, text) for name in ("intent_en", "plan_en", "ready_en")):
        marks.append("intent_en")
    elif _unconditional("soon_en", text):
        marks.append("soon_en")
    if holds("doing_en", text):
        marks.append("doing_en")
    if holds("wait_en", text) and not holds("not_wait_en", text):
        marks.append("wait_en")
    return marks
