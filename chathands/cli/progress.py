"""Shows how far the local model is: a bar in a terminal, a line per tenth in a log."""

from __future__ import annotations

from types import TracebackType
from typing import TYPE_CHECKING, Self

from rich.console import Console
from rich.progress import (
    BarColumn,
    DownloadColumn,
    TextColumn,
    TimeRemainingColumn,
)
from rich.progress import (
    Progress as Bar,
)

if TYPE_CHECKING:
    from chathands.upstreams.weights import Progress


class FetchProgress:
    """A callback for `build_agent(progress=…)`. Silent when nothing has to be fetched."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._bar: Bar | None = None
        self._said: tuple[str, int] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._close()

    def __call__(self, progress: Progress) -> None:
        if self._console.is_terminal and progress.total:
            self._draw(progress)
            return
        self._close()
        tenth = progress.done * 10 // progress.total if progress.total else 0
        if (progress.stage, tenth) != self._said:
            self._said = (progress.stage, tenth)
            self._console.print(f"[dim]{progress.sentence}[/dim]")

    def _draw(self, progress: Progress) -> None:
        if self._said is None or self._said[0] != progress.stage:
            self._close()
            columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn())
            bar = Bar(*columns, TimeRemainingColumn(), console=self._console)
            title = "下载本地模型" if progress.stage == "downloading" else "校验本地模型"
            bar.add_task(title, total=progress.total)
            bar.start()
            self._bar = bar
            self._said = (progress.stage, 0)
        assert self._bar is not None
        self._bar.update(self._bar.task_ids[0], completed=progress.done, total=progress.total)

    def _close(self) -> None:
        if self._bar is not None:
            self._bar.stop()
            self._bar = None
            self._said = None
