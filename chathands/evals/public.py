"""Readers for files of public benchmarks: BFCL v4 (one decision), ACEBench (normal, special).

The files stay where they are; nothing of them is shipped. A path is a question file or a folder of
them, with the answers in `possible_answer/` beside it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from chathands.errors import ConfigError
from chathands.evals.case import Case, CaseTool, ExpectedCall, GivenMessage, read_text

_CJK = re.compile(r"[\u4e00-\u9fff]")
_NUMBERED = re.compile(r"_\d+\Z")
_SPEAKER = re.compile(r"^(user|system|assistant)\s*[:：]\s?", re.MULTILINE)


def bfcl_cases(path: Path) -> list[Case]:
    """Cases of BFCL's single-turn categories; without an answer file no call is wanted.

    Raises ConfigError for a file that is not one, and for multi-turn and agentic categories.
    """
    return _cases(path, "BFCL_*.json", _bfcl_case)


def acebench_cases(path: Path) -> list[Case]:
    """Cases of ACEBench's `normal` and `special` categories, zh or en.

    `special` wants no call: the request lacks something, is wrong, or fits no tool.
    """
    return _cases(path, "data_*.json", _ace_case)


READERS: dict[str, Callable[[Path], list[Case]]] = {
    "bfcl": bfcl_cases,
    "acebench": acebench_cases,
}


def _cases(path: Path, pattern: str, read: Callable[..., Case]) -> list[Case]:
    files = sorted(path.glob(pattern)) if path.is_dir() else [path]
    cases: list[Case] = []
    for file in files:
        answers = {
            row["id"]: row.get("ground_truth")
            for _, row in _rows(file.parent / "possible_answer" / file.name, optional=True)
        }
        for number, row in _rows(file):
            try:
                cases.append(read(row, answers.get(row.get("id")), file.stem))
            except (ValidationError, KeyError, TypeError, ValueError, AttributeError) as error:
                first = str(error).splitlines()[0]
                raise ConfigError(
                    f"{file}:{number}: {first}",
                    sentence=f"{file.name} 第 {number} 行读不懂（{first}）：只支持单轮的题目。",
                ) from None
    if not cases:
        raise ConfigError(f"{path}: no cases", sentence=f"{path} 里没有找到题目文件。")
    return cases


def _rows(path: Path, *, optional: bool = False) -> Iterator[tuple[int, dict[str, Any]]]:
    if optional and not path.is_file():
        return
    for number, line in enumerate(read_text(path).split("\n"), 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except ValueError:
            row = None
        if not isinstance(row, dict) or "id" not in row:
            raise ConfigError(
                f"{path}:{number}: not a benchmark row",
                sentence=f"{path.name} 第 {number} 行不是题目（要一行一个带 id 的 JSON 对象）。",
            )
        yield number, row


def _tools(functions: Any) -> list[CaseTool]:
    tools: list[CaseTool] = []
    for function in functions if isinstance(functions, list) else [functions]:
        parameters = function.get("parameters") or function.get("arguments") or {}
        tool = CaseTool(
            name=function["name"],
            description=function.get("description", ""),
            parameters=dict(parameters) or {"type": "object", "properties": {}},
        )
        if tool.name not in {known.name for known in tools}:
            tools.append(tool)
    return tools


def _language(text: str) -> str:
    return "zh" if _CJK.search(text) else "en"


def _bfcl_case(row: Mapping[str, Any], answer: Any, file: str) -> Case:
    question = row["question"]
    if question and isinstance(question[0], list):
        if len(question) != 1:
            raise ValueError("more than one turn")
        question = question[0]
    *before, last = question
    category = file.removeprefix("BFCL_v4_").removeprefix("BFCL_v3_")
    category = category.removeprefix("gorilla_openfunctions_v1_test_")
    system = [m["content"] for m in before if m["role"] == "system"]
    return Case.model_validate(
        {
            "id": f"bfcl/{row['id']}",
            "language": _language(last["content"]),
            "category": category,
            "request": last["content"],
            "head": "\n".join(system),
            "conversation": [
                GivenMessage(role=m["role"], content=m["content"])
                for m in before
                if m["role"] != "system"
            ],
            "tools": _tools(row["function"]),
            "expect": [
                ExpectedCall(tool=name, arguments=arguments)
                for call in answer or []
                for name, arguments in call.items()
            ],
            "any_call": answer is None
            and "irrelevance" not in category
            and "relevance" in category,
            "first_only": True,
            "rule": "bfcl",
        }
    )


def _ace_case(row: Mapping[str, Any], answer: Any, file: str) -> Case:
    category = file.removeprefix("data_")
    if category.startswith("agent"):
        raise ValueError("agent categories need their own environment")
    turns = _ace_turns(row["question"])
    if not turns or turns[-1][0] != "user":
        raise ValueError("the last turn is not the user's")
    head = "\n".join(str(row[key]) for key in ("time", "profile") if row.get(key))
    answers = answer if isinstance(answer, list) else [answer]
    lists = [_ace_calls(each) for each in answers] if category.startswith("normal") else [[]]
    return Case.model_validate(
        {
            "id": f"acebench/{row['id']}",
            "language": _language(row["question"]),
            "category": category,
            "request": turns[-1][1],
            "head": head,
            "conversation": [GivenMessage(role=r, content=t) for r, t in turns[:-1]],  # type: ignore[arg-type]
            "tools": _tools(row["function"]),
            "expect": lists[0],
            "alternatives": lists[1:],
            "first_only": True,
            "rule": "acebench",
        }
    )


def _ace_turns(question: str) -> list[tuple[str, str]]:
    """(role, text) pairs; "system" is what ACEBench calls the assistant."""
    marks = list(_SPEAKER.finditer(question))
    if not marks:
        return [("user", question.strip())] if question.strip() else []
    turns: list[tuple[str, str]] = []
    for mark, after in zip(marks, [*marks[1:], None], strict=True):
        text = question[mark.end() : after.start() if after else None].strip()
        role = "user" if mark[1] == "user" else "assistant"
        if turns and turns[-1][0] == role:
            turns[-1] = (role, f"{turns[-1][1]}\n{text}")
        else:
            turns.append((role, text))
    return turns


def _ace_calls(answer: Any) -> list[ExpectedCall]:
    """`{name: arguments}`; several calls of one tool are numbered `name_1`, `name_2`."""
    if not isinstance(answer, Mapping):
        raise ValueError("no answer for a case that wants a call")
    bare = [_NUMBERED.sub("", name) for name in answer]
    calls = []
    for name, arguments in answer.items():
        plain = _NUMBERED.sub("", name)
        numbered = plain != name and (bare.count(plain) > 1)
        calls.append(ExpectedCall(tool=plain if numbered else name, arguments=arguments or {}))
    return calls
