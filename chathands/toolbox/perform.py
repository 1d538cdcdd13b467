"""Runs one permitted call: audit, time limit, cancellation, and what its outcome is called."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from chathands.conversation import Status, ToolResult
from chathands.toolbox import render
from chathands.toolbox.attachments import Attachments
from chathands.toolbox.breaker import Doing
from chathands.toolbox.calls import CallStarted, Decision, Ran, Ready, Why
from chathands.toolbox.context import RunScope, ToolContext
from chathands.toolbox.endings import Endings, contained
from chathands.toolbox.files import FileRoots
from chathands.toolbox.gate import Gate, Pass, Shut
from chathands.toolbox.guards import Doubts, done_entry
from chathands.toolbox.lanes import current_stay
from chathands.toolbox.undisturbed import undisturbed

if TYPE_CHECKING:
    import httpx

    from chathands.reminders import ReminderBook
    from chathands.settings import Settings
    from chathands.toolbox.audit import Audit
    from chathands.toolbox.delivery import Deliver
    from chathands.toolbox.policy import Policy
    from chathands.toolbox.redact import Redactor
    from chathands.workers.pool import WorkerPool

logger = logging.getLogger(__name__)

UNWIND_SECONDS = 0.5
"""What a cancelled tool gets for its `finally` blocks; after that it is left behind. The reply has
to be out two seconds after the deadline, and a cancelled run sooner."""

_TOO_LATE = "时间用完了，这一步没有执行。"

Emit = Callable[[CallStarted], None]


@dataclass(frozen=True, slots=True)
class _Run:
    """A recorded result. `size`: characters the tool gave; `cancelled`: the run was, meanwhile;
    `doing`: what it says of the tool."""

    result: ToolResult
    size: int
    why: Why | None = None
    cancelled: bool = False
    doing: Doing = "none"


class Performer:
    def __init__(
        self,
        settings: Settings,
        policy: Policy,
        audit: Audit,
        workers: WorkerPool,
        http: Callable[[], httpx.AsyncClient],
        redactor: Redactor,
        gate: Gate,
        deliver: Deliver | None = None,
        reminders: ReminderBook | None = None,
    ) -> None:
        self._settings = settings
        self._policy = policy
        self._audit = audit
        self._workers = workers
        self._http = http
        self._deliver = deliver
        self._reminders = reminders
        self._redactor = redactor
        self._endings = Endings(redactor)
        self._limit = render.result_limit(settings.model.context)
        self._gate = gate
        self.doubts = Doubts()
        self._left_behind: set[asyncio.Task[Any]] = set()

    async def perform(
        self, ready: Ready, scope: RunScope, emit: Emit, *, granted: Decision | None = None
    ) -> Ran:
        """Run the call and record it in `scope.done` and the audit; `granted` by a person, it does
        so whatever time is left.

        Raises CancelledError when the run was cancelled; a side effect that had started is then
        already recorded as `unknown`.
        """
        if granted is None and scope.remaining() <= 0:
            return self.unrun(ready, scope, _TOO_LATE, Why("too_late"))
        passed = await self._gate.enter(ready, scope.caller, self._seconds(ready, scope, granted))
        if isinstance(passed, Shut):
            return self.unrun(ready, scope, passed.sentence, passed.why, decision=granted)
        doing: Doing = "none"
        try:
            if ready.reads:
                run = await self._run(ready, scope, emit, passed, granted)
                self._note(ready, scope, run.result, run.size, granted)
            else:
                run = await self._run_effect(ready, scope, emit, passed, granted)
            doing = run.doing
        finally:
            passed.end(doing)
        if run.cancelled:
            raise asyncio.CancelledError
        return Ran(run.result, run.why)

    def _seconds(self, ready: Ready, scope: RunScope, granted: Decision | None) -> float:
        seconds = self._policy.timeout(ready.spec, ready.tool.timeout)
        return seconds if granted is not None else min(seconds, scope.remaining())

    def unrun(
        self,
        ready: Ready,
        scope: RunScope,
        content: str,
        why: Why,
        *,
        decided: bool = False,
        decision: Decision | None = None,
    ) -> Ran:
        """The result of a call that was not run, recorded like any other. `decided`: for this
        whole run; `decision`: when a person was asked."""
        run = self._unrun(ready, scope, content, why, decided=decided)
        self._note(ready, scope, run.result, run.size, decision)
        return Ran(run.result, why)

    def _unrun(
        self,
        ready: Ready,
        scope: RunScope,
        content: str,
        why: Why,
        *,
        decided: bool = False,
        cancelled: bool = False,
    ) -> _Run:
        result = ToolResult(ready.call.id, ready.call.name, Status.DENIED, content)
        scope.done.append(_entry(ready, result, why.code, started=False, decided=decided))
        return _Run(result, len(content), why, cancelled)

    async def _run_effect(
        self, ready: Ready, scope: RunScope, emit: Emit, passed: Pass, granted: Decision | None
    ) -> _Run:
        """Between an intent that is on the disk and its outcome."""
        call, approved = ready.call, granted is not None
        writing = self._audit.intent(
            scope.caller, scope.run_id, call.name, call.arguments,
            target=ready.target, decision=granted,
        )  # fmt: skip
        try:
            intent, cancelled = await undisturbed(writing)
        except OSError as error:
            logger.error("run %s: audit cannot be written: %s", scope.run_id, error)
            content = "审计日志写不进去，所以没有执行，请管理员检查磁盘。"
            return self._unrun(ready, scope, content, Why("audit"))
        if cancelled:
            content = "提问已取消，没有执行。"
            run = self._unrun(ready, scope, content, Why("too_late"), cancelled=True)
        elif not approved and scope.remaining() <= 0:  # the disk took its time
            run = self._unrun(ready, scope, _TOO_LATE, Why("too_late"))
        else:
            run = await self._run(ready, scope, emit, passed, granted)
        result = run.result
        try:
            closing = self._audit.outcome(intent, result.status, result.content, run.size)
            _, cancelled = await undisturbed(closing)
        except OSError as error:
            # The next start will find the intent alone and call it unknown, which errs safely.
            logger.error("run %s: audit cannot be written: %s", scope.run_id, error)
        return replace(run, cancelled=run.cancelled or cancelled)

    async def _run(
        self, ready: Ready, scope: RunScope, emit: Emit, passed: Pass, granted: Decision | None
    ) -> _Run:
        loop = asyncio.get_running_loop()
        seconds = self._seconds(ready, scope, granted)
        whole = seconds >= self._policy.timeout(ready.spec, ready.tool.timeout)
        started = loop.time()
        end = started + seconds
        files = FileRoots(self._settings.data_dir, scope.caller)
        limit = min(self._policy.rule(ready.call.name).result_size or self._limit, self._limit)
        told: list[str] = []
        attached = Attachments(scope.done)
        context = ToolContext(
            caller=scope.caller,
            run_id=scope.run_id,
            settings=self._settings,
            files=files,
            http=self._http,
            workers=self._workers,
            remaining=lambda: max(end - loop.time(), 0),
            tell=lambda sentence: told.append(self._endings.sentence(sentence)),
            attach=attached.attach,
            deliver=self._deliver,
            reminders=self._reminders,
            result_limit=limit,
        )
        emit(CallStarted(ready.call, ready.spec))
        stay = current_stay.set(passed.stay)
        passed.stay.hold()
        task = loop.create_task(contained(ready.tool.run(context, dict(ready.call.arguments))))
        task.add_done_callback(lambda _: passed.stay.let_go())
        current_stay.reset(stay)
        passed.stay.let_go()  # what runs holds it now
        stopped, cancelled = await self._wait(task, seconds)
        ended = self._endings.of(task, ready, scope, stopped)
        status, text, doing = ended.status, ended.text, ended.doing
        if ended.code == "timeout" and (cancelled or not whole):
            doing = "none"  # it was not given its time
        foreign = ready.spec.foreign or files.opened_upload
        size = len(text) if ended.size is None else ended.size
        text, cut = render.shortened(text, limit, size)
        handed = attached.stored() if status is Status.OK else []
        if handed:
            text = f"{text}\n{attached.note}".lstrip("\n")
        result = ToolResult(
            ready.call.id,
            ready.call.name,
            status,
            self._redactor.secrets(render.cleaned(text)),
            cost_ms=round((loop.time() - started) * 1000),
            truncated=cut,
            foreign=foreign,
        )
        scope.read_foreign = scope.read_foreign or foreign
        why = Why(ended.code) if ended.code is not None else None
        code = ended.code or ""
        scope.done.append(_entry(ready, result, code, started=True, told=told, files=handed))
        if status is Status.UNKNOWN:
            self.doubts.add(ready.hash)
        elif not ready.reads:
            self.doubts.settle(ready.hash)
        return _Run(result, size, why, cancelled, doing)

    async def _wait(self, task: asyncio.Task[Any], seconds: float) -> tuple[str, bool]:
        """Give the task its time, then cancel it: (why it was stopped, whether the run itself was
        cancelled). A tool that does not let itself be cancelled, or hangs in a thread, is left
        behind."""
        stopped, cancelled = "工具中途停了", False
        try:
            await asyncio.wait({task}, timeout=seconds)
        except asyncio.CancelledError:
            stopped, cancelled = "提问被取消", True
        if not task.done():
            stopped = stopped if cancelled else "工具没有在时限内完成"
            task.cancel()
            self._left_behind.add(task)
            task.add_done_callback(self._forget)
            unwinding = asyncio.wait({task}, timeout=UNWIND_SECONDS)
            cancelled = (await undisturbed(unwinding))[1] or cancelled
        return stopped, cancelled

    def _forget(self, task: asyncio.Task[Any]) -> None:
        self._left_behind.discard(task)
        if not task.cancelled():
            task.exception()  # looked at in _ending, or too late to matter

    def _note(
        self,
        ready: Ready,
        scope: RunScope,
        result: ToolResult,
        size: int,
        decision: Decision | None = None,
    ) -> None:
        call = ready.call
        self._audit.call(
            scope.caller, scope.run_id, call.name, call.arguments,
            result.status, result.content, size, decision,
        )  # fmt: skip


def _entry(
    ready: Ready,
    result: ToolResult,
    code: str,
    *,
    started: bool,
    decided: bool = False,
    told: Sequence[str] = (),
    files: Sequence[dict[str, str]] = (),
) -> dict[str, Any]:
    return done_entry(
        result,
        call_hash=ready.hash,
        arguments=ready.call.arguments,
        side_effect=ready.spec.side_effect,
        target=ready.target,
        started=started,
        decided=decided,
        told=told,
        files=files,
        code=code,
    )
