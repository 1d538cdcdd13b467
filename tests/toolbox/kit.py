"""A toolbox on a real directory: tool modules as files, real audit, real policy file."""

from __future__ import annotations

import asyncio
import textwrap
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from chathands.conversation import ToolCall
from chathands.settings import Settings, load_settings
from chathands.toolbox import Caller, Executor, Generation, RunScope, load_policy, load_tools
from chathands.toolbox.audit import Audit, open_audit
from chathands.toolbox.redact import Redactor
from chathands.workers.pool import WorkerPool

HEAD = """
import asyncio
import threading
import time
from typing import Annotated, Literal
from pydantic import Field
from chathands import tool, ToolContext
from chathands.errors import ToolDenied, ToolFailed, ToolOutcomeUnknown

def did(ctx, what):
    with open(ctx.settings.state_dir / "effects.txt", "a", encoding="utf-8") as file:
        file.write(what + "\\n")
"""

SEND = """
@tool(side_effect="outward", target="robot", shows=("content",), timeout=10)
async def send(
    ctx: ToolContext,
    robot: Annotated[str, Field(description="机器人")],
    content: Annotated[str, Field(description="正文")],
    seconds: Annotated[int, Field(description="用多久")] = 0,
) -> str:
    \"\"\"推送。\"\"\"
    did(ctx, f"start {robot} {content}")
    await asyncio.sleep(seconds)
    if content == "坏":
        raise ToolFailed("机器人不接受这条消息。")
    did(ctx, f"sent {robot} {content}")
    return f"已推送到 {robot}"
"""

READ = """
@tool(side_effect="none", timeout=10)
async def look(
    ctx: ToolContext,
    what: Annotated[str, Field(description="看什么")],
    seconds: Annotated[int, Field(description="用多久")] = 0,
) -> str:
    \"\"\"查询。\"\"\"
    did(ctx, f"look {what}")
    await asyncio.sleep(seconds)
    return f"{what}：一切正常"
"""

NOTE = """
@tool(side_effect="local", target="text")
async def note(ctx: ToolContext, text: Annotated[str, Field(description="内容")]) -> str:
    \"\"\"记一条笔记。\"\"\"
    did(ctx, f"note {text}")
    if text == "坏":
        raise ToolFailed("记不下来。")
    return "记好了"
"""

MEMBER = Caller("1001", "2001", "member", "小明", "onebot11", "9")
ADMIN = Caller("1002", "2001", "admin", "老王", "onebot11", "9")
BOSS = Caller("1003", "2001", "superuser", "老板", "onebot11", "9")


def no_http() -> Any:
    raise RuntimeError("this test has no network")


def call(name: str, /, id: str = "", **arguments: Any) -> ToolCall:
    return ToolCall(id or f"c_{name}", name, arguments)


@dataclass
class Bench:
    settings: Settings
    generation: Generation
    executor: Executor
    audit: Audit
    effects_file: Path
    events: list[Any] = field(default_factory=list)

    @property
    def effects(self) -> list[str]:
        """What tools really did, in order."""
        if not self.effects_file.exists():
            return []
        return self.effects_file.read_text("utf-8").splitlines()

    def scope(self, caller: Caller = MEMBER, *, seconds: float = 30) -> RunScope:
        """A run that has `seconds` left on the running loop's clock, if there is one."""
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            return RunScope("A7F3-09", caller, self.generation, lambda: seconds)
        end = loop.time() + seconds
        return RunScope("A7F3-09", caller, self.generation, lambda: end - loop.time())

    async def run(self, *calls: ToolCall, scope: RunScope | None = None, **options: Any) -> Any:
        options.setdefault("on_event", self.events.append)
        return await self.executor.run_batch(calls, scope or self.scope(), **options)


def settings_in(directory: Path, **overrides: Any) -> Settings:
    for name in ("data", "tools", "state"):
        (directory / name).mkdir(exist_ok=True)
    return load_settings(
        directory,
        data_dir=directory / "data",
        tools_dir=directory / "tools",
        state_dir=directory / "state",
        **overrides,
    )


def write(directory: Path, files: Mapping[str, str]) -> None:
    for name, text in files.items():
        path = directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text), "utf-8")


@contextmanager
def bench(directory: Path, *sources: str, toml: str = "", **overrides: Any) -> Iterator[Bench]:
    """Tools from `sources` (each follows HEAD in one module), policy from `toml`."""
    settings = settings_in(directory, **overrides)
    if sources:
        write(settings.tools_dir, {"box.py": HEAD + "\n".join(sources)})
    if toml:
        write(directory, {"tools.toml": toml})
    report = load_tools(settings.tools_dir, settings)
    assert report.errors == ()
    audit = open_audit(settings.state_dir, Redactor.of(settings))
    executor = Executor(
        settings, load_policy(settings), audit, WorkerPool(settings.worker), no_http
    )
    try:
        yield Bench(
            settings, report.generation, executor, audit, settings.state_dir / "effects.txt"
        )
    finally:
        audit.close()
