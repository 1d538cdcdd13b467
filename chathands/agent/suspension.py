"""A run that waits for a person, as plain data, and what must still hold when it goes on."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, fields
from datetime import datetime
from typing import Any, get_args

from chathands.agent import fallback
from chathands.agent.events import Question, Suspended
from chathands.agent.run import NOT_THE_SAME, Resumption, Run
from chathands.agent.turns import Withdraw
from chathands.conversation import Message, ToolCall, ToolSpec
from chathands.errors import StoreError
from chathands.store import SuspendedRow, codec
from chathands.toolbox import Approval, Caller, Decision, Generation, Policy, may_decide


@dataclass(frozen=True, slots=True)
class StoredRun:
    """What `SuspendedRow.data` holds, read again."""

    approval: Approval
    question: Question
    conversation: tuple[Message, ...]
    question_at: int
    remaining: tuple[ToolCall, ...]
    """Starts with the call that waits."""
    done: tuple[dict[str, Any], ...]
    read_foreign: bool
    generation: int
    spec: ToolSpec
    """The waiting call's tool as it was when a person was asked."""
    round: int
    withdrawn: Withdraw | None
    seconds_left: float
    fence: str


def place_of(caller: Caller) -> str:
    """Where an approval of this caller is asked and answered: the group, or the private chat."""
    where = f"g{caller.group_id}" if caller.group_id is not None else f"u{caller.user_id}"
    return f"{caller.platform}:{caller.bot_id}:{where}"


def same_person(one: Caller, other: Caller) -> bool:
    """The same member of the same place."""
    return (one.platform, one.group_id, one.user_id) == (
        other.platform,
        other.group_id,
        other.user_id,
    )


def to_row(run: Run, approval: Approval) -> SuspendedRow:
    data = {
        "approval": {
            **{field.name: getattr(approval, field.name) for field in fields(approval)},
            "call": codec.call_to_dict(approval.call),
            "caller": asdict(approval.caller),
        },
        "question": _question_to_dict(run.question),
        "conversation": codec.messages_to_dicts(run.conversation),
        "question_at": run.question_at,
        "remaining": [codec.call_to_dict(call) for call in run.open_calls],
        "done": codec.plain(run.scope.done),
        "read_foreign": run.scope.read_foreign,
        "generation": run.scope.generation.number,
        "spec": codec.spec_to_dict(run.scope.generation.specs[approval.call.name]),
        "round": run.round,
        "withdrawn": run.withdrawn,
        "seconds_left": run.deadline.remaining(),
        "fence": run.setup.fence,
    }
    return SuspendedRow(
        approval_id=approval.id,
        run_id=approval.run_id,
        place=place_of(approval.caller),
        number=approval.number,
        created=approval.created,
        expires_at=approval.expires_at,
        data=data,
    )


def from_row(row: SuspendedRow) -> StoredRun:
    """Raises StoreError when the data is not what this program writes."""
    data = row.data
    try:
        return StoredRun(
            approval=_approval(data["approval"]),
            question=_question_from_dict(data["question"]),
            conversation=tuple(codec.messages_from_dicts(data["conversation"])),
            question_at=int(data["question_at"]),
            remaining=tuple(codec.call_from_dict(call) for call in data["remaining"]),
            done=tuple(_done(entry) for entry in data["done"]),
            read_foreign=data["read_foreign"],
            generation=data["generation"],
            spec=codec.spec_from_dict(data["spec"]),
            round=int(data["round"]),
            withdrawn=_withdrawn(data["withdrawn"]),
            seconds_left=float(data["seconds_left"]),
            fence=str(data["fence"]),
        )
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise StoreError(f"suspended run {row.run_id} cannot be read: {error!r}") from error


def suspended_of(row: SuspendedRow) -> Suspended:
    """What the asking side is told of the row: cheap enough for lists. Raises StoreError."""
    try:
        question = _question_from_dict(row.data["question"])
        approval = _approval(row.data["approval"])
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise StoreError(f"suspended run {row.run_id} cannot be read: {error!r}") from error
    return Suspended(approval, row.run_id, question.meta, question.text)


def decidable(
    approvals: Iterable[Approval], caller: Caller, policy: Policy, now: float
) -> list[Approval]:
    """Those that wait where the caller is and are theirs to decide, by number."""
    place = place_of(caller)
    mine = [
        approval
        for approval in approvals
        if place_of(approval.caller) == place
        and not approval.expired(now)
        and may_decide(approval, caller, policy) is None
    ]
    return sorted(mine, key=lambda approval: approval.number)


def resumption(
    row: SuspendedRow, run: Run, approve: bool, by: Caller | None, policy: Policy
) -> Resumption:
    """What a decision means now that everything is looked at again; `by` is None when nobody
    decided in time. A call that may run is granted its own time."""
    stored = from_row(row)
    approval, generation = stored.approval, run.scope.generation
    same = by is not None and same_person(by, approval.caller)
    if by is None:
        decision, denial = Decision("expired"), fallback.EXPIRED
    elif not approve:
        decision = Decision("no", by.user_id)
        denial = fallback.ASKER_SAID_NO if same else fallback.PERSON_SAID_NO
    else:
        decision = Decision("yes", by.user_id)
        denial = obstacle(stored, by if same else approval.caller, generation, policy)
    run.trace.note("已确认" if approve else "没有确认", f"{decision.by} {denial or ''}".strip())
    if denial is None:
        tool, spec = generation.tools[approval.call.name], generation.specs[approval.call.name]
        run.deadline.grant(policy.timeout(spec, tool.timeout))
    return Resumption(stored.remaining, approval.call_hash, decision, denial)


def obstacle(
    stored: StoredRun, asker: Caller, generation: Generation, policy: Policy
) -> str | None:
    """Why the approved call may not run after all, one sentence; None when it may.

    Everything is looked at again: between question and yes tools are reloaded, rights change, and
    a file on disk can be written to. That the hash is still this call's is the executor's to see.
    """
    approval, call = stored.approval, stored.approval.call
    spec = generation.specs.get(call.name)
    if spec is None:
        return f"工具 {call.name} 已经不在了，没有执行。"
    if (spec.parameters, spec.side_effect) != (stored.spec.parameters, stored.spec.side_effect):
        return f"工具 {call.name} 在等待确认期间改过，没有执行；需要的话请重新提问。"
    refusal = policy.refusal(asker, spec)
    if refusal is not None:
        return refusal
    if not stored.remaining or not _equal(stored.remaining[0], approval.call):
        return NOT_THE_SAME
    return None


def _equal(one: ToolCall, other: ToolCall) -> bool:
    return (one.id, one.name, dict(one.arguments)) == (other.id, other.name, dict(other.arguments))


def _approval(row: Mapping[str, Any]) -> Approval:
    return Approval(
        **{
            **row,
            "call": codec.call_from_dict(row["call"]),
            "caller": Caller(**row["caller"]),
            "expires_at": float(row["expires_at"]),
        }
    )


def _withdrawn(value: Any) -> Withdraw | None:
    if value not in (None, *get_args(Withdraw)):
        raise ValueError(f"tools withdrawn for {value!r}")
    return value


def _done(entry: dict[str, Any]) -> dict[str, Any]:
    """Checked here: what is missing would only be noticed in the middle of the run."""
    missing = {"hash", "name", "arguments", "side_effect", "status", "started"} - entry.keys()
    if missing:
        raise ValueError(f"a finished call without {sorted(missing)}")
    return entry


def _question_to_dict(question: Question) -> dict[str, Any]:
    return {
        "text": question.text,
        "caller": asdict(question.caller),
        "conversation_id": question.conversation_id,
        "quoted": question.quoted,
        "foreign": question.foreign,
        "meta": codec.plain(question.meta),
        "name": question.name,
        "now": question.now.isoformat() if question.now else None,
    }


def _question_from_dict(row: Mapping[str, Any]) -> Question:
    now = row["now"]
    return Question(
        **{
            **row,
            "caller": Caller(**row["caller"]),
            "now": None if now is None else datetime.fromisoformat(now),
        }
    )
