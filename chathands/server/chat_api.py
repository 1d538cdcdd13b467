"""POST /v1/chat/completions."""

from __future__ import annotations

import secrets
import time
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any

from fastapi import FastAPI, Request
from fastapi.responses import Response

from chathands.emulation import CallReady, TextDelta
from chathands.emulation.outcome import Text, Verbatim
from chathands.protocols.openai import (
    BadRequest,
    ChatRequest,
    error_body,
    to_json,
    without_tool_fields,
)
from chathands.protocols.openai_reply import (
    ChunkEncoder,
    PassedOn,
    completion,
    usage_body,
)
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
    "internal": "server_error",
}


class ChatApi:
    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway

    def add_to(self, app: FastAPI) -> None:
        """Add the route."""
        app.add_route("/v1/chat/completions", self._completions, methods=["POST"])

    async def _completions(self, request: Request) -> Response:
        client = self._gateway.enter(request)
        body = parse_object(await read_capped(request, BODY_CAP))
        try:
            wire = ChatRequest.read(body)
        except BadRequest as error:
            problem = error_body(str(error), "invalid_request_error", param=error.field)
            return json_bytes(to_json(problem).encode(), 400)
        upstream, ways = self._gateway.served(client, wire.model)
        exchange = Exchange(ask_of(wire, body), upstream, self._gateway.seconds, ways=ways)
        head = {
            "id": f"chatcmpl-{secrets.token_hex(12)}",
            "created": int(time.time()),
            "model": wire.model,
        }
        headers = {"x-request-id": f"req_{secrets.token_hex(12)}"}
        if wire.stream:
            encoder = _Encoder(**head, include_usage=wire.include_usage, legacy=wire.legacy)
            send = _passed_on if exchange.ask.plain else _chunks
            return EventStream(send(exchange, wire, head, encoder), encoder, headers=headers)
        work = _passed_on_whole if exchange.ask.plain else _whole
        try:
            reply = await while_connected(request, work(exchange, wire, head))
        except Failure as failure:
            return refusal(failure)
        if reply is None:
            return Response(status_code=CLIENT_CLOSED)
        return json_bytes(reply.encode("utf-8", "replace"), headers=headers)


def ask_of(wire: ChatRequest, body: dict[str, Any]) -> Ask:
    """What a request asks for; `body` is the same as it came."""
    return Ask(
        wire.conversation(),
        wire.specs,
        wire.choice,
        single=wire.single,
        stops=wire.stops,
        sampling=wire.sampling,
        response_format=wire.response_format,
        body=without_tool_fields(body) if wire.plain else None,
    )


class _Encoder(ChunkEncoder):
    """With how it ends where there is no reply."""

    def failed(self, failure: Failure) -> str:
        return self.error(_failure_body(failure))

    def refused(self, failure: Failure) -> Response:
        return refusal(failure)


def refusal(failure: Failure) -> Response:
    """In the protocol's shape and status."""
    return json_bytes(to_json(_failure_body(failure)).encode(), failure.status, failure.headers)


def _failure_body(failure: Failure) -> dict[str, Any]:
    kind = _TYPES.get(failure.kind, "upstream_error")
    return error_body(failure.message, kind, code=failure.code)


async def _whole(exchange: Exchange, wire: ChatRequest, head: dict[str, Any]) -> str:
    end = await exchange.complete()
    return to_json(
        completion(
            **head,
            text=end.text,
            calls=end.calls,
            finish_reason=end.finish_reason,
            usage=_usage(end),
            legacy=wire.legacy,
        )
    )


async def _chunks(
    exchange: Exchange, wire: ChatRequest, head: dict[str, Any], encoder: _Encoder
) -> AsyncGenerator[str, None]:
    """Ends in `[DONE]`."""
    async with aclosing(exchange.events()) as events:
        async for event in events:
            if isinstance(event, TextDelta):
                yield encoder.text(event.text)
            elif isinstance(event, CallReady):
                yield encoder.call(event.call)
            elif isinstance(event, End):
                yield encoder.end(event.finish_reason, _usage(event))


# --- requests without tools: the upstream's own reply


async def _passed_on_whole(exchange: Exchange, wire: ChatRequest, head: dict[str, Any]) -> str:
    texts: list[str] = []
    own = None
    async with aclosing(exchange.passed_on()) as pieces:
        async for piece in pieces:
            if isinstance(piece, Verbatim):
                own = piece
            elif isinstance(piece, Text):
                texts.append(piece.text)
    end = exchange.passed_on_end("".join(texts) if own is None else own.data)
    usage = _usage(end)
    if own is None:  # it answered in events, or does not speak this protocol
        reason = end.finish_reason
        text = "".join(texts)
        return to_json(completion(**head, text=text, calls=(), finish_reason=reason, usage=usage))
    return PassedOn(**head, bare_json=exchange.ask.wants_json).whole(own.data, own.document, usage)


async def _passed_on(
    exchange: Exchange, wire: ChatRequest, head: dict[str, Any], encoder: _Encoder
) -> AsyncGenerator[str, None]:
    """The upstream's own events, ended as a client expects."""
    bare_json = exchange.ask.wants_json
    own = PassedOn(**head, bare_json=bare_json, include_usage=wire.include_usage)
    texts: list[str] = []
    verbatim = False
    async with aclosing(exchange.passed_on()) as pieces:
        async for piece in pieces:
            if isinstance(piece, Verbatim):
                verbatim = True
                yield own.event(piece.data, piece.document)
            elif isinstance(piece, Text):
                texts.append(piece.text)
                yield encoder.text(piece.text)
    end = exchange.passed_on_end("".join(texts) or "x" * own.characters)
    usage = _usage(end)
    yield own.end(usage) if verbatim else encoder.end(end.finish_reason, usage)


def _usage(end: End) -> dict[str, Any]:
    usage = end.usage
    return usage_body(usage.prompt, usage.completion, cached=usage.cached, estimated=end.estimated)
