"""What a parameter's schema promises is what validation takes; else the tool does not load."""

from __future__ import annotations

import dataclasses
import functools
import inspect
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum, IntEnum, StrEnum
from pathlib import PurePath
from typing import Annotated, Any, Literal, NamedTuple, NotRequired, Optional, TypedDict, Union
from uuid import UUID

import pytest
from pydantic import BaseModel, EmailStr, Field
from typing_extensions import TypedDict as AnyTypedDict

from chathands import ToolContext, tool
from chathands.emulation.contract import render_tool
from chathands.errors import ToolFailed, ToolLoadError
from chathands.schema import compile_schema

Said = Field(description="说明")


class Unit(Enum):
    METRIC = "metric"
    IMPERIAL = "imperial"


class Level(IntEnum):
    LOW = 1
    HIGH = 2


class Kind(StrEnum):
    A = "甲"


class Pair(Enum):
    ONE = (1, 2)


class Person(BaseModel):
    """一个人。"""

    name: str = Field(min_length=1, description="姓名")
    unit: Annotated[Unit, Field(description="单位")] = Unit.METRIC


class Folder(BaseModel):
    name: str = Field(description="名字")
    inside: Annotated[list[Folder], Field(description="里面的文件夹")] = []


class Cat(BaseModel):
    kind: Literal["cat"]
    lives: int = Field(ge=1, le=9, description="几条命")


class Dog(BaseModel):
    kind: Literal["dog"]
    tricks: list[str] = Field(description="会什么")


@dataclasses.dataclass
class Point:
    x: Annotated[float, Field(ge=0, description="横")]
    unit: Annotated[Unit, Said] = Unit.METRIC


class Filter(AnyTypedDict):
    column: Annotated[str, Said]
    value: NotRequired[Annotated[int, Said]]


class Span(NamedTuple):
    first: int
    last: int


class OldFilter(TypedDict):
    column: Annotated[str, Said]


class Bare(BaseModel):
    name: str


class Deep(BaseModel):
    people: list[Bare] = Field(description="谁")


def taking(annotation: Any, default: Any = inspect.Parameter.empty) -> Any:
    """A tool with one parameter `it` of this type, which gives back what it got."""

    async def take(it: Any) -> Any:
        """收下。"""
        got.append(it)
        return "好"

    got: list[Any] = []
    take.__annotations__ = {"it": annotation}
    if default is not inspect.Parameter.empty:
        take.__defaults__ = (default,)
    made = tool(side_effect="none")(take)
    return made, got


TAKEN = [
    (Unit, "imperial", Unit.IMPERIAL),
    (Level, 2, Level.HIGH),
    (Kind, "甲", Kind.A),
    (list[Unit], ["metric"], [Unit.METRIC]),
    (dict[Unit, int], {"metric": 1}, {Unit.METRIC: 1}),
    (Unit | None, "metric", Unit.METRIC),
    (Optional[Unit], None, None),  # noqa: UP045 - authors write it
    (Literal["a", 1, True], 1, 1),
    (Union[int, str], "5", "5"),  # noqa: UP007
    (int | list[str], ["5"], ["5"]),
    (date, "2025-09-01", date(2025, 9, 1)),
    (datetime, "2025-09-01T08:30:00", datetime(2025, 9, 1, 8, 30)),
    (date | datetime, "2025-09-01T08:30:00", datetime(2025, 9, 1, 8, 30)),
    (time, "08:30", time(8, 30)),
    (timedelta, "PT90M", timedelta(minutes=90)),
    (Decimal, "1.10", Decimal("1.10")),
    (Decimal, 3, Decimal(3)),
    (Annotated[Decimal, Field(ge=0, max_digits=5)], 1.5, Decimal("1.5")),
    (UUID, "00000000-0000-0000-0000-000000000001", UUID(int=1)),
    (PurePath, "a/b", PurePath("a/b")),
    (tuple[int, str], [1, "a"], (1, "a")),
    (tuple[int, ...], [1, 2], (1, 2)),
    (set[str], ["a", "b"], {"a", "b"}),
    (frozenset[int], [1], frozenset({1})),
    (Sequence[int], [1], [1]),
    (Mapping[str, float], {"a": 1}, {"a": 1.0}),
    (dict[int, str], {"1": "a"}, {1: "a"}),
    (list, [1, "a"], [1, "a"]),
    (dict, {"a": [1]}, {"a": [1]}),
    (Person, {"name": "甲", "unit": "imperial"}, Person(name="甲", unit=Unit.IMPERIAL)),
    (list[Person], [{"name": "甲"}], [Person(name="甲")]),
    (Point, {"x": 1, "unit": "imperial"}, Point(1, Unit.IMPERIAL)),
    (Filter, {"column": "a"}, {"column": "a"}),
    (Span, [1, 2], Span(1, 2)),
    (Folder, {"name": "a", "inside": [{"name": "b"}]},
     Folder(name="a", inside=[Folder(name="b")])),
    (Cat | Dog, {"kind": "dog", "tricks": ["坐"]}, Dog(kind="dog", tricks=["坐"])),
    (Annotated[Cat | Dog, Field(discriminator="kind")], {"kind": "cat", "lives": 9},
     Cat(kind="cat", lives=9)),
    ("list[Person] | None", [{"name": "甲"}], [Person(name="甲")]),
]  # fmt: skip


@pytest.mark.parametrize(("annotation", "sent", "got"), TAKEN)
async def test_what_the_schema_takes_arrives_as_the_signature_says(annotation, sent, got):
    made, arrived = taking(Annotated[annotation, Said])
    spec = made.spec(None)
    checked = compile_schema(spec.parameters).check({"it": sent})
    assert (checked.problems, checked.repairs) == ((), ())
    await made.run(None, checked.arguments)
    assert arrived == [got]
    assert type(arrived[0]) is type(got)
    assert "说明" in render_tool(spec, "zh")
    assert "title" not in str(spec.parameters)
    assert "discriminator" not in str(spec.parameters)


def test_values_of_enums_and_ranges_of_nested_models_reach_the_model():
    made, _ = taking(Annotated[list[Person], Said])
    listed = render_tool(made.spec(None), "zh")
    assert '"metric" | "imperial"' in listed
    assert "姓名" in listed
    made, _ = taking(Annotated[dict[Unit, int], Said])
    assert made.spec(None).parameters["properties"]["it"]["propertyNames"]["enum"] == [
        "metric",
        "imperial",
    ]


def test_a_model_that_holds_itself_is_described_once():
    made, _ = taking(Annotated[Folder, Said])
    assert render_tool(made.spec(None), "zh").count("里面的文件夹") == 1


async def test_a_description_inside_an_optional_counts():
    made, arrived = taking(Optional[Annotated[str, Field(max_length=3, description="城市")]], None)  # noqa: UP045
    (it,) = made.spec(None).parameters["properties"].values()
    assert it["description"] == "城市"
    assert made.signature.labels == {"it": "城市"}
    await made.run(None, {})
    with pytest.raises(ToolFailed, match="it"):
        await made.run(None, {"it": "四个字的"})
    assert arrived == [None]


@pytest.mark.parametrize(
    "name", ["json", "copy", "schema", "validate", "model_x", "self_", "title"]
)
async def test_names_that_pydantic_uses_itself_are_fine(name: str):
    namespace: dict[str, Any] = {"Annotated": Annotated, "Said": Said}
    exec(f"async def take({name}: Annotated[int, Said] = 1):\n  '收下。'\n  return str({name})",
         namespace)  # fmt: skip
    made = tool(side_effect="none")(namespace["take"])
    assert await made.run(None, {name: 5}) == "5"  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("annotation", "sent", "said"),
    [
        (timedelta, "一会儿", "不是合法的时长（要 ISO 格式，如 PT1H30M）"),
        (date, "明天", "不是合法的日期或时间（要 ISO 格式，如 2025-09-01）"),
        (Decimal, "一块", "不是合法的数字"),
        (float, 10**400, "不是合法的数字"),
        (float, float("nan"), "不是合法的数字"),
        (Annotated[Decimal, Field(max_digits=3)], "1234", "最多 3 位数字"),
        (Annotated[Decimal, Field(ge=0)], -1, "不能小于 0"),
        (Annotated[str, Field(pattern="^[A-Z]+$")], "a", "的写法不对，要符合 ^[A-Z]+$"),
        (UUID, "x", "不是合法的 UUID"),
    ],
)
async def test_what_only_validation_sees_is_said_in_words(annotation: Any, sent: Any, said: str):
    made, arrived = taking(Annotated[annotation, Said])
    with pytest.raises(ToolFailed) as failed:
        await made.run(None, {"it": sent})
    assert failed.value.sentence == f"参数 it {said}。"
    assert arrived == []


# --- ToolContext


async def test_the_context_is_injected_wherever_and_however_it_is_written():
    @tool(side_effect="none")
    async def last(city: Annotated[str, Said], *, ctx: ToolContext) -> str:
        """甲。"""
        return f"{city} {ctx}"

    @tool(side_effect="none")
    async def optional(city: Annotated[str, Said] = "a", ctx: ToolContext | None = None) -> str:
        """乙。"""
        return f"{city} {ctx}"

    @tool(side_effect="none")
    async def annotated(
        who: Annotated[Optional[ToolContext], Field(description="谁")],  # noqa: UP045
        city: Annotated[str, Said],
    ) -> str:
        """丙。"""
        return f"{city} {who}"

    context: Any = type("Context", (), {"run_id": "r", "__str__": lambda _: "ctx"})()
    for made in (last, optional, annotated):
        assert list(made.spec(None).parameters["properties"]) == ["city"]
        assert "ToolContext" not in str(made.spec(None))
        assert await made.run(context, {"city": "a"}) == "a ctx"


async def test_a_context_imported_for_type_checkers_only_is_known():
    namespace: dict[str, Any] = {}
    exec(
        "async def take(ctx: 'ToolContext') -> 'Missing':\n  '收下。'\n  return str(ctx)", namespace
    )
    made = tool(side_effect="none")(namespace["take"])
    assert made.signature.context == "ctx"


@pytest.mark.parametrize(
    "annotation", [list[ToolContext], ToolContext | str, dict[str, ToolContext]]
)
def test_a_context_inside_something_else_is_refused(annotation: Any):
    with pytest.raises(ToolLoadError, match="参数 it 里的 ToolContext"):
        taking(Annotated[annotation, Said])


# --- refused with file, line and parameter

REFUSED: list[tuple[Any, str]] = [
    (Bare, "参数 it 的字段 it.name 没有说明"),
    (list[Deep], r"参数 it 的字段 it\[\].people\[\].name 没有说明"),
    (Callable[[], int], "参数 it 的类型不能用于工具"),
    (Iterable[int], "参数 it 的类型不能用于工具.*list"),
    (list[Iterable[int]], "参数 it 的类型不能用于工具.*list"),
    (type[int], "参数 it 的类型不能用于工具"),
    (type(NotImplemented), "参数 it 的类型不能用于工具"),
    (Literal[Unit.METRIC], "参数 it 的类型不能用于工具.*枚举"),
    (Pair, "参数 it 的类型不能用于工具.*枚举的值"),
    (EmailStr, "参数 it 写法有误"),
    ("list[Nowhere]", "参数 it 的类型读不出来"),
    ("list[", "参数 it 的类型读不出来"),
    (Annotated[str, Field(ge=1)], "参数 it 的类型不能用于工具.*ge"),
    (list[Annotated[str, Field(gt=1)]], "参数 it 的类型不能用于工具.*gt"),
    (Annotated[str, Field(pattern="(")], "参数 it 写法有误"),
    (Annotated[int, Field(alias="other")], "参数 it 不能用 alias"),
]


@pytest.mark.parametrize(("annotation", "said"), REFUSED)
def test_what_cannot_be_described_is_refused_by_name(annotation: Any, said: str):
    with pytest.raises(ToolLoadError, match=said) as refused:
        taking(annotation if isinstance(annotation, str) else Annotated[annotation, Said])
    assert refused.value.file == __file__
    assert refused.value.line


@pytest.mark.parametrize(
    ("annotation", "default"),
    [
        (Annotated[int, Field(ge=1, le=7)], 9),
        (int, None),
        (Unit, "metric"),
        (date, "2025-09-01"),
        (int, "3"),
        (Literal["a", "b"], "c"),
        (list[int], ["x"]),
    ],
)
def test_a_default_its_own_schema_would_refuse_is_refused(annotation: Any, default: Any):
    with pytest.raises(ToolLoadError, match="参数 it 的默认值"):
        taking(Annotated[annotation, Said], default)


@pytest.mark.parametrize(
    ("annotation", "default"),
    [(float, 1), (list[str], ()), (Unit, Unit.METRIC), (Decimal, 0), (Person | None, None),
     (set[str], frozenset()), (int, Field(3, ge=1))],
)  # fmt: skip
async def test_a_default_that_fits_is_fine(annotation: Any, default: Any):
    made, arrived = taking(Annotated[annotation, Said], default)
    await made.run(None, {})
    assert len(arrived) == 1


def test_a_parameter_with_an_underscore_and_a_second_context_are_refused():
    async def hidden(_it: Annotated[int, Said]) -> str:
        """甲。"""
        return ""

    async def two(one: ToolContext, other: ToolContext) -> str:
        """乙。"""
        return ""

    with pytest.raises(ToolLoadError, match="参数 _it "):
        tool(side_effect="none")(hidden)
    with pytest.raises(ToolLoadError, match="参数 other "):
        tool(side_effect="none")(two)


def test_the_typed_dict_of_old_pythons_is_taken_or_said_what_to_import():
    if sys.version_info >= (3, 12):
        assert "column" in str(taking(Annotated[OldFilter, Said])[0].spec(None).parameters)
    else:
        with pytest.raises(ToolLoadError, match=r"参数 it .*typing_extensions"):
            taking(Annotated[OldFilter, Said])


# --- the function itself


def test_types_of_the_function_around_it_are_found():
    class Local(BaseModel):
        name: str = Field(description="名字")

    @tool(side_effect="none")
    async def take(it: Annotated[Local, Said]) -> str:
        """收下。"""
        return it.name

    assert "名字" in str(take.spec(None).parameters)


async def test_an_async_function_behind_a_plain_decorator_is_awaited():
    def traced(function: Any) -> Any:
        @functools.wraps(function)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            return function(*args, **kwargs)

        return wrapper

    @tool(side_effect="none")
    @traced
    async def take(it: Annotated[str, Said]) -> str:
        """收下。"""
        return f"收到 {it}"

    assert await take.run(None, {"it": "a"}) == "收到 a"  # type: ignore[arg-type]


class NoFunction:
    """甲。"""


async def generator(it: Annotated[str, Said]) -> Any:
    """乙。"""
    yield it


@pytest.mark.parametrize(
    "what", [NoFunction, NoFunction(), generator, 3, taking(Annotated[int, Said])[0]]
)
def test_only_a_function_becomes_a_tool(what: Any):
    with pytest.raises(ToolLoadError):
        tool(side_effect="none")(what)


def test_a_method_is_refused():
    with pytest.raises(ToolLoadError, match="类的方法"):

        class Box:
            @tool(side_effect="none")
            async def take(self, it: Annotated[str, Said]) -> str:
                """收下。"""
                return it


def test_the_decorator_without_brackets_says_what_to_write():
    with pytest.raises(ToolLoadError, match="带括号") as refused:

        @tool
        async def take() -> str:
            """收下。"""
            return ""

    assert refused.value.file == __file__


@pytest.mark.parametrize(
    "options",
    [
        {"examples": ["只有一句话"]},
        {"examples": [("一句话", "不是参数")]},
        {"version": ""},
        {"version": True},
        {"faces": "bot"},
        {"faces": ["qq"]},
        {"faces": [["bot"]]},
        {"version": 1.5},
        {"deprecated": " "},
        {"when_to_use": ""},
        {"not_for": 3},
        {"timeout": float("inf")},
        {"timeout": "10"},
        {"side_effect": "unknown"},
    ],
)
def test_options_that_say_nothing_are_refused(options: dict[str, Any]):
    options = {"side_effect": "none"} | options

    async def take(it: Annotated[str, Said] = "a") -> str:
        """收下。"""
        return it

    with pytest.raises(ToolLoadError):
        tool(**options)(take)


# --- what the decorator adds


def test_when_to_use_and_not_for_follow_the_docstring():
    @tool(side_effect="none", when_to_use="问天气时", not_for="历史天气。")
    async def look() -> str:
        """查天气。"""
        return ""

    assert look.spec(None).description == "查天气。\n何时用：问天气时。\n何时不用：历史天气。"


async def test_a_deprecated_tool_says_so_and_still_runs(caplog: pytest.LogCaptureFixture):
    @tool(side_effect="none", version="2.1", deprecated="改用 get_weather")
    async def look() -> str:
        """查天气。"""
        return "晴"

    spec = look.spec(None)
    assert (spec.version, spec.deprecated) == ("2.1", "改用 get_weather")
    assert spec.description.endswith("已弃用：改用 get_weather。")
    assert await look.run(None, {}) == "晴"  # type: ignore[arg-type]
    assert "改用 get_weather" in caplog.text
