"""The registry as an MCP server: the tools a caller may use, and calls through the desk.

Transports are in mcp_http.py and cli/mcp.py; both protocol revisions are the `mcp` package's.
"""

from __future__ import annotations

import asyncio
import logging
import math
import secrets
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import anyio
import mcp.types as types
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel.server import NotificationOptions, Server
from mcp.server.models import InitializationOptions
from mcp.server.session import ServerSession
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler, ToolsListChanged

from chathands.agent.desk import Answer, Answered, AsksFirst, Begun, Desk, Refusal
from chathands.agent.tickets import Fault, NoTicket
from chathands.bounded import Bounded
from chathands.conversation import Status, ToolSpec, canonical_json
from chathands.errors import StoreError
from chathands.server.errors import ApiError
from chathands.server.mcp_content import blocks_of
from chathands.server.version import program_version
from chathands.toolbox import Caller, Registry

if TYPE_CHECKING:
    from chathands.agent.toolbox import Toolbox
    from chathands.settings import Settings

_log = logging.getLogger(__name__)

TICKET_KEY = "chathands/ticket"
"""In a call's `_meta`, and as an argument of tools that have none of that name (`approval_ticket`):
the ticket of an approved call. The same call repeated needs neither."""
TICKET_ARGUMENT = "approval_ticket"
ERROR_KEY = "chathands/error"
"""In `_meta` of a result that is an error: its code and what belongs to it."""

PROGRESS_SECONDS = 5.0
"""Between two notes that a call goes on, where the client asked for them: many give up a call that
is silent for a minute."""
LOOK_SECONDS = 0.5
"""Between two looks whether the tools have changed; clients list them again, which nobody waits
for."""
NOTIFY_SECONDS = 5.0
"""For a client to take the news that they have; one that reads nothing must not hold up others."""
UNWIND_SECONDS = 2.0
"""For a cancelled call to be written down; tools have half a second to unwind."""
MOST_RUNNING = 20
"""Calls of one caller at once; as jobs of the tool API."""
MOST_ASKED = 1000
"""Calls that wait for a yes and are known by being repeated."""

_INSTRUCTIONS = (
    "Tools of a ChatHands installation. Some calls need a person's approval: the error names a"
    " ticket; once a person has approved, repeat exactly the same call."
)


@dataclass(frozen=True, slots=True)
class Visitor:
    """Who calls. `count` raises ApiError 429 when they call too often."""

    caller: Caller
    allows: Callable[[str], bool] = lambda _: True
    count: Callable[[], None] = lambda: None


VisitorOf = Callable[[ServerRequestContext[Any, Any]], Visitor]


class McpServer(Server[Any]):
    """Says in the older protocol too that it tells of changes; the package's default is not to."""

    def create_initialization_options(
        self,
        notification_options: NotificationOptions | None = None,
        experimental_capabilities: dict[str, dict[str, Any]] | None = None,
        extensions: dict[str, dict[str, Any]] | None = None,
    ) -> InitializationOptions:
        options = notification_options or NotificationOptions(tools_changed=True)
        return super().create_initialization_options(options, experimental_capabilities, extensions)


class McpFace:
    """Serves one toolbox. `server` is what transports run; keep `watching()` entered meanwhile."""

    def __init__(self, desk: Desk, registry: Registry, visitor_of: VisitorOf) -> None:
        self._desk = desk
        self._registry = registry
        self._visitor_of = visitor_of
        self._bus = InMemorySubscriptionBus()
        self._listen = ListenHandler(self._bus)
        self._sessions: dict[int, ServerSession] = {}
        self._running: dict[asyncio.Task[Answer], str] = {}
        self._asked: Bounded[tuple[str, str, str], str] = Bounded(MOST_ASKED)
        self.server = McpServer(
            "chathands",
            version=program_version(),
            title="ChatHands",
            instructions=_INSTRUCTIONS,
            on_list_tools=self._list,
            on_call_tool=self._call,
            on_subscriptions_listen=self._listen,
        )
        self.server.add_notification_handler(
            "notifications/initialized", types.NotificationParams, self._joined
        )

    @classmethod
    def of(cls, toolbox: Toolbox, settings: Settings, visitor_of: VisitorOf) -> McpFace:
        """With a desk of its own, where no tool API is served beside it."""
        desk = Desk(toolbox.executor, toolbox.registry, toolbox.store, settings)
        return cls(desk, toolbox.registry, visitor_of)

    @property
    def desk(self) -> Desk:
        return self._desk

    @asynccontextmanager
    async def watching(self) -> AsyncIterator[None]:
        """Tell clients when the tools change. At the end running calls are cancelled, and what had
        started is recorded."""
        watch = asyncio.create_task(self._watch(), name="chathands-mcp-changes")
        try:
            yield
        finally:
            watch.cancel()
            self._listen.close()
            for task in self._running:
                task.cancel()
            with anyio.CancelScope(shield=True):
                await asyncio.wait({watch, *self._running}, timeout=UNWIND_SECONDS)

    # --- what there is

    async def _list(
        self, ctx: ServerRequestContext[Any, Any], params: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        visitor = self._visitor_of(ctx)
        specs = self._desk.visible(visitor.caller, visitor.allows)
        return types.ListToolsResult(tools=[self._shown(spec) for spec in specs])

    def _shown(self, spec: ToolSpec) -> types.Tool:
        reads = spec.side_effect == "none"
        asks = self._desk.policy.approval_reason(spec, read_foreign=False) is not None
        return types.Tool(
            name=spec.name,
            description=spec.description,
            input_schema=dict(spec.parameters),
            annotations=types.ToolAnnotations(
                read_only_hint=reads,
                destructive_hint=spec.side_effect in ("outward", "unknown"),
                idempotent_hint=reads,
                open_world_hint=spec.foreign or spec.side_effect in ("outward", "unknown"),
            ),
            _meta={"chathands/side_effect": spec.side_effect, "chathands/approval": asks},
        )

    # --- calls

    async def _call(
        self, ctx: ServerRequestContext[Any, Any], params: types.CallToolRequestParams
    ) -> types.CallToolResult:
        visitor = self._visitor_of(ctx)
        try:
            visitor.count()
        except ApiError as error:
            after = error.headers.get("retry-after", "60")
            return _error(error.code, f"{error.message}; try again in {after} s.")
        if list(self._running.values()).count(visitor.caller.user_id) >= MOST_RUNNING:
            return _error("too_many_calls", f"{MOST_RUNNING} calls of this caller run already.")
        arguments = dict(params.arguments or {})
        given = self._ticket_in(ctx, params.name, arguments)
        try:
            # What calls here is a model like ours: what has one meaning only is put right.
            begun = await self._desk.begin(
                visitor.caller, visitor.allows, params.name, arguments, strict=False
            )
            if isinstance(begun, Refusal):
                return _refused(begun)
            return await self._carry_out(ctx, begun, given)
        except StoreError as error:
            _log.error("mcp %s: %s", params.name, error)
            return _error("store_unavailable", "the state database cannot be used now.")
        except Exception:
            reference = secrets.token_hex(4)
            _log.exception("mcp %s: reference %s", params.name, reference)
            return _error("internal", f"internal error, reference {reference}.")

    async def _carry_out(
        self, ctx: ServerRequestContext[Any, Any], begun: Begun, given: str | None
    ) -> types.CallToolResult:
        key = (begun.caller.user_id, begun.spec.name, canonical_json(dict(begun.call.arguments)))
        ticket = given or self._asked.get(key)
        answer = await self._run(ctx, begun, ticket)
        again = (Fault.EXPIRED, Fault.USED, Fault.UNKNOWN, Fault.CHANGED)
        remembered = given is None and ticket is not None
        if remembered and isinstance(answer, NoTicket) and answer.fault in again:
            answer = await self._run(ctx, begun, None)  # asks anew
        if isinstance(answer, AsksFirst):
            self._asked[key] = answer.ticket.id
        elif not (isinstance(answer, NoTicket) and answer.fault is Fault.WAITING):
            self._asked.pop(key, None)
        return _result(answer)

    async def _run(
        self, ctx: ServerRequestContext[Any, Any], begun: Begun, ticket: str | None
    ) -> Answer:
        """In a task of its own: the package's way to cancel comes again and again until a handler
        has gone, and the executor still has an outcome to write."""
        task = asyncio.create_task(self._desk.run(begun, ticket))
        self._running[task] = begun.caller.user_id
        noting = asyncio.create_task(_progress(ctx, self._desk.seconds(begun)))
        try:
            await asyncio.wait({task})
            if task.cancelled():
                raise StoreError("the server is stopping")
            return task.result()
        finally:
            noting.cancel()
            if not task.done():
                task.cancel()
            with anyio.CancelScope(shield=True):
                await asyncio.wait({task, noting}, timeout=UNWIND_SECONDS)
            del self._running[task]
            if task.done() and not task.cancelled():
                task.exception()

    def _ticket_in(
        self, ctx: ServerRequestContext[Any, Any], name: str, arguments: dict[str, Any]
    ) -> str | None:
        """The ticket the client sends, taken out of `arguments` if it came among them."""
        meta = (ctx.params or {}).get("_meta")
        given = meta.get(TICKET_KEY) if isinstance(meta, Mapping) else None
        spec = self._registry.current.specs.get(name)
        declared = spec.parameters.get("properties", {}) if spec is not None else {}
        if TICKET_ARGUMENT in arguments and TICKET_ARGUMENT not in declared:
            given = arguments.pop(TICKET_ARGUMENT) or given
        return given.strip()[:64] if isinstance(given, str) and given.strip() else None

    # --- changes

    async def _joined(
        self, ctx: ServerRequestContext[Any, Any], params: types.NotificationParams | None
    ) -> None:
        """A client of the older protocol: the news goes to its connection, until that is over."""
        connection = ctx.session._connection  # pyright: ignore[reportPrivateUsage]
        self._sessions[id(connection)] = ctx.session
        connection.exit_stack.callback(self._sessions.pop, id(connection), None)

    async def _watch(self) -> None:
        """By looking: registry and policy are values that are replaced whole."""
        seen = self._registry.current, self._desk.policy.rules
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            now = self._registry.current, self._desk.policy.rules
            if now[0] is seen[0] and now[1] is seen[1]:
                continue
            seen = now
            await self._bus.publish(ToolsListChanged())
            await asyncio.gather(*map(_tell, list(self._sessions.values())))


async def _tell(session: ServerSession) -> None:
    try:
        async with asyncio.timeout(NOTIFY_SECONDS):
            await session.send_tool_list_changed()
    except (TimeoutError, anyio.BrokenResourceError, anyio.ClosedResourceError):
        _log.debug("a client did not take the news that tools have changed")


async def _progress(ctx: ServerRequestContext[Any, Any], seconds: float) -> None:
    """Says that the call goes on, if the client asked to be told; tools have no finer steps."""
    passed = 0.0
    with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
        while True:
            await ctx.session.report_progress(passed, seconds, "running")
            await asyncio.sleep(PROGRESS_SECONDS)
            passed += PROGRESS_SECONDS


def _error(code: str, sentence: str, **about: Any) -> types.CallToolResult:
    return types.CallToolResult(
        content=[types.TextContent(text=sentence)],
        is_error=True,
        _meta={ERROR_KEY: {"code": code, **about}},
    )


def _refused(refusal: Refusal) -> types.CallToolResult:
    about: dict[str, Any] = {}
    sentence = refusal.message
    if refusal.fields:
        about["fields"] = [{"path": f.path, "message": f.message} for f in refusal.fields]
        sentence += ": " + "; ".join(fault.message for fault in refusal.fields[:3])
    if refusal.near:
        about["near"] = list(refusal.near)
        sentence += f"; nearest are {', '.join(refusal.near)}"
    return _error(refusal.code, _ended(sentence), **about)


def _result(answer: Answer) -> types.CallToolResult:
    if isinstance(answer, NoTicket):
        row = answer.ticket
        about = {"ticket": row.id} if row is not None else {}
        return _error(str(answer.fault), _ended(answer.message), **about)
    if isinstance(answer, AsksFirst):
        row = answer.ticket
        return _error(
            "approval_required",
            f"a person has to approve this call first (ticket {row.id}, number {row.number});"
            " nothing was run; after the approval repeat exactly the same call.",
            ticket=row.id,
            number=row.number,
            expires_at=round(row.expires_at, 3),
            reason=answer.reason,
        )
    return _answered(answer)


def _answered(answer: Answered) -> types.CallToolResult:
    result = answer.result
    meta: dict[str, Any] = {
        "chathands/status": result.status.value,
        "chathands/run": answer.run_id,
        "chathands/foreign": result.foreign,
        "chathands/truncated": result.truncated,
    }
    if result.status is not Status.OK:
        why = answer.why
        about: dict[str, Any] = {"code": why.code if why is not None else result.status.value}
        if why is not None and why.retry_after is not None:
            about["retry_after"] = math.ceil(why.retry_after)
        meta[ERROR_KEY] = about
    return types.CallToolResult(
        content=blocks_of(result.content, answer.told, answer.files),
        is_error=result.status is not Status.OK,
        _meta=meta,
    )


def _ended(sentence: str) -> str:
    return sentence if sentence.endswith((".", "。", "!", "?")) else f"{sentence}."
