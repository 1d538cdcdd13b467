"""The FastAPI application: gateway, tool API and approvals behind one door.

What a request means is in chat_api.py, tools_api.py and approvals_api.py; who may in auth.py.
"""

from __future__ import annotations

import logging
import secrets
from collections.abc import Mapping
from typing import TYPE_CHECKING

from fastapi import FastAPI, Request
from fastapi.responses import Response
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect

from chathands.errors import StoreError
from chathands.server.auth import Auth
from chathands.server.chat_api import ChatApi
from chathands.server.errors import ApiError, error_response
from chathands.server.gateway import CLIENT_CLOSED, REQUEST_SECONDS, Gateway
from chathands.server.messages_api import MessagesApi
from chathands.server.models_api import ModelsApi, WatchApi
from chathands.server.responses_api import ResponsesApi
from chathands.settings import ApiToken
from chathands.upstreams.base import Upstream
from chathands.upstreams.router import Router
from chathands.upstreams.ways import Ways

if TYPE_CHECKING:
    from chathands.server.tools_api import ToolsApi
    from chathands.store.responses import Responses

_log = logging.getLogger(__name__)


def create_app(
    upstream: Upstream | Router | None,
    *,
    tokens: Mapping[str, ApiToken] | None = None,
    seconds: float = REQUEST_SECONDS,
    ways: Ways | None = None,
    auth: Auth | None = None,
    tools: ToolsApi | None = None,
    responses: Responses | None = None,
) -> FastAPI:
    """The gateway over several upstreams, or one, asked in one of its `ways` (None: emulated), and
    the tool API.

    Without `upstream` the gateway answers that there is no model; without `tools` there is no tool
    API; without `responses` none is stored. Without `tokens` (or an `auth` made of them, which
    `tools` then shares) any key is accepted: the caller must then bind to loopback only.
    """
    app = FastAPI(title="ChatHands", docs_url=None, redoc_url=None, openapi_url=None)
    door = auth or Auth(tokens)
    _answer_errors(app)
    if tools is not None:
        from chathands.server.approvals_api import ApprovalsApi

        tools.add_to(app)
        ApprovalsApi(tools.desk, door).add_to(app)

    router = upstream if isinstance(upstream, Router | None) else Router.only(upstream, ways)
    gateway = Gateway(door, router, seconds=seconds)
    for api in (
        ModelsApi(gateway),
        WatchApi(gateway, door),
        ChatApi(gateway),
        MessagesApi(gateway),
        ResponsesApi(gateway, responses),
    ):
        api.add_to(app)
    return app


def _answer_errors(app: FastAPI) -> None:
    """Every end of a request has the shape of its face, and none shows what went wrong inside."""

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
