"""What a case is: a request, tools, stand-in results, and what must come of it.

A case file is JSONL, one case a line; `docs/cases.md` explains every field. A tool given as a
string is looked up in `tools.json` beside the file.
"""

from __future__ import annotations

import json
import re
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from chathands.conversation import (
    Message,
    Role,
    SideEffect,
    Status,
    ToolCall,
    ToolExample,
    ToolResult,
    ToolSpec,
)
from chathands.errors import ConfigError

Rule = Literal["own", "bfcl", "bfcl_code", "acebench"]
"""How argument values are compared: by this file's matchers, or as a public benchmark does."""


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Matcher(_Strict):
    """What a value must be when it is not simply given. Every field that is set must hold."""

    any_of: list[Any] | None = None
    contains: str | list[str] | None = None
    """Text that the value, as text, holds; a list: all of them."""
    pattern: str | None = None
    near: float | None = None
    """A number within one in a thousand of this one; numbers written as text count."""
    present: bool | None = None

    @model_validator(mode="after")
    def _says_something(self) -> Matcher:
        if not self.model_fields_set:
            raise ValueError("a matcher needs a condition")
        try:
            re.compile(self.pattern or "")
        except re.error as error:
            raise ValueError(f"pattern: {error}") from None
        return self

    def fits(self, value: Any) -> bool:
        if self.present is not None and (value is not None) != self.present:
            return False
        if self.any_of is not None and not any(fits(value, wanted) for wanted in self.any_of):
            return False
        if self.contains is not None:
            texts = [self.contains] if isinstance(self.contains, str) else self.contains
            if value is None or not all(text.casefold() in _text(value) for text in texts):
                return False
        if self.pattern is not None and (
            value is None or not re.search(self.pattern, str(value), re.IGNORECASE)
        ):
            return False
        return self.near is None or _is_near(value, self.near)


class ExpectedCall(_Strict):
    tool: str
    arguments: dict[str, Any] = Field(default_factory=dict)
    """Key → literal or matcher such as {"contains": "…"}; under a benchmark's rule, its answer."""
    optional: bool = False
    """May be made or left out."""
    only: bool = False
    """No argument but these may be given."""


class StandIn(_Strict):
    """What a tool answers in place of the real one."""

    content: str
    status: Status = Status.OK
    when: dict[str, Any] = Field(default_factory=dict)
    """Only for calls whose arguments fit."""


class GivenMessage(_Strict):
    """A message of the conversation so far."""

    role: Literal["user", "assistant", "tool"]
    content: str = ""
    head: str = ""
    calls: list[tuple[str, dict[str, Any]]] = Field(default_factory=list)
    """(tool, arguments) pairs of an assistant message; `tool` messages answer them in order."""
    status: Status = Status.OK


class CaseTool(_Strict):
    """A tool as a case offers it."""

    name: str
    description: str = ""
    parameters: dict[str, Any] = Field(default_factory=lambda: {"type": "object", "properties": {}})
    side_effect: SideEffect = "none"
    examples: list[tuple[str, dict[str, Any]]] = Field(default_factory=list)

    @property
    def spec(self) -> ToolSpec:
        examples = tuple(ToolExample(request, given) for request, given in self.examples)
        return ToolSpec(
            self.name, self.description, self.parameters, self.side_effect, examples=examples
        )


class Case(BaseModel):
    """One line of a case file."""

    model_config = ConfigDict(extra="forbid", frozen=True, ignored_types=(cached_property,))

    id: str
    language: Literal["zh", "en"] = "zh"
    category: str
    request: str
    head: str = ""
    """Lines of ours before the request, such as today's date."""
    conversation: list[GivenMessage] = Field(default_factory=list)
    """What was said before the request."""
    tools: Annotated[list[CaseTool], Field(min_length=1)]
    tools_given: bool = True
    """False: the request comes without tools, as a client's second request may."""
    results: dict[str, list[str | StandIn]] = Field(default_factory=dict)
    """Tool → its stand-in results in order; the last one repeats. `!text` is a failure."""
    expect: list[ExpectedCall] = Field(default_factory=list)
    """Calls that must be made; empty: no call may be made."""
    alternatives: list[list[ExpectedCall]] = Field(default_factory=list)
    """Other lists of calls that are as good as `expect`."""
    ordered: bool = False
    """The calls must come in the order of the list."""
    any_call: bool = False
    """Any call of a declared tool will do."""
    forbid: list[ExpectedCall] = Field(default_factory=list)
    """Calls that must not be made whatever else is."""
    may_run: list[str] = Field(default_factory=list)
    """Tools with a side effect that may run besides those in `expect`."""
    repeats_allowed: bool = False
    """An expected read may be made more than once (after a failure, say)."""
    answer_has: list[str | list[str]] = Field(default_factory=list)
    """Text in the final answer; a list: at least one of them."""
    answer_lacks: list[str] = Field(default_factory=list)
    answer_asks: bool = False
    """The answer must ask the person something."""
    first_only: bool = False
    """Only the first decision is judged; nothing runs."""
    rule: Rule = "own"

    @cached_property
    def specs(self) -> tuple[ToolSpec, ...]:
        return tuple(tool.spec for tool in self.tools)

    @property
    def offered(self) -> tuple[ToolSpec, ...] | None:
        """What a turn is given: the tools, or None for those of the history."""
        return self.specs if self.tools_given else None

    @property
    def accepted(self) -> list[list[ExpectedCall]]:
        return [self.expect, *self.alternatives]

    @property
    def wants_call(self) -> bool:
        return self.any_call or any(not call.optional for call in self.expect)

    @model_validator(mode="after")
    def _is_consistent(self) -> Case:
        names = {tool.name for tool in self.tools}
        wanted = [call for calls in self.accepted for call in calls]
        for name in [*(c.tool for c in wanted), *(c.tool for c in self.forbid), *self.may_run]:
            if name not in names:
                raise ValueError(f"tool {name} is not offered")
        for call in wanted:
            if self.rule == "own":
                for value in call.arguments.values():
                    matcher_in(value)
        return self

    def messages(self) -> list[Message]:
        """The conversation up to and including the request."""
        messages: list[Message] = []
        waiting: list[ToolCall] = []
        made = 0
        for given in self.conversation:
            if given.role == "user":
                messages.append(Message.user(given.content, head=given.head))
            elif given.role == "assistant":
                calls = []
                for name, arguments in given.calls:
                    calls.append(ToolCall(f"given_{made}", name, arguments))
                    made += 1
                waiting = list(calls)
                messages.append(Message.assistant(given.content, calls))
            else:
                if not waiting:
                    raise ValueError(f"case {self.id}: a tool message answers no call")
                call = waiting.pop(0)
                result = ToolResult(call.id, call.name, given.status, given.content)
                messages.append(Message(Role.TOOL, given.content, result=result))
        messages.append(Message.user(self.request, head=self.head))
        return messages


def matcher_in(value: Any) -> Matcher | None:
    """The matcher that `value` is, if it is one. Raises ValueError for one that says nothing."""
    if isinstance(value, dict) and value and set(value) <= set(Matcher.model_fields):
        return Matcher.model_validate(value)
    return None


def fits(value: Any, wanted: Any) -> bool:
    """Whether a value is what a case wants: a literal or a matcher, in nested values too."""
    if (matcher := matcher_in(wanted)) is not None:
        return matcher.fits(value)
    if isinstance(wanted, dict) and isinstance(value, dict):
        return wanted.keys() == value.keys() and all(fits(value[k], wanted[k]) for k in wanted)
    if isinstance(wanted, list) and isinstance(value, list):
        return len(wanted) == len(value) and all(map(fits, value, wanted))
    return same(value, wanted)


def same(value: Any, wanted: Any) -> bool:
    """Equal, with 5 and 5.0 alike and text compared without case and outer blanks."""
    if isinstance(value, str) and isinstance(wanted, str):
        return value.strip().casefold() == wanted.strip().casefold()
    return value == wanted and isinstance(value, bool) == isinstance(wanted, bool)


def _text(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text.casefold()


def _is_near(value: Any, wanted: float) -> bool:
    if isinstance(value, bool):
        return False
    try:
        number = float(str(value).replace(",", ""))
    except ValueError:
        return False
    return abs(number - wanted) <= abs(wanted) / 1000


CASES = Path(__file__).parent / "cases"


def shipped_cases() -> Path:
    """The file of the cases that come with the package."""
    return CASES / "shipped.jsonl"


def load_cases(path: Path) -> list[Case]:
    """Cases of a JSONL file. Raises ConfigError naming file and line."""
    tools = _named_tools(path.parent / "tools.json")
    cases: list[Case] = []
    seen: set[str] = set()
    # Not splitlines(): U+2028 inside a string is no line end in JSONL.
    for number, line in enumerate(read_text(path).split("\n"), 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
            if isinstance(row, dict) and isinstance(row.get("tools"), list):
                row["tools"] = [_tool_of(tool, tools) for tool in row["tools"]]
            case = Case.model_validate(row)
            if case.id in seen:
                raise ValueError(f"id {case.id} occurs twice")
            case.messages()
        except (ValueError, ValidationError) as error:
            raise _bad_line(path, number, error) from None
        seen.add(case.id)
        cases.append(case)
    return cases


def read_text(path: Path) -> str:
    """A data file. Raises ConfigError when it is not there or not UTF-8."""
    try:
        return path.read_text("utf-8-sig")
    except OSError as error:
        raise ConfigError(
            f"{path}: {error.strerror}", sentence=f"读不了 {path.name}：请检查路径。"
        ) from None
    except UnicodeDecodeError:
        raise ConfigError(
            f"{path} is not UTF-8", sentence=f"{path.name} 不是 UTF-8 编码，请另存为 UTF-8。"
        ) from None


def _bad_line(path: Path, number: int, error: Exception) -> ConfigError:
    if isinstance(error, ValidationError):
        first = error.errors(include_url=False)[0]
        what = f"{'.'.join(str(part) for part in first['loc'])}: {first['msg']}"
    else:
        what = str(error)
    return ConfigError(
        f"{path}:{number}: {what}",
        sentence=f"{path.name} 第 {number} 行不是合法的用例：{what}",
    )


def _named_tools(path: Path) -> dict[str, Any]:
    if not path.is_file():
        return {}
    try:
        return {tool["name"]: tool for tool in json.loads(read_text(path))}
    except (ValueError, TypeError, KeyError):
        raise ConfigError(
            f"{path} is not a list of tools", sentence=f"{path.name} 不是合法的工具列表。"
        ) from None


def _tool_of(tool: Any, named: dict[str, Any]) -> Any:
    """A tool by name, in OpenAI's shape, or as a case writes it."""
    if isinstance(tool, str):
        if tool not in named:
            raise ValueError(f"tool {tool} is neither given nor in tools.json")
        return named[tool]
    if isinstance(tool, dict) and isinstance(tool.get("function"), dict):
        return tool["function"]
    return tool
