"""Looking: which files there are, what is in them, their rows, and what differs between two."""

from __future__ import annotations

import asyncio
from typing import Annotated

from pydantic import Field

from chathands.errors import ToolFailed
from chathands.toolbox import ToolContext, tool
from chathands.toolbox.render import result_limit

from .compare_report import compare_report
from .files import files_meant, run_on_file, run_on_files
from .listing_report import files_report, sheets_report
from .parameters import NOT_GIVEN, FilePath, SheetName, SortBy, Where
from .report import ROWS_SHOWN, read_report


@tool(
    side_effect="none",
    timeout=25,
    version=2,
    examples=[
        ("仓库盘点表前 10 行是什么", {"file_path": "仓库盘点.xlsx", "row_limit": 10}),
        (
            "看看通讯录里销售部那一页的姓名和分机",
            {"file_path": "通讯录.xls", "sheet_name": "销售部", "columns": ["姓名", "分机"]},
        ),
        (
            "单笔金额最高的 5 张华东订单",
            {
                "file_path": "订单.xlsx",
                "where": ["区域=华东"],
                "sort_by": "金额:降序",
                "row_limit": 5,
            },
        ),
    ],
)
async def read_excel_data(
    ctx: ToolContext,
    file_path: FilePath,
    sheet_name: SheetName = "",
    row_limit: Annotated[
        int, NOT_GIVEN, Field(ge=1, le=200, description=f"读几行，最多列出 {ROWS_SHOWN} 行")
    ] = ROWS_SHOWN,
    columns: Annotated[
        tuple[str, ...], NOT_GIVEN, Field(description="只看这些列；看全部就不填")
    ] = (),
    where: Where = (),
    sort_by: SortBy = "",
    offset: Annotated[
        int, NOT_GIVEN, Field(ge=0, le=1_048_576, description="跳过前面几行，翻页用")
    ] = 0,
) -> str:
    """读取 Excel、CSV 表格的表头、行数和行，可筛选、排序、翻页。

    何时用：看表里有什么、查某几行、读做好的汇总表。
    何时不用：对很多行求和、平均、排名、计数用 aggregate_excel_data，不要自己加。
    文件找不到会列出最接近的，选一个再调用。
    """
    payload = {
        "sheet": sheet_name,
        "columns": columns,
        "where": where,
        "sort_by": sort_by,
        "offset": offset,
        "limit": min(row_limit, ROWS_SHOWN),
    }
    name, asked, result = await run_on_file(ctx, file_path, "read_table", payload)
    return read_report(name, asked, result, result_limit(ctx.settings.model.context))


@tool(
    side_effect="none",
    timeout=25,
    examples=[
        ("有哪些表格", {}),
        ("上个月那个报表里有什么", {"name": "上个月那个报表"}),
    ],
)
async def list_excel_files(
    ctx: ToolContext,
    name: Annotated[
        str, NOT_GIVEN, Field(description="用户怎么说就怎么写，如“上个月那个报表”；不填列出全部")
    ] = "",
) -> str:
    """列出有哪些表格文件；能认出是哪一个时，列出它的工作表、行数和列名。

    何时用：不知道文件叫什么、有哪些工作表和列。何时不用：看内容用 read_excel_data。
    """
    found = await asyncio.to_thread(files_meant, ctx.files, name)
    if not found.files:
        raise ToolFailed(found.missing)
    if len(found.files) > 1 or not name.strip():
        return files_report(found, name, result_limit(ctx.settings.model.context))
    path = found.files[0].name
    _, _, result = await run_on_file(ctx, path, "list_sheets", {})
    return sheets_report(found.files[0], result, result_limit(ctx.settings.model.context))


@tool(
    side_effect="none",
    timeout=30,
    examples=[
        (
            "新旧两版价目表有什么不一样",
            {"old_file": "价目表_旧.xlsx", "new_file": "价目表_新.xlsx", "key_columns": ["货号"]},
        )
    ],
)
async def compare_excel_files(
    ctx: ToolContext,
    old_file: Annotated[str, Field(description="旧的文件，文件名不全也行")],
    new_file: Annotated[str, Field(description="新的文件")],
    key_columns: Annotated[
        tuple[str, ...],
        NOT_GIVEN,
        Field(description="认出同一行的列，如 编号；不知道就不填"),
    ] = (),
    sheet_name: SheetName = "",
) -> str:
    """比较两个表格文件：新增、删除和修改了哪些行。

    何时用：问两个文件或新旧两版差在哪里。何时不用：只看一个文件。
    """
    payload = {"sheet": sheet_name, "keys": key_columns}
    names, result = await run_on_files(ctx, (old_file, new_file), "compare_tables", payload)
    return compare_report(names, result, result_limit(ctx.settings.model.context))
