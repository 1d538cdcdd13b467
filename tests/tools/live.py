"""The shipped tools as they run: loaded by the loader, called by the executor, real sockets."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

from chathands.conversation import ToolCall, ToolResult
from chathands.settings import Settings, load_settings
from chathands.toolbox import Caller, Executor, Generation, Policy, RunScope, load_tools
from chathands.toolbox.audit import open_audit
from chathands.toolbox.http import SharedHttp
from chathands.toolbox.policy import Rules
from chathands.toolbox.redact import Redactor
from chathands.workers.pool import WorkerPool

TOOLS = Path(__file__).resolve().parents[2] / "tools"
ASKER = Caller("1001", "2001", "member", "小明", "onebot11", "9")
_runs = count(1)


@dataclass
class Live:
    settings: Settings
    generation: Generation
    executor: Executor

    async def call(self, tool: str, /, *, seconds: float = 30, **arguments: Any) -> ToolResult:
        """The result of one call in a run of its own, with nobody to be asked."""
        loop = asyncio.get_running_loop()
        end = loop.time() + seconds
        number = next(_runs)
        scope = RunScope(f"T-{number}", ASKER, self.generation, lambda: end - loop.time())
        batch = await self.executor.run_batch([ToolCall(f"c{number}", tool, arguments)], scope)
        return batch.results[0]


@asynccontextmanager
async def live(directory: Path, *, only: str = "", **settings: Any) -> AsyncIterator[Live]:
    """Approval is off here unless the settings say otherwise; it has tests of its own. `only`: the
    one package to load, which saves the imports of all the others."""
    tools = TOOLS
    if only:
        tools = directory / "tools"
        tools.mkdir(parents=True, exist_ok=True)
        (tools / only).symlink_to(TOOLS / only, target_is_directory=True)
    settings.setdefault("approval", "never")
    made = load_settings(
        directory,
        data_dir=directory / "data",
        state_dir=directory / "state",
        tools_dir=tools,
        **settings,
    )
    report = load_tools(tools, made)
    ours = ("push", "weather")
    assert [error for error in report.errors if error.file.startswith(ours)] == []
    audit = open_audit(made.state_dir, Redactor.of(made))
    http = SharedHttp()
    workers = WorkerPool(made.worker)
    executor = Executor(made, Policy(Rules(made.approval)), audit, workers, http.client)
    try:
        yield Live(made, report.generation, executor)
    finally:
        await http.aclose()
        await workers.aclose()
        audit.close()
