"""One gateway request: the client's conversation through `Turn`, out as a reply or a stream."""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from chathands.conversation import Message, ToolCall
from chathands.emulation import (
    Answer,
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
from chathands.errors import UpstreamAuthError, UpstreamBusy, UpstreamError, UpstreamTimeout
from chathands.limits import CONTRACT_SHARE
from chathands.protocols.openai import ChatRequest, ChunkEncoder, completion, error_body
from chathands.upstreams.base import ModelStream, Upstream, Usage
from chathands.upstreams.ways import Way, Ways


class Refused(Exception):
    """The request ends in an error of the protocol: `status` and `body`."""

    def __init__(self, status: int, body: dict[str, Any]) -> None:
        super().__init__(body["error"]["message"])
        self.status = status
        self.body = body


def upstream_refusal(error: UpstreamError) -> Refused:
    """An upstream's failure as a status a client understands; never its text."""
    if isinstance(error, UpstreamBusy):
        return Refused(429, error_body("the upstream is busy", "rate_limit_error"))
    if isinstance(error, UpstreamTimeout):
        return Refused(504, error_body("the upstream did not answer in time", "timeout_error"))
    if isinstance(error, UpstreamAuthError):
        message = "the gateway's key was refused by the upstream"
        return Refused(502, error_body(message, "upstream_error"))
    return Refused(502, error_body(f"upstream: {type(error).__name__}", "upstream_error"))


@dataclass(slots=True)
class Exchange:
    """One request on its way through an upstream."""

    request: ChatRequest
    upstream: Upstream
    seconds: float
    """For everything together, corrections included."""
    language: Language = "en"
    ways: Ways = field(default_factory=Ways)
    """In which mode the upstream is asked; emulated unless the settings or a measurement say so."""
    id: str = field(default_factory=lambda: f"chatcmpl-{secrets.token_hex(12)}")
    created: int = field(default_factory=lambda: int(time.time()))
    _way: Way = field(init=False)
    _request: ModelRequest | None = field(default=None, init=False)
    _started: float = field(default_factory=time.monotonic, init=False)
    _usage: Usage | None = field(default=None, init=False)
    _finish_reason: str | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        self._way = self.ways.way

    async def complete(self) -> dict[str, Any]:
        """The whole reply. Raises Refused."""
        turn = self._turn("finish")
        while True:
            try:
                await self._feed(turn)
            except UpstreamError as error:
                weaker = self._weaker(error, turn)
                if weaker is None:
                    raise upstream_refusal(error) from error
                turn = weaker
                continue
            outcome = turn.finish(self._finish_reason, may_retry=self._may_retry())
            if not isinstance(outcome, Retry):
                break
        text, calls = self._settle(outcome)
        return completion(
            id=self.id,
            created=self.created,
            model=self.request.model,
            text=text,
            calls=calls,
            finish_reason=self._finish_reason or "stop",
            usage=self._wire_usage(),
        )

    async def stream(self) -> AsyncIterator[str]:
        """Lines of server-sent events; ends in `[DONE]` or in the protocol's error event."""
        encoder = ChunkEncoder(id=self.id, created=self.created, model=self.request.model)
        turn = self._turn("stream")
        yield encoder.start()
        try:
            while True:
                try:
                    async for line in self._stream_events(turn, encoder):
                        yield line
                except UpstreamError as error:
                    weaker = self._weaker(error, turn)
                    if weaker is None:
                        raise
                    turn = weaker
                    continue
                outcome = turn.finish(self._finish_reason, may_retry=self._may_retry())
                for event in turn.tail:
                    yield _encoded(event, encoder)
                if not isinstance(outcome, Retry):
                    break
            text, _ = self._settle(outcome)
        except UpstreamError as error:
            yield encoder.error(upstream_refusal(error).body)
            return
        except Refused as error:
            yield encoder.error(error.body)
            return
        if text and isinstance(outcome, GiveUp) and not turn.sent:
            yield encoder.text(text)
        yield encoder.end(self._finish_reason or "stop")

    async def _stream_events(self, turn: Turn, encoder: ChunkEncoder) -> AsyncIterator[str]:
        stream = self.upstream.stream(self._model_request(turn), timeout=self._left())
        try:
            async for piece in stream:
                for event in turn.feed(piece):
                    yield _encoded(event, encoder)
        finally:
            await stream.aclose()
        self._heard(stream)

    async def _feed(self, turn: Turn) -> None:
        stream = self.upstream.stream(self._model_request(turn), timeout=self._left())
        try:
            async for piece in stream:
                turn.feed(piece)
        finally:
            await stream.aclose()
        self._heard(stream)

    def _heard(self, stream: ModelStream) -> None:
        self._finish_reason, self._usage = stream.finish_reason, stream.usage
        self.ways.accepted(self._way)

    def _weaker(self, error: UpstreamError, turn: Turn) -> Turn | None:
        """A turn that asks less of an upstream which has refused the last request for what it
        carries; None where that is no help, or something has left."""
        assert self._request is not None
        weaker = self.ways.after(error, self._request, self._way)
        if weaker is None or turn.sent:
            return None
        self._way = weaker
        return self._turn("stream" if turn.streams else "finish", turn.transcript)

    def _left(self) -> float:
        return max(self.seconds - (time.monotonic() - self._started), 1.0)

    def _may_retry(self) -> bool:
        """A correction takes about as long as the reply before it."""
        return time.monotonic() - self._started < self.seconds / 2

    def _turn(self, commit: Commit, transcript: Sequence[Message] = ()) -> Turn:
        return Turn(
            [*self.request.conversation(), *transcript],
            self.request.specs,
            choice=self.request.choice,
            mode=self._way.mode,
            enforcement=self._way.enforcement,
            thinking=self._way.thinking,
            language=self.language,
            commit=commit,
            reviews=frozenset(),  # a client's tools and figures are the client's to judge
            contract_budget=int(self.upstream.context * CONTRACT_SHARE),
        )

    def _model_request(self, turn: Turn) -> ModelRequest:
        request = turn.request()
        # With tools the reply is the mode's; a client's JSON mode would forbid its fences.
        ours = bool(self.request.tools) or request.tools or request.response_format
        wanted = request.response_format if ours else self.request.response_format
        self._request = request = replace(
            request,
            stop=self.request.stops,
            sampling=self.request.sampling,
            response_format=wanted,
        )
        return request

    def _settle(self, outcome: Outcome) -> tuple[str, tuple[ToolCall, ...]]:
        """Text and calls that leave. Raises Refused where a call was owed and none came."""
        if isinstance(outcome, Calls):
            return outcome.text, outcome.calls
        if isinstance(outcome, GiveUp) and self.request.choice.kind in ("required", "named"):
            message = f"the model gave no usable tool call ({outcome.reason})"
            raise Refused(502, error_body(message, "upstream_error", code=outcome.reason))
        assert isinstance(outcome, Answer | GiveUp)
        return outcome.text, ()

    def _wire_usage(self) -> dict[str, int] | None:
        if self._usage is None:
            return None
        return {
            "prompt_tokens": self._usage.prompt,
            "completion_tokens": self._usage.completion,
            "total_tokens": self._usage.prompt + self._usage.completion,
        }


def _encoded(event: Event, encoder: ChunkEncoder) -> str:
    if isinstance(event, TextDelta):
        return encoder.text(event.text)
    return encoder.call(event.call)


def read_body(raw: bytes) -> ChatRequest:
    """Raises Refused with 400 when the body is not the protocol."""
    from chathands.protocols.openai import BadRequest

    try:
        body = json.loads(raw)
    except (ValueError, RecursionError):
        message = "the body is not JSON"
        raise Refused(400, error_body(message, "invalid_request_error")) from None
    try:
        return ChatRequest.read(body)
    except BadRequest as error:
        body = error_body(str(error), "invalid_request_error", param=error.field)
        raise Refused(400, body) from None
