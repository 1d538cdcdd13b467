"""POST /v1/chat/completions."""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import AsyncIterator
from typing import Any

from fastapi import FastAPI, Request
from fastapi.responses import Response

from chathands.emulation import CallReady, TextDelta
from chathands.protocols.openai import (
    BadRequest,
    ChatRequest,
    ChunkEncoder,
    completion,
    error_body,
    to_json,
)
from chathands.server.exchange import Ask, End, Exchange, Failure
from chathands.server.gateway import (
    BODY_CAP,
    CLIENT_CLOSED,
    Gateway,
    event_stream,
    while_connected,
)
from chathands.server.reading import read_capped
from chathands.upstreams.base import Usage

_TYPES = {
    "request": "invalid_request_error",
    "busy": "rate_limit_error",
    "timeout": "timeout_error",
}


class ChatApi:
    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway

    def add_to(self, app: FastAPI) -> None:
        """Add the route."""
        app.add_route("/v1/chat/completions", self._completions, methods=["POST"])

    async def _completions(self, request: Request) -> Response:
        client = self._gateway.enter(request)
        try:
            wire = _read(await read_capped(request, BODY_CAP))
        except BadRequest as error:
            return _error(400, str(error), "invalid_request_error", param=error.field)
        upstream, ways = self._gateway.served(client, wire.model)
        ask = Ask(
            wire.conversation(),
            wire.specs,
            wire.choice,
            stops=wire.stops,
            sampling=wire.sampling,
            response_format=wire.response_format,
        )
        exchange = Exchange(ask, upstream, self._gateway.seconds, ways=ways)
        head = {
            "id": f"chatcmpl-{secrets.token_hex(12)}",
            "created": int(time.time()),
            "model": wire.model,
        }
        if wire.stream:
            return event_stream(_chunks(exchange, ChunkEncoder(**head)))
        try:
            end = await while_connected(request, exchange.complete())
        except Failure as failure:
            return Response(
                to_json(_failure_body(failure)), failure.status, media_type="application/json"
            )
        if end is None:
            return Response(status_code=CLIENT_CLOSED)
        reply = completion(
            **head,
            text=end.text,
            calls=end.calls,
            finish_reason=end.finish_reason,
            usage=_usage(end.usage),
        )
        return Response(to_json(reply), media_type="application/json")


async def _chunks(exchange: Exchange, encoder: ChunkEncoder) -> AsyncIterator[str]:
    """Ends in `[DONE]` or in the protocol's error event."""
    yield encoder.start()
    try:
        async for event in exchange.events():
            if isinstance(event, TextDelta):
                yield encoder.text(event.text)
            elif isinstance(event, CallReady):
                yield encoder.call(event.call)
            elif isinstance(event, End):
                yield encoder.end(event.finish_reason)
    except Failure as failure:
        yield encoder.error(_failure_body(failure))


def _read(raw: bytes) -> ChatRequest:
    """Raises BadRequest."""
    try:
        body = json.loads(raw)
    except (ValueError, RecursionError):
        raise BadRequest("the body is not JSON") from None
    return ChatRequest.read(body)


def _failure_body(failure: Failure) -> dict[str, Any]:
    return error_body(
        failure.message, _TYPES.get(failure.kind, "upstream_error"), code=failure.code
    )


def _error(status: int, message: str, kind: str, *, param: str | None = None) -> Response:
    body = to_json(error_body(message, kind, param=param))
    return Response(body, status, media_type="application/json")


def _usage(usage: Usage | None) -> dict[str, int] | None:
    if usage is None:
        return None
    return {
        "prompt_tokens": usage.prompt,
        "completion_tokens": usage.completion,
        "total_tokens": usage.prompt + usage.completion,
    }
