"""One parsed reply judged: an answer, calls, or a retry with its reason. Pure, without a turn.

Turn adds what needs memory: corrections, confirmation, giving up.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from chathands.conversation import (
    Conversation,
    ToolCall,
    ToolChoice,
    ToolSpec,
    as_specs,
)
from chathands.emulation.bare_call import bare_call
from chathands.emulation.claims import (
    asks_for_explanation,
    evidence,
    has_failed,
    has_results,
    unasked,
    unbacked_claim,
    ungrounded,
)
from chathands.emulation.dialects.words import FORM_WANTED
from chathands.emulation.far_fetched import far_fetched
from chathands.emulation.figures import unbacked_figure, wrong_row
from chathands.emulation.given import messages_in
from chathands.emulation.marks import copies_dropped
from chathands.emulation.matching import (
    best_read_tool,
    effects_asked_for,
    fitting,
    texts_of,
)
from chathands.emulation.outcome import (
    Answer,
    Basis,
    BrokenCall,
    Calls,
    Outcome,
    ParsedReply,
    Reason,
    Retry,
)
from chathands.emulation.phrases import (
    asks_about_the_assistant,
    asks_for_words,
    asks_to_look,
    says_nothing,
    sentences_of,
    tells_how,
    without_nods,
)
from chathands.emulation.placeholders import placeholder_in
from chathands.emulation.prompts import load
from chathands.emulation.refusal import UNDONE, Stance, stance_of
from chathands.emulation.state import (
    declared_tools,
    question_of,
    settled_tools,
)

OPTIONAL_REVIEWS = frozenset(
    {
        *(Reason.UNGROUNDED, Reason.UNCONFIRMED, Reason.FAR_FETCHED, Reason.INCOMPLETE),
        *(Reason.UNBACKED_CLAIM, Reason.UNBACKED_FIGURE),
    }
)
"""Reviews that a caller may leave out."""


def review_reply(
    parsed: ParsedReply,
    tools: Sequence[ToolSpec | Mapping[str, Any]] | None,
    choice: str | ToolChoice = "auto",
    conversation: Conversation | None = None,
    *,
    reviews: frozenset[Reason] = OPTIONAL_REVIEWS,
) -> Outcome:
    """Answer, Calls or Retry; never GiveUp, which takes a history of corrections.

    Claims, figures, grounding and whether a missed call had a tool to call are judged only with a
    conversation. `reviews` says which of the optional ones are on. Raises ValueError for a tool
    without a name, TypeError for messages as dicts.
    """
    if conversation is not None:
        conversation = messages_in(conversation)
        specs = declared_tools(conversation, tools)
    else:
        specs = as_specs(tools or ())
    return _Review(parsed, specs, ToolChoice.of(choice), conversation, reviews).outcome()


def stance_in(text: str, specs: Sequence[ToolSpec], conversation: Conversation | None) -> Stance:
    """The stance of a reply's text, in the light of what went before."""
    after = conversation is not None and has_results(conversation)
    return stance_of(text, tools=specs, after_result=after)


def unfilled(
    call: ToolCall, specs: Sequence[ToolSpec], conversation: Conversation | None
) -> str | None:
    """The first argument of a call that holds a placeholder; None when all are filled in."""
    spec = next((spec for spec in specs if spec.name == call.name), None)
    form = conversation is not None and wants_a_form(question_of(conversation))
    return placeholder_in(call, spec, conversation, gaps=not form) if spec else None


def wants_a_form(question: str) -> bool:
    """Whether a question may want a piece of JSON or an example of a call as its answer."""
    return FORM_WANTED.search(question) is not None


class _Review:
    def __init__(
        self,
        parsed: ParsedReply,
        specs: tuple[ToolSpec, ...],
        choice: ToolChoice,
        conversation: Conversation | None,
        reviews: frozenset[Reason],
    ) -> None:
        self._parsed = parsed
        self._specs = specs
        self._by_name = {spec.name: spec for spec in specs}
        self._choice = choice
        self._conversation = conversation
        self._reviews = reviews if conversation is not None else frozenset()
        self._text = parsed.text.strip()
        self._soft = False
        """Whether soft evidence of a missed call counts: the text pleads and promises nothing."""

    def outcome(self) -> Outcome:
        parsed, choice = self._parsed, self._choice
        if choice.kind == "none":
            return self._without_tools()
        faults = [self._fault(call) for call in parsed.calls]
        broken = [*parsed.broken, *(fault for fault in faults if fault is not None)]
        good = [call for call, fault in zip(parsed.calls, faults, strict=True) if fault is None]
        if good and not broken and (retry := self._far_fetched(good)) is not None:
            return retry
        if good:
            return Calls(parsed.text, tuple(good), tuple(broken))
        if broken:
            shown = self._as_shown(broken) if choice.kind == "auto" else None
            return shown or self._retry_for(broken)
        if self._specs and (retry := self._of_text()) is not None:
            return retry
        if not self._text:
            return Retry(Reason.EMPTY)
        if (retry := self._backed()) is not None:
            return retry
        if self._soft and (soft := self._left_undone()) is not None:
            return Retry(Reason.MISSED_CALL, soft, self._hint(), Basis.SOFT)
        return Answer(parsed.text)

    def _without_tools(self) -> Outcome:
        """Tools are withdrawn: calls do not count, text is the answer."""
        if not self._text:
            wasted = [*self._parsed.calls, *self._parsed.broken]
            if wasted:
                return Retry(Reason.WRONG_TOOL, name=wasted[0].name)
            return Retry(Reason.EMPTY)
        stance = stance_in(self._text, self._specs, self._conversation)
        # Pointing the person elsewhere is a fair answer now; promising to act is not.
        if stance.kind == "missed_call":
            return Retry(Reason.MISSED_CALL, detail=", ".join(stance.evidence))
        return self._backed() or Answer(self._parsed.text)

    def _fault(self, call: ToolCall) -> BrokenCall | None:
        """Why a declared call that fits may still not run."""
        choice = self._choice
        if choice.kind == "named" and call.name != choice.name:
            return BrokenCall(Reason.WRONG_TOOL, "", call.name)
        if Reason.UNGROUNDED in self._reviews and self._conversation is not None:
            spec = self._by_name.get(call.name)
            if (
                field := ungrounded(call, spec, evidence(self._conversation, self._specs))
            ) is not None:
                return BrokenCall(Reason.UNGROUNDED, "", call.name, field)
        if (
            Reason.UNCONFIRMED in self._reviews
            and self._conversation is not None
            and unasked(call, self._specs, self._conversation)
        ):
            return BrokenCall(Reason.UNCONFIRMED, "", call.name, basis=Basis.UNASKED)
        if (copied := copies_dropped(call)) is not None:
            return BrokenCall(Reason.INVALID_ARGUMENTS, "", call.name, copied)
        if (gap := unfilled(call, self._specs, self._conversation)) is not None:
            reason, basis = Reason.INVALID_ARGUMENTS, Basis.PLACEHOLDER
            return BrokenCall(reason, "", call.name, gap, basis=basis)
        return self._invented_in(call)

    def _far_fetched(self, calls: Sequence[ToolCall]) -> Retry | None:
        """One that makes sense speaks for those beside it."""
        conversation = self._conversation
        if Reason.FAR_FETCHED not in self._reviews or conversation is None:
            return None
        if self._choice.kind != "auto" or has_results(conversation):
            return None
        known = evidence(conversation, self._specs)
        invented = [far_fetched(call, self._specs, known) for call in calls]
        if None in invented:
            return None
        return Retry(Reason.FAR_FETCHED, invented[0] or "", calls[0].name)

    def _invented_in(self, call: ToolCall) -> BrokenCall | None:
        """A call that would pass on a figure although the results at hand say otherwise."""
        conversation, spec = self._conversation, self._by_name.get(call.name)
        if Reason.UNBACKED_FIGURE not in self._reviews or conversation is None:
            return None
        if spec is None or spec.side_effect not in ("local", "outward"):
            return None
        if not has_results(conversation):
            return None
        passed_on = texts_of(call.arguments)
        basis = Basis.IN_CALL
        figure = unbacked_figure(passed_on, self._specs, conversation)
        if figure is None:
            basis = Basis.WRONG_ROW
            figure = wrong_row(passed_on, self._specs, conversation)
        if figure is None:
            return None
        return BrokenCall(Reason.UNBACKED_FIGURE, "", call.name, figure, basis=basis)

    def _as_shown(self, broken: Sequence[BrokenCall]) -> Answer | None:
        """Calls of tools that nobody declared, where the question wanted to see such a thing."""
        if self._conversation is None or not wants_a_form(question_of(self._conversation)):
            return None
        if any(one.reason is not Reason.UNKNOWN_TOOL or one.in_contract for one in broken):
            return None
        if any(one.raw.lstrip().startswith("<") for one in broken):
            return None  # a model's own tokens
        return Answer("\n".join([*filter(None, [self._text]), *(one.raw for one in broken)]))

    def _retry_for(self, broken: Sequence[BrokenCall]) -> Outcome:
        """One reason for a reply whose calls all failed; what can be mended most easily first."""
        order = (
            *(Reason.UNGROUNDED, Reason.UNBACKED_FIGURE, Reason.INVALID_ARGUMENTS),
            *(Reason.TRUNCATED, Reason.BROKEN_CALL, Reason.WRONG_TOOL, Reason.UNKNOWN_TOOL),
        )
        first = min(
            broken, key=lambda b: order.index(b.reason) if b.reason in order else len(order)
        )
        invented = first.name is not None and first.name not in self._by_name
        if invented and first.reason in (Reason.TRUNCATED, Reason.BROKEN_CALL):
            # Asking for the rest of a call to nothing would only bring more of it.
            return Retry(Reason.UNKNOWN_TOOL, first.detail, first.name)
        if not self._text and (prose := self._prose_in_fence(broken)) is not None:
            return self._of(prose)
        return Retry(first.reason, first.detail, first.name, first.basis)

    def _prose_in_fence(self, broken: Sequence[BrokenCall]) -> str | None:
        """The final answer that a small model wrote into an action fence, once results are in."""
        if self._conversation is None or not has_results(self._conversation) or len(broken) > 1:
            return None
        body = re.sub(r"\A[^\n]*\n|\n?[`~]{3,}\s*\Z", "", broken[0].raw).strip()
        named = broken[0].name or any(name in body for name in self._by_name)
        if broken[0].reason is not Reason.BROKEN_CALL or named or re.search(r"[{}`]", body):
            return None
        return body or None

    def _of(self, text: str) -> Outcome:
        """The outcome of a reply that is this text and nothing else."""
        plain = replace(self._parsed, text=text, broken=())
        args = (self._specs, self._choice, self._conversation, self._reviews)
        return _Review(plain, *args).outcome()

    def _of_text(self) -> Retry | None:
        """What is wrong with a reply of text alone while tools are there."""
        choice = self._choice
        forced = choice.kind in ("required", "named")
        if self._text:
            if not self._parsed.no_tool and (named := self._called_bare()) is not None:
                return Retry(Reason.BROKEN_CALL, name=named)
            stance = stance_in(self._text, self._specs, self._conversation)
            if stance.kind == "safety_refusal":
                return None
            if self._is_wording(stance):
                return self._forced() if forced else None
            if stance.kind == "refusal":
                # Where no tool does what was asked for, the plea may be the plain truth.
                firm = forced or stance.blanket or self._had_a_tool()
                return self._pleaded(Reason.REFUSAL, stance, firm=firm)
            if stance.kind in UNDONE and (forced or self._may_be_missed(stance)):
                # A bare promise is no answer, whether or not a tool could keep it.
                return self._pleaded(Reason.MISSED_CALL, stance, firm=forced or self._had_a_tool())
            self._soft = stance.kind == "normal" and not self._parsed.no_tool
        return self._forced() if forced else None

    def _called_bare(self) -> str | None:
        if self._conversation is not None and wants_a_form(question_of(self._conversation)):
            return None
        return bare_call(self._text, self._specs)

    def _forced(self) -> Retry:
        return Retry(Reason.MISSED_CALL, "forced", self._choice.name)

    def _is_wording(self, stance: Stance) -> bool:
        """Whether a reply that seems to plead or promise is the wording that was asked for."""
        if self._conversation is None or stance.blanket or stance.kind == "normal":
            return False
        question = question_of(self._conversation)
        asked = re.sub(load("stance")["remove"]["quoted"], "", question)
        return asks_for_words(question) and not fitting(asked, self._specs)

    def _hint(self) -> str | None:
        if self._choice.kind == "named":
            return self._choice.name
        if self._conversation is None:
            return None
        found = fitting(question_of(self._conversation), self._specs)
        return found[0].name if found else None

    def _pleaded(self, reason: Reason, stance: Stance, *, firm: bool) -> Retry:
        basis = Basis.PLAIN if firm else Basis.SOFT
        return Retry(reason, ", ".join(stance.evidence), self._hint(), basis)

    def _had_a_tool(self) -> bool:
        """Whether a declared tool plausibly fits; without a conversation nothing speaks against."""
        if self._conversation is None:
            return True
        question = question_of(self._conversation)
        return bool(fitting(f"{question}\n{self._text}", self._specs))

    def _may_be_missed(self, stance: Stance) -> bool:
        """Whether a promise or a handing over counts, in the light of the question."""
        if self._conversation is None:
            return True
        question = question_of(self._conversation)
        if asks_about_the_assistant(question):
            return False
        return stance.kind != "delegates" or not asks_for_explanation(question)

    def _left_undone(self) -> str | None:
        """Why a normal-looking reply has not done what was asked: soft evidence, by name."""
        conversation = self._conversation
        if conversation is None:
            return None
        question = question_of(conversation)
        if asks_for_explanation(question) or asks_about_the_assistant(question):
            return None
        if not fitting(question, self._specs):
            return None
        before_results = not has_results(conversation)
        rest = _letters(without_nods(self._text))
        repeats = len(rest) > 3 and rest in _letters(question)
        if before_results and (repeats or says_nothing(self._text)):
            return "idle"
        if before_results and tells_how(self._text):
            return "lesson"
        if before_results and self._unlooked(question):
            return "unlooked"
        asked = effects_asked_for(question, self._specs)
        settled = settled_tools(conversation, self._specs)
        if asked and settled.isdisjoint(asked) and not has_failed(conversation):
            return "effect_missing"
        return None

    def _unlooked(self, question: str) -> bool:
        """Whether what changes from day to day, or stands in a file, is told without a look."""
        if self._conversation is None or any(m.result for m in self._conversation):
            return False
        if asks_for_words(question) or not asks_to_look(question):
            return False
        reader = best_read_tool(question, self._specs)
        return reader is not None and not any(asked for _, asked in sentences_of(self._text))

    def _backed(self) -> Retry | None:
        """Claims and figures of an answer, judged against what happened."""
        conversation = self._conversation
        if conversation is None:
            return None
        if Reason.UNBACKED_CLAIM in self._reviews:
            claim = unbacked_claim(self._text, self._specs, conversation)
            if claim is not None:
                return Retry(Reason.UNBACKED_CLAIM, claim)
        if Reason.UNBACKED_FIGURE in self._reviews and self._specs:
            figure = unbacked_figure(self._text, self._specs, conversation)
            if figure is not None:
                reader = best_read_tool(question_of(conversation), self._specs)
                return Retry(Reason.UNBACKED_FIGURE, figure, reader.name if reader else None)
            figure = wrong_row(self._text, self._specs, conversation)
            if figure is not None:
                return Retry(Reason.UNBACKED_FIGURE, figure, basis=Basis.WRONG_ROW)
        return None


def _letters(text: str) -> str:
    return "".join(char for char in text.casefold() if char.isalnum())
