"""`chathands trace last|show|replay|case|list`: what really happened in a run."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from chathands.settings import load_settings
from chathands.toolbox.render import cleaned

if TYPE_CHECKING:
    from chathands.store import Store

Full = Annotated[bool, typer.Option("--full", help="每次请求都印出全文，不省略与上次相同的部分。")]
KINDS = ("parser", "review")
LABELS = ("refusal", "missed_intent", "delegates", "safety_refusal", "clarify", "normal")
"""As in agent.trace_case, which is imported only when it is needed."""

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

    @group.command("case")
    def case(
        ref: Annotated[str | None, typer.Argument(help="编号；不写就是最近一次。")] = None,
        round_number: Annotated[
            int | None, typer.Option("--round", min=1, help="第几轮；不写就在全部轮里找。")
        ] = None,
        reply: Annotated[
            int | None, typer.Option(min=1, help="该轮第几个请求；不写就是最后一条没通过的。")
        ] = None,
        kind: Annotated[
            str | None, typer.Option(help="parser（该读出什么调用）或 review（这话是什么态度）。")
        ] = None,
        expected: Annotated[
            str | None, typer.Option(help='应读出的调用：{"tool": "名称", "parameters": {…}}。')
        ] = None,
        no_call: Annotated[bool, typer.Option("--no-call", help="不该读出任何调用。")] = False,
        label: Annotated[
            str | None, typer.Option(help=f"正确的态度：{'、'.join(LABELS)}。")
        ] = None,
        reason: Annotated[
            str | None, typer.Option(help="放在对话里该因什么被退回（none：该放行）。")
        ] = None,
        out: Annotated[
            Path | None, typer.Option(help="追加到这个文件；不写就印出来。", dir_okay=False)
        ] = None,
    ) -> None:
        """把一条读错或判错的回复写成一行测试用例（见 docs/growing.md）。"""
        trace = _one(lambda store: store.traces.get(ref) if ref else store.traces.last())
        _write_case(
            trace,
            out,
            round_number=round_number,
            reply=reply,
            kind=_one_of(kind, "--kind", KINDS),
            expected=expected,
            no_call=no_call,
            label=_one_of(label, "--label", LABELS),
            reason=reason,
        )

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


def _one_of(value: str | None, option: str, known: tuple[str, ...]) -> Any:
    if value is not None and value not in known:
        raise typer.BadParameter(f"{option} 是 {'、'.join(known)} 之一")
    return value


def _write_case(
    trace: dict[str, Any],
    out: Path | None,
    *,
    expected: str | None,
    no_call: bool,
    **choices: Any,
) -> None:
    """Print or append the line; what there is to say about it goes to stderr."""
    from chathands.agent.trace_case import CaseError, case_of, expected_calls
    from chathands.toolbox.redact import Redactor

    try:
        if no_call and expected is not None:
            raise CaseError(sentence="--expected 和 --no-call 只能写一个。")
        wanted = [] if no_call else expected_calls(expected) if expected is not None else None
        redact = Redactor.of(load_settings()).text
        case = case_of(trace, expected=wanted, redact=redact, **choices)
        if out is None:
            typer.echo(case.line)
        else:
            for known in _append(out, case.line, case.id):
                typer.echo(f"{out} 里已经有这段原文：用例 {known}。", err=True)
    except CaseError as error:
        typer.echo(error.sentence, err=True)
        sys.exit(2)
    except OSError as error:
        typer.echo(f"写不了 {out}：{error.strerror}。", err=True)
        sys.exit(1)
    place = f"已追加到 {out}" if out else "见上"
    typer.echo(f"{place}：用例 {case.id}，属于 {case.file}。", err=True)
    if case.guessed:
        typer.echo("应有的结果填的是现在的判断，请改对再提交。", err=True)
    typer.echo("公开之前请看一遍：密钥已隐去，人名和业务内容没有。", err=True)


def _append(file: Path, line: str, case_id: str) -> list[str]:
    """Add the line to a file that may not end in a line break. Raises CaseError and OSError.

    Returns the cases there that hold the same reply; it may be wanted again, with other tools.
    """
    from chathands.agent.trace_case import CaseError

    before = file.read_text("utf-8") if file.exists() else ""
    if f'"id": "{case_id}"' in before:
        raise CaseError(sentence=f"{file} 里已经有 {case_id}；请直接改那一行。")
    gap = "" if not before or before.endswith("\n") else "\n"
    with file.open("a", encoding="utf-8", newline="\n") as end:
        end.write(f"{gap}{line}\n")
    same = (row for row in _rows(before) if _reply(row) == _reply(json.loads(line)))
    return [str(row.get("id", "?")) for row in same]


def _rows(text: str) -> Iterator[dict[str, Any]]:
    """The rows of a file that people edit: what is no row is passed over."""
    for line in text.split("\n"):
        with suppress(ValueError):
            row = json.loads(line)
            if isinstance(row, dict):
                yield row


def _reply(row: dict[str, Any]) -> Any:
    return row.get("text", row.get("raw"))


def _show(trace: dict[str, Any], full: bool) -> None:
    from chathands.agent import render_trace

    typer.echo(cleaned(render_trace(trace, full=full)))  # a model may write escape sequences
