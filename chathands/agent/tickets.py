"""Approval for callers that cannot wait in a chat (HTTP, MCP): a ticket to repeat the call with.

A ticket is a row in the store, so that any process on the same state can show and decide it. It is
bound to the caller, the exact call and a time, and is used up by the one call it was given for.
"""

from __future__ import annotations

import getpass
import hashlib
import secrets
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from chathands.agent import fallback
from chathands.conversation import ToolCall, ToolSpec, canonical_json
from chathands.errors import StoreError
from chathands.store import TicketRow, Tickets, codec
from chathands.toolbox import Caller, Decision, Executor, PendingCall, Policy, RunScope
from chathands.toolbox.approval import BY_TICKET
from chathands.toolbox.policy import person_of

if TYPE_CHECKING:
    from chathands.toolbox import Registry

MOST_WAITING = 20
"""Of one caller at once. More than a person reads is a flood: the yes would be given blindly."""
MOST_WAITING_TOGETHER = 200
"""Of all callers."""


class Fault(StrEnum):
    """Why a ticket does not let a call run."""

    UNKNOWN = "ticket_unknown"
    OTHER_CALLER = "ticket_of_another_caller"
    OTHER_CALL = "ticket_for_another_call"
    WAITING = "approval_pending"
    DENIED = "approval_denied"
    EXPIRED = "ticket_expired"
    USED = "ticket_used"
    CHANGED = "tool_changed"
    FLOOD = "too_many_approvals"
    DECIDED = "already_decided"
    NOT_YOURS = "not_yours_to_decide"


_MESSAGES: Mapping[Fault, str] = {
    Fault.UNKNOWN: "there is no such ticket; send the call without one to ask anew",
    Fault.OTHER_CALLER: "this ticket was given to another caller",
    Fault.OTHER_CALL: "this ticket is for another tool or other arguments; nothing was run",
    Fault.WAITING: "nobody has decided yet; repeat the call with this ticket later",
    Fault.DENIED: "the call was not approved and was not run",
    Fault.EXPIRED: "the ticket has expired and nothing was run; send the call without it to ask"
    " anew",
    Fault.USED: "this ticket was used already; a ticket lets a call run once",
    Fault.CHANGED: "the tool has changed since the approval was asked for; send the call without"
    " the ticket to ask anew",
    Fault.FLOOD: "too many calls wait for approval; let some be decided first",
    Fault.DECIDED: "this approval was decided already",
    Fault.NOT_YOURS: "this approval is not yours to decide",
}


@dataclass(frozen=True, slots=True)
class NoTicket:
    """A ticket that does not do, or that is not given."""

    fault: Fault
    ticket: TicketRow | None = None
    detail: str = ""

    @property
    def message(self) -> str:
        """For the caller, in English."""
        text = _MESSAGES[self.fault]
        return f"{text}: {self.detail}" if self.detail else text


@dataclass(frozen=True, slots=True)
class Asked:
    """What a ticket asks for, as a person is shown it."""

    ticket: TicketRow
    call: ToolCall
    caller: Caller
    run_id: str
    target: str
    shown: str
    """The full content."""
    reason: str


def asked_of(row: TicketRow) -> Asked:
    """Raises StoreError when the row cannot be read."""
    data = row.data
    try:
        return Asked(
            row,
            codec.call_from_dict(data["call"]),
            Caller(**data["caller"]),
            *(str(data[key]) for key in ("run", "target", "shown", "reason")),
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise StoreError(f"ticket {row.id} cannot be read: {error!r}") from error


def notice_lines(asked: Asked) -> list[str]:
    """What a person reads before they say yes: who wants what done, where to, the whole content."""
    caller = asked.caller
    lines = [f"程序 {caller.name or caller.user_id}（{caller.platform}）要执行："]
    lines.append(f"操作：{asked.call.name}")
    if asked.target:
        lines.append(f"目标：{asked.target}")
    lines += [asked.shown.strip() or "（没有参数）", "————"]
    if asked.reason:
        lines.append(f"原因：{asked.reason}")
    return lines


def by_terminal() -> str:
    """Who decides on the command line, for the audit trail."""
    try:
        return f"terminal:{getpass.getuser()}"
    except (KeyError, OSError):  # a container without a user database
        return "terminal"


def is_own(asked: Asked, by: Caller) -> bool:
    """Whether `by` is the program that asked. One token comes in over HTTP and over MCP, and must
    not give itself over the one what it has asked for over the other."""
    who = asked.caller
    return by.user_id == who.user_id and {by.platform, who.platform} <= set(BY_TICKET)


def may_decide_ticket(
    asked: Asked, by: Caller, policy: Policy, *, approve: bool, may_approve: bool
) -> str | None:
    """Why the program `by` may not answer with yes (or no), in English; None when it may.

    Its token needs `may_approve`. Who asked may always say no, and yes only where tools.toml
    leaves the tool to its asker.
    """
    approver = policy.rule(asked.call.name).approve
    own = is_own(asked, by)
    if own and (not approve or approver == "asker"):
        return None
    if own:
        return "who asked may not approve their own call"
    if not may_approve:
        return "this token may not approve (may_approve)"
    if isinstance(approver, tuple) and by.role != "superuser" and person_of(by) not in approver:
        return "tools.toml lists who may approve this tool, and this token's name is not there"
    if approver == "superuser" and by.role != "superuser":
        return "only a superuser may approve this tool"
    return None


class TicketDesk:
    """Gives out tickets, looks at them, and lets each be used once. Raises StoreError."""

    def __init__(self, tickets: Tickets, *, seconds: float) -> None:
        self._tickets = tickets
        self._seconds = seconds

    async def ask(
        self, pending: PendingCall, scope: RunScope, spec: ToolSpec
    ) -> TicketRow | NoTicket:
        """The ticket for a call that waits; the one it has, when it is asked for again."""
        caller = scope.caller
        waiting = await self._tickets.waiting()
        mine = [one for one in waiting if _belongs(one, caller)]
        for one in mine:
            if one.call_hash == pending.call_hash:
                return one
        if len(mine) >= MOST_WAITING or len(waiting) >= MOST_WAITING_TOGETHER:
            return NoTicket(Fault.FLOOD)
        return await self._tickets.put(
            secrets.token_hex(12),
            platform=caller.platform,
            asker=caller.user_id,
            call_hash=pending.call_hash,
            seconds=self._seconds,
            data={
                "call": codec.call_to_dict(pending.call),
                "caller": asdict(caller),
                "run": scope.run_id,
                "target": pending.target,
                "shown": pending.shown,
                "reason": pending.reason,
                "spec": _contract_of(spec),
            },
        )

    async def look(self, ticket_id: str, caller: Caller) -> TicketRow | NoTicket:
        """The caller's ticket if it has a yes and time left."""
        row = await self._tickets.get(ticket_id)
        if row is None:
            return NoTicket(Fault.UNKNOWN)
        if not _belongs(row, caller):
            return NoTicket(Fault.OTHER_CALLER)
        if row.expired(self._tickets.now()):
            return NoTicket(Fault.EXPIRED, row)
        match row.state:
            case "yes":
                return row
            case "waiting":
                return NoTicket(Fault.WAITING, row)
            case "no":
                return NoTicket(Fault.DENIED, row)
        return NoTicket(Fault.USED, row)

    async def take(
        self, row: TicketRow, call_hash: str, spec: ToolSpec, caller: Caller
    ) -> TicketRow | NoTicket:
        """Use the ticket up for exactly this call."""
        if row.call_hash != call_hash:
            return NoTicket(Fault.OTHER_CALL, row)
        if row.data.get("spec") != _contract_of(spec):
            return NoTicket(Fault.CHANGED, row)
        taken = await self._tickets.take(row.id)
        if taken is not None:
            return taken
        now = await self.look(row.id, caller)
        return now if isinstance(now, NoTicket) else NoTicket(Fault.USED, now)

    async def decide(
        self, ticket_id: str, *, approve: bool, by: Caller, may_approve: bool, policy: Policy
    ) -> TicketRow | NoTicket:
        """A program's yes or no."""
        row = await self._tickets.get(ticket_id)
        if row is None:
            return NoTicket(Fault.UNKNOWN)
        why_not = may_decide_ticket(
            asked_of(row), by, policy, approve=approve, may_approve=may_approve
        )
        if why_not is not None:
            return NoTicket(Fault.NOT_YOURS, row, why_not)
        decided_by = f"{by.platform}:{by.user_id}"
        decided = await self._tickets.decide(ticket_id, approve=approve, by=decided_by)
        if decided is not None:
            return decided
        row = await self._tickets.get(ticket_id) or row
        late = row.expired(self._tickets.now())
        return NoTicket(Fault.EXPIRED if late else Fault.DECIDED, row)

    async def settle(self, executor: Executor, registry: Registry) -> int:
        """Write into the audit trail what was denied or never decided or used, once each: how
        many."""
        ended = await self._tickets.settle(BY_TICKET)
        for row in ended:
            asked = asked_of(row)
            scope = RunScope(asked.run_id, asked.caller, registry.current, lambda: 0.0)
            denied = row.state == "no"
            decision = Decision("no", row.decided_by) if denied else Decision("expired")
            why = fallback.PERSON_SAID_NO if denied else fallback.EXPIRED
            executor.deny([asked.call], scope, why, decision)
        return len(ended)


def _belongs(row: TicketRow, caller: Caller) -> bool:
    return (row.platform, row.asker) == (caller.platform, caller.user_id)


def _contract_of(spec: ToolSpec) -> str:
    """What a yes was given to, besides the arguments: an edit of the description changes nothing,
    one of the parameters or of the side effect does."""
    contract: list[Any] = [spec.parameters, spec.side_effect]
    return hashlib.sha256(canonical_json(contract).encode("utf-8", "surrogatepass")).hexdigest()
