"""The FastAPI application: routes, tokens, limits. What a request means is in gateway.py."""

from __future__ import annotations

import asyncio
import hmac
import time
from collections import deque
from collections.abc import Coroutine, Mapping
from typing import Any

from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse, Response, StreamingResponse
from starlette.requests import ClientDisconnect

from chathands.protocols.openai import error_body, to_json
from chathands.server.gateway import Exchange, Refused, read_body
from chathands.settings import ApiToken
from chathands.upstreams.base import Upstream
from chathands.upstreams.ways import Ways

BODY_CAP = 8 * 1024 * 1024
"""Bytes of a request; a full 200k-token conversation is about 1 MB, pictures travel as URLs."""

CLIENT_CLOSED = 499
"""Nginx's status for a client that hung up; nobody reads it, but access logs show it."""

REQUEST_SECONDS = 300.0
"""An agent's client waits this long by default; the SDKs give up at 600."""


def create_app(
    upstream: Upstream,
    *,
    tokens: Mapping[str, ApiToken] | None = None,
    seconds: float = REQUEST_SECONDS,
    ways: Ways | None = None,
) -> FastAPI:
    """The gateway over one upstream, asked in one of its `ways` (None: emulated).

    Without `tokens` any key is accepted: the caller must then bind to loopback only.
    """
    app = FastAPI(title="ChatHands", docs_url=None, redoc_url=None, openapi_url=None)
    started = int(time.time())

    asked = ways or Ways()
    recent: dict[str, deque[float]] = {}

    def check_token(request: Request, *, counts: bool = False) -> None:
        """Raises Refused: no such token, not for this model, or (when it `counts`) too often."""
        if not tokens:
            return
        given = request.headers.get("authorization", "").removeprefix("Bearer ").strip()
        # Every token is compared, so that the time tells nothing.
        good = [t for t in tokens if hmac.compare_digest(given.encode(), t.encode())]
        if not good:
            raise Refused(401, error_body("unknown token", "authentication_error"))
        token = tokens[good[0]]
        if token.models and upstream.name not in token.models:
            raise Refused(403, error_body("this token is not for this model", "permission_error"))
        if not counts:
            return
        now, times = time.monotonic(), recent.setdefault(good[0], deque())
        while times and now - times[0] > 60:
            times.popleft()
        if len(times) >= token.rate:
            message = f"more than {token.rate} requests a minute with this token"
            raise Refused(429, error_body(message, "rate_limit_error"))
        times.append(now)

    async def read(request: Request) -> bytes:
        body = bytearray()
        async for chunk in request.stream():
            body += chunk
            if len(body) > BODY_CAP:
                message = f"the body is larger than {BODY_CAP} bytes"
                raise Refused(413, error_body(message, "invalid_request_error"))
        return bytes(body)

    @app.exception_handler(Refused)
    async def refused(_: Request, error: Refused) -> JSONResponse:
        return JSONResponse(error.body, error.status)

    @app.exception_handler(ClientDisconnect)
    async def hung_up(_: Request, __: ClientDisconnect) -> Response:
        return Response(status_code=CLIENT_CLOSED)  # in the middle of its own request

    @app.get("/health")
    async def health() -> dict[str, str]:
        return {"status": "ok"}

    @app.get("/v1/models")
    async def models(request: Request) -> dict[str, object]:
        check_token(request)
        model = {
            "id": upstream.name,
            "object": "model",
            "created": started,
            "owned_by": "chathands",
        }
        return {"object": "list", "data": [model]}

    @app.post("/v1/chat/completions")
    async def chat_completions(request: Request) -> Response:
        check_token(request, counts=True)
        exchange = Exchange(read_body(await read(request)), upstream, seconds, ways=asked)
        if exchange.request.stream:
            return StreamingResponse(exchange.stream(), media_type="text/event-stream")
        reply = await _while_connected(request, exchange.complete())
        if reply is None:
            return Response(status_code=CLIENT_CLOSED)
        return Response(to_json(reply), media_type="application/json")

    return app


async def _while_connected(
    request: Request, work: Coroutine[Any, Any, dict[str, object]]
) -> dict[str, object] | None:
    """The result of `work`; None, and `work` cancelled, when the client hangs up first.

    The server cancels only streams by itself. A model with one slot would otherwise go on writing
    for minutes for a client that has given up and asked again.
    """

    async def hung_up() -> None:
        while (await request.receive())["type"] != "http.disconnect":
            pass

    working, watching = asyncio.ensure_future(work), asyncio.ensure_future(hung_up())
    try:
        await asyncio.wait({working, watching}, return_when=asyncio.FIRST_COMPLETED)
        return working.result() if working.done() else None
    finally:
        working.cancel()
        watching.cancel()
        await asyncio.wait({working, watching})
