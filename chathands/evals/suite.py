"""A run over many cases: variants interleaved on the same cases, repeats, recording, replay."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import IO

from chathands.evals.case import Case
from chathands.evals.recording import Recorded, Recorder
from chathands.evals.runner import CaseResult, run_case
from chathands.evals.variants import Variant
from chathands.upstreams.base import Upstream


def sample(cases: Sequence[Case], limit: int | None) -> list[Case]:
    """At most `limit` cases, evenly from every category, always the same ones."""
    if limit is None or limit >= len(cases):
        return list(cases)
    groups: dict[str, list[Case]] = {}
    for case in cases:
        groups.setdefault(case.category, []).append(case)
    chosen: set[str] = set()
    left, waiting = limit, len(groups)
    for group in sorted(groups.values(), key=len):
        take = min(len(group), -(-left // waiting) if waiting else 0)
        chosen |= {group[at * len(group) // take].id for at in range(take)} if take else set()
        left, waiting = left - take, waiting - 1
    return [case for case in cases if case.id in chosen][:limit]


async def run_suite(
    cases: Sequence[Case],
    upstream: Upstream,
    variants: Sequence[Variant],
    *,
    repeats: int = 1,
    record: Path | None = None,
    on_result: Callable[[CaseResult], None] = lambda _: None,
) -> list[CaseResult]:
    """Results in the order they came. Raises UpstreamError when the endpoint fails.

    With `record`, every case's replies are appended to that file as it ends, so that a run that
    is stopped loses nothing; cases that stand there already are played from it, not asked again.
    """
    known = None if record is None else recorded_in(record)
    results: list[CaseResult] = []
    with _opened(record) as out:
        for repeat in range(repeats):
            for case in cases:
                for way in variants:
                    key = (case.id, way.name, repeat)
                    if known is not None and known.has(key):
                        known.use(key)
                        result = await run_case(case, known, way=way, repeat=repeat)
                        result.seconds = known.seconds(key)
                    else:
                        recorder = Recorder(upstream)
                        result = await run_case(case, recorder, way=way, repeat=repeat)
                        if out is not None:
                            row = {
                                "case": case.id,
                                "variant": way.name,
                                "repeat": repeat,
                                "model": upstream.name,
                                "seconds": round(result.seconds, 2),
                                "replies": recorder.taken(),
                            }
                            out.write(json.dumps(row, ensure_ascii=False) + "\n")
                            out.flush()
                    results.append(result)
                    on_result(result)
    return results


def recorded_in(path: Path) -> Recorded | None:
    """What a recording holds already."""
    return Recorded(path) if path.is_file() else None


class _opened:
    """The file to append to, or nothing."""

    def __init__(self, path: Path | None) -> None:
        self._file: IO[str] | None = None if path is None else path.open("a", encoding="utf-8")

    def __enter__(self) -> IO[str] | None:
        return self._file

    def __exit__(self, *_: object) -> None:
        if self._file is not None:
            self._file.close()


async def replay_suite(
    cases: Sequence[Case],
    recorded: Recorded,
    variants: Sequence[Variant],
    *,
    on_result: Callable[[CaseResult], None] = lambda _: None,
) -> list[CaseResult]:
    """The cases that the recording has, read and judged by today's code, without a model.

    A case for which today's code wants another reply than was recorded raises UpstreamError.
    """
    results = []
    for case in cases:
        for way in variants:
            for key in recorded.keys_of(case.id, way.name):
                recorded.use(key)
                result = await run_case(case, recorded, way=way, repeat=key[2])
                result.seconds = recorded.seconds(key)
                results.append(result)
                on_result(result)
    return results
