"""Exact arithmetic and dates: what a language model must not do in its head."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from chathands import ToolContext, tool
from chathands.errors import ToolFailed

from .arithmetic import MAX_EXPRESSION, CannotCalculate, calculated
from .days import MAX_ADD, CannotDate, about_day, added, between, today_in


@tool(
    side_effect="none",
    timeout=5,
    examples=[
        ("3.5万的15%是多少", {"expression": "3.5万*15%"}),
        ("128、256、300 三个数平均", {"expression": "avg(128, 256, 300)"}),
    ],
)
def calculate(
    expression: Annotated[
        str,
        Field(
            min_length=1,
            max_length=MAX_EXPRESSION,
            description="算式，如 (1200-350)*12/100。"
            "能写 + - * / // ** 括号 % 万 亿、round sqrt sum avg min max abs floor ceil mod",
        ),
    ],
) -> str:
    """精确计算一个算式：加减乘除、百分比、乘方、平均、求和、取整。

    何时用：问题里有数字要算，哪怕很简单，不要自己心算。
    何时不用：表格里的数用表格工具汇总；日期相差几天用 date_math。
    """
    try:
        return calculated(expression)
    except CannotCalculate as fault:
        raise ToolFailed(str(fault)) from None


@tool(
    side_effect="none",
    timeout=5,
    examples=[
        ("离国庆还有几天", {"start": "今天", "end": "国庆"}),
        ("从3月2号起过10个工作日是哪天", {"start": "3月2号", "add": 10, "unit": "工作日"}),
    ],
)
def date_math(
    ctx: ToolContext,
    start: Annotated[
        str,
        Field(
            min_length=1, max_length=40, description="从哪天算起：2026-05-01、今天、下周一、国庆"
        ),
    ] = "今天",
    end: Annotated[
        str | None, Field(max_length=40, description="算到哪天；要知道相差几天时写")
    ] = None,
    add: Annotated[
        int | None,
        Field(ge=-MAX_ADD, le=MAX_ADD, description="往后数多少（往前用负数）；要知道是哪一天时写"),
    ] = None,
    unit: Annotated[
        Literal["天", "工作日", "周", "月", "年"], Field(description="add 的单位")
    ] = "天",
) -> str:
    """日期计算：两天相差几天、有几个工作日，或者往后往前数是哪一天；都不写就说那天星期几、放不放假。

    何时用：几天、几个工作日、哪一天、星期几、是否放假。工作日按中国的放假和调休。
    何时不用：定闹钟和提醒用 set_reminder。
    """
    if end is not None and add is not None:
        raise ToolFailed("end 和 add 只写一个：相差几天写 end，往后数写 add。")
    try:
        today, calendar = today_in(ctx.settings)
        if end is not None:
            return between(start, end, today, calendar)
        if add is not None:
            return added(start, add, unit, today, calendar)
        return about_day(start, today, calendar)
    except CannotDate as fault:
        raise ToolFailed(str(fault)) from None
