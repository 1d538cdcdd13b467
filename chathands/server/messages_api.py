"""POST /v1/messages and /v1/messages/count_tokens."""

from __future__ import annotations

import secrets
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any

from fastapi import FastAPI, Request
from fastapi.responses import Response

from chathands.emulation import CallReady, TextDelta
from chathands.protocols.anthropic_reply import (
    EventEncoder,
    error_body,
    message_body,
    usage_body,
)
from chathands.protocols.anthropic_request import MessagesRequest, NoThreads
from chathands.protocols.openai import BadRequest, to_json
from chathands.server.asking import Ask, End, Failure
from chathands.server.errors import json_bytes
from chathands.server.exchange import Exchange
from chathands.server.gateway import BODY_CAP, CLIENT_CLOSED, Gateway, while_connected
from chathands.server.reading import parse_object, read_capped
from chathands.server.streaming import EventStream

_TYPES = {
    "request": "invalid_request_error",
    "busy": "rate_limit_error",
    "timeout": "timeout_error",
}


class MessagesApi:
    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway

    def add_to(self, app: FastAPI) -> None:
        """Add the routes."""
        app.add_route("/v1/messages", self._messages, methods=["POST"])
        app.add_route("/v1/messages/count_tokens", self._count_tokens, methods=["POST"])

    async def _messages(self, request: Request) -> Response:
        request_id = f"req_{secrets.token_hex(12)}"
        try:
            wire, exchange = await self._exchange(request)
        except BadRequest as error:
            return _bad(error, request_id)
        head = {"id": f"msg_{secrets.token_hex(12)}", "model": wire.model}
        headers = {"request-id": request_id}
        if wire.stream:
            encoder = _Encoder(
                **head,
                input_tokens=exchange.rough_prompt_tokens,
                request_id=request_id,
            )
            return EventStream(_events(exchange, encoder), encoder, headers=headers)
        try:
            end = await while_connected(request, exchange.complete())
        except Failure as failure:
            return refusal(failure, request_id)
        if end is None:
            return Response(status_code=CLIENT_CLOSED)
        reply = message_body(
            **head,
            text=end.text,
            calls=end.calls,
            finish_reason=end.finish_reason,
            stopped=end.stopped,
            usage=_usage(end),
        )
        return json_bytes(to_json(reply).encode(), headers=headers)

    async def _count_tokens(self, request: Request) -> Response:
        request_id = f"req_{secrets.token_hex(12)}"
        try:
            _, exchange = await self._exchange(request, counting=True)
        except BadRequest as error:
            return _bad(error, request_id)
        counted = {"input_tokens": exchange.prompt_tokens()}
        return json_bytes(to_json(counted).encode(), headers={"request-id": request_id})

    async def _exchange(
        self, request: Request, *, counting: bool = False
    ) -> tuple[MessagesRequest, Exchange]:
        """Raises ApiError, BadRequest."""
        client = self._gateway.enter(request)
        body = parse_object(await read_capped(request, BODY_CAP))
        wire = MessagesRequest.read(body, counting=counting)
        upstream, ways = self._gateway.served(client, wire.model)
        ask = Ask(
            wire.conversation(),
            wire.specs,
            wire.choice,
            single=wire.single,
            stops=tuple(wire.stop_sequences or ()),
            exact_stop=True,
            sampling=wire.sampling,
            response_format=wire.response_format,
        )
        return wire, Exchange(ask, upstream, self._gateway.seconds, ways=ways)


class _Encoder(EventEncoder):
    """With how it ends where there is no reply."""

    def __init__(self, *, request_id: str, **head: Any) -> None:
        super().__init__(**head)
        self._request_id = request_id

    def failed(self, failure: Failure) -> str:
        return self.error(_failure_body(failure, self._request_id))

    def refused(self, failure: Failure) -> Response:
        return refusal(failure, self._request_id)


async def _events(exchange: Exchange, encoder: _Encoder) -> AsyncGenerator[str, None]:
    """Ends in `message_stop`."""
    async with aclosing(exchange.events()) as events:
        async for event in events:
            if isinstance(event, TextDelta):
                yield encoder.text(event.text)
            elif isinstance(event, CallReady):
                yield encoder.call(event.call)
            elif isinstance(event, End):
                yield encoder.end(event.finish_reason, event.stopped, _usage(event))


def refusal(failure: Failure, request_id: str) -> Response:
    """In the protocol's shape and status."""
    body = to_json(_failure_body(failure, request_id)).encode()
    headers = {"request-id": request_id, **failure.headers}
    return json_bytes(body, failure.status, headers)


def _bad(error: BadRequest, request_id: str) -> Response:
    details = error.details if isinstance(error, NoThreads) else None
    body = error_body("invalid_request_error", str(error), request_id, details)
    return json_bytes(to_json(body).encode(), 400, {"request-id": request_id})


def _failure_body(failure: Failure, request_id: str) -> dict[str, Any]:
    return error_body(_TYPES.get(failure.kind, "api_error"), failure.message, request_id)


def _usage(end: End) -> dict[str, Any]:
    usage = end.usage
    return usage_body(usage.prompt, usage.completion, cached=usage.cached, estimated=end.estimated)
