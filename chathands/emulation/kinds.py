"""What kind of work tools do (file, query, push, compute), read off their words."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cache

from chathands.conversation import ToolSpec
from chathands.emulation.prompts import load


def kind_of_tools(specs: Sequence[ToolSpec]) -> str | None:
    """The kind most of the tools are of, as `prompts/examples.toml` names it; None if of none.

    Reading before pushing where both are as many: an example of sending invites sending.
    """
    counts: Counter[str] = Counter()
    for spec in specs:
        about = f"{re.sub('[_-]', ' ', spec.name)}\n{spec.description}".casefold()
        counts.update(kind for kind, words in _words().items() if words.search(about))
    best = max(counts.values(), default=0)
    return next((kind for kind in _words() if counts[kind] == best), None) if best else None


@cache
def _words() -> Mapping[str, re.Pattern[str]]:
    """By kind, in the order of the file: the words that show it."""
    patterns = {}
    for kind, entry in load("examples").items():
        latin = "|".join(re.escape(word) for word in entry["words"] if word.isascii())
        other = [re.escape(word) for word in entry["words"] if not word.isascii()]
        patterns[kind] = re.compile("|".join([rf"\b(?:{latin})(?:s|es|ed|ing)?\b", *other]))
    return patterns
