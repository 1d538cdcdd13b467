"""Which tools a text is most likely about: purely lexical, for toolboxes too large to be shown.

BM25F over what a tool says of itself (Robertson, Zaragoza, "The Probabilistic Relevance
Framework", 2009, section 3.5): Latin words stemmed lightly, Chinese as single characters and
bigrams, and ideas from a table of synonyms that both languages share.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import cache, lru_cache
from typing import Any

from chathands.conversation import ToolSpec
from chathands.emulation.prompts import load

_FIELDS = {"name": 3.0, "description": 2.0, "example": 1.5, "parameter": 0.8, "detail": 0.5}
"""How much a word counts by where a tool says it, by the care that goes into each: a name has two
or three chosen words, parameters repeat what many tools share (path, name, date). Only the order
matters: with 2 or 4 for the name benchmarks/shortlist.py prints the same, with 1 for all or the
order turned around it loses up to three points."""

_KINDS = {"word": 1.0, "pair": 1.0, "char": 0.25, "idea": 1.3}
"""How much a term counts by what it is. A Chinese pair is about a word; its two characters are
counted again and stand in unlike words too, so they stay below it (without them Chinese requests
lose nine points of the first 20, with more nothing changes). An idea joins words that have no
letter in common and was put there by a person: a little more than a word (1 or 2 changes
nothing)."""

_SATURATION = 1.5
"""BM25's k1: a term said again adds less and less."""

_LENGTH = 0.3
"""BM25's b: how far a talkative tool is held back; descriptions differ mostly in care."""

_WORD = re.compile(r"[a-z][a-z']*|\d+")
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_HAN = re.compile(r"[\u3400-\u4dbf\u4e00-\u9fff]+")
_TEXT_CAP = 4000
"""Characters of one text that are looked at."""

Term = tuple[str, str]
"""Its kind, and the word, characters or idea."""


def rank(tools: Sequence[ToolSpec], text: str, *, synonyms: bool = True) -> tuple[ToolSpec, ...]:
    """All tools, those that fit `text` best first; equals keep their order."""
    points = scores(tools, ((text, 1.0),), synonyms=synonyms)
    order = sorted(range(len(tools)), key=lambda at: -points[at])
    return tuple(tools[at] for at in order)


def scores(
    tools: Sequence[ToolSpec], texts: Sequence[tuple[str, float]], *, synonyms: bool = True
) -> list[float]:
    """What each tool has in common with weighted texts; 0 is nothing. Without `synonyms` only what
    is the same letter by letter counts."""
    wanted: Counter[Term] = Counter()
    for text, weight in texts:
        for term in set(terms_of(text)):
            if term[0] == "idea" and not synonyms:
                continue
            wanted[term] = max(wanted[term], weight)  # type: ignore[assignment]
    index = _index(tuple(_said(tool) for tool in tools))
    return index.scores(wanted)


class _Index:
    def __init__(self, documents: Sequence[Mapping[Term, float]]) -> None:
        self._documents = documents
        n = len(documents)
        holders = Counter(term for document in documents for term in document)
        self._rarity = {
            term: math.log(1 + (n - count + 0.5) / (count + 0.5)) for term, count in holders.items()
        }
        sizes = [sum(document.values()) for document in documents]
        mean = sum(sizes) / n if n else 1.0
        self._stretch = [1 - _LENGTH + _LENGTH * size / (mean or 1.0) for size in sizes]

    def scores(self, wanted: Mapping[Term, float]) -> list[float]:
        out = []
        for document, stretch in zip(self._documents, self._stretch, strict=True):
            points = 0.0
            for term, weight in wanted.items():
                said = document.get(term)
                if said:
                    said /= stretch
                    strength = said * (_SATURATION + 1) / (said + _SATURATION)
                    points += weight * _KINDS[term[0]] * self._rarity[term] * strength
            out.append(points)
        return out


@lru_cache(maxsize=8)
def _index(documents: tuple[_Document, ...]) -> _Index:
    return _Index([document.terms for document in documents])


class _Document:
    """The terms of one tool; equal when it says the same, so that an index can be kept."""

    __slots__ = ("key", "terms")

    def __init__(self, key: tuple[tuple[str, str], ...]) -> None:
        self.key = key
        terms: Counter[Term] = Counter()
        for field, text in key:
            for term in terms_of(text):
                terms[term] += _FIELDS[field]  # type: ignore[assignment]
        self.terms: Mapping[Term, float] = terms

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Document) and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)


def _said(tool: ToolSpec) -> _Document:
    return _document(tuple(_texts(tool)))


@lru_cache(maxsize=2048)
def _document(key: tuple[tuple[str, str], ...]) -> _Document:
    return _Document(key)


def _texts(tool: ToolSpec) -> Iterator[tuple[str, str]]:
    """(field, text) of everything a tool says about itself."""
    yield "name", tool.name
    yield "description", tool.description[:_TEXT_CAP]
    for example in tool.examples:
        yield "example", example.request[:_TEXT_CAP]
    yield from _parameter_texts(tool.parameters, 0)


def _parameter_texts(schema: Any, depth: int) -> Iterator[tuple[str, str]]:
    if not isinstance(schema, Mapping) or depth > 3:
        return
    properties = schema.get("properties")
    if isinstance(properties, Mapping):
        for name, inner in properties.items():
            yield "parameter", str(name)
            if isinstance(inner, Mapping):
                yield "detail", str(inner.get("description") or "")[:_TEXT_CAP]
                values = inner.get("enum")
                if isinstance(values, list):
                    yield "detail", " ".join(str(value) for value in values[:50])
            yield from _parameter_texts(inner, depth + 1)
    yield from _parameter_texts(schema.get("items"), depth + 1)


# --- terms


@lru_cache(maxsize=256)
def terms_of(text: str) -> tuple[Term, ...]:
    """Words, character pairs, characters and ideas of a text, as often as they come.

    Kept while one question is looked at from several sides; what tools say is kept by whoever
    asks for it.
    """
    lowered = _HUMP.sub(" ", text[:_TEXT_CAP]).replace("_", " ").casefold()
    lowered = lowered.replace("\u2019", "'")
    words = [stem(word) for word in _WORD.findall(lowered)]
    empty = _empty()
    out: list[Term] = [("word", word) for word in words if word not in empty and len(word) > 1]
    for run in _HAN.findall(lowered):
        out += [("pair", run[at : at + 2]) for at in range(len(run) - 1)]
        out += [("char", char) for char in run if char not in empty]
    out += [("idea", idea) for idea in _ideas_in(lowered, words)]
    return tuple(out)


def stem(word: str) -> str:
    """A Latin word without its commonest endings: enough to bring its forms together."""
    word = word.removesuffix("'s").strip("'")
    for ending, rest in (
        ("ies", "y"),
        ("sses", "ss"),
        ("ing", ""),
        ("ed", ""),
        ("es", ""),
        ("s", ""),
    ):
        if word.endswith(ending) and len(word) - len(ending) >= 3 and not word.endswith("ss"):
            word = word[: -len(ending)] + rest
            break
    if len(word) > 3 and word[-1] == word[-2] and word[-1] not in "aeiouls":
        word = word[:-1]
    return word[:-1] if len(word) > 3 and word.endswith("e") else word


def _ideas_in(lowered: str, words: Sequence[str]) -> list[str]:
    phrases, anywhere = _synonyms()
    found: dict[str, None] = {}
    for at in range(len(words)):
        for length in (1, 2, 3, 4, 5):
            for idea in phrases.get(tuple(words[at : at + length]), ()):
                found[idea] = None
    if _HAN.search(lowered):
        for text, ideas in anywhere.items():
            if text in lowered:
                found.update(dict.fromkeys(ideas))
    return list(found)


@cache
def _synonyms() -> tuple[Mapping[tuple[str, ...], list[str]], Mapping[str, list[str]]]:
    """Ideas by phrase of stems, and by text of other scripts."""
    phrases: dict[tuple[str, ...], list[str]] = {}
    anywhere: dict[str, list[str]] = {}
    for idea, entries in load("synonyms")["ideas"].items():
        for entry in entries:
            if _HAN.search(entry):
                anywhere.setdefault(entry, []).append(idea)
            else:
                words = tuple(stem(word) for word in _WORD.findall(entry))
                phrases.setdefault(words, []).append(idea)
    return phrases, anywhere


@cache
def _empty() -> frozenset[str]:
    """Stems and characters that say nothing."""
    table = load("synonyms")["empty"]
    words = [*table["en"], *load("topics")["stop"]["en"]]
    return frozenset((*table["zh"], *(stem(word) for word in words)))
