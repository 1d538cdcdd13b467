"""GET /v1/models and /v1/models/{model}, GET /health and /health/ready, GET /metrics.

Shapes: https://platform.openai.com/docs/api-reference/models and, for clients that send
`anthropic-version`, https://docs.anthropic.com/en/api/models-list.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from fastapi import FastAPI, Request
from fastapi.responses import Response

from chathands.server.auth import Auth
from chathands.server.errors import ApiError, json_response, speaks_anthropic
from chathands.server.gateway import Gateway
from chathands.server.metrics import CONTENT_TYPE


class ModelsApi:
    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway
        self._started = datetime.now(UTC).replace(microsecond=0)

    def add_to(self, app: FastAPI) -> None:
        """Add the routes."""
        app.add_route("/v1/models", self._list, methods=["GET"])
        app.add_route("/v1/models/{model:path}", self._one, methods=["GET"])

    async def _list(self, request: Request) -> Response:
        client = self._gateway.enter(request, counts=False)
        names = self._gateway.models(client)
        rows = [self._shown(request, name) for name in names]
        if speaks_anthropic(request):
            ends = {
                "first_id": names[0] if names else None,
                "last_id": names[-1] if names else None,
            }
            return json_response({"data": rows, "has_more": False, **ends})
        return json_response({"object": "list", "data": rows})

    async def _one(self, request: Request) -> Response:
        client = self._gateway.enter(request, counts=False)
        name = request.path_params["model"]
        self._gateway.served(client, name)
        return json_response(self._shown(request, name))

    def _shown(self, request: Request, name: str) -> dict[str, Any]:
        if speaks_anthropic(request):
            created = self._started.isoformat().replace("+00:00", "Z")
            return {"type": "model", "id": name, "display_name": name, "created_at": created}
        created = int(self._started.timestamp())
        return {"id": name, "object": "model", "created": created, "owned_by": "chathands"}


class WatchApi:
    """What those who run the gateway look at."""

    def __init__(self, gateway: Gateway, door: Auth) -> None:
        self._gateway = gateway
        self._door = door

    def add_to(self, app: FastAPI) -> None:
        """Add the routes."""
        app.add_route("/health", self._health, methods=["GET"])
        app.add_route("/health/ready", self._ready, methods=["GET"])
        app.add_route("/metrics", self._metrics, methods=["GET"])

    async def _health(self, _: Request) -> Response:
        """Whether the process answers: for whoever restarts it, so that nobody else counts."""
        return json_response({"status": "ok"})

    async def _ready(self, request: Request) -> Response:
        """200 when a request has a chance, else 503; which upstream rests is for those let in."""
        router = self._gateway.router
        members = router.members.values() if router else ()
        ready = router is not None and (
            router.has_own or any(not member.resting for member in members)
        )
        body: dict[str, Any] = {"status": "ready" if ready else "not ready"}
        if self._let_in(request):
            body["upstreams"] = {
                member.name: {
                    "resting_seconds": round(member.resting, 1),
                    "keys": len(member.keys.keys),
                    "keys_resting": member.keys.asleep,
                }
                for member in members
            }
        return json_response(body, 200 if ready else 503)

    async def _metrics(self, request: Request) -> Response:
        self._door.client(request)
        text = self._gateway.metrics.text(self._gateway.router)
        return Response(text, headers={"content-type": CONTENT_TYPE, "cache-control": "no-store"})

    def _let_in(self, request: Request) -> bool:
        try:
            self._door.client(request)
        except ApiError:
            return False
        return True
