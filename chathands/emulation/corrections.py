"""What is said after a reply that cannot stand, how firmly, and how often.

(state, reason) leads to a rule in `TABLE`: an entry of the wording files, whose texts grow firmer,
and how often it may be said in one turn. What the retry rests on (`basis`) can override it.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from chathands.conversation import ToolSpec
from chathands.emulation.outcome import Basis, Language, Mode, Reason, Retry
from chathands.emulation.prompts import wording
from chathands.emulation.signature import one_line
from chathands.emulation.state import State


@dataclass(frozen=True, slots=True)
class Rule:
    """`wording` names the texts, one per level of firmness; `limit` is how often the reason may be
    corrected in one turn, below the turn's own maximum. Where it is 1, the turn decides without
    another question when the reason comes again."""

    wording: str
    limit: int


MAX_REQUESTS_FOR_MORE = 4
"""Times that calls which are still missing are asked for. Each must have brought some of them, so
that this is the longest enumeration a model that writes one call at a time gets through."""

_FIRST = (State.FIRST_DECISION, State.AFTER_CORRECTION)
_FORCED = (State.FORCED,)
_RESULT = (State.AFTER_RESULT, State.AFTER_ERROR, State.AFTER_DENIAL, State.AFTER_UNKNOWN)
_OVER = (State.WITHDRAWN,)
_OPEN = (*_FIRST, *_FORCED, *_RESULT)
"""States in which tools may be called."""

_ROWS: tuple[tuple[Reason, tuple[State, ...], Rule], ...] = (
    (Reason.REFUSAL, _FIRST, Rule("refusal", 2)),
    (Reason.REFUSAL, _FORCED, Rule("refusal_forced", 2)),
    (Reason.REFUSAL, _RESULT, Rule("refusal_after_result", 2)),
    (Reason.MISSED_CALL, (*_FIRST, *_FORCED), Rule("missed_call", 2)),
    (Reason.MISSED_CALL, _RESULT, Rule("missed_call_after_result", 2)),
    (Reason.MISSED_CALL, _OVER, Rule("missed_call_withdrawn", 2)),
    (Reason.BROKEN_CALL, (*_FIRST, *_RESULT), Rule("broken_call", 2)),
    (Reason.BROKEN_CALL, _FORCED, Rule("broken_call_forced", 2)),
    (Reason.BROKEN_CALL, _OVER, Rule("broken_call_withdrawn", 2)),
    (Reason.UNKNOWN_TOOL, (*_FIRST, *_RESULT), Rule("unknown_tool", 2)),
    (Reason.UNKNOWN_TOOL, _FORCED, Rule("unknown_tool_forced", 2)),
    (Reason.WRONG_TOOL, _OPEN, Rule("wrong_tool", 2)),
    (Reason.WRONG_TOOL, _OVER, Rule("wrong_tool_withdrawn", 2)),
    (Reason.INVALID_ARGUMENTS, _OPEN, Rule("invalid_arguments", 2)),
    (Reason.TRUNCATED, _OPEN, Rule("truncated", 2)),
    (Reason.EMPTY, _FIRST, Rule("empty", 2)),
    (Reason.EMPTY, _FORCED, Rule("missed_call", 2)),
    (Reason.EMPTY, _RESULT, Rule("empty_after_result", 2)),
    (Reason.EMPTY, _OVER, Rule("empty_withdrawn", 2)),
    (Reason.UNGROUNDED, _OPEN, Rule("ungrounded", 1)),
    (Reason.UNCONFIRMED, _OPEN, Rule("unconfirmed", 1)),
    (Reason.FAR_FETCHED, _FIRST, Rule("far_fetched", 1)),
    (Reason.INCOMPLETE, (*_FIRST, *_FORCED), Rule("incomplete", MAX_REQUESTS_FOR_MORE)),
    (Reason.UNBACKED_CLAIM, (*_FIRST, *_FORCED), Rule("unbacked_claim", 1)),
    (Reason.UNBACKED_CLAIM, _RESULT, Rule("unbacked_claim_after_result", 1)),
    (Reason.UNBACKED_CLAIM, _OVER, Rule("unbacked_claim_withdrawn", 1)),
    (Reason.UNBACKED_FIGURE, (*_FIRST, *_FORCED), Rule("unbacked_figure", 1)),
    (Reason.UNBACKED_FIGURE, _RESULT, Rule("unbacked_figure_after_result", 1)),
    (Reason.UNBACKED_FIGURE, _OVER, Rule("unbacked_figure_withdrawn", 1)),
)

TABLE: Mapping[tuple[State, Reason], Rule] = {
    (state, reason): rule for reason, states, rule in _ROWS for state in states
}
"""Every state and reason that can meet. With tools withdrawn no call is judged, so what only a call
can be wrong about does not occur there, and neither does a refusal, which is then an answer."""

BY_BASIS: Mapping[tuple[Reason, Basis], Rule] = {
    (Reason.REFUSAL, Basis.SOFT): Rule("refusal_soft", 1),
    (Reason.MISSED_CALL, Basis.SOFT): Rule("missed_call_soft", 1),
    (Reason.UNCONFIRMED, Basis.UNASKED): Rule("unconfirmed_unasked", 1),
    (Reason.INCOMPLETE, Basis.IN_LIST): Rule("incomplete_list", 1),
    (Reason.UNBACKED_FIGURE, Basis.IN_CALL): Rule("unbacked_figure_in_call", 1),
    (Reason.INVALID_ARGUMENTS, Basis.PLACEHOLDER): Rule("invalid_arguments_placeholder", 2),
    (Reason.UNBACKED_FIGURE, Basis.WRONG_ROW): Rule("unbacked_figure_wrong_row", 1),
}
"""What a retry rests on says more than the state it came up in."""

_DETAIL_CAP = 300


def rule_for(retry: Retry, state: State) -> Rule:
    """The rule for a retry in a turn that began in `state`.

    A pair that cannot meet gets what is said at the first decision.
    """
    by_basis = BY_BASIS.get((retry.reason, retry.basis))
    by_state = TABLE.get((state, retry.reason))
    return by_basis or by_state or TABLE[State.FIRST_DECISION, retry.reason]


def correction(
    retry: Retry,
    state: State,
    level: int,
    *,
    specs: Sequence[ToolSpec],
    language: Language,
    forced: str | None = None,
    meant: ToolSpec | None = None,
    block: str = "",
    mode: Mode = "emulated",
) -> str:
    """The text for the `level`-th correction (from 0) of this reason in a turn begun in `state`.

    A firmer text speaks of the one before ("still", "again"): other reasons do not count.

    `forced` is the tool the choice names, `meant` the one that the question plainly speaks of;
    `block` the call that is to be confirmed.
    """
    said = wording(language, mode)
    words = said["correction"]
    texts = words[rule_for(retry, state).wording]
    if retry.reason is Reason.UNKNOWN_TOOL and meant is not None and state in _FIRST:
        texts = words["unknown_tool_forced"]  # one of them plainly serves: no way out is offered
    name = one_line(retry.name or "", 100)
    detail = one_line(retry.detail, _DETAIL_CAP).rstrip("。. ")
    declared = any(spec.name == retry.name for spec in specs)
    text = texts[min(level, len(texts) - 1)].format(
        name=name or "?",
        forced=forced or "",
        detail=detail,
        why=wording(language)["schema"]["colon"] + detail if detail else "",
        hint=words["hint"].format(name=name) if declared else "",
        nearest=_nearest(retry, specs, meant, language),
        block=block,
    )
    return f"{text}\n{said['reminder']}" if "reminder" in said else text


def _nearest(
    retry: Retry, specs: Sequence[ToolSpec], meant: ToolSpec | None, language: Language
) -> str:
    if retry.reason is not Reason.UNKNOWN_TOOL or not retry.name:
        return ""
    names = {spec.name.casefold(): spec.name for spec in specs}
    near = difflib.get_close_matches(retry.name.casefold(), names, n=1, cutoff=0.6)
    name = names[near[0]] if near else meant.name if meant is not None else None
    if name is None:
        return ""
    return wording(language)["correction"]["nearest"].format(name=one_line(name, 100))
