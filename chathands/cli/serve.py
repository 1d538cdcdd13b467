"""`chathands serve`: the gateway and the tool server, in one process."""

from __future__ import annotations

import asyncio
import gc
import signal
from collections.abc import Callable
from contextlib import AsyncExitStack
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Annotated, Any

import typer

from chathands.errors import ConfigError
from chathands.open_files import raise_open_files
from chathands.settings import Settings, load_settings

if TYPE_CHECKING:
    from chathands.upstreams.router import Router

LEAVING_SECONDS = 2
"""For replies on their way when the gateway is stopped; without it, one that hangs holds it up for
the whole of its five minutes."""

SERVER = "server"
"""Whose journals of the audit trail these are."""

LOOPBACK = ("127.0.0.1", "::1", "localhost")


def register(app: typer.Typer) -> None:
    @app.command("serve")
    def serve(
        upstream: Annotated[str | None, typer.Option(help="上游模型的地址。")] = None,
        model: Annotated[str | None, typer.Option(help="上游模型名。")] = None,
        host: Annotated[str, typer.Option(help="监听地址。")] = "127.0.0.1",
        port: Annotated[int, typer.Option(help="端口。", min=1, max=65535)] = 8081,
    ) -> None:
        """网关（上游只会聊天，客户端得到真正的 tool_calls）和工具接口（HTTP 调用同一批工具）。"""
        settings = model_settings(upstream, model)
        raise_open_files()
        if host not in LOOPBACK and not settings.api.tokens:
            raise ConfigError(
                f"refusing to listen on {host} without tokens",
                sentence=f"要监听 {host}，先设置 CHATHANDS__API__TOKENS；没有 token 只能监听本机。",
            )
        with asyncio.Runner(loop_factory=_loop_factory()) as runner:
            runner.run(_serve(settings, host, port))


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """uvloop's where it exists, as uvicorn chooses by itself and the bot has it: a stream is mostly
    small reads and writes, of which it does more with the same CPU."""
    try:
        from uvloop import new_event_loop
    except ImportError:  # Windows
        return None
    return new_event_loop


def model_settings(url: str | None, name: str | None) -> Settings:
    model: dict[str, Any] = {k: v for k, v in (("base_url", url), ("name", name)) if v}
    return load_settings(model=model) if model else load_settings()


def models_line(settings: Settings, router: Router) -> str:
    """The models and in which mode each is asked; which one, where it is only one."""
    from chathands.upstreams.ways import mode_line

    default = router.default
    own = f"{default.name}，模式 {mode_line(settings, default.ways)}"
    others = [f"{name}（{m.ways}）" for name, m in router.members.items() if name != default.name]
    return "；".join([own, *others])


async def _serve(settings: Settings, host: str, port: int) -> None:
    import uvicorn

    from chathands.agent.loading import mended_sentence
    from chathands.agent.toolbox import build_toolbox
    from chathands.errors import LocalModelError, ToolLoadError
    from chathands.server import create_app
    from chathands.server.auth import Auth
    from chathands.server.connection import serve_options
    from chathands.server.tools_api import ToolsApi
    from chathands.store.responses import Responses
    from chathands.upstreams.build import build_router

    def not_loaded(error: ToolLoadError) -> None:
        typer.echo(error.sentence, err=True)

    def mended(file: str) -> None:
        typer.echo(mended_sentence(file), err=True)

    mcp_http = import_module("chathands.server.mcp_http") if find_spec("mcp") else None
    # What is imported stays for good: looking through it again and again for garbage stops every
    # call for 40 to 60 ms. Before the tools, whose old versions have to go.
    gc.collect()
    gc.freeze()

    async with AsyncExitStack() as closing:
        toolbox = await closing.enter_async_context(
            build_toolbox(settings, owner=SERVER, on_load_error=not_loaded, on_mended=mended)
        )
        auth = Auth(settings.api.tokens)
        tools = ToolsApi(toolbox, settings, auth)
        closing.push_async_callback(tools.aclose)
        router = None
        try:
            router = await build_router(settings)
            closing.push_async_callback(router.aclose)
            gateway = models_line(settings, router)
        except (ConfigError, LocalModelError) as error:
            gateway = f"没有模型，只提供工具接口。{error.sentence}"
        responses = Responses.configured(settings)
        if responses is not None:
            closing.push_async_callback(responses.aclose)
        app = create_app(router, auth=auth, tools=tools, responses=responses)
        tools.start()
        typer.echo(f"网关：http://{host}:{port}/v1 → {gateway}")
        count = len(toolbox.registry.current.specs)
        typer.echo(f"工具：http://{host}:{port}/tools，{count} 个")
        if mcp_http is not None:
            await closing.enter_async_context(
                mcp_http.mount_mcp(
                    app, tools.desk, toolbox.registry, auth, body_kb=settings.api.body_kb
                )
            )
            typer.echo(f"MCP：http://{host}:{port}{mcp_http.PATH}")
        for left in toolbox.audit.unfinished:
            typer.echo(
                f"上次退出时正在执行 {left.name}（{left.caller.user_id}，编号 {left.run_id}），"
                "不确定有没有完成，请人工核对。",
                err=True,
            )
        config = uvicorn.Config(
            app, host, port, log_level="warning", timeout_graceful_shutdown=LEAVING_SECONDS,
            **serve_options(),
        )  # fmt: skip
        # uvicorn ends by raising the signal again, and everything here is still to be closed:
        # calls to be written down, child processes to be ended.
        signal.signal(signal.SIGTERM, lambda *_: None)
        await uvicorn.Server(config).serve()
