"""`chathands tools …`: what is loaded, whether it is in order, a new one, one call, what models
send. Running one and the report have files of their own."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from chathands.settings import Settings, load_settings

if TYPE_CHECKING:
    from chathands.conversation import ToolSpec
    from chathands.toolbox import Policy
    from chathands.toolbox.check import Finding
    from chathands.toolbox.tool import Tool

MCP_SECONDS = 10.0
"""For external MCP servers to say what they have; one that is started takes two or three."""

SIDE_EFFECTS = {"none": "只读", "local": "只改自己的", "outward": "对外", "unknown": "不明"}
_AUDIENCES = {"everyone": "人人", "admin": "管理员", "superuser": "超级用户"}

Role = Literal["member", "admin", "superuser"]


def register(app: typer.Typer) -> None:
    group = typer.Typer(
        help="工具：列出、检查、新建、试用、看模型怎么用。", invoke_without_command=True
    )
    app.add_typer(group, name="tools")

    @group.callback()
    def default(context: typer.Context) -> None:
        if context.invoked_subcommand is None:
            sys.exit(asyncio.run(_list(as_json=False, mcp=True)))

    @group.command("list")
    def listed(
        as_json: Annotated[bool, typer.Option("--json", help="给程序看的 JSON。")] = False,
        mcp: Annotated[bool, typer.Option(help="也连外部 MCP 服务，列出它们的工具。")] = True,
    ) -> None:
        """列出工具：谁能用、要不要批准、版本、来自哪里；有没加载成功的，退出码为 1。"""
        sys.exit(asyncio.run(_list(as_json=as_json, mcp=mcp)))

    @group.command("check")
    def check(
        update: Annotated[
            bool, typer.Option("--update", help="把新的和改了版本的写进 snapshot.json。")
        ] = False,
        strict: Annotated[bool, typer.Option("--strict", help="有提醒也算没通过。")] = False,
    ) -> None:
        """检查工具文件：说明、参数、名字、示例、副作用、版本；有问题的写出文件和行，退出码为 1。"""
        sys.exit(_check(load_settings(), update=update, strict=strict))

    @group.command("new")
    def new(
        name: Annotated[str, typer.Argument(help="工具名，例如 find_orders。")],
        outward: Annotated[
            bool, typer.Option("--outward", help="会发到外面的工具；不写就是只读的。")
        ] = False,
    ) -> None:
        """写一个能用的工具文件和它的测试，改成自己的就行；已有的文件不会动。"""
        sys.exit(_new(load_settings(), name, outward=outward))

    @group.command("call")
    def call(
        name: Annotated[str, typer.Argument(help="工具名。")],
        arguments: Annotated[
            list[str] | None,
            typer.Argument(help="参数=值；列表用逗号隔开或重复写，嵌套的写成 a.b=值。"),
        ] = None,
        as_json: Annotated[
            str | None, typer.Option("--json", help="参数的 JSON 对象；写 - 从标准输入读。")
        ] = None,
        role: Annotated[Role, typer.Option("--as", help="以谁的身份。")] = "superuser",
        yes: Annotated[bool, typer.Option("--yes", help="要批准的操作，直接批准。")] = False,
        out: Annotated[
            Path, typer.Option(help="文件写到哪个目录。", file_okay=False, exists=True)
        ] = Path("."),
    ) -> None:
        """运行一个工具，检查和规则与机器人里一样。

        退出码：0 成功，1 没办成，2 参数或工具名不对，3 没有执行（不允许、没批准），4 结果不明。
        """
        from chathands.cli.tools_call import read_arguments, run

        given = read_arguments(arguments or (), as_json)
        sys.exit(run(load_settings(), name, given, role=role, yes=yes, out=out))

    @group.command("report")
    def report(
        days: Annotated[
            int | None, typer.Option(help="最近几天；不写就是记录里全部。", min=1)
        ] = None,
        name: Annotated[str | None, typer.Argument(help="只看这个工具。")] = None,
    ) -> None:
        """从提问记录里看模型怎么用工具：不合格和失败的比例、写错的值、编造的名字。"""
        from chathands.cli.tools_report import show

        sys.exit(asyncio.run(show(load_settings(), days, name)))


async def _list(*, as_json: bool, mcp: bool) -> int:
    from chathands.toolbox import load_policy, load_tools

    settings = load_settings()
    policy = load_policy(settings)
    report = load_tools(settings.tools_dir, settings, every=True)
    tools = dict(report.generation.tools)
    specs, owners = dict(report.generation.specs), dict(report.generation.owners)
    complaints = [*policy.complaints(specs), *(error.sentence for error in report.errors)]
    if mcp and policy.rules.mcp:
        foreign, faults = await foreign_tools(settings, policy, MCP_SECONDS)
        complaints += faults
        for owner, found in foreign.items():
            for tool, spec in found:
                if spec.name in specs:
                    complaints.append(f"{owner} 的 {spec.name} 和 {owners[spec.name]} 的同名。")
                    continue
                tools[spec.name], specs[spec.name], owners[spec.name] = tool, spec, owner
    rows = [
        {
            **_row(tools[name], specs[name], owners[name], policy),
            "configured": tools[name].configured(settings),
        }
        for name in sorted(specs)
    ]
    if as_json:
        typer.echo(json.dumps(rows, ensure_ascii=False, indent=1))
    else:
        for row in rows:
            for line in _lines(row):
                typer.echo(line)
    for complaint in complaints:
        typer.echo(complaint, err=True)
    return 1 if report.errors else 0


def _row(tool: Tool, spec: ToolSpec, owner: str, policy: Policy) -> dict[str, Any]:
    rule = policy.rule(spec.name)
    approve = rule.approve
    return {
        "name": spec.name,
        "owner": owner,
        "source": _source(tool, owner),
        "side_effect": spec.side_effect,
        "who": list(rule.who) if isinstance(rule.who, tuple) else policy.audience(spec),
        "enabled": rule.enabled,
        "approval": policy.approval_reason(spec, read_foreign=False) is not None,
        "approve": approve if isinstance(approve, str) else list(approve),
        "version": spec.version,
        "deprecated": spec.deprecated,
        "description": spec.description,
    }


def _source(tool: Tool, owner: str) -> str:
    """`weather/__init__.py:35`, or the server."""
    if owner.startswith("mcp:"):
        return owner
    from chathands.toolbox.check_sources import place_of

    path, line = place_of(tool)
    package = owner.rstrip("/")
    parts = path.parts
    at = len(parts) - 1 - parts[::-1].index(package) if package in parts else len(parts) - 1
    return f"{'/'.join(parts[at:])}:{line}"


def _lines(row: dict[str, Any]) -> Iterator[str]:
    who = row["who"]
    audience = _AUDIENCES[who] if isinstance(who, str) else f"{len(who)} 个人"
    facts = [
        row["name"],
        SIDE_EFFECTS[row["side_effect"]],
        f"{audience}可用" if row["enabled"] else "已停用",
        "要批准" if row["approval"] else "不用批准",
    ]
    if not row["configured"]:
        facts.append("还没有配置，不给模型看")
    if row["version"] != 1:
        facts.append(f"版本 {row['version']}")
    if row["deprecated"]:
        facts.append(f"已弃用：{row['deprecated']}")
    yield f"{'  '.join(facts)}  ({row['owner']})"
    yield f"    {next(iter(row['description'].strip().splitlines()), '')}"


async def foreign_tools(
    settings: Settings, policy: Policy, seconds: float
) -> tuple[dict[str, Sequence[tuple[Tool, ToolSpec]]], list[str]]:
    """(owner → what it offers, a sentence for each server that is not there)."""
    from chathands.toolbox import Redactor
    from chathands.toolbox.mcp_source import McpSources
    from chathands.toolbox.policy_file import policy_path

    found: dict[str, Sequence[tuple[Tool, ToolSpec]]] = {}

    def served(owner: str, offer: Sequence[tuple[Tool, ToolSpec]] | None) -> None:
        found[owner] = offer or ()

    sources = McpSources(served, base=policy_path(settings).parent, redactor=Redactor.of(settings))
    try:
        await sources.apply(policy.rules.mcp)
        await sources.settled(seconds)
        faults = [
            f"外部 MCP 服务 {each.name} 的工具没有列出：{each.reason or '还没连上'}"
            for each in sources.standing()
            if each.state != "ready" and not (each.state == "off" and each.where)
        ]
    finally:
        await sources.aclose()
    return found, faults


def _check(settings: Settings, *, update: bool, strict: bool) -> int:
    from chathands.toolbox.check import check_tools
    from chathands.toolbox.check_snapshot import FILE, write_snapshot

    directory = settings.tools_dir
    checked = check_tools(directory, settings)
    findings: Iterable[Finding] = checked.findings
    if update:
        try:
            written = write_snapshot(directory.resolve() / FILE, checked.snapshot)
        except OSError as error:
            typer.echo(f"写不了 {directory / FILE}：{error.strerror}。", err=True)
            return 1
        typer.echo(f"{directory / FILE} {'已更新' if written else '没有变化'}。")
        checked = check_tools(directory, settings)
        findings = checked.findings
    for each in findings:
        typer.echo(f"{directory.as_posix()}/{each}")
    warnings = sum(each.warning for each in checked.findings)
    faults = len(checked.findings) - warnings
    if checked.failed(strict=strict):
        typer.echo(f"检查了 {len(checked.tools)} 个工具：{faults} 个问题，{warnings} 个提醒。")
        return 1
    noted = f"，{warnings} 个提醒" if warnings else ""
    typer.echo(f"检查了 {len(checked.tools)} 个工具，没有问题{noted}。")
    return 0


def _new(settings: Settings, name: str, *, outward: bool) -> int:
    from chathands.toolbox import load_tools
    from chathands.toolbox.skeleton import SkeletonError, write_skeleton

    report = load_tools(settings.tools_dir, settings)
    try:
        made = write_skeleton(
            name, settings.tools_dir, outward=outward, taken=tuple(report.generation.tools)
        )
    except SkeletonError as error:
        typer.echo(error.sentence, err=True)
        return 2
    typer.echo(f"写好了 {_near(made.tool)} 和 {_near(made.test)}。")
    typer.echo("改成自己的：函数、说明、参数、示例；保存后运行中的机器人会自动加载。")
    typer.echo(
        f"试一试：chathands tools call {name} …    测试：python -m pytest {_near(made.test)}"
    )
    typer.echo("写好后：chathands tools check --update，把 snapshot.json 一起提交。")
    return 0


def _near(path: Path) -> str:
    """As one would type it here."""
    here = Path.cwd().resolve()
    return str(path.relative_to(here)) if path.is_relative_to(here) else str(path)
