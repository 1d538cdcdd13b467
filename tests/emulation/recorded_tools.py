"""The tools that the recorded replies of a real model were written for."""

from __future__ import annotations

from typing import Any

from chathands.conversation import SideEffect, ToolSpec


def spec(name: str, description: str, effect: SideEffect, *needed: str, **more: Any) -> ToolSpec:
    properties = {**{key: {"type": "string"} for key in needed}, **more}
    schema = {"type": "object", "properties": properties, "required": list(needed)}
    return ToolSpec(name, description, schema, effect)


NUMBER, TEXTS = {"type": "integer"}, {"type": "array", "items": {"type": "string"}}
ROBOT = {"type": "string", "enum": ["销售群", "运营群"]}
TOOLS = [
    spec(
        "read_excel_data",
        "读取一个 Excel 工作簿里的一张表",
        "none",
        "file_path",
        sheet_name={"type": "string"},
        row_limit=NUMBER,
        columns=TEXTS,
    ),
    spec(
        "aggregate_excel_data",
        "对 Excel 表做汇总：求和、平均、最大、最小或计数",
        "none",
        "file_path",
        "column",
        "function",
        group_by={"type": "string"},
        top_n=NUMBER,
    ),
    spec("send_dingtalk_message", "向钉钉群推送消息", "outward", "title", "content", robot=ROBOT),
    spec("get_weather", "查询一个城市的天气", "none", "city", days=NUMBER),
]
MORE_TOOLS = [
    *TOOLS,
    spec("run_command", "执行一条 shell 命令", "local", "command"),
    spec("web_search", "搜索互联网", "none", "query"),
    spec("set_reminder", "设置提醒", "local", "time", "text"),
    spec("send_email", "send an email", "outward", "to", "text"),
    spec("read_file", "read a text file", "none", "path"),
    spec("get_stock_price", "current price of a stock", "none", "symbol"),
]
ENGLISH_TOOLS = [
    spec("read_table", "read a sheet of a workbook", "none", "path", limit=NUMBER),
    spec("get_weather", "current weather and tomorrow's forecast of one city", "none", "city"),
    spec("send_note", "send a note to a chat group", "outward", "group", "text"),
    spec("set_reminder", "set a reminder for the user", "local", "time", "text"),
]


def tools_of(case: dict[str, Any]) -> list[ToolSpec]:
    """The tools a recorded case was played with."""
    return ENGLISH_TOOLS if case.get("language") == "en" else TOOLS
