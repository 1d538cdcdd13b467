"""Whether a tool has anything in common with what was said: purely lexical, like the shortlist."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache, lru_cache
from typing import Any

from chathands.conversation import Conversation, Role, Tag, ToolSpec
from chathands.emulation.phrases import asks_to_look
from chathands.emulation.prompts import load
from chathands.emulation.shortlist import terms_of

_STEM = 6
"""Letters that must agree: "triangle" and "triangular", "calculate" and "calculation"."""

_RELATED = 1.0
"""One shared word in name, description or examples; or two in the parameters, which name common
things (city, date). Of the public development files, 54 % (en) and 50 % (zh) of the requests that
fit no tool stay under it, and at most 1.5 % of those that fit one."""

_PARAMETER = 0.5


def unrelated(spec: ToolSpec, conversation: Conversation) -> bool:
    """Whether no word that people said so far is about this tool. A question for something that
    has to be looked up is never called unrelated: it may name the thing only."""
    said = [m.text for m in conversation if m.role is Role.USER and m.tag is Tag.PLAIN]
    if not said or asks_to_look(said[-1]):
        return False
    wanted = _telling(" ".join(said))
    core, parameters = _terms(spec)
    if _scripts(" ".join(said)).isdisjoint(_scripts(_described(spec))):
        return False  # another language: nothing could be shared
    shared = len(core & wanted) + _PARAMETER * len((parameters - core) & wanted)
    return shared < _RELATED


def _terms(spec: ToolSpec) -> tuple[frozenset[str], frozenset[str]]:
    own = _telling(f"{spec.name} {_described(spec)}")
    return own, _telling(" ".join(_parameter_texts(spec.parameters, 0)))


def _described(spec: ToolSpec) -> str:
    """What a tool says of itself in a person's language; its name is English anywhere."""
    return " ".join([spec.description, *(example.request for example in spec.examples)])


def _scripts(text: str) -> set[str]:
    """ "pair" for Chinese, "word" for Latin. Names and codes in a Chinese text make no language."""
    kinds = [kind for kind, _ in terms_of(text) if kind in ("pair", "word")]
    return {"pair"} if "pair" in kinds else set(kinds)


@lru_cache(maxsize=1024)
def _telling(text: str) -> frozenset[str]:
    """The terms of a text that say what it is about."""
    words, pairs = _common()
    found: set[str] = set()
    for kind, term in terms_of(text):
        if kind == "word" and not term.isdigit() and term[:_STEM] not in words:
            found.add(term[:_STEM])
        elif kind == "idea" or (kind == "pair" and term not in pairs):
            found.add(f"{kind} {term}")
    return frozenset(found)


@cache
def _common() -> tuple[frozenset[str], frozenset[str]]:
    table = load("relevance")
    return frozenset(word[:_STEM] for word in table["en"]), frozenset(table["zh"])


def _parameter_texts(schema: Any, depth: int) -> Iterator[str]:
    if not isinstance(schema, Mapping) or depth > 3:
        return
    properties = schema.get("properties")
    if isinstance(properties, Mapping):
        for name, inner in properties.items():
            yield str(name)
            if isinstance(inner, Mapping):
                yield str(inner.get("description") or "")
                values = inner.get("enum")
                if isinstance(values, list):
                    yield " ".join(str(value) for value in values[:30])
            yield from _parameter_texts(inner, depth + 1)
    yield from _parameter_texts(schema.get("items"), depth + 1)
