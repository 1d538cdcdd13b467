"""Labelled replies without a call, and how the review decides them. `refusals.md` says what is in
the files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from benchmarks.figures import read_lines
from chathands.conversation import Message, Status, ToolCall, ToolResult, ToolSpec, as_specs
from chathands.emulation.outcome import Outcome
from chathands.emulation.reading import parse_reply
from chathands.emulation.review import review_reply

DATA = Path(__file__).parents[1] / "tests" / "data"
TOOLS = (
    ToolSpec("get_weather", "查询一个城市的天气"),
    ToolSpec("read_file", "读取文件内容"),
    ToolSpec("run_command", "在终端执行一条命令"),
    ToolSpec("send_message", "把消息发送到群里"),
    ToolSpec("web_search", "搜索网页"),
)
"""What is declared where a case names no tools of its own."""


def cases(name: str = "refusals.jsonl") -> list[dict[str, Any]]:
    """The cases of a file; tools that are named only are put in from `refusal_tools.json`."""
    named = json.loads((DATA / "refusal_tools.json").read_text(encoding="utf-8"))
    out = read_lines(DATA / name)
    for case in out:
        if "tools" in case:
            case["tools"] = [named[t] if isinstance(t, str) else t for t in case["tools"]]
    return out


def tools_of(case: dict[str, Any]) -> tuple[ToolSpec, ...]:
    return as_specs(case["tools"]) if "tools" in case else TOOLS


def conversation_of(case: dict[str, Any]) -> list[Message] | None:
    """The question, and the result that stood before the reply, where the case has them."""
    if "user" not in case:
        return None
    conversation = [Message.user(case["user"])]
    if result := case.get("result"):
        conversation.append(Message.assistant("", [ToolCall("c1", result["name"], {})]))
        told = ToolResult("c1", result["name"], Status(result["status"]), result["content"])
        conversation.append(Message.tool(told))
    return conversation


def decided(case: dict[str, Any], *, asked: bool) -> Outcome:
    """How a case is judged: from the reply and the tools alone, or (`asked`) with its question."""
    parsed = parse_reply(case["text"], tools_of(case), case.get("finish_reason"))
    conversation = conversation_of(case) if asked else None
    return review_reply(parsed, tools_of(case), "auto", conversation)


def decidable(case: dict[str, Any], *, asked: bool) -> bool:
    """Whether a person could tell from what is shown: some cases need their question."""
    return "user" in case if asked else not case.get("needs_question", False)
