"""What a case is: a request, tools, stand-in results, and what must come of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from chathands.conversation import ToolSpec
from chathands.errors import ConfigError


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid")


class Matcher(_Strict):
    """What a value must be when it is not simply given: one of these."""

    any_of: list[Any] | None = None
    contains: str | None = None
    present: bool | None = None

    def fits(self, value: Any) -> bool:
        if self.any_of is not None:
            return any(same(value, wanted) for wanted in self.any_of)
        if self.contains is not None:
            return self.contains in str(value)
        return (value is not None) == bool(self.present)


class ExpectedCall(_Strict):
    tool: str
    arguments: dict[str, Any] = Field(default_factory=dict)
    """Key → literal, or {"any_of": […]}, {"contains": "…"}, {"present": true|false}."""

    def fits(self, arguments: Any) -> bool:
        return all(_fits(arguments.get(key), wanted) for key, wanted in self.arguments.items())


class Case(_Strict):
    """One line of a case file."""

    id: str
    language: Literal["zh", "en"] = "zh"
    category: str
    request: str
    tools: Annotated[list[dict[str, Any]], Field(min_length=1)]
    results: dict[str, list[str]] = Field(default_factory=dict)
    """Tool → its stand-in results in order; the last one repeats. `!text` is a failure."""
    expect: list[ExpectedCall] = Field(default_factory=list)
    """Calls that must be made, in any order; empty: no call may be made."""
    answer_has: list[str] = Field(default_factory=list)
    answer_lacks: list[str] = Field(default_factory=list)

    @property
    def specs(self) -> tuple[ToolSpec, ...]:
        return tuple(ToolSpec.from_openai(tool) for tool in self.tools)


def _fits(value: Any, wanted: Any) -> bool:
    if isinstance(wanted, dict) and len(wanted) == 1 and set(wanted) <= set(Matcher.model_fields):
        return Matcher.model_validate(wanted).fits(value)
    return same(value, wanted)


def same(value: Any, wanted: Any) -> bool:
    """Equal, with 5 and 5.0 alike and text compared without case and outer blanks."""
    if isinstance(value, str) and isinstance(wanted, str):
        return value.strip().casefold() == wanted.strip().casefold()
    return value == wanted and isinstance(value, bool) == isinstance(wanted, bool)


def shipped_cases() -> Path:
    """The file of the cases that come with the package."""
    return Path(__file__).parent / "cases" / "first.jsonl"


def load_cases(path: Path) -> list[Case]:
    """Cases of a JSONL file. Raises ConfigError naming file and line."""
    cases: list[Case] = []
    # Not splitlines(): U+2028 inside a string is no line end in JSONL.
    for number, line in enumerate(path.read_text("utf-8").split("\n"), 1):
        if not line.strip():
            continue
        try:
            cases.append(Case.model_validate(json.loads(line)))
        except (ValueError, ValidationError) as error:
            first = str(error).splitlines()[0]
            raise ConfigError(
                f"{path}:{number}: {first}", sentence=f"{path.name} 第 {number} 行不是合法的用例。"
            ) from None
    return cases
