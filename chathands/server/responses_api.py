"""POST /v1/responses, and what can be done with responses that are stored."""

from __future__ import annotations

import logging
import secrets
import time
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any

from fastapi import FastAPI, Request
from fastapi.responses import Response

from chathands.emulation import CallReady, Event, TextDelta
from chathands.emulation.outcome import Text
from chathands.errors import StoreError
from chathands.protocols.openai import BadRequest, error_body, to_json
from chathands.protocols.responses import ResponsesRequest
from chathands.protocols.responses_items import Item, with_ids
from chathands.protocols.responses_reply import (
    ErrorCode,
    EventEncoder,
    Reply,
    usage_body,
    whole,
)
from chathands.protocols.text_out import TextOut
from chathands.server.asking import Ask, End, Failure
from chathands.server.auth import Client
from chathands.server.chat_api import refusal
from chathands.server.errors import json_bytes
from chathands.server.exchange import Exchange
from chathands.server.gateway import BODY_CAP, CLIENT_CLOSED, Gateway, while_connected
from chathands.server.reading import parse_object, read_capped
from chathands.server.responses_history import Missing, item_list, resolved, what_came_before
from chathands.server.streaming import EventStream
from chathands.store.responses import Responses

_log = logging.getLogger(__name__)

_CODES: dict[str, ErrorCode] = {"busy": "rate_limit_exceeded", "request": "invalid_prompt"}


class Asked:
    """A request on its way, and what is kept of it."""

    def __init__(
        self, wire: ResponsesRequest, client: Client, exchange: Exchange, items: list[Item]
    ) -> None:
        self.exchange = exchange
        id = f"resp_{secrets.token_hex(24)}"
        self.reply = Reply(id, int(time.time()), wire.model, wire.echo())
        self.items = with_ids(items, id)
        self.caller = client.name
        self.previous = wire.previous_response_id


class ResponsesApi:
    """`store` is where responses are kept; None: nowhere, and none can be gone on from."""

    def __init__(self, gateway: Gateway, store: Responses | None) -> None:
        self._gateway = gateway
        self._store = store

    def add_to(self, app: FastAPI) -> None:
        """Add the routes."""
        app.add_route("/v1/responses", self._create, methods=["POST"])
        app.add_route("/v1/responses/input_tokens", self._input_tokens, methods=["POST"])
        app.add_route("/v1/responses/{id}", self._get, methods=["GET"])
        app.add_route("/v1/responses/{id}", self._delete, methods=["DELETE"])
        app.add_route("/v1/responses/{id}/input_items", self._input_items, methods=["GET"])

    async def _create(self, request: Request) -> Response:
        try:
            wire, asked = await self._asked(request)
        except BadRequest as error:
            return _bad(error)
        headers = {"x-request-id": f"req_{secrets.token_hex(12)}"}
        if wire.stream:
            encoder = _Encoder(asked.reply)
            return EventStream(self._events(asked, encoder), encoder, headers=headers)
        try:
            body = await while_connected(request, self._whole(asked))
        except Failure as failure:
            return refusal(failure)
        if body is None:
            return Response(status_code=CLIENT_CLOSED)
        return json_bytes(to_json(body).encode(), headers=headers)

    async def _input_tokens(self, request: Request) -> Response:
        try:
            _, asked = await self._asked(request)
        except BadRequest as error:
            return _bad(error)
        counted = {
            "object": "response.input_tokens",
            "input_tokens": asked.exchange.prompt_tokens(),
        }
        return json_bytes(to_json(counted).encode())

    async def _asked(self, request: Request) -> tuple[ResponsesRequest, Asked]:
        """Raises ApiError, BadRequest, StoreError."""
        client = self._gateway.enter(request)
        wire = ResponsesRequest.read(parse_object(await read_capped(request, BODY_CAP)))
        upstream, ways = self._gateway.served(client, wire.model)
        before: list[Item] = []
        if wire.previous_response_id is not None:
            before = await what_came_before(self._store, client.name, wire.previous_response_id)
        items = await resolved(wire.items, before, self._store, client.name)
        wire.check_with([*before, *items])
        ask = Ask(
            wire.conversation([*before, *items]),
            wire.specs,
            wire.choice,
            single=wire.parallel_tool_calls is False,
            sampling=wire.sampling,
            response_format=wire.response_format,
        )
        exchange = Exchange(ask, upstream, self._gateway.seconds, ways=ways)
        asked = Asked(wire, client, exchange, items)
        asked.reply.kept = self._store is not None and wire.store is not False
        return wire, asked

    async def _whole(self, asked: Asked) -> dict[str, Any]:
        if asked.exchange.ask.plain:
            end = [event async for event in _as_it_comes(asked.exchange)][-1]
            assert isinstance(end, End)
        else:
            end = await asked.exchange.complete()
        body = whole(asked.reply, end.text, end.calls, end.finish_reason, _usage(end))
        return await self._kept(asked, body)

    async def _events(self, asked: Asked, encoder: _Encoder) -> AsyncGenerator[str, None]:
        """Ends in `response.completed` or `response.incomplete`, once the response is stored."""
        exchange = asked.exchange
        every = _as_it_comes(exchange) if exchange.ask.plain else exchange.events()
        async with aclosing(every) as events:
            async for event in events:
                if isinstance(event, TextDelta):
                    yield encoder.text(event.text)
                elif isinstance(event, CallReady):
                    yield encoder.call(event.call)
                elif isinstance(event, End):
                    yield encoder.close(event.finish_reason)
                    body = asked.reply.ended(event.finish_reason, _usage(event))
                    yield encoder.end(await self._kept(asked, body))

    async def _kept(self, asked: Asked, body: dict[str, Any]) -> dict[str, Any]:
        """The response, stored if it is to be. An answer that is there is not lost because it
        cannot be: it says so then."""
        if self._store is None or not body["store"]:
            return body
        try:
            kept = await self._store.save(
                asked.caller, body["id"], previous=asked.previous, input=asked.items, body=body
            )
        except StoreError as error:
            _log.error("a response could not be stored: %s", error)
            kept = False
        return body if kept else body | {"store": False}

    # --- stored ones

    async def _get(self, request: Request) -> Response:
        client, id = self._gateway.enter(request), request.path_params["id"]
        if request.query_params.get("stream") == "true":
            return _bad(BadRequest("stream: a stored response is given as a whole", "stream"))
        stored = await self._store.get(client.name, id) if self._store is not None else None
        if stored is None:
            return _bad(Missing.response(id))
        return json_bytes(to_json(stored.body).encode())

    async def _delete(self, request: Request) -> Response:
        client, id = self._gateway.enter(request), request.path_params["id"]
        if self._store is None or not await self._store.delete(client.name, id):
            return _bad(Missing.response(id))
        return json_bytes(to_json({"id": id, "object": "response", "deleted": True}).encode())

    async def _input_items(self, request: Request) -> Response:
        client, id = self._gateway.enter(request), request.path_params["id"]
        stored = await self._store.get(client.name, id) if self._store is not None else None
        if stored is None:
            return _bad(Missing.response(id))
        try:
            listed = item_list(stored.input, request.query_params)
        except BadRequest as error:
            return _bad(error)
        return json_bytes(to_json(listed).encode())


async def _as_it_comes(exchange: Exchange) -> AsyncGenerator[Event | End, None]:
    """A reply to a request without tools: every text at once, and as the model wrote it."""
    out = TextOut(bare_json=exchange.ask.wants_json)
    sent: list[str] = []
    async with aclosing(exchange.passed_on()) as pieces:
        async for piece in pieces:
            if isinstance(piece, Text) and (text := out.feed(piece.text)):
                sent.append(text)
                yield TextDelta(text)
    if rest := out.flush():
        sent.append(rest)
        yield TextDelta(rest)
    yield exchange.passed_on_end("".join(sent))


class _Encoder(EventEncoder):
    """With how it ends where there is no reply."""

    def failed(self, failure: Failure) -> str:
        code = _CODES.get(failure.kind, "server_error")
        closed = self.close_message("incomplete")
        return closed + self.end(self.reply.failed(code, failure.message))

    def refused(self, failure: Failure) -> Response:
        return refusal(failure)


def _bad(error: BadRequest) -> Response:
    missing = error if isinstance(error, Missing) else None
    body = error_body(
        str(error),
        "invalid_request_error",
        param=error.field,
        code=missing.code if missing else None,
    )
    return json_bytes(to_json(body).encode(), missing.status if missing else 400)


def _usage(end: End) -> dict[str, Any]:
    usage = end.usage
    return usage_body(usage.prompt, usage.completion, cached=usage.cached, estimated=end.estimated)
