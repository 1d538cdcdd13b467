"""The agent: takes a question, gives exactly one reply, and keeps what waits for a person."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

from chathands.agent import fallback, memory, suspension
from chathands.agent.cancelled import CancelledRuns
from chathands.agent.events import (
    Declined,
    Finished,
    OnEvent,
    Question,
    RunStarted,
    Suspended,
    new_run_id,
    tell,
)
from chathands.agent.facts import AgentFacts
from chathands.agent.locks import KeyedLocks
from chathands.agent.opening import Opening
from chathands.agent.remembering import Memory
from chathands.agent.run import Ended, Resumption, Run, account_of
from chathands.agent.runner import Runner
from chathands.agent.scale import TokenScale
from chathands.agent.tool_facts import ToolFacts, tool_facts
from chathands.agent.toolbox import Toolbox
from chathands.agent.trace import RunTrace
from chathands.agent.verdict import NO_MODEL_NOTE, STATE_NOTE, verdict_of
from chathands.conversation import ToolSpec
from chathands.emulation.outcome import ModelRequest
from chathands.errors import ChatHandsError, ConfigError, StoreError, ToolLoadError
from chathands.run_context import current_run
from chathands.settings import Settings
from chathands.store import Store, SuspendedRow, Traces
from chathands.toolbox import Approval, Batch, Caller, may_decide
from chathands.toolbox.attachments import files_of
from chathands.toolbox.audit import Effect, Unfinished
from chathands.upstreams.base import Upstream
from chathands.upstreams.ways import mode_line, ways_of

_log = logging.getLogger(__name__)

GONE = "这个确认已经处理过，或者已经失效。"
TOO_LATE = "这个确认已经过期，没有执行。"


class Agent:
    """Answers questions with one model and one toolbox. `build_agent` makes one.

    `upstream` may be the error that says why there is no model: every question is then answered
    with its sentence. `wall` gives wall-clock seconds.
    """

    def __init__(
        self,
        upstream: Upstream | ChatHandsError,
        toolbox: Toolbox,
        settings: Settings,
        *,
        wall: Callable[[], float] = time.time,
    ) -> None:
        self.unfinished: tuple[Unfinished, ...] = toolbox.audit.unfinished
        """Side effects an earlier process began and did not end; whoever asked is to be told."""
        self.finished: tuple[Effect, ...] = (
            toolbox.audit.finished
        )  # those it ended, perhaps of runs it did not
        self.toolbox = toolbox
        """For what serves the same tools to others beside it."""
        self.upstream = upstream
        """The model, or why there is none."""
        self._registry = toolbox.registry
        self._tools = toolbox.tools
        self._store = store = toolbox.store
        self._settings = settings
        self._policy = policy = toolbox.policy
        self._policy_file = toolbox.policy_file
        self._wall = wall
        self._ways = ways_of(settings)
        self._runner: Runner | None = None
        self._no_model = upstream if isinstance(upstream, ChatHandsError) else None
        model = None if isinstance(upstream, ChatHandsError) else upstream
        self.model = "" if model is None else model.name
        """The model's name; empty when there is none."""
        self.local = model is not None and model.local
        """Whether it runs on this machine: one run at a time."""
        scale = TokenScale()
        self._memory = Memory(store, settings, model, scale)
        if model is not None:
            limit = self._memory.characters
            self._runner = Runner(
                model, toolbox.executor, settings, self._ways, scale=scale, summary_characters=limit
            )
        self._opening = Opening(self._registry, self._memory, settings, policy, model, self._ways)
        self._locks = KeyedLocks()
        self._cancelled = CancelledRuns()
        self._waiting_traces: dict[str, RunTrace] = {}

    # --- the agent itself

    def describe(self) -> AgentFacts:
        """What there is to say about it at start."""
        return AgentFacts(
            model=self.model,
            local=self.local,
            mode=self._ways.way.mode,
            mode_line=mode_line(self._settings, self._ways),
            seconds=self._opening.seconds,
            tools=tuple(self._registry.current.specs),
            load_errors=self._tools.errors,
            no_model=self._no_model,
        )

    async def reload_tools(self) -> tuple[ToolLoadError, ...]:
        """Load the tools directory and tools.toml again; runs that go keep their tools.

        Gives what did not load (the old version of it goes on serving).
        """
        await self._policy_file.reload(self._registry.current.specs)
        return await self._tools.reload(afresh=True)

    @property
    def store(self) -> Store:
        """What is on disk: rules of groups, usage, traces."""
        return self._store

    @property
    def traces(self) -> Traces:
        """What earlier runs left for whoever looks into them."""
        return self._store.traces

    def tools_for(self, caller: Caller) -> tuple[ToolSpec, ...]:
        """The tools this person may use where they are."""
        return self._registry.current.visible_to(caller, self._policy)

    @property
    def policy_error(self) -> ConfigError | None:
        """What was wrong with tools.toml the last time it was read."""
        return self._policy_file.error

    def tool_facts(self, name: str, caller: Caller) -> ToolFacts:
        """What holds for a tool where this person is. Raises KeyError when there is none."""
        spec = self._registry.current.specs[name]
        return tool_facts(spec, self._policy, self._store, caller)

    def asks_first(self, spec: ToolSpec) -> bool:
        """Whether a person is asked before this tool runs, foreign text aside."""
        return self._policy.approval_reason(spec, read_foreign=False) is not None

    async def aclose(self) -> None:
        """Let go of what is done behind the replies; the store is closed after this."""
        await self._memory.aclose()

    def first_request(self) -> ModelRequest:
        """What anybody's first question is asked with, for a model that can read ahead."""
        return self._opening.first_request()

    # --- questions

    async def ask(
        self, question: Question, *, on_event: OnEvent | None = None
    ) -> Finished | Suspended:
        """Answer `question`. Faults of model, tools and store become the reply.

        Raises only CancelledError; `cancelled_reply` then says what had already happened.
        """
        run_id = question.run_id or new_run_id()
        current_run.set(run_id)
        tell(on_event, RunStarted(run_id, self._opening.seconds))
        self._memory.give_way()
        async with self._locks.hold(question.conversation):
            trace = self._opening.trace(run_id, question)
            try:
                run = await self._opening.begin(run_id, question, trace, on_event)
            except StoreError as error:
                return self._failed(trace, run_id, error, question.meta)
            self._count(run, 1)
            return await self._carry(run)

    def cancelled_reply(self, run_id: str) -> str:
        """What a run that was cancelled had already caused, with its reference number."""
        return self._cancelled.reply(run_id)

    def changed_something(self, run_id: str) -> bool:
        """Whether a cancelled run had already caused something, or may have."""
        return self._cancelled.changed_something(run_id)

    async def forget(self, conversation_id: str) -> int:
        """Drop what is remembered of a conversation: the number of rounds. Raises StoreError.

        A run that is going on there will not be remembered either.
        """
        return await self._memory.forget(conversation_id)

    # --- approvals

    def pending(self, caller: Caller) -> list[Approval]:
        """What waits in the caller's group or private chat and is theirs to decide, by number."""
        approvals = [one.approval for one in self.waiting()]
        return suspension.decidable(approvals, caller, self._policy, self._wall())

    def waiting(self) -> list[Suspended]:
        """All runs that wait for a person, expired ones and those from before a restart too.

        A stored run that cannot be read is logged and left out.
        """
        found: list[Suspended] = []
        for row in self._store.suspended.rows:
            try:
                found.append(suspension.suspended_of(row))
            except StoreError as error:
                _log.error("%s", error)
        return found

    async def decide(
        self, approval_id: str, approve: bool, by: Caller, *, on_event: OnEvent | None = None
    ) -> Finished | Suspended | Declined:
        """A person's yes or no; the run goes on and ends with its reply. `by` is who says it now.

        Declined: not theirs to say, too late (the run still waits for `expire`), or already said.
        """
        approvals = [one.approval for one in self.waiting()]
        approval = next((one for one in approvals if one.id == approval_id), None)
        if approval is None:
            return Declined(GONE)
        refusal = may_decide(approval, by, self._policy, approve=approve)
        if refusal is not None:
            return Declined(refusal)
        if approval.expired(self._wall()):
            return Declined(TOO_LATE)
        try:
            taken = await self._store.suspended.take(approval_id, now=self._wall())
        except StoreError as error:
            return Declined(error.sentence)
        if taken is None:
            return Declined(GONE)
        return await self._go_on(taken, approve=approve, by=by, on_event=on_event)

    async def expire(
        self, approval_id: str, *, on_event: OnEvent | None = None
    ) -> Finished | Suspended | None:
        """Nobody answered: the call is denied and the run goes on to its reply.

        None when the approval is not waiting any more. Raises StoreError.
        """
        taken = await self._store.suspended.take(approval_id, now=self._wall())
        if taken is None:
            return None
        return await self._go_on(taken, approve=False, by=None, on_event=on_event)

    async def stop(self, approval_id: str) -> Finished | None:
        """Cancel a waiting run; the reply says what it had already done. Raises StoreError.

        None when it is not waiting any more. Who may stop it is the caller's to know.
        """
        taken = await self._store.suspended.take(approval_id, now=self._wall())
        if taken is None:
            return None
        run = self._resumed(taken, None)
        if isinstance(run, Finished):
            return run
        reply = await self._cancel(run)
        return Finished(reply, run.run_id, "cancelled", run.question.meta)

    async def _go_on(
        self, row: SuspendedRow, *, approve: bool, by: Caller | None, on_event: OnEvent | None
    ) -> Finished | Suspended:
        """Continue what was taken out; `by` is None when it expired."""
        run = self._resumed(row, on_event)
        if isinstance(run, Finished):
            return run
        resumption = suspension.resumption(row, run, approve, by, self._policy)
        run.emit(RunStarted(run.run_id, run.deadline.remaining()))
        try:
            async with self._locks.hold(run.question.conversation):
                run.deadline.resume()
                return await self._carry(run, resumption)
        except asyncio.CancelledError:
            if run.run_id not in self._cancelled:  # it was still waiting for the conversation
                await self._cancel(run)
            raise

    def _resumed(self, row: SuspendedRow, on_event: OnEvent | None) -> Run | Finished:
        """The run that waited; its failed reply when it cannot be read."""
        current_run.set(row.run_id)
        trace = self._waiting_traces.pop(row.run_id, None)
        try:
            return self._opening.resume(suspension.from_row(row), trace, on_event)
        except StoreError as error:
            return self._failed(trace or self._opening.lost_trace(row), row.run_id, error)

    # --- the way of a run

    async def _carry(self, run: Run, resumption: Resumption | None = None) -> Finished | Suspended:
        """Drive the run to its end, or to the next person. Trace and memory are seen to."""
        try:
            end = await self._drive(run, resumption)
            if isinstance(end, Batch):
                end = await self._suspend(run, end)
            if isinstance(end, Suspended):
                return end
            if end.remember:
                await self._remember(run, end.text)
        except asyncio.CancelledError:
            await self._cancel(run)
            raise
        except BaseException as error:  # a bug: its trace is the one that will be asked for
            run.trace.note(STATE_NOTE, repr(error))
            self._record(run.trace, "crashed", "")
            raise
        self._record(run.trace, end.status, end.text)
        files = files_of(run.scope.done)
        return Finished(end.text, run.run_id, end.status, run.question.meta, files)

    async def _drive(self, run: Run, resumption: Resumption | None) -> Ended | Batch:
        if self._runner is None:
            assert self._no_model is not None
            run.trace.note(NO_MODEL_NOTE, self._no_model.sentence)
            return account_of(run, self._no_model.sentence)
        if resumption is None:
            return await self._runner.drive(run)
        return await self._runner.resume(run, resumption)

    async def _suspend(self, run: Run, batch: Batch) -> Suspended | Ended:
        assert batch.pending is not None
        run.deadline.pause()
        place, now = suspension.place_of(run.scope.caller), self._wall()
        approval = Approval.ask(
            batch.pending,
            number=self._store.suspended.free_number(place, now),
            run_id=run.run_id,
            caller=run.scope.caller,
            now=now,
            seconds=self._settings.approval_seconds,
        )
        row = suspension.to_row(run, approval)
        try:
            await self._store.suspended.put(row)
        except StoreError as error:
            _log.error("run %s could not be suspended", run.run_id, exc_info=error)
            run.trace.note(STATE_NOTE, str(error))
            return account_of(run, error.sentence)
        except asyncio.CancelledError:
            with suppress(StoreError):
                await self._store.suspended.take(approval.id)
            raise
        run.trace.note("等待确认", f"{approval.call.name}（{approval.target}）")
        self._waiting_traces[run.run_id] = run.trace
        self._record(run.trace, "suspended", "")
        return suspension.suspended_of(row)

    async def _cancel(self, run: Run) -> str:
        """Note what a cancelled run leaves behind; gives the reply.

        The conversation learns of it only when something was changed: the next question must not
        do it again.
        """
        reply = fallback.cancelled(run.scope.done, run.not_done(), run.run_id)
        self._cancelled.add(run.run_id, reply, run.changed_something)
        for entry in run.cut_off():
            run.trace.note("被打断", f"{entry['name']}：{entry['status']}")
        self._record(run.trace, "cancelled", reply)
        if not run.changed_something:
            self._count(run, -1)
        elif not run.remembered:
            await self._remember(run, reply)
        return reply

    async def _remember(self, run: Run, reply: str) -> None:
        run.remembered = True
        answer = fallback.without_reference(reply)
        messages = memory.remember(
            run.question.text, run.own_messages, answer, foreign=run.scope.read_foreign
        )
        try:
            await self._memory.remember(run.question.conversation, messages, asked_at=run.asked_at)
        except StoreError as error:
            # The person still gets the reply; only the next question will not know of it.
            _log.error("run %s will not be remembered", run.run_id, exc_info=error)
            run.trace.note(STATE_NOTE, str(error))

    def _failed(
        self, trace: RunTrace, run_id: str, error: StoreError, meta: Mapping[str, Any] | None = None
    ) -> Finished:
        """The reply of a run that the store let down before the model was asked."""
        _log.error("run %s: the store failed", run_id, exc_info=error)
        trace.note(STATE_NOTE, str(error))
        reply = fallback.plain_reply(error.sentence, run_id)
        self._record(trace, "failed", reply)
        return Finished(reply, run_id, "failed", meta or {})

    def _count(self, run: Run, questions: int) -> None:
        caller = run.question.caller
        self._store.usage.question(suspension.place_of(caller), caller.user_id, questions)

    def _record(self, trace: RunTrace, outcome: str, reply: str) -> None:
        self._store.traces.record(trace.finish(outcome, reply, verdict_of))
        if trace.person is not None:
            self._store.usage.tokens(*trace.person, trace.tokens_since_asked())
