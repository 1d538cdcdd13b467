"""The tool API: what there is, and calls. Every call goes through the desk to the executor.

GET  /tools           GET /tools/{name}      the tools this token may use
POST /tools/{name}    arguments in, result out; see docs/tool_server.md for every status
GET  /jobs/{id}       DELETE /jobs/{id}      calls that go on in the background
GET  /openapi.json    all of it with the tools' own schemas
"""

from __future__ import annotations

import asyncio
import base64
import logging
import math
import mimetypes
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from fastapi import FastAPI, Request
from fastapi.responses import Response

from chathands.agent.desk import Answered, AsksFirst, Begun, Desk, Refusal
from chathands.agent.tickets import Fault, NoTicket
from chathands.conversation import Status, ToolSpec
from chathands.server.auth import Auth, Client
from chathands.server.errors import ApiError, json_response
from chathands.server.jobs import Job, Jobs, Reply
from chathands.server.once import NotDone, Once, key_of, request_hash
from chathands.server.openapi import document
from chathands.server.reading import read_object
from chathands.server.version import program_version

if TYPE_CHECKING:
    from chathands.agent.toolbox import Toolbox
    from chathands.settings import Settings

_log = logging.getLogger(__name__)

TICKET_HEADER = "approval-ticket"
LONGEST_TICKET = 64
"""Characters; ours have 24, and no more is looked up in the store."""

POLL_SECONDS = 2
"""What a client that waits for a person or a job is told to wait before it looks again."""

CLIENT_CLOSED = 499

_FAULT_STATUS = {
    Fault.UNKNOWN: 404,
    Fault.OTHER_CALLER: 403,
    Fault.OTHER_CALL: 409,
    Fault.WAITING: 409,
    Fault.DENIED: 403,
    Fault.EXPIRED: 410,
    Fault.USED: 409,
    Fault.CHANGED: 409,
    Fault.FLOOD: 429,
    Fault.DECIDED: 409,
    Fault.NOT_YOURS: 403,
}
_ENDS: Mapping[str, tuple[int, str]] = {
    "forbidden": (403, ""),
    "denied": (403, ""),
    "undecided": (403, ""),
    "invalid_arguments": (400, ""),
    "unknown_tool": (404, "there is no such tool"),
    "rate": (429, "this tool is used too often; see Retry-After"),
    "quota": (429, "the quota of this tool is used up; see Retry-After"),
    "busy": (503, "too many calls of this tool run; see Retry-After"),
    "breaker": (503, "this tool keeps failing and is not called for a while; see Retry-After"),
    "stuck": (503, "calls of this tool hang; an admin has to look at it"),
    "audit": (503, "the audit trail cannot be written, so that nothing is changed"),
    "timeout": (504, "the tool did not answer in time"),
    "too_late": (504, "there was no time left to run the tool"),
    "unknown": (502, "the side effect may have happened; do not repeat it blindly"),
}
"""Why a call is not `ok` → status and message (empty: the sentence). All else is a tool's answer,
200: that a sheet is not there is no error of the request."""

_REFUSAL_STATUS = {"unknown_tool": 404, "forbidden": 403, "invalid_arguments": 400}


class ToolsApi:
    """Serves one toolbox. Mount it with `add_to`; end it with `aclose()`."""

    def __init__(self, toolbox: Toolbox, settings: Settings, auth: Auth) -> None:
        self.desk = Desk(toolbox.executor, toolbox.registry, toolbox.store, settings)
        self.jobs = Jobs(keep=settings.api.job_seconds)
        self._once = Once(toolbox.store.idempotency)
        self._auth = auth
        self._cap = settings.api.body_kb * 1024
        self._job_after = settings.api.job_after
        self._settling: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin with what is done beside the calls."""
        self._settling = asyncio.create_task(
            self.desk.settle_forever(), name="chathands-settle-tickets"
        )

    async def aclose(self) -> None:
        """End what runs; side effects that had started are recorded as unknown."""
        await self.jobs.aclose()
        if self._settling is not None:
            self._settling.cancel()
            await asyncio.wait({self._settling})

    def add_to(self, app: FastAPI) -> None:
        """Add the routes."""
        routes: list[tuple[str, str, Callable[..., Any]]] = [
            ("/tools", "GET", self._list),
            ("/tools/{name}", "GET", self._one),
            ("/tools/{name}", "POST", self._call),
            ("/jobs/{job_id}", "GET", self._job),
            ("/jobs/{job_id}", "DELETE", self._cancel),
            ("/openapi.json", "GET", self._openapi),
        ]
        for path, method, endpoint in routes:
            app.add_route(path, endpoint, methods=[method])

    # --- what there is

    async def _list(self, request: Request) -> Response:
        client = self._auth.client(request)
        specs = self.desk.visible(client.caller, client.allows)
        return json_response({"tools": [self._shown(spec) for spec in specs]})

    async def _one(self, request: Request) -> Response:
        client = self._auth.client(request)
        found = self.desk.spec(client.caller, client.allows, request.path_params["name"])
        if isinstance(found, Refusal):
            raise _refused(found)
        return json_response(self._shown(found[1]))

    async def _openapi(self, request: Request) -> Response:
        client = self._auth.client(request)
        return json_response(
            document(self.desk.visible(client.caller, client.allows), program_version())
        )

    def _shown(self, spec: ToolSpec) -> dict[str, Any]:
        asks = self.desk.policy.approval_reason(spec, read_foreign=False) is not None
        return {
            "name": spec.name,
            "description": spec.description,
            "parameters": spec.parameters,
            "side_effect": spec.side_effect,
            "audience": spec.audience,
            "approval": asks,
            "foreign": spec.foreign,
            "deterministic": spec.deterministic,
            "version": spec.version,
            "deprecated": spec.deprecated,
        }

    # --- calls

    async def _call(self, request: Request) -> Response:
        client = self._auth.client(request)
        self._auth.count(client)
        ticket = _ticket_of(request)
        key = key_of(request)
        arguments = await read_object(request, self._cap)
        begun = await self.desk.begin(
            client.caller, client.allows, request.path_params["name"], arguments, strict=True
        )
        if isinstance(begun, Refusal):
            raise _refused(begun)
        asks = self.desk.asks_first(begun) and ticket is None
        in_background = "respond-async" in _preferences(request) and not asks
        if in_background and not self.jobs.room(client.name):
            raise ApiError(
                429, "too_many_jobs", "too many jobs of this token run",
                headers={"retry-after": str(POLL_SECONDS)},
            )  # fmt: skip
        task = self.jobs.call(asyncio.ensure_future(self._carry_out(client, begun, ticket, key)))
        if in_background:
            return self._accepted(client, begun, task)
        return await self._answer(request, client, begun, task)

    async def _answer(
        self, request: Request, client: Client, begun: Begun, task: asyncio.Task[Reply]
    ) -> Response:
        """The call's answer if it comes soon, else a job; when the client has gone, a read ends
        with it, and what may change something goes on."""
        watching = asyncio.ensure_future(_hung_up(request))
        try:
            await asyncio.wait(
                {task, watching}, timeout=self._job_after, return_when=asyncio.FIRST_COMPLETED
            )
            if not task.done() and watching.done():
                if begun.reads:
                    task.cancel()
                return Response(status_code=CLIENT_CLOSED)
            if not task.done():
                if self.jobs.room(client.name):
                    return self._accepted(client, begun, task)
                await asyncio.wait({task})
        finally:
            watching.cancel()
        if task.cancelled():  # the server is going down
            raise ApiError(503, "stopping", "the server is stopping; what had started is recorded")
        reply = task.result()
        return json_response(reply.body, reply.status, reply.headers)

    def _accepted(self, client: Client, begun: Begun, task: asyncio.Task[Reply]) -> Response:
        job = self.jobs.add(task, client.name, begun.spec.name, effect=not begun.reads)
        headers = {"location": f"/jobs/{job.id}", "retry-after": str(POLL_SECONDS)}
        return json_response(job.view(self.jobs.keep), 202, headers)

    async def _carry_out(
        self, client: Client, begun: Begun, ticket: str | None, key: str | None
    ) -> Reply:
        async def work() -> Reply:
            answer = await self.desk.run(begun, ticket)
            reply = _reply(answer, begun)
            if not isinstance(answer, Answered) or not answer.started:
                raise NotDone(reply)
            return reply

        try:
            if key is None or begun.reads:
                return await work()
            request = request_hash(begun.spec.name, begun.call.arguments)
            return await self._once.do(client.name, key, request, work)
        except NotDone as end:
            return end.reply

    # --- jobs

    async def _job(self, request: Request) -> Response:
        job = self._own_job(request)
        running = not job.task.done()
        headers = {"retry-after": str(POLL_SECONDS)} if running else {}
        return json_response(job.view(self.jobs.keep), 200, headers)

    async def _cancel(self, request: Request) -> Response:
        job = self._own_job(request)
        await self.jobs.cancel(job)
        return json_response(job.view(self.jobs.keep))

    def _own_job(self, request: Request) -> Job:
        client = self._auth.client(request)
        job = self.jobs.get(request.path_params["job_id"], client.name)
        if job is None:
            raise ApiError(404, "unknown_job", "there is no such job, or its result has expired")
        return job


async def _hung_up(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass


def _ticket_of(request: Request) -> str | None:
    given = request.headers.getlist(TICKET_HEADER)
    if not given:
        return None
    if len(given) > 1 or not 0 < len(given[0].strip()) <= LONGEST_TICKET:
        raise ApiError(400, "invalid_ticket", "send one Approval-Ticket, as it was given")
    return given[0].strip()


def _preferences(request: Request) -> set[str]:
    """Of RFC 7240, without their parameters."""
    given = ",".join(request.headers.getlist("prefer"))
    return {part.partition(";")[0].strip().lower() for part in given.split(",")}


def _refused(refusal: Refusal) -> ApiError:
    about: dict[str, Any] = {}
    if refusal.fields:
        about["fields"] = [{"path": f.path, "message": f.message} for f in refusal.fields]
    if refusal.near:
        about["near"] = list(refusal.near)
    return ApiError(_REFUSAL_STATUS[refusal.code], refusal.code, refusal.message, about=about)


def no_ticket(fault: NoTicket) -> ApiError:
    """The error for a ticket that does not do."""
    row = fault.ticket
    about: dict[str, Any] = {}
    headers = {}
    if row is not None and fault.fault is not Fault.NOT_YOURS:
        about["ticket"] = row.id
    if fault.fault in (Fault.WAITING, Fault.FLOOD):
        headers["retry-after"] = str(POLL_SECONDS)
    return ApiError(
        _FAULT_STATUS[fault.fault], fault.fault, fault.message, headers=headers, beside=about
    )


def _reply(answer: Answered | AsksFirst | NoTicket, begun: Begun) -> Reply:
    if isinstance(answer, NoTicket):
        error = no_ticket(answer)
    elif isinstance(answer, AsksFirst):
        error = _asks_first(answer)
    else:
        return _answered(answer, begun)
    return Reply(error.status, error.body, error.headers)


def _asks_first(answer: AsksFirst) -> ApiError:
    row = answer.ticket
    url = f"/approvals/{row.id}"
    approval = {
        "number": row.number, "expires_at": round(row.expires_at, 3), "url": url,
        "reason": answer.reason,
    }  # fmt: skip
    return ApiError(
        409, "approval_required",
        "a person has to approve this call; repeat it with the header Approval-Ticket",
        headers={"location": url, "retry-after": str(POLL_SECONDS)},
        beside={"ticket": row.id, "approval": approval},
    )  # fmt: skip


def _answered(answer: Answered, begun: Begun) -> Reply:
    """200 says that the tool gave its answer, which may be that it failed; everything that did not
    come to an answer is an error."""
    result = answer.result
    body: dict[str, Any] = {
        "status": result.status.value,
        "content": result.content,
        "cost_ms": result.cost_ms,
        "truncated": result.truncated,
        "tool": begun.spec.name,
        "run": answer.run_id,
        "foreign": result.foreign,
        "told": list(answer.told),
        "files": [_file(*file) for file in answer.files],
    }
    code, message = _ENDS.get(answer.why.code if answer.why else "", (200, ""))
    if result.status is Status.UNKNOWN and code != 504:
        code, message = 502, _ENDS["unknown"][1]
    headers: dict[str, str] = {}
    if answer.why is not None and answer.why.retry_after is not None:
        headers["retry-after"] = str(max(1, math.ceil(answer.why.retry_after)))
    if code != 200 and answer.why is not None:
        body["error"] = {"code": answer.why.code, "message": message or result.content}
    return Reply(code, body, headers)


def _file(name: str, data: bytes) -> dict[str, Any]:
    kind = mimetypes.guess_type(name)[0] or "application/octet-stream"
    return {
        "name": name,
        "media_type": kind,
        "size": len(data),
        "data": base64.b64encode(data).decode("ascii"),
    }
