"""MCP over streamable HTTP at /mcp, behind the same tokens as the tool API."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.auth.provider import AccessToken
from mcp.server.context import ServerRequestContext
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.routing import Route
from starlette.types import Message, Receive, Scope, Send

from chathands.agent.desk import Desk
from chathands.server.auth import Auth, Client
from chathands.server.errors import ApiError, error_response, too_often
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

MOST_OF_ONE = 50
"""Sessions of one caller, so that one that forgets to end its own does not shut out the others."""

SESSION_HEADER, VERSION_HEADER = "mcp-session-id", "mcp-protocol-version"

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


class Sessions:
    """Who has how many: the package only counts all together. `clock` gives seconds that only go
    forward. What is not used for as long as the package keeps it has ended."""

    def __init__(self, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._used: dict[str, dict[object, float]] = {}

    def begin(self, caller: str) -> object:
        """A place for a session that is about to be opened. Raises ApiError 429."""
        now, mine = self._clock(), self._used.setdefault(caller, {})
        for key in [key for key, used in mine.items() if now - used >= SESSION_SECONDS]:
            del mine[key]
        if len(mine) >= MOST_OF_ONE:
            raise too_often(f"{MOST_OF_ONE} MCP sessions of this token are open; end some", 60)
        place = object()
        mine[place] = now
        return place

    def opened(self, caller: str, place: object, session: str | None) -> None:
        """The session has got its id; None: there is none after all."""
        mine = self._used[caller]
        mine.pop(place, None)
        if session is not None:
            mine[session] = self._clock()

    def used(self, caller: str, session: str, *, ends: bool) -> None:
        mine = self._used.get(caller, {})
        if ends:
            mine.pop(session, None)
        elif session in mine:
            mine[session] = self._clock()


class _Door:
    """Lets in who has a token, and binds each session to it."""

    def __init__(self, manager: StreamableHTTPSessionManager, auth: Auth) -> None:
        self._manager = manager
        self._auth = auth
        self._sessions = Sessions()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        session, place = request.headers.get(SESSION_HEADER), None
        version = request.headers.get(VERSION_HEADER)
        try:
            client = self._auth.client(request)
            # In later revisions of the protocol there are no sessions.
            if session is None and (version is None or version in HANDSHAKE_PROTOCOL_VERSIONS):
                place = self._sessions.begin(client.name)
        except ApiError as error:
            await error_response(request, error)(scope, receive, send)
            return
        opened: str | None = None

        async def seen(message: Message) -> None:
            nonlocal opened
            if place is not None and message["type"] == "http.response.start":
                opened = Headers(raw=message["headers"]).get(SESSION_HEADER)
                if message["status"] >= 400:
                    opened = None
                self._sessions.opened(client.name, place, opened)
            await send(message)

        # A session that one token has begun does not exist for another one.
        token = AccessToken(token="", client_id=client.name, scopes=[])
        inner = {**scope, _CLIENT: client, "user": AuthenticatedUser(token)}
        try:
            await self._manager.handle_request(inner, receive, seen)
        finally:
            if session is not None:
                self._sessions.used(client.name, session, ends=request.method == "DELETE")
            elif place is not None and opened is None:
                self._sessions.opened(client.name, place, None)
