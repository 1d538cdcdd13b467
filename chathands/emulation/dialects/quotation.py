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
_WEAKER: Final = tuple(_group(name) for name in ("instruction", "refusal", "recall", "source"))
_COMMITMENT: Final = _group("commitment")
_NOW: Final = _group("now")
_RESULTS: Final = _group("results")
_INVENTIONS: Final = _group("inventions")
_SENTENCE: Final = re.compile(r"[。！？!?；;\n]+|(?<=[a-z0-9)\]\"'])\.(?=\s|$)")


def is_quoted(lead: str) -> bool:
    """Whether a block behind this text is an example, a quotation, a refusal's subject or a question.

    The last sentence decides; the one before it only where the last says nothing either way. A
    commitment ("I will now …") outweighs a cue that stands before it, but not a condition that a
    person must meet first.
    """
    sentences = [part for part in _SENTENCE.split(lead[-LEAD:]) if part.strip(" \t:：,，*-#>")]
    for sentence in reversed(sentences[-2:]):
        if _APPROVAL.search(sentence):
            return True
        cue = max((_last(pattern, sentence) for pattern in _WEAKER), default=-1)
        committed = _last(_COMMITMENT, sentence)
        if _HYPOTHESIS.search(sentence):
            return _NOW.search(sentence) is None
        if cue >= 0:
            return committed < cue
        if committed >= 0:
            return False
    return False


def names_a_result(text: str, *, after_call: bool) -> bool:
    """Whether the text claims to be what a tool gave back, which no model can know.

    Behind a call every `Output:` does; before the first one only what can be nothing else.
    """
    return (_RESULTS if after_call else _INVENTIONS).search(text) is not None


def _last(pattern: re.Pattern[str], text: str) -> int:
    """Where the last match begins; -1 without one."""
    at = -1
    for found in pattern.finditer(text):
        at = found.start()
    return at
