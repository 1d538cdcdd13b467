"""What holds for one tool where somebody is: for whoever asks about it in words."""

from __future__ import annotations

from dataclasses import dataclass

from chathands.conversation import Audience, ToolSpec
from chathands.store import Store
from chathands.toolbox import Caller, Policy
from chathands.toolbox.rules import Approve, Rate


@dataclass(frozen=True, slots=True)
class ToolFacts:
    """`refusal`: why this person may not use it, None when they may. `used_today` is theirs."""

    spec: ToolSpec
    refusal: str | None
    asks_first: bool
    approve: Approve
    who: Audience | tuple[str, ...]
    narrowed: tuple[str, ...]
    """Whom admins have left it to by command; all must hold."""
    rate: Rate
    quota: int | None
    used_today: int
    timeout: float | None
    concurrency: int | None


def tool_facts(spec: ToolSpec, policy: Policy, store: Store, caller: Caller) -> ToolFacts:
    """The facts of this tool for this person, by the rules that hold now."""
    rule = policy.rule(spec.name)
    return ToolFacts(
        spec=spec,
        refusal=policy.refusal(caller, spec),
        asks_first=policy.approval_reason(spec, read_foreign=False) is not None,
        approve=rule.approve,
        who=rule.who or policy.audience(spec),
        narrowed=tuple(policy.narrowed(caller, spec.name)),
        rate=rule.rate,
        quota=rule.quota,
        used_today=store.tool_use.today(f"{caller.platform}:{caller.user_id}", spec.name),
        timeout=rule.timeout,
        concurrency=rule.concurrency,
    )
