"""The page for tool authors: its tool files load and run as they stand."""

from __future__ import annotations

import inspect
import re
from pathlib import Path
from typing import Any

import pytest

from chathands import ToolCall, tool
from chathands.conversation import Status
from chathands.toolbox import load_tools
from chathands.toolbox.attachments import files_of
from tests.toolbox.kit import Bench, bench

PAGE = (Path(__file__).parents[1] / "docs" / "tools.md").read_text("utf-8")
FILES = re.findall(r"^```python\n(.*?)^```$", PAGE, re.M | re.S)


@pytest.fixture
def box(tmp_path: Path) -> Any:
    with bench(tmp_path) as it:
        for number, text in enumerate(FILES):
            (it.settings.tools_dir / f"page_{number}.py").write_text(text, "utf-8")
        report = load_tools(it.settings.tools_dir, it.settings)
        assert report.errors == ()
        it.generation = report.generation
        yield it


async def given(box: Bench, name: str, **arguments: Any) -> tuple[Any, Any]:
    scope = box.scope()
    (result,) = (await box.run(ToolCall("c", name, arguments), scope=scope)).results
    return result, files_of(scope.done)


async def test_the_table_of_the_page_is_what_the_model_gets(box: Bench):
    request = {"period": {"start": "2025-09-01"}, "status": "未完成", "sort": "金额"}
    result, _ = await given(box, "list_orders", **request)
    assert result.status is Status.OK
    assert result.content.split("\n") == [
        "订单（共 1 行 4 列）",
        "| 编号 | 日期 | 金额 | 状态 |",
        "|---|---|---|---|",
        "| 00123 | 2025-09-01 | 120.5 | 未完成 |",
        "金额含税",
    ]
    result, _ = await given(box, "list_orders", period={"start": "2030-01-01"})
    assert (result.status, result.content) == (
        Status.FAILED,
        "这段时间没有这样的订单，可以把时间放宽再查。",
    )


async def test_the_file_of_the_page_goes_to_the_person(box: Bench):
    result, files = await given(box, "export_notes", title="清单", lines=["米", "油"])
    assert files == (("清单.txt", "# 清单（小明）\n米\n油".encode()),)
    assert "共 2 行" in result.content
    assert "米" not in result.content


async def test_the_specs_say_what_the_page_says(box: Bench):
    orders, notes = (box.generation.specs[name] for name in ("list_orders", "export_notes"))
    assert "何时用：" in orders.description
    assert "何时不用：" in orders.description
    assert "已弃用：改用 list_orders" in notes.description
    assert (orders.version, notes.version) == (2, 1)
    assert len(orders.examples) == 1
    assert orders.parameters["$defs"]["Status"]["enum"] == ["未完成", "已完成"]


def test_every_argument_of_the_decorator_is_on_the_page():
    arguments = inspect.signature(tool).parameters.values()
    named = [each.name for each in arguments if each.kind is each.KEYWORD_ONLY]
    assert [name for name in named if f"`{name}" not in PAGE] == []
