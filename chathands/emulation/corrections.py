"""What is said after a reply that cannot stand: by reason and state, firmer the second time."""

from __future__ import annotations

import difflib
from collections.abc import Sequence

from chathands.conversation import ToolSpec
from chathands.emulation.outcome import Language, Reason, Retry
from chathands.emulation.prompts import wording
from chathands.emulation.review import SOFT_EVIDENCE, UNASKED
from chathands.emulation.signature import one_line
from chathands.emulation.state import State

ONCE = frozenset(
    {Reason.UNGROUNDED, Reason.UNCONFIRMED, Reason.UNBACKED_CLAIM, Reason.UNBACKED_FIGURE}
)
"""Reasons that are asked about once; repeated, the turn decides without another question."""

_RESULT_STATES = (
    State.AFTER_RESULT,
    State.AFTER_ERROR,
    State.AFTER_DENIAL,
    State.AFTER_UNKNOWN,
)
_DETAIL_CAP = 300


def correction(
    retry: Retry,
    state: State,
    level: int,
    *,
    specs: Sequence[ToolSpec],
    language: Language,
    forced: str | None = None,
    block: str = "",
) -> str:
    """The text for the `level`-th correction (from 0) of a turn that began in `state`.

    `forced` is the tool the choice names; `block` the call that is to be confirmed.
    """
    words = wording(language)["correction"]
    kind = "after_result" if state in _RESULT_STATES else state.value
    effects = {spec.name for spec in specs if spec.side_effect in ("local", "outward")}
    if retry.reason is Reason.UNBACKED_FIGURE and retry.name in effects:
        kind = "in_call"
    if retry.detail in SOFT_EVIDENCE:
        kind = "soft"
    if retry.detail == UNASKED:
        kind = UNASKED
    texts = words.get(f"{retry.reason.value}_{kind}") or words[retry.reason.value]
    name = one_line(retry.name or "", 100)
    declared = any(spec.name == retry.name for spec in specs)
    return texts[min(level, len(texts) - 1)].format(
        name=name or "?",
        forced=forced or "",
        detail=_detail(retry, language),
        hint=words["hint"].format(name=name) if declared else "",
        nearest=_nearest(retry, specs, language),
        block=block,
    )


def _detail(retry: Retry, language: Language) -> str:
    text = one_line(retry.detail, _DETAIL_CAP).rstrip("。. ")
    if retry.reason in ONCE:
        return text
    return wording(language)["schema"]["colon"] + text if text else ""


def _nearest(retry: Retry, specs: Sequence[ToolSpec], language: Language) -> str:
    if retry.reason is not Reason.UNKNOWN_TOOL or not retry.name:
        return ""
    names = {spec.name.casefold(): spec.name for spec in specs}
    near = difflib.get_close_matches(retry.name.casefold(), names, n=1, cutoff=0.6)
    if not near:
        return ""
    return wording(language)["correction"]["nearest"].format(name=names[near[0]])
