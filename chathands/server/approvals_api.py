"""Approvals over HTTP: what waits for a yes, how a call stands, and the decision.

GET  /approvals         those this token may decide, and its own
GET  /approvals/{id}    how one stands
POST /approvals/{id}    {"decision": "yes"} or {"decision": "no"}
"""

from __future__ import annotations

import time
from typing import Any

from fastapi import FastAPI, Request
from fastapi.responses import Response

from chathands.agent.desk import Desk
from chathands.agent.tickets import Asked, Fault, NoTicket, asked_of, is_own, may_decide_ticket
from chathands.server.auth import Auth, Client
from chathands.server.errors import ApiError, json_response
from chathands.server.reading import read_object
from chathands.server.tools_api import no_ticket

BODY_CAP = 4096
"""Bytes; a decision is one word."""


class ApprovalsApi:
    def __init__(self, desk: Desk, auth: Auth) -> None:
        self._desk = desk
        self._auth = auth

    def add_to(self, app: FastAPI) -> None:
        """Add the routes."""
        app.add_route("/approvals", self._list, methods=["GET"])
        app.add_route("/approvals/{ticket_id}", self._one, methods=["GET"])
        app.add_route("/approvals/{ticket_id}", self._decide, methods=["POST"])

    async def _list(self, request: Request) -> Response:
        client = self._auth.client(request)
        shown = [
            self._shown(asked, client)
            for asked in await self._desk.waiting()
            if is_own(asked, client.caller) or self._why_not(asked, client) is None
        ]
        return json_response({"approvals": shown})

    async def _one(self, request: Request) -> Response:
        client = self._auth.client(request)
        asked = await self._asked(request, client)
        return json_response(self._shown(asked, client))

    async def _decide(self, request: Request) -> Response:
        client = self._auth.client(request)
        self._auth.count(client)
        body = await read_object(request, BODY_CAP)
        decision = body.get("decision")
        if decision not in ("yes", "no") or len(body) > 1:
            fault = {
                "path": "decision",
                "message": "`decision` must be yes or no, and nothing else",
            }
            raise ApiError(
                400, "invalid_arguments", 'send {"decision": "yes"} or {"decision": "no"}',
                about={"fields": [fault]},
            )  # fmt: skip
        asked = await self._asked(request, client)
        decided = await self._desk.tickets.decide(
            asked.ticket.id,
            approve=decision == "yes",
            by=client.caller,
            may_approve=client.may_approve,
            policy=self._desk.policy,
        )
        if isinstance(decided, NoTicket):
            raise no_ticket(decided)
        return json_response(self._shown(asked_of(decided), client))

    async def _asked(self, request: Request, client: Client) -> Asked:
        """One that the token asked for, or that tokens like it decide; for others there is none."""
        row = await self._desk.ticket(request.path_params["ticket_id"])
        if row is None:
            raise no_ticket(NoTicket(Fault.UNKNOWN))
        asked = asked_of(row)
        if not is_own(asked, client.caller) and not client.may_approve:
            raise no_ticket(NoTicket(Fault.NOT_YOURS, row, "this token may not approve"))
        return asked

    def _why_not(self, asked: Asked, client: Client) -> str | None:
        return may_decide_ticket(
            asked,
            client.caller,
            self._desk.policy,
            approve=True,
            may_approve=client.may_approve,
        )

    def _shown(self, asked: Asked, client: Client) -> dict[str, Any]:
        row = asked.ticket
        state = "expired" if row.expired(time.time()) else _STATES[row.state]
        return {
            "id": row.id,
            "number": row.number,
            "status": state,
            "tool": asked.call.name,
            "target": asked.target,
            "shown": asked.shown,
            "reason": asked.reason,
            "caller": {"platform": row.platform, "name": asked.caller.name or row.asker},
            "run": asked.run_id,
            "created": round(row.created, 3),
            "expires_at": round(row.expires_at, 3),
            "decided_by": row.decided_by,
            "yours_to_decide": state == "waiting" and self._why_not(asked, client) is None,
        }


_STATES = {"waiting": "waiting", "yes": "approved", "no": "denied", "used": "used"}
