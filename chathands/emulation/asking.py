"""What a turn remembers of its corrections, and whether another one is worth asking for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from functools import cached_property

from chathands.conversation import ToolCall, ToolChoice, ToolSpec, canonical_json
from chathands.emulation.corrections import rule_for
from chathands.emulation.outcome import Answer, Outcome, Reason, Retry
from chathands.emulation.state import State

_MADE_UP = (Reason.UNKNOWN_TOOL, Reason.FAR_FETCHED)


class Asking:
    """The corrections of one turn. `meant` finds the tool that the question plainly speaks of."""

    def __init__(
        self,
        state: State,
        choice: ToolChoice,
        meant: Callable[[], ToolSpec | None],
        most: int,
    ) -> None:
        self._state = state
        self._auto = choice.kind == "auto"
        self._most = most
        self._find_meant = meant
        self.corrections = 0
        """Asked so far; requests for the rest of an enumeration are none."""
        self._asked: Counter[Reason] = Counter()
        self._raw = ""
        self._calls: tuple[str, ...] = ()

    @cached_property
    def meant(self) -> ToolSpec | None:
        """Under a free choice; looked for only when something has to be corrected."""
        return self._find_meant() if self._auto else None

    def times(self, reason: Reason) -> int:
        """How often this reason was asked about."""
        return self._asked[reason]

    @property
    def left(self) -> int:
        return self._most - self.corrections

    @property
    def speaks_to(self) -> State:
        """The state a correction speaks to. Where the model has made up a tool or a call, and the
        question speaks of none, tools are over: what is said then must not push for one."""
        made_up = any(self._asked[reason] for reason in _MADE_UP)
        return State.WITHDRAWN if made_up and self._auto and not self.meant else self._state

    def accepted(self, outcome: Outcome, text: str) -> Outcome:
        """The outcome, or the answer that a plea is where tools are over: it was offered."""
        over = self.speaks_to is State.WITHDRAWN
        pleads = isinstance(outcome, Retry) and outcome.reason is Reason.REFUSAL
        return Answer(text) if over and pleads else outcome

    def repeats(self, raw: str, calls: Sequence[ToolCall]) -> bool:
        """Whether a reply is the one that was just turned down, or makes the same calls."""
        same = _identities(calls)
        return bool(self.corrections) and (raw == self._raw or (bool(same) and same == self._calls))

    def may_ask(self, retry: Retry) -> bool:
        """Whether this reason may be asked about once more."""
        if self._asked[retry.reason] >= rule_for(retry, self.speaks_to).limit:
            return False
        goes_on = retry.reason is Reason.INCOMPLETE and self._most > 0
        return goes_on or self.left > 0

    def asked(self, retry: Retry, raw: str, calls: Sequence[ToolCall]) -> None:
        """Note a correction, and the reply that it turned down."""
        self.corrections += retry.reason is not Reason.INCOMPLETE
        self._asked[retry.reason] += 1
        self._raw, self._calls = raw, _identities(calls)


def _identities(calls: Sequence[ToolCall]) -> tuple[str, ...]:
    return tuple(canonical_json([call.name, dict(call.arguments)]) for call in calls)
