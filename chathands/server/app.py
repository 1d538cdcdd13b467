"""The FastAPI application: gateway, tool API and approvals behind one door.

What a request means is in gateway.py, tools_api.py and approvals_api.py; who may in auth.py.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
import time
from collections.abc import Coroutine, Mapping
from typing import TYPE_CHECKING, Any

from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse, Response, StreamingResponse
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect

from chathands.errors import StoreError
from chathands.protocols.openai import to_json
from chathands.server.auth import Auth
from chathands.server.errors import ApiError, error_response
from chathands.server.gateway import Exchange, Refused, read_body
from chathands.server.reading import read_capped
from chathands.settings import ApiToken
from chathands.upstreams.base import Upstream
from chathands.upstreams.ways import Ways

if TYPE_CHECKING:
    from chathands.server.tools_api import ToolsApi

_log = logging.getLogger(__name__)

BODY_CAP = 8 * 1024 * 1024
"""Bytes of a request; a full 200k-token conversation is about 1 MB, pictures travel as URLs."""

CLIENT_CLOSED = 499
"""Nginx's status for a client that hung up; nobody reads it, but access logs show it."""

REQUEST_SECONDS = 300.0
"""An agent's client waits this long by default; the SDKs give up at 600."""


def create_app(
    upstream: Upstream | None,
    *,
    tokens: Mapping[str, ApiToken] | None = None,
    seconds: float = REQUEST_SECONDS,
    ways: Ways | None = None,
    auth: Auth | None = None,
    tools: ToolsApi | None = None,
) -> FastAPI:
    """The gateway over one upstream, asked in one of its `ways` (None: emulated), and the tool API.

    Without `upstream` the gateway answers that there is no model; without `tools` there is no tool
    API. Without `tokens` (or an `auth` made of them, which `tools` then shares) any key is
    accepted: the caller must then bind to loopback only.
    """
    app = FastAPI(title="ChatHands", docs_url=None, redoc_url=None, openapi_url=None)
    door = auth or Auth(tokens)
    _answer_errors(app)
    if tools is not None:
        from chathands.server.approvals_api import ApprovalsApi

        tools.add_to(app)
        ApprovalsApi(tools.desk, door).add_to(app)

    @app.get("/health")
    async def health() -> dict[str, str]:
        return {"status": "ok"}

    _add_gateway(app, door, upstream, seconds, ways or Ways())
    return app


def _add_gateway(
    app: FastAPI, door: Auth, upstream: Upstream | None, seconds: float, ways: Ways
) -> None:
    started = int(time.time())

    def model_for(request: Request, *, counts: bool = False) -> Upstream:
        """Raises ApiError: no such token, not for this model, (when it `counts`) too often, or
        there is no model."""
        client = door.client(request)
        if upstream is None:
            raise ApiError(503, "no_model", "no model is configured; only the tool API is served")
        if client.models and upstream.name not in client.models:
            raise ApiError(403, "forbidden", "this token is not for this model")
        if counts:
            door.count(client)
        return upstream

    @app.get("/v1/models")
    async def models(request: Request) -> dict[str, object]:
        model = {
            "id": model_for(request).name,
            "object": "model",
            "created": started,
            "owned_by": "chathands",
        }
        return {"object": "list", "data": [model]}

    @app.post("/v1/chat/completions")
    async def chat_completions(request: Request) -> Response:
        model = model_for(request, counts=True)
        body = read_body(await read_capped(request, BODY_CAP))
        exchange = Exchange(body, model, seconds, ways=ways)
        if exchange.request.stream:
            return StreamingResponse(exchange.stream(), media_type="text/event-stream")
        reply = await _while_connected(request, exchange.complete())
        if reply is None:
            return Response(status_code=CLIENT_CLOSED)
        return Response(to_json(reply), media_type="application/json")


def _answer_errors(app: FastAPI) -> None:
    """Every end of a request has the shape of its face, and none shows what went wrong inside."""

    @app.exception_handler(Refused)
    async def refused(_: Request, error: Refused) -> JSONResponse:
        return JSONResponse(error.body, error.status)

    @app.exception_handler(ApiError)
    async def api_error(request: Request, error: ApiError) -> Response:
        return error_response(request, error)

    @app.exception_handler(HTTPException)
    async def no_route(request: Request, error: HTTPException) -> Response:
        codes = {404: "not_found", 405: "method_not_allowed"}
        code = codes.get(error.status_code, "bad_request")
        message = "there is nothing at this path" if error.status_code == 404 else error.detail
        return error_response(
            request, ApiError(error.status_code, code, message, headers=error.headers)
        )

    @app.exception_handler(StoreError)
    async def no_store(request: Request, error: StoreError) -> Response:
        _log.error("%s %s: %s", request.method, request.url.path, error)
        return error_response(
            request, ApiError(503, "store_unavailable", "the state database cannot be used now")
        )

    @app.exception_handler(ClientDisconnect)
    async def hung_up(_: Request, __: ClientDisconnect) -> Response:
        return Response(status_code=CLIENT_CLOSED)  # in the middle of its own request

    @app.exception_handler(Exception)
    async def broken(request: Request, error: Exception) -> Response:
        # Starlette raises it again behind this answer, and the server logs it with its traceback.
        reference = secrets.token_hex(4)
        _log.error("%s %s: reference %s", request.method, request.url.path, reference)
        return error_response(
            request, ApiError(500, "internal", f"internal error, reference {reference}")
        )


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
