"""How a tool's function ended, and what that is called: status, sentence, and whose fault it is."""

from __future__ import annotations

import asyncio
import logging
import traceback
from collections.abc import Awaitable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from chathands.conversation import Status
from chathands.errors import (
    ChatHandsError,
    ToolDenied,
    ToolFailed,
    ToolOutcomeUnknown,
    WorkerError,
)
from chathands.toolbox import output, render
from chathands.toolbox.breaker import Doing, unreachable
from chathands.toolbox.calls import Code, Ready
from chathands.toolbox.context import RunScope

if TYPE_CHECKING:
    from chathands.toolbox.redact import Redactor

logger = logging.getLogger(__name__)

SOURCE_CHARACTERS = 200
"""A text argument this long is a source (to summarise, to translate), not a name or a question."""

OPENING = 600
"""Characters of such a text that are looked at for a refusal; one stands at the beginning."""


@dataclass(frozen=True, slots=True)
class End:
    """How the function ended; `size`: characters it gave."""

    status: Status
    text: str
    code: Code | None = None
    doing: Doing = "ok"
    size: int | None = None


class Endings:
    def __init__(self, redactor: Redactor) -> None:
        self._redactor = redactor

    def of(
        self, task: asyncio.Task[tuple[str, int]], ready: Ready, scope: RunScope, stopped: str
    ) -> End:
        after_start = Status.FAILED if ready.reads else Status.UNKNOWN
        if not task.done() or task.cancelled():
            return self._fault(ready, after_start, stopped, "timeout", "own")
        error = task.exception()
        if error is None:
            text, size = task.result()
            flaw = flaw_of(text, size, ready)
            if flaw:
                return self._fault(ready, Status.FAILED, flaw, "failed", "neutral")
            return End(Status.OK, text, size=size)
        if isinstance(error, ToolOutcomeUnknown):
            code = "failed" if ready.reads else "unknown"
            return End(after_start, self.sentence(error.sentence), code, "own")
        if isinstance(error, ToolDenied):
            return self._fault(ready, Status.DENIED, error.sentence, "denied", "neutral")
        if isinstance(error, ToolFailed):
            doing = "own" if unreachable(error) else "neutral"
            return self._fault(ready, Status.FAILED, error.sentence, "failed", doing)
        self._log(ready, scope, error)
        if isinstance(error, ChatHandsError):
            doing = "neutral" if isinstance(error, WorkerError) else "own"
            return self._fault(ready, after_start, error.sentence, "failed", doing)
        if isinstance(error, TimeoutError):
            return self._fault(ready, after_start, "工具等待对方回应超时", "timeout", "own")
        what = f"工具内部出错（编号 {scope.run_id}）"
        return self._fault(ready, after_start, what, "failed", "own")

    def _fault(self, ready: Ready, status: Status, sentence: str, code: Code, doing: Doing) -> End:
        sentence = self.sentence(sentence)
        if not sentence.endswith(("。", "！", "？", "…", ".", "!", "?")):
            sentence += "。"
        if status is Status.UNKNOWN:
            target = f"（{ready.target}）" if ready.target else ""
            sentence += (
                f"不能确定 {ready.call.name}{target} 是否已经完成，请人工核对；不会自动重试。"
            )
            code = "unknown" if code != "timeout" else code
        return End(status, sentence, code, doing)

    def sentence(self, text: str) -> str:
        return render.one_sentence(self._redactor.sentence(text))

    def _log(self, ready: Ready, scope: RunScope, error: BaseException) -> None:
        """With traceback, but as text: an exception's own message may carry an address with a
        token in it (httpx puts the URL there)."""
        trace = "".join(traceback.format_exception(error))
        logger.error(
            "run %s: tool %s raised\n%s", scope.run_id, ready.call.name, self._redactor.text(trace)
        )


async def contained(running: Awaitable[Any]) -> tuple[str, int]:
    """What the tool gave, as text, and its size; written out here, where what that raises is still
    the tool's own fault (a `__str__` that fails).

    A tool that calls sys.exit(), or has KeyboardInterrupt from a library, must not end the bot:
    asyncio lets these two through. A person's Ctrl-C does not come this way (asyncio and uvicorn
    take the signal).
    """
    try:
        return await output.written(await running)
    except (SystemExit, KeyboardInterrupt) as error:
        raise RuntimeError(f"tool raised {error!r}") from error


def flaw_of(text: str, size: int, ready: Ready) -> str | None:
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
    if source >= SOURCE_CHARACTERS and size > source:
        return "产生的内容比原文还长，没有采用"
    return None
