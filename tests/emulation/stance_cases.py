"""Labelled replies without a call, and how the review decides them. `refusals.md` says what is in
the files."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

from chathands.conversation import Message, Status, ToolCall, ToolResult, ToolSpec, as_specs
from chathands.emulation.outcome import Outcome
from chathands.emulation.reading import parse_reply
from chathands.emulation.review import review_reply

DATA = Path(__file__).parents[1] / "data"
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
    out = [json.loads(line) for line in (DATA / name).read_text("utf-8").split("\n") if line]
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


def wilson(hits: int, of: int, z: float = 1.96) -> tuple[float, float]:
    """The 95 % interval of a share (Wilson 1927)."""
    if not of:
        return 0.0, 1.0
    share, base = hits / of, 1 + z * z / of
    middle = share + z * z / (2 * of)
    half = z * math.sqrt(share * (1 - share) / of + z * z / (4 * of * of))
    return max(0.0, (middle - half) / base), min(1.0, (middle + half) / base)
