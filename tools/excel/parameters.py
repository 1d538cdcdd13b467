"""Parameters that several of these tools have, described once."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field


def _without_default(schema: dict[str, Any]) -> None:
    """What an optional parameter is when it is not given tells a model nothing, and every token of
    a tool's description costs a local model 12 ms at each cold start."""
    schema.pop("default", None)


NOT_GIVEN = Field(json_schema_extra=_without_default)

FilePath = Annotated[
    str, Field(description="文件名或路径，照用户说的写，如“sales/2024/09.xlsx”，不全也行")
]
SheetName = Annotated[str, NOT_GIVEN, Field(description="工作表名，用户没说就不填")]
Where = Annotated[
    tuple[str, ...],
    NOT_GIVEN,
    Field(
        description="条件，都要满足：列名=值（几个值用 | 隔开）、列名>数字、列名包含文字、"
        "日期=2024-09、日期>=2024-09-10"
    ),
]
SortBy = Annotated[str, NOT_GIVEN, Field(description="按哪列排；从大到小写成 金额:降序")]
GroupBy = Annotated[
    tuple[str, ...],
    NOT_GIVEN,
    Field(description="分组的列名（不是值）；日期列可写 日期:月、日期:年"),
]
