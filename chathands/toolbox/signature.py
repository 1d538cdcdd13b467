"""A tool function's signature, read once: its JSON Schema and its strict validation."""

from __future__ import annotations

import inspect
import json
import typing
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from chathands.errors import ToolFailed, ToolLoadError
from chathands.toolbox.choices import choices_from
from chathands.toolbox.context import ToolContext

if TYPE_CHECKING:
    from pydantic import BaseModel, ValidationError
    from pydantic.fields import FieldInfo

    from chathands.settings import Settings

Fail = Callable[[str], ToolLoadError]


@dataclass(frozen=True, slots=True)
class Signature:
    """What a tool takes. `context` is the name of its ToolContext parameter, if it has one."""

    model: type[BaseModel]
    context: str | None
    labels: Mapping[str, str]
    """Parameter → its description."""

    def schema(self, settings: Settings | None) -> dict[str, Any]:
        """JSON Schema of the arguments; with settings, Choices are filled in."""
        with choices_from(settings):
            schema = self.model.model_json_schema()
        _drop_titles(schema)
        schema.pop("description", None)  # of the helper model, never of the tool
        schema.setdefault("properties", {})
        return schema

    def validate(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Keyword arguments for the function, defaults included.

        Strict, and as JSON: nothing is coerced here, but dates, enums and nested models become
        what the signature says. Raises ToolFailed naming the parameter.
        """
        from pydantic import ValidationError

        try:
            checked = self.model.model_validate_json(json.dumps(arguments), strict=True)
        except ValidationError as error:
            raise ToolFailed(_sentence(error), detail=str(error)) from None
        return {name: checked.__dict__[name] for name in type(checked).model_fields}


def read_signature(function: Callable[..., Any], fail: Fail) -> Signature:
    """Raises ToolLoadError (made by `fail`) naming the parameter that cannot be described."""
    try:
        hints = typing.get_type_hints(function, include_extras=True)
    except (NameError, TypeError, AttributeError) as error:
        raise fail(f"参数类型读不出来（{error}）；类型要在模块顶层导入") from None
    fields: dict[str, Any] = {}
    context = None
    for name, parameter in inspect.signature(function).parameters.items():
        if parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
            raise fail(f"参数 {name} 不能是 *args、**kwargs 或仅限位置的参数")
        if name not in hints:
            raise fail(f"参数 {name} 没有类型标注")
        if hints[name] is ToolContext:
            context = name
            continue
        if parameter.default is not parameter.empty:
            fields[name] = (hints[name], parameter.default)
        elif typing.get_origin(hints[name]) is typing.Annotated:
            fields[name] = hints[name]  # its Field may hold the default
        else:
            fields[name] = (hints[name], ...)
    model = _build(function.__name__, fields, fail)
    infos = model.model_fields
    for name, info in infos.items():
        if not (info.description or "").strip():
            raise fail(f"参数 {name} 没有说明，请写成 Annotated[…, Field(description=…)]")
    return Signature(model, context, {name: _label(info) for name, info in infos.items()})


def _build(name: str, fields: dict[str, Any], fail: Fail) -> type[BaseModel]:
    from pydantic import PydanticUserError, create_model
    from pydantic.errors import PydanticSchemaGenerationError

    with warnings.catch_warnings():
        # A parameter may be called `json` or `copy`; only __dict__ of the model is read.
        warnings.filterwarnings("ignore", message="Field name .* shadows an attribute")
        try:
            model = create_model(name, **fields)
            model.model_json_schema()
        except PydanticSchemaGenerationError as error:
            raise fail(f"有参数的类型不能用于工具（{str(error).splitlines()[0]}）") from None
        except (PydanticUserError, NameError, TypeError, ValueError) as error:
            raise fail(f"参数写法有误（{str(error).splitlines()[0]}）") from None
    return model


def _label(info: FieldInfo) -> str:
    return (info.description or "").strip()


def _drop_titles(schema: dict[str, Any]) -> None:
    """Take away the titles pydantic derives from names: tokens that tell a model nothing."""
    if isinstance(schema.get("title"), str):
        del schema["title"]
    for key in ("properties", "$defs"):
        for child in schema.get(key, {}).values():
            _drop_titles(child)
    for key in ("anyOf", "oneOf", "allOf", "prefixItems"):
        for child in schema.get(key, ()):
            _drop_titles(child)
    for key in ("items", "additionalProperties"):
        if isinstance(schema.get(key), dict):
            _drop_titles(schema[key])


_FAULTS = (
    ("missing", "没有给出"),
    ("value_error", "{message}"),
    ("assertion_error", "{message}"),
    ("date", "不是合法的日期或时间（要 ISO 格式，如 2025-09-01）"),
    ("time", "不是合法的日期或时间（要 ISO 格式，如 2025-09-01T08:30）"),
)
"""pydantic error type, by prefix → what a model can act on; schema.py catches the rest before."""


def _sentence(error: ValidationError) -> str:
    first = error.errors(include_url=False, include_input=False)[0]
    name = ".".join(str(part) for part in first["loc"]) or "（整体）"
    message = first["msg"].split(", ", 1)[-1] if "error" in first["type"] else first["msg"]
    for prefix, text in _FAULTS:
        if first["type"].startswith(prefix):
            return f"参数 {name} {text.format(message=message)}。"
    return f"参数 {name} 不合要求（{message}）。"
