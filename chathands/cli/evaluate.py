"""`chathands eval`: cases, variants, figures."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from chathands.cli.serve import model_settings
from chathands.errors import ConfigError

if TYPE_CHECKING:
    from chathands.evals import Case, CaseResult, Report
    from chathands.evals.variants import Variant

Many = list[str] | None


def register(app: typer.Typer) -> None:
    @app.command("eval")
    def evaluate(
        cases: Annotated[
            list[Path] | None, typer.Argument(help="用例文件；不写就用自带的。")
        ] = None,
        bench: Annotated[
            Many, typer.Option(help="公开题库，写成 bfcl=路径 或 acebench=路径，可写多次。")
        ] = None,
        mode: Annotated[
            str,
            typer.Option(
                help="方式：emulated、structured、structured-object、structured-prompt、native、"
                "native-tolerant、naive、json-only、json-only-tolerant、trigger-xml、"
                "trigger-xml-tolerant。"
            ),
        ] = "emulated",
        compare: Annotated[
            str | None, typer.Option(help="几种方式（同 --mode）在同样的用例上轮流跑，用逗号隔开。")
        ] = None,
        only: Annotated[str | None, typer.Option(help="只跑这些类别，用逗号隔开。")] = None,
        limit: Annotated[int | None, typer.Option(help="最多几题，各类别平均取。", min=1)] = None,
        repeat: Annotated[int, typer.Option(help="每题跑几遍。", min=1, max=100)] = 1,
        record: Annotated[
            Path | None, typer.Option(help="把回复记进这个文件；已经记下的不再问模型，可续跑。")
        ] = None,
        replay: Annotated[
            Path | None, typer.Option(help="不用模型，用记下的回复重新解析、判断和打分。")
        ] = None,
        out: Annotated[
            Path | None, typer.Option(help="报告写到这个目录：report.md 和 report.html。")
        ] = None,
        baseline: Annotated[
            Path | None, typer.Option(help="与这个基线比，明显变差时退出码为 1。")
        ] = None,
        save_baseline: Annotated[Path | None, typer.Option(help="把结果存成基线。")] = None,
        fail_under: Annotated[
            Many, typer.Option(help="层=0.75：区间下限低于它时退出码为 1，可写多次。")
        ] = None,
        upstream: Annotated[str | None, typer.Option(help="模型的地址。")] = None,
        model: Annotated[str | None, typer.Option(help="模型名。")] = None,
    ) -> None:
        """跑用例，打印各层指标和区间。"""
        from chathands.evals import baseline as baselines
        from chathands.evals.variants import variant

        wanted = baselines.floors(fail_under or [])
        if replay is not None and record is not None:
            raise ConfigError("replay and record", sentence="--replay 和 --record 只能用一个。")
        names = [name.strip() for name in (compare or mode).split(",") if name.strip()]
        ways = [variant(name) for name in dict.fromkeys(names)]
        chosen = _cases(cases, bench, only, limit)
        if replay is not None:
            report = asyncio.run(_replayed(chosen, ways, replay))
        else:
            report = asyncio.run(_run(chosen, ways, repeat, record, upstream, model))
        _print(report, out)
        if save_baseline is not None:
            baselines.save(report, save_baseline)
        faults = baselines.under_floor(report, wanted)
        if baseline is not None:
            faults += baselines.fallen(report, baseline)
        for fault in faults:
            typer.echo(f"低于要求：{fault}", err=True)
        if faults:
            sys.exit(1)


def _cases(
    files: list[Path] | None, bench: Many, only: str | None, limit: int | None
) -> list[Case]:
    from chathands.evals import READERS, load_cases, shipped_cases
    from chathands.evals.suite import sample

    cases: list[Case] = []
    for text in bench or []:
        kind, _, path = text.partition("=")
        if kind not in READERS or not path:
            raise ConfigError(
                f"bad --bench {text}",
                sentence=f"--bench {text} 看不懂：写成 种类=路径，种类是 {'、'.join(READERS)}。",
            )
        cases += READERS[kind](Path(path), lambda said: typer.echo(said, err=True))
    for file in files or ([] if bench else [shipped_cases()]):
        cases += load_cases(file)
    if only is not None:
        kept = {name.strip() for name in only.split(",")}
        missing = kept - {case.category for case in cases}
        if missing:
            raise ConfigError(
                f"no category {missing}",
                sentence=f"没有这个类别：{'、'.join(sorted(missing))}。有的是："
                f"{'、'.join(sorted({case.category for case in cases}))}。",
            )
        cases = [case for case in cases if case.category in kept]
    return sample(cases, limit)


class _Progress:
    def __init__(self, total: int) -> None:
        self._total = total
        self._done = 0

    def __call__(self, result: CaseResult) -> None:
        self._done += 1
        mark = "ok" if result.verdict.completed else "— " + "; ".join(result.verdict.why)[:160]
        typer.echo(
            f"{self._done}/{self._total} {result.case.id} {result.variant} "
            f"{result.seconds:.1f}s {mark}"
        )


async def _run(
    cases: list[Case],
    ways: list[Variant],
    repeats: int,
    record: Path | None,
    url: str | None,
    name: str | None,
) -> Report:
    from chathands.evals import run_suite, summarise
    from chathands.upstreams.build import build_upstream

    upstream = await build_upstream(model_settings(url, name))
    try:
        progress = _Progress(len(cases) * len(ways) * repeats)
        results = await run_suite(
            cases, upstream, ways, repeats=repeats, record=record, on_result=progress
        )
    finally:
        await upstream.aclose()
    return summarise(results)


async def _replayed(cases: list[Case], ways: list[Variant], file: Path) -> Report:
    from chathands.evals import summarise
    from chathands.evals.recording import Recorded
    from chathands.evals.suite import replay_suite

    recorded = Recorded(file)
    results = await replay_suite(cases, recorded, ways)
    if not results:
        raise ConfigError(
            f"{file} has none of these cases",
            sentence=f"{file.name} 里没有这些用例在这种方式下的回复。",
        )
    return summarise(results)


def _print(report: Report, out: Path | None) -> None:
    from chathands.evals import html_page, markdown

    typer.echo(markdown(report, transcripts=False))
    if out is not None:
        out.mkdir(parents=True, exist_ok=True)
        (out / "report.md").write_text(markdown(report), "utf-8")
        (out / "report.html").write_text(html_page(report), "utf-8")
        typer.echo(f"报告：{out / 'report.md'}，{out / 'report.html'}")
