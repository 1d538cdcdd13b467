"""One turn played with given replies: tools, a question, and typical replies."""

from __future__ import annotations

from chathands.conversation import Message, Status, ToolResult, ToolSpec
from chathands.emulation import Retry, Text, Turn, render_block

CITY = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
NOTE = {
    "type": "object",
    "properties": {"title": {"type": "string"}, "times": {"type": "integer"}},
    "required": ["title"],
    "additionalProperties": False,
}
WEATHER = ToolSpec("get_weather", "查询一个城市的天气", CITY, "none")
SEND = ToolSpec("send_note", "发送通知到群", NOTE, "outward")
REMIND = ToolSpec("set_reminder", "设置提醒", NOTE, "local")
CLIENT = ToolSpec("client_tool", "查询天气", NOTE, "unknown")
TOOLS = [WEATHER, SEND, REMIND]
QUESTION = [Message.user("厦门天气怎么样")]
GOOD = render_block("get_weather", {"city": "厦门"})
UNKNOWN = render_block("tell_fortune", {"name": "张三"})
BROKEN = '```json action\n{"tool": "get_weather", "parameters": {"city": }}\n```'


def reply(turn: Turn, text: str, finish_reason: str | None = "stop", **more):
    turn.feed(Text(text))
    return turn.finish(finish_reason, **more)


def play(*replies: str, conversation=QUESTION, tools=TOOLS, **options):
    """Every outcome of a turn that gets these replies."""
    turn = Turn(conversation, tools, fence="f00d", **options)
    outcomes = []
    for text in replies:
        turn.request()
        outcomes.append(reply(turn, text))
        if not isinstance(outcomes[-1], Retry):
            break
    return turn, outcomes


def results(conversation, calls, content="晴", status=Status.OK):
    return [
        *conversation,
        *(Message.tool(ToolResult(c.id, c.name, status, content, 5)) for c in calls),
    ]
