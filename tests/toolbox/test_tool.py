"""A tool function's signature and docstring are its whole description."""

from __future__ import annotations

import asyncio
import threading
from datetime import date
from enum import Enum
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel, Field

from chathands import Choices, ToolContext, tool
from chathands.errors import ToolFailed, ToolLoadError
from chathands.settings import Settings
from chathands.toolbox.threads import MAX_THREADS
from tests.toolbox.kit import settings_in


class Unit(Enum):
    METRIC = "metric"
    IMPERIAL = "imperial"


class Person(BaseModel):
    name: str = Field(description="姓名")
    age: int = Field(ge=0, description="年龄")


def robots(settings: Settings) -> list[str]:
    return list(settings.dingtalk.robots)


@tool(side_effect="none", examples=[("北京未来三天", {"city": "北京", "days": 3})])
async def everything(
    ctx: ToolContext,
    city: Annotated[str, Field(min_length=1, max_length=20, description="城市")],
    days: Annotated[int, Field(ge=1, le=7, description="天数")] = 1,
    kind: Annotated[Literal["now", "daily"], Field(description="哪一种")] = "now",
    unit: Annotated[Unit, Field(description="单位")] = Unit.METRIC,
    since: Annotated[date | None, Field(description="从哪天起")] = None,
    people: Annotated[list[Person], Field(description="谁")] = [],  # noqa: B006 - copied per call
    extra: Annotated[dict[str, float], Field(description="附加数值")] = {},  # noqa: B006
    copy: Annotated[bool, Field(description="是否抄送")] = False,
) -> str:
    """查询天气。

    用户问天气时用。
    """
    return repr((city, days, kind, unit, since, people, extra, copy))


def parameters(made: Any, settings: Settings | None = None) -> Any:
    return made.spec(settings).parameters


def test_the_spec_holds_types_ranges_enums_defaults_and_descriptions():
    schema = parameters(everything)
    properties = schema["properties"]
    assert schema["required"] == ["city"]
    assert properties["city"] == {
        "type": "string",
        "minLength": 1,
        "maxLength": 20,
        "description": "城市",
    }
    assert properties["days"] == {
        "type": "integer",
        "minimum": 1,
        "maximum": 7,
        "default": 1,
        "description": "天数",
    }
    assert properties["kind"]["enum"] == ["now", "daily"]
    assert schema["$defs"]["Unit"]["enum"] == ["metric", "imperial"]
    assert schema["$defs"]["Person"]["required"] == ["name", "age"]
    assert {"type": "null"} in properties["since"]["anyOf"]
    assert properties["extra"]["additionalProperties"] == {"type": "number"}


def test_the_docstring_is_the_description_and_examples_are_kept():
    spec = everything.spec(None)
    assert spec.description == "查询天气。\n\n用户问天气时用。"
    assert spec.name == "everything"
    assert spec.side_effect == "none"
    assert spec.examples[0].request == "北京未来三天"


def test_the_context_is_never_in_the_schema():
    assert "ctx" not in str(parameters(everything))
    assert "ToolContext" not in str(parameters(everything))


def test_no_derived_titles_are_in_the_schema_but_a_parameter_may_be_called_title():
    @tool(side_effect="none")
    async def titled(title: Annotated[str, Field(description="标题")]) -> str:
        """有标题。"""
        return title

    assert parameters(titled) == {
        "type": "object",
        "properties": {"title": {"type": "string", "description": "标题"}},
        "required": ["title"],
    }
    assert "'title'" not in str(parameters(everything))


async def test_a_default_inside_field_counts_too():
    @tool(side_effect="none")
    async def forecast(days: Annotated[int, Field(default=3, description="天数")]) -> str:
        """预报。"""
        return str(days)

    context: Any = None
    assert "required" not in parameters(forecast)
    assert await forecast.run(context, {}) == "3"


def test_a_tool_without_parameters_has_an_object_schema():
    @tool(side_effect="none")
    async def now() -> str:
        """现在几点。"""
        return "9:00"

    assert parameters(now) == {"type": "object", "properties": {}}


async def test_arguments_become_what_the_signature_says():
    context: Any = None
    said = await everything.run(
        context,
        {
            "city": "北京",
            "unit": "imperial",
            "since": "2025-09-01",
            "people": [{"name": "甲", "age": 3}],
            "extra": {"a": 1},
        },
    )
    assert "Unit.IMPERIAL" in said
    assert "datetime.date(2025, 9, 1)" in said
    assert "Person(name='甲', age=3)" in said
    assert "1.0" in said


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ({}, "city"),
        ({"city": "北京", "days": "3"}, "days"),
        ({"city": "北京", "days": 9}, "days"),
        ({"city": "北京", "since": "昨天"}, "since"),
        ({"city": "北京", "people": [{"name": "甲", "age": "三"}]}, "people.0.age"),
        ({"city": "北京", "copy": 1}, "copy"),
        ({"city": "\ud800"}, "（整体）"),
    ],
)
async def test_running_validates_strictly_and_names_the_parameter(arguments: Any, named: str):
    context: Any = None
    with pytest.raises(ToolFailed) as failed:
        await everything.run(context, arguments)
    assert failed.value.sentence.startswith(f"参数 {named} ")


async def test_a_function_without_context_and_a_synchronous_one_run_too():
    @tool(side_effect="none")
    def where(name: Annotated[str, Field(description="名字")]) -> str:
        """在哪个线程。"""
        return f"{name} {threading.current_thread() is threading.main_thread()}"

    context: Any = None
    assert await where.run(context, {"name": "a"}) == "a False"
    assert where("b") == "b True"


async def test_a_synchronous_tool_that_exits_raises_instead_of_ending_the_program():
    @tool(side_effect="none")
    def leave() -> str:
        """退出。"""
        raise SystemExit(3)

    context: Any = None
    with pytest.raises(RuntimeError, match="SystemExit"):
        await leave.run(context, {})


async def test_more_hung_threads_than_there_is_room_for_are_refused():
    gate = threading.Event()

    @tool(side_effect="none")
    def hang() -> str:
        """卡住。"""
        gate.wait(20)
        return "好了"

    context: Any = None
    waiting = [asyncio.create_task(hang.run(context, {})) for _ in range(MAX_THREADS)]
    await asyncio.sleep(0)
    with pytest.raises(ToolFailed, match="no thread left"):
        await hang.run(context, {})
    gate.set()
    assert await asyncio.gather(*waiting) == ["好了"] * MAX_THREADS


# --- choices


def with_robots(directory: Path, *names: str) -> Settings:
    return settings_in(
        directory, dingtalk={"robots": {name: {"webhook": "dry-run"} for name in names}}
    )


@tool(
    side_effect="outward",
    examples=[("发到销售群", {"robot": "销售群"}), ("发到行政群", {"robot": "行政群"})],
)
async def push(
    robot: Annotated[str, Choices(robots), Field(description="机器人")],
    also: Annotated[list[str], Choices(robots), Field(description="还有")] = [],  # noqa: B006
    copy_to: Annotated[str | None, Choices(robots), Field(description="抄送")] = None,
) -> str:
    """推送。"""
    return robot


def test_choices_are_filled_from_the_settings_of_each_generation(tmp_path: Path):
    properties = parameters(push, with_robots(tmp_path, "销售群", "研发群"))["properties"]
    assert properties["robot"]["enum"] == ["销售群", "研发群"]
    assert properties["also"]["items"]["enum"] == ["销售群", "研发群"]
    assert properties["copy_to"]["anyOf"][0]["enum"] == ["销售群", "研发群"]
    later = parameters(push, with_robots(tmp_path, "财务群"))["properties"]
    assert later["robot"]["enum"] == ["财务群"]


def test_without_any_choice_the_parameter_stays_open_for_the_tool_to_explain(tmp_path: Path):
    assert "enum" not in str(parameters(push, with_robots(tmp_path)))


def test_examples_name_what_is_configured(tmp_path: Path):
    spec = push.spec(with_robots(tmp_path, "销售群"))
    assert [example.request for example in spec.examples] == ["发到销售群"]


# --- what a person is shown


@tool(side_effect="outward", target="robot", shows=("content",))
async def report(
    robot: Annotated[str, Field(description="机器人")],
    title: Annotated[str, Field(description="标题，不超过 60 字")],
    content: Annotated[str, Field(description="正文")],
    at_all: Annotated[bool, Field(description="是否提醒所有人")] = False,
) -> str:
    """发报告。"""
    return ""


def test_a_person_sees_the_target_and_every_argument_in_full():
    arguments = {"robot": "销售群", "title": "周报", "content": "正" * 5000, "at_all": True}
    assert report.describe_target(arguments) == "销售群"
    assert report.describe_content(arguments) == (
        f"正文：{'正' * 5000}\n标题：周报\n是否提醒所有人：是"
    )


def test_nothing_hides_from_the_person_who_approves():
    arguments = {"robot": "销售群\n正文：无害", "content": "好\x1b[8m坏\u202e反\u200b👨\u200d👩"}
    assert report.describe_target(arguments) == "销售群 正文：无害"
    shown = report.describe_content(arguments)
    assert shown == "正文：好[U+001B][8m坏[U+202E]反[U+200B]👨\u200d👩"


# --- what is refused when the module loads


def refused(function: Any, **options: Any) -> ToolLoadError:
    options = {"side_effect": "none"} | options
    with pytest.raises(ToolLoadError) as error:
        tool(**options)(function)
    assert error.value.file == __file__
    assert error.value.line == function.__code__.co_firstlineno
    return error.value


def test_a_parameter_without_description_is_named_with_file_and_line():
    async def weather(city: str) -> str:
        """天气。"""
        return city

    error = refused(weather)
    assert "参数 city 没有说明" in error.sentence
    assert "test_tool.py" in error.sentence


def test_a_parameter_without_type_is_named():
    async def weather(city) -> str:  # type: ignore[no-untyped-def]
        """天气。"""
        return city

    assert "参数 city 没有类型标注" in refused(weather).sentence


def test_a_missing_docstring_is_refused():
    async def weather() -> str:
        return ""

    assert "文档字符串" in refused(weather).sentence


def test_a_missing_side_effect_is_refused_since_a_push_must_not_pass_as_a_read():
    async def push_it() -> str:
        """推送。"""
        return ""

    assert "side_effect" in refused(push_it, side_effect=None).sentence


def test_catch_all_parameters_are_refused():
    async def anything(**options: str) -> str:
        """什么都行。"""
        return ""

    assert "options" in refused(anything).sentence


def test_types_no_schema_can_express_are_refused():
    async def lock(it: Annotated[threading.Event, Field(description="锁")]) -> str:
        """锁。"""
        return ""

    assert "类型" in refused(lock).sentence


def test_an_example_that_does_not_fit_is_refused():
    async def weather(city: Annotated[str, Field(description="城市")]) -> str:
        """天气。"""
        return city

    assert "北京怎么样" in refused(weather, examples=[("北京怎么样", {"place": 3})]).sentence


@pytest.mark.parametrize(
    "options", [{"target": "nobody"}, {"shows": ("nothing",)}, {"timeout": 0}, {"audience": "all"}]
)
def test_options_that_mean_nothing_are_refused(options: dict[str, Any]):
    async def weather(city: Annotated[str, Field(description="城市")]) -> str:
        """天气。"""
        return city

    refused(weather, **options)


def test_a_name_that_protocols_do_not_take_is_refused():
    async def 天气() -> str:
        """天气。"""
        return ""

    assert "名字" in refused(天气).sentence
