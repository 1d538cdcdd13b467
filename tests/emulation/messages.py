"""Calls, results and projected conversations, as the tests of the history write them."""

from __future__ import annotations

from chathands.conversation import Image, Message, Status, ToolCall, ToolResult, ToolSpec
from chathands.emulation.history import project

WEATHER = ToolSpec(
    "get_weather",
    "查天气",
    {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    "none",
)
SEND = ToolSpec("send_note", "发送通知", side_effect="outward")
TOOLS = [WEATHER, SEND]
PNG = Image("data:image/png;base64,AA", "image/png")


def call(id: str, name: str = "get_weather", **arguments) -> ToolCall:
    return ToolCall(id, name, arguments or {"city": "厦门"})


def result(id: str, content: str = "晴", status: Status = Status.OK, name: str = "get_weather"):
    return Message.tool(ToolResult(id, name, status, content, 12))


def shown(conversation, tools=TOOLS, **more):
    return project(conversation, tools, language="zh", fence="f00d", **more)
