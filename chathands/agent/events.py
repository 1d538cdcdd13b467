"""What a person asks of the agent, what comes back, and what is told on the way."""

from __future__ import annotations

import logging
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal

from chathands.emulation.outcome import Reason
from chathands.toolbox import Approval, Caller

_log = logging.getLogger(__name__)

_REF_CHARACTERS = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
"""Crockford's base 32: no I, L, O, U, so that a reference survives being read out or retyped."""


def new_run_id() -> str:
    """A run's id, which is also the reference number people are shown: `A7F3-09`."""
    bits = secrets.randbits(30)  # at once: each look into the system's randomness costs 10 µs
    drawn = "".join(_REF_CHARACTERS[bits >> shift & 31] for shift in range(0, 30, 5))
    return f"{drawn[:4]}-{drawn[4:]}"


@dataclass(frozen=True, slots=True)
class Question:
    """An accepted question. Identity and role stand in `caller`, taken from the event."""

    text: str
    caller: Caller
    conversation_id: str | None = None
    """None: the caller's own conversation."""
    quoted: str | None = None
    """Text of a quoted or forwarded message: data from outside."""
    foreign: bool = False
    """Other text from outside stands in the question."""
    meta: Mapping[str, Any] = field(default_factory=dict)
    """The asking side's own, JSON-safe: comes back with the reply, also after a restart."""
    name: str = ""
    """How the asker is called; empty: the caller's name."""
    now: datetime | None = None
    """None: the time of asking."""
    run_id: str = ""
    """Drawn by an asking side that has written it down (`new_run_id`); empty: drawn here."""

    @property
    def conversation(self) -> str:
        """The conversation it belongs to."""
        return self.conversation_id or self.caller.conversation_id


@dataclass(frozen=True, slots=True)
class Finished:
    """A run's one final reply."""

    text: str
    run_id: str
    status: Literal["answered", "fallback", "failed", "cancelled"]
    """answered: the model's answer; fallback: our account of what was done; failed: nothing was
    done, and why."""
    meta: Mapping[str, Any] = field(default_factory=dict)
    files: tuple[tuple[str, bytes], ...] = ()
    """Name and content of what tools attached for the person."""


@dataclass(frozen=True, slots=True)
class Suspended:
    """A run that waits for a person's decision; `Agent.decide` or `Agent.expire` ends the wait."""

    approval: Approval
    run_id: str
    meta: Mapping[str, Any] = field(default_factory=dict)
    question_text: str = ""


@dataclass(frozen=True, slots=True)
class Declined:
    """A decision that was not accepted; the run waits on, or is somebody else's by now."""

    sentence: str


# --- on the way; CallStarted and CallFinished of the toolbox come through the same callback


@dataclass(frozen=True, slots=True)
class RunStarted:
    """`run_id` is known from here on: `Agent.cancelled_reply` takes it."""

    run_id: str
    seconds: float


@dataclass(frozen=True, slots=True)
class RoundStarted:
    run_id: str
    number: int


@dataclass(frozen=True, slots=True)
class Corrected:
    """A reply was not accepted and the model is asked again."""

    run_id: str
    reason: Reason


@dataclass(frozen=True, slots=True)
class Withdrawn:
    """Tools were taken away; the model is asked for its answer."""

    run_id: str
    why: Literal["last_round", "deadline"]


OnEvent = Callable[[object], None]


def tell(on_event: OnEvent | None, event: object) -> None:
    """Tell whoever watches; a watcher that fails is logged and does not end the run."""
    if on_event is None:
        return
    try:
        on_event(event)
    except Exception:
        _log.exception("on_event failed for %s", type(event).__name__)
