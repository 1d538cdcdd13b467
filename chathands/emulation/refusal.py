"""What a reply without a call is: refusal, missed call, safety refusal, question, normal.

Phrase evidence is data (`prompts/stance.toml`); here it is combined with structure: who the
subject is, where in the reply the sentence stands, what is said besides, whether it is quoted.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Literal

from chathands.emulation.prompts import load

Kind = Literal["refusal", "missed_call", "safety_refusal", "clarify", "normal"]


@dataclass(frozen=True, slots=True)
class Stance:
    """How a reply relates to acting; `evidence` names the rules that decided."""

    kind: Kind
    evidence: tuple[str, ...] = ()
    strong: bool = False
    """For a refusal: it pleads having no tools or being a model, which no result could explain."""


@dataclass(slots=True)
class _Sentence:
    text: str
    question: bool
    marks: list[str] = field(default_factory=list)

    @property
    def weight(self) -> int:
        """Length in half-width columns: a Chinese character says about what two letters say."""
        return sum(2 if char > "\u2e7f" else 1 for char in self.text)


_INABILITY = ("zh_cannot", "zh_no", "zh_dead", "zh_role", "zh_only", "zh_cutoff")
_INABILITY += ("en_cannot", "en_no", "en_dead", "en_role", "en_only", "en_cutoff")
_STRONG = frozenset(
    f"{language}_{name}"
    for language in ("zh", "en")
    for name in ("no_tool", "dead_tool", "role", "only", "cutoff")
)
_HANDING_OVER = ("give_back", "yourself", "elsewhere")
_PROMISES = ("intent", "explain", "wait", "doing")

_SUBSTANCE = 90
"""Columns of plain text that make a reply more than its announcement."""
_CAVEAT_AFTER = 120
"""Columns of plain text after which an inability is a caveat and no refusal."""
_SHORT = 320
"""Columns of a reply that may be nothing but a pointer to somewhere else."""
_READ_HEAD, _READ_TAIL, _SENTENCE_CAP = 4000, 2000, 400
"""Characters of a reply and of a sentence that are judged; a stance shows at the ends."""


_STEP = re.compile(r"\b(?:step|part) ?\d+|第 ?\d+ ?步|步骤 ?\d+")

# --- rules


@cache
def _filled(template: str) -> str:
    parts = load("stance")["parts"]
    return re.sub(r"\{([a-z]\w+)\}", lambda found: _filled(parts[found.group(1)]), template)


@cache
def _rule(name: str) -> re.Pattern[str]:
    """A rule by its name; a part by its name where a part is rule enough."""
    tables = load("stance")
    return re.compile(_filled(tables["rules"].get(name) or tables["parts"][name]))


def _is(name: str, text: str) -> bool:
    return _rule(name).search(text) is not None


# --- from text to sentences

_STRAIGHT = str.maketrans({"’": "'", "‘": "'", "`": "'"})


def _testimony(text: str) -> str:
    """What the speaker says themselves: no code, quotations, examples, translations."""
    remove = load("stance")["remove"]
    if len(text) > _READ_HEAD + _READ_TAIL:
        text = f"{text[:_READ_HEAD]}\n{text[-_READ_TAIL:]}"
    text = re.sub(r"```.*?(?:```|\Z)", "\n", text, flags=re.DOTALL)
    text = re.sub(r"`[^`\n]+`", " ⟦⟧ ", text)
    text = re.sub(r"^\s*>.*$", "", text, flags=re.MULTILINE)
    text = text.translate(_STRAIGHT).casefold().replace("**", "").replace("__", "")
    text = re.sub(remove["arrow"], "", text, flags=re.MULTILINE)
    text = re.sub(remove["quoted"], " ⟦⟧ ", text)
    return re.sub(remove["translation"], "", text)


def _sentences(text: str) -> list[_Sentence]:
    out = []
    pieces = re.split(r"(?<=[。！？!?；;\n])|(?<=[.])(?=\s)|(?<=：)|(?<=:)(?=\s|$)", text)
    for piece in pieces:
        body = re.sub(r"^[\s\-*•#\d.、)）]+", "", piece).strip()
        if re.search(r"\w", body):
            question = bool(re.search(r"[?？]|(?:吗|呢|(?<!什)么)[。！!.~～]?$", body))
            out.append(_Sentence(body[:_SENTENCE_CAP], question))
    return out


def sentences_of(text: str) -> list[tuple[str, bool]]:
    """What a speaker says themselves (no code, quotations, examples): sentence, is a question."""
    return [(sentence.text, sentence.question) for sentence in _sentences(_testimony(text))]


def says_nothing(text: str) -> bool:
    """Whether a reply is only an acknowledgement: nothing done, nothing said."""
    words = load("stance")["acknowledgement"]["words"]
    rest = re.sub(r"[\s,，.。!！~～、；;：:]+", " ", text.translate(_STRAIGHT).casefold()).strip()
    return 0 < len(rest) <= _SHORT and re.fullmatch(rf"(?>(?:{words}) ?)++", rest) is not None


def without_nods(text: str) -> str:
    """A reply without the acknowledgement it opens with."""
    words = load("stance")["acknowledgement"]["words"]
    return re.sub(rf"^(?>(?:{words})[\s,，.。!！~～、]+)++", "", text.strip().casefold())


def gives_a_lesson(text: str) -> bool:
    """Whether a reply teaches how something is done."""
    return re.search(load("stance")["how_to"]["lesson"], text.casefold()) is not None


def asks_about_the_assistant(question: str) -> bool:
    """Whether the person asks what the assistant is or can do."""
    return re.search(load("stance")["no_tool"]["about_me"], question.casefold()) is not None


# --- the decision


def stance_of(text: str, *, tool_names: Sequence[str] = (), after_result: bool = False) -> Stance:
    """Judge a reply that holds no call.

    `after_result` says that results stand before it: then an inability may be a report, and only
    the plea of having no tools at all is a refusal.
    """
    sentences = _sentences(_testimony(text))
    for at, sentence in enumerate(sentences):
        following = sentences[at + 1].text if at + 1 < len(sentences) else ""
        sentence.marks += _marks(sentence, following)
    found = _safety(sentences) or _refusal(sentences, after_result=after_result)
    found = found or _delegation(sentences)
    if found is None and sentences and _asks(sentences):
        found = Stance("clarify", ("question",))
    return found or _promise(sentences) or _explains_tool(text, tool_names) or Stance("normal")


def _marks(sentence: _Sentence, following: str) -> list[str]:
    text = sentence.text
    third = load("stance")["third_person"]
    if re.search(f"{third['zh']}|{third['en']}", text):
        return []
    marks = [*_inability_zh(text, following), *_inability_en(text, following)]
    if not sentence.question or _is("gives_back_asked", text):
        marks += _handing_over(text)
    if not sentence.question:
        marks += _intent(text)
    return marks


def _starts(marks: Sequence[str], prefixes: tuple[str, ...]) -> list[str]:
    return [mark for mark in marks if mark.startswith(prefixes)]


# --- inability


def _inability_zh(text: str, following: str) -> list[str]:
    marks: list[str] = []
    clauses = [clause for clause in re.split(r"[,，;；：:]", text) if clause.strip()]
    external = _is("zh_reason", text)
    for at, clause in enumerate(clauses):
        before = clauses[at - 1] if at else ""
        if external or _is("zh_not_about_me", clause) or _is("zh_if", before):
            continue
        for name in ("zh_cannot_act", "zh_cannot_verb", "zh_no_tool", "zh_dead_tool"):
            for found in _rule(name).finditer(clause):
                if _speaker(clause[: found.start()], clauses[:at]):
                    marks.append(name)
        for found in _rule("zh_cannot_me").finditer(clause):
            if _is("zh_i_near", clause[: found.start()]):
                marks.append("zh_cannot_me")
    role = _rule("zh_role").search(text)
    if role and _is("zh_negative", text[role.start() :] + following):
        marks.append("zh_role")
    return marks + [name for name in ("zh_only", "zh_cutoff") if _is(name, text)]


def _speaker(prefix: str, earlier: Sequence[str]) -> bool:
    """Whether the subject before a Chinese verb is the speaker, said or left out."""
    if _is("zh_i_near", prefix):
        return True
    # Atomic: what a hostile reply repeats must not be tried in every combination.
    if not re.fullmatch(f"(?>{_filled('{zh_subject_ok}')})*+", prefix):
        return False
    if "我" in prefix or not earlier:
        return True
    # The subject is left out: it is that of the sentence's first clause.
    return not _is("zh_other", earlier[0]) or re.search("我(?!的)", earlier[0]) is not None


def _inability_en(text: str, following: str) -> list[str]:
    marks: list[str] = []
    external = _is("en_reason", text)
    for found in _rule("en_cannot").finditer(text):
        before, after = text[: found.start()], text[found.end() : found.end() + 70]
        after = _rule("en_clause_end").split(after)[0]
        if external or not _i_speak(before, found.group()) or _is("en_condition", before):
            continue
        if _is("en_has", found.group()):
            if _is("en_then_thing", after):
                marks.append("en_no_tool")
        elif _is("en_then_act", after):
            marks.append("en_cannot_act")
        elif _is("en_then_help", after) and _is("en_act_hard", text):
            marks.append("en_cannot_help")
    role = _rule("en_role").search(text)
    if role and re.search(_filled("{en_cannot}|only"), f"{text[role.start() :]} {following}"):
        marks.append("en_role")
    if not external:
        marks += ["en_dead_tool"] * _is("en_dead", text)
        marks += [name for name in ("en_only", "en_cutoff") if _is(name, text)]
    return marks


def _i_speak(before: str, matched: str) -> bool:
    if _is("en_i", before):
        return True
    if matched.startswith(("without", "there", "no way")):
        return not _is("en_other", before)
    return _is("en_elided", before)


# --- the kinds, firmest first


def _safety(sentences: Sequence[_Sentence]) -> Stance | None:
    whole = " ".join(sentence.text for sentence in sentences)
    topic, tools = _is("decline_topic", whole), _is("about_tools", whole)
    for sentence in sentences:
        if _STRONG & set(sentence.marks) or not _is("decline", sentence.text):
            continue
        if topic and _is("decline_topic", sentence.text + whole[-200:]):
            return Stance("safety_refusal", ("decline_topic",))
        unable = _starts(sentence.marks, ("zh_cannot", "en_cannot"))
        if _is("decline_general", sentence.text) and not tools and not unable:
            return Stance("safety_refusal", ("decline_general",))
    return None


def _refusal(sentences: Sequence[_Sentence], *, after_result: bool) -> Stance | None:
    said = 0
    for sentence in sentences:
        found = _starts(sentence.marks, _INABILITY)
        strong = not _STRONG.isdisjoint(found)
        if found and (strong or not after_result):
            # What stands far behind a substantial answer is a caveat.
            return Stance("refusal", tuple(found), strong) if said <= _CAVEAT_AFTER else None
        if not found and not _starts(sentence.marks, _PROMISES):
            said += sentence.weight
    return None


def _handing_over(text: str) -> list[str]:
    marks = []
    if _is("give_back", text) and not _is("polish", text):
        marks.append("give_back")
    by_hand_en = _is("yourself_en", text) and _is("by_hand_en", text)
    if _is("yourself_zh", text) or by_hand_en:
        marks.append("yourself")
    looked_up_zh = _is("elsewhere_zh", text) and _is("to_look_zh", text)
    if looked_up_zh or _is("elsewhere_en", text):
        marks.append("elsewhere")
    return marks


def _delegation(sentences: Sequence[_Sentence]) -> Stance | None:
    total = sum(sentence.weight for sentence in sentences)
    found: list[str] = []
    said = 0
    for sentence in sentences:
        if said <= _CAVEAT_AFTER:
            found += _starts(sentence.marks, _HANDING_OVER)
        if not sentence.marks:
            said += sentence.weight
    pointer = "elsewhere" in found and total <= _SHORT and said < _SUBSTANCE
    if "give_back" in found or "yourself" in found or pointer:
        return Stance("missed_call", ("delegates", *dict.fromkeys(found)))
    return None


def _asks(sentences: Sequence[_Sentence]) -> bool:
    return sentences[-1].question or any(_is("asks", s.text) for s in sentences[-2:])


def _intent(text: str) -> list[str]:
    marks = []
    for found in _rule("intent_zh").finditer(text):
        past = _is("zh_past", text[: found.start()])
        if not past and not _is("not_intent_zh", text[: found.end()]):
            marks.append("intent_zh")
    if _is("explain_zh", text) and not _is("not_explain_zh", text):
        marks.append("explain_zh")
    if _is("zh_wait", text):
        marks.append("wait_zh")
    if _is("intent_en", text) and not _is("en_if", text):
        marks.append("intent_en")
    if _is("doing_en", text):
        marks.append("doing_en")
    if _is("wait_en", text) and not _is("not_wait_en", text):
        marks.append("wait_en")
    return marks


def _promise(sentences: Sequence[_Sentence]) -> Stance | None:
    """An announcement with nothing of substance around it."""
    promised = [at for at, s in enumerate(sentences) if _starts(s.marks, _PROMISES)]
    if not promised:
        return None
    plain = [s for s in sentences[promised[0] :] if not s.marks and not says_nothing(s.text)]
    before = [s for s in sentences[: promised[0]] if not s.marks and not says_nothing(s.text)]
    concrete = any(re.search(r"\d", _STEP.sub("", sentence.text)) for sentence in plain)
    if concrete or sum(s.weight for s in plain) >= _SUBSTANCE:
        return None
    if sum(s.weight for s in before) > _CAVEAT_AFTER:
        return None
    marks = [mark for at in promised for mark in sentences[at].marks]
    return Stance("missed_call", tuple(dict.fromkeys(marks)))


def _explains_tool(text: str, tool_names: Sequence[str]) -> Stance | None:
    """A reply that talks about calling one declared tool and does not call it."""
    named = [name for name in tool_names if len(name) > 3 and name in text]
    if len(named) != 1 or _is("used", text):
        return None
    mention = _rule("use_of").pattern + re.escape(named[0])
    if re.search(mention, text, re.IGNORECASE):
        return Stance("missed_call", ("names_tool",))
    return None
