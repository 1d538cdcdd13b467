"""Which calls of a turn should be confirmed before they run, and which may leave at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from chathands.conversation import SideEffect, ToolCall, ToolChoice, ToolSpec
from chathands.emulation.outcome import BrokenCall, Calls, Outcome, Reason, Retry


class Doubt:
    """Judges calls by their tool's side effect and by how surely they were read."""

    def __init__(
        self, specs: Sequence[ToolSpec], choice: ToolChoice, reviews: frozenset[Reason]
    ) -> None:
        self._effects: dict[str, SideEffect] = {spec.name: spec.side_effect for spec in specs}
        self._choice = choice
        self._reviews = reviews

    def effect_of(self, call: ToolCall) -> SideEffect:
        return self._effects.get(call.name, "unknown")

    def may_pass(self, call: ToolCall) -> bool:
        """Whether a streamed call may leave before its reply is whole."""
        choice = self._choice
        if choice.kind == "none" or (choice.kind == "named" and call.name != choice.name):
            return False
        if self._reviews & {Reason.UNGROUNDED, Reason.UNBACKED_FIGURE}:
            return False
        return not self._is_doubtful(call)

    def confirmed(self, outcome: Calls, *, some_left: bool) -> Outcome:
        """The calls without the doubtful ones; a Retry when that leaves none, unless `some_left`
        says that calls of this reply are out already."""
        doubtful = [call for call in outcome.calls if self._is_doubtful(call)]
        if not doubtful:
            return outcome
        sure = tuple(call for call in outcome.calls if call not in doubtful)
        if sure:
            broken = [BrokenCall(Reason.UNCONFIRMED, "", call.name) for call in doubtful]
            return replace(outcome, calls=sure, broken=(*outcome.broken, *broken))
        if some_left:
            return outcome
        return Retry(Reason.UNCONFIRMED, name=doubtful[0].name)

    def _is_doubtful(self, call: ToolCall) -> bool:
        effect = self.effect_of(call)
        if effect == "unknown":
            return call.confidence == "recovered"
        if effect == "local" and Reason.UNCONFIRMED in self._reviews:
            return call.confidence != "strict"
        return False
