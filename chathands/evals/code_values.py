"""Values that a model wrote as Java or JavaScript source text, read as JSON values."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

_WORDS = {"true": True, "false": False, "null": None, "undefined": None}
_INTEGER = re.compile(r"-?\d+[lLn]?")
_NUMBER = re.compile(r"-?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?[fFdD]?")
_LISTED = re.compile(
    r"(?:new\s+\w+(?:<[^>]*>)?\s*(?:\[\s*\])*\s*|Arrays\.asList|List\.of|Set\.of)"
    r"\s*([\[({].*[\])}])",
    re.DOTALL,
)
_MAPPED = re.compile(r"(?:new\s+\w*Map\s*(?:<.*?>)?\s*\(\s*\)|Map\.of)\s*(.*)", re.DOTALL)
_FILLED = re.compile(r"\b(?:put|add)\s*\((.*)\)", re.DOTALL)
_PAIRS = {"(": ")", "[": "]", "{": "}"}
MAX_DEPTH = 20
"""Deeper text is left as it is; the answers nest two levels."""


def read_code(value: Any, depth: int = 0) -> Any:
    """The value that source text writes; anything that is no literal comes back as it is."""
    if not isinstance(value, str) or depth > MAX_DEPTH:
        return value
    text = value.strip().rstrip(";")
    if text in _WORDS:
        return _WORDS[text]
    if _INTEGER.fullmatch(text):
        return int(text.rstrip("lLn"))
    if _NUMBER.fullmatch(text):
        return float(text.rstrip("fFdD"))
    if len(text) > 1 and text[0] == text[-1] and text[0] in "\"'`":
        return text[1:-1]
    if found := _MAPPED.fullmatch(text):
        return _mapped(found[1], depth)
    if found := _LISTED.fullmatch(text):
        return _listed(found[1], depth)
    if text.startswith("[") and text.endswith("]"):
        return [read_code(each, depth + 1) for each in split(text[1:-1])]
    if text.startswith("{") and text.endswith("}"):
        return _object(text[1:-1], depth, value)
    return value


def _listed(text: str, depth: int) -> Any:
    """`{1, 2}`, `(1, 2)`, `(Arrays.asList(1, 2))`, `(){{ add(1); }}`, `()`."""
    if text.startswith("()"):
        text = text[2:].strip()
        return [read_code(given, depth + 1) for given in _filled(text)]
    inner = list(split(text[1:-1]))
    if len(inner) == 1 and text[0] == "(" and _LISTED.fullmatch(inner[0]):
        return read_code(inner[0], depth + 1)
    return [read_code(each, depth + 1) for each in inner]


def _mapped(text: str, depth: int) -> dict[str, Any]:
    if text.startswith("("):
        flat = [read_code(each, depth + 1) for each in split(text[1:-1])]
        return {str(key): each for key, each in zip(flat[::2], flat[1::2], strict=False)}
    pairs = [list(split(given)) for given in _filled(text)]
    return {
        str(read_code(pair[0])): read_code(pair[1], depth + 1) for pair in pairs if len(pair) == 2
    }


def _filled(text: str) -> Iterator[str]:
    """What the `put(…)` and `add(…)` statements of an initializer block are given."""
    for statement in split(text.strip().strip("{}"), ";"):
        if found := _FILLED.fullmatch(statement):
            yield found[1]


def _object(text: str, depth: int, whole: str) -> Any:
    read: dict[str, Any] = {}
    for pair in split(text):
        key, _, each = (part.strip() for part in pair.partition(":"))
        if not each:
            return whole
        read[str(read_code(key))] = read_code(each, depth + 1)
    return read


def split(text: str, mark: str = ",") -> Iterator[str]:
    """The parts between marks that stand outside quotes and brackets, without outer blanks."""
    closers: list[str] = []
    quote = part = ""
    for char in text:
        if quote:
            quote = "" if char == quote else quote
        elif char in "\"'`":
            quote = char
        elif char in _PAIRS:
            closers.append(_PAIRS[char])
        elif closers and char == closers[-1]:
            closers.pop()
        elif char == mark and not closers:
            yield part.strip()
            part = ""
            continue
        part += char
    if part.strip():
        yield part.strip()
