"""Tool files load aside, are swapped whole, and die with the last run that needs them."""

from __future__ import annotations

import gc
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from chathands.settings import Settings
from chathands.toolbox import Generation, LoadReport, Policy, Registry, load_tools
from tests.toolbox.kit import ADMIN, BOSS, MEMBER, settings_in, write


def source(name: str, says: str = "", *, audience: str = "everyone") -> str:
    return f'''
from chathands import tool

@tool(side_effect="none", audience="{audience}")
async def {name}() -> str:
    """工具 {name}。"""
    return "{says or name}"
'''


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return settings_in(tmp_path)


def load(settings: Settings, previous: Generation | None = None) -> LoadReport:
    return load_tools(settings.tools_dir, settings, previous)


async def say(generation: Generation, name: str) -> Any:
    context: Any = None
    return await generation.tools[name].run(context, {})


async def test_modules_and_packages_load_and_underscored_files_do_not(settings: Settings):
    write(
        settings.tools_dir,
        {
            "weather.py": source("weather"),
            "excel/__init__.py": "",
            "excel/reading.py": source("read_table", "来自包"),
            "excel/_private.py": source("private"),
            "_draft.py": source("draft"),
            "notes.txt": "不是工具",
        },
    )
    report = load(settings)
    assert report.errors == ()
    assert list(report.generation.tools) == ["read_table", "weather"]
    assert report.generation.owners == {"read_table": "excel/", "weather": "weather.py"}
    assert await say(report.generation, "read_table") == "来自包"
    assert report.generation.specs["weather"].description == "工具 weather。"


async def test_relative_imports_of_helpers_work_inside_a_package_and_between_files(
    settings: Settings,
):
    write(
        settings.tools_dir,
        {
            "_words.py": "HELLO = '你好'",
            "pack/__init__.py": "from .deep.inner import greet",
            "pack/deep/__init__.py": "",
            "pack/deep/inner.py": source("greet").replace(
                'return "greet"', "from ..._words import HELLO; return HELLO"
            ),
        },
    )
    report = load(settings)
    assert report.errors == ()
    assert await say(report.generation, "greet") == "你好"


def test_modules_carry_their_generation_in_their_name(settings: Settings):
    write(settings.tools_dir, {"a.py": source("a")})
    first = load(settings).generation
    second = load(settings, first).generation
    assert first.tools["a"].module.startswith("chathands_tools_g1_")
    assert second.tools["a"].module.startswith("chathands_tools_g2_")


async def test_an_edit_of_the_same_length_within_the_same_second_is_seen(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    file = settings.tools_dir / "a.py"
    write(settings.tools_dir, {"a.py": source("a", "一")})
    os.utime(file, (1_700_000_000, 1_700_000_000))
    first = load(settings).generation
    write(settings.tools_dir, {"a.py": source("a", "二")})
    os.utime(file, (1_700_000_000, 1_700_000_000))
    second = load(settings, first).generation
    assert await say(first, "a") == "一"
    assert await say(second, "a") == "二"


async def test_a_run_keeps_the_generation_it_started_with_helpers_included(settings: Settings):
    late = source("a").replace('return "a"', "from ._help import WORD; return WORD")
    write(settings.tools_dir, {"a.py": "from . import _help\n" + late, "_help.py": "WORD = '旧'"})
    registry = Registry(load(settings).generation)
    pinned = registry.current
    write(settings.tools_dir, {"_help.py": "WORD = '新'"})
    registry.swap(load(settings, registry.current).generation)
    gc.collect()
    assert await say(registry.current, "a") == "新"
    assert await say(pinned, "a") == "旧"


def test_old_generations_leave_memory_when_nobody_needs_them(settings: Settings):
    write(settings.tools_dir, {"a.py": source("a")})
    registry = Registry(load(settings).generation)
    name = registry.current.tools["a"].module
    registry.swap(load(settings, registry.current).generation)
    gc.collect()
    assert name not in sys.modules
    assert registry.current.tools["a"].module in sys.modules


@pytest.mark.parametrize(
    ("broken", "line", "said"),
    [
        ("x = 1\ny = (\n", 2, "语法错误"),
        ("import json\n\nraise RuntimeError('坏了')\n", 3, "坏了"),
        ("\nimport no_such_module_at_all\n", 2, "no_such_module_at_all"),
        ("import sys\nsys.exit(1)\n", 2, "SystemExit"),
        ("import asyncio\nraise asyncio.CancelledError\n", 2, "CancelledError"),
        ("from ._nothing import x\n", 1, "_nothing"),
    ],
)
async def test_a_file_that_fails_leaves_the_old_one_serving_and_is_reported_with_its_line(
    settings: Settings, broken: str, line: int, said: str
):
    write(settings.tools_dir, {"a.py": source("a", "旧"), "b.py": source("b", "一")})
    first = load(settings).generation
    write(settings.tools_dir, {"a.py": broken, "b.py": source("b", "二")})
    report = load(settings, first)
    (error,) = report.errors
    assert (error.file, error.line) == ("a.py", line)
    assert said in error.sentence
    assert str(settings.tools_dir) not in error.sentence
    assert await say(report.generation, "a") == "旧"
    assert await say(report.generation, "b") == "二"
    # And once more: what is carried over can be carried on.
    del first
    again = load(settings, report.generation)
    gc.collect()
    assert await say(again.generation, "a") == "旧"
    assert again.generation.tools["a"].module in sys.modules


def test_a_fault_deep_in_a_package_is_reported_at_its_own_file(settings: Settings):
    write(
        settings.tools_dir,
        {"pack/__init__.py": "from . import helper", "pack/helper.py": "\n\n1 / 0\n"},
    )
    (error,) = load(settings).errors
    assert (error.file, error.line) == ("pack/helper.py", 3)


def test_a_badly_described_tool_is_reported_with_file_line_and_parameter(settings: Settings):
    write(
        settings.tools_dir,
        {
            "a.py": "from chathands import tool\n\n"
            "@tool(side_effect='none')\nasync def a(city: str) -> str:\n    '''天气。'''\n"
        },
    )
    (error,) = load(settings).errors
    assert (error.file, error.line) == ("a.py", 3)
    assert "参数 city" in error.sentence


def test_choices_that_raise_are_a_load_error_not_a_crash(settings: Settings):
    write(
        settings.tools_dir,
        {
            "a.py": """
            from typing import Annotated
            from pydantic import Field
            from chathands import tool, Choices

            @tool(side_effect="none")
            async def a(x: Annotated[str, Choices(lambda s: s.nothing), Field(description="x")]):
                '''甲。'''
            """
        },
    )
    (error,) = load(settings).errors
    assert error.file == "a.py"


def test_removed_files_take_their_tools_along(settings: Settings):
    write(settings.tools_dir, {"a.py": source("a"), "b.py": source("b")})
    first = load(settings).generation
    (settings.tools_dir / "a.py").unlink()
    report = load(settings, first)
    assert list(report.generation.tools) == ["b"]
    assert report.errors == ()


async def test_a_name_belongs_to_the_file_that_had_it(settings: Settings):
    write(settings.tools_dir, {"m.py": source("weather", "原来的")})
    first = load(settings).generation
    write(settings.tools_dir, {"a.py": source("weather", "抢名字的") + source("other")})
    report = load(settings, first)
    assert await say(report.generation, "weather") == "原来的"
    assert await say(report.generation, "other") == "other"
    (error,) = report.errors
    assert error.file == "a.py"
    assert "weather 已属于 m.py" in error.sentence


async def test_a_name_can_move_to_another_file(settings: Settings):
    write(settings.tools_dir, {"m.py": source("weather", "旧家")})
    first = load(settings).generation
    write(settings.tools_dir, {"m.py": source("m"), "n.py": source("weather", "新家")})
    report = load(settings, first)
    assert report.errors == ()
    assert await say(report.generation, "weather") == "新家"


def test_a_tool_imported_from_another_file_stays_that_files(settings: Settings):
    write(settings.tools_dir, {"a.py": "from .b import b\n" + source("a"), "b.py": source("b")})
    report = load(settings)
    assert report.errors == ()
    assert report.generation.owners == {"a": "a.py", "b": "b.py"}


def test_two_tools_of_one_name_in_one_package_are_reported(settings: Settings):
    write(
        settings.tools_dir,
        {"p/__init__.py": "", "p/one.py": source("a"), "p/two.py": source("a")},
    )
    report = load(settings)
    assert list(report.generation.tools) == ["a"]
    assert "两次" in report.errors[0].sentence


def test_a_missing_directory_and_a_name_no_module_can_have_are_reported(settings: Settings):
    write(settings.tools_dir, {"my-tool.py": source("a")})
    assert "文件名" in load(settings).errors[0].sentence
    (settings.tools_dir / "my-tool.py").unlink()
    settings.tools_dir.rmdir()
    assert "不存在" in load(settings).errors[0].sentence


def test_tools_of_two_directories_do_not_see_each_other(tmp_path: Path):
    one, two = tmp_path / "one", tmp_path / "two"
    one.mkdir()
    two.mkdir()
    first, second = settings_in(one), settings_in(two)
    write(first.tools_dir, {"a.py": source("a"), "_help.py": "X = 1"})
    write(second.tools_dir, {"b.py": "from ._help import X\n" + source("b")})
    kept = load(first)
    assert load(second).errors[0].file == "b.py"
    assert list(kept.generation.tools) == ["a"]


def test_people_see_what_they_may_use_by_audience_and_then_name(settings: Settings):
    write(
        settings.tools_dir,
        {
            "a.py": source("z_all") + source("b_all"),
            "b.py": source("a_admin", audience="admin") + source("a_boss", audience="superuser"),
        },
    )
    generation = load(settings).generation

    def names(caller: Any, policy: Policy | None = None) -> list[str]:
        return [spec.name for spec in generation.visible_to(caller, policy or Policy())]

    assert names(MEMBER) == ["b_all", "z_all"]
    assert names(ADMIN) == ["b_all", "z_all", "a_admin"]
    assert names(BOSS) == ["b_all", "z_all", "a_admin", "a_boss"]


async def test_a_tool_without_its_settings_is_not_offered_but_listed(settings: Settings):
    code = source("push").replace(
        'side_effect="none"',
        'side_effect="none", enabled_when=lambda settings: bool(settings.dingtalk.robots)',
    )
    write(settings.tools_dir, {"push.py": code, "weather.py": source("weather")})
    generation = load(settings).generation
    assert (list(generation.specs), dict(generation.unconfigured)) == (
        ["weather"],
        {"push": "push.py"},
    )
    assert generation.known == {"push", "weather"}
    write(settings.tools_dir, {"push.py": code.replace("def ", "dfe ")})
    assert load(settings, generation).generation.known == {"push", "weather"}
    write(settings.tools_dir, {"push.py": code})
    listed = load_tools(settings.tools_dir, settings, every=True).generation
    assert list(listed.specs) == ["push", "weather"]
    assert not listed.tools["push"].configured(settings)
    from chathands.settings import Robot

    settings.dingtalk.robots["群"] = Robot(webhook="dry-run")  # type: ignore[arg-type]
    assert list(load(settings).generation.specs) == ["push", "weather"]


def test_an_enabled_when_that_fails_is_told_with_its_file(settings: Settings):
    code = source("push").replace(
        'side_effect="none"', 'side_effect="none", enabled_when=lambda settings: settings.nothing'
    )
    write(settings.tools_dir, {"push.py": code})
    report = load(settings)
    assert report.generation.specs == {}
    assert report.errors[0].file == "push.py"
