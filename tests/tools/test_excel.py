"""The two Excel tools as a run uses them: through the loader, on a caller's files, in a child."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import sys
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from pathlib import Path

import httpx
import pytest

from chathands.errors import ToolDenied, ToolFailed
from chathands.schema import compile_schema
from chathands.settings import Settings
from chathands.toolbox import Caller, FileRoots, LoadReport, Tool, ToolContext, load_tools
from chathands.workers.pool import WorkerPool
from tests.workers import books

ROOT = Path(__file__).resolve().parents[2]

Run = Callable[..., "asyncio.Future[str]"]


@pytest.fixture(scope="module")
def loaded(tmp_path_factory: pytest.TempPathFactory) -> LoadReport:
    directory = tmp_path_factory.mktemp("tools")
    shutil.copytree(ROOT / "tools" / "excel", directory / "excel")
    report = load_tools(directory, Settings())
    assert report.errors == ()
    return report


@pytest.fixture
def tools(loaded: LoadReport) -> dict[str, Tool]:
    return dict(loaded.generation.tools)


@pytest.fixture(scope="module")
async def workers() -> AsyncIterator[WorkerPool]:
    pool = WorkerPool(Settings().worker)
    yield pool
    await pool.aclose()


def no_http() -> httpx.AsyncClient:
    raise AssertionError("reading a file needs no network")


@pytest.fixture
def ctx(tmp_path: Path, workers: WorkerPool) -> ToolContext:
    shutil.copytree(ROOT / "data" / "shared", tmp_path / "shared")
    caller = Caller("1001", "2001")
    return ToolContext(
        caller=caller,
        run_id="T-1",
        settings=Settings(data_dir=tmp_path),
        files=FileRoots(tmp_path, caller),
        http=no_http,
        workers=workers,
        remaining=lambda: 20.0,
    )


def put(ctx: ToolContext, name: str, data: bytes) -> None:
    path = ctx.settings.data_dir / "shared" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)


def rows_of(answer: str) -> list[list[str]]:
    lines = [line for line in answer.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


async def test_null_and_nothing_mean_not_given(tools: dict[str, Tool], ctx: ToolContext) -> None:
    nothing: dict[str, object] = {
        "columns": None, "group_by": [], "where": "", "top_n": None, "sheet_name": "",
    }  # fmt: skip
    tool = tools["aggregate_excel_data"]
    asked = {"file_path": "sales/2024/09.xlsx", "function": "sum"}
    checked = compile_schema(tool.spec(None).parameters).check(asked | nothing)
    assert checked.problems == ()
    assert await tool.run(ctx, checked.arguments) == await tool.run(ctx, asked)


async def test_a_summary_is_nothing_but_what_it_is_and_its_rows(
    tools: dict[str, Tool], ctx: ToolContext
) -> None:
    answer = await tools["read_excel_data"].run(
        ctx, {"file_path": "sales/2024/09.xlsx", "columns": ["区域", "销售额"]}
    )
    assert answer.splitlines() == [
        "文件 sales/2024/09.xlsx，工作表「汇总」，表头在第 1 行，共 5 行 × 3 列，其他工作表：明细",
        "「销售额」按列「金额」算。",
        "没有列出的列：数量",
        "",
        "| 区域 | 金额 |",
        "|---|---|",
        "| 华东 | 117131.1 |",
        "| 华北 | 141031.4 |",
        "| 华南 | 84951.7 |",
        "| 西南 | 92487.7 |",
        "| 合计 | 435601.9 |",
    ]


@pytest.mark.parametrize("said", ["销售额", "销售金额", "营业额", "业绩", "金额（元）", "amount"])
async def test_other_words_for_a_column_are_understood_and_said_first(
    tools: dict[str, Tool], ctx: ToolContext, said: str
) -> None:
    answer = await tools["aggregate_excel_data"].run(
        ctx,
        {
            "file_path": "sales/2024/09.xlsx",
            "function": "sum",
            "columns": [said],
            "group_by": ["业务员"],
            "where": ["地区=华南区"],
        },
    )
    second = answer.splitlines()[1]
    for reading in (
        f"「{said}」按列「金额」算",
        "「业务员」按列「销售员」算",
        "「华南区」按「区域」列的值「华南」算",
    ):
        assert reading in second
    assert rows_of(answer) == [["梁伟杰", "56530.1"], ["黄子涵", "28421.6"]]


async def test_a_value_instead_of_a_column_is_answered_with_what_to_write(
    tools: dict[str, Tool], ctx: ToolContext
) -> None:
    asked = {"file_path": "sales/2024/09.xlsx", "function": "sum", "columns": ["金额"]}
    with pytest.raises(ToolFailed) as failed:
        await tools["aggregate_excel_data"].run(ctx, asked | {"group_by": ["华南区"]})
    assert '「华南」是「区域」列里的值，请改为 where=["区域=华南"]' in failed.value.sentence
    followed = await tools["aggregate_excel_data"].run(ctx, asked | {"where": ["区域=华南"]})
    assert rows_of(followed) == [["84951.7"]]


async def test_the_largest_row_of_a_group_is_not_taken_for_its_total(
    tools: dict[str, Tool], ctx: ToolContext
) -> None:
    asked = {"file_path": "sales/2024/09.xlsx", "columns": ["金额"], "group_by": ["销售员"]}
    summed = await tools["aggregate_excel_data"].run(ctx, asked | {"function": "sum"})
    totals = [f"{name} {total}" for name, total in rows_of(summed)]
    line = f"这是每组里单行的最大值，不是总额。总额（金额 合计）从大到小：{'、'.join(totals[:5])}……"
    answer = await tools["aggregate_excel_data"].run(ctx, asked | {"function": "max"})
    assert answer.splitlines()[2] == line
    assert "单行的最大值" not in summed


async def test_a_summary_sheet_is_read_first(tools: dict[str, Tool], ctx: ToolContext) -> None:
    answer = await tools["read_excel_data"].run(ctx, {"file_path": "sales/2024/09.xlsx"})
    first = answer.splitlines()[0]
    for said in ("sales/2024/09.xlsx", "汇总", "表头在第 1 行", "共 5 行 × 3 列", "明细"):
        assert said in first
    regions = rows_of(answer)
    assert [row[0] for row in regions] == ["华东", "华北", "华南", "西南", "合计"]
    assert "已省略" not in answer


@pytest.mark.parametrize("month", ["09", "12"])
async def test_the_summary_matches_the_details(
    tools: dict[str, Tool], ctx: ToolContext, month: str
) -> None:
    path = f"sales/2024/{month}.xlsx"
    summary = rows_of(await tools["read_excel_data"].run(ctx, {"file_path": path}))
    details = await tools["aggregate_excel_data"].run(
        ctx,
        {
            "file_path": path,
            "function": "sum",
            "columns": ["数量", "金额"],
            "group_by": ["区域"],
            "sheet_name": "明细",
        },
    )
    assert sorted(rows_of(details)) == sorted(summary[:-1])
    assert f"数量 合计 {summary[-1][1]}，金额 合计 {summary[-1][2]}" in details
    assert "用了 60 行" in details


async def test_long_sheets_are_cut_and_the_rest_counted(
    tools: dict[str, Tool], ctx: ToolContext
) -> None:
    asked = {"file_path": "sales/2024/09.xlsx", "sheet_name": "明细", "row_limit": 200}
    answer = await tools["read_excel_data"].run(ctx, asked)
    assert len(rows_of(answer)) == 30
    assert "已省略剩余 30 行" in answer
    assert "2024年9月销售明细" in answer
    assert rows_of(answer)[0][1] == "0024090001"
    short = await tools["read_excel_data"].run(ctx, asked | {"row_limit": 3})
    assert len(rows_of(short)) == 3
    assert "已省略剩余 57 行" in short


async def test_a_small_context_gets_fewer_rows_and_a_true_count(
    tools: dict[str, Tool], ctx: ToolContext
) -> None:
    model = ctx.settings.model.model_copy(update={"context": 2048})
    small = replace(ctx, settings=ctx.settings.model_copy(update={"model": model}))
    asked = {"file_path": "sales/2024/09.xlsx", "sheet_name": "明细"}
    answer = await tools["read_excel_data"].run(small, asked)
    shown = len(rows_of(answer))
    assert 1 <= shown < 30
    assert f"已省略剩余 {60 - shown} 行" in answer
    assert len(answer) <= 1024


async def test_cells_cannot_break_the_table(tools: dict[str, Tool], ctx: ToolContext) -> None:
    rows = [("键", "值"), ("a|b", "两\n行"), ("1e5", "\\|"), ("=1", "12345678.91")]
    put(ctx, "怪.xlsx", books.book({"x": rows[:3]}))
    answer = await tools["read_excel_data"].run(ctx, {"file_path": "怪.xlsx"})
    assert "| a\\|b | 两 行 |" in answer
    assert "| 1e5 | \\\\\\| |" in answer


@pytest.mark.parametrize(
    "said",
    ["9月销售", "2024年九月销售汇总", "data/shared/sales/2024/09.xlsx", "09", "sales/2024/9.xls"],
)
async def test_a_name_that_can_mean_one_file_only_is_taken_and_said(
    tools: dict[str, Tool], ctx: ToolContext, said: str
) -> None:
    answer = await tools["read_excel_data"].run(ctx, {"file_path": said})
    assert f"没有「{said}」这个文件名" in answer
    assert "sales/2024/09.xlsx" in answer.splitlines()[0]


@pytest.mark.parametrize("said", ["9月考勤", "销售", "11月销售", "2023/09.xlsx", "数据表"])
async def test_any_other_name_gets_the_names_there_are(
    tools: dict[str, Tool], ctx: ToolContext, said: str
) -> None:
    with pytest.raises(ToolFailed) as failed:
        await tools["read_excel_data"].run(ctx, {"file_path": said})
    assert "sales/2024/09.xlsx" in failed.value.sentence
    assert str(ctx.settings.data_dir) not in failed.value.sentence


async def test_paths_out_of_the_data_are_denied(tools: dict[str, Tool], ctx: ToolContext) -> None:
    for path in ("/etc/passwd", "../secret.xlsx"):
        with pytest.raises(ToolDenied):
            await tools["read_excel_data"].run(ctx, {"file_path": path})


async def test_hidden_sheets_are_read_for_admins_only(
    tools: dict[str, Tool], ctx: ToolContext
) -> None:
    sheets = {"公开": [("a", "b"), (1, 2)], "工资": [("姓名", "月薪"), ("周敏", 9000)]}
    put(ctx, "人事.xlsx", books.book(sheets, states={"工资": "veryHidden"}))
    asked = {"file_path": "人事.xlsx", "sheet_name": "工资"}
    for name, more in (("read_excel_data", {}), ("aggregate_excel_data", {"function": "sum"})):
        with pytest.raises(ToolFailed, match="隐藏"):
            await tools[name].run(ctx, asked | more)
        admin = replace(ctx, caller=replace(ctx.caller, role="admin"))
        assert "9000" in await tools[name].run(admin, asked | more)


async def test_a_question_about_columns_of_the_second_sheet(
    tools: dict[str, Tool], ctx: ToolContext
) -> None:
    answer = await tools["aggregate_excel_data"].run(
        ctx,
        {
            "file_path": "sales/2024/12.xlsx",
            "function": "sum",
            "columns": ["金额"],
            "group_by": ["产品"],
            "top_n": 2,
        },
    )
    assert "工作表「明细」" in answer
    assert len(rows_of(answer)) == 2
    assert "共 5 组，只列出 2 组" in answer


async def test_a_missing_column_lists_the_columns(tools: dict[str, Tool], ctx: ToolContext) -> None:
    asked = {"file_path": "sales/2024/09.xlsx", "columns": ["毛利"], "sheet_name": "明细"}
    with pytest.raises(ToolFailed, match="日期、订单号、区域、销售员、产品、数量、单价、金额"):
        await tools["read_excel_data"].run(ctx, asked)
    with pytest.raises(ToolFailed, match="日期、订单号"):
        await tools["aggregate_excel_data"].run(ctx, asked | {"function": "sum"})


async def test_text_ids_are_refused_as_numbers(tools: dict[str, Tool], ctx: ToolContext) -> None:
    asked = {"file_path": "sales/2024/09.xlsx", "function": "sum", "columns": ["订单号"]}
    with pytest.raises(ToolFailed, match="是编号，不能求和"):
        await tools["aggregate_excel_data"].run(ctx, asked)


async def test_no_matching_row_says_so_and_what_there_is(
    tools: dict[str, Tool], ctx: ToolContext
) -> None:
    answer = await tools["aggregate_excel_data"].run(
        ctx, {"file_path": "sales/2024/09.xlsx", "function": "count", "where": ["区域=东北"]}
    )
    assert "没有符合条件的行" in answer
    assert "华东" in answer


async def test_a_hostile_workbook_costs_a_sentence_and_no_more(
    tools: dict[str, Tool], ctx: ToolContext
) -> None:
    put(ctx, "远.xlsx", books.far_cell())
    with pytest.raises(ToolFailed) as refused:
        await tools["read_excel_data"].run(ctx, {"file_path": "远.xlsx"})
    assert "没有读取" in refused.value.sentence
    assert "共 5 行" in await tools["read_excel_data"].run(ctx, {"file_path": "sales/2024/12.xlsx"})


async def test_lock_files_and_links_are_not_read(tools: dict[str, Tool], ctx: ToolContext) -> None:
    put(ctx, "~$09.xlsx", b"\x05user")
    with pytest.raises(ToolFailed, match="锁文件"):
        await tools["read_excel_data"].run(ctx, {"file_path": "~$09.xlsx"})
    os.symlink(ROOT / "pyproject.toml", ctx.settings.data_dir / "shared" / "链接.xlsx")
    with pytest.raises((ToolFailed, ToolDenied)):
        await tools["read_excel_data"].run(ctx, {"file_path": "链接.xlsx"})


async def test_descriptors_are_closed_again(tools: dict[str, Tool], ctx: ToolContext) -> None:
    await tools["read_excel_data"].run(ctx, {"file_path": "sales/2024/09.xlsx"})
    before = len(os.listdir("/proc/self/fd"))
    for sheet in (None, "没有这张"):
        try:
            await tools["read_excel_data"].run(
                ctx, {"file_path": "sales/2024/09.xlsx", "sheet_name": sheet}
            )
        except ToolFailed:
            continue
    assert len(os.listdir("/proc/self/fd")) == before


def test_the_parent_never_loads_the_readers() -> None:
    """In a fresh process: other tests may have loaded pandas here."""
    import subprocess

    program = f"""
import asyncio, json, sys
from pathlib import Path
sys.path.insert(0, {str(ROOT)!r})
from chathands.settings import Settings
from chathands.toolbox import Caller, FileRoots, ToolContext, load_tools
from chathands.workers.pool import WorkerPool

async def main():
    settings = Settings(data_dir=Path({str(ROOT / "data")!r}))
    tools = load_tools(Path({str(ROOT / "tools")!r}), settings).generation.tools
    pool, caller = WorkerPool(settings.worker), Caller("1")
    ctx = ToolContext(caller, "r", settings, FileRoots(settings.data_dir, caller), None, pool,
                      lambda: 20.0)
    answer = await tools["aggregate_excel_data"].run(
        ctx, {{"file_path": "sales/2024/09.xlsx", "function": "sum", "group_by": ["区域"]}})
    await pool.aclose()
    print(json.dumps(["华东" in answer, "pandas" in sys.modules, "python_calamine" in sys.modules]))

asyncio.run(main())
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60
    )
    assert json.loads(done.stdout) == [True, False, False]
