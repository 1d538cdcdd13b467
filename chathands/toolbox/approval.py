"""A person's yes to one exact call. Data and rules only: who stores and asks is elsewhere."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from chathands.conversation import ToolCall, canonical_json
from chathands.toolbox.calls import PendingCall
from chathands.toolbox.context import Caller
from chathands.toolbox.policy import Policy

_WHO: Mapping[str, str] = MappingProxyType(
    {
        "admin": "群管理员、群主或超级用户",
        "asker": "提问的人、群管理员、群主或超级用户",
        "superuser": "超级用户",
    }
)


BY_TICKET = ("http", "mcp")
"""Platforms of programs: there somebody can always be asked, by ticket."""


def call_hash(caller: Caller, name: str, arguments: Mapping[str, Any]) -> str:
    """One person's one exact call in one place: user, group, tool and arguments, in any key order.

    The platform is part of it because user ids are unique only within one.
    """
    bound = [caller.platform, caller.group_id, caller.user_id, name, arguments]
    data = canonical_json(bound).encode("utf-8", "surrogatepass")
    return hashlib.sha256(data).hexdigest()


@dataclass(frozen=True, slots=True)
class Approval:
    """A question put to a person. Single use: whoever stores it takes it out to decide it."""

    id: str
    number: int
    """What people type: 确认 2."""
    run_id: str
    call: ToolCall
    call_hash: str
    target: str
    shown: str
    caller: Caller
    created: float
    """Wall clock, seconds."""
    expires_at: float
    reason: str = ""
    """Why a yes is needed, one sentence; empty in one that an earlier version stored."""

    @classmethod
    def ask(
        cls,
        pending: PendingCall,
        *,
        number: int,
        run_id: str,
        caller: Caller,
        now: float,
        seconds: float,
    ) -> Approval:
        return cls(
            id=secrets.token_hex(8),
            number=number,
            run_id=run_id,
            call=pending.call,
            call_hash=pending.call_hash,
            target=pending.target,
            shown=pending.shown,
            caller=caller,
            created=now,
            expires_at=now + seconds,
            reason=pending.reason,
        )

    def expired(self, now: float) -> bool:
        return now >= self.expires_at


def may_decide(
    approval: Approval, by: Caller, policy: Policy, *, approve: bool = True
) -> str | None:
    """Why `by` may not answer this approval with yes (or no), one sentence; None when they may.

    Group roles count only in the group that asked; a superuser may answer from anywhere. The asker
    may always say no to their own call.
    """
    if by.role == "superuser":
        return None
    asked = approval.caller
    if (by.platform, by.group_id) != (asked.platform, asked.group_id):
        return "这个确认是别处提出的，要在提出它的地方回复。"
    is_asker = by.user_id == asked.user_id
    if is_asker and not approve:
        return None
    if asked.private and not is_asker:
        return "只有提问的人或超级用户可以回复这个确认。"
    if policy.may_approve(approval.call.name, by, is_asker=is_asker):
        return None
    return f"只有{_who(policy, approval.call.name)}可以确认这个操作。"


def nobody_here(caller: Caller, name: str, policy: Policy) -> str | None:
    """Why asking for a yes to this person's call of tool `name` is no use, one sentence; None when
    somebody where they asked may give it. In a private chat there is only the asker."""
    if caller.platform in BY_TICKET:
        return None
    if not caller.private or policy.may_approve(name, caller, is_asker=True):
        return None
    who = _who(policy, name)
    return (
        f"没有执行：这个操作要由{who}确认，私聊里没有人能确认；"
        f"请到有{who}的群里 @我 提出，或者请超级用户来做。"
    )


def _who(policy: Policy, name: str) -> str:
    approve = policy.rule(name).approve
    return _WHO[approve] if isinstance(approve, str) else "名单里的人或超级用户"
