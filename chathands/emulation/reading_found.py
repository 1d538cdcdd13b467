"""What a dialect hands over: names and arguments as written, not yet judged."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

from chathands.emulation.reading_tokens import Detail, State

MISSING: Final = object()
"""No arguments were written at all."""

GUESSED: Final = frozenset(
    {"inner_quotes", "missing_quote", "missing_closer", "wrong_closer", "missing_colon",
     "missing_opener", "reopened", "bare_text", "thousands", "positional", "unknown_key", "spilled",
     "swapped", "inline"}
)  # fmt: skip
"""Repairs that rest on a guess: the call is `recovered`."""


@dataclass(slots=True)
class Found:
    """Something in the form of a call."""

    name: str | None
    arguments: Any = MISSING
    state: State = State.WHOLE
    detail: Detail = ("", "")
    repairs: dict[str, None] = field(default_factory=dict)
    weak: bool = False
    """Nothing but a name says that this is a call: then every argument must fit as it stands."""
    thought: str = ""
    """The first sentence of a thought written into the call."""
    text_values: bool = False
    """The form has only text for values, so that reading a number from one changes nothing."""


@dataclass(slots=True)
class Block:
    """One stretch of the reply that is not for people to read: a fence, a tag, a line."""

    found: list[Found]
    form: str
    contract: bool = False
    """It stands in the contract's own fence."""
    marked: bool = False
    """Its marks have no other use than calls."""
    sure: bool = False
    """They are a model's own tokens for calls: nobody is shown them, declared name or not."""
    closed: bool = True
    """Its end was seen; otherwise the reply stopped inside."""
    plain: bool = False
    """It is ordinary text after all."""
