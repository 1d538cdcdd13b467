"""`chathands serve`: the gateway."""

from __future__ import annotations

import asyncio
from typing import Annotated, Any

import typer

from chathands.errors import ConfigError
from chathands.settings import Settings, load_settings

LEAVING_SECONDS = 2
"""For replies on their way when the gateway is stopped; without it, one that hangs holds it up for
the whole of its five minutes."""

LOOPBACK = ("127.0.0.1", "::1", "localhost")


def register(app: typer.Typer) -> None:
    @app.command("serve")
    def serve(
        upstream: Annotated[str | None, typer.Option(help="上游模型的地址。")] = None,
        model: Annotated[str | None, typer.Option(help="上游模型名。")] = None,
        host: Annotated[str, typer.Option(help="监听地址。")] = "127.0.0.1",
        port: Annotated[int, typer.Option(help="端口。", min=1, max=65535)] = 8081,
    ) -> None:
        """OpenAI 兼容的网关：上游只会聊天，客户端得到真正的 tool_calls。"""
        settings = model_settings(upstream, model)
        if host not in LOOPBACK and not settings.api.tokens:
            raise ConfigError(
                f"refusing to listen on {host} without tokens",
                sentence=f"要监听 {host}，先设置 CHATHANDS__API__TOKENS；没有 token 只能监听本机。",
            )
        asyncio.run(_serve(settings, host, port))


def model_settings(url: str | None, name: str | None) -> Settings:
    model: dict[str, Any] = {k: v for k, v in (("base_url", url), ("name", name)) if v}
    return load_settings(model=model) if model else load_settings()


async def _serve(settings: Settings, host: str, port: int) -> None:
    import uvicorn

    from chathands.server import create_app
    from chathands.upstreams.build import build_upstream
    from chathands.upstreams.ways import mode_line, ways_of

    upstream = await build_upstream(settings)
    try:
        ways = ways_of(settings)
        app = create_app(upstream, tokens=settings.api.tokens, ways=ways)
        mode = mode_line(settings, ways)
        typer.echo(f"网关：http://{host}:{port}/v1 → {upstream.name}，模式 {mode}")
        config = uvicorn.Config(
            app, host, port, log_level="warning", access_log=False,
            timeout_graceful_shutdown=LEAVING_SECONDS,
        )  # fmt: skip
        await uvicorn.Server(config).serve()
    finally:
        await upstream.aclose()
