"""The declared tools as the reader needs them: a written name to a spec, a spec to its schema."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping, Sequence
from typing import Any, Final

from chathands.conversation import ToolSpec
from chathands.emulation.dialects.words import (
    ARGUMENT_KEYS,
    NAME_KEYS,
    NAMESPACES,
    NO_TOOL,
    REMARKS,
    WRAPPERS,
    plain_key,
)
from chathands.emulation.reading_tokens import Call, Frame, Hints, given_in
from chathands.schema import Schema, compile_schema, plain_name

_INVISIBLE: Final = re.compile("[\u200b-\u200d\u2060\ufeff]+")
_DRESS: Final = re.compile(r"^[\s`'\"*<\[（(]+|[\s`'\"*>\]）;:：,.]+$|\\(?=[_*])")
_CALL_TAIL: Final = re.compile(r"\(\s*\)$|:\d{1,4}$")


WINDOW: Final = 88
"""Characters by which it must be clear that a line holds a call; more for longer tool names."""
_BESIDE_NAME: Final = 28
"""Characters that stand around the name there: `[{"recipient_name": "functions.`."""
_LONGEST_NAME: Final = 200

_ENVELOPE: Final = frozenset({"tool", "name", "parameters", "arguments"})


class Tools(Hints):
    """What may be called, found by names as models write them."""

    def __init__(self, tools: Sequence[ToolSpec | Mapping[str, Any]]) -> None:
        """Raises ValueError for a tool without a name."""
        self._exact: dict[str, ToolSpec | Mapping[str, Any]] = {}
        for tool in tools:
            self._exact[tool.name if isinstance(tool, ToolSpec) else _name_of(tool)] = tool
        longest = min(max(map(len, self._exact), default=0), _LONGEST_NAME)
        self.window = max(WINDOW, _BESIDE_NAME + longest)
        """Characters of a line's start that are looked at."""
        self._near: dict[str, str | None] | None = None
        self._plain: frozenset[str] | None = None

    @property
    def are_there(self) -> bool:
        """Whether any tool is declared."""
        return bool(self._exact)

    def _spec(self, name: str | None) -> ToolSpec | None:
        """The spec of a declared name; most of a client's many tools are never asked for."""
        tool = self._exact.get(name) if name is not None else None
        if tool is None or isinstance(tool, ToolSpec):
            return tool
        spec = self._exact[str(name)] = ToolSpec.from_openai(tool)
        return spec

    def find(self, written: str) -> ToolSpec | None:
        """The declared tool a written name means; None when none, or more than one, could be meant.

        Case, width, dashes, quotes, `()` and a namespace do not matter; letters do: a misspelt name
        is an unknown tool, since the nearest one may do something else.
        """
        if written in self._exact or len(written) > 200:
            return self._spec(written)
        name = _CALL_TAIL.sub(
            "", unicodedata.normalize("NFKC", _INVISIBLE.sub("", written)).strip()
        )
        name = _CALL_TAIL.sub("", _DRESS.sub("", name))
        for space in NAMESPACES:
            name = name.removeprefix(space)
        spec = self._spec(name) or self._by_plain(plain_name(name))
        if spec is None and "." in name:
            head, _, last = name.rpartition(".")
            if last in ("call", "run", "invoke", "execute"):
                spec = self.find(head)
            else:
                spec = self._spec(last) or self._by_plain(plain_name(last))
        return spec

    def _by_plain(self, plain: str) -> ToolSpec | None:
        if self._near is None:
            self._near = {}
            for name in self._exact:
                for key in {plain_name(name), plain_name(name.rpartition(".")[2])}:
                    # None marks a form that two tools share
                    self._near[key] = None if key in self._near else name
        return self._spec(self._near.get(plain))

    def leads(self, written: str) -> bool:
        """Whether a line that begins with this word begins with a declared name.

        Stricter than `find`: it must never say yes where `begins` said no to the word's beginning.
        """
        for space in NAMESPACES:
            written = written.removeprefix(space)
        return plain_name(written) in self._plain_names()

    def begins(self, text: str) -> bool:
        """Whether text that goes on may become a declared name, with or without a name space."""
        for space in NAMESPACES:
            if space.startswith(text):
                return True
            text = text.removeprefix(space)
        plain = plain_name(text)
        return any(name.startswith(plain) for name in self._plain_names())

    def _plain_names(self) -> frozenset[str]:
        if self._plain is None:
            names = set(self._exact)
            last = [name.rpartition(".")[2] for name in names]
            names |= {name for name in last if last.count(name) == 1}
            self._plain = frozenset(plain_name(name) for name in names)
        return self._plain

    def is_no_tool(self, written: str) -> bool:
        """Whether the name says that no tool is needed; a declared tool of it comes first."""
        return plain_key(written) in NO_TOOL and self.find(written) is None

    def is_name_key(self, key: str) -> bool:
        """Whether the value of this key is a tool's name."""
        return plain_key(key) in NAME_KEYS

    def is_tool(self, name: str) -> bool:
        """Whether a word is the name of a declared tool."""
        return self.leads(name)

    def holds_arguments(self, key: str) -> bool:
        """Whether the value of this key is the object of arguments."""
        return plain_key(key) in ARGUMENT_KEYS

    def fits(self, stack: Sequence[Frame], level: int, key: str) -> bool:
        """Whether a key may stand there: one of an envelope, or an argument of the tool named."""
        box = stack[level].box
        if key in given_in(box) or key == stack[level].key:
            return False
        if isinstance(box, Call):
            spec = self.find(box.name)
            return spec is None or key in self.schema(spec).properties
        plain = plain_key(key)
        own = self._named_in(box)
        outer = next((s for f in stack[:level][::-1] if (s := self._named_in(f.box))), None)
        if outer is not None and own is None:
            names = self.schema(outer).properties
            return not names or plain_name(key) in {plain_name(name) for name in names}
        if plain in NAME_KEYS or plain in ARGUMENT_KEYS or plain in REMARKS or plain in WRAPPERS:
            return True
        return own is None or key in self.schema(own).properties

    def expects(self, stack: Sequence[Frame], level: int, key: str) -> bool:
        """Whether a key is an argument of the tool named, or one of an envelope's own keys."""
        outer = next((s for f in stack[:level][::-1] if (s := self._named_in(f.box))), None)
        if isinstance(stack[level].box, Call):
            outer = self.find(stack[level].box.name)
        known = key in self.schema(outer).properties if outer else key in _ENVELOPE
        return known and self.fits(stack, level, key)

    def _named_in(self, box: Any) -> ToolSpec | None:
        if not isinstance(box, dict):
            return None
        written = (v for k, v in box.items() if isinstance(v, str) and self.is_name_key(k))
        return next((spec for name in written if (spec := self.find(name))), None)

    @staticmethod
    def schema(spec: ToolSpec) -> Schema:
        """The compiled schema of a tool's arguments."""
        return compile_schema(spec.parameters)


def _name_of(tool: Mapping[str, Any]) -> str:
    function = tool.get("function", tool)
    name = function.get("name") if isinstance(function, Mapping) else None
    return name if isinstance(name, str) and name else ToolSpec.from_openai(tool).name
