"""`chathands tools | audit`: what is loaded, and whether the audit trail is whole."""

from __future__ import annotations

import sys

import typer

from chathands.settings import load_settings

_SIDE_EFFECTS = {"none": "只读", "local": "只改自己的", "outward": "对外", "unknown": "不明"}
_AUDIENCES = {"everyone": "人人", "admin": "管理员", "superuser": "超级管理员"}


def register(app: typer.Typer) -> None:
    @app.command("tools")
    def tools() -> None:
        """列出工具：谁能用、要不要批准；有没加载成功的，退出码为 1。"""
        from chathands.toolbox import load_policy, load_tools

        settings = load_settings()
        policy = load_policy(settings)
        report = load_tools(settings.tools_dir, settings)
        for name, spec in sorted(report.generation.specs.items()):
            effect = _SIDE_EFFECTS[spec.side_effect]
            asked = policy.approval_reason(spec, read_foreign=False)
            rule = "要批准" if asked else "不用批准"
            owner = report.generation.owners.get(name, "")
            who = _AUDIENCES[policy.audience(spec)]
            typer.echo(f"{name}  {effect}  {who}可用  {rule}  ({owner})")
            typer.echo(f"    {spec.description.strip().splitlines()[0]}")
        for complaint in policy.complaints(report.generation.specs):
            typer.echo(complaint, err=True)
        for error in report.errors:
            typer.echo(error.sentence, err=True)
        if report.errors:
            sys.exit(1)

    @app.command("audit")
    def audit() -> None:
        """检查审计记录有没有被截断、改动或打乱；有问题时退出码为 1。"""
        from chathands.toolbox.audit import has_trail, verify

        state_dir = load_settings().state_dir
        faults = verify(state_dir)
        for fault in faults:
            typer.echo(fault)
        whole = "审计记录完整" if has_trail(state_dir) else "还没有审计记录"
        typer.echo("审计记录有问题" if faults else whole)
        if faults:
            sys.exit(1)
