"""What rows of the public benchmarks have in common: tools, language, category."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from chathands.evals.case import CaseTool

_CJK = re.compile(r"[\u4e00-\u9fff]")
_WORD = re.compile(r"[A-Za-z]+")
_COUNTERS = re.compile(r"(?:_\d[\d-]*)+\Z")


class SkippedRow(Exception):
    """The row is well-formed, but no reply to it could be judged; says why."""


@dataclass(frozen=True, slots=True)
class Row:
    """A question with its answer (None: there is none) and the name of its file."""

    fields: Mapping[str, Any]
    answer: Any
    file: str

    def category(self, prefix: re.Pattern[str]) -> str:
        """The file's category; of a file that is not named like one, the id's."""
        named = prefix.sub("", self.file)
        return named if named != self.file else _COUNTERS.sub("", str(self.fields["id"]))


def offered_tools(functions: Any) -> list[CaseTool]:
    """A row's tools. Raises SkippedRow when there are none.

    One function or a list; its schema under `parameters` or `arguments`. Of two that have one name
    the first counts, as for the benchmarks' checkers.
    """
    tools: dict[str, CaseTool] = {}
    for function in functions if isinstance(functions, list) else [functions]:
        parameters = function.get("parameters") or function.get("arguments") or {}
        tool = CaseTool(
            name=function["name"],
            description=function.get("description") or "",
            parameters=dict(parameters) or {"type": "object", "properties": {}},
        )
        if not tool.name:
            raise ValueError("a tool without a name")
        tools.setdefault(tool.name, tool)
    if not tools:
        raise SkippedRow("没有给工具")
    return list(tools.values())


def language_of(text: str) -> str:
    """`zh` where Chinese is what is spoken, not merely quoted: a word counts like two characters
    of Chinese."""
    return "zh" if len(_CJK.findall(text)) * 2 > len(_WORD.findall(text)) else "en"
