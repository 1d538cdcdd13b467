"""The tools of kit.py over MCP: the official client on a real socket, or on a child's pipes."""

from __future__ import annotations

import asyncio
import os
import socket
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
import uvicorn
from mcp import Client, StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client

from chathands.agent.toolbox import Toolbox, build_toolbox
from chathands.server import create_app
from chathands.server.auth import Auth
from chathands.server.mcp_http import PATH, mount_mcp
from chathands.server.mcp_server import ERROR_KEY
from chathands.server.tools_api import ToolsApi
from chathands.settings import Settings
from tests.server.kit import TOKENS, bearer, settings_in, until


@dataclass
class Served:
    """A running tool server with MCP mounted."""

    address: str
    toolbox: Toolbox
    tools: ToolsApi
    settings: Settings

    @property
    def effects(self) -> list[str]:
        file = self.settings.state_dir / "effects.txt"
        return file.read_text("utf-8").splitlines() if file.exists() else []

    def let_go(self, name: str) -> None:
        (self.settings.state_dir / name).touch()

    async def until_effects(self, count: int) -> None:
        await until(lambda: len(self.effects) >= count)

    async def approve(self, ticket: str) -> None:
        assert await self.toolbox.store.tickets.decide(ticket, approve=True, by="boss")

    @asynccontextmanager
    async def client(
        self, token: str = "tok-ci", *, mode: Any = "auto", **kwargs: Any
    ) -> AsyncIterator[Client]:
        headers = bearer(token) if token else {}
        async with (
            httpx2.AsyncClient(headers=headers, timeout=20) as http,
            Client(
                streamable_http_client(self.address + PATH, http_client=http),
                mode=mode,
                **kwargs,
            ) as client,
        ):
            yield client


@asynccontextmanager
async def serving_mcp(
    directory: Path, *, tokens: Any = TOKENS, toml: str = "", **api: Any
) -> AsyncIterator[Served]:
    settings = settings_in(directory, tokens=tokens, **api)
    if toml:
        (directory / "tools.toml").write_text(toml, "utf-8")
    async with build_toolbox(settings, owner="server") as toolbox:
        auth = Auth(settings.api.tokens)
        tools = ToolsApi(toolbox, settings, auth)
        app = create_app(None, auth=auth, tools=tools)
        async with mount_mcp(app, tools.desk, toolbox.registry, auth, body_kb=settings.api.body_kb):
            config = uvicorn.Config(
                app, log_level="critical", lifespan="off", ws="none", timeout_graceful_shutdown=1
            )
            server = uvicorn.Server(config)
            listening = socket.create_server(("127.0.0.1", 0))
            running = asyncio.create_task(server.serve([listening]))
            port = listening.getsockname()[1]
            try:
                yield Served(f"http://127.0.0.1:{port}", toolbox, tools, settings)
            finally:
                await tools.aclose()
                server.should_exit = True
                await running
                listening.close()


def command(directory: Path, *arguments: str) -> StdioServerParameters:
    """`chathands mcp` on the tools in `directory`, which `settings_in` has filled."""
    env = {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": str(Path.cwd()),
        "CHATHANDS__TOOLS_DIR": str(directory / "tools"),
        "CHATHANDS__DATA_DIR": str(directory / "data"),
        "CHATHANDS__STATE_DIR": str(directory / "state"),
    }
    program = "from chathands.cli import main; main()"
    return StdioServerParameters(
        command=sys.executable, args=["-c", program, "mcp", *arguments], env=env, cwd=directory
    )


@asynccontextmanager
async def over_stdio(
    directory: Path, *arguments: str, mode: Any = "auto", **kwargs: Any
) -> AsyncIterator[Client]:
    with (directory / "stderr.txt").open("w") as log:
        transport = stdio_client(command(directory, *arguments), errlog=log)
        async with Client(transport, mode=mode, **kwargs) as client:
            yield client


def text_of(result: Any) -> str:
    return "\n".join(block.text for block in result.content if block.type == "text")


def error_of(result: Any) -> dict[str, Any]:
    assert result.is_error
    assert len(text_of(result).splitlines()) == 1  # one sentence
    return result.meta[ERROR_KEY]
