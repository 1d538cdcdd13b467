"""MCP over streamable HTTP at /mcp, behind the same tokens as the tool API."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.auth.provider import AccessToken
from mcp.server.context import ServerRequestContext
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from starlette.requests import Request
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from chathands.agent.desk import Desk
from chathands.server.auth import Auth, Client
from chathands.server.errors import ApiError, error_response
from chathands.server.mcp_server import McpFace, Visitor
from chathands.toolbox import Registry

if TYPE_CHECKING:
    from fastapi import FastAPI

PATH = "/mcp"
PLATFORM = "mcp"

SESSION_SECONDS = 1800.0
"""A session without a request is forgotten after half an hour; clients then begin a new one."""
MOST_SESSIONS = 500
"""Of all callers; each is two tasks and a few kilobytes."""

_CLIENT = "chathands.client"


@asynccontextmanager
async def mount_mcp(
    app: FastAPI, desk: Desk, registry: Registry, auth: Auth, *, body_kb: int
) -> AsyncIterator[McpFace]:
    """Serve MCP at /mcp of `app` while entered."""

    def visitor_of(ctx: ServerRequestContext[Any, Any]) -> Visitor:
        assert ctx.request is not None  # HTTP always has one
        client: Client = ctx.request.scope[_CLIENT]
        caller = replace(client.caller, platform=PLATFORM)
        return Visitor(caller, client.allows, lambda: auth.count(client))

    face = McpFace(desk, registry, visitor_of)
    manager = StreamableHTTPSessionManager(
        app=face.server,
        max_request_body_size=body_kb * 1024,
        session_idle_timeout=SESSION_SECONDS,
        max_sessions=MOST_SESSIONS,
    )
    app.router.routes.append(Route(PATH, _Door(manager, auth), methods=["GET", "POST", "DELETE"]))
    ready, over = asyncio.Event(), asyncio.Event()

    async def serve() -> None:
        async with manager.run(), face.watching():
            ready.set()
            await over.wait()

    # A task of its own: the package has to leave where it entered, and whoever mounts may not.
    task = asyncio.create_task(serve(), name="chathands-mcp")
    waiting = asyncio.ensure_future(ready.wait())
    await asyncio.wait({task, waiting}, return_when=asyncio.FIRST_COMPLETED)
    waiting.cancel()
    try:
        yield face
    finally:
        over.set()
        await task


class _Door:
    """Lets in who has a token, and binds each session to it."""

    def __init__(self, manager: StreamableHTTPSessionManager, auth: Auth) -> None:
        self._manager = manager
        self._auth = auth

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        try:
            client = self._auth.client(request)
        except ApiError as error:
            await error_response(request, error)(scope, receive, send)
            return
        # A session that one token has begun does not exist for another one.
        token = AccessToken(token="", client_id=client.name, scopes=[])
        inner = {**scope, _CLIENT: client, "user": AuthenticatedUser(token)}
        await self._manager.handle_request(inner, receive, send)
