"""Readers for files of public benchmarks: BFCL (one decision), ACEBench (normal, special).

The files stay where they are; nothing of them is shipped. A path is a question file or a folder of
them, with the answers in `possible_answer/` beside it. In a folder, files of categories that need
an environment of their own are passed over and named; so are rows that cannot be judged (no tool
offered, an answer that names a tool not offered, an id for the second time). A row that cannot be
read is an error with file and line, and so is a question that wants a call and has no answer.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Protocol

from pydantic import ValidationError

from chathands.errors import ConfigError
from chathands.evals.acebench import acebench_case
from chathands.evals.bfcl import bfcl_case
from chathands.evals.case import Case, read_text
from chathands.evals.public_rows import Row, SkippedRow

Note = Callable[[str], None]
"""Told a sentence for each file that is passed over or of which rows are."""

_BFCL_OTHER = re.compile(
    r"multi_turn|memory|web_search|format_sensitivity|exec_|executable|rest|sql|chat|agentic"
)
_ACE_OTHER = re.compile(r"agent")


class Reader(Protocol):
    def __call__(self, path: Path, note: Note = ...) -> list[Case]: ...


def _quiet(sentence: str) -> None:
    del sentence


def bfcl_cases(path: Path, note: Note = _quiet) -> list[Case]:
    """Cases of BFCL's single-turn categories, v4 or v3: `irrelevance` wants no call.

    Raises ConfigError for a file that is not one, and for one multi-turn or agentic file.
    """
    patterns = ("BFCL_*.json", "gorilla_openfunctions_v1_test_*.json")
    return _cases(path, patterns, _BFCL_OTHER, bfcl_case, note)


def acebench_cases(path: Path, note: Note = _quiet) -> list[Case]:
    """Cases of ACEBench's `normal` and `special` categories, zh or en: `special` wants no call.

    Raises ConfigError for a file that is not one, and for one agent file.
    """
    return _cases(path, ("data_*.json",), _ACE_OTHER, acebench_case, note)


READERS: dict[str, Reader] = {"bfcl": bfcl_cases, "acebench": acebench_cases}


def _cases(
    path: Path,
    patterns: tuple[str, ...],
    other: re.Pattern[str],
    read: Callable[[Row], Case],
    note: Note,
) -> list[Case]:
    if not path.is_dir():
        hint = "：这类题要它自己的环境，不支持" if other.search(path.stem) else ""
        return _file_cases(path, read, note, hint)
    cases: list[Case] = []
    for file in sorted(file for pattern in patterns for file in path.glob(pattern)):
        if other.search(file.stem):
            note(f"{file.name}：这类题要它自己的环境，不读。")
        else:
            cases += _file_cases(file, read, note)
    if not cases:
        raise ConfigError(f"{path}: no cases", sentence=f"{path} 里没有找到题目文件。")
    return cases


def _file_cases(file: Path, read: Callable[[Row], Case], note: Note, hint: str = "") -> list[Case]:
    place = file.parent / "possible_answer" / file.name
    answers = {row["id"]: row.get("ground_truth") for _, row in _rows(place, optional=True)}
    cases: dict[str, Case] = {}
    skipped: list[str] = []
    for number, row in _rows(file):
        answer = answers.get(row["id"], row.get("ground_truth"))
        try:
            case = read(Row(row, answer, file.stem))
            case.messages()
            if case.id in cases:
                raise SkippedRow(f"id {row['id']} 出现过")
        except SkippedRow as reason:
            skipped.append(f"第 {number} 行 {reason}")
            continue
        except (ValidationError, KeyError, TypeError, ValueError, AttributeError) as error:
            what = _said(error)
            raise ConfigError(
                f"{file}:{number}: {what}",
                sentence=f"{file.name} 第 {number} 行读不懂（{what}）{hint}。",
            ) from None
        cases[case.id] = case
    if skipped:
        note(f"{file.name}：{len(skipped)} 题没法判，不跑（{skipped[0]}）。")
    if not cases:
        raise ConfigError(f"{file}: no cases", sentence=f"{file.name} 里没有能跑的题目。")
    return list(cases.values())


def _said(error: Exception) -> str:
    if isinstance(error, ValidationError):
        first = error.errors(include_url=False)[0]
        return f"{'.'.join(str(part) for part in first['loc'])}: {first['msg']}"
    if isinstance(error, KeyError):
        return f"no {error}"
    return (str(error).splitlines() or [type(error).__name__])[0]


def _rows(path: Path, *, optional: bool = False) -> Iterator[tuple[int, dict[str, Any]]]:
    if optional and not path.is_file():
        return
    # Not splitlines(): U+2028 inside a string is no line end in JSONL.
    for number, line in enumerate(read_text(path).split("\n"), 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except (ValueError, RecursionError):
            row = None
        if not isinstance(row, dict) or not isinstance(row.get("id"), str | int):
            raise ConfigError(
                f"{path}:{number}: not a benchmark row",
                sentence=f"{path.name} 第 {number} 行不是题目（要一行一个带 id 的 JSON 对象）。",
            )
        yield number, row
