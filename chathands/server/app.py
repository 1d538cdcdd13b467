"""The FastAPI application: routes, tokens, limits. What a request means is in gateway.py."""

from __future__ import annotations

import hmac
import time
from collections.abc import Mapping

from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse, Response, StreamingResponse

from chathands.protocols.openai import error_body
from chathands.server.gateway import Exchange, Refused, read_body
from chathands.settings import ApiToken
from chathands.upstreams.base import Upstream

BODY_CAP = 8 * 1024 * 1024
"""Bytes of a request; a full 200k-token conversation is about 1 MB, pictures travel as URLs."""

REQUEST_SECONDS = 300.0
"""An agent's client waits this long by default; the SDKs give up at 600."""


def create_app(
    upstream: Upstream,
    *,
    tokens: Mapping[str, ApiToken] | None = None,
    timeout: float = REQUEST_SECONDS,
) -> FastAPI:
    """The gateway over one upstream.

    Without `tokens` any key is accepted: the caller must then bind to loopback only.
    """
    app = FastAPI(title="ChatHands", docs_url=None, redoc_url=None, openapi_url=None)
    started = int(time.time())

    def check_token(request: Request) -> None:
        if not tokens:
            return
        given = request.headers.get("authorization", "").removeprefix("Bearer ").strip()
        # Every token is compared, so that the time tells nothing.
        good = [hmac.compare_digest(given.encode(), token.encode()) for token in tokens]
        if not any(good):
            raise Refused(401, error_body("unknown token", "authentication_error"))

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
        check_token(request)
        exchange = Exchange(read_body(await read(request)), upstream, timeout)
        if exchange.request.stream:
            return StreamingResponse(exchange.stream(), media_type="text/event-stream")
        return JSONResponse(await exchange.complete())

    return app
