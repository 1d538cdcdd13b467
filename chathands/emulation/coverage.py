"""Whether calls hold everything of a kind that the question lists: the second id, the third city.

Small models write the first of several calls, or the first item of a list, and stop. What was left
out shows without understanding the question: the like of it is in the calls, and it is not. Things
whose like no call carries say nothing: they may belong to a later step.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from chathands.conversation import Conversation, ToolCall, ToolChoice, ToolSpec, canonical_json
from chathands.emulation.claims import has_results
from chathands.emulation.matching import texts_of
from chathands.emulation.outcome import Basis, Calls, Outcome, Reason, Retry
from chathands.emulation.state import question_of

_NAMED = 8
"""Things left out that a correction names: more would only push the request out of sight."""

_ID = re.compile(r"(?<![A-Za-z0-9])(?=[A-Za-z0-9_\-]*\d)(?=[A-Za-z0-9_\-]*[A-Za-z])\w[\w\-]*", re.A)
"""Letters and digits in one word: CHG101, user_7, WXZ123."""
_NOT_AN_ID = re.compile(r"\d+(?:st|nd|rd|th)|\d+d|x?\d+[a-z°%]{1,4}|\d+x\d+|\d+e-?\d+", re.I)
"""Ordinals, 3D, amounts with a unit (50ms), sizes (2x2), powers: they are written otherwise."""
_NUMBER = re.compile(r"(?<![A-Za-z0-9_.])\d+(?:,\d{3})*(?:\.\d+)?", re.A)
_QUOTED = re.compile(r"[“\"「『《'‘]([^“”\"「」『』《》'‘’\n]{2,40})[”\"」』》'’](?!\w)")
_BLANKS = re.compile(r"[\s,，.。\-_/:：'’]")
_SCALES = (1.0, 0.01, 100.0, 1e4, 1e8, 1e3, 1e6)
"""5% is 0.05, 3万 is 30000, 2k is 2000."""

_AND = re.compile(
    r"\s*(?:、|,?\s*(?:and|&)\s|和|与|跟|以及|及|还有|/|,(?=[^,.?!\n]{1,40}(?:,[^,.?!\n]{1,40})*,?\s+and\s))\s*",
    re.I,
)
"""A comma only in a list that ends in "and": the one in "Boston, Massachusetts" lists nothing."""
_NEXT = re.compile(r"[\u4e00-\u9fff]{2}|[A-Z][A-Za-z\d\-]*")
"""The head of what stands behind an "and": two characters, or a capitalised word."""
_FIELD = re.compile(r"[a-z][a-z_]*")
"""In quotation marks this is the name of a field, not of a thing."""
_VALUE = range(2, 41)
"""Characters of a value that may be one of an enumeration."""


def left_out(
    question: str, calls: Sequence[ToolCall], *, composed: bool = False
) -> tuple[str, ...]:
    """What the question lists beside things the calls carry, and no call carries; in its order.

    Four kinds: ids of the same shape, numbers of about the same length (but no single digit, which
    may number a list), names in quotation marks, and the neighbour of a value in an enumeration
    ("北京和上海"). `composed` leaves numbers and quotations out: a text that is to be sent may say
    them in its own words.
    """
    carried = _Carried(calls)
    found: dict[str, int] = {}
    ids = [m for m in _ID.finditer(question) if not _NOT_AN_ID.fullmatch(m[0])]
    shapes = {_shape(m[0]) for m in ids if carried.has(m[0])}
    found |= {m[0]: m.start() for m in ids if _shape(m[0]) in shapes and not carried.has(m[0])}
    blanked = "" if composed else _ID.sub(lambda m: " " * len(m[0]), question)
    numbers = list(_NUMBER.finditer(blanked))
    lengths = {_digits(m[0]) for m in numbers if carried.counts(m[0])}
    for m in numbers:
        near = {_digits(m[0]) + step for step in (-1, 0, 1)}
        if len(m[0]) > 1 and near & lengths and not carried.counts(m[0]):
            found[m[0]] = m.start()
    quoted = [m for m in _QUOTED.finditer(question) if not composed and not _FIELD.fullmatch(m[1])]
    if any(carried.has(m[1]) for m in quoted):
        found |= {m[1]: m.start() for m in quoted if not carried.touches(m[1])}
    for value in carried.values:
        for name, at in _neighbours(question, value):
            if not carried.has(name):
                found[name] = at
    return tuple(sorted(found, key=lambda name: found[name]))


class Completeness:
    """Gathers the calls of a run's first decision: as long as the question lists more, and each
    reply brings some of it, the rest is asked for."""

    def __init__(self, question: str, acting: frozenset[str] = frozenset()) -> None:
        """`acting` are the tools with an effect."""
        self._question = question
        self._acting = acting
        self.gathered: Calls | None = None
        """The calls of all replies so far, the best of them."""
        self._left = 0

    def judged(self, outcome: Outcome) -> Outcome:
        """The retry that asks for the rest, or the calls of all replies together."""
        before = self.gathered
        if before is not None:
            outcome = self._joined(before, outcome)
        if not isinstance(outcome, Calls) or outcome.broken:
            return outcome  # a broken sibling carries what seems left out, and is told of
        self.gathered = outcome
        missing = self._left_out(outcome.calls)
        if not missing or (before is not None and len(missing) >= self._left):
            return outcome
        self._left = len(missing)
        # Where the like of it stands in lists only, a list is short; no call is missing.
        bare = [replace(call, arguments=_without_lists(call.arguments)) for call in outcome.calls]
        in_lists = not set(missing) & set(self._left_out(bare))
        basis = Basis.IN_LIST if in_lists else Basis.PLAIN
        named = " / ".join(missing[:_NAMED])
        return Retry(Reason.INCOMPLETE, named, outcome.calls[-1].name, basis)

    def _left_out(self, calls: Sequence[ToolCall]) -> tuple[str, ...]:
        composed = any(call.name in self._acting for call in calls)
        return left_out(self._question, calls, composed=composed)

    def _joined(self, first: Calls, outcome: Outcome) -> Calls:
        """The new calls alone, where they hold the old ones or leave less out; both together, where
        they are only what was missing; else the old ones."""
        if not isinstance(outcome, Calls):
            return first
        known = {_identity(call) for call in first.calls}
        more = tuple(call for call in outcome.calls if _identity(call) not in known)
        before, alone, together = (
            len(self._left_out(calls)) for calls in (first.calls, outcome.calls, first.calls + more)
        )
        if holds(outcome.calls, first.calls) and alone <= before:
            return outcome
        if together < before:
            return replace(outcome, calls=first.calls + more)
        return outcome if alone < before else first


def completeness_of(
    conversation: Conversation,
    specs: Sequence[ToolSpec],
    choice: ToolChoice,
    reviews: frozenset[Reason],
) -> Completeness | None:
    """For the first decision of a run that may call any tool, where this review is on: what is left
    out later may well be for the next step."""
    if Reason.INCOMPLETE not in reviews or choice.kind not in ("auto", "required"):
        return None
    if has_results(conversation):
        return None
    acting = frozenset(spec.name for spec in specs if spec.side_effect in ("local", "outward"))
    return Completeness(question_of(conversation), acting)


def _without_lists(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _without_lists(inner) for key, inner in value.items()}
    return None if isinstance(value, list | tuple) else value


def holds(new: Sequence[ToolCall], old: Sequence[ToolCall]) -> bool:
    """Whether every value of the old calls stands in the new ones."""
    carried = _Carried(new)
    return all(carried.has(value) for call in old for value in _leaves(call.arguments))


def _identity(call: ToolCall) -> str:
    return canonical_json([call.name, dict(call.arguments)])


class _Carried:
    """The texts and numbers in the arguments of calls."""

    def __init__(self, calls: Sequence[ToolCall]) -> None:
        leaves = [leaf for call in calls for leaf in _leaves(call.arguments)]
        self._text = _plain("\n".join([*(call.name for call in calls), *leaves]))
        self._numbers = {float(n.replace(",", "")) for n in _NUMBER.findall("\n".join(leaves))}
        self._numbers |= {float(n) for leaf in leaves for n in re.findall(r"\d+", leaf, re.A)}
        texts = "\n".join(texts_of(call.arguments) for call in calls).split("\n")
        self.values = list(dict.fromkeys(text for text in texts if len(text) in _VALUE))

    def has(self, text: str) -> bool:
        return _plain(text) in self._text

    def touches(self, text: str) -> bool:
        """Whether at least a word of it is there, or its first two characters."""
        return any(
            _plain(word) in self._text for word in re.findall(r"\w{3,}|\d+", text, re.A)
        ) or (_plain(text)[:2] in self._text)

    def counts(self, number: str) -> bool:
        value = float(number.replace(",", ""))
        return any(round(value * scale, 9) in self._numbers for scale in _SCALES)


def _leaves(value: Any) -> Iterable[str]:
    if isinstance(value, Mapping):
        for inner in value.values():
            yield from _leaves(inner)
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from _leaves(inner)
    elif value is not None and not isinstance(value, bool):
        yield str(value)


def _plain(text: str) -> str:
    return _BLANKS.sub("", text).casefold()


def _shape(text: str) -> str:
    text = re.sub(r"\d+", "9", text, flags=re.A)
    return re.sub(r"[a-z]+", "a", re.sub(r"[A-Z]+", "A", text))


def _digits(number: str) -> int:
    return len(number.replace(",", "").split(".")[0])


def _neighbours(question: str, value: str) -> Iterable[tuple[str, int]]:
    folded = question.casefold()
    at = folded.find(value.casefold())
    while at >= 0:
        end = at + len(value)
        joined = _AND.match(question, end)
        if joined is not None and (found := _NEXT.match(question, joined.end())):
            yield found[0], found.start()
        at = folded.find(value.casefold(), end)
