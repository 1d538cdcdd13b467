"""One model decision with its retries, as a state machine without I/O.

turn = Turn(conversation, tools)
while True:
    for piece in ...stream(turn.request())...:
        events = turn.feed(piece)
    outcome = turn.finish(finish_reason)
    if not isinstance(outcome, Retry):
        break
conversation += turn.transcript
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Literal

from chathands.conversation import (
    Conversation,
    Message,
    Tag,
    ToolCall,
    ToolChoice,
    ToolSpec,
)
from chathands.emulation.asking import Asking
from chathands.emulation.claims import has_results
from chathands.emulation.contract import FIND_TOOLS
from chathands.emulation.corrections import correction
from chathands.emulation.coverage import completeness_of
from chathands.emulation.decision_log import Decision, judged
from chathands.emulation.doubt import Doubt
from chathands.emulation.forms import Entries, Setting, form_of
from chathands.emulation.gate import Gate
from chathands.emulation.given import known_language, messages_in
from chathands.emulation.history import derived_fence
from chathands.emulation.marks import clean_call, without_marks, without_wrapping
from chathands.emulation.offer import Offer
from chathands.emulation.outcome import (
    Answer,
    Basis,
    Begins,
    CallReady,
    Calls,
    ChatMessage,
    Commit,
    Enforcement,
    Event,
    GiveUp,
    Language,
    Mode,
    ModelRequest,
    Outcome,
    ParsedReply,
    Piece,
    Reason,
    Retracted,
    Retry,
    ThinkingStyle,
)
from chathands.emulation.related import spoken_of
from chathands.emulation.reminders import reminder_for
from chathands.emulation.review import OPTIONAL_REVIEWS, review_reply, unfilled, wants_a_form
from chathands.emulation.state import (
    State,
    calls_of,
    declared_tools,
    effective_choice,
    has_tool_history,
    is_notice,
    notice,
    question_of,
    siblings_notice,
    state_of,
)
from chathands.limits import MAX_CORRECTIONS

_FREE = ("auto", "required")
"""Choices under which a reply may look for tools."""


class Turn:
    """See the module's docstring.

    `tools=None` declares the tools of the history; `[]` declares none. `choice` is relaxed to auto
    once its call has a result in this run. `withdraw` tells the model that tools are over.
    `contract_budget` is how many estimated tokens the contract may take; of a toolbox that needs
    more it lists what fits the question best, and the model can look for the rest; a small one goes
    to tools before worked examples, and never goes below rules, form and one tool. `reviews` are
    the optional reviews that are on; by default all but `ungrounded` under commit
    `finish`, none under `stream`. With `far_fetched`, a question beside the tools is said to be so
    as well. `max_corrections` does not count requests for calls that are missing (`incomplete`),
    but with 0 there are none. `fence` is the run's random token around results.

    `mode` is how tools are offered; `enforcement` what `structured` asks of the upstream. Where
    the upstream refuses a request for that, begin another turn with less on the same messages:
    everything but the requests' form is the same. `thinking` is how the upstream thinks in its
    text. Raises ValueError for another language than zh and en, a tool without a name, and a named
    tool that is not declared; TypeError for messages as dicts.
    """

    def __init__(
        self,
        conversation: Conversation,
        tools: Sequence[ToolSpec | Mapping[str, Any]] | None,
        *,
        choice: str | ToolChoice = "auto",
        mode: Mode = "emulated",
        enforcement: Enforcement = "json_schema",
        language: Language = "zh",
        commit: Commit = "finish",
        persona: str | None = None,
        thinking: ThinkingStyle = "none",
        reviews: frozenset[Reason] | None = None,
        max_corrections: int = MAX_CORRECTIONS,
        fence: str | None = None,
        withdraw: Literal["last_round", "deadline"] | None = None,
        contract_budget: int | None = None,
    ) -> None:
        self._given = messages_in(conversation)
        self._specs = declared_tools(self._given, tools)
        self._language: Language = known_language(language)
        self._streams = commit == "stream"
        if reviews is None:
            reviews = frozenset() if self._streams else OPTIONAL_REVIEWS - {Reason.UNGROUNDED}
        self._reviews = reviews
        self._fence = fence or derived_fence(self._given)
        self._choice = (
            ToolChoice("none")
            if withdraw
            else effective_choice(ToolChoice.of(choice), self._given, self._specs)
        )
        self._offer = Offer(self._specs, self._given, contract_budget, language, mode)
        self._form = form_of(
            mode,
            Setting(
                self._specs,
                self._offer,
                self._choice,
                language,
                persona,
                self._fence,
                thinking,
                enforcement,
                shows_forms=wants_a_form(question_of(self._given)),
            ),
        )
        self._mode: Mode = self._form.writer.mode
        self._doubt = Doubt(self._specs, self._choice, reviews)
        self._transcript: list[Message] = []
        self._log: list[Decision] = []
        self._unlogged: list[Callable[[], Decision]] = []
        self._messages: tuple[ChatMessage, ...] = ()
        self._say_choice(withdraw)
        self._state = state_of(self._so_far)
        self._completeness = completeness_of(self._given, self._specs, self._choice, reviews)
        self._asking = Asking(self._state, self._choice, self._spoken_of, max_corrections)
        self._ended = False
        self._tail: list[Event] = []
        self._gate = Gate(
            hold_text=self._choice.kind in ("required", "named"),
            after_result=has_results(self._given),
            may_pass=self._may_pass,
            clean=lambda text: without_marks(text, self._fence),
        )
        self._begin_reply()

    # --- what the caller reads

    @property
    def transcript(self) -> tuple[Message, ...]:
        """What this turn adds to the conversation, in order: our notices, lookups of tools with
        what they found, rejected replies with their corrections, the accepted reply, and behind it
        notices: what its lookups found, and one that answers broken siblings of its calls."""
        return tuple(self._transcript)

    @property
    def tail(self) -> tuple[Event, ...]:
        """Under commit `stream`: what left with the last `finish()`, whatever its outcome."""
        return tuple(self._tail)

    @property
    def sent(self) -> str:
        """Under commit `stream`: the text that has left, `tail` included."""
        return self._gate.text

    @property
    def streams(self) -> bool:
        """Whether the commit rule is `stream`."""
        return self._streams

    @property
    def log(self) -> list[Decision]:
        """One JSON-safe event per decision, for traces; worked out when it is read."""
        self._log += [made() for made in self._unlogged]
        self._unlogged.clear()
        return self._log

    @property
    def state(self) -> State:
        """Where the conversation stood when this turn began."""
        return self._state

    def request(self) -> ModelRequest:
        """The next request. It starts with the whole of the previous one."""
        request = self._form.request(self._so_far)
        self._messages = request.messages
        return request

    def feed(self, piece: Piece) -> list[Event]:
        """Take a piece of the reply; what may leave now comes back (nothing under `finish`)."""
        return self._pass_on(self._reading.feed(piece))

    def finish(self, finish_reason: str | None = None, *, may_retry: bool = True) -> Outcome:
        """The reply is whole. After a Retry, send `request()` again and feed the next reply.

        With `may_retry=False` there is no next reply: what would be a Retry ends the turn.
        """
        if self._ended:
            raise RuntimeError("this turn has ended")
        self._tail = []
        entries, parsed = self._reading.end(finish_reason)
        self._tail += self._pass_on(entries)
        if self._reading.retracted and not self._gate.reply_opened:
            self._gate.hold_instead(parsed.text)
        parsed = read = self._cleaned(parsed)
        asked_with = self._so_far, self._offer.shown, self._choice, self._messages
        lookups = self._offer.lookups_in(read.calls) if self._choice.kind in _FREE else ()
        if lookups:
            parsed = replace(read, calls=tuple(call for call in read.calls if call not in lookups))
        if lookups and not parsed.calls and not self._gate.calls:
            outcome = self._looked_up(parsed, lookups, may_retry=may_retry)
        else:
            outcome = review_reply(
                parsed, self._specs, self._choice, self._so_far, reviews=self._reviews
            )
        if isinstance(outcome, Calls):
            outcome = self._doubt.confirmed(outcome, some_left=bool(self._gate.calls))
        if self._completeness is not None and not (self._gate.calls or self._gate.text):
            outcome = self._completeness.judged(outcome)
        outcome = self._asking.accepted(outcome, parsed.text)
        if outcome.reason is not Reason.SELECTION:
            if self._streams:
                outcome = self._gate.committed(outcome, parsed)
            if isinstance(outcome, Retry):
                outcome = self._retry_or_end(outcome, parsed, may_retry=may_retry)
        self._unlogged.append(
            partial(
                judged,
                outcome,
                read,
                asked_with,
                (parsed.text, self._specs, self._given),
                characters=len(self._reading.raw),
                held=self._gate.most_held,
                correction=self._asking.corrections,
                firmness=self._asking.times(outcome.reason) if isinstance(outcome, Retry) else 0,
                corrections_left=self._asking.left,
            )
        )
        if isinstance(outcome, Retry):
            self._begin_reply(goes_on=outcome.reason is Reason.SELECTION)
            return outcome
        self._ended = True
        return self._accept(outcome, lookups) if isinstance(outcome, Answer | Calls) else outcome

    # --- beginning

    @property
    def _so_far(self) -> tuple[Message, ...]:
        return (*self._given, *self._transcript)

    def _say_choice(self, withdraw: str | None) -> None:
        kind = withdraw or self._choice.kind
        if kind == "auto":
            # Being beside the tools is the same judgement, before the call instead of after it.
            beside = Reason.FAR_FETCHED in self._reviews
            kind = reminder_for(self._given, self._specs, beside=beside)
        if kind is None or not (self._specs or has_tool_history(self._given)):
            return
        if self._given and is_notice(self._given[-1], kind):
            return
        said = notice(self._language, kind, self._mode, name=self._choice.name)
        self._transcript.append(self._offer.with_listing(said, self._choice.name))

    def _begin_reply(self, *, goes_on: bool = False) -> None:
        earlier = calls_of(self._given)
        self._reading = self._form.reading(
            position=len(earlier), taken={call.id for call in earlier}
        )
        self._plan = ""
        self._gate.next_reply(goes_on=goes_on)

    # --- reading

    def _pass_on(self, entries: Entries) -> list[Event]:
        if not self._streams:
            return []
        out: list[Event] = []
        for entry in entries:
            if isinstance(entry, CallReady):
                entry = CallReady(clean_call(entry.call, self._fence))
            if isinstance(entry, Begins):
                out += self._gate.begin(sure=entry.sure)
            elif isinstance(entry, Retracted):
                # What was held was thinking; what is said shows when the reply is whole.
                self._gate.hold_reply()
            else:
                out += self._gate.put(entry)
        return out

    def _cleaned(self, parsed: ParsedReply) -> ParsedReply:
        self._plan = without_marks(self._reading.plan or parsed.plan, self._fence)
        calls = tuple(clean_call(call, self._fence) for call in parsed.calls)
        text = without_wrapping(without_marks(parsed.text, self._fence).strip())
        return replace(parsed, text=text, calls=calls)

    # --- judging

    def _spoken_of(self) -> ToolSpec | None:
        return spoken_of(question_of(self._given), self._specs)

    def _may_pass(self, call: ToolCall) -> bool:
        if not self._doubt.may_pass(call) or self._offer.lookups_in([call]):
            return False
        return unfilled(call, self._specs, self._given) is None

    def _looked_up(
        self, parsed: ParsedReply, lookups: Sequence[ToolCall], *, may_retry: bool
    ) -> Retry:
        """A reply that only looks for tools: answered, as often as that helps."""
        if not (may_retry and self._offer.may_look_up):
            return Retry(Reason.UNKNOWN_TOOL, name=FIND_TOOLS)
        self._transcript += self._offer.exchange(parsed.text, lookups)
        return Retry(Reason.SELECTION, self._offer.query_of(lookups), FIND_TOOLS)

    def _retry_or_end(self, retry: Retry, parsed: ParsedReply, *, may_retry: bool) -> Outcome:
        raw = self._reading.raw.strip()
        again = self._asking.repeats(raw, parsed.calls)
        if not may_retry or again or not self._asking.may_ask(retry):
            return self._end(retry, raw, parsed, again=again)
        text = correction(
            retry,
            self._asking.speaks_to,
            self._asking.times(retry.reason),
            specs=self._specs,
            language=self._language,
            forced=self._choice.name,
            meant=self._asking.meant,
            block=self._form.writer.calls([(call.name, call.arguments) for call in parsed.calls]),
            mode=self._mode,
        )
        said = Message.user(text, tag=Tag.CORRECTION)
        self._transcript.append(Message.assistant(raw, tag=Tag.REJECTED))
        self._transcript.append(self._offer.with_listing(said, retry.name))
        self._asking.asked(retry, raw, parsed.calls)
        return retry

    def _end(self, retry: Retry, raw: str, parsed: ParsedReply, *, again: bool) -> Outcome:
        """No further question: the reply stands where that is harmless, else the turn gives up."""
        reason = retry.reason
        if self._completeness is not None and self._completeness.gathered is not None:
            return self._completeness.gathered
        if reason in (Reason.UNGROUNDED, Reason.FAR_FETCHED):
            return Calls(parsed.text, parsed.calls, parsed.broken)
        if reason is Reason.UNCONFIRMED:
            effects = {self._doubt.effect_of(call) for call in parsed.calls}
            if again or "local" not in effects:
                return Calls(parsed.text, parsed.calls, parsed.broken)
        forced = self._choice.kind in ("required", "named")
        if retry.basis is Basis.SOFT and not forced:
            return Answer(parsed.text)
        if reason in (Reason.UNKNOWN_TOOL, Reason.BROKEN_CALL) and parsed.text and not forced:
            plain = replace(parsed, broken=(), calls=())
            stands = review_reply(
                plain, self._specs, self._choice, self._so_far, reviews=self._reviews
            )
            if isinstance(stands, Answer):
                return stands
        self._transcript.append(Message.assistant(raw, tag=Tag.REJECTED))
        return GiveUp(reason, self._gate.text or parsed.text, retry.detail)

    def _accept(self, outcome: Answer | Calls, lookups: Sequence[ToolCall]) -> Answer | Calls:
        calls = outcome.calls if isinstance(outcome, Calls) else ()
        text = outcome.text
        if self._streams:
            self._tail += self._gate.rest(calls)
            # What left is what was said; the rejected reply already holds text from before.
            outcome = replace(outcome, text=self._gate.text)
            text = "" if self._gate.muted and calls else self._gate.text
        self._transcript.append(Message.assistant(text or (self._plan if calls else ""), calls))
        self._transcript += self._offer.beside(calls, lookups)
        if isinstance(outcome, Calls) and outcome.broken:
            told = [(b.name or "?", b.detail or b.reason.value) for b in outcome.broken]
            self._transcript.append(siblings_notice(self._language, told, self._mode))
        return outcome
