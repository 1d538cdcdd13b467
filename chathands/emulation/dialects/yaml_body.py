"""The part of YAML that models use for a call: mappings, lists, scalars and `|` texts by indent.

No anchors, no tags, no multi-line flow; what does not look like this is no YAML to us. Scalars are
typed as JSON is, not as YAML 1.1 is: `no` stays a word and `08:00` stays a time.
"""

from __future__ import annotations

import re
from typing import Any, Final

from chathands.emulation.lenient_json import read_value
from chathands.emulation.reading_tokens import Hints, State
from chathands.emulation.reading_words import word_value

_PAIR: Final = re.compile(
    r"""([^\s:：#\-{}\[\]"'][^:：{}\[\]"']{0,60}?|"[^"]{1,60}"|'[^']{1,60}')\s*[:：](?:\s+|$)(.*)"""
)
_BLOCK_TEXT: Final = re.compile(r"([|>])[+-]?\d?\s*(?:#.*)?")


class NotYaml(Exception):
    """The text has another form."""


def read_yaml(text: str) -> Any:
    """The mapping or list that the text writes. Raises NotYaml."""
    lines = [line.rstrip("\r") for line in text.expandtabs(2).split("\n")]
    reader = _Lines(lines)
    reader.skip_blank()
    value = reader.block(reader.indent())
    reader.skip_blank()
    if reader.at < len(lines) or not isinstance(value, dict | list):
        raise NotYaml
    return value


class _Lines:
    def __init__(self, lines: list[str]) -> None:
        self.lines = lines
        self.at = 0

    def indent(self) -> int:
        line = self.lines[self.at] if self.at < len(self.lines) else ""
        return len(line) - len(line.lstrip(" "))

    def skip_blank(self) -> None:
        while self.at < len(self.lines):
            line = self.lines[self.at].strip()
            if line and not line.startswith("#") and line not in ("---", "..."):
                return
            self.at += 1

    def block(self, indent: int, depth: int = 0) -> Any:
        """The mapping or list whose lines stand at this indent."""
        if self.at >= len(self.lines) or depth > 12:
            raise NotYaml
        line = self.lines[self.at][indent:]
        return (
            self._list(indent, depth) if line.startswith(("- ", "-")) else self._map(indent, depth)
        )

    def _map(self, indent: int, depth: int) -> dict[str, Any]:
        value: dict[str, Any] = {}
        while self.at < len(self.lines):
            self.skip_blank()
            if self.at >= len(self.lines) or self.indent() < indent:
                break
            pair = _PAIR.fullmatch(self.lines[self.at][indent:].rstrip())
            if pair is None or self.indent() > indent:
                raise NotYaml
            self.at += 1
            value[pair[1].strip().strip("\"'")] = self._value(pair[2].strip(), indent, depth)
        return value

    def _list(self, indent: int, depth: int) -> list[Any]:
        value: list[Any] = []
        while self.at < len(self.lines):
            self.skip_blank()
            if self.at >= len(self.lines) or self.indent() < indent:
                break
            line = self.lines[self.at]
            if self.indent() > indent or not line[indent:].startswith("-"):
                if self.indent() == indent:
                    break
                raise NotYaml
            rest = line[indent + 1 :]
            inner = indent + 1 + len(rest) - len(rest.lstrip(" "))
            if _PAIR.fullmatch(rest.strip()):
                # the item is a mapping that begins on the dash's own line
                self.lines[self.at] = " " * inner + rest.strip()
                value.append(self._map(inner, depth + 1))
            else:
                self.at += 1
                value.append(self._value(rest.strip(), indent, depth))
        return value

    def _value(self, text: str, indent: int, depth: int) -> Any:
        if not text:
            self.skip_blank()
            deeper = self.indent() > indent
            dashed = self.at < len(self.lines) and self.lines[self.at].lstrip().startswith("-")
            if self.at < len(self.lines) and (deeper or (dashed and self.indent() == indent)):
                return self.block(self.indent(), depth + 1)
            return None
        block_text = _BLOCK_TEXT.fullmatch(text)
        if block_text:
            return self._text(indent, folded=block_text[1] == ">")
        return _scalar(text)

    def _text(self, indent: int, *, folded: bool) -> str:
        start = self.at
        while self.at < len(self.lines) and (
            not self.lines[self.at].strip() or self.indent() > indent
        ):
            self.at += 1
        lines = self.lines[start : self.at]
        while lines and not lines[-1].strip():
            lines.pop()
        margin = min((len(line) - len(line.lstrip()) for line in lines if line.strip()), default=0)
        return (" " if folded else "\n").join(line[margin:] for line in lines)


def _scalar(text: str) -> Any:
    if text[0] in "\"'{[":
        read = read_value(text, Hints())
        rest = read.src.buf[read.src.pos :].strip()
        if read.state is State.WHOLE and (not rest or rest.startswith("#")):
            return read.value
        raise NotYaml
    comment = text.find(" #")
    return word_value(text[:comment].rstrip() if comment >= 0 else text, {})
