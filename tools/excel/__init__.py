"""Reading and calculating with workbooks and CSV files. Parsing happens in chathands.workers."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from chathands.toolbox import ToolContext, tool
from chathands.toolbox.render import result_limit

from .files import run_on_file
from .report import ROWS_SHOWN, aggregate_report, read_report


def _without_default(schema: dict[str, Any]) -> None:
    """What an optional parameter is when it is not given tells a model nothing, and every token of
    a tool's description costs a local model 12 ms at each cold start."""
    schema.pop("default", None)


NOT_GIVEN = Field(json_schema_extra=_without_default)

FilePath = Annotated[
    str, Field(description="文件名或路径，照用户说的写，如“sales/2024/09.xlsx”，不全也行")
]
SheetName = Annotated[str, NOT_GIVEN, Field(description="工作表名，用户没说就不填")]


@tool(
    side_effect="none",
    timeout=25,
    examples=[
        ("仓库盘点表前 10 行是什么", {"file_path": "仓库盘点.xlsx", "row_limit": 10}),
        (
            "看看通讯录里销售部那一页的姓名和分机",
            {"file_path": "通讯录.xls", "sheet_name": "销售部", "columns": ["姓名", "分机"]},
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
) -> str:
    """读取 Excel、CSV 表格的表头、行数和前几十行内容。

    何时用：看表里有什么、查某几行、读做好的汇总表、不知道有哪些工作表和列。
    何时不用：对很多行求和、平均、排名、计数用 aggregate_excel_data，不要自己加。
    文件找不到会列出最接近的，选一个再调用。
    """
    payload = {
        "sheet": sheet_name,
        "columns": columns,
        "limit": min(row_limit, ROWS_SHOWN),
    }
    name, asked, result = await run_on_file(ctx, file_path, "read_table", payload)
    return read_report(name, asked, result, result_limit(ctx.settings.model.context))


@tool(
    side_effect="none",
    timeout=25,
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
    ],
)
async def aggregate_excel_data(
    ctx: ToolContext,
    file_path: FilePath,
    function: Annotated[
        Literal["sum", "mean", "min", "max", "count"],
        Field(
            description="sum 合计，排名、谁最多都用它；mean 平均；count 行数；"
            "max/min 只是单独一行的最大/最小"
        ),
    ],
    columns: Annotated[
        tuple[str, ...], NOT_GIVEN, Field(description="要计算的列名；count 不填")
    ] = (),
    group_by: Annotated[
        tuple[str, ...],
        NOT_GIVEN,
        Field(description="分组的列名（不是值）；日期列可写 日期:月、日期:年"),
    ] = (),
    where: Annotated[
        tuple[str, ...],
        NOT_GIVEN,
        Field(
            description="条件，都要满足：列名=值（几个值用 | 隔开）、列名>数字、列名包含文字、"
            "日期=2024-09、日期>=2024-09-10"
        ),
    ] = (),
    top_n: Annotated[int, NOT_GIVEN, Field(ge=0, le=50, description="只要前几组，前三名写 3")] = 0,
    sheet_name: SheetName = "",
) -> str:
    """统计 Excel、CSV 表格的全部行：合计、平均、最大、最小、计数，可分组、筛选、排名。

    何时用：问总共、平均、哪个最多、各区域或各月多少、有几条。表再大也准。
    何时不用：只看内容用 read_excel_data。列名可以先猜，猜错会列出所有列。
    各组从大到小排（min 从小到大，日期按先后），合计行不计入。
    """
    payload = {
        "sheet": sheet_name,
        "function": function,
        "columns": columns,
        "group_by": group_by,
        "where": where,
        "top": top_n,
    }
    name, asked, result = await run_on_file(ctx, file_path, "aggregate_table", payload)
    return aggregate_report(name, asked, result, result_limit(ctx.settings.model.context))
