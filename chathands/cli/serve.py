"""`chathands serve` and `chathands eval`: the gateway, and the figures."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Annotated, Any

import typer

from chathands.errors import ConfigError
from chathands.evals.case import shipped_cases
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
        settings = _settings(upstream, model)
        if host not in LOOPBACK and not settings.api.tokens:
            raise ConfigError(
                f"refusing to listen on {host} without tokens",
                sentence=f"要监听 {host}，先设置 CHATHANDS__API__TOKENS；没有 token 只能监听本机。",
            )
        asyncio.run(_serve(settings, host, port))

    @app.command("eval")
    def evaluate(
        cases: Annotated[Path | None, typer.Argument(help="用例文件；不写就用自带的。")] = None,
        upstream: Annotated[str | None, typer.Option(help="模型的地址。")] = None,
        model: Annotated[str | None, typer.Option(help="模型名。")] = None,
        failures: Annotated[Path | None, typer.Option(help="把没做对的写到这个文件。")] = None,
    ) -> None:
        """跑用例，打印四层指标。"""
        asyncio.run(_evaluate(_settings(upstream, model), cases or shipped_cases(), failures))


def _settings(url: str | None, name: str | None) -> Settings:
    model: dict[str, Any] = {k: v for k, v in (("base_url", url), ("name", name)) if v}
    return load_settings(model=model) if model else load_settings()


async def _serve(settings: Settings, host: str, port: int) -> None:
    import uvicorn

    from chathands.server import create_app
    from chathands.upstreams.build import build_upstream

    upstream = await build_upstream(settings)
    try:
        app = create_app(upstream, tokens=settings.api.tokens)
        typer.echo(f"网关：http://{host}:{port}/v1 → {upstream.name}")
        config = uvicorn.Config(
            app, host, port, log_level="warning", access_log=False,
            timeout_graceful_shutdown=LEAVING_SECONDS,
        )  # fmt: skip
        await uvicorn.Server(config).serve()
    finally:
        await upstream.aclose()


async def _evaluate(settings: Settings, path: Path, failures: Path | None) -> None:
    from chathands.evals import load_cases, run_case, summarise
    from chathands.upstreams.build import build_upstream

    try:
        cases = load_cases(path)
    except OSError as error:
        raise ConfigError(
            f"{path}: {error}", sentence=f"用例文件 {path} 读不出来：{error.strerror}。"
        ) from None
    upstream = await build_upstream(settings)
    try:
        results = []
        for number, case in enumerate(cases, 1):
            result = await run_case(case, upstream)
            results.append(result)
            verdict = "ok" if result.completed else "—"
            typer.echo(f"{number}/{len(cases)} {case.id} {verdict} {result.seconds:.1f}s")
        typer.echo(str(summarise(results)))
        if failures is not None:
            _write_failures(failures, [r for r in results if not r.completed])
    finally:
        await upstream.aclose()


def _write_failures(path: Path, results: list[Any]) -> None:
    lines = [
        json.dumps(
            {
                "id": result.case.id,
                "request": result.case.request,
                "calls": [[call.name, dict(call.arguments)] for call in result.calls],
                "answer": result.answer,
                "transcript": [f"{m.role}: {m.text}" for m in result.transcript],
            },
            ensure_ascii=False,
        )
        for result in results
    ]
    path.write_text("\n".join(lines) + "\n", "utf-8")
