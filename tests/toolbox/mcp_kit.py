"""External MCP servers for tests: `mcp_foreign.py` as a real child, through the real executor."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from chathands.agent.loading import LoadedTools
from chathands.conversation import ToolCall, ToolResult
from chathands.settings import Settings
from chathands.toolbox import Caller, Executor, Registry, RunScope, load_policy
from chathands.toolbox.audit import open_audit
from chathands.toolbox.mcp_source import McpSources, Standing
from chathands.toolbox.redact import Redactor
from chathands.workers.pool import WorkerPool
from tests.toolbox.kit import BOSS, settings_in

SCRIPT = Path(__file__).parents[1] / "support" / "mcp_foreign.py"


def listed(*names: str, **more: Any) -> list[dict[str, Any]]:
    """Plain tools with one optional argument."""
    schema = {"type": "object", "properties": {"x": {"type": "string", "description": "值"}}}
    return [{"name": n, "description": f"{n} 的说明", "inputSchema": schema, **more} for n in names]


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


@dataclass
class Foreign:
    sources: McpSources
    registry: Registry
    executor: Executor
    settings: Settings
    directory: Path
    changes: asyncio.Condition = field(default_factory=asyncio.Condition)

    def table(self, name: str = "far", **more: Any) -> dict[str, Any]:
        return {
            "command": sys.executable,
            "args": ["-S", "-E", str(SCRIPT), str(self.directory / f"{name}.json")],
            **more,
        }

    def offers(self, tools: Sequence[Mapping[str, Any]], name: str = "far") -> None:
        (self.directory / f"{name}.json").write_text(json.dumps({"tools": list(tools)}), "utf-8")

    def calls(self, name: str = "far") -> list[str]:
        file = self.directory / f"{name}.json.calls"
        return file.read_text("utf-8").splitlines() if file.exists() else []

    @property
    def names(self) -> set[str]:
        return set(self.registry.current.specs)

    def standing(self, name: str = "far") -> Standing:
        return next(each for each in self.sources.standing() if each.name == name)

    def pid(self, name: str = "far") -> int:
        child = self.sources._links[name]._child
        assert child is not None
        assert child._process is not None
        return child._process.pid

    async def until(self, condition: Callable[[], bool]) -> None:
        async with asyncio.timeout(15), self.changes:
            await self.changes.wait_for(condition)

    async def call(
        self, tool: str, /, by: Caller = BOSS, seconds: float = 10, **arguments: Any
    ) -> ToolResult:
        """As a run does it, the yes of a person given."""
        end = asyncio.get_running_loop().time() + seconds
        scope = RunScope(
            "r_1", by, self.registry.current, lambda: end - asyncio.get_running_loop().time()
        )
        call = ToolCall("c_1", tool, arguments)
        batch = await self.executor.run_batch([call], scope)
        if batch.pending is not None:
            hashes = frozenset({batch.pending.call_hash})
            batch = await self.executor.run_batch([call], scope, granted=hashes, granted_by="9")
        (result,) = batch.results
        return result


@asynccontextmanager
async def foreign(directory: Path, *, toml: str = "", **environment: str) -> AsyncIterator[Foreign]:
    settings = settings_in(directory)
    if toml:
        (directory / "tools.toml").write_text(toml, "utf-8")
    registry = Registry()
    tools = LoadedTools(registry, settings, None)
    audit = open_audit(settings.state_dir, Redactor.of(settings))
    workers = WorkerPool(settings.worker)
    executor = Executor(settings, load_policy(settings), audit, workers, _no_http)
    changes = asyncio.Condition()

    def served(owner: str, found: Any) -> None:
        tools.set_source(owner, found)
        asyncio.get_running_loop().create_task(_notify(changes))

    sources = McpSources(
        served,
        base=directory,
        redactor=Redactor.of(settings),
        environment={"PATH": os.environ["PATH"], **environment},
        first_pause=0.05,
    )
    try:
        yield Foreign(sources, registry, executor, settings, directory, changes)
    finally:
        await sources.aclose()
        await workers.aclose()
        await asyncio.to_thread(audit.close)


async def _notify(changes: asyncio.Condition) -> None:
    async with changes:
        changes.notify_all()


def _no_http() -> Any:
    raise AssertionError("no tool here asks for it")
