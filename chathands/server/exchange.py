"""One gateway request through `Turn`, whatever protocol it came in.

A protocol reads its request into an `Ask`, and writes what an `Exchange` says: events while they
come (`events()`), or the whole reply at once (`complete()`).
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from chathands.conversation import Message, ToolCall, ToolChoice, ToolSpec
from chathands.emulation import (
    Answer,
    CallReady,
    Calls,
    Commit,
    Event,
    GiveUp,
    Language,
    ModelRequest,
    Outcome,
    Retry,
    TextDelta,
    Turn,
)
from chathands.emulation.state import has_tool_history
from chathands.errors import (
    UpstreamAuthError,
    UpstreamBusy,
    UpstreamError,
    UpstreamRefused,
    UpstreamTimeout,
)
from chathands.limits import CONTRACT_SHARE
from chathands.server.metrics import Measured
from chathands.upstreams.base import ModelStream, Upstream, Usage
from chathands.upstreams.ways import Way, Ways


@dataclass(frozen=True, slots=True)
class Ask:
    """What a request asks for, in no protocol's terms."""

    conversation: Sequence[Message]
    specs: tuple[ToolSpec, ...] | None = None
    """Declared tools; None when the request has no word of tools, which is not the same as ()."""
    choice: ToolChoice = field(default_factory=ToolChoice)
    single: bool = False
    """At most one call may leave."""
    stops: tuple[str, ...] = ()
    sampling: Mapping[str, Any] = field(default_factory=dict)
    """Under the names that chat completions have for them."""
    response_format: Mapping[str, Any] | None = None

    @property
    def plain(self) -> bool:
        """Neither tools nor tool history: nothing is to be done but to pass it on."""
        return not self.specs and not has_tool_history(self.conversation)


@dataclass(frozen=True, slots=True)
class End:
    """The reply is whole: `text` and `calls` are all of it, also what events have carried.
    `finish_reason` is the upstream's own (`stop`, `length` ...), also beside calls."""

    text: str
    calls: tuple[ToolCall, ...]
    finish_reason: str
    usage: Usage | None


FailureKind = Literal["request", "busy", "timeout", "upstream", "no_call"]


class Failure(Exception):
    """The exchange ends without a reply. `status` fits the kind; the text may be shown."""

    def __init__(self, kind: FailureKind, message: str, code: str | None = None) -> None:
        super().__init__(message)
        self.kind: FailureKind = kind
        self.message = message
        self.code = code

    @property
    def status(self) -> int:
        """Of HTTP."""
        return _STATUS[self.kind]


_STATUS: Mapping[FailureKind, int] = {
    "request": 400,
    "busy": 429,
    "timeout": 504,
    "upstream": 502,
    "no_call": 502,
}


def failure_of(error: UpstreamError) -> Failure:
    """An upstream's failure as one that a client understands; never its text."""
    if isinstance(error, UpstreamBusy):
        return Failure("busy", "the upstream is busy")
    if isinstance(error, UpstreamTimeout):
        return Failure("timeout", "the upstream did not answer in time")
    if isinstance(error, UpstreamAuthError):
        return Failure("upstream", "the gateway's key was refused by the upstream")
    if isinstance(error, UpstreamRefused):
        message = "the upstream refused the request: too long, or a field that it does not take"
        return Failure("request", message)
    return Failure("upstream", f"upstream: {type(error).__name__}")


class Exchange:
    """One request on its way through an upstream; used once, by `complete` or by `events`.

    `seconds` are for everything together, corrections included. `ways` says in which mode the
    upstream is asked; emulated unless the settings or a measurement say so.
    """

    def __init__(
        self,
        ask: Ask,
        upstream: Upstream,
        seconds: float,
        *,
        ways: Ways | None = None,
        language: Language = "en",
    ) -> None:
        self.ask = ask
        self.upstream = upstream
        self._seconds = seconds
        self._ways = ways or Ways()
        self._language: Language = language
        self._way = self._ways.way
        self._request: ModelRequest | None = None
        self._started = time.monotonic()
        self._usage: Usage | None = None
        self._finish_reason: str | None = None
        self._meter = upstream.meter() if isinstance(upstream, Measured) else None

    async def complete(self) -> End:
        """The whole reply, of which nothing leaves before: every fault may be corrected.

        Raises Failure.
        """
        with self._counted() as ends:
            ends.append(await self._complete())
            return ends[0]

    async def _complete(self) -> End:
        turn = self._turn("finish")
        while True:
            try:
                async for _ in self._replies(turn):
                    pass
            except UpstreamError as error:
                turn = self._weaker(error, turn)
                continue
            outcome = turn.finish(self._finish_reason, may_retry=self._may_retry())
            if not isinstance(outcome, Retry):
                break
            self._retried(outcome)
        text, calls = self._settled(outcome)
        if self.ask.single:
            calls = calls[:1]
        return self._end(text, calls)

    async def events(self) -> AsyncIterator[Event | End]:
        """What may leave as soon as it may; `End` comes last. Raises Failure, at any point."""
        turn = self._turn("stream")
        calls: list[ToolCall] = []
        with self._counted() as ends:
            while True:
                try:
                    async for event in self._replies(turn):
                        if self._leaves(event, calls):
                            yield event
                except UpstreamError as error:
                    turn = self._weaker(error, turn)
                    continue
                outcome = turn.finish(self._finish_reason, may_retry=self._may_retry())
                for event in turn.tail:
                    if self._leaves(event, calls):
                        yield event
                if not isinstance(outcome, Retry):
                    break
                self._retried(outcome)
            text, _ = self._settled(outcome)
            if text and isinstance(outcome, GiveUp) and not turn.sent:
                yield TextDelta(text)
            ends.append(self._end(text, tuple(calls)))
            yield ends[0]

    @contextmanager
    def _counted(self) -> Iterator[list[End]]:
        """Counts the request by how it ends; whoever is inside appends its end."""
        meter, ends = self._meter, list[End]()
        if meter is None:
            yield ends
            return
        meter.began()
        outcome = "cancelled"
        try:
            yield ends
        except Failure as failure:
            outcome = failure.kind
            raise
        except Exception:
            outcome = "error"
            raise
        finally:
            for end in ends:
                outcome = "calls" if end.calls else "answer"
                for call in end.calls:
                    meter.called(call.confidence)
            meter.ended(outcome)

    def _retried(self, outcome: Retry) -> None:
        if self._meter is not None:
            self._meter.retried(outcome.reason)

    def _leaves(self, event: Event, calls: list[ToolCall]) -> bool:
        """Whether the event leaves; a call that does is added to `calls`."""
        if self._meter is not None:
            self._meter.leaves()
        if isinstance(event, CallReady):
            if self.ask.single and calls:
                return False
            calls.append(event.call)
        return True

    async def _replies(self, turn: Turn) -> AsyncIterator[Event]:
        """One reply of the upstream, fed to the turn."""
        stream = self.upstream.stream(self._model_request(turn), timeout=self._left())
        try:
            async for piece in stream:
                for event in turn.feed(piece):
                    yield event
        finally:
            await stream.aclose()
        self._heard(stream)

    def _heard(self, stream: ModelStream) -> None:
        self._finish_reason, self._usage = stream.finish_reason, stream.usage
        self._ways.accepted(self._way)

    def _weaker(self, error: UpstreamError, turn: Turn) -> Turn:
        """A turn that asks less of an upstream which has refused the last request for what it
        carries. Raises Failure where that is no help, or something has left."""
        assert self._request is not None
        weaker = self._ways.after(error, self._request, self._way)
        if weaker is None or turn.sent:
            raise failure_of(error) from error
        self._way: Way = weaker
        return self._turn("stream" if turn.streams else "finish", turn.transcript)

    def _left(self) -> float:
        return max(self._seconds - (time.monotonic() - self._started), 1.0)

    def _may_retry(self) -> bool:
        """A correction takes about as long as the reply before it."""
        return time.monotonic() - self._started < self._seconds / 2

    def _turn(self, commit: Commit, transcript: Sequence[Message] = ()) -> Turn:
        return Turn(
            [*self.ask.conversation, *transcript],
            self.ask.specs,
            choice=self.ask.choice,
            mode=self._way.mode,
            enforcement=self._way.enforcement,
            thinking=self._way.thinking,
            language=self._language,
            commit=commit,
            reviews=frozenset(),  # a client's tools and figures are the client's to judge
            contract_budget=int(self.upstream.context * CONTRACT_SHARE),
        )

    def _model_request(self, turn: Turn) -> ModelRequest:
        request = turn.request()
        # With tools the reply is the mode's; a client's JSON mode would forbid its fences.
        ours = bool(self.ask.specs) or request.tools or request.response_format
        wanted = request.response_format if ours else self.ask.response_format
        self._request = request = replace(
            request,
            stop=self.ask.stops,
            sampling=self.ask.sampling,
            response_format=wanted,
        )
        return request

    def _settled(self, outcome: Outcome) -> tuple[str, tuple[ToolCall, ...]]:
        """Text and calls that leave. Raises Failure where a call was owed and none came."""
        if isinstance(outcome, Calls):
            return outcome.text, outcome.calls
        if isinstance(outcome, GiveUp) and self.ask.choice.kind in ("required", "named"):
            message = f"the model gave no usable tool call ({outcome.reason})"
            raise Failure("no_call", message, outcome.reason)
        assert isinstance(outcome, Answer | GiveUp)
        return outcome.text, ()

    def _end(self, text: str, calls: tuple[ToolCall, ...]) -> End:
        return End(text, calls, self._finish_reason or "stop", self._usage)
