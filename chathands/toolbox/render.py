"""Results and refusals as the model reads them: to size, in plain sentences."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Sequence
from typing import Any

from chathands.conversation import canonical_json

OUTPUT_CAP = 1_000_000
"""Characters of a tool's output that are looked at. No model reads more than a few thousand, and
scanning 100 MB of text for secrets would block the loop for seconds."""

TAIL_SHARE = 0.25
"""Part of a cut result kept from its end: totals and the last rows stand there."""

SENTENCE_CAP = 500
"""Characters of a failure: one sentence, with room for a list of sheet or file names."""


class Excerpt(str):
    """A text whose maker has already left something out, and says so in it."""

    __slots__ = ()


_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")


def result_limit(context: int) -> int:
    """Characters one result may take in a context of so many tokens.

    A Chinese character is about 0.6 token in current vocabularies, so half the number of tokens
    in characters is about 30 % of the context: contract (35 %), question and answer still fit.
    """
    return min(max(context // 2, 1000), 20_000)


def as_text(value: Any) -> str:
    """A tool's return value as text; tools return str, other JSON values are written out."""
    if value is None:
        return ""
    if isinstance(value, str):
        # Markup and the like escape what is added to them, and may override anything else.
        return str.__str__(value)
    try:
        return canonical_json(value)
    except (TypeError, ValueError):
        return str(value)


def cleaned(text: str) -> str:
    """Without control characters and lone surrogates (file names can bring both)."""
    return _CONTROL.sub("", text.encode("utf-8", "replace").decode("utf-8"))


def shortened(text: str, limit: int, size: int | None = None) -> tuple[str, bool]:
    """(text of at most about `limit` characters, whether it was cut).

    Head and tail stay, at line ends where one is near, and the line between them states the true
    size, `size` characters if the text was already cut before.
    """
    size = len(text) if size is None else size
    if isinstance(text, Excerpt) and len(text) <= limit:
        return str(text), True
    if size <= limit and len(text) <= limit:
        return text, False
    tail_length = int(limit * TAIL_SHARE)
    head, tail = text[: limit - tail_length], text[-tail_length:]
    end = head.rfind("\n", len(head) * 3 // 4)
    head = head[:end] if end > 0 else head
    start = tail.find("\n", 0, tail_length // 4)
    tail = tail[start + 1 :] if start >= 0 else tail
    left_out = size - len(head) - len(tail)
    return f"{head}\n……（全文共 {size} 个字符，中间省略 {left_out} 个）……\n{tail}", True


def cut(text: str, most: int) -> str:
    """At most `most` characters of `text`, from its beginning; the last says that more follows."""
    return text if len(text) <= most else f"{text[: most - 1].rstrip()}…"


def one_line(text: str, most: int) -> str:
    """`text` on one line, and cut."""
    return cut(" ".join(text.split()), most)


def one_sentence(text: str) -> str:
    """A failure on one line, cut to SENTENCE_CAP."""
    return one_line(cleaned(text), SENTENCE_CAP)


def unknown_tool(name: str, names: Iterable[str]) -> str:
    """Names the nearest of the tools this person may use."""
    known = list(names)
    near = nearest_names(name, known)
    said = f"没有名为「{one_sentence(name)[:60]}」的工具。"
    if near:
        return said + f"最接近的是：{'、'.join(near)}。"
    if known:
        return said + f"可用的有：{'、'.join(sorted(known)[:8])}；都不合适就直接回答。"
    return said + "现在没有可用的工具，请直接回答。"


def nearest_names(name: str, names: Sequence[str], count: int = 3) -> list[str]:
    folded = {known.casefold(): known for known in names}
    close = difflib.get_close_matches(name[:64].casefold(), folded, n=count, cutoff=0.5)
    return [folded[each] for each in close]
