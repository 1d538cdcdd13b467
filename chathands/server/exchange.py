"""One gateway request through `Turn`, whatever protocol it came in.

A protocol reads its request into an `Ask`, and writes what an `Exchange` says: events while they
come (`events()`), or the whole reply at once (`complete()`).
"""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import aclosing, contextmanager
from dataclasses import replace

from chathands.conversation import Message, ToolCall
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
from chathands.emulation.outcome import ChatMessage, Piece, Text
from chathands.errors import UpstreamError
from chathands.limits import CONTRACT_SHARE
from chathands.protocols.text_out import TextOut
from chathands.protocols.token_estimate import estimate_request, rough_request, rough_tokens
from chathands.server.asking import (
    Ask as Ask,
)
from chathands.server.asking import (
    End as End,
)
from chathands.server.asking import (
    Failure as Failure,
)
from chathands.server.asking import failure_of, finish_reason_of
from chathands.server.metrics import Measured
from chathands.upstreams.base import Upstream, Usage
from chathands.upstreams.ways import Way, Ways

LEAST_REPLY = 1024
"""Tokens that a reply may have however full the upstream's context seems: the prompt is estimated,
and the context may be a setting that nobody looked at."""

_FRAME = '```json action\n{"tool": "", "parameters": {}}\n```'
"""What every call is written in: a stop sequence from it would cut the call instead of the text."""


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
        self._heard: list[str] = []
        """The text of the last reply."""
        self._meter = upstream.meter() if isinstance(upstream, Measured) else None

    async def complete(self) -> End:
        """The whole reply, of which nothing leaves before: every fault may be corrected.

        Raises Failure.
        """
        if self.ask.plain and self.ask.stops:
            return await self._until_stopped()
        with self._counted() as ends:
            ends.append(await self._complete())
            return ends[0]

    async def _until_stopped(self) -> End:
        """A text that is cut has to be watched while it comes, so that the upstream stops too."""
        async with aclosing(self.events()) as events:
            async for event in events:
                if isinstance(event, End):
                    return event
        raise AssertionError("events end in End")

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
        out = self._text_out()
        text = out.feed(text) + out.flush()
        if out.stopped is not None:
            calls = ()  # they stand behind the text
        return self._end(text, calls[:1] if self.ask.single else calls, out.stopped)

    async def events(self) -> AsyncGenerator[Event | End, None]:
        """What may leave as soon as it may; `End` comes last. Raises Failure, at any point.

        Close it when nobody reads it to its end.
        """
        out = self._text_out()
        sent: list[str] = []
        calls: list[ToolCall] = []
        with self._counted() as ends:
            async with aclosing(self._turn_events()) as events:
                async for event in events:
                    if isinstance(event, CallReady):
                        if calls and self.ask.single:
                            continue
                        if rest := out.flush():
                            sent.append(rest)
                            yield TextDelta(rest)
                        if out.stopped is not None:
                            break
                        calls.append(event.call)
                        yield self._leaves(event)
                    elif text := out.feed(event.text):
                        sent.append(text)
                        yield self._leaves(TextDelta(text))
                    if out.stopped is not None:
                        break
            if rest := out.flush():
                sent.append(rest)
                yield self._leaves(TextDelta(rest))
            ends.append(self._end("".join(sent), tuple(calls), out.stopped))
            yield ends[0]

    async def _turn_events(self) -> AsyncGenerator[Event, None]:
        turn = self._turn("stream")
        while True:
            try:
                async with aclosing(self._replies(turn)) as events:
                    async for event in events:
                        yield event
            except UpstreamError as error:
                turn = self._weaker(error, turn)
                continue
            outcome = turn.finish(self._finish_reason, may_retry=self._may_retry())
            for event in turn.tail:
                yield event
            if not isinstance(outcome, Retry):
                break
            self._retried(outcome)
        text, _ = self._settled(outcome)
        if text and isinstance(outcome, GiveUp) and not turn.sent:
            yield TextDelta(text)

    async def passed_on(self) -> AsyncGenerator[Piece, None]:
        """The reply to `ask.body`, sent as it is; `passed_on_end` afterwards. Raises Failure."""
        messages = (ChatMessage(m.role, m.text, source=m) for m in self.ask.conversation)
        self._request = ModelRequest(
            tuple(messages),
            self.ask.response_format,
            stop=self.ask.stops,
            sampling=self.ask.sampling,
            body=self.ask.body,
        )
        stream = self.upstream.stream(self._request, timeout=self._left())
        with self._counted() as ends:
            try:
                async for piece in stream:
                    if self._meter is not None:
                        self._meter.leaves()
                    yield piece
            except UpstreamError as error:
                raise failure_of(error) from error
            finally:
                await stream.aclose()
            self._finish_reason, self._usage = stream.finish_reason, stream.usage
            ends.append(self._end("", ()))

    def passed_on_end(self, written: str) -> End:
        """How what was passed on ended; `written` is its text, should usage have to be guessed."""
        return self._end(written, ())

    def prompt_tokens(self) -> int:
        """How many tokens the first request has, contract and all: estimated, nothing is sent."""
        return estimate_request(self._model_request(self._turn("finish")))

    def rough_prompt_tokens(self) -> int:
        """Of the last request, or of the first; it takes no time to speak of."""
        if self._request is None:
            self._model_request(self._turn("stream"))
            assert self._request is not None
        return rough_request(self._request)

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

    def _leaves(self, event: Event) -> Event:
        if self._meter is not None:
            self._meter.leaves()
        return event

    async def _replies(self, turn: Turn) -> AsyncGenerator[Event, None]:
        """One reply of the upstream, fed to the turn."""
        self._heard = []
        self._usage = self._finish_reason = None
        stream = self.upstream.stream(self._model_request(turn), timeout=self._left())
        try:
            async for piece in stream:
                if isinstance(piece, Text):
                    self._heard.append(piece.text)
                for event in turn.feed(piece):
                    yield event
        finally:
            await stream.aclose()
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
            [*self.ask.messages, *transcript],
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
            request, stop=self._stops(request), response_format=wanted
        )
        self._request = replace(request, sampling=self._sampling(request))
        return self._request

    def _stops(self, request: ModelRequest) -> tuple[str, ...]:
        """Those the upstream is told; all of them end the text here."""
        if self.ask.exact_stop:
            return ()
        if self.ask.plain or request.tools is not None:
            return self.ask.stops
        names = [spec.name for spec in self.ask.specs or ()]
        return tuple(
            stop
            for stop in self.ask.stops
            if stop.strip() and not any(stop in text for text in (_FRAME, *names))
        )

    def _sampling(self, request: ModelRequest) -> dict[str, object]:
        """The client's, with no more tokens than there is room for: agents ask for 32,000 of
        whatever model, and servers refuse what their context does not hold."""
        sampling = dict(self.ask.sampling)
        wanted = sampling.get("max_tokens")
        if isinstance(wanted, int) and wanted > LEAST_REPLY:
            room = self.upstream.context - rough_request(request)
            sampling["max_tokens"] = min(wanted, max(room, LEAST_REPLY))
        return sampling

    def _text_out(self) -> TextOut:
        forced = self.ask.choice.kind in ("required", "named")
        stops = () if forced else self.ask.stops
        return TextOut(stops, bare_json=self.ask.wants_json)

    def _settled(self, outcome: Outcome) -> tuple[str, tuple[ToolCall, ...]]:
        """Text and calls that leave. Raises Failure where a call was owed and none came."""
        if isinstance(outcome, Calls):
            return outcome.text, outcome.calls
        if isinstance(outcome, GiveUp) and self.ask.choice.kind in ("required", "named"):
            message = f"the model gave no usable tool call ({outcome.reason})"
            raise Failure("no_call", message, outcome.reason)
        assert isinstance(outcome, Answer | GiveUp)
        return outcome.text, ()

    def _end(self, text: str, calls: tuple[ToolCall, ...], stopped: str | None = None) -> End:
        reason = "stop" if stopped is not None else finish_reason_of(self._finish_reason)
        if self._usage is not None:
            return End(text, calls, reason, self._usage, stopped=stopped)
        written = "".join(self._heard) or text
        guess = Usage(self.rough_prompt_tokens(), max(1, rough_tokens(written)))
        return End(text, calls, reason, guess, estimated=True, stopped=stopped)
