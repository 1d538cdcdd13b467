"""Stand-in models that know the right thing for every case and can say it in one way only.

`Model("blocks" | "response_format" | "tools", cases)` is a script for ModelServer. Asked in another
way it chats, or refuses with `refuses` (what a server answers to fields it does not know).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from chathands.evals.case import Case
from tests.standins.model_server import Reply

Ability = Literal["blocks", "response_format", "tools"]
_RESULT = re.compile(r"^(?:结果|Result) #\d+ \S+ \[status=", re.MULTILINE)
CHATTER = "这个嘛，说来话长，今天就先聊到这里。"


@dataclass
class Model:
    ability: Ability
    cases: Iterable[Case]
    refuses: Mapping[str, int] | None = None
    """Field, or type of a response_format → the status it is answered with."""
    thinks: str = ""
    """Stands before every reply."""

    def __call__(self, body: dict[str, Any]) -> Reply:
        wanted = (body.get("response_format") or {}).get("type", "")
        for field, status in (self.refuses or {}).items():
            if field in body or field == wanted:
                return Reply(status=status, text="no")
        case, done = self._place(body["messages"])
        calls, answer = _right(case, done)
        way = "tools" if "tools" in body else "response_format" if wanted else "blocks"
        if way != self.ability:
            calls, answer = [], CHATTER
        if way == "tools" and calls:
            return Reply(events=_native(calls))
        if way == "response_format" and way == self.ability:
            actions = [{"tool": name, "parameters": given} for name, given in calls]
            value = {"thought": "", "calls": actions, "answer": answer}
            return Reply(self.thinks + json.dumps(value, ensure_ascii=False), piece=200)
        blocks = [
            "```json action\n"
            + json.dumps({"tool": name, "parameters": given}, ensure_ascii=False)
            + "\n```"
            for name, given in calls
        ]
        return Reply(self.thinks + ("\n".join(blocks) or answer), piece=200)

    def _place(self, messages: list[dict[str, Any]]) -> tuple[Case, int]:
        """The case that is asked, and how many results have come."""
        for at in range(len(messages) - 1, -1, -1):
            said = str(messages[at].get("content"))
            for case in self.cases:
                if messages[at]["role"] == "user" and case.request in said:
                    later = messages[at + 1 :]
                    told = sum(len(_RESULT.findall(str(m.get("content")))) for m in later)
                    return case, told + sum(m["role"] == "tool" for m in later)
        raise AssertionError("no case is asked")


def _right(case: Case, done: int) -> tuple[list[tuple[str, dict[str, Any]]], str]:
    due = [call for call in case.expect if not call.optional]
    due = due[done : done + 1] if case.ordered else due[done:]
    required = {tool.name: tool.parameters.get("required", ()) for tool in case.tools}
    calls = [
        (
            c.tool,
            {
                **dict.fromkeys(required[c.tool], "通知"),
                **{k: _value(v) for k, v in c.arguments.items()},
            },
        )
        for c in due
    ]
    said = [text if isinstance(text, str) else text[0] for text in case.answer_has]
    asks = "请问是哪一个？" if case.answer_asks else ""
    return calls, asks or "，".join(["好的", *said]) + "。"


def _value(wanted: Any) -> Any:
    if not isinstance(wanted, dict):
        return wanted
    if "any_of" in wanted:
        return wanted["any_of"][0]
    held = wanted["contains"]
    return held if isinstance(held, str) else "，".join(held)


def _native(calls: list[tuple[str, dict[str, Any]]]) -> list[Any]:
    """The events of a reply that calls, its arguments in two pieces."""

    def event(delta: Mapping[str, Any], finish: str | None = None) -> dict[str, Any]:
        return {"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}

    events: list[Any] = []
    for at, (name, given) in enumerate(calls):
        written = json.dumps(given, ensure_ascii=False)
        first = {"name": name, "arguments": written[:3]}
        events.append(event({"tool_calls": [{"index": at, "id": f"n{at}", "function": first}]}))
        events.append(
            event({"tool_calls": [{"index": at, "function": {"arguments": written[3:]}}]})
        )
    return [*events, event({}, "tool_calls"), "[DONE]"]
