"""What the readers of values share: which characters are structure, and what may follow a string.

Full-width and smart marks are structure only where structure is expected; inside values they are
text like any other.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final

CLOSING: Final[Mapping[str, str]] = {
    '"': '"”“＂', "'": "'’‘", "“": "”“\"＂", "”": "”“\"＂", "„": "“”\"", "«": "»", "＂": "＂\"”",
    "‘": "’‘'", "’": "’‘'", "＇": "＇'", "「": "」", "『": "』", "`": "`",
}  # fmt: skip
"""Opening quote → the marks that may end the string; the first is the proper one."""

QUOTES: Final = frozenset(CLOSING)
SMART: Final = frozenset("“”„«»‘’＂＇「」『』")
FAMILY: Final[Mapping[str, str]] = {
    **dict.fromkeys("“”„«＂「『", "smart"), **dict.fromkeys("‘’＇", "smart single"),
    '"': '"', "'": "'", "`": "`", "\\": "escaped", "&": "entity", "<": "token", "»": "smart",
    "」": "smart", "』": "smart",
}  # fmt: skip

OPENERS: Final[Mapping[str, str]] = {
    "{": "{", "[": "[", "(": "t", "｛": "{", "［": "[", "（": "t", "【": "[",
}  # fmt: skip
"""Opening bracket → kind of frame."""
CLOSERS: Final[Mapping[str, str]] = {
    "}": "{", "]": "[", ")": "(t", "｝": "{", "］": "[", "）": "(t", "】": "[",
}  # fmt: skip
"""Closing bracket → the kinds of frame it closes."""
COLONS: Final = frozenset(":：=＝")
COMMAS: Final = frozenset(",，、;；")
FULL_WIDTH: Final = frozenset("｛［（｝］）：，、；＝【】")
INVISIBLE: Final = "\ufeff\u200b-\u200d\u2060"
"""For a character class: marks without width that models put where they have no meaning."""
SPACE: Final = re.compile(rf"[\s{INVISIBLE}]*")


class State(StrEnum):
    """How the reading of a value ended."""

    EMPTY = "empty"
    """Nothing was read, or not yet."""
    WHOLE = "whole"
    CLOSERS = "closers"
    """Everything is there but closing brackets at the end."""
    CUT = "cut"
    """The text stops inside a string, number or key, or where a value must follow."""
    BROKEN = "broken"


Detail = tuple[str, str]
"""Why something cannot be read: a code, for which reading_judge.py has the words, and where."""


@dataclass(slots=True)
class Call:
    """A call as an expression, `name(1, key=2)`; not checked against anything yet."""

    name: str
    args: list[Any] = field(default_factory=list)
    kwargs: dict[str, Any] = field(default_factory=dict)


class Variable(str):
    """A bare identifier where Python wants a value, `f(text=msg)`: nobody knows what it holds."""

    __slots__ = ()


@dataclass(slots=True)
class Gap:
    """A value that is not there, `{"a": }`. What holds one cannot run; what stands beside can."""

    key: str
    colon: bool
    """The key has its colon; without one it may be an element of a Python set."""


CONSTRUCTORS: Final = frozenset(
    {"dict", "list", "tuple", "set", "frozenset", "OrderedDict", "str", "int", "float", "bool"}
)
"""Calls of Python that only say of what type a value is."""


def constructed(call: Call) -> Any:
    """What `dict(a=1)`, `list((1, 2))`, `OrderedDict([("a", 1)])` make; the call if it is another.

    A tool of such a name takes other arguments.
    """
    name = call.name.rpartition(".")[2]
    if name not in CONSTRUCTORS or len(call.args) + bool(call.kwargs) > 1:
        return call
    if name in ("dict", "OrderedDict"):
        given = call.args[0] if call.args else call.kwargs
        if isinstance(given, list) and all(isinstance(i, list) and len(i) == 2 for i in given):
            given = {key: value for key, value in given if isinstance(key, str)}
        return given if isinstance(given, dict) else call
    if call.kwargs or not call.args:
        return call
    (value,) = call.args
    if name in ("list", "tuple", "set", "frozenset"):
        return value if isinstance(value, list) else call
    typed = isinstance(value, str | int | float) and not isinstance(value, bool)
    return value if typed or (name == "bool" and isinstance(value, bool)) else call


class Want(StrEnum):
    """What may come next inside the innermost bracket."""

    KEY = "key"
    COLON = "colon"
    VALUE = "value"
    NEXT = "next"


class Frame:
    """An open bracket: `{`, `[`, `(` of a call, or `t` for a tuple's parentheses."""

    __slots__ = ("alias", "box", "fresh", "key", "kind", "want")

    def __init__(self, kind: str, box: Any) -> None:
        self.kind = kind
        self.box = box
        self.want = Want.KEY if kind == "{" else Want.VALUE
        self.key: str | None = None
        self.fresh = True
        """Nothing was read inside yet."""
        self.alias = kind
        """The kind its opening bracket said."""


def given_in(box: Any) -> Any:
    """The keys, or else the items, that an open bracket holds so far."""
    return box.kwargs if isinstance(box, Call) else box


class Hints:
    """What a reader of values may ask about keys; this one knows nothing."""

    def is_name_key(self, key: str) -> bool:
        """Whether the value of this key is a tool's name."""
        return False

    def is_tool(self, name: str) -> bool:
        """Whether a word is the name of a declared tool."""
        return False

    def holds_arguments(self, key: str) -> bool:
        """Whether the value of this key is the object of arguments."""
        return False

    def fits(self, stack: Sequence[Frame], level: int, key: str) -> bool:
        """Whether a key may stand in the frame at this level of the open brackets."""
        return key not in given_in(stack[level].box) and key != stack[level].key

    def expects(self, stack: Sequence[Frame], level: int, key: str) -> bool:
        """Whether a key is known to belong there."""
        return False
