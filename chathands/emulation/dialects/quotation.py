"""Whether the words before a block say that it is shown, not meant: only they can.

What follows a block is never asked: by then the call may have left.
"""

from __future__ import annotations

import re
from typing import Final

from chathands.emulation.dialects.data import load

LEAD: Final = 240
"""Characters of text before a block that are looked at."""

_DATA: Final[dict[str, list[str]]] = load("quotation.json")


def _group(name: str) -> re.Pattern[str]:
    return re.compile("|".join(f"(?:{part})" for part in _DATA[name]), re.IGNORECASE)


_APPROVAL: Final = _group("approval")
_HYPOTHESIS: Final = _group("hypothesis")
_REFUSAL: Final = _group("refusal")
_ANNOUNCING: Final = tuple(_group(name) for name in ("instruction", "recall", "source"))
_MENTION: Final = _group("mention")
_COMMITMENT: Final = _group("commitment")
_NOW: Final = _group("now")
_GRANTED: Final = _group("granted")
_RESULTS: Final = _group("results")
_INVENTIONS: Final = _group("inventions")
_DATA_SHOWN: Final = _group("data")
_DATA_ACT: Final = _group("data_act")
_HERE_IS: Final = _group("data_lead")
_CLAUSE: Final = re.compile(r"[，,]\s{0,4}")
_AT_ONCE: Final = 2
"""Characters between a commitment and the words that belong to it."""
_DRESS: Final = " \t\r*#_>-"
_FULL_STOPS: Final = frozenset("。.！!？?")
_SENTENCE: Final = re.compile(r"[。！？!?；;\n]+|(?<=[a-z0-9)\]\"'])\.(?=\s|$)")


def is_quoted(lead: str) -> bool:
    """Whether a block behind this text is an example, a quotation or what a refusal is about.

    The last sentence decides; the one before it only where the last says nothing either way. A
    commitment ("I will now …") outweighs a cue that stands before it, but not a condition that a
    person must meet first. What announces something ("you can use", "earlier I ran", "the file
    says") speaks of the block only when the sentence goes on to it.
    """
    goes_on = lead.rstrip()[-1:] not in _FULL_STOPS
    cues = (_REFUSAL, *_ANNOUNCING) if goes_on else (_REFUSAL,)
    sentences = [part for part in _SENTENCE.split(lead[-LEAD:]) if part.strip(" \t:：,，*-#>")]
    for sentence in (part.strip(_DRESS) for part in reversed(sentences[-2:])):
        if _APPROVAL.search(sentence) and not _GRANTED.search(sentence):
            return True
        committed, until = _last(_COMMITMENT, sentence)
        found = [_last(pattern, sentence)[0] for pattern in cues]
        # "let me run the following" announces what the speaker does, not what others may do
        said = [at for at in found if not 0 <= committed <= at <= until + _AT_ONCE]
        cue = max(said, default=-1)
        if _HYPOTHESIS.search(sentence):
            return _NOW.search(sentence) is None
        if cue >= 0:
            return committed < cue
        if committed >= 0:
            return False
        if _MENTION.search(sentence):
            return True
    return False


def announces_data(lead: str) -> bool:
    """Whether the text goes on to what some service gave back; that is data, whatever its form.

    Only the clause right before the block counts, and not where it says that its speaker acts.
    """
    sentences = [part for part in _SENTENCE.split(lead[-LEAD:]) if part.strip(_DRESS + ":：,，")]
    if not sentences:
        return False
    clause = _CLAUSE.split(sentences[-1].strip(_DRESS + ":：,，"))[-1]
    if _COMMITMENT.search(_HERE_IS.sub("", clause)) or _DATA_ACT.search(clause):
        return False
    return _DATA_SHOWN.search(clause.casefold()) is not None


def announces(lead: str) -> bool:
    """Whether the last sentence of the text says that its speaker acts now."""
    sentences = [part for part in _SENTENCE.split(lead[-LEAD:]) if part.strip(" \t:：,，*-#>")]
    return bool(sentences) and _COMMITMENT.search(sentences[-1].strip(_DRESS)) is not None


def names_a_result(text: str, *, after_call: bool) -> bool:
    """Whether the text claims to be what a tool gave back, which no model can know.

    Behind a call every `Output:` does; before the first one only what can be nothing else.
    """
    return (_RESULTS if after_call else _INVENTIONS).search(text) is not None


def _last(pattern: re.Pattern[str], text: str) -> tuple[int, int]:
    """Where the last match begins and ends; -1 without one."""
    at = (-1, -1)
    for found in pattern.finditer(text):
        at = found.span()
    return at
