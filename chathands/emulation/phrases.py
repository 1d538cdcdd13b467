"""What a reply says in its own voice, sentence by sentence, and the rules of `stance.toml`.

No judgement is made here; stance_marks.py finds evidence in sentences, refusal.py decides.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import cache

from chathands.emulation.prompts import load

SENTENCE_CAP = 400
"""Characters of one sentence that are judged."""
_READ_HEAD, _READ_TAIL = 4000, 2000
"""Characters of a reply that are judged: a stance shows at the ends."""
_SHORT = 320
"""Columns of a reply that may be nothing but nods."""

# --- rules


@cache
def _filled(name: str) -> str:
    """A part or rule with the parts it names put in. A list is a choice of its entries."""
    tables = load("stance")
    return with_parts(_choice(tables["parts"].get(name) or tables["rules"][name]))


def _choice(part: str | list[str]) -> str:
    return part if isinstance(part, str) else f"(?:{'|'.join(part)})"


@cache
def with_parts(template: str) -> str:
    """A pattern with the parts it names in braces put in."""
    return re.sub(r"\{([a-z]\w+)\}", lambda found: _filled(found.group(1)), template)


@cache
def rule(name: str) -> re.Pattern[str]:
    """A rule by its name; a part by its name where a part is rule enough."""
    return re.compile(_filled(name))


def holds(name: str, text: str) -> bool:
    """Whether a rule is met somewhere in a text."""
    return rule(name).search(text) is not None


# --- from text to sentences


@dataclass(slots=True)
class Sentence:
    text: str
    question: bool
    marks: list[str] = field(default_factory=list)

    @property
    def weight(self) -> int:
        """Length in half-width columns: a Chinese character says about what two letters say."""
        return sum(2 if char > "\u2e7f" else 1 for char in self.text)


@cache
def _plain_characters() -> dict[int, str]:
    """Apostrophes made straight and traditional characters simplified, one for one."""
    pairs = load("traditional")["pairs"].split()
    return str.maketrans({"’": "'", "‘": "'", "`": "'", **dict(pairs)})


def straightened(text: str) -> str:
    """Lower case, straight apostrophes, simplified characters: as the patterns are written."""
    return text.translate(_plain_characters()).casefold()


def testimony(text: str) -> str:
    """What the speaker says themselves: no code, quotations, examples, translations."""
    remove = load("stance")["remove"]
    if len(text) > _READ_HEAD + _READ_TAIL:
        text = f"{text[:_READ_HEAD]}\n{text[-_READ_TAIL:]}"
    text = re.sub(r"```.*?(?:```|\Z)", "\n", text, flags=re.DOTALL)
    text = re.sub(r"`[^`\n]+`", " ⟦⟧ ", text)
    text = re.sub(r"^[^\S\n]*>.*$", "", text, flags=re.MULTILINE)
    text = straightened(text).replace("**", "").replace("__", "")
    text = re.sub(remove["letter"], "", text, flags=re.MULTILINE)
    text = re.sub(remove["arrow"], "", text, flags=re.MULTILINE)
    text = re.sub(remove["quoted"], " ⟦⟧ ", text)
    return re.sub(remove["translation"], "", text)


def sentences_in(text: str) -> list[Sentence]:
    """The sentences of a testimony, without list marks."""
    out = []
    pieces = re.split(r"(?<=[。！？!?；;\n])|(?<=[.])(?=\s)|(?<=：)|(?<=:)(?=\s|$)", text)
    for piece in pieces:
        body = re.sub(r"^[\s\-*•#\d.、)）]+", "", piece).strip()
        if re.search(r"\w", body):
            question = bool(re.search(r"[?？]|(?:吗|呢|(?<!什)么)[。！!.~～]?$", body))
            out.append(Sentence(body[:SENTENCE_CAP], question))
    return out


def sentences_of(text: str) -> list[tuple[str, bool]]:
    """What a speaker says themselves (no code, quotations, examples): sentence, is a question."""
    return [(sentence.text, sentence.question) for sentence in sentences_in(testimony(text))]


# --- whole replies of a known sort


def says_nothing(text: str) -> bool:
    """Whether a reply is only an acknowledgement: nothing done, nothing said."""
    words = _nods()
    rest = re.sub(r"[\s,，.。!！~～、；;：:]+", " ", straightened(text)).strip()
    return 0 < len(rest) <= _SHORT and re.fullmatch(rf"(?>{words} ?)++", rest) is not None


def without_nods(text: str) -> str:
    """A reply without the acknowledgement it opens with."""
    return re.sub(rf"^(?>{_nods()}[\s,，.。!！~～、]+)++", "", text.strip().casefold())


@cache
def _nods() -> str:
    return _choice(load("stance")["acknowledgement"]["words"])


def tells_how(text: str) -> bool:
    """Whether a reply teaches how something is done, or tells from the start what to click."""
    lowered = straightened(text).strip()
    lesson = re.search(_choice(load("stance")["how_to"]["lesson"]), lowered) is not None
    return lesson or holds("imperative_zh", lowered) or holds("imperative_en", lowered)


def asks_for_words(question: str) -> bool:
    """Whether a question wants a wording: a translation, a role; the reply speaks for others."""
    return holds("asks_for_words", straightened(question))


def asks_to_look(question: str) -> bool:
    """Whether a question is about what changes, or what is the person's own: nobody knows it."""
    return holds("asks_to_look", straightened(question))


def asks_back(text: str) -> bool:
    """Whether a speaker asks the other for something they need in order to go on."""
    if holds("open_offer", straightened(text)):
        return False
    return any(
        question or holds("asks_back", sentence) for sentence, question in sentences_of(text)
    )


def declines(text: str) -> bool:
    """Whether a message ends the talk or takes a request back."""
    return holds("declines", straightened(text))


def asks_about_the_assistant(question: str) -> bool:
    """Whether the person asks what the assistant is or can do."""
    return re.search(load("stance")["no_tool"]["about_me"], question.casefold()) is not None
