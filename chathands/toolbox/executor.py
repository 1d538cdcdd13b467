"""The only way a tool is run: every check in one order, and the order inside one reply."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from chathands.conversation import Status, ToolCall, ToolResult, ToolSpec
from chathands.errors import ToolFailed
from chathands.schema import compile_schema
from chathands.toolbox import render
from chathands.toolbox.approval import call_hash, nobody_here
from chathands.toolbox.calls import (
    Batch,
    CallFinished,
    CallStarted,
    Code,
    Decision,
    OnEvent,
    PendingCall,
    Ran,
    Ready,
    Refused,
    Why,
)
from chathands.toolbox.gate import Gate
from chathands.toolbox.guards import (
    GIVE_UP_AFTER,
    NO_FAILURE,
    done_entry,
    failures,
    repeat_of,
    report_failure,
)
from chathands.toolbox.perform import Performer
from chathands.toolbox.redact import Redactor

if TYPE_CHECKING:
    import httpx

    from chathands.reminders import ReminderBook
    from chathands.settings import Settings
    from chathands.toolbox.audit import Audit
    from chathands.toolbox.context import RunScope
    from chathands.toolbox.delivery import Deliver
    from chathands.toolbox.policy import Policy
    from chathands.toolbox.rates import DailyUse
    from chathands.workers.pool import WorkerPool

logger = logging.getLogger(__name__)

READS_AT_ONCE = 8
"""Reads of one reply that run together; more would queue at the same services and workers."""

_READ_FIRST = "这一步没有执行：同一条回复里还有查询，先看结果再决定，需要时单独再调用一次。"
_AFTER_FAULT = "这一步没有执行：它前面的操作没有成功。"
_IN_DOUBT = "不久前同样的操作结果不明，可能已经做过，请先核对再决定"
_GIVEN_UP = "{name} 在本次提问里已经接连失败，没有再执行；请直接告诉用户哪一步没有办成和原因。"
_AFTER_DENIAL = "没有执行：它前面的操作没有执行。"


class Executor:
    """Independent of any registry: the generation comes with each run's scope."""

    def __init__(
        self,
        settings: Settings,
        policy: Policy,
        audit: Audit,
        workers: WorkerPool,
        http: Callable[[], httpx.AsyncClient],
        *,
        daily: DailyUse | None = None,
        on_trouble: Callable[[str], object] = logger.warning,
        deliver: Deliver | None = None,
        reminders: ReminderBook | None = None,
    ) -> None:
        """`http` gives the shared client; it is called only by tools that need it. `daily` keeps
        the counts that quotas go by; without it they end with the process. `on_trouble` gets one
        sentence for an admin when a tool that keeps failing is left alone. `deliver` brings things
        to other chats; without it tools say that they cannot. `reminders` keeps what is to be
        said later, where something says it."""
        self.policy = policy
        self._audit = audit
        self.gate = Gate(policy, on_trouble, daily=daily)
        self._performer = Performer(
            settings,
            policy,
            audit,
            workers,
            http,
            Redactor.of(settings),
            self.gate,
            deliver,
            reminders,
        )

    async def run_batch(
        self,
        calls: Sequence[ToolCall],
        scope: RunScope,
        *,
        granted: frozenset[str] = frozenset(),
        granted_by: str = "",
        on_event: OnEvent | None = None,
    ) -> Batch:
        """Run the calls of one reply.

        Reads run together. A side effect beside a read is not run; several run one by one, and
        after one that did not succeed the rest are denied. A call that needs a person's yes ends
        the batch as `pending`, unless its hash is in `granted`: what a person (the user id is
        `granted_by`) has said yes to. Where nobody could say yes, it is denied.

        Never raises for what tools do. Raises CancelledError when cancelled, after recording what
        had started.
        """
        work = self._work(calls, scope, on_event)
        yes = Decision("yes", granted_by)
        await self._run_reads(work, granted)
        reads = any(step.reads for step in work.steps)
        fault = False
        for index, step in enumerate(work.steps):
            if index in work.results:
                continue
            if isinstance(step, Refused):
                work.put(index, self._refuse(step, scope))
                fault = fault or not step.reads
            elif not step.reads and reads:
                work.put(index, self._performer.unrun(step, scope, _READ_FIRST, Why("order")))
            elif not step.reads and fault:
                work.put(index, self._performer.unrun(step, scope, _AFTER_FAULT, Why("order")))
            elif answered := self._repeat(step, work) or self._given_up(step, work):
                work.put(index, answered)
                fault = fault or answered.result.status is not Status.OK
            elif step.hash not in granted and (reason := self._approval(step, scope)):
                if why := nobody_here(scope.caller, step.call.name, self.policy):
                    ran = self._performer.unrun(step, scope, why, Why("undecided"), decided=True)
                elif shut := await self.gate.shut(step, scope.caller):
                    ran = self._performer.unrun(step, scope, shut.sentence, shut.why)
                else:
                    return work.batch(_pending(step, reason), index)
                work.put(index, ran)
                fault = fault or not step.reads
            else:
                ran = await self._performer.perform(
                    step, scope, work.emit, granted=yes if step.hash in granted else None
                )
                work.put(index, ran)
                fault = fault or ran.result.status is not Status.OK
        return work.batch()

    def deny(
        self,
        calls: Sequence[ToolCall],
        scope: RunScope,
        why: str,
        decision: Decision,
        *,
        on_event: OnEvent | None = None,
    ) -> Batch:
        """Answer the call a person was asked about, the first, with `why` it does not run, and
        those behind it too. Goes by place and not by hash: what is not granted must not come near
        anything that runs it, even if it was altered meanwhile."""
        work = self._work(calls, scope, on_event)
        for index, step in enumerate(work.steps):
            first = index == 0
            if isinstance(step, Ready):
                ran = self._performer.unrun(
                    step,
                    scope,
                    why if first else _AFTER_DENIAL,
                    Why("undecided" if first else "order"),
                    decided=first,
                    decision=decision if first else None,
                )
            elif first:
                denied = replace(step.result, status=Status.DENIED, content=why)
                refused = replace(step, result=denied, why=Why("undecided"))
                ran = self._refuse(refused, scope, decision)
            else:
                ran = self._refuse(step, scope)
            work.put(index, ran)
        return work.batch()

    def _work(self, calls: Sequence[ToolCall], scope: RunScope, on_event: OnEvent | None) -> _Work:
        return _Work(scope, on_event, [self._prepare(call, scope) for call in calls])

    async def _run_reads(self, work: _Work, granted: frozenset[str]) -> None:
        """Reads nobody has to be asked about, together; of equal ones the first."""
        gate = asyncio.Semaphore(READS_AT_ONCE)
        seen: set[str] = set()

        async def run(index: int, step: Ready) -> None:
            async with gate:
                work.put(index, await self._performer.perform(step, work.scope, work.emit))

        async with asyncio.TaskGroup() as group:
            for index, step in enumerate(work.steps):
                if not isinstance(step, Ready) or not step.reads or step.hash in seen:
                    continue
                seen.add(step.hash)
                if step.hash in granted or self._approval(step, work.scope):
                    continue
                if answered := self._repeat(step, work) or self._given_up(step, work):
                    work.put(index, answered)
                else:
                    group.create_task(run(index, step))

    def _prepare(self, call: ToolCall, scope: RunScope) -> Ready | Refused:
        """Known name, fitting arguments, permitted person: in this order."""
        generation = scope.generation
        spec, tool = generation.specs.get(call.name), generation.tools.get(call.name)
        if spec is None or tool is None:
            names = [seen.name for seen in generation.visible_to(scope.caller, self.policy)]
            said = render.unknown_tool(call.name, names)
            return _refused(call, scope, Status.FAILED, said, "unknown_tool")
        checked = compile_schema(spec.parameters).check(call.arguments)
        if checked.problems:
            faults = "；".join(problem.sentence("zh") for problem in checked.problems[:3])
            said = render.one_sentence(f"{faults}。")
            return _refused(call, scope, Status.FAILED, said, "invalid_arguments", spec)
        try:
            tool.signature.validate(checked.arguments)
        except ToolFailed as error:
            return _refused(call, scope, Status.FAILED, error.sentence, "invalid_arguments", spec)
        if why := self.policy.refusal(scope.caller, spec):
            return _refused(call, scope, Status.DENIED, why, "forbidden", spec)
        effective = _with_defaults(spec, checked.arguments)
        return Ready(
            call=replace(call, arguments=checked.arguments),
            tool=tool,
            spec=spec,
            effective=effective,
            hash=call_hash(scope.caller, call.name, effective),
            target=tool.describe_target(effective),
        )

    def _approval(self, step: Ready, scope: RunScope) -> str | None:
        """Why a person must say yes; asked late, since a call before it may have read foreign
        text."""
        reason = self.policy.approval_reason(
            step.spec, read_foreign=scope.read_foreign, confidence=step.call.confidence
        )
        if step.hash in self._performer.doubts:
            return f"{_IN_DOUBT}；{reason}" if reason else f"{_IN_DOUBT}。"
        return reason

    def _refuse(self, step: Refused, scope: RunScope, decision: Decision | None = None) -> Ran:
        result = step.result
        tool = scope.generation.tools.get(result.name)
        scope.done.append(
            done_entry(
                result,
                call_hash=step.hash,
                arguments=step.arguments,
                side_effect=step.spec.side_effect if step.spec else "none",
                target=tool.describe_target(step.arguments) if tool else "",
                decided=decision is not None,
                code=step.why.code,
            )
        )
        self._audit.call(
            scope.caller, scope.run_id, result.name, step.arguments,
            result.status, result.content, len(result.content), decision,
        )  # fmt: skip
        return Ran(result, step.why)

    @staticmethod
    def _repeat(step: Ready, work: _Work) -> Ran | None:
        repeat = repeat_of(work.scope.done, step.hash, reads=step.reads)
        if repeat is None:
            return None
        work.closes_run = work.closes_run or repeat.closes_run
        result = ToolResult(
            step.call.id, step.call.name, repeat.status, repeat.content, foreign=step.spec.foreign
        )
        return Ran(result, Why("repeated") if repeat.status is not Status.OK else None)

    def _given_up(self, step: Ready, work: _Work) -> Ran | None:
        """The answer to a call of a tool that has failed too often in this run: what the model
        was told has not helped, so it is asked for its answer."""
        name = step.call.name
        if failures(work.scope.done, name) < GIVE_UP_AFTER:
            return None
        work.closes_run = True
        said = _GIVEN_UP.format(name=name)
        return self._performer.unrun(step, work.scope, said, Why("given_up"))


@dataclass(slots=True)
class _Work:
    """One batch while it runs."""

    scope: RunScope
    on_event: OnEvent | None
    steps: list[Ready | Refused]
    results: dict[int, ToolResult] = field(default_factory=dict)
    why: dict[str, Why] = field(default_factory=dict)
    closes_run: bool = False

    def put(self, index: int, ran: Ran) -> None:
        result = ran.result
        if ran.why is not None:
            self.why[result.call_id] = ran.why
            if ran.why.code not in NO_FAILURE:
                result = self._reported(result)
        self.results[index] = result
        self.emit(CallFinished(result))

    def _reported(self, result: ToolResult) -> ToolResult:
        """With what the model is told when the tool has failed too often; past that the model
        does not listen."""
        note = report_failure(self.scope.done, result.name)
        if note is None:
            return result
        if failures(self.scope.done, result.name) > GIVE_UP_AFTER:
            self.closes_run = True
        return replace(result, content=f"{result.content}\n{note}")

    def emit(self, event: CallStarted | CallFinished) -> None:
        if self.on_event is None:
            return
        try:
            self.on_event(event)
        except Exception:
            # Whoever watches (a progress notice, a trace) must not decide whether tools run.
            logger.exception("run %s: on_event failed", self.scope.run_id)

    def batch(self, pending: PendingCall | None = None, at: int = 0) -> Batch:
        results = tuple(self.results[index] for index in sorted(self.results))
        remaining: tuple[ToolCall, ...] = ()
        if pending is not None:
            later = [n for n in range(at + 1, len(self.steps)) if n not in self.results]
            remaining = (pending.call, *(_call(self.steps[n]) for n in later))
        return Batch(results, pending, remaining, self.closes_run, MappingProxyType(self.why))


def _call(step: Ready | Refused) -> ToolCall:
    if isinstance(step, Ready):
        return step.call
    return ToolCall(step.result.call_id, step.result.name, step.arguments)


def _refused(
    call: ToolCall,
    scope: RunScope,
    status: Status,
    sentence: str,
    code: Code,
    spec: ToolSpec | None = None,
) -> Refused:
    return Refused(
        ToolResult(call.id, call.name, status, sentence),
        call_hash(scope.caller, call.name, call.arguments),
        dict(call.arguments),
        spec,
        Why(code),
    )


def _with_defaults(spec: ToolSpec, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments as they take effect; those given come first."""
    properties: Mapping[str, Any] = spec.parameters.get("properties", {})
    defaults = {name: each["default"] for name, each in properties.items() if "default" in each}
    return {**arguments, **{n: value for n, value in defaults.items() if n not in arguments}}


def _pending(step: Ready, reason: str) -> PendingCall:
    return PendingCall(
        call=step.call,
        call_hash=step.hash,
        target=step.target,
        shown=step.tool.describe_content(
            # A default that does nothing is not worth a line; one that does something is.
            {n: v for n, v in step.effective.items() if n in step.call.arguments or v}
        ),
        reason=reason,
    )
