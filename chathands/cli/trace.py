"""`chathands trace last|show|replay|list`: what really happened in a run."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

from chathands.settings import load_settings
from chathands.toolbox.render import cleaned

if TYPE_CHECKING:
    from chathands.store import Store

Full = Annotated[bool, typer.Option("--full", help="每次请求都印出全文，不省略与上次相同的部分。")]
Ref = Annotated[str, typer.Argument(help="编号，例如 A7F3-09。")]


def register(app: typer.Typer) -> None:
    group = typer.Typer(help="看一次提问的全过程。", no_args_is_help=True)
    app.add_typer(group, name="trace")

    @group.command("last")
    def last(full: Full = False) -> None:
        """最近一次。"""
        _show(_one(lambda store: store.traces.last()), full)

    @group.command("show")
    def show(ref: Ref, full: Full = False) -> None:
        """按编号看。"""
        _show(_one(lambda store: store.traces.get(ref)), full)

    @group.command("replay")
    def replay(ref: Annotated[str | None, typer.Argument(help="编号；不写就是最近一次。")] = None):
        """用记录下的回复重放；不一样时退出码为 1。"""
        trace = _one(lambda store: store.traces.get(ref) if ref else store.traces.last())
        from chathands.agent import replay as replay_trace

        result = replay_trace(trace)
        for difference in result.differences:
            typer.echo(difference)
        typer.echo("重放一致" if result.equal else "重放不一致")
        if not result.equal:
            sys.exit(1)

    @group.command("list")
    def newest(
        count: Annotated[int, typer.Argument(help="几条。", min=1, max=10_000)] = 20,
    ) -> None:
        """最近几次，一行一次。"""
        for line in _with_store(lambda store: store.traces.list(count)):
            started = datetime.fromtimestamp(line.started)
            question = " ".join(line.question.split())[:40]
            typer.echo(f"{line.ref}  {started:%m-%d %H:%M:%S}  {line.verdict}  {question}")


def _with_store(ask: Callable[[Store], Awaitable[Any]]) -> Any:
    from chathands.store import open_store

    async def run() -> Any:
        async with await open_store(load_settings().state_dir) as store:
            return await ask(store)

    return asyncio.run(run())


def _one(ask: Callable[[Store], Awaitable[dict[str, Any] | None]]) -> dict[str, Any]:
    """The trace; ends the program with a sentence when there is none."""
    trace = _with_store(ask)
    if trace is None:
        typer.echo("没有这次运行的记录（可能已过保留期，或编号写错）。", err=True)
        sys.exit(1)
    return trace


def _show(trace: dict[str, Any], full: bool) -> None:
    from chathands.agent import render_trace

    typer.echo(cleaned(render_trace(trace, full=full)))  # a model may write escape sequences
