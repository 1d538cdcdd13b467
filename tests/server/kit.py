"""A tool server on a real socket: real tools, executor, store and audit; httpx as the client."""

from __future__ import annotations

import asyncio
import socket
import textwrap
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import uvicorn

from chathands.agent.toolbox import Toolbox, build_toolbox
from chathands.server import create_app
from chathands.server.auth import Auth
from chathands.server.tools_api import ToolsApi
from chathands.settings import ApiSettings, ApiToken, Settings

TOOLS = '''
import asyncio
from datetime import date
from typing import Annotated, Literal
from pydantic import BaseModel, Field
from chathands import ToolContext, tool
from chathands.errors import ToolFailed, ToolOutcomeUnknown


def did(ctx, what):
    with open(ctx.settings.state_dir / "effects.txt", "a", encoding="utf-8") as file:
        file.write(what + "\\n")


async def gate(ctx, name):
    """Until the test lets it go on."""
    path = ctx.settings.state_dir / name
    while not path.exists():
        await asyncio.sleep(0.005)


class Person(BaseModel):
    name: Annotated[str, Field(min_length=1, description="名字")]
    age: Annotated[int, Field(ge=0, description="年龄")] = 0


@tool(side_effect="none", timeout=5)
async def look_up(
    ctx: ToolContext,
    city: Annotated[str, Field(max_length=20, description="城市")],
    days: Annotated[int, Field(ge=1, le=7, description="几天")] = 1,
    unit: Annotated[Literal["c", "f"], Field(description="单位")] = "c",
    day: Annotated[date | None, Field(description="日期")] = None,
    people: Annotated[list[Person], Field(description="谁")] = [],
) -> str:
    """查一个城市的天气。"""
    if city == "没有":
        raise ToolFailed("没有这个城市。")
    if city == "坏":
        raise RuntimeError("secret path /etc/shadow")
    ctx.attach("图.png", b"\\x89PNG\\r\\n\\x1a\\n")
    return f"{city} {days} {unit} {day} {[p.name for p in people]}"


@tool(side_effect="none", timeout=0.05)
async def too_slow(ctx: ToolContext) -> str:
    """从来不及时回答。"""
    await asyncio.sleep(30)
    return "不会到这里"


@tool(side_effect="none", timeout=30)
async def waits(ctx: ToolContext, name: Annotated[str, Field(description="等什么")]) -> str:
    """等到放行为止。"""
    await gate(ctx, name)
    return "等到了"


@tool(side_effect="local", timeout=30)
async def note(
    ctx: ToolContext,
    text: Annotated[str, Field(description="内容")],
    until: Annotated[str, Field(description="等什么")] = "",
) -> str:
    """记一条笔记。"""
    did(ctx, f"note {text}")
    if until:
        await gate(ctx, until)
    if text == "不明":
        raise ToolOutcomeUnknown("断线了，不知道记下没有。")
    return f"记好了 {text}"


@tool(side_effect="outward", target="robot", shows=("content",), timeout=5)
async def push(
    ctx: ToolContext,
    robot: Annotated[str, Field(description="机器人")],
    content: Annotated[str, Field(description="正文")],
) -> str:
    """向一个群推送一条消息。"""
    did(ctx, f"{ctx.caller.platform}/{ctx.caller.user_id} {robot} {content}")
    return f"已推送到 {robot}"


@tool(side_effect="none", audience="admin")
async def report(ctx: ToolContext) -> str:
    """管理员的报表。"""
    return "报表"
'''

TOKENS = {
    "tok-ci": ApiToken(name="ci", rate=500),
    "tok-other": ApiToken(name="other", rate=500),
    "tok-boss": ApiToken(name="boss", rate=500, role="superuser", may_approve=True),
    "tok-approver": ApiToken(name="approver", rate=500, may_approve=True),
    "tok-narrow": ApiToken(name="narrow", rate=500, tools=("look_*", "report")),
    "tok-slow": ApiToken(name="slow", rate=2),
    "tok-中文": ApiToken(name="中文", rate=500),
}


def bearer(token: str) -> dict[str, str]:
    return {"authorization": f"Bearer {token}"}


async def until(condition: Callable[[], bool]) -> None:
    """Look again and again: what is waited for happens in a file or in another thread."""
    async with asyncio.timeout(10):
        while not condition():  # noqa: ASYNC110
            await asyncio.sleep(0.005)


@dataclass
class Served:
    """A running server. `client` sends the token of `ci`."""

    client: httpx.AsyncClient
    anonymous: httpx.AsyncClient
    toolbox: Toolbox
    tools: ToolsApi
    settings: Settings
    port: int

    async def call(self, tool: str, token: str = "", **arguments: Any) -> httpx.Response:
        headers = bearer(token) if token else {}
        return await self.client.post(f"/tools/{tool}", json=arguments, headers=headers)

    @property
    def effects(self) -> list[str]:
        file = self.settings.state_dir / "effects.txt"
        return file.read_text("utf-8").splitlines() if file.exists() else []

    def let_go(self, name: str) -> None:
        (self.settings.state_dir / name).touch()

    async def until_effects(self, count: int) -> None:
        await until(lambda: len(self.effects) >= count)


def settings_in(directory: Path, **api: Any) -> Settings:
    (directory / "tools").mkdir(exist_ok=True)
    (directory / "data").mkdir(exist_ok=True)
    (directory / "tools" / "box.py").write_text(textwrap.dedent(TOOLS), "utf-8")
    return Settings(
        _env_file=None,  # type: ignore[call-arg]
        data_dir=directory / "data",
        tools_dir=directory / "tools",
        state_dir=directory / "state",
        api=ApiSettings(**api),
    )


@asynccontextmanager
async def serving(
    directory: Path, *, tokens: Any = TOKENS, toml: str = "", **api: Any
) -> AsyncIterator[Served]:
    """A tool server without a model, its files below `directory`."""
    settings = settings_in(directory, tokens=tokens, **api)
    if toml:
        (directory / "tools.toml").write_text(toml, "utf-8")
    async with build_toolbox(settings, owner="server") as toolbox:
        auth = Auth(settings.api.tokens)
        tools = ToolsApi(toolbox, settings, auth)
        app = create_app(None, auth=auth, tools=tools)
        config = uvicorn.Config(app, log_level="critical", lifespan="off", ws="none")
        server = uvicorn.Server(config)
        listening = socket.create_server(("127.0.0.1", 0))
        port = listening.getsockname()[1]
        running = asyncio.create_task(server.serve([listening]))
        address = f"http://127.0.0.1:{port}"
        try:
            async with (
                httpx.AsyncClient(base_url=address, headers=bearer("tok-ci"), timeout=20) as client,
                httpx.AsyncClient(base_url=address, timeout=20) as anonymous,
            ):
                yield Served(client, anonymous, toolbox, tools, settings, port)
        finally:
            await tools.aclose()
            server.should_exit = True
            await running
            listening.close()
