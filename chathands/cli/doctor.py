"""`chathands doctor model`: measures in which mode the configured model does best, and keeps it.
`chathands doctor mcp`: how it stands with external MCP servers.
`chathands doctor push`: which setting of a robot is wrong.
`chathands doctor tool`: why a model does not call one."""

from __future__ import annotations

import asyncio
from datetime import date
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from chathands.cli.serve import model_settings
from chathands.settings import load_settings

if TYPE_CHECKING:
    from chathands.evals.metrics import Share
    from chathands.evals.probe import Probed
    from chathands.evals.runner import CaseResult
    from chathands.settings import Settings

_THINKING = {
    "none": "不在正文里思考",
    "tags": "正文里带 <think> 标签",
    "open": "正文从思考开始，以 </think> 结束",
}


def register(app: typer.Typer) -> None:
    group = typer.Typer(help="检查。", no_args_is_help=True)
    app.add_typer(group, name="doctor")

    @group.callback()
    def _doctor() -> None:
        """检查。"""

    @group.command("model")
    def model(
        upstream: Annotated[str | None, typer.Option(help="模型的地址。")] = None,
        model: Annotated[str | None, typer.Option(help="模型名。")] = None,
    ) -> None:
        """量一量模型用哪种方式最好，结果给 auto 用。约 120 次请求。"""
        asyncio.run(_measure(model_settings(upstream, model)))

    @group.command("mcp")
    def mcp(
        seconds: Annotated[float, typer.Option(help="最多等多少秒。", min=0.1, max=600)] = 30,
    ) -> None:
        """连一连 tools.toml 里的外部 MCP 服务，说出状态和工具；有连不上的，退出码为 1。"""
        from chathands.cli.doctor_mcp import look

        if not asyncio.run(look(load_settings(), seconds)):
            raise typer.Exit(1)

    @group.command("push")
    def push(
        robot: Annotated[str, typer.Argument(help="设置里的机器人名。")],
        send: Annotated[bool, typer.Option("--send", help="真的发一条测试消息到群里。")] = False,
    ) -> None:
        """推送机器人的哪一项设置不对：webhook、secret、关键词、网络、时钟；不发消息。"""
        from chathands.cli.doctor_push import look

        if not asyncio.run(look(load_settings(), robot, send=send)):
            raise typer.Exit(1)

    @group.command("tool")
    def tool(
        name: Annotated[str, typer.Argument(help="工具名。")],
        ask: Annotated[
            str | None, typer.Option(help="用户会问的一句话；不写就用工具的示例。")
        ] = None,
        role: Annotated[
            Literal["member", "admin", "superuser"], typer.Option("--as", help="谁在问。")
        ] = "member",
        group_id: Annotated[
            str | None, typer.Option("--group", help="在哪个群；不写就是随便一个群。")
        ] = None,
        user: Annotated[str, typer.Option(help="QQ 号，规则里有名单时写。")] = "-",
        model: Annotated[bool, typer.Option(help="也问一问模型。")] = True,
    ) -> None:
        """模型为什么不用这个工具：是没给它（选择）、没认出来（说明），还是它自己（模型）。"""
        from chathands.cli.doctor_tool import look

        working = look(
            load_settings(), name, ask=ask, role=role, group=group_id, user=user, with_model=model
        )
        if not asyncio.run(working):
            raise typer.Exit(1)


async def _measure(settings: Settings) -> None:
    from chathands.evals import load_cases
    from chathands.evals.probe import MODES, probe, probe_cases
    from chathands.upstreams.build import build_upstream
    from chathands.upstreams.ways import Measured, model_key, store

    cases = load_cases(probe_cases())
    upstream = await build_upstream(settings, alone=True)
    address, name = model_key(settings)
    typer.echo(f"{name}（{address}）：{len(cases)} 题 × {len(MODES)} 种方式")
    try:
        probed = await probe(cases, upstream, on_result=_progress)
    finally:
        await upstream.aclose()
    typer.echo(table(probed))
    typer.echo(f"思考：{_THINKING[probed.way.thinking]}。")
    typer.echo(f"选 {probed.way}：{probed.reason}")
    today = date.today().isoformat()
    measured = Measured(address, name, today, probed.way, probed.reason, probed.by_mode)
    file = store(settings.state_dir, measured)
    typer.echo(f"已存到 {file}。CHATHANDS__MODEL__MODE=auto 时从下次启动起生效。")
    if settings.model.mode != "auto":
        typer.echo(f"现在的设置是 {settings.model.mode}，它优先；要用测量结果就改成 auto。")


def _progress(result: CaseResult) -> None:
    mark = "对" if result.verdict.completed else "错"
    typer.echo(f"  {result.variant} {result.case.id} {mark} {result.seconds:.1f} 秒", err=True)


def table(probed: Probed) -> str:
    """A Markdown table of all modes."""
    lines = [
        "| 方式 | 完成 | 调用全对 | 忍住不调用 | 首次合格式 | 一题中位秒数 | 一题 token |",
        "|---|---|---|---|---|---|---|",
    ]
    for f in probed.figures:
        if f.refused:
            lines.append(f"| {f.way} | {f.refused} | – | – | – | – | – |")
            continue
        shares = " | ".join(_share(s) for s in (f.completed, f.right, f.kept, f.format))
        tokens = f"{f.prompt_tokens:.0f} + {f.completion_tokens:.0f}"
        lines.append(f"| {f.way} | {shares} | {f.seconds:.1f} | {tokens} |")
    return "\n".join(lines)


def _share(share: Share) -> str:
    return f"{share.good}/{share.total}"
