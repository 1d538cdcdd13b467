"""Reading and calculating with workbooks and CSV files. Parsing happens in chathands.workers."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from chathands.toolbox import ToolContext, tool
from chathands.toolbox.render import result_limit

from .files import run_on_file
from .report import ROWS_SHOWN, aggregate_report, read_report

FilePath = Annotated[
    str,
    Field(
        min_length=1,
        max_length=400,
        description="文件名或路径，照用户说的写，如“sales/2024/09.xlsx”；不知道全名就写知道的部分",
    ),
]
SheetName = Annotated[
    str | None,
    Field(max_length=100, description="工作表名；用户没说就不填，会自动选有数据的工作表"),
]


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
    sheet_name: SheetName = None,
    row_limit: Annotated[
        int, Field(ge=1, le=200, description=f"最多读多少行；回复里最多列出 {ROWS_SHOWN} 行")
    ] = 50,
    columns: Annotated[
        list[str] | None,
        Field(max_length=20, description="只看这些列（表头里的列名）；要看全部列就不填"),
    ] = None,
) -> str:
    """读取 Excel 或 CSV 表格，返回表头、行数和前几十行内容（Markdown 表格）。

    何时用：用户要看表格里有什么、查某几行、读已经做好的汇总表，或还不知道有哪些工作表和列。
    何时不用：要对很多行求和、平均、排名、计数时，用 aggregate_excel_data，不要自己加。
    文件找不到时结果会列出最接近的文件名，选一个再调用一次。
    """
    payload = {
        "sheet": sheet_name,
        "columns": columns or [],
        "limit": min(row_limit, ROWS_SHOWN),
    }
    name, asked, result = await run_on_file(ctx, file_path, "read_table", payload)
    return read_report(name, asked, result, result_limit(ctx.settings.model.context))


@tool(
    side_effect="none",
    timeout=25,
    examples=[
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
        Field(description="sum 合计，mean 平均，min 最小，max 最大，count 数有几行"),
    ],
    columns: Annotated[
        list[str] | None,
        Field(max_length=10, description="要计算的列（表头里的列名）；count 数行时不填"),
    ] = None,
    group_by: Annotated[
        list[str] | None,
        Field(
            max_length=3,
            description="按哪些列分组，如 [“区域”]；日期列可以写 日期:月、日期:年；不分组就不填",
        ),
    ] = None,
    where: Annotated[
        list[str] | None,
        Field(
            max_length=8,
            description="筛选条件，都要满足：列名=值（几个值用 | 隔开）、列名>数字、"
            "列名包含文字、日期=2024-09、日期>=2024-09-10；不筛选就不填",
        ),
    ] = None,
    top_n: Annotated[
        int | None, Field(ge=1, le=50, description="只要排在最前面的几组，如前三名写 3")
    ] = None,
    sheet_name: SheetName = None,
) -> str:
    """对 Excel 或 CSV 表格的全部行做统计：合计、平均、最大、最小、计数，可以分组、筛选、排名。

    何时用：用户问总共多少、平均多少、哪个最多、各区域或各月是多少、有几条。表再大也能算准。
    何时不用：只想看表里的内容时用 read_excel_data。不知道列名可以先猜，猜错了结果会列出所有列。
    分组结果按数值从大到小排（min 从小到大，日期按先后），合计行自动不计入。
    """
    payload = {
        "sheet": sheet_name,
        "function": function,
        "columns": columns or [],
        "group_by": group_by or [],
        "where": where or [],
        "top": top_n,
    }
    name, asked, result = await run_on_file(ctx, file_path, "aggregate_table", payload)
    return aggregate_report(name, asked, result, result_limit(ctx.settings.model.context))
