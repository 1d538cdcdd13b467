"""Calls that a small model makes because a tool is there: most values come from nowhere, and the
request hardly speaks of what the tool does. Either sign alone is common in right calls.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from itertools import islice
from typing import Any

from chathands.conversation import Conversation, Role, Tag, ToolCall, ToolSpec
from chathands.emulation.claims import default_words, relative_date
from chathands.emulation.related import gist, has_han, likeness, spoken_of
from chathands.limits import JSON_DEPTH

_NAME, _SAID = 2, 4
"""Words in common with a tool's name, and with all it says of itself, up to which a call is doubted
that is mostly made up, although the request speaks of the tool."""
_COMPOSED = 40
"""Characters from which a text is taken for one that the model was to write."""
_FOLLOWS = re.compile(
    r"(?:^|_)(?:lat|lng|lon|latitude|longitude|timezone|locale|lang|language|limit|top|topk|top_?n"
    r"|page|size|offset|rows?|days|hours|paths?|files?|filename|sheet|sort|order|unit|format"
    r"|content|body|text|message|title|subject|summary|note|reason|thought|query|keywords?|prompt"
    r"|code|script|command|sql|expression)(?:$|_)",
    re.I,
)
"""Parameters that a model rightly fills in by itself: where, how much, which form, which words."""
_DATE = re.compile(r"\d{2,4}[-/.年]\d{1,2}|\d{1,2}:\d{2}|(?:19|20)\d\d年?$|q[1-4]$|\d{1,2}月")
_YEARS = range(1900, 2101)
_NEUTRAL = (0, 1)
"""Numbers that say nothing: the unit of a rate, the first page, no discount."""
_LETTERS = re.compile(r"[A-Za-z][A-Za-z .,'\-]*")
_CODE = re.compile(r"[A-Z]{2,3}|[a-z]{2}(?:[-_][A-Z]{2})?")
"""Currencies, countries, languages."""
_VALUES = 64
"""Values of a call that are judged; of a longer list the rest is like its beginning."""
_LARGE = 10**30
"""Numbers beyond are no quantities; of the largest Python writes no digits."""
_NAMED = 3
"""Invented values that a correction names."""
_SCALES = (1.0, 0.01, 100.0, 1e-3, 1e-4, 1e-6, 1e-8, 1e3, 1e4, -1.0)
"""5% is 0.05, 2 kW is 2000, 3万 is 30000."""
_WORDS = {
    **{"one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8},
    **{"nine": 9, "ten": 10, "half": 0.5, "dozen": 12, "hundred": 100, "double": 2, "twice": 2},
    **{"first": 1, "second": 2, "third": 3, "today": 1, "single": 1},
}
_DIGITS = {sign: at for at, sign in enumerate("零一二三四五六七八九")} | {"两": 2, "半": 0.5}
_UNITS = {"十": 10, "百": 100, "千": 1000, "万": 10_000, "亿": 100_000_000}
_HAN_NUMBER = re.compile(f"[{''.join((*_DIGITS, *_UNITS))}]+")


def far_fetched(
    call: ToolCall, specs: Sequence[ToolSpec], conversation: Conversation
) -> str | None:
    """The first invented values of such a call, as text; None for any other call.

    One invented value is enough where the request speaks plainly of no tool, else it takes more
    than half. Either holds for 1 in 100 of the right calls in the public development files.
    Choices (enum), yes and no, values equal to their default, composed text, and what follows from
    what was said (coordinates, short codes, a name in another script) are nobody's invention.
    """
    asked = [m.text for m in conversation if m.role is Role.USER and m.tag is Tag.PLAIN]
    spec = next((spec for spec in specs if spec.name == call.name), None)
    request = "\n".join(map(gist, asked[-2:]))
    like = likeness(request, spec) if spec is not None else None
    if spec is None or like is None or not request or spec.side_effect in ("local", "outward"):
        return None  # what has an effect is asked about elsewhere
    heads = "\n".join(m.head for m in conversation if m.tag is Tag.PLAIN)
    if any(_names_file(value, request, heads) for value in call.arguments.values()):
        return None
    values = list(islice(_values(call.arguments, spec.parameters), _VALUES))
    meant, han = spoken_of(request, specs) is not None, has_han(request)
    if meant:  # then a name in another script is a translation
        values = [v for v in values if not isinstance(v, str) or has_han(v) is han]
    elif han:  # a name is one in any case; what holds digits was made up
        values = [v for v in values if not isinstance(v, str) or not _LETTERS.fullmatch(v)]
    said = _Said(conversation) if values else None
    invented = [value for value in values if said is not None and not said.holds(value)]
    mostly = 2 * len(invented) > len(values) and like.name <= _NAME and like.said <= _SAID
    if not invented or (meant and not mostly):
        return None
    return ", ".join(str(value)[:20] for value in invented[:_NAMED])


def _names_file(value: Any, request: str, heads: str) -> bool:
    """Whether a table's path was listed for the model at the head of a question, or its own name
    is what the request speaks of ("12 月" and 2024/12.xlsx): then the call is meant, and what a
    table's columns are called nobody could have said before."""
    found = (
        re.fullmatch(r"(?:.*[/\\\\])?([^/\\\\]+)\.(?:xlsx?|csv|tsv)", value)
        if (isinstance(value, str) and len(value) < 260)
        else None
    )
    if found is None:
        return False
    if value in heads:
        return True
    stem = found[1].casefold().lstrip("0")
    return re.search(rf"(?<![0-9a-z]){re.escape(stem)}(?![0-9a-z])", request.casefold()) is not None


class _Said:
    """What was said in a conversation, by people, tools and heads of messages."""

    def __init__(self, conversation: Conversation) -> None:
        parts = [text for m in conversation if m.tag is Tag.PLAIN for text in (m.head, m.text)]
        parts += [m.result.content for m in conversation if m.result is not None]
        self._text = "\n".join(parts).casefold()
        loose = self._text.replace(",", "")
        numbers = f"{loose}\n{self._text}"  # 1,000 is a thousand; 5,10 and 15 are three
        self._numbers = {float(n) for n in re.findall(r"\d+(?:\.\d+)?", numbers, re.A)}
        words = set(re.findall(r"[a-z]+", self._text))
        self._numbers |= {float(_WORDS[word]) for word in words & _WORDS.keys()}
        self._numbers |= {_han_number(run) for run in _HAN_NUMBER.findall(self._text)}

    @cached_property
    def _relative(self) -> bool:
        return relative_date().search(self._text) is not None

    def holds(self, value: str | float) -> bool:
        """Whether at least a piece of the value is there."""
        if isinstance(value, int | float):
            if value in _NEUTRAL or (value in _YEARS and self._relative):
                return True
            return any(round(value * scale, 9) in self._numbers for scale in _SCALES)
        text = value.casefold()
        if text in self._text or text in default_words() or (_DATE.match(text) and self._relative):
            return True
        if any(float(n) in self._numbers for n in re.findall(r"\d+(?:\.\d+)?", text, re.A)):
            return True
        pairs = re.findall(r"(?=([\u4e00-\u9fff]{2}))", text)
        words = [word[:4] for word in re.findall(r"[a-z]{2,}", text)]
        return any(piece in self._text for piece in (*pairs, *words))


def _values(value: Any, schema: Any, depth: int = 0) -> Iterable[str | float]:
    if depth > JSON_DEPTH:
        return
    schema = schema if isinstance(schema, Mapping) else {}
    if isinstance(value, Mapping):
        properties = schema.get("properties")
        inner = properties if isinstance(properties, Mapping) else {}
        for key, entry in value.items():
            if not _FOLLOWS.search(str(key)):
                yield from _values(entry, inner.get(key), depth + 1)
    elif isinstance(value, list | tuple):
        for entry in value:
            yield from _values(entry, schema.get("items"), depth + 1)
    elif (
        isinstance(value, bool)
        or not isinstance(value, str | int | float)
        or value == ""
        or (isinstance(value, int) and abs(value) > _LARGE)
        or len(str(value)) > _COMPOSED
        or (isinstance(value, str) and _CODE.fullmatch(value))
    ):
        return
    elif "enum" not in schema and schema.get("default") != value:
        yield value


def _han_number(run: str) -> float:
    """三百二十 is 320, 一万二 is 10002: near enough to see where a value comes from."""
    whole = part = digit = 0.0
    for sign in run:
        if sign in _DIGITS:
            digit = _DIGITS[sign]
        elif (unit := _UNITS[sign]) < 10_000:
            part, digit = part + (digit or 1) * unit, 0.0
        else:
            whole, part, digit = whole + (part + digit or 1) * unit, 0.0, 0.0
    return whole + part + digit
