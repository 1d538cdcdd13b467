"""Calculating, and what is made of it: figures, charts, workbooks."""

from __future__ import annotations

import asyncio
from typing import Annotated, Literal

from pydantic import Field

from chathands.errors import ToolFailed
from chathands.settings import Settings
from chathands.toolbox import File, Image, ToolContext, tool
from chathands.toolbox.render import result_limit
from chathands.workers.fonts import find_font

from .files import run, run_on_file
from .parameters import NOT_GIVEN, FilePath, GroupBy, SheetName, SortBy, Where
from .report import aggregate_report, chart_caption, export_caption, file_title

Value = str | int | float | bool | None


@tool(
    side_effect="none",
    timeout=25,
    version=2,
    examples=[
        # The first one is shown to the model: ranking by totals is what it gets wrong most.
        (
            "废品登记表里哪个车间的废品最多",
            {
                "file_path": "废品登记.xlsx",
                "function": "sum",
                "columns": ["废品数"],
                "group_by": ["车间"],
            },
        ),
        (
            "去年三月各门店退货件数加起来是多少",
            {
                "file_path": "退货/2023/03.xlsx",
                "function": "sum",
                "columns": ["退货件数"],
                "group_by": ["门店"],
            },
        ),
        (
            "上海校区六月以后报名的有几个人",
            {
                "file_path": "报名表.csv",
                "function": "count",
                "where": ["校区=上海", "报名日期>=2025-06"],
            },
        ),
        (
            "每月电费比上个月多多少",
            {
                "file_path": "电费.xlsx",
                "function": "sum",
                "columns": ["电费"],
                "group_by": ["日期:月"],
                "change": "环比",
            },
        ),
    ],
)
async def aggregate_excel_data(
    ctx: ToolContext,
    file_path: FilePath,
    function: Annotated[
        Literal["sum", "mean", "min", "max", "count", "count_distinct"],
        Field(
            description="sum 合计，排名、谁最多都用它；mean 平均；count 行数；"
            "count_distinct 不同值有几个；max/min 只是单独一行的最大/最小"
        ),
    ],
    columns: Annotated[
        tuple[str, ...], NOT_GIVEN, Field(description="要计算的列名；count 不填")
    ] = (),
    group_by: GroupBy = (),
    where: Where = (),
    top_n: Annotated[int, NOT_GIVEN, Field(ge=0, le=50, description="只要前几组")] = 0,
    sheet_name: SheetName = "",
    pivot: Annotated[str, NOT_GIVEN, Field(description="交叉表里横着排的列")] = "",
    change: Annotated[
        Literal["无", "环比", "同比"], NOT_GIVEN, Field(description="和上期、去年同期比")
    ] = "无",
) -> str:
    """统计 Excel、CSV 表格的全部行：合计、平均、最大、最小、计数，可分组、筛选、排名。

    何时用：问总共、平均、哪个最多、各区域或各月多少、有几条。表再大也准。
    何时不用：只看内容用 read_excel_data。列名可以先猜，猜错会列出所有列。
    各组从大到小排，合计行不计入。
    """
    payload = {
        "sheet": sheet_name,
        "function": function,
        "columns": columns,
        "group_by": group_by,
        "where": where,
        "top": top_n,
        "pivot": pivot,
        "change": "" if change == "无" else change,
    }
    name, asked, result = await run_on_file(ctx, file_path, "aggregate_table", payload)
    return aggregate_report(name, asked, result, result_limit(ctx.settings.model.context))


def _has_font(settings: Settings) -> bool:
    return find_font(settings.group.font) is not None


@tool(
    side_effect="none",
    timeout=25,
    enabled_when=_has_font,
    examples=[
        (
            "把各车间的产量画成柱状图",
            {
                "file_path": "产量.xlsx",
                "kind": "bar",
                "columns": ["产量"],
                "group_by": ["车间"],
            },
        ),
        (
            "画一下今年每月电费的走势",
            {
                "file_path": "电费.xlsx",
                "kind": "line",
                "columns": ["电费"],
                "group_by": ["日期:月"],
            },
        ),
    ],
)
async def draw_excel_chart(
    ctx: ToolContext,
    file_path: FilePath,
    kind: Annotated[
        Literal["line", "bar", "pie"],
        Field(description="bar 柱状图比大小，line 折线图看走势，pie 饼图看占比"),
    ],
    columns: Annotated[
        tuple[str, ...], NOT_GIVEN, Field(description="要画的数字列；function=count 时不填")
    ] = (),
    group_by: GroupBy = (),
    where: Where = (),
    top_n: Annotated[int, NOT_GIVEN, Field(ge=0, le=50, description="只画前几组")] = 0,
    function: Annotated[
        Literal["sum", "mean", "min", "max", "count", "count_distinct"],
        NOT_GIVEN,
        Field(description="怎么算，一般是 sum"),
    ] = "sum",
    title: Annotated[str, NOT_GIVEN, Field(max_length=60, description="图的标题")] = "",
    sheet_name: SheetName = "",
) -> Image:
    """把 Excel、CSV 表格的数据画成柱状图、折线图或饼图，图片发给提问的人。

    何时用：要图、图表、走势、占比图。何时不用：只问数字用 aggregate_excel_data。
    """
    font = await asyncio.to_thread(find_font, ctx.settings.group.font)
    if font is None:
        raise ToolFailed(
            "这台机器没有中文字体，画不了图。请管理员装字体或写 CHATHANDS__GROUP__FONT。"
        )
    payload = {
        "sheet": sheet_name,
        "kind": kind,
        "function": function,
        "columns": columns,
        "group_by": group_by,
        "where": where,
        "top": top_n,
        "title": title,
        "font": str(font),
    }
    name, asked, result = await run_on_file(ctx, file_path, "draw_chart", payload)
    caption = chart_caption(name, asked, result, result_limit(ctx.settings.model.context))
    return Image(result["blob"], f"{file_title(result['title'])}.png", caption)


@tool(
    side_effect="none",
    timeout=40,
    examples=[
        (
            "把请假表里研发部的行导出来发我",
            {"file_path": "请假.xlsx", "where": ["部门=研发部"], "file_name": "研发部请假"},
        ),
        (
            "按车间汇总产量，做成表格发到群里",
            {
                "file_path": "产量.xlsx",
                "function": "sum",
                "columns": ["产量"],
                "group_by": ["车间"],
                "file_name": "各车间产量",
            },
        ),
    ],
)
async def export_excel_data(
    ctx: ToolContext,
    file_path: FilePath,
    file_name: Annotated[str, NOT_GIVEN, Field(max_length=60, description="新文件的名字")] = "",
    columns: Annotated[tuple[str, ...], NOT_GIVEN, Field(description="要哪些列；不填是全部")] = (),
    where: Where = (),
    sort_by: SortBy = "",
    function: Annotated[
        Literal["无", "sum", "mean", "min", "max", "count", "count_distinct"],
        NOT_GIVEN,
        Field(description="要汇总才填，和 group_by 一起"),
    ] = "无",
    group_by: GroupBy = (),
    sheet_name: SheetName = "",
) -> File:
    """把一个表格里筛选、排序或汇总出来的全部行存成新的 Excel 文件，发到这里。

    何时用：要导出、另存、做成表格文件发出来。何时不用：只看几行用 read_excel_data。
    """
    payload = {
        "sheet": sheet_name,
        "columns": columns,
        "where": where,
        "sort_by": sort_by,
        "function": "" if function == "无" else function,
        "group_by": group_by,
        "title": file_name,
    }
    if group_by and not payload["function"]:
        payload["function"] = "sum" if columns else "count"
    name, asked, result = await run_on_file(ctx, file_path, "export_table", payload)
    caption = export_caption(name, asked, result)
    return File(result["blob"], f"{file_title(file_name or '结果')}.xlsx", caption)


@tool(
    side_effect="none",
    timeout=25,
    examples=[
        (
            "把这两个人的电话做成 Excel：小张 13800000001，小李 13800000002",
            {
                "file_name": "电话",
                "columns": ["姓名", "电话"],
                "rows": [["小张", "13800000001"], ["小李", "13800000002"]],
            },
        )
    ],
)
async def write_excel_file(
    ctx: ToolContext,
    file_name: Annotated[str, Field(min_length=1, max_length=60, description="文件的名字")],
    columns: Annotated[tuple[str, ...], Field(min_length=1, max_length=50, description="列名")],
    rows: Annotated[
        tuple[tuple[Value, ...], ...],
        Field(min_length=1, max_length=1000, description="每行的值，和列名一一对应；编号写成文字"),
    ],
) -> File:
    """把给出的几行内容做成一个 Excel 文件，发到这里。

    何时用：用户给了内容，或前面工具的结果要做成 Excel。
    何时不用：内容在已有的表格里，用 export_excel_data，不要自己抄。
    """
    payload = {"title": file_name, "columns": columns, "rows": rows}
    result = await run(ctx, "write_rows", payload)
    return File(
        result["blob"],
        f"{file_title(file_name)}.xlsx",
        f"Excel 文件，{result['row_count']} 行 × {len(columns)} 列。",
    )
