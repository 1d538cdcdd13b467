"""`chathands mcp`: the tools as an MCP server over stdin and stdout, for one client program."""

from __future__ import annotations

import asyncio
import io
import os
import signal
import sys
import threading
from collections.abc import AsyncIterator
from typing import Annotated, Any, Literal

import typer

from chathands.settings import Settings, load_settings

STDIO = "mcp"
"""Whose journals of the audit trail these are, and the platform of its caller."""

LONGEST_LINE = 4 * 1024 * 1024
"""Bytes of one message; as much as the tool server takes for MCP by default four times over."""

LEAVING_SECONDS = 5.0
"""After a signal, for calls to be written down and the tools to be closed."""

_NOT_INSTALLED = "没有安装 mcp，请运行 pip install 'chathands[mcp]'。"


def register(app: typer.Typer) -> None:
    @app.command("mcp")
    def mcp(
        role: Annotated[
            Literal["member", "admin", "superuser"] | None,
            typer.Option(help="调用者的身份；默认 member，也可设 CHATHANDS__MCP__ROLE。"),
        ] = None,
        name: Annotated[
            str | None, typer.Option(help="调用者的名字，写进审计；默认 local。")
        ] = None,
    ) -> None:
        """把工具作为 MCP 服务提供给一个客户端程序（stdin/stdout；配置见 docs/mcp.md）。"""
        from importlib.util import find_spec

        from chathands.errors import ConfigError

        if find_spec("mcp") is None:
            raise ConfigError("the mcp package is not installed", sentence=_NOT_INSTALLED)
        incoming, outgoing = _take_pipes()
        asyncio.run(_serve(load_settings(), role, name, incoming, outgoing))


def _take_pipes() -> tuple[int, int]:
    """The client's two pipes, as descriptors only this knows. From now on what anything else prints
    (tools, libraries, children) goes to stderr, and what it reads is empty."""
    incoming, outgoing = os.dup(0), os.dup(1)
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.close(null)
    os.dup2(2, 1)
    sys.stdout = sys.stderr
    return incoming, outgoing


async def _serve(
    settings: Settings, role: Any, name: str | None, incoming: int, outgoing: int
) -> None:
    import anyio
    from mcp.server.stdio import stdio_server

    from chathands.agent.toolbox import build_toolbox
    from chathands.errors import ToolLoadError
    from chathands.server.mcp_server import McpFace, Visitor
    from chathands.toolbox import Caller

    def not_loaded(error: ToolLoadError) -> None:
        typer.echo(error.sentence, err=True)

    who = name or settings.mcp.name
    caller = Caller(who, role=role or settings.mcp.role, name=who, platform=STDIO)
    lines = await _lines(incoming)
    out = anyio.wrap_file(os.fdopen(outgoing, "w", encoding="utf-8", newline="\n"))
    _stop_on_signals()
    async with build_toolbox(settings, owner=STDIO, on_load_error=not_loaded) as toolbox:
        face = McpFace.of(toolbox, settings, lambda _: Visitor(caller))
        settling = asyncio.create_task(face.desk.settle_forever())
        try:
            async with face.watching(), stdio_server(lines, out) as (read, write):
                await face.server.run(read, write, face.server.create_initialization_options())
        except asyncio.CancelledError:
            pass  # told to stop: everything is closed in order
        finally:
            settling.cancel()
            await asyncio.wait({settling})


def _stop_on_signals() -> None:
    """Cancel what runs, so that everything is closed in order. A client that reads nothing holds
    up the last message, but not the end."""
    if sys.platform == "win32":
        return
    task, loop = asyncio.current_task(), asyncio.get_running_loop()
    assert task is not None

    def stop() -> None:
        task.cancel()
        last = threading.Timer(LEAVING_SECONDS, os._exit, [1])
        last.daemon = True
        last.start()

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop)


async def _lines(incoming: int) -> Any:
    """What the client writes, line by line, where possible without a thread that waits for it: that
    could not be ended."""
    import anyio

    pipe = os.fdopen(incoming, "rb", buffering=0)
    reader = asyncio.StreamReader(limit=LONGEST_LINE)
    loop = asyncio.get_running_loop()
    try:
        await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), pipe)
    except (ValueError, NotImplementedError, OSError):  # a file; a console or pipe on Windows
        return anyio.wrap_file(io.TextIOWrapper(io.BufferedReader(pipe), "utf-8", "replace"))
    return _text_of(reader)


async def _text_of(reader: asyncio.StreamReader) -> AsyncIterator[str]:
    while True:
        try:
            line = await reader.readline()
        except ValueError:  # longer than the limit: there is no finding the next message
            typer.echo(f"一条消息超过 {LONGEST_LINE} 字节，连接结束。", err=True)
            return
        if not line:
            return
        yield line.decode("utf-8", "replace")
