"""Words and names as people type them, made fit to stand in a prompt, a log and a store."""

from __future__ import annotations

import re
import unicodedata

LONGEST_TEXT = 4500
"""Characters of one message. QQ's own input box stops at about that; more comes from programs."""
LONGEST_NAME = 30
"""QQ allows 60 bytes for a card; longer ones are decoration."""

BLANK = " \t\r\n\u3000\u00a0\u115f\u1160\u200b\u200c\u200d\u200e\u200f\u2060\u2800\u3164\ufeff"
"""What looks like nothing; phones and clients put it before and behind a mention."""

_CONTROL = re.compile(
    r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ufff9-\ufffb]"
)
"""Also marks that turn the direction of writing: a line could be shown other than it reads."""
_LONE = re.compile(r"[\ud800-\udfff]")
"""Half a character: JSON allows it, UTF-8 (store, network) does not."""


def clean_text(text: str, *, limit: int = LONGEST_TEXT) -> str:
    """The words without what nobody can see and programs stumble over; says where it was cut."""
    text = _LONE.sub("\ufffd", _CONTROL.sub("", text.replace("\r\n", "\n").replace("\r", "\n")))
    text = text.strip(BLANK)
    if len(text) <= limit:
        return text
    return f"{text[:limit]}…（这条消息太长，只读了前 {limit} 字，共 {len(text)} 字）"


def clean_name(name: object, otherwise: str = "") -> str:
    """A nickname or card on one line, short; `otherwise` when nothing can be seen of it."""
    if not isinstance(name, str):
        return otherwise if name is None or isinstance(name, dict | list) else str(name)
    name = _CONTROL.sub("", _LONE.sub("", name))
    seen = [c for c in name if c == "\u200d" or unicodedata.category(c) not in ("Cf", "Co", "Cn")]
    name = " ".join("".join(seen).split()).strip(BLANK)
    # Decoration piles up combining marks: what is left of such a name is its first letters.
    name = re.sub(
        r"([\u0300-\u036f\u0e47-\u0e4e\u20d0-\u20ff]{2})[\u0300-\u036f\u0e47-\u0e4e\u20d0-\u20ff]+",
        r"\1",
        name,
    )
    return name[:LONGEST_NAME].strip(BLANK) or otherwise


def one_line(text: str, limit: int) -> str:
    """On one line, cut at `limit` characters."""
    text = " ".join(clean_text(text).split())
    return text if len(text) <= limit else text[:limit] + "…"


_WORD = r"[A-Za-z0-9_]"


def without_call(text: str, names: tuple[str, ...]) -> str | None:
    """What follows a name at the start ("小手，查一下"); None when it does not start with one.

    A name that ends in a letter or digit must end there: "bot" does not call in "bottle".
    """
    found = _call(names).match(text.lstrip(BLANK)) if names else None
    return None if found is None else text.lstrip(BLANK)[found.end() :]


def only_resembles_call(text: str, names: tuple[str, ...]) -> bool:
    """Whether it starts with the letters of a name and is none."""
    lower = text.lstrip(BLANK).lower()
    return any(lower.startswith(name.lower()) for name in names if name) and (
        without_call(text, names) is None
    )


def without_typed_mention(text: str, names: tuple[str, ...]) -> str | None:
    """The words without "@name" typed by hand; None when there is none. The name must end where
    a blank, a mark or the line ends: "@小手机" is somebody else."""
    alternatives = "|".join(re.escape(name) for name in _longest_first(names))
    if not alternatives:
        return None
    left, count = re.subn(rf"(?i)(?<!\w)[@＠]\s?(?:{alternatives})(?!\w)[\s,，:：]*", " ", text)
    return left.strip(BLANK) if count else None


def _call(names: tuple[str, ...]) -> re.Pattern[str]:
    each = "|".join(
        re.escape(name) + (rf"(?!{_WORD})" if re.search(rf"{_WORD}$", name) else "")
        for name in _longest_first(names)
    )
    return re.compile(rf"(?i)(?:{each})[\s,，、:：!！~～]*" if each else r"(?!)")


def _longest_first(names: tuple[str, ...]) -> list[str]:
    return sorted({name for name in names if name.strip(BLANK)}, key=len, reverse=True)
