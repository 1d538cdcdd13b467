"""Whether a request has anything to do with the tools at all, judged by words alone.

A small model that has read a list of tools uses one for anything. A request that shares no word
with any of them is rarely meant for one: of the decisions in the public development files
(docs/evaluation.md) this holds for about six in ten that want no call, and for one or two in a
hundred that want one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any

from chathands.conversation import ToolSpec
from chathands.emulation import matching
from chathands.emulation.prompts import load
from chathands.emulation.shortlist import terms_of

_HAN = re.compile(r"[\u4e00-\u9fff]")
_LATIN = re.compile(r"[a-z]{3,}", re.I)
_STEM = 6
"""Letters by which words are compared: probability and probable, population and populated."""
_ENOUGH = 3.0
"""Words of a tool's description in common that make it related; one in its name is enough."""
_PLAIN_NAME = 2
"""Words of a tool's name in common by which the request plainly speaks of it."""
_SHORT = 3
"""Words a request may have beyond those in common for a topic and one word to be plain."""
_SHARE = 0.25
"""Of the words of a short request, those in common that make it related."""
_FEW_PAIRS = 10
"""Pairs of characters up to which one in common makes a Chinese request related: every other pair
is but the seam of two words, so that these are four or five words."""
_CODE = re.compile(r"(?<![A-Za-z0-9])[A-Z]{1,6}-?\d{3,}(?![A-Za-z0-9])", re.A)
"""DD1001, SKU-204: the key to an entry somewhere."""
_PARAMETER = 0.5
"""What a word of a parameter counts beside one of the description."""
_DEPTH = 4
"""Levels of nested parameters that are looked at."""
_HEAD, _TAIL = 3000, 1000
"""Characters of a long text that are read: what is wanted stands before or behind what is pasted.
They bound what is remembered, too."""


def has_han(text: str) -> bool:
    """Whether a text has Chinese characters."""
    return _HAN.search(text) is not None


def gist(text: str) -> str:
    """The head and the tail of a long text; a short one as it is."""
    return text if len(text) <= _HEAD + _TAIL else f"{text[:_HEAD]}\n{text[-_TAIL:]}"


@dataclass(frozen=True, slots=True)
class Likeness:
    """What a request and a tool have in common."""

    topic: bool
    """A thing of everyday life that both speak of, whatever words they use."""
    name: int
    """Words of the tool's name."""
    said: int
    """Words of all it says of itself, the name included."""
    parameters: int
    """Words of its parameters alone."""
    asked: int
    """Words of the request."""
    brief: bool
    """Whether the request is so short, in Chinese, that one word in common counts."""
    keyed: bool
    """Whether the request names an entry by its code."""

    @property
    def plain(self) -> bool:
        """Whether the request plainly speaks of the tool: one word may be chance, unless there are
        hardly more. Of the decisions in the public development files this holds for nine in ten
        that want a call, and for one in eight that want none."""
        common = self.name >= _PLAIN_NAME or self.said >= _ENOUGH
        return common or (self.topic and 0 < self.said >= self.asked - _SHORT)

    @property
    def related(self) -> bool:
        """Whether that is enough to speak of the tool."""
        if self.topic or self.name or (self.brief and (self.said or self.keyed)):
            return True
        if self.said >= _SHARE * max(self.asked, 1):
            return True
        return self.said + _PARAMETER * self.parameters >= _ENOUGH


def likeness(request: str, spec: ToolSpec) -> Likeness | None:
    """What they have in common; None where words cannot tell: the tool says nothing of itself, or
    says it in another script than the request."""
    request = gist(request)
    said = gist("\n".join([spec.description, *(example.request for example in spec.examples)]))
    if not (_HAN if _HAN.search(request) else _LATIN).search(said):
        return None
    wanted = _terms(request)
    texts = spec.name[:_HEAD], said, gist("\n".join(_parameter_texts(spec.parameters, 0)))
    name, all_said, parameters = _terms_of_tool(*texts)
    offered = matching.terms_of(gist(matching.text_of(spec)))
    topics = matching.terms_of(request).topics & offered.topics
    return Likeness(
        bool(topics),
        len(name & wanted),
        len(all_said & wanted),
        len((parameters - all_said) & wanted),
        len(wanted),
        _is_brief(wanted),
        _CODE.search(request) is not None,
    )


def _is_brief(terms: frozenset[str]) -> bool:
    pairs = sum(_HAN.match(term) is not None for term in terms)
    return 0 < pairs <= _FEW_PAIRS


def spoken_of(request: str, specs: Sequence[ToolSpec]) -> ToolSpec | None:
    """The tool that the request speaks of most plainly; None where it speaks of none."""
    found = [(like, spec) for spec in specs if (like := likeness(request, spec)) is not None]
    plain = [pair for pair in found if pair[0].plain]
    best = max(plain, key=lambda pair: (pair[0].name, pair[0].said, pair[0].topic), default=None)
    return best[1] if best is not None else None


def unrelated(request: str, specs: Sequence[ToolSpec]) -> bool:
    """Whether nothing in `request` speaks of what any of the tools does; False without tools, and
    whenever words cannot tell."""
    found = [likeness(request, spec) for spec in specs]
    return bool(found) and all(like is not None and not like.related for like in found)


def _parameter_texts(schema: Any, depth: int) -> Iterable[str]:
    if not isinstance(schema, Mapping) or depth > _DEPTH:
        return
    properties = schema.get("properties")
    for name, inner in properties.items() if isinstance(properties, Mapping) else ():
        yield str(name)
        if isinstance(inner, Mapping):
            yield str(inner.get("description") or "")
            values = inner.get("enum")
            yield " ".join(map(str, values[:30])) if isinstance(values, list) else ""
            yield from _parameter_texts(inner, depth + 1)
    yield from _parameter_texts(schema.get("items"), depth + 1)


@lru_cache(maxsize=1024)
def _terms_of_tool(
    name: str, said: str, parameters: str
) -> tuple[frozenset[str], frozenset[str], frozenset[str]]:
    return _terms(name), _terms(name) | _terms(said), _terms(parameters)


@lru_cache(maxsize=256)
def _terms(text: str) -> frozenset[str]:
    common = _common()
    out = set()
    for kind, term in terms_of(text):
        if kind == "idea":
            out.add(f"idea:{term}")
        elif kind == "pair" or (kind == "word" and not term.isdigit()):
            term = term if kind == "pair" else term[:_STEM]
            if term not in common:
                out.add(term)
    return frozenset(out)


@cache
def _common() -> frozenset[str]:
    table = load("common")
    return frozenset((*(word[:_STEM] for word in table["en"]), *table["zh"]))
