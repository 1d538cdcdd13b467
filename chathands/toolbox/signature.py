"""A tool function's signature, read once: its JSON Schema and its strict validation."""

from __future__ import annotations

import inspect
import json
import types
import typing
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from chathands.errors import ToolFailed, ToolLoadError
from chathands.toolbox.choices import choices_from
from chathands.toolbox.context import ToolContext
from chathands.toolbox.describing import tidy, undescribed, unfit, wrong_default

if TYPE_CHECKING:
    from pydantic import BaseModel, ValidationError

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
            return _schema_of(self.model)

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
        return {name: checked.__dict__[name] for name in self.model.__pydantic_fields__}


def read_signature(
    function: Callable[..., Any], fail: Fail, names: Mapping[str, Any] | None = None
) -> Signature:
    """Raises ToolLoadError (made by `fail`) naming the parameter that cannot be described.

    `names`: those of the scope the function is defined in, where that is another function.
    """
    fields: dict[str, Any] = {}
    context = None
    for name, parameter in inspect.signature(function).parameters.items():
        if parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
            raise fail(f"参数 {name} 不能是 *args、**kwargs 或仅限位置的参数")
        if parameter.annotation is parameter.empty:
            raise fail(f"参数 {name} 没有类型标注")
        hint = _hint(function, name, parameter.annotation, names, fail)
        if _is_context(hint):
            if context is not None:
                raise fail(f"参数 {name} 是第二个 ToolContext，一个就够")
            context = name
            continue
        if _mentions_context(hint):
            raise fail(f"参数 {name} 里的 ToolContext 要单独写，不能和别的类型放在一起")
        if name.startswith("_"):
            raise fail(f"参数 {name} 的名字不能以下划线开头")
        if parameter.default is not parameter.empty:
            fields[name] = (hint, parameter.default)
        elif typing.get_origin(hint) is typing.Annotated:
            fields[name] = hint  # its Field may hold the default
        else:
            fields[name] = (hint, ...)
    model, schema = _build(function.__name__, fields, fail)
    if path := undescribed(schema):
        name, _, below = path.replace("[", ".[", 1).partition(".")
        which = f"参数 {name} 的字段 {path}" if below else f"参数 {name}"
        raise fail(f"{which} 没有说明，请写成 Annotated[…, Field(description=…)]")
    labels = {name: each.get("description", "") for name, each in schema["properties"].items()}
    return Signature(model, context, {name: text.strip() for name, text in labels.items()})


def _hint(
    function: Callable[..., Any],
    name: str,
    annotation: Any,
    names: Mapping[str, Any] | None,
    fail: Fail,
) -> Any:
    """The type behind one annotation; texts (`from __future__ import annotations`) are read where
    the function stands. ToolContext is known even when it is imported for type checkers only."""
    known = getattr(inspect.unwrap(function), "__globals__", {})
    local = {"ToolContext": ToolContext} if "ToolContext" not in known else {}
    holder = types.SimpleNamespace(__annotations__={name: annotation})
    try:
        return typing.get_type_hints(
            holder, globalns=known, localns=local | dict(names or {}), include_extras=True
        )[name]
    except (NameError, TypeError, AttributeError, SyntaxError) as error:
        raise fail(
            f"参数 {name} 的类型读不出来（{error}）；类型要在这个函数前面定义或导入"
            "（不能只在 TYPE_CHECKING 里）"
        ) from None


def _is_context(hint: Any) -> bool:
    """ToolContext itself, annotated, or `ToolContext | None`."""
    if hint is ToolContext:
        return True
    if typing.get_origin(hint) is typing.Annotated:
        return _is_context(typing.get_args(hint)[0])
    if typing.get_origin(hint) in (typing.Union, types.UnionType):
        branches = [each for each in typing.get_args(hint) if each is not type(None)]
        return bool(branches) and all(map(_is_context, branches))
    return False


def _mentions_context(hint: Any) -> bool:
    inner = hint if isinstance(hint, list) else typing.get_args(hint)
    return hint is ToolContext or any(map(_mentions_context, inner))


def _build(name: str, fields: dict[str, Any], fail: Fail) -> tuple[type[BaseModel], dict[str, Any]]:
    """The model of all parameters and its schema. What is wrong is looked for in each alone, so
    that it has a name."""
    model, schema, trouble = _tried(name, fields)
    if model is not None and trouble is None:
        return model, schema
    for each, field in fields.items():
        if (alone := _tried(name, {each: field})[2]) is not None:
            raise fail(f"参数 {each} {alone}")
    raise fail(f"参数放在一起有误（{trouble}）")


def _tried(
    name: str, fields: dict[str, Any]
) -> tuple[type[BaseModel] | None, dict[str, Any], str | None]:
    """(the model, its schema, what is wrong with it)."""
    from pydantic import ConfigDict, PydanticUserError, create_model
    from pydantic.errors import PydanticInvalidForJsonSchema, PydanticSchemaGenerationError
    from pydantic_core import SchemaError

    with warnings.catch_warnings():
        # A parameter may be called `json` or `copy`; only __dict__ of the model is read.
        warnings.filterwarnings("ignore", message="Field name .* shadows an attribute")
        try:
            # JSON has no infinity, but pydantic makes one of a whole number that is large enough.
            config = ConfigDict(protected_namespaces=(), allow_inf_nan=False)
            model = create_model(name, __config__=config, **fields)
            schema = _schema_of(model)
        except (PydanticSchemaGenerationError, PydanticInvalidForJsonSchema) as error:
            return None, {}, f"的类型不能用于工具（{_first_line(error)}）"
        except PydanticUserError as error:
            if error.code == "typed-dict-version":
                return None, {}, "里的 TypedDict 要从 typing_extensions 导入（Python 3.12 以前）"
            return None, {}, f"写法有误（{_first_line(error)}）"
        except (
            NameError, TypeError, ValueError, AttributeError, ImportError, RecursionError,
            SchemaError,
        ) as error:  # fmt: skip
            return None, {}, f"写法有误（{_first_line(error)}）"
    for field_name, info in model.__pydantic_fields__.items():
        if (info.validation_alias or info.alias or field_name) != field_name:
            return None, {}, "不能用 alias：模型看到的名字就是参数的名字"
    if reason := unfit(model, schema):
        return None, {}, f"的类型不能用于工具（{reason}）"
    if wrong_default(model):
        return None, {}, "的默认值不合它自己的类型或范围"
    return model, schema, None


def _schema_of(model: type[BaseModel]) -> dict[str, Any]:
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="(?s).*not JSON serializable")  # of a default
        schema = model.model_json_schema()
    schema.pop("description", None)  # of the helper model, never of the tool
    schema.setdefault("properties", {})
    return tidy(schema)


def _first_line(error: Exception) -> str:
    return str(error).strip().split("\n", 1)[0][:200]


_FAULTS = (
    ("missing", "没有给出"),
    ("value_error", "{message}"),
    ("assertion_error", "{message}"),
    ("time_delta", "不是合法的时长（要 ISO 格式，如 PT1H30M）"),
    ("date", "不是合法的日期或时间（要 ISO 格式，如 2025-09-01）"),
    ("time", "不是合法的日期或时间（要 ISO 格式，如 2025-09-01T08:30）"),
    ("decimal_parsing", "不是合法的数字"),
    ("decimal_type", "不是合法的数字"),
    ("finite_number", "不是合法的数字"),
    ("decimal_max_digits", "最多 {max_digits} 位数字"),
    ("decimal_max_places", "最多 {decimal_places} 位小数"),
    ("decimal_whole_digits", "整数部分最多 {whole_digits} 位"),
    ("greater_than_equal", "不能小于 {ge}"),
    ("greater_than", "必须大于 {gt}"),
    ("less_than_equal", "不能大于 {le}"),
    ("less_than", "必须小于 {lt}"),
    ("multiple_of", "必须是 {multiple_of} 的倍数"),
    ("string_pattern_mismatch", "的写法不对，要符合 {pattern}"),
    ("int_", "应为整数"),
    ("float_", "应为数字"),
    ("string_type", "应为文本"),
    ("bool_", "应为 true 或 false"),
    ("uuid", "不是合法的 UUID"),
    ("url", "不是完整的网址（如 https://example.com/）"),
    ("json_invalid", "里有写不成 JSON 的字符"),
)
"""pydantic error type, by prefix → what a model can act on; schema.py catches the rest before."""


def _sentence(error: ValidationError) -> str:
    first = error.errors(include_url=False, include_input=False)[0]
    name = ".".join(str(part) for part in first["loc"]) or "（整体）"
    message = first["msg"].split(", ", 1)[-1] if "error" in first["type"] else first["msg"]
    for prefix, text in _FAULTS:
        if first["type"].startswith(prefix):
            filled = text.format_map({"message": message} | dict(first.get("ctx", {})))
            return f"参数 {name} {filled}。"
    return f"参数 {name} 不合要求（{message}）。"
