"""A reply that is a tool's name and a value, `get_weather 杭州`: meant as a call, not as an answer.

No form says which argument the value is, so that nothing can run; but nobody is to read it either.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from chathands.conversation import ToolSpec
from chathands.emulation.dialects.words import SAYS_WHAT_IT_IS

_LINE: Final = re.compile(
    r"[`\"'*]{0,3}([^\W\d][\w.\-]{1,99})(?:\(\s*\))?[`\"'*]{0,3}(?:\s{1,3}|\s?[:：]\s?)([^\n。！？!?；;]{1,60})"
)
_MADE_UP: Final = re.compile(r"[_.\-]|[a-z][A-Z]")
"""A name that is no ordinary word: `search` alone also begins a sentence."""


def bare_call(text: str, specs: Sequence[ToolSpec]) -> str | None:
    """The declared tool whose name begins such a reply, or None."""
    found = _LINE.fullmatch(text.strip().strip("`"))
    if found is None or not _MADE_UP.search(found[1]):
        return None
    if SAYS_WHAT_IT_IS.search(found[2]):
        return None
    return next((spec.name for spec in specs if spec.name == found[1]), None)
