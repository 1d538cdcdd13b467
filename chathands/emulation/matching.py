"""Whether a text and a tool are about the same thing: words, bigrams and a small table of topics.

Cheap on purpose; it only decides whether a retry is worth asking for, never whether a call runs.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any

from chathands.conversation import ToolSpec
from chathands.emulation.prompts import load

_WORD = re.compile(r"[a-z]{3,}|[a-z]+\d+")
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_PATH = re.compile(
    r"(?:^|[\s\"'“（(])(?:[A-Za-z]:\\|~?/)[\w.\-]+|\w\.(?:txt|md|log|json|ya?ml|py|csv|xlsx?|pdf|docx?|ini|conf)\b"
)
_HAN = re.compile(r"[\u4e00-\u9fff]{2,}")


@cache
def _topics() -> Mapping[str, re.Pattern[str]]:
    patterns = {}
    for topic, terms in load("topics")["topics"].items():
        latin = [re.escape(term) for term in terms if term.isascii()]
        other = [re.escape(term) for term in terms if not term.isascii()]
        parts = (
            [r"(?<![a-z])(?:" + "|".join(latin) + r")(?:e?s)?(?![a-z])"] if latin else []
        ) + other
        patterns[topic] = re.compile("|".join(parts))
    return patterns


@cache
def _effects() -> tuple[tuple[re.Pattern[str], re.Pattern[str]], ...]:
    return tuple(
        (re.compile(entry["asked"]), re.compile(entry["tool"]))
        for entry in load("topics")["effects"]
    )


@cache
def _negations() -> re.Pattern[str]:
    table = load("topics")["negation"]
    return re.compile(f"(?:{table['zh']})|(?:{table['en']})")


@cache
def _stop() -> frozenset[str]:
    table = load("topics")["stop"]
    return frozenset((*table["en"], *table["zh"]))


@dataclass(frozen=True, slots=True)
class Terms:
    """What a text is about."""

    topics: frozenset[str]
    words: frozenset[str]
    bigrams: frozenset[str]


@lru_cache(maxsize=512)
def terms_of(text: str) -> Terms:
    """Topics, Latin words and Chinese bigrams of a text, without those that say nothing."""
    lowered = _CAMEL.sub(" ", text).replace("_", " ").replace("-", " ").casefold()
    bigrams = {run[at : at + 2] for run in _HAN.findall(lowered) for at in range(len(run) - 1)}
    topics = {topic for topic, pattern in _topics().items() if pattern.search(lowered)}
    if _PATH.search(text):
        topics.add("file")
    return Terms(
        frozenset(topics),
        frozenset(_WORD.findall(lowered)) - _stop(),
        frozenset(bigrams) - _stop(),
    )


def text_of(spec: ToolSpec, *, parameters: bool = True) -> str:
    """Everything a tool says about itself."""
    parts = [spec.name, spec.description, *(example.request for example in spec.examples)]
    properties = spec.parameters.get("properties") if parameters else None
    if isinstance(properties, Mapping):
        for name, schema in properties.items():
            parts.append(str(name))
            if isinstance(schema, Mapping):
                parts.append(str(schema.get("description") or ""))
    return "\n".join(parts)


_NAMED = 4.0
"""A tool called by its name: more than any likeness."""
_SILENT = 1.0
"""A tool that says nothing about itself: just plausible."""
_TOPIC, _TOPIC_IN_NAME, _WORD_POINTS, _PAIR_POINTS = 1.0, 0.5, 0.6, 0.34
"""A topic in common is a plausible fit by itself, and more so where the tool is named for it. Else
it takes two words, or three pairs of characters, which is about a word of three or four: one alone
is in common too often by chance (file, list; 数据). Half or twice of one changes at most four of
the 852 decisions of benchmarks/refusals.py."""

PLAUSIBLE = 1.0
"""Points of a plausible fit."""
RELATED = 0.6
"""Points of one word in common: enough where the wording around it says already that a task is
refused, promised or handed over."""


def score(text: str, spec: ToolSpec, *, parameters: bool = True) -> float:
    """How much a text and a tool share; `PLAUSIBLE` and more is a fit. Without `parameters` only
    its name and description count: what it does, not what it is given.

    A tool that says nothing about itself fits everything a little.
    """
    wanted, offered = terms_of(text), terms_of(text_of(spec, parameters=parameters))
    if spec.name.casefold() in text.casefold():
        return _NAMED
    if not spec.description.strip() and not offered.topics:
        return _SILENT
    shared = len(wanted.topics & offered.topics)
    name = terms_of(spec.name)
    return (
        _TOPIC * shared
        + _TOPIC_IN_NAME * len(wanted.topics & name.topics)
        + _WORD_POINTS * len(wanted.words & offered.words)
        + _PAIR_POINTS * len(wanted.bigrams & offered.bigrams)
    )


def fitting(text: str, specs: Iterable[ToolSpec]) -> list[ToolSpec]:
    """Tools that plausibly fit a text, best first."""
    scored = [(score(text, spec), spec) for spec in specs]
    return [
        spec for points, spec in sorted(scored, key=lambda pair: -pair[0]) if points >= PLAUSIBLE
    ]


def best_read_tool(text: str, specs: Sequence[ToolSpec]) -> ToolSpec | None:
    """The reading tool that fits a question best, if any does."""
    readers = [spec for spec in specs if spec.side_effect in ("none", "unknown")]
    found = fitting(text, readers)
    return found[0] if found else None


def effects_asked_for(question: str, specs: Sequence[ToolSpec]) -> list[str]:
    """Names of side-effect tools whose kind of action the question plainly asks for."""
    lowered = question.casefold()
    names = []
    for spec in specs:
        if spec.side_effect not in ("local", "outward"):
            continue
        about = f"{spec.name.replace('_', ' ')} {spec.description}".casefold()
        for asked, tool in _effects():
            if tool.search(about) and any(
                not _negations().search(lowered[: found.start()])
                for found in asked.finditer(lowered)
            ):
                names.append(spec.name)
                break
    return names


def has_known_effect(spec: ToolSpec) -> bool:
    """Whether `effects_asked_for` knows how people ask for what this tool does."""
    about = f"{spec.name.replace('_', ' ')} {spec.description}".casefold()
    return any(tool.search(about) for _, tool in _effects())


def texts_of(arguments: Mapping[str, Any]) -> str:
    """The texts in arguments, one per line."""
    texts: list[str] = []
    stack: list[Any] = [arguments]
    while stack:
        value = stack.pop()
        if isinstance(value, Mapping):
            stack.extend(value.values())
        elif isinstance(value, list | tuple):
            stack.extend(value)
        elif isinstance(value, str):
            texts.append(value)
    return "\n".join(reversed(texts))
