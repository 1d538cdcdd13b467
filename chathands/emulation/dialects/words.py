"""The word lists of words.json as sets."""

from __future__ import annotations

import re
from typing import Any, Final

from chathands.emulation.dialects.data import load

_DATA: Final[dict[str, Any]] = load("words.json")

NAME_KEYS: Final = frozenset(_DATA["name_keys"])
LATE_NAME_KEYS: Final = frozenset(_DATA["late_name_keys"])
"""Names of a tool too, but only if the value is one."""
ARGUMENT_KEYS: Final = frozenset(_DATA["argument_keys"])
WRAPPERS: Final = frozenset(_DATA["wrappers"])
REMARKS: Final = frozenset(_DATA["remarks"])
THOUGHTS: Final = frozenset(_DATA["thoughts"])
"""The remarks that say what the model thinks."""
CALLERS: Final = frozenset(_DATA["callers"])
FORM_WANTED: Final = re.compile(
    "|".join(rf"\b{word}" if word.isascii() else word for word in _DATA["form_wanted"]), re.I
)
"""Words of a question that may want a call shown instead of made."""
NO_TOOL: Final = frozenset(_DATA["no_tool"])
ANSWER_KEYS: Final = frozenset(_DATA["answer_keys"])
CONTRACT_INFO: Final = frozenset(_DATA["contract_info"])
MARKED_INFO: Final = frozenset(_DATA["marked_info"])
DATA_INFO: Final = frozenset(_DATA["data_info"])
NAME_LABELS: Final = frozenset(_DATA["name_labels"])
THOUGHT_LABELS: Final = tuple(_DATA["thought_labels"])
ANSWER_LABELS: Final = tuple(_DATA["answer_labels"])
SELF_TALK: Final = re.compile("|".join(_DATA["self_talk"]), re.IGNORECASE)
"""What a line says that a model wrote for itself."""
SAYS_WHAT_IT_IS: Final = re.compile("|".join(_DATA["says_what_it_is"]), re.IGNORECASE)
"""What stands behind a tool's name when it is spoken of."""
NAMESPACES: Final = tuple(_DATA["namespaces"])

_NOISE: Final = re.compile(r"[\s_\-\\*'\"`\u200b-\u200d\u2060\ufeff]+")


def plain_key(key: str) -> str:
    """A key as the lists have it: lower case, without spaces, dashes, underscores and quotes."""
    return _NOISE.sub("", key).lower()


def is_name_key(key: str) -> bool:
    """Whether the value of such a key is the name of a tool."""
    return plain_key(key) in NAME_KEYS


_HEADS: Final = frozenset({"tool", "parameters", "arguments"})


def duplicated(key: str, first: Any, second: Any) -> str:
    """The repair that a key written twice with different values is. In arguments the last counts,
    as in JSON everywhere; which tool and which arguments are meant is not a matter of order."""
    alike = type(first) is type(second)  # else the first was a misread part of the second
    return "duplicate_head" if alike and plain_key(key) in _HEADS else "duplicate_key"
