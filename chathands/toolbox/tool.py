"""The @tool decorator: a typed function becomes a tool, and is its only description."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, get_args

from chathands.conversation import Audience, SideEffect, ToolExample, ToolSpec, canonical_json
from chathands.errors import ToolLoadError
from chathands.toolbox.context import ToolContext

if TYPE_CHECKING:
    from chathands.settings import Settings
    from chathands.toolbox.signature import Signature

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

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.function(*args, **kwargs)

    @property
    def module(self) -> str:
        return self.function.__module__

    @property
    def line(self) -> int:
        return self.function.__code__.co_firstlineno

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
        )

    async def run(self, ctx: ToolContext, arguments: Mapping[str, Any]) -> Any:
        """What the function returns. Arguments are validated strictly: ToolFailed when they do
        not fit. A synchronous function runs in a thread of its own."""
        values = self.signature.validate(arguments)
        if self.signature.context:
            values[self.signature.context] = ctx
        if inspect.iscoroutinefunction(self.function):
            return await self.function(**values)
        from chathands.toolbox.threads import run_in_thread

        return await run_in_thread(partial(self.function, **values))

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
    *,
    side_effect: SideEffect | None = None,
    timeout: float = 10,
    examples: Sequence[tuple[str, Mapping[str, Any]]] = (),
    audience: Audience = "everyone",
    foreign: bool = False,
    deterministic: bool = True,
    target: str | None = None,
    shows: Sequence[str] = (),
) -> Callable[[Callable[..., Any]], Tool]:
    """Make a function a tool.

    `side_effect`: `none` reads, `local` changes something of the asker's own, `outward` reaches
    other people or systems. It has no default, so that nothing outward passes as a read by
    omission. `target` and `shows` name the parameters a person is shown when asked for approval.
    `timeout` is in seconds.

    Raises ToolLoadError (file, line, the parameter's name) when the signature does not describe
    the tool: no docstring, a parameter without type or description, an example that does not fit.
    """

    def decorate(function: Callable[..., Any]) -> Tool:
        from chathands.toolbox.signature import read_signature

        def fail(reason: str) -> ToolLoadError:
            code = function.__code__
            return ToolLoadError(
                f"工具 {function.__name__}：{reason}",
                file=code.co_filename,
                line=code.co_firstlineno,
            )

        if not _NAME.fullmatch(function.__name__):
            raise fail("名字要以字母开头，只含字母、数字和下划线，最多 64 个")
        if side_effect is None or side_effect not in get_args(SideEffect):
            raise fail("要写明 side_effect：none（只读）、local（只影响提问者）或 outward（对外）")
        if audience not in get_args(Audience):
            raise fail("audience 只能是 everyone、admin 或 superuser")
        if not timeout > 0:
            raise fail("timeout 要大于 0 秒")
        description = inspect.cleandoc(function.__doc__ or "").strip()
        if not description:
            raise fail("没有文档字符串；它就是给模型看的说明")
        signature = read_signature(function, fail)
        for name in (*([target] if target else ()), *shows):
            if name not in signature.labels:
                raise fail(f"target 或 shows 里的 {name} 不是它的参数")
        made = Tool(
            name=function.__name__,
            description=description,
            side_effect=side_effect,
            timeout=timeout,
            examples=tuple(ToolExample(request, arguments) for request, arguments in examples),
            audience=audience,
            foreign=foreign,
            deterministic=deterministic,
            target=target,
            shows=tuple(shows),
            function=function,
            signature=signature,
        )
        _check_examples(made, fail)
        return made

    return decorate


def _check_examples(made: Tool, fail: Callable[[str], ToolLoadError]) -> None:
    if not made.examples:
        return
    from chathands.schema import compile_schema

    schema = compile_schema(made.signature.schema(None))
    for example in made.examples:
        checked = schema.check(example.arguments)
        if checked.problems or checked.repairs:
            why = checked.problems[0].sentence("zh") if checked.problems else checked.repairs[0]
            raise fail(f"示例「{example.request}」的参数不对：{why}")


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
