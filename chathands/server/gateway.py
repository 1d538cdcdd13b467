"""What all routes of the gateway share: who may ask which model, and a client that hangs up."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, NamedTuple, TypeVar

from starlette.requests import Request

from chathands.server.auth import Auth, Client
from chathands.server.errors import ApiError
from chathands.server.metrics import Measured, Metrics
from chathands.upstreams.base import Upstream
from chathands.upstreams.router import Router
from chathands.upstreams.ways import Ways

BODY_CAP = 8 * 1024 * 1024
"""Bytes of a request; a full 200k-token conversation is about 1 MB, pictures travel as URLs."""

CLIENT_CLOSED = 499
"""Nginx's status for a client that hung up; nobody reads it, but access logs show it."""

REQUEST_SECONDS = 300.0
"""An agent's client waits this long by default; the SDKs give up at 600."""

T = TypeVar("T")


class Served(NamedTuple):
    """The upstream that answers for a model's name, and in which ways it is asked."""

    upstream: Upstream
    ways: Ways


class Gateway:
    """Models behind one door. Without a router it answers that there is no model."""

    def __init__(
        self, door: Auth, router: Router | None, *, seconds: float = REQUEST_SECONDS
    ) -> None:
        self.seconds = seconds
        """For one request together, corrections included."""
        self.router = router
        self.metrics = Metrics()
        self._door = door
        if router is not None:
            router.watch = self.metrics

    def enter(self, request: Request, *, counts: bool = True) -> Client:
        """Who asks; with `counts` it is one more request of its rate.

        Raises ApiError: no such token, too often, or there is no model at all.
        """
        client = self._door.client(request)
        if self.router is None:
            raise ApiError(503, "no_model", "no model is configured; only the tool API is served")
        if counts:
            self._door.count(client)
        return client

    def served(self, client: Client, model: str) -> Served:
        """What answers for this name. Raises ApiError: no such model, or not for this token."""
        assert self.router is not None  # `enter` has seen to it
        route = self.router.route(model)
        # A token for some models does not learn which others there are.
        if client.models and (route is None or route.name not in client.models):
            raise ApiError(403, "forbidden", "this token is not for this model")
        if route is None:
            raise ApiError(404, "model_not_found", "there is no such model; see GET /v1/models")
        return Served(Measured(route, self.metrics), route.ways)

    def models(self, client: Client) -> list[str]:
        """The names that this client may use, of those that are listed."""
        assert self.router is not None
        return [name for name in self.router.names if not client.models or name in client.models]


async def while_connected(request: Request, work: Coroutine[Any, Any, T]) -> T | None:
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
