"""Small cases that the tests of the evaluation share."""

from __future__ import annotations

import json
from typing import Any

from chathands.conversation import ToolCall
from chathands.evals import Case, CaseResult
from chathands.evals.runner import Exchange

LOOKUP = {
    "name": "lookup",
    "parameters": {
        "type": "object",
        "properties": {"key": {"type": "string"}, "limit": {"type": "integer"}},
        "required": ["key"],
    },
}
SEND = {
    "name": "send",
    "parameters": {"type": "object", "properties": {"text": {"type": "string"}}},
    "side_effect": "outward",
}


def case(**fields: Any) -> Case:
    given = {
        "id": "c", "category": "single", "request": "查甲", "tools": [LOOKUP, SEND]
    }  # fmt: skip
    return Case.model_validate(given | fields)


def block(tool: str = "lookup", **arguments: Any) -> str:
    call = {"tool": tool, "parameters": arguments}
    return f"```json action\n{json.dumps(call, ensure_ascii=False)}\n```"


def call(tool: str = "lookup", **arguments: Any) -> ToolCall:
    return ToolCall(f"call_{tool}_{arguments}", tool, arguments)


def result(of: Case, *calls: ToolCall, answer: str = "ok", variant: str = "emulated") -> CaseResult:
    outcome = "calls" if calls else "answer"
    return CaseResult(
        of,
        variant,
        calls=list(calls),
        answer=answer,
        exchanges=[Exchange("raw <reply>", outcome, False, "stop", 100, 10, 40)],
        rounds=1,
        seconds=1.5,
    )
