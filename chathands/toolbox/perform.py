"""Runs one permitted call: audit, time limit, cancellation, and what its outcome is called."""

from __future__ import annotations

import asyncio
import logging
import traceback
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeVar

from chathands.conversation import Status, ToolResult
from chathands.errors import ChatHandsError, ToolDenied, ToolFailed, ToolOutcomeUnknown
from chathands.toolbox import render
from chathands.toolbox.attachments import Attachments
from chathands.toolbox.calls import CallStarted, Decision, Ready
from chathands.toolbox.context import RunScope, ToolContext
from chathands.toolbox.files import FileRoots
from chathands.toolbox.guards import done_entry

if TYPE_CHECKING:
    import httpx

    from chathands.settings import Settings
    from chathands.toolbox.audit import Audit
    from chathands.toolbox.policy import Policy
    from chathands.toolbox.redact import Redactor
    from chathands.workers.pool import WorkerPool

logger = logging.getLogger(__name__)

UNWIND_SECONDS = 0.5
"""What a cancelled tool gets for its `finally` blocks; after that it is left behind. The reply has
to be out two seconds after the deadline, and a cancelled run sooner."""


SOURCE_CHARACTERS = 200
"""A text argument this long is a source (to summarise, to translate), not a name or a question."""

OPENING = 600
"""Characters of such a text that are looked at for a refusal; one stands at the beginning."""

_TOO_LATE = "时间用完了，这一步没有执行。"

Emit = Callable[[CallStarted], None]


@dataclass(frozen=True, slots=True)
class _Run:
    """A recorded result. `size`: characters the tool gave; `cancelled`: the run was, meanwhile."""

    result: ToolResult
    size: int
    cancelled: bool = False


class Performer:
    def __init__(
        self,
        settings: Settings,
        policy: Policy,
        audit: Audit,
        workers: WorkerPool,
        http: Callable[[], httpx.AsyncClient],
        redactor: Redactor,
    ) -> None:
        self._settings = settings
        self._policy = policy
        self._audit = audit
        self._workers = workers
        self._http = http
        self._redactor = redactor
        self._limit = render.result_limit(settings.model.context)
        self._left_behind: set[asyncio.Task[Any]] = set()

    async def perform(
        self, ready: Ready, scope: RunScope, emit: Emit, *, granted: Decision | None = None
    ) -> ToolResult:
        """Run the call and record it in `scope.done` and the audit; `granted` by a person, it does
        so whatever time is left.

        Raises CancelledError when the run was cancelled; a side effect that had started is then
        already recorded as `unknown`.
        """
        if granted is None and scope.remaining() <= 0:
            return self.unrun(ready, scope, _TOO_LATE)
        if ready.reads:
            run = await self._run(ready, scope, emit, approved=granted is not None)
            self._note(ready, scope, run.result, run.size, granted)
        else:
            run = await self._run_effect(ready, scope, emit, granted)
        if run.cancelled:
            raise asyncio.CancelledError
        return run.result

    def unrun(
        self,
        ready: Ready,
        scope: RunScope,
        content: str,
        status: Status = Status.DENIED,
        *,
        decided: bool = False,
        decision: Decision | None = None,
    ) -> ToolResult:
        """The result of a call that was not run, recorded like any other. `decided`: for this
        whole run; `decision`: when a person was asked."""
        run = self._unrun(ready, scope, content, status, decided=decided)
        self._note(ready, scope, run.result, run.size, decision)
        return run.result

    def _unrun(
        self,
        ready: Ready,
        scope: RunScope,
        content: str,
        status: Status = Status.DENIED,
        *,
        decided: bool = False,
        cancelled: bool = False,
    ) -> _Run:
        result = ToolResult(ready.call.id, ready.call.name, status, content)
        scope.done.append(_entry(ready, result, started=False, decided=decided))
        return _Run(result, len(content), cancelled)

    async def _run_effect(
        self, ready: Ready, scope: RunScope, emit: Emit, granted: Decision | None
    ) -> _Run:
        """Between an intent that is on the disk and its outcome."""
        call, approved = ready.call, granted is not None
        writing = self._audit.intent(
            scope.caller, scope.run_id, call.name, call.arguments,
            target=ready.target, decision=granted,
        )  # fmt: skip
        try:
            intent, cancelled = await _settled(writing)
        except OSError as error:
            logger.error("run %s: audit cannot be written: %s", scope.run_id, error)
            return self._unrun(ready, scope, "审计日志写不进去，所以没有执行，请管理员检查磁盘。")
        if cancelled:
            run = self._unrun(ready, scope, "提问已取消，没有执行。", cancelled=True)
        elif not approved and scope.remaining() <= 0:  # the disk took its time
            run = self._unrun(ready, scope, _TOO_LATE)
        else:
            run = await self._run(ready, scope, emit, approved=approved)
        result = run.result
        try:
            closing = self._audit.outcome(intent, result.status, result.content, run.size)
            _, cancelled = await _settled(closing)
        except OSError as error:
            # The next start will find the intent alone and call it unknown, which errs safely.
            logger.error("run %s: audit cannot be written: %s", scope.run_id, error)
        return replace(run, cancelled=run.cancelled or cancelled)

    async def _run(self, ready: Ready, scope: RunScope, emit: Emit, *, approved: bool) -> _Run:
        loop = asyncio.get_running_loop()
        seconds = self._policy.timeout(ready.spec, ready.tool.timeout)
        if not approved:
            seconds = min(seconds, scope.remaining())
        started = loop.time()
        end = started + seconds
        files = FileRoots(self._settings.data_dir, scope.caller)
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
            tell=lambda sentence: told.append(self._sentence(sentence)),
            attach=attached.attach,
        )
        emit(CallStarted(ready.call, ready.spec))
        task = loop.create_task(_contained(ready.tool.run(context, dict(ready.call.arguments))))
        stopped, cancelled = await self._wait(task, seconds)
        status, text = self._ending(task, ready, scope, stopped)
        foreign = ready.spec.foreign or files.opened_upload
        size = len(text)
        text, cut = render.shortened(render.capped(text), self._limit, size)
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
        scope.done.append(_entry(ready, result, started=True, told=told, files=handed))
        return _Run(result, size, cancelled)

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
            cancelled = (await _settled(unwinding))[1] or cancelled
        return stopped, cancelled

    def _forget(self, task: asyncio.Task[Any]) -> None:
        self._left_behind.discard(task)
        if not task.cancelled():
            task.exception()  # looked at in _ending, or too late to matter

    def _ending(
        self, task: asyncio.Task[Any], ready: Ready, scope: RunScope, stopped: str
    ) -> tuple[Status, str]:
        after_start = Status.FAILED if ready.reads else Status.UNKNOWN
        if not task.done() or task.cancelled():
            return self._fault(ready, after_start, stopped)
        error = task.exception()
        if error is None:
            text = task.result()
            flaw = _flaw(text, ready)
            return self._fault(ready, Status.FAILED, flaw) if flaw else (Status.OK, text)
        if isinstance(error, ToolOutcomeUnknown):
            return after_start, self._sentence(error.sentence)
        if isinstance(error, ToolDenied):
            return self._fault(ready, Status.DENIED, error.sentence)
        if isinstance(error, ToolFailed):
            return self._fault(ready, Status.FAILED, error.sentence)
        self._log(ready, scope, error)
        if isinstance(error, ChatHandsError):
            return self._fault(ready, after_start, error.sentence)
        if isinstance(error, TimeoutError):
            return self._fault(ready, after_start, "工具等待对方回应超时")
        return self._fault(ready, after_start, f"工具内部出错（编号 {scope.run_id}）")

    def _fault(self, ready: Ready, status: Status, sentence: str) -> tuple[Status, str]:
        sentence = self._sentence(sentence)
        if not sentence.endswith(("。", "！", "？", "…", ".", "!", "?")):
            sentence += "。"
        if status is Status.UNKNOWN:
            target = f"（{ready.target}）" if ready.target else ""
            sentence += (
                f"不能确定 {ready.call.name}{target} 是否已经完成，请人工核对；不会自动重试。"
            )
        return status, sentence

    def _sentence(self, text: str) -> str:
        return render.one_sentence(self._redactor.sentence(text))

    def _log(self, ready: Ready, scope: RunScope, error: BaseException) -> None:
        """With traceback, but as text: an exception's own message may carry an address with a
        token in it (httpx puts the URL there)."""
        trace = "".join(traceback.format_exception(error))
        logger.error(
            "run %s: tool %s raised\n%s", scope.run_id, ready.call.name, self._redactor.text(trace)
        )

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


async def _contained(running: Awaitable[Any]) -> str:
    """What the tool gave, as text: written out here, where what it raises is still the tool's own
    fault (a value nested too deeply, a `__str__` that fails).

    A tool that calls sys.exit() must not end the bot: asyncio lets SystemExit through.
    """
    try:
        return render.as_text(await running)
    except SystemExit as error:
        raise RuntimeError(f"tool raised SystemExit({error.code})") from error


_T = TypeVar("_T")


async def _settled(awaitable: Awaitable[_T]) -> tuple[_T, bool]:
    """Wait for what must not be left half done; (its result, whether we were cancelled meanwhile).

    Whoever gets True has to raise CancelledError when it has tidied up.
    """
    task = asyncio.ensure_future(awaitable)
    cancelled = False
    while not task.done():
        try:
            await asyncio.wait({task})
        except asyncio.CancelledError:
            cancelled = True
    return task.result(), cancelled


def _entry(
    ready: Ready,
    result: ToolResult,
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
    )


def _flaw(text: str, ready: Ready) -> str | None:
    """What is wrong with a text that a model wrote inside a reading tool; None when it will do."""
    if ready.spec.deterministic or not ready.reads:
        return None
    from chathands.emulation.refusal import stance_of

    if not text.strip():
        return "没有产生内容，请换一种说法再试"
    if stance_of(text[:OPENING]).kind in ("refusal", "safety_refusal"):
        return "没有产生可用的内容，请换一种说法再试"
    sources = [len(v) for v in ready.call.arguments.values() if isinstance(v, str)]
    source = max(sources, default=0)
    if source >= SOURCE_CHARACTERS and len(text) > source:
        return "产生的内容比原文还长，没有采用"
    return None
