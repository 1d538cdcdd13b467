"""The @tool decorator: a typed function becomes a tool, and is its only description."""

from __future__ import annotations

import inspect
import logging
import math
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, get_args

from chathands.conversation import (
    Audience,
    Face,
    SideEffect,
    ToolExample,
    ToolSpec,
    canonical_json,
)
from chathands.errors import ToolLoadError
from chathands.toolbox.context import ToolContext

if TYPE_CHECKING:
    from chathands.settings import Settings
    from chathands.toolbox.signature import Signature

logger = logging.getLogger(__name__)

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,63}")
"""What the OpenAI and Anthropic protocols both accept as a tool's name."""

_HIDING = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u202a-\u202e\u2060-\u2069\ufeff]"
)
"""Controls, and what turns the reading direction or has no width (but not emoji's U+200D)."""


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class Tool:
    """A function a model may call. Calling it calls the function itself (handy in tests)."""

    name: str
    description: str
    side_effect: SideEffect
    timeout: float
    examples: tuple[ToolExample, ...]
    audience: Audience
    foreign: bool
    deterministic: bool
    target: str | None
    shows: tuple[str, ...]
    function: Callable[..., Any] = field(repr=False)
    signature: Signature = field(repr=False)
    version: int | str = 1
    deprecated: str | None = None
    faces: tuple[Face, ...] = ()
    enabled_when: Callable[[Settings], bool] | None = field(default=None, repr=False)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.function(*args, **kwargs)

    @property
    def module(self) -> str:
        return self.function.__module__

    @property
    def line(self) -> int:
        return inspect.unwrap(self.function).__code__.co_firstlineno

    def configured(self, settings: Settings) -> bool:
        """Whether the settings have what it needs; without that it is not offered."""
        return self.enabled_when is None or bool(self.enabled_when(settings))

    def spec(self, settings: Settings | None) -> ToolSpec:
        """What the model is told, with Choices filled from `settings`.

        An example's value for a filled parameter becomes the first that is allowed (the author
        cannot know what robots are configured); what still does not fit is left out.
        """
        from chathands.schema import compile_schema

        parameters = self.signature.schema(settings)
        schema = compile_schema(parameters)
        unfilled = self.signature.schema(None)["properties"]
        filled = {
            name: property_["enum"]
            for name, property_ in parameters["properties"].items()
            if "enum" in property_ and "enum" not in unfilled[name]
        }
        allowed = [_with_allowed(example, filled) for example in self.examples]
        examples = {example.request: example for example in allowed}.values()
        return ToolSpec(
            name=self.name,
            description=self.description,
            parameters=parameters,
            side_effect=self.side_effect,
            examples=tuple(e for e in examples if not schema.check(e.arguments).problems),
            audience=self.audience,
            foreign=self.foreign,
            deterministic=self.deterministic,
            version=self.version,
            deprecated=self.deprecated,
            faces=self.faces,
        )

    async def run(self, ctx: ToolContext, arguments: Mapping[str, Any]) -> Any:
        """What the function returns, as text or plain JSON data for the model; pictures and files
        are attached to the reply.

        A synchronous function runs in a thread of its own, and is left there when the call's time
        is up. Raises ToolFailed when the arguments do not fit (they are validated strictly), and
        ToolOutcomeUnknown when what the function returned is nothing a tool may return.
        """
        values = self.signature.validate(arguments)
        if self.signature.context:
            values[self.signature.context] = ctx
        if self.deprecated is not None:
            run_id = ctx.run_id if ctx is not None else "-"
            logger.warning(
                "run %s: deprecated tool %s was called (%s)", run_id, self.name, self.deprecated
            )
        from chathands.toolbox.returns import delivered

        if inspect.iscoroutinefunction(self.function):
            returned = await self.function(**values)
        else:
            from chathands.toolbox.threads import run_in_thread

            returned = await run_in_thread(partial(self.function, **values))
            if inspect.isawaitable(returned):  # an async function behind somebody's decorator
                returned = await returned
        return await delivered(returned, ctx, self.name, self.side_effect)

    def describe_target(self, arguments: Mapping[str, Any]) -> str:
        """Whom or what the call reaches, e.g. the robot's name, on one line: the next ones belong
        to the content. Empty when none is declared."""
        if not self.target or self.target not in arguments:
            return ""
        return " ".join(_shown(arguments[self.target]).split())

    def describe_content(self, arguments: Mapping[str, Any]) -> str:
        """The whole content a person is asked to approve, one `说明：值` paragraph each.

        Parameters in `shows` come first, but none is left out: what is approved is what is seen.
        """
        names = [n for n in self.shows if n in arguments]
        names += [n for n in arguments if n not in names and n != self.target]
        return "\n".join(f"{self._label(name)}：{_shown(arguments[name])}" for name in names)

    def _label(self, name: str) -> str:
        """The description up to its first punctuation, as a person would call the parameter."""
        label = re.split(r"[，。；：（(,;:\n]", self.signature.labels.get(name, ""))[0].strip()
        return label if 0 < len(label) <= 20 else name


def tool(
    misused: object = None,
    /,
    *,
    side_effect: SideEffect | None = None,
    timeout: float = 10,
    examples: Sequence[tuple[str, Mapping[str, Any]]] = (),
    audience: Audience = "everyone",
    foreign: bool = False,
    deterministic: bool = True,
    target: str | None = None,
    shows: Sequence[str] = (),
    when_to_use: str | None = None,
    not_for: str | None = None,
    version: int | str = 1,
    deprecated: str | None = None,
    faces: Sequence[Face] = (),
    enabled_when: Callable[[Settings], bool] | None = None,
) -> Callable[[Callable[..., Any]], Tool]:
    """Make a function a tool.

    `side_effect`: `none` reads, `local` changes something of the asker's own, `outward` reaches
    other people or systems. It has no default, so that nothing outward passes as a read by
    omission. `target` and `shows` name the parameters a person is shown when asked for approval.
    `timeout` is in seconds. `deterministic=False` marks text or pictures that a model made.
    `when_to_use` and `not_for` follow the docstring in the description, and so does `deprecated`:
    what to use instead. `version` changes with the schema. `enabled_when` gets the settings and
    says whether they have what the tool needs; where they do not, nobody is offered it. `faces` are
    where it makes sense at all (`bot`, `http`, `mcp`, `cli`; empty: everywhere), unless tools.toml
    says otherwise.

    Raises ToolLoadError (file, line, the parameter's name) when the signature does not describe
    the tool: no docstring, a parameter without type or description, an example that does not fit.
    """

    def decorate(function: Callable[..., Any]) -> Tool:
        from chathands.toolbox.signature import read_signature

        scope = sys._getframe(1)
        fail = _failing(function, scope.f_code.co_filename, scope.f_lineno)
        if misused is not None:
            raise fail('要写成 @tool(side_effect="…")，带括号')
        _check_function(function, fail)
        if side_effect is None or side_effect not in get_args(SideEffect)[:3]:
            raise fail("要写明 side_effect：none（只读）、local（只影响提问者）或 outward（对外）")
        if audience not in get_args(Audience):
            raise fail("audience 只能是 everyone、admin 或 superuser")
        if isinstance(faces, str) or any(face not in get_args(Face) for face in faces):
            raise fail('faces 要是列表，里面只能有 "bot"、"http"、"mcp"、"cli"')
        number = isinstance(timeout, int | float) and not isinstance(timeout, bool)
        if not (number and 0 < timeout < math.inf):
            raise fail("timeout 要大于 0 秒")
        if isinstance(version, bool) or not isinstance(version, int | str) or version in (0, ""):
            raise fail('version 要是整数或文字，如 2 或 "2.1"')
        if enabled_when is not None and not callable(enabled_when):
            raise fail("enabled_when 要是一个函数：拿到设置，返回能不能用")
        inner = "<locals>" in getattr(function, "__qualname__", "")
        signature = read_signature(function, fail, dict(scope.f_locals) if inner else None)
        for name in (*([target] if target else ()), *shows):
            if name not in signature.labels:
                raise fail(f"target 或 shows 里的 {name} 不是它的参数")
        made = Tool(
            name=function.__name__,
            description=_description(function, when_to_use, not_for, deprecated, fail),
            side_effect=side_effect,
            timeout=timeout,
            examples=_examples(examples, fail),
            audience=audience,
            foreign=foreign,
            deterministic=deterministic,
            target=target,
            shows=tuple(shows),
            function=function,
            signature=signature,
            version=version,
            deprecated=deprecated.strip() if deprecated else None,
            faces=tuple(faces),
            enabled_when=enabled_when,
        )
        _check_examples(made, fail)
        return made

    return decorate if misused is None else decorate(misused)  # type: ignore[arg-type,return-value]


def _failing(function: Any, file: str, line: int) -> Callable[[str], ToolLoadError]:
    """Makes the error that points at the function, or else at where it was decorated."""
    code = getattr(inspect.unwrap(function), "__code__", None)
    if code is not None:
        file, line = code.co_filename, code.co_firstlineno
    name = getattr(function, "__name__", type(function).__name__)
    return lambda reason: ToolLoadError(f"工具 {name}：{reason}", file=file, line=line)


def _check_function(function: Any, fail: Callable[[str], ToolLoadError]) -> None:
    if isinstance(function, Tool):
        raise fail("@tool 写了两次")
    if not inspect.isfunction(function):
        raise fail("@tool 只能写在函数上（def 或 async def）")
    if "." in function.__qualname__.rpartition("<locals>.")[2]:
        raise fail("工具要写成模块里的函数，不能是类的方法")
    inner = inspect.unwrap(function)
    if inspect.isgeneratorfunction(inner) or inspect.isasyncgenfunction(inner):
        raise fail("函数里不能用 yield，一次把结果 return 出来")
    if not _NAME.fullmatch(function.__name__):
        raise fail("名字要以字母开头，只含字母、数字和下划线，最多 64 个")


def _description(
    function: Callable[..., Any],
    when_to_use: str | None,
    not_for: str | None,
    deprecated: str | None,
    fail: Callable[[str], ToolLoadError],
) -> str:
    """The docstring, and what the decorator adds to it, in the words of the docstrings."""
    lines = [inspect.cleandoc(function.__doc__ or "").strip()]
    if not lines[0]:
        raise fail("没有文档字符串；它就是给模型看的说明")
    added = (
        ("when_to_use", "何时用", when_to_use),
        ("not_for", "何时不用", not_for),
        ("deprecated", "已弃用", deprecated),
    )
    for argument, label, text in added:
        if text is None:
            continue
        if not isinstance(text, str) or not text.strip():
            raise fail(f"{argument} 要是一段文字")
        text = " ".join(text.split())
        lines.append(f"{label}：{text}" + ("" if text.endswith(_ENDS) else "。"))
    return "\n".join(lines)


_ENDS = ("。", "！", "？", "…", ".", "!", "?", "；")


def _examples(given: Any, fail: Callable[[str], ToolLoadError]) -> tuple[ToolExample, ...]:
    found = []
    for each in given:
        match each:
            case (str(request), Mapping() as arguments) if request.strip():
                found.append(ToolExample(request, arguments))
            case _:
                raise fail('examples 要写成 [("一句人话", {"参数": 值}), …]')
    return tuple(found)


def _check_examples(made: Tool, fail: Callable[[str], ToolLoadError]) -> None:
    if not made.examples:
        return
    from chathands.schema import compile_schema

    schema = compile_schema(made.signature.schema(None))
    for example in made.examples:
        checked = schema.check(example.arguments)
        if checked.problems or checked.repairs:
            why = (
                checked.problems[0].sentence("zh")
                if checked.problems
                else _repaired(checked.repairs[0])
            )
            raise fail(f"示例「{example.request}」的参数不对：{why}")


_REPAIRED = {
    "coerced": "参数 {} 的类型不对",
    "enum": "参数 {} 不是可选值之一",
    "renamed": "没有参数 {}",
    "dropped": "没有参数 {}",
    "nested": "参数 {} 多套或少套了一层",
}


def _repaired(tag: str) -> str:
    """What an example has that is put right in a model's call, as a clause."""
    kind, _, path = tag.partition(":")
    path, _, meant = path.partition(">")
    hint = f"，是不是 {meant}" if meant else ""
    return _REPAIRED.get(kind, "参数 {} 不合格").format(path) + hint


def _shown(value: Any) -> str:
    if isinstance(value, bool):
        return "是" if value else "否"
    return _seen(value if isinstance(value, str) else canonical_json(value))


def _seen(text: str) -> str:
    """What is approved is what is seen: characters that hide or turn round others are spelt out."""
    return _HIDING.sub(lambda m: f"[U+{ord(m[0]):04X}]", text)


def _with_allowed(example: ToolExample, filled: Mapping[str, Sequence[Any]]) -> ToolExample:
    wrong = {
        name: allowed[0]
        for name, allowed in filled.items()
        if name in example.arguments and example.arguments[name] not in allowed
    }
    request = example.request
    for name, value in wrong.items():
        request = request.replace(str(example.arguments[name]), str(value))
    return ToolExample(request, {**example.arguments, **wrong}) if wrong else example
