"""Listing, comparing, drawing and writing as a run uses them: the executor, real files, a child."""

from __future__ import annotations

from collections.abc import AsyncIterator
from io import BytesIO
from pathlib import Path
from typing import Any

import openpyxl
import pytest
from PIL import Image

from chathands.conversation import ToolCall, ToolResult
from chathands.settings import GroupSettings, Settings
from chathands.toolbox import Caller, RunScope
from chathands.toolbox.attachments import files_of
from chathands.workers import fonts
from tests.tools.live import Live, live
from tests.workers import books

ORDERS = [("编号", "区域", "金额"), ("001", "华东", 5), ("002", "华北", 7.5), ("003", "华东", 9)]
LATER = [("编号", "区域", "金额"), ("001", "华东", 6), ("004", "=1+1", 1), ("003", "华东", 9)]


@pytest.fixture(scope="module")
async def tools(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Live]:
    directory: Path = tmp_path_factory.mktemp("excel")
    shared = directory / "data" / "shared"
    shared.mkdir(parents=True)
    (shared / "订单_旧.xlsx").write_bytes(books.book({"表": ORDERS}))
    (shared / "订单_新.xlsx").write_bytes(
        books.book({"表": LATER[:2] + LATER[3:], "工资": [("人", "薪")]}, states={"工资": "hidden"})
    )
    (shared / "远.xlsx").write_bytes(books.far_cell())
    (shared / "带公式的订单.csv").write_text("编号,区域,金额\n001,=1+1,5\n", "utf-8")
    async with live(directory) as made:
        yield made


async def call(
    tools: Live, tool: str, *, role: Any = "member", **arguments: Any
) -> tuple[ToolResult, list[tuple[str, bytes]]]:
    """The result, and the files that would go with the reply."""
    caller = Caller("1001", "2001", role)
    scope = RunScope(f"T-{tool}-{id(arguments)}", caller, tools.generation, lambda: 30.0)
    batch = await tools.executor.run_batch([ToolCall("c1", tool, arguments)], scope)
    return batch.results[0], list(files_of(scope.done))


async def test_all_files_are_listed_and_one_is_opened(tools: Live) -> None:
    result, _ = await call(tools, "list_excel_files")
    assert "共有 4 个表格文件" in result.content
    result, _ = await call(tools, "list_excel_files", name="新订单")
    assert "工作表「表」：2 行 × 3 列，表头在第 1 行。列：编号、区域、金额" in result.content
    assert "工资" not in result.content
    result, _ = await call(tools, "list_excel_files", name="新订单", role="admin")
    assert "工作表「工资」（隐藏）" in result.content


async def test_several_files_are_told_and_not_guessed(tools: Live) -> None:
    result, _ = await call(tools, "read_excel_data", file_path="订单")
    assert result.status == "failed"
    assert "可能是：" in result.content
    assert "订单_旧.xlsx" in result.content
    result, _ = await call(tools, "list_excel_files", name="没有这种表")
    assert result.status == "failed"
    assert "现有的表格有" in result.content


async def test_two_files_are_compared(tools: Live) -> None:
    result, _ = await call(
        tools, "compare_excel_files", old_file="订单_旧.xlsx", new_file="订单_新"
    )
    assert result.status == "ok"
    assert "新增 0 行，删除 1 行，修改 1 行，没变 1 行。" in result.content
    assert "| 001 | 金额 | 5 | 6 |" in result.content
    assert "| 002 | 华北 | 7.5 |" in result.content
    result, _ = await call(
        tools, "compare_excel_files", old_file="订单_旧.xlsx", new_file="订单_旧"
    )
    assert "同一个" in result.content


async def test_a_chart_is_sent_as_a_picture_and_its_figures_told(tools: Live) -> None:
    result, files = await call(
        tools, "draw_excel_chart", file_path="订单_旧.xlsx", kind="bar", group_by=["区域"]
    )
    assert result.status == "ok"
    assert "| 华东 | 14 |" in result.content
    ((name, data),) = files
    assert name.endswith(".png")
    assert Image.open(BytesIO(data)).size == (1200, 720)


async def test_a_result_workbook_is_sent_and_runs_nothing(tools: Live) -> None:
    result, files = await call(
        tools, "export_excel_data", file_path="带公式的订单.csv", file_name="../../结果.xlsx"
    )
    assert result.status == "ok"
    ((name, data),) = files
    assert "/" not in name
    assert name.endswith("结果.xlsx")
    cell = openpyxl.load_workbook(BytesIO(data)).worksheets[0]["B2"]
    assert (cell.value, cell.data_type) == ("=1+1", "s")


async def test_grouping_without_a_statistic_adds_up(tools: Live) -> None:
    _, files = await call(
        tools, "export_excel_data", file_path="订单_旧.xlsx", group_by=["区域"], columns=["金额"]
    )
    sheet = openpyxl.load_workbook(BytesIO(files[0][1])).worksheets[0]
    assert [[cell.value for cell in row] for row in sheet] == [
        ["区域", "金额 合计"],
        ["华东", 14],
        ["华北", 7.5],
    ]


async def test_given_rows_become_a_workbook(tools: Live) -> None:
    rows = [["小张", "013800000001"], ["=cmd|' /C calc'!A0", 5]]
    result, files = await call(
        tools, "write_excel_file", file_name="电话", columns=["姓名", "电话"], rows=rows
    )
    assert result.status == "ok"
    sheet = openpyxl.load_workbook(BytesIO(files[0][1])).worksheets[0]
    assert [[cell.value for cell in row] for row in sheet][1:] == rows
    assert sheet["A3"].data_type == "s"
    result, files = await call(
        tools, "write_excel_file", file_name="x", columns=["a"], rows=[[1, 2]]
    )
    assert (result.status, files) == ("failed", [])


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("draw_excel_chart", {"kind": "pie"}),
        ("export_excel_data", {}),
        ("list_excel_files", {}),
        ("aggregate_excel_data", {"function": "count"}),
    ],
)
async def test_a_hostile_file_gets_its_sentence_everywhere(
    tools: Live, tool: str, arguments: dict[str, Any]
) -> None:
    name = "name" if tool == "list_excel_files" else "file_path"
    result, files = await call(tools, tool, **arguments | {name: "远.xlsx"})
    assert "XFD1048576" in result.content
    assert "Traceback" not in result.content
    assert files == []


def test_without_a_font_no_chart_is_offered(tools: Live, monkeypatch: pytest.MonkeyPatch) -> None:
    chart = tools.generation.tools["draw_excel_chart"]
    settings = Settings(group=GroupSettings(font=""))
    assert chart.configured(settings)
    monkeypatch.setattr(fonts, "_installed", lambda: None)
    assert not chart.configured(settings)
