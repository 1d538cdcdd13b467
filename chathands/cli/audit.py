"""`chathands audit tail|verify|export`: what tools did, for whom, and whether that is all of it."""

from __future__ import annotations

import csv
import io
import json
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TextIO

import typer

from chathands.settings import load_settings
from chathands.toolbox.render import cleaned, cut

if TYPE_CHECKING:
    from chathands.settings import Settings
    from chathands.toolbox.audit_reading import Action, Line
    from chathands.toolbox.redact import Redactor

LOOK_SECONDS = 0.5
"""Between two looks of `tail --follow`; a person does not see less."""

LONGEST_SHOWN = 160
"""Characters of the arguments in one line of `tail`; `export` has all that was kept."""

_STATUSES = {
    "ok": "成功",
    "failed": "失败",
    "denied": "没有执行",
    "unknown": "不确定",
    "": "没有结果",
}
_DECISIONS = {"yes": "批准", "no": "拒绝", "expired": "过期没人决定"}
_ROLES = {"member": "成员", "admin": "管理员", "superuser": "超级用户"}

_COLUMNS = {
    "time": "时间",
    "tool": "工具",
    "target": "目标",
    "status": "结果",
    "user": "用户",
    "name": "名字",
    "group": "群",
    "role": "身份",
    "platform": "平台",
    "run": "编号",
    "decision": "批准",
    "decided_by": "批准人",
    "arguments": "参数",
    "ended": "结束时间",
    "size": "结果长度",
    "sha256": "结果摘要",
    "journal": "日志",
    "seq": "序号",
    "intact": "封印",
}

Receipt = Annotated[
    list[str] | None,
    typer.Option(help="以前记下的凭据（可以写几次）：查出整个退回到旧副本。", metavar="凭据"),
]


def register(app: typer.Typer) -> None:
    group = typer.Typer(help="审计记录：工具做过什么，记录全不全。", invoke_without_command=True)
    app.add_typer(group, name="audit")

    @group.callback()
    def default(context: typer.Context) -> None:
        if context.invoked_subcommand is None:
            _verify([])

    @group.command("verify")
    def verify(receipt: Receipt = None) -> None:
        """检查审计记录有没有被截断、改动或打乱；有问题时退出码为 1。"""
        _verify(receipt or [])

    @group.command("tail")
    def tail(
        count: Annotated[int, typer.Argument(help="几行。", min=0, max=100_000)] = 20,
        follow: Annotated[bool, typer.Option("--follow", "-f", help="有新的就接着印。")] = False,
    ) -> None:
        """最近的记录，旧的在前。"""
        with _readable():
            _tail(load_settings(), count, follow=follow)

    @group.command("export")
    def export(
        since: Annotated[
            str | None, typer.Option(help="从这时起，例如 2026-12-01 或 '2026-12-01 08:30'。")
        ] = None,
        until: Annotated[str | None, typer.Option(help="到这时为止；只写日期时含那一天。")] = None,
        user: Annotated[str | None, typer.Option(help="只要此用户（QQ 号或 token 名）的。")] = None,
        tool: Annotated[str | None, typer.Option(help="只要这个工具的。")] = None,
        format: Annotated[Literal["jsonl", "csv"], typer.Option(help="格式。")] = "jsonl",
        out: Annotated[
            Path | None, typer.Option(help="写到这个新文件；不写就印出来。", dir_okay=False)
        ] = None,
    ) -> None:
        """一次调用一行：谁、什么工具、参数、批准、结果。时间是本地时间。"""
        with _readable():
            _export(load_settings(), since, until, user, tool, format, out)


@contextmanager
def _readable() -> Iterator[None]:
    try:
        yield
    except BrokenPipeError:
        raise  # `... | head`: whoever reads has enough
    except OSError as error:
        reason = error.strerror or type(error).__name__
        typer.echo(f"审计记录读不出来：{reason}。请检查状态目录的权限和磁盘。", err=True)
        sys.exit(2)


def _verify(written_down: list[str]) -> None:
    from chathands.toolbox.audit_check import Receipt, examined

    receipts = []
    for text in written_down:
        receipt = Receipt.read(text)
        if receipt is None:
            typer.echo(f"凭据要像 1:123:0123456789abcdef，这一个不是：{_plain(text)}", err=True)
            sys.exit(2)
        receipts.append(receipt)
    with _readable():
        verdict = examined(load_settings().state_dir, receipts)
    for note in verdict.notes:
        typer.echo(f"提示：{note}", err=True)
    for fault in verdict.faults:
        typer.echo(str(fault))
    if verdict.faults:
        typer.echo("审计记录有问题")
        sys.exit(1)
    typer.echo("审计记录完整" if verdict.lines else "还没有审计记录")
    for receipt in verdict.receipts:
        typer.echo(f"凭据 {receipt}（抄到别的机器上，以后用 --receipt 核对）", err=True)


def _tail(settings: Settings, count: int, *, follow: bool) -> None:
    from chathands.toolbox.audit_reading import Follower, newest
    from chathands.toolbox.redact import Redactor

    redactor = Redactor.of(settings)
    follower = Follower(settings.state_dir) if follow else None
    lines = newest(settings.state_dir, count)
    shown = {(line.journal, line.seq) for line in lines}
    begun: dict[tuple[str, int], str] = {}
    for line in lines:
        typer.echo(_sentence(line, redactor, begun))
    if follower is None:
        if not lines and count:
            typer.echo("还没有审计记录", err=True)
        return
    with suppress(KeyboardInterrupt):
        while True:
            for line in follower.new():
                if (line.journal, line.seq) not in shown:  # came between the two looks
                    typer.echo(_sentence(line, redactor, begun))
            sys.stdout.flush()
            time.sleep(LOOK_SECONDS)


def _sentence(line: Line, redactor: Redactor, begun: dict[tuple[str, int], str]) -> str:
    """One line for the eye; `begun` remembers what intents were for, for their outcomes."""
    from chathands.toolbox.audit_reading import shown_time

    one = line.content
    when = shown_time(line, lambda moment: f"{moment:%Y-%m-%d %H:%M:%S}") or "时间不明"
    what = f"{one.get('tool', '')}" + (f" → {one['target']}" if one.get("target") else "")
    if line.kind == "intent":
        begun[line.journal, line.seq] = what
        text = f"开始 {what}  {_who(one)}  {_arguments(one)}"
    elif line.kind == "outcome":
        number = one.get("intent")
        known = begun.pop((line.journal, number), "") if isinstance(number, int) else ""
        status = _STATUSES.get(str(one.get("status")), "不明")
        text = f"结果 {status}  {known or '开始'}（第 {number} 行）"
        text += "  重启后补记" if one.get("at_start") else ""
    elif line.kind == "call":
        status = _STATUSES.get(str(one.get("status")), "不明")
        text = f"调用 {what}  {status}  {_who(one)}  {_arguments(one)}"
    elif line.kind == "start":
        text = f"程序启动（{one.get('by', 'bot')}）"
    elif line.kind == "pruned":
        text = f"按保留期限清理了第 {one.get('through')} 行和更早的"
    elif line.kind == "recovered":
        text = f"启动时发现：{one.get('remark', '')}"
    else:
        text = f"{line.kind}"
    mark = "" if line.intact else "【被改过】"
    return _plain(redactor.text(f"{when}  {line.journal}:{line.seq}  {mark}{text}"))


def _who(one: Any) -> str:
    name, user = one.get("name"), one.get("user")
    who = f"{name}（{user}）" if name else f"{user}"
    if one.get("group"):
        who += f" 群 {one['group']}"
    who += f" {_ROLES.get(str(one.get('role')), '')} 编号 {one.get('run')}"
    if one.get("decision"):
        by = one.get("decided_by")
        who += f"  {_DECISIONS.get(str(one['decision']), '')}" + (f"：{by}" if by else "")
    return who


def _arguments(one: Any) -> str:
    return cut(json.dumps(one.get("arguments", {}), ensure_ascii=False), LONGEST_SHOWN)


def _export(
    settings: Settings,
    since: str | None,
    until: str | None,
    user: str | None,
    tool: str | None,
    format: str,
    out: Path | None,
) -> None:
    from chathands.toolbox.audit_reading import Wanted, actions
    from chathands.toolbox.redact import Redactor

    wanted = Wanted(_moment(since), _moment(until, end=True), user, tool)
    redactor = Redactor.of(settings)
    rows = (_row(action, redactor) for action in actions(settings.state_dir, wanted))
    write = _csv if format == "csv" else _jsonl
    if out is None:
        count = write(rows, sys.stdout)
    else:
        # Excel takes a CSV without the mark for the code page of the machine.
        encoding = "utf-8-sig" if format == "csv" else "utf-8"
        try:
            file = out.open("x", encoding=encoding, errors="replace", newline="")
        except FileExistsError:
            typer.echo(f"{out} 已经有了，请换一个文件名。", err=True)
            sys.exit(2)
        except (OSError, ValueError) as error:  # the second: a NUL in the name
            reason = getattr(error, "strerror", None) or type(error).__name__
            typer.echo(f"{out} 写不了：{reason}。", err=True)
            sys.exit(2)
        with file:
            count = write(rows, file)
    typer.echo(f"{count} 条", err=True)


def _moment(text: str | None, *, end: bool = False) -> float | None:
    from chathands.toolbox.audit_reading import local_time

    if text is None:
        return None
    try:
        return local_time(text, end=end)
    except (ValueError, OverflowError, OSError):
        shown = _plain(text)[:40]
        typer.echo(f"时间要像 2026-12-01 或 '2026-12-01 08:30'，这一个不是：{shown}", err=True)
        sys.exit(2)


def _row(action: Action, redactor: Redactor) -> dict[str, Any]:
    """As JSON: nothing that is a secret by now, whatever was one when it was written."""
    from chathands.toolbox.audit_reading import shown_time

    one, outcome = action.line.content, action.outcome
    ended = one if action.line.kind == "call" else outcome.content if outcome else {}
    row = {name: one.get(name) for name in _COLUMNS}
    row |= {
        "time": shown_time(action.line, _iso),
        "ended": shown_time(outcome, _iso) if outcome else "",
        "status": action.status,
        "size": ended.get("size"),
        "sha256": ended.get("sha256"),
        "journal": action.line.journal,
        "intact": action.intact,
        "arguments": redactor.arguments(one.get("arguments", {})),
    }
    return {
        name: redactor.text(value) if isinstance(value, str) and name != "sha256" else value
        for name, value in row.items()
    }


def _iso(moment: datetime) -> str:
    return moment.isoformat(timespec="seconds")


def _jsonl(rows: Iterable[dict[str, Any]], file: TextIO) -> int:
    count = 0
    for count, row in enumerate(rows, 1):  # noqa: B007
        text = json.dumps(row, ensure_ascii=False)
        file.write(text.encode("utf-8", "backslashreplace").decode() + "\n")
    return count


def _csv(rows: Iterable[dict[str, Any]], file: TextIO) -> int:
    count = 0
    file.write(_csv_line(_COLUMNS.values()))
    for count, row in enumerate(rows, 1):  # noqa: B007
        row["arguments"] = json.dumps(row["arguments"], ensure_ascii=False)
        row["status"] = _STATUSES.get(row["status"], row["status"])
        row["decision"] = _DECISIONS.get(row["decision"], row["decision"])
        row["role"] = _ROLES.get(row["role"], row["role"])
        row["intact"] = "有效" if row["intact"] else "被改过"
        file.write(_csv_line(map(_cell, row.values())))
    return count


def _csv_line(cells: Iterable[Any]) -> str:
    buffer = io.StringIO()
    csv.writer(buffer, lineterminator="\n").writerow(list(cells))
    return buffer.getvalue()


def _cell(value: Any) -> Any:
    """A member's text must not become a formula in the spreadsheet of whoever opens this."""
    if not isinstance(value, str):
        return "" if value is None else value
    value = _plain(value)
    return f"'{value}" if value.startswith(("=", "+", "-", "@", "\t", "\r")) else value


def _plain(text: str) -> str:
    """On one line, and nothing in it steers the terminal."""
    return "".join(c if c.isprintable() else " " for c in cleaned(text))
