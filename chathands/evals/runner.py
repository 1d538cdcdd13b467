"""Runs one case: decisions and stand-in results until there is an answer."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

from chathands.conversation import Message, Status, ToolCall, ToolResult
from chathands.emulation import Answer, Calls, GiveUp, Outcome, Reason, Retry
from chathands.emulation.outcome import NativeCall, Verbatim
from chathands.evals.case import Case, StandIn, fits
from chathands.evals.judge import Verdict, judge
from chathands.evals.variants import Decider, Variant, variant
from chathands.upstreams.base import Upstream

MAX_ROUNDS = 5
"""The same as a run in the group."""

_OF_READ_CALLS = (
    *(Reason.INCOMPLETE, Reason.FAR_FETCHED),
    *(Reason.UNCONFIRMED, Reason.UNGROUNDED),
)
_READABLE = ("calls", *(f"retry:{reason}" for reason in _OF_READ_CALLS))
"""Outcomes of a reply whose call was read and fits its tool. Layer zero is about the form: what the
call was asked about for is what it says, not how it is written."""


@dataclass(slots=True)
class Exchange:
    """One request and what came of it."""

    reply: str
    outcome: str
    """`answer`, `calls`, `give_up`, or `retry:<reason>`."""
    after_result: bool
    finish_reason: str | None = None
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cached_tokens: int = 0


@dataclass(slots=True)
class CaseResult:
    """What came of one case."""

    case: Case
    variant: str = "emulated"
    repeat: int = 0
    calls: list[ToolCall] = field(default_factory=list)
    answer: str = ""
    failed: str = ""
    """Why there is no answer."""
    exchanges: list[Exchange] = field(default_factory=list)
    rounds: int = 0
    seconds: float = 0.0
    transcript: list[Message] = field(default_factory=list)

    @property
    def verdict(self) -> Verdict:
        return judge(self.case, self.calls, self.answer, failed=self.failed)

    @property
    def first_format(self) -> bool | None:
        """Whether the first reply was a readable call, asked about or not; None when none was due.
        Looking for tools is no reply yet."""
        if not self.case.wants_call:
            return None
        first = next((e for e in self.exchanges if e.outcome != "retry:selection"), None)
        return first is not None and first.outcome in _READABLE

    @property
    def later_formats(self) -> list[bool]:
        """For each reply to a result: whether it was a call or an answer at once."""
        return [
            exchange.outcome in (*_READABLE, "answer")
            for exchange in self.exchanges
            if exchange.after_result
        ]

    @property
    def retries(self) -> int:
        return sum(e.outcome.startswith("retry:") for e in self.exchanges)


async def run_case(
    case: Case,
    upstream: Upstream,
    *,
    way: Variant | None = None,
    repeat: int = 0,
    seconds: float = 120,
) -> CaseResult:
    """Drive `case` to its end. Raises UpstreamError: a fault of the endpoint is no result."""
    way = way or variant("emulated")
    result = CaseResult(case, way.name, repeat)
    conversation = case.messages()
    served: dict[str, int] = {}
    started = time.perf_counter()
    for number in range(MAX_ROUNDS):
        last = number == MAX_ROUNDS - 1
        decider = way.decide(conversation, case.offered, case.language, last)
        outcome = await _decide(decider, upstream, result, seconds)
        result.rounds += 1
        conversation += decider.transcript
        if isinstance(outcome, Answer):
            result.answer = outcome.text
            break
        if isinstance(outcome, GiveUp):
            result.failed = f"gave up: {outcome.reason}"
            break
        assert isinstance(outcome, Calls)
        result.calls += outcome.calls
        if case.first_only:
            break
        conversation += [Message.tool(_stand_in(case, call, served)) for call in outcome.calls]
    else:
        result.failed = "no answer after the last round"
    result.seconds = time.perf_counter() - started
    result.transcript = conversation
    return result


async def _decide(
    decider: Decider, upstream: Upstream, result: CaseResult, seconds: float
) -> Outcome:
    after_result = bool(result.calls)
    while True:
        stream = upstream.stream(decider.request(), timeout=seconds)
        reply = ""
        try:
            async for piece in stream:
                if isinstance(piece, NativeCall):
                    reply += f"{piece.name or ''}{piece.arguments}"
                elif not isinstance(piece, Verbatim):
                    reply += piece.text
                decider.feed(piece)
        finally:
            await stream.aclose()
        outcome = decider.finish(stream.finish_reason)
        exchange = Exchange(reply, _named(outcome), after_result, stream.finish_reason)
        if stream.usage is not None:
            exchange.prompt_tokens = stream.usage.prompt
            exchange.completion_tokens = stream.usage.completion
            exchange.cached_tokens = stream.usage.cached
        result.exchanges.append(exchange)
        if not isinstance(outcome, Retry):
            return outcome


def _named(outcome: Outcome) -> str:
    match outcome:
        case Answer():
            return "answer"
        case Calls():
            return "calls"
        case Retry():
            return f"retry:{outcome.reason}"
        case GiveUp():
            return "give_up"


def _stand_in(case: Case, call: ToolCall, served: dict[str, int]) -> ToolResult:
    """The next stand-in result of the tool; a tool without one is refused, as in real life."""
    given = [
        StandIn(content=r.removeprefix("!"), status=_status(r)) if isinstance(r, str) else r
        for r in case.results.get(call.name, [])
    ]
    fitting = [r for r in given if all(fits(call.arguments.get(k), v) for k, v in r.when.items())]
    if not fitting:
        return ToolResult(call.id, call.name, Status.FAILED, "现在没有数据。")
    conditional = [r for r in fitting if r.when]
    if conditional:
        chosen = conditional[0]
    else:
        index = served.get(call.name, 0)
        served[call.name] = index + 1
        chosen = fitting[min(index, len(fitting) - 1)]
    return ToolResult(call.id, call.name, chosen.status, chosen.content)


def _status(text: str) -> Status:
    return Status.FAILED if text.startswith("!") else Status.OK
