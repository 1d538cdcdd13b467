"""What `chathands doctor mcp` prints: each external MCP server, its state and its tools."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import typer

from chathands.cli.tools import SIDE_EFFECTS
from chathands.settings import Settings

if TYPE_CHECKING:
    from chathands.conversation import ToolSpec
    from chathands.toolbox.mcp_source import Standing
    from chathands.toolbox.tool import Tool

_STATES = {
    "ready": "已连上",
    "connecting": "还没连上",
    "down": "没连上",
    "off": "没有启用",
}


async def look(settings: Settings, seconds: float) -> bool:
    """Connect to the servers of tools.toml and print how it went; whether all that are switched on
    are there. The bot may run beside it: each has children of its own."""
    from chathands.toolbox import Redactor, load_policy
    from chathands.toolbox.mcp_source import McpSources
    from chathands.toolbox.policy_file import policy_path

    policy = load_policy(settings)
    specs: dict[str, ToolSpec] = {}

    def served(_owner: str, found: Sequence[tuple[Tool, ToolSpec]] | None) -> None:
        specs.update({spec.name: spec for _, spec in found or ()})

    sources = McpSources(served, base=policy_path(settings).parent, redactor=Redactor.of(settings))
    try:
        await sources.apply(policy.rules.mcp)
        await sources.settled(seconds)
        standings = sources.standing()
    finally:
        await sources.aclose()
    if not standings:
        typer.echo("tools.toml 里没有 [mcp.NAME]，写法见 docs/mcp.md。")
    for standing in standings:
        for line in _lines(standing, specs):
            typer.echo(line)
    wanted = [each for each in standings if each.where == "" or not _switched_off(each)]
    return all(each.state == "ready" for each in wanted)


def _switched_off(standing: Standing) -> bool:
    return standing.state == "off" and standing.where != ""


def _lines(standing: Standing, specs: dict[str, ToolSpec]) -> Iterator[str]:
    about = f"（{standing.info}，{standing.where}）" if standing.info else ""
    why = f"：{standing.reason}" if standing.reason else ""
    yield f"{standing.name}  {_STATES[standing.state]}{about}{why}"
    for name in standing.tools:
        spec = specs[name]
        first = next(iter(spec.description.splitlines()), "")
        yield f"    {name}  {SIDE_EFFECTS[spec.side_effect]}  {first[:80]}"
    for name, reason in standing.left_out:
        yield f"    没有采用 {name}：{reason}"
    for name, reason in standing.warnings:
        yield f"    注意 {name}：{reason}"
