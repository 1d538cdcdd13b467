"""Whether calls hold everything of a kind that the question lists: the second id, the third city.

Small models write the first of several calls, or the first item of a list, and stop. What was left
out shows without understanding the question: the like of it is in the calls, and it is not. Things
whose like no call carries say nothing: they may belong to a later step.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from chathands.conversation import Conversation, ToolCall, ToolChoice, ToolSpec, canonical_json
from chathands.emulation.claims import has_results
from chathands.emulation.matching import texts_of
from chathands.emulation.outcome import Basis, Calls, Outcome, Reason, Retry
from chathands.emulation.state import question_of
from chathands.limits import JSON_DEPTH

_NAMED = 8
"""Things left out that a correction names: more would only push the request out of sight."""

_QUESTION, _ARGUMENTS = 4000, 16_000
"""Characters of a question that are read for what it lists, and of arguments that are compared with
it; of calls that say more nothing is asked. Who pastes a page lists no calls in it."""
_VALUES, _PLACES = 64, 8
"""Values that are looked for in a question, and places of each that are looked at."""

_WORD = re.compile(r"(?<![A-Za-z0-9])\w[\w\-]*", re.A)
_CUT_SHORT = re.compile(r"[\w\-.,]{1,80}\Z", re.A)
_NOT_AN_ID = re.compile(r"\d+(?:st|nd|rd|th)|\d+d|x?\d+[a-z°%]{1,4}|\d+x\d+|\d+e-?\d+", re.I)
"""Ordinals, 3D, amounts with a unit (50ms), sizes (2x2), powers: they are written otherwise."""
_NUMBER = re.compile(r"(?<![A-Za-z0-9_.])\d+(?:,\d{3})*(?:\.\d+)?", re.A)
_QUOTED = re.compile(r"[“\"「『《'‘]([^“”\"「」『』《》'‘’\n]{2,40})[”\"」』》'’](?!\w)")
_BLANKS = re.compile(r"[\s,，.。\-_/:：'’]")
_SCALES = (1.0, 0.01, 100.0, 1e4, 1e8, 1e3, 1e6)
"""5% is 0.05, 3万 is 30000, 2k is 2000."""

_AND = re.compile(
    r"\s{0,4}(?:、|,?\s{0,4}(?:and|&)\s|和|与(?![会其否])|跟|以及|及(?![格时其])|[，,]\s?还有|/"
    r"|,(?=[^,.?!\n]{1,40}(?:,[^,.?!\n]{1,40}){0,9},?\s{1,4}and\s))\s{0,4}",
    re.I,
)
"""A comma only in a list that ends in "and": the one in "Boston, Massachusetts" lists nothing. All
repeats are bounded, so that lists of thousands and fields of blanks cost what they are long."""
_NEXT = re.compile(
    r"(?![他她它我你您咱这那其]|各[个位]|大家|所有|全部|别[的人]|[今明昨]天|[今明昨]日|后天)[\u4e00-\u9fff]{2}"
    r"|(?!(?:I|What|How|The|Then|Also|Please|Which|When|Who|If|My|Your)\b)[A-Z][A-Za-z\d\-]*"
)
"""The head of what stands behind an "and": two characters, or a capitalised word; no pronoun."""
_ACTION = re.compile(
    r"通知|告诉|告知|提醒|发[给到送]|转[给发]|[另保]?存[成为到]|保存|导出|写[入到]|汇报|抄送"
    r"|\b(?:send|e?mail|notify|tell|save|export|forward)\b",
    re.I,
)
"""Something else is done from here on: what is named behind it is for a later step."""
_HAN = re.compile(r"[\u4e00-\u9fff]")
_ALIKE = re.compile(r"\s*([\u4e00-\u9fffA-Za-z%￥$])")
_LISTED = re.compile(
    r"\s*[,，]\s*|[^\d，。,.!?！？]{0,4}(?:、|和|与|跟|以及|及|/|至|到)[^\d，。,.!?！？]{0,4}"
)
_FIELD = re.compile(r"[a-z][a-z_]*")
"""In quotation marks this is the name of a field, not of a thing."""
_VALUE = range(2, 41)
"""Characters of a value that may be one of an enumeration."""
_LARGE = 10**30
"""Numbers beyond are no quantities; of the largest Python writes no digits."""


def left_out(
    question: str, calls: Sequence[ToolCall], *, composed: bool = False
) -> tuple[str, ...]:
    """What the question lists beside things the calls carry, and no call carries; in its order.

    Four kinds: ids of the same shape, numbers of about the same length (but no single digit, which
    may number a list), names in quotation marks, and the neighbour of a value in an enumeration
    ("北京和上海"). `composed` leaves numbers and quotations out: a text that is to be sent may say
    them in its own words.
    """
    if len(question) > _QUESTION:
        question = _CUT_SHORT.sub("", question[:_QUESTION])
    carried = _Carried(calls)
    if carried.size > _ARGUMENTS:
        return ()
    found: dict[str, int] = {}
    ids = [m for m in _WORD.finditer(question) if _is_id(m[0])]
    shapes = {_shape(m[0]) for m in ids if carried.has(m[0])}
    found |= {m[0]: m.start() for m in ids if _shape(m[0]) in shapes and not carried.has(m[0])}
    blanked = "" if composed else _WORD.sub(_without_ids, question)
    numbers = list(_NUMBER.finditer(blanked))
    lengths = {_digits(m[0]) for m in numbers if carried.counts(m[0])}
    han = _HAN.search(question) is not None
    for at, m in enumerate(numbers):
        near = {_digits(m[0]) + step for step in (-1, 0, 1)}
        if len(m[0]) == 1 or not near & lengths or carried.counts(m[0]):
            continue
        if not han or _is_listed(at, numbers, carried, question):
            found[m[0]] = m.start()
    quoted = [m for m in _QUOTED.finditer(question) if not composed and not _FIELD.fullmatch(m[1])]
    if any(carried.has(m[1]) for m in quoted):
        found |= {m[1]: m.start() for m in quoted if not carried.touches(m[1])}
    for value in carried.values[:_VALUES]:
        for name, at in _neighbours(question, value):
            if not carried.has(name):
                found[name] = at
    there = [m.end() for m in ids if carried.has(m[0])]
    steps = [m.start() for m in _ACTION.finditer(question)]
    for name, at in list(found.items()):
        earlier, step = bisect_right(there, at), bisect_left(steps, at)
        if earlier and step and steps[step - 1] >= there[earlier - 1]:
            del found[name]
    return tuple(sorted(found, key=lambda name: found[name]))


def _is_listed(at: int, numbers: Sequence[re.Match[str]], carried: _Carried, question: str) -> bool:
    """Whether a number in Chinese text is of a kind with one that is carried: the same word behind
    it, or only a comma or an "and" between them. Chinese says much in a line: an order, its amount,
    how many rows."""
    number = numbers[at]
    unit = _ALIKE.match(question, number.end())
    for other in numbers[max(at - _PLACES, 0) : at + _PLACES]:
        if other is number or not carried.counts(other[0]):
            continue
        its = _ALIKE.match(question, other.end())
        if unit is not None and its is not None and unit[1] == its[1]:
            return True
        first, second = sorted((number, other), key=lambda m: m.start())
        if _LISTED.fullmatch(question, first.end(), second.start()):
            return True
    return False


class Completeness:
    """Gathers the calls of a run's first decision: as long as the question lists more, and each
    reply brings some of it, the rest is asked for."""

    def __init__(
        self,
        question: str,
        acting: frozenset[str] = frozenset(),
        harmless: frozenset[str] = frozenset(),
    ) -> None:
        """`acting` are tools with an effect, `harmless` those without; the rest may have one."""
        self._question = question
        self._acting = acting
        self._harmless = harmless
        self.gathered: Calls | None = None
        """The calls of all replies so far, the best of them."""
        self._left = 0

    def judged(self, outcome: Outcome) -> Outcome:
        """The retry that asks for the rest, or the calls of all replies together."""
        before = self.gathered
        if isinstance(outcome, Retry) and outcome.reason is Reason.SELECTION:
            return outcome  # a look for the tool of what is missing
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
        """The new calls alone, where they say all that the old ones do; both together, where more
        is there than before; else the old ones.

        Reads may be added whatever they read. Of calls that may have an effect only those are that
        are for a thing that was missing: a small model repeats the old ones in other words, too,
        and nothing may be sent twice.
        """
        if not isinstance(outcome, Calls):
            return first
        old, new, question = first.calls, outcome.calls, _plain(self._question[:_QUESTION])
        missing = self._left_out(old)
        said_again = all(any(_covers(call, one, question) for call in new) for one in old)
        if said_again and len(self._left_out(new)) <= len(missing):
            return outcome
        wanted = [_plain(name) for name in missing]
        known = {_identity(call) for call in old}
        more = [
            call
            for call in new
            if _identity(call) not in known
            and (call.name in self._harmless or _is_for(call, wanted, question))
        ]
        kept = [one for one in old if not any(_replaces(call, one, wanted) for call in more)]
        together = (*kept, *more)
        harmless = all(call.name in self._harmless for call in more)
        if more and (harmless or len(self._left_out(together)) < len(missing)):
            return replace(outcome, calls=together)
        return first


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
    harmless = frozenset(spec.name for spec in specs if spec.side_effect == "none")
    return Completeness(question_of(conversation), acting, harmless)


def _without_lists(value: Any, depth: int = 0) -> Any:
    if isinstance(value, Mapping) and depth < JSON_DEPTH:
        return {key: _without_lists(inner, depth + 1) for key, inner in value.items()}
    return None if isinstance(value, list | tuple) else value


def _covers(new: ToolCall, old: ToolCall, question: str) -> bool:
    """Whether a call says all that another says in the words of the question, in the same place."""
    if new.name != old.name:
        there = _texts(new.arguments)
        return all(_plain(leaf) in there for leaf in _leaves(old.arguments))
    for key, value in old.arguments.items():
        there = _texts(new.arguments.get(key))
        asked = (text for text in map(_plain, _leaves(value)) if text in question)
        if not all(text in there for text in asked):
            return False
    return True


def _is_for(call: ToolCall, missing: Sequence[str], question: str) -> bool:
    """Whether a call names a missing thing as the question does, not only in a text of its own."""
    leaves = [_plain(leaf) for leaf in _leaves(call.arguments) if len(leaf) in _VALUE]
    return any(leaf in question and any(name in leaf for name in missing) for leaf in leaves)


def _replaces(new: ToolCall, old: ToolCall, missing: Sequence[str]) -> bool:
    """Whether a call adds a missing thing to what another has in the same place: a longer list."""
    if new.name != old.name:
        return False
    for key, value in new.arguments.items():
        there, before = _texts(value), _leaves(old.arguments.get(key))
        adds = before and any(name in there for name in missing)
        if adds and all(_plain(leaf) in there for leaf in before):
            return True
    return False


def _texts(value: Any) -> str:
    return "\n".join(map(_plain, _leaves(value)))


def _identity(call: ToolCall) -> str:
    return canonical_json([call.name, dict(call.arguments)])


class _Carried:
    """The texts and numbers in the arguments of calls."""

    def __init__(self, calls: Sequence[ToolCall]) -> None:
        leaves = [leaf for call in calls for leaf in _leaves(call.arguments)]
        self.size = sum(map(len, leaves))
        if self.size > _ARGUMENTS:
            leaves = []  # nothing is asked of them
        self._text = "\n".join(map(_plain, (*(call.name for call in calls), *leaves)))
        self._numbers = {float(n.replace(",", "")) for n in _NUMBER.findall("\n".join(leaves))}
        self._numbers |= {float(n) for leaf in leaves for n in re.findall(r"\d+", leaf, re.A)}
        texts = "\n".join(texts_of(call.arguments) for call in calls).split("\n") if leaves else []
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


def _leaves(value: Any) -> list[str]:
    """The texts and numbers of arguments as text, in no order; however deep they are nested."""
    out, stack = [], [value]
    while stack:
        inner = stack.pop()
        if isinstance(inner, Mapping):
            stack.extend(inner.values())
        elif isinstance(inner, list | tuple):
            stack.extend(inner)
        elif isinstance(inner, int) and abs(inner) > _LARGE:
            continue
        elif inner is not None and not isinstance(inner, bool):
            out.append(str(inner))
    return out


def _is_id(word: str) -> bool:
    """Letters and digits in one word: CHG101, user_7, WXZ123."""
    if not re.search(r"\d", word, re.A) or not re.search(r"[A-Za-z]", word):
        return False
    return _NOT_AN_ID.fullmatch(word) is None


def _without_ids(word: re.Match[str]) -> str:
    both = re.search(r"\d", word[0], re.A) and re.search(r"[A-Za-z]", word[0])
    return " " * len(word[0]) if both else word[0]


def _plain(text: str) -> str:
    return _BLANKS.sub("", text).casefold()


def _shape(text: str) -> str:
    text = re.sub(r"\d+", "9", text, flags=re.A)
    return re.sub(r"[a-z]+", "a", re.sub(r"[A-Z]+", "A", text))


def _digits(number: str) -> int:
    return len(number.replace(",", "").split(".")[0])


def _neighbours(question: str, value: str) -> Iterable[tuple[str, int]]:
    folded = question.casefold()
    if len(folded) != len(question):
        folded = question  # "ß" grows: places would be others
    at = folded.find(value.casefold())
    for _ in range(_PLACES):
        if at < 0:
            return
        end = at + len(value)
        joined = _AND.match(question, end)
        if joined is not None and (found := _NEXT.match(question, joined.end())):
            yield found[0], found.start()
        at = folded.find(value.casefold(), end)
