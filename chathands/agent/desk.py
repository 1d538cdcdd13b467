"""Calls that come from other programs and not from a model: one call, one answer.

The faces (HTTP, MCP) put them into their protocol; what is checked and run is the same for all.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal

from chathands.agent.events import new_run_id
from chathands.agent.tickets import Asked, Fault, NoTicket, TicketDesk, asked_of
from chathands.conversation import ToolCall, ToolResult, ToolSpec
from chathands.errors import StoreError, ToolFailed
from chathands.run_context import current_run
from chathands.schema import compile_schema
from chathands.settings import Settings
from chathands.store import Store, TicketRow
from chathands.toolbox import Batch, Caller, Executor, Generation, Policy, Registry, RunScope
from chathands.toolbox.attachments import files_of
from chathands.toolbox.render import cut, nearest_names

if TYPE_CHECKING:
    from chathands.toolbox import Tool
    from chathands.toolbox.calls import Why

_log = logging.getLogger(__name__)

SETTLE_SECONDS = 5.0
"""Between two looks at tickets that ended unused: they only have to reach the audit trail."""

MOST_FAULTS = 20
"""Faults of one call that are told: a megabyte of wrong arguments has hundreds of thousands, and
would be answered with twenty."""
LONGEST_FAULT = 300
"""Characters of a path or a sentence about it; names come from the client."""

_HALF = "a text has half of a character in it (a lone surrogate)"
"""The one thing that Python's JSON reads and pydantic's does not."""

_REPAIRS = {
    "coerced": "has the wrong type",
    "enum": "is none of the allowed values",
    "renamed": "is not an argument of this tool",
    "dropped": "is not an argument of this tool",
    "nested": "is nested one level too deep",
}


@dataclass(frozen=True, slots=True)
class FieldFault:
    """One argument that does not fit; `path` is empty for the whole."""

    path: str
    message: str


@dataclass(frozen=True, slots=True)
class Refusal:
    """The call is not run, for a reason that is known before it starts."""

    code: Literal["unknown_tool", "forbidden", "invalid_arguments"]
    message: str
    fields: tuple[FieldFault, ...] = ()
    near: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Begun:
    """A call that is known, permitted and fits."""

    call: ToolCall
    spec: ToolSpec
    tool: Tool
    caller: Caller
    generation: Generation
    run_id: str

    @property
    def reads(self) -> bool:
        return self.spec.side_effect == "none"


@dataclass(frozen=True, slots=True)
class Answered:
    """The executor's answer. `told`: sentences for people; `files`: (name, content)."""

    result: ToolResult
    run_id: str
    told: tuple[str, ...] = ()
    files: tuple[tuple[str, bytes], ...] = ()
    why: Why | None = None
    """Why it is not `ok`."""
    started: bool = True
    """The tool was entered; what came of it counts."""


@dataclass(frozen=True, slots=True)
class AsksFirst:
    """A person has to say yes; the call is to be repeated with the ticket."""

    ticket: TicketRow
    reason: str


Answer = Answered | AsksFirst | NoTicket


class Desk:
    """Serves programs from one toolbox. Its tickets are those of the store."""

    def __init__(
        self, executor: Executor, registry: Registry, store: Store, settings: Settings
    ) -> None:
        self._executor = executor
        self._registry = registry
        self.tickets = TicketDesk(store.tickets, seconds=settings.api.ticket_seconds)
        self._store = store

    @property
    def policy(self) -> Policy:
        return self._executor.policy

    def visible(self, caller: Caller, allows: Callable[[str], bool]) -> tuple[ToolSpec, ...]:
        """The tools the caller may use; `allows` says which names their token is for."""
        specs = self._registry.current.visible_to(caller, self.policy)
        return tuple(spec for spec in specs if allows(spec.name))

    def spec(
        self, caller: Caller, allows: Callable[[str], bool], name: str
    ) -> tuple[Generation, ToolSpec] | Refusal:
        """The tool of this name, in the generation that serves now."""
        generation = self._registry.current
        found = generation.specs.get(name)
        if found is None or name not in generation.tools:
            names = [spec.name for spec in self.visible(caller, allows)]
            near = tuple(nearest_names(name, names))
            return Refusal("unknown_tool", "there is no such tool", near=near)
        if not allows(name):
            return Refusal("forbidden", "this token is not for this tool")
        if why := self.policy.refusal(caller, found):
            return Refusal("forbidden", f"this caller may not use this tool: {why}")
        return generation, found

    async def begin(
        self,
        caller: Caller,
        allows: Callable[[str], bool],
        name: str,
        arguments: Mapping[str, Any],
        *,
        strict: bool,
    ) -> Begun | Refusal:
        """Check a call. `strict`: arguments that would have to be put right are refused, for
        programs know what they send; models do not.

        What the caller may not have is in the audit trail like any refused call; arguments that do
        not fit are only answered, for nothing was asked that could be done.
        """
        run_id = new_run_id()
        call = ToolCall(f"c_{run_id}", name, dict(arguments))
        found = self.spec(caller, allows, name)
        if isinstance(found, Refusal):
            await self._record(call, caller, allows, run_id)
            return found
        generation, spec = found
        tool = generation.tools[name]
        if faults := _faults(tool, spec, arguments, strict=strict):
            return Refusal("invalid_arguments", "the arguments do not fit", fields=faults)
        return Begun(call, spec, tool, caller, generation, run_id)

    def asks_first(self, begun: Begun) -> bool:
        """Whether a person has to say yes to such a call."""
        return self.policy.approval_reason(begun.spec, read_foreign=False) is not None

    def seconds(self, begun: Begun) -> float:
        """How long the tool may take."""
        return self.policy.timeout(begun.spec, begun.tool.timeout)

    async def run(self, begun: Begun, ticket_id: str | None = None) -> Answer:
        """Run the call, with a ticket or without. Raises StoreError, and CancelledError when
        cancelled; what had started is then recorded as unknown."""
        row: TicketRow | None = None
        if ticket_id is not None:
            looked = await self.tickets.look(ticket_id, begun.caller)
            if isinstance(looked, NoTicket):
                return looked
            row = looked
        run_id = begun.run_id if row is None else asked_of(row).run_id
        current_run.set(run_id)
        scope = self._scope(begun, run_id)
        batch = await self._executor.run_batch([begun.call], scope)
        pending = batch.pending
        if pending is None:
            if row is not None:  # nobody has to be asked any more
                await self.tickets.take(row, row.call_hash, begun.spec, begun.caller)
            return _answered(scope, batch)
        if row is None:
            given = await self.tickets.ask(pending, scope, begun.spec)
            return given if isinstance(given, NoTicket) else AsksFirst(given, pending.reason)
        taken = await self.tickets.take(row, pending.call_hash, begun.spec, begun.caller)
        if isinstance(taken, NoTicket):
            return taken
        scope = self._scope(begun, run_id)
        batch = await self._executor.run_batch(
            [begun.call],
            scope,
            granted=frozenset({pending.call_hash}),
            granted_by=taken.decided_by,
        )
        if batch.pending is not None:  # not the call it was a moment ago
            return NoTicket(Fault.CHANGED, taken)
        return _answered(scope, batch)

    async def waiting(self) -> list[Asked]:
        """What waits for a yes, oldest first. Raises StoreError; a row that cannot be read is
        logged and left out."""
        found = []
        for row in await self._store.tickets.waiting():
            try:
                found.append(asked_of(row))
            except StoreError as error:
                _log.error("%s", error)
        return found

    async def ticket(self, ticket_id: str) -> TicketRow | None:
        """Raises StoreError."""
        return await self._store.tickets.get(ticket_id)

    async def settle_forever(self) -> None:
        """Bring tickets that ended unused into the audit trail, until cancelled."""
        while True:
            try:
                await self.tickets.settle(self._executor, self._registry)
            except StoreError:
                _log.warning("tickets could not be settled", exc_info=True)
            await asyncio.sleep(SETTLE_SECONDS)

    def _scope(self, begun: Begun, run_id: str) -> RunScope:
        clock = asyncio.get_running_loop().time
        # The tool's own time limit is what ends it; this one only has to be behind it.
        end = clock() + self.seconds(begun) + 1
        return RunScope(run_id, begun.caller, begun.generation, lambda: end - clock())

    async def _record(
        self, call: ToolCall, caller: Caller, allows: Callable[[str], bool], run_id: str
    ) -> None:
        """The executor refuses what the caller may not have, and writes it down."""
        generation = self._registry.current
        if not allows(call.name):
            generation = replace(
                generation,
                tools=MappingProxyType({n: t for n, t in generation.tools.items() if allows(n)}),
                specs=MappingProxyType({n: s for n, s in generation.specs.items() if allows(n)}),
            )
        scope = RunScope(run_id, caller, generation, lambda: 1.0)
        await self._executor.run_batch([call], scope)


def _answered(scope: RunScope, batch: Batch) -> Answered:
    (result,) = batch.results
    return Answered(
        result,
        scope.run_id,
        tuple(sentence for entry in scope.done for sentence in entry.get("told", ())),
        files_of(scope.done),
        batch.why.get(result.call_id),
        started=any(entry["started"] for entry in scope.done),
    )


def _faults(
    tool: Tool, spec: ToolSpec, arguments: Mapping[str, Any], *, strict: bool
) -> tuple[FieldFault, ...]:
    checked = compile_schema(spec.parameters).check(arguments)
    problems = checked.problems[:MOST_FAULTS]
    faults = [_fault(one.path, one.sentence("en")) for one in problems]
    if strict:
        faults += [_repair(tag, spec) for tag in checked.repairs[: MOST_FAULTS - len(faults)]]
    if faults:
        return tuple(faults)
    try:
        tool.signature.validate(checked.arguments)
    except ToolFailed as error:
        return _pydantic_faults(error) or (_fault("", error.sentence),)
    return ()


def _fault(path: str, message: str) -> FieldFault:
    return FieldFault(cut(path, LONGEST_FAULT), cut(message, LONGEST_FAULT))


def _repair(tag: str, spec: ToolSpec) -> FieldFault:
    kind, _, path = tag.partition(":")
    path, _, meant = path.partition(">")
    hint = f"; did you mean `{meant}`?" if meant else ""
    node = spec.parameters.get("properties", {}).get(path)
    if kind == "coerced" and isinstance(node, Mapping) and isinstance(node.get("type"), str):
        hint = f"; it must be {node['type']}"
    return _fault(path, f"`{path}` {_REPAIRS.get(kind, 'does not fit')}{hint}")


def _pydantic_faults(error: ToolFailed) -> tuple[FieldFault, ...]:
    """What the signature found, by argument, where pydantic was asked."""
    from pydantic import ValidationError

    cause = error.__context__
    if not isinstance(cause, ValidationError):
        return ()
    found = cause.errors(include_url=False, include_input=False, include_context=False)
    return tuple(
        _fault(".".join(map(str, fault["loc"])), _HALF)
        if fault["type"] == "json_invalid"
        else _fault(".".join(map(str, fault["loc"])), fault["msg"])
        for fault in found[:MOST_FAULTS]
    )
