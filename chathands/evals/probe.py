"""Which mode a model does best in, and how it thinks: a dozen short cases in every mode.

The rule of choice: the mode that completes most cases, but another one than `emulated` only when it
completes at least two more; equal ones in the order of `MODES`. One case of fourteen is chance.
"""

from __future__ import annotations

import re
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from chathands.emulation.outcome import ModelRequest, Piece, Text, ThinkingStyle
from chathands.errors import UpstreamError
from chathands.evals.case import CASES, Case
from chathands.evals.metrics import LAYERS, Share
from chathands.evals.runner import CaseResult, run_case
from chathands.evals.variants import turn_variant
from chathands.upstreams.base import ModelStream, Upstream
from chathands.upstreams.ways import NOT_TAKEN, Way

MODES = (Way("emulated"), Way("structured"), Way("native"))
MARGIN = 2
"""Cases by which another mode must be ahead of `emulated`."""

_LISTENED = 2
"""Replies that show how a model thinks, before anything is counted."""
_THINKS = re.compile(r"\s*<think(?:ing)?>", re.IGNORECASE)
_ENDS = re.compile(r"</think(?:ing)?>", re.IGNORECASE)


def probe_cases() -> Path:
    """The file of the cases."""
    return CASES / "probe.jsonl"


_NONE = Share(0, 0)


@dataclass(frozen=True, slots=True)
class Figures:
    """One mode's figures. `refused` says in Chinese why there are none."""

    way: Way
    completed: Share = _NONE
    right: Share = _NONE
    kept: Share = _NONE
    format: Share = _NONE
    seconds: float = 0.0
    """Median of a case."""
    prompt_tokens: float = 0.0
    completion_tokens: float = 0.0
    """Means of a case."""
    refused: str = ""

    def to_dict(self) -> dict[str, Any]:
        if self.refused:
            return {"refused": self.refused}
        return {
            "enforcement": self.way.enforcement if self.way.mode == "structured" else None,
            **{
                name: [share.good, share.total]
                for name in ("completed", "right", "kept", "format")
                for share in (getattr(self, name),)
            },
            "seconds": round(self.seconds, 2),
            "tokens": [round(self.prompt_tokens), round(self.completion_tokens)],
        }


@dataclass(frozen=True, slots=True)
class Probed:
    figures: tuple[Figures, ...]
    """Of every mode, in the order of `MODES`."""
    way: Way
    """What was chosen."""
    reason: str
    """Why, one Chinese sentence."""

    @property
    def by_mode(self) -> Mapping[str, Any]:
        return {figures.way.mode: figures.to_dict() for figures in self.figures}


async def probe(
    cases: Sequence[Case],
    upstream: Upstream,
    *,
    on_result: Callable[[CaseResult], None] = lambda _: None,
) -> Probed:
    """Run the cases in every mode. Raises UpstreamError when `emulated` fails: then there is
    nothing to choose from."""
    thinking = await _thinking(cases[:_LISTENED], upstream)
    measured = []
    for mode in MODES:
        way = replace(mode, thinking=thinking)
        measured.append(await _measured(way, cases, upstream, on_result))
    figures = tuple(measured)
    way, reason = choose(figures)
    return Probed(figures, way, reason)


def choose(figures: Sequence[Figures]) -> tuple[Way, str]:
    """The way to take and why; `emulated` is the first of the figures."""
    ours, others = figures[0], figures[1:]
    best = max(others, key=lambda f: (f.completed.good, -figures.index(f)), default=ours)
    lead = best.completed.good - ours.completed.good
    told = "，".join(f"{f.way} {_told(f)}" for f in figures)
    if lead >= MARGIN:
        why = f"{best.way} 比 emulated 多完成 {lead} 题"
        return best.way, f"{why}（{told}）。"
    if all(f.refused or f.way.enforcement == "prompt" for f in others):
        return ours.way, f"上游只接受普通聊天，别的方式都用不了（{told}）。"
    if lead > 0:
        why = f"{best.way} 只多完成 {lead} 题，不到 {MARGIN} 题算偶然，用 emulated"
    else:
        why = "没有哪种方式比 emulated 完成得多"
    return ours.way, f"{why}（{told}）。"


def _told(figures: Figures) -> str:
    return figures.refused or f"{figures.completed.good}/{figures.completed.total}"


async def _measured(
    way: Way, cases: Sequence[Case], upstream: Upstream, on_result: Callable[[CaseResult], None]
) -> Figures:
    """All cases in one mode; in the strongest enforcement that the first request is taken with."""
    results: list[CaseResult] = []
    while True:
        variant = turn_variant(
            way.mode, mode=way.mode, enforcement=way.enforcement, thinking=way.thinking
        )
        for case in cases[len(results) :]:
            try:
                result = await run_case(case, upstream, way=variant)
            except UpstreamError as error:
                if way.mode == "emulated":
                    raise
                if not results:
                    weaker = way.weaker if error.status in NOT_TAKEN else None
                    if weaker is not None and weaker.mode == way.mode:
                        way = weaker
                        break
                    return Figures(way, refused=_refusal(error))
                result = CaseResult(case, way.mode, failed=f"upstream: {type(error).__name__}")
            results.append(result)
            on_result(result)
        else:
            return _figures(way, results)


def _refusal(error: UpstreamError) -> str:
    if error.status in NOT_TAKEN:
        return f"上游不接受（HTTP {error.status}）"
    return f"上游出错（{type(error).__name__}）"


def _figures(way: Way, results: Sequence[CaseResult]) -> Figures:
    exchanges = [exchange for result in results for exchange in result.exchanges]
    n = max(len(results), 1)
    return Figures(
        way,
        LAYERS["completion"](results),
        LAYERS["right"](results),
        LAYERS["kept"](results),
        LAYERS["format"](results),
        statistics.median(result.seconds for result in results) if results else 0.0,
        sum(exchange.prompt_tokens for exchange in exchanges) / n,
        sum(exchange.completion_tokens for exchange in exchanges) / n,
    )


# --- thinking


async def _thinking(cases: Sequence[Case], upstream: Upstream) -> ThinkingStyle:
    replies = []
    for case in cases:
        ear = _Ear(upstream)
        way = turn_variant("emulated", max_corrections=0)
        await run_case(case.model_copy(update={"first_only": True}), ear, way=way)
        replies.append(ear.said)
    return thinking_style(replies)


def thinking_style(replies: Sequence[str]) -> ThinkingStyle:
    """How a model thinks, from its replies as text.

    `open` needs every reply to end a thinking that it did not begin: with it, a reply without an
    end would be thinking to the last word.
    """
    if replies and all(_ENDS.search(r) and not _THINKS.match(r) for r in replies):
        return "open"
    return "tags" if any(_THINKS.match(reply) for reply in replies) else "none"


class _Ear:
    """An upstream that remembers the text of what was said."""

    def __init__(self, upstream: Upstream) -> None:
        self._upstream = upstream
        self.name, self.context, self.local = upstream.name, upstream.context, upstream.local
        self.said = ""

    def stream(self, request: ModelRequest, *, timeout: float) -> ModelStream:
        return _Heard(self._upstream.stream(request, timeout=timeout), self)

    async def aclose(self) -> None:
        await self._upstream.aclose()


class _Heard:
    def __init__(self, stream: ModelStream, ear: _Ear) -> None:
        self._stream = stream
        self._pieces = aiter(stream)
        self._ear = ear
        self.finish_reason: str | None = None
        self.usage = None

    def __aiter__(self) -> _Heard:
        return self

    async def __anext__(self) -> Piece:
        try:
            piece = await anext(self._pieces)
        except StopAsyncIteration:
            self.finish_reason, self.usage = self._stream.finish_reason, self._stream.usage
            raise
        if isinstance(piece, Text):
            self._ear.said += piece.text
        return piece

    async def aclose(self) -> None:
        await self._stream.aclose()
