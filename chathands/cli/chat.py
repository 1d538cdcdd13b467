"""`chathands chat`: the main job in a terminal, with the same agent as in the group."""

from __future__ import annotations

import secrets
import sys
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from pydantic import SecretStr
from rich.console import Console
from rich.markup import escape

from chathands.cli.loop import LoopThread
from chathands.cli.progress import FetchProgress
from chathands.settings import DRY_RUN, Robot, Settings, load_settings
from chathands.toolbox import Caller, CallFinished, CallStarted
from chathands.toolbox.received import safe_name
from chathands.toolbox.render import cleaned, cut
from chathands.upstreams.build import describe

if TYPE_CHECKING:
    from chathands.agent import Agent, Declined, Finished, Suspended
    from chathands.toolbox import Approval

YES, NO = ("确认", "yes", "y"), ("取消", "no", "n")
LEAVE = ("退出", "exit", "quit")
DEMO_ROBOT = "演示群"

console = Console(highlight=False, soft_wrap=True)
complaints = Console(highlight=False, soft_wrap=True, stderr=True)


def register(app: typer.Typer) -> None:
    @app.command("chat")
    def chat(
        question: Annotated[str | None, typer.Argument(help="只问一句；不写就进入对话。")] = None,
        model_url: Annotated[
            str | None, typer.Option(help="OpenAI 兼容的模型地址，例如 http://127.0.0.1:8000/v1")
        ] = None,
        model_name: Annotated[str | None, typer.Option(help="模型名。")] = None,
        project: Annotated[
            Path, typer.Option(help="项目目录（里面有 tools/、data/ 和 .env）。")
        ] = Path("."),
    ) -> None:
        """在终端里和机器人对话：能读表、查天气、推送钉钉（没有配置机器人时只演练）。"""
        settings = _terminal_settings(project, model_url, model_name)
        with LoopThread() as loop:
            answered = _Session(loop, settings).start(question)
        if not answered:
            sys.exit(1)


def _terminal_settings(project: Path, url: str | None, name: str | None) -> Settings:
    overrides: dict[str, Any] = {}
    model = {k: v for k, v in (("base_url", url), ("name", name)) if v is not None}
    if model:
        overrides["model"] = model
    settings = load_settings(project, **overrides)
    for field in ("data_dir", "tools_dir", "state_dir"):
        path: Path = getattr(settings, field)
        if not path.is_absolute():
            setattr(settings, field, (project / path).resolve())
    if not (settings.dingtalk.robots or settings.push.robots or settings.push.chats):
        settings.dingtalk.robots = {DEMO_ROBOT: Robot(webhook=SecretStr(DRY_RUN))}
    return settings


class _Input:
    """Lines typed or piped; a line may be put back."""

    def __init__(self) -> None:
        self.interactive = sys.stdin.isatty()
        self._back: list[str] = []
        if self.interactive:
            # Importing it gives input() its line history; a Windows console has its own.
            with suppress(ImportError):
                import readline  # noqa: F401

    def next(self, prompt: str) -> str | None:
        """The next line without its end, or None when there is none."""
        if self._back:
            return self._back.pop()
        if self.interactive:
            try:
                return input(prompt)
            except EOFError:
                return None
        line = sys.stdin.readline()
        return line.rstrip("\r\n") if line else None

    def put_back(self, line: str) -> None:
        self._back.append(line)


def saved(name: str, data: bytes) -> Path:
    """What a tool attached, in a new directory of its own: a name never overwrites anything."""
    path = Path(tempfile.mkdtemp(prefix="chathands-")) / safe_name(name)
    path.write_bytes(data)
    return path


class _Session:
    def __init__(self, loop: LoopThread, settings: Settings) -> None:
        self._loop = loop
        self._settings = settings
        self._input = _Input()
        self._caller = Caller("terminal", None, "superuser", "我", platform="terminal")
        self._conversation = f"terminal:{secrets.token_hex(4)}"
        self._started = False

    def start(self, question: str | None) -> bool:
        """Whether the one question, if there was one, got an answer."""
        from chathands.agent import build_agent
        from chathands.agent.loading import mended_sentence

        with FetchProgress(console) as progress:
            building = build_agent(
                self._settings,
                on_load_error=lambda error: self._complain(error.sentence),
                on_mended=lambda file: self._complain(mended_sentence(file)),
                progress=progress,
                owner="terminal",
            )
            agent = self._loop.run(building.__aenter__())
        self._started = True
        try:
            for error in agent.describe().load_errors:
                complaints.print(f"[yellow]{plain(error.sentence)}[/yellow]")
            for cut_off in agent.unfinished:
                # The bot's are shown here too, but stay the bot's to tell.
                what = f"{cut_off.name}（{cut_off.target}）" if cut_off.target else cut_off.name
                text = f"上次退出时 {what} 没有结束，不能确定是否完成（编号 {cut_off.run_id}）。"
                complaints.print(f"[yellow]{plain(text)}[/yellow]")
            if question is not None:
                return self._answer(agent, question)
            self._converse(agent)
            return True
        finally:
            self._loop.run(building.__aexit__(None, None, None))

    def _complain(self, sentence: str) -> None:
        """Of tool files that change while one talks; those of the start are listed by it."""
        if self._started:
            complaints.print(f"[yellow]{plain(sentence)}[/yellow]")

    def _converse(self, agent: Agent) -> None:
        if self._input.interactive:
            console.print(f"模型：{plain(describe(self._settings))}")
            console.print(f"工具：{'、'.join(agent.describe().tools)}")
            console.print("[dim]直接提问；输入 退出 或按 Ctrl-D 结束，Ctrl-C 停止当前回答。[/dim]")
        for line in self._lines():
            self._answer(agent, line)

    def _lines(self) -> Iterator[str]:
        while True:
            try:
                line = self._input.next("你> ")
            except KeyboardInterrupt:
                console.print()
                return
            if line is None or line.strip().lower() in LEAVE:
                return
            if line.strip():
                yield line.strip()

    def _answer(self, agent: Agent, text: str) -> bool:
        """Ask, with all that belongs to it; whether an answer or at least an account came."""
        from chathands.agent import Question, Suspended

        question = Question(text=text, caller=self._caller, conversation_id=self._conversation)
        if not self._input.interactive:
            console.print(f"[bold]你>[/bold] {plain(text)}")
        if text.strip().lower() in YES + NO:
            console.print("[yellow]现在没有等待确认的操作。[/yellow]")
            return True
        watch = _Watch()
        waiting: Suspended | None = None
        try:
            outcome = self._loop.run(agent.ask(question, on_event=watch))
            while isinstance(outcome, Suspended):
                waiting = outcome
                outcome = self._decide(agent, outcome, watch)
                waiting = None
        except KeyboardInterrupt:
            # At the prompt the run waits in the store; else it was cancelled where it stood.
            stopped = self._loop.run(agent.stop(waiting.approval.id)) if waiting else None
            text = stopped.text if stopped else agent.cancelled_reply(watch.run_id)
            console.print(f"\n[yellow]{plain(text)}[/yellow]")
            return True
        console.print(f"[bold green]答>[/bold green] {plain(outcome.text)}")
        for name, data in outcome.files:
            path = saved(name, data)
            console.print(f"[dim]文件：{plain(str(path))}（{len(data):,} 字节）[/dim]")
        return outcome.status != "failed"

    def _decide(self, agent: Agent, suspended: Suspended, watch: _Watch) -> Finished | Suspended:
        from chathands.agent import Declined, Finished

        approval = suspended.approval
        console.print(f"[bold yellow]需要确认[/bold yellow]\n{plain(_approval_text(approval))}")
        approve = self._read_decision()
        outcome: Finished | Suspended | Declined = self._loop.run(
            agent.decide(approval.id, approve, self._caller, on_event=watch)
        )
        if isinstance(outcome, Declined):
            console.print(f"[yellow]{plain(outcome.sentence)}[/yellow]")
            expired = self._loop.run(agent.expire(approval.id, on_event=watch))
            return expired or Finished("这次提问已经结束。", suspended.run_id, "failed")
        return outcome

    def _read_decision(self) -> bool:
        """A yes or a no; anything else that is piped is the next question, and means no."""
        while True:
            line = self._input.next("确认/取消> ")
            word = (line or "").strip().lower()
            if word in YES:
                console.print("[dim]已确认。[/dim]")
                return True
            if word in NO:
                console.print("[dim]已取消。[/dim]")
                return False
            if line is None:
                console.print("[yellow]没有读到 确认，按 取消 处理，没有推送。[/yellow]")
                return False
            if not self._input.interactive:
                console.print("[yellow]下一行不是 确认/取消，按 取消 处理，没有推送。[/yellow]")
                self._input.put_back(line)
                return False
            console.print("请输入 确认 或 取消。")


def _approval_text(approval: Approval) -> str:
    lines = [f"工具：{approval.call.name}"]
    if approval.target:
        lines.append(f"目标：{approval.target}")
    lines.append(approval.shown)
    if approval.reason:
        lines.append(f"原因：{approval.reason}")
    return "\n".join([*lines, "回复 确认 执行，回复 取消 放弃。"])


class _Watch:
    """Shows tool calls as they happen, and knows the run's id."""

    def __init__(self) -> None:
        self.run_id = ""

    def __call__(self, event: object) -> None:
        self.run_id = getattr(event, "run_id", "") or self.run_id
        if isinstance(event, CallStarted):
            arguments = "，".join(f"{k}={_short(v)}" for k, v in event.call.arguments.items())
            console.print(f"[cyan]调用[/cyan] {event.call.name}（{plain(arguments)}）")
        elif isinstance(event, CallFinished):
            result = event.result
            cost = f" {result.cost_ms} ms" if result.cost_ms is not None else ""
            first = next((line for line in result.content.splitlines() if line.strip()), "")
            console.print(f"[dim]  → {result.status}{cost} {plain(_short(first, 100))}[/dim]")


def plain(text: str) -> str:
    """As it is read: a model's or a file's text must neither move the cursor nor be our markup."""
    return escape(cleaned(text))


def _short(value: object, limit: int = 60) -> str:
    return cut(str(value).replace("\n", "⏎"), limit)
