"""`chathands approvals`: what programs wait for a yes to, and the decision, from the shell."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Annotated, Any

import typer

from chathands.errors import StoreError
from chathands.settings import load_settings

if TYPE_CHECKING:
    from chathands.store import Store

_Number = Annotated[int, typer.Argument(help="列表里的编号。", min=1)]


def register(app: typer.Typer) -> None:
    group = typer.Typer(help="程序（HTTP、MCP）发起、等人批准的操作。", invoke_without_command=True)
    app.add_typer(group, name="approvals")

    @group.callback()
    def default(context: typer.Context) -> None:
        if context.invoked_subcommand is None:
            sys.exit(asyncio.run(_with_store(_list)))

    @group.command("list")
    def listed() -> None:
        """列出等待批准的操作，最早的在前。"""
        sys.exit(asyncio.run(_with_store(_list)))

    @group.command("yes")
    def yes(number: _Number) -> None:
        """批准：对方凭票据再请求一次时执行，只执行一次。"""
        sys.exit(asyncio.run(_with_store(lambda store: _decide(store, number, approve=True))))

    @group.command("no")
    def no(number: _Number) -> None:
        """拒绝：不会执行。"""
        sys.exit(asyncio.run(_with_store(lambda store: _decide(store, number, approve=False))))


async def _with_store(work: Callable[[Store], Coroutine[Any, Any, int]]) -> int:
    from chathands.store import open_store

    settings = load_settings()
    async with await open_store(settings.state_dir) as store:
        return await work(store)


async def _list(store: Store) -> int:
    from chathands.agent.tickets import asked_of, notice_lines

    waiting = await store.tickets.waiting()
    for row in waiting:
        left = max(1, round(row.expires_at - time.time()))
        try:
            asked = asked_of(row)
        except StoreError:
            typer.echo(f"{row.number}  （读不出来，可能是别的版本写的）")
            continue
        lines = notice_lines(asked)
        typer.echo(f"{row.number}  {_shown(lines[0])}  还有 {left} 秒")
        for line in lines[1:]:
            typer.echo(f"    {_shown(line)}".replace("\n", "\n    "))
    if waiting:
        typer.echo("批准：chathands approvals yes 编号    拒绝：chathands approvals no 编号")
    else:
        typer.echo("没有程序发起的操作在等批准。")
    now = time.time()
    in_chats = [row for row in await store.suspended.list() if row.expires_at > now]
    if in_chats:
        typer.echo(f"另有 {len(in_chats)} 个群聊或私聊里的操作，在那里回复确认或取消。")
    return 0


async def _decide(store: Store, number: int, *, approve: bool) -> int:
    from chathands.agent.tickets import by_terminal

    row = await store.tickets.numbered(number)
    if row is None:
        typer.echo(f"没有编号 {number} 的操作；看有哪些：chathands approvals", err=True)
        return 1
    decided = await store.tickets.decide(row.id, approve=approve, by=by_terminal())
    if decided is None:
        typer.echo(f"编号 {number} 已经处理过，或者已经过期。", err=True)
        return 1
    typer.echo(f"已批准 {number}。" if approve else f"已拒绝 {number}，不会执行。")
    return 0


def _shown(text: str) -> str:
    """A program's text must not steer the terminal of whoever decides about it."""
    return "".join(c if c.isprintable() or c == "\n" else "�" for c in text)
