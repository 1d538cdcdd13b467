"""The wording as a model gets it, kept as files, so that a change is seen in review.

After a wanted change: `python -m tests.emulation.test_contract_snapshot` writes them anew.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from chathands.conversation import Message, Status, ToolCall, ToolExample, ToolResult, ToolSpec
from chathands.emulation import Reason, Retry, Turn
from chathands.emulation.contract import render_block
from chathands.emulation.corrections import correction
from chathands.emulation.outcome import Language, Mode, Text
from chathands.emulation.prompts import wording
from chathands.emulation.state import State

FOLDER = Path(__file__).parents[1] / "data" / "prompts"
READ = ToolSpec(
    "read_table",
    "读取一张表 / read a table",
    {
        "type": "object",
        "properties": {"path": {"type": "string"}, "limit": {"type": "integer", "default": 20}},
        "required": ["path"],
    },
    "none",
    (ToolExample("员工.xlsx", {"path": "员工.xlsx"}),),
)
SEND = ToolSpec(
    "send_note",
    "发送通知 / send a note",
    {"type": "object", "properties": {"title": {"type": "string", "maxLength": 60}}},
    "outward",
)
TOOLS = [READ, SEND]
RICH = {
    "type": "object",
    "properties": {
        "path": {"type": "string", "minLength": 1, "maxLength": 80, "examples": ["a.xlsx"]},
        "limit": {"type": ["int", "null"], "minimum": 1, "maximum": 200, "default": 20},
        "ratio": {"type": "float", "exclusiveMinimum": 0, "multipleOf": 0.5},
        "how": {"enum": ["sum", "mean"], "default": "sum"},
        "where": {
            "type": "array",
            "minItems": 1,
            "uniqueItems": True,
            "items": {
                "type": "object",
                "properties": {"column": {"type": "string"}, "value": {}},
                "required": ["column"],
            },
        },
        "out": {
            "anyOf": [
                {"type": "object", "properties": {"file": {"type": "string"}}},
                {"type": "object", "properties": {"url": {"type": "string", "format": "uri"}}},
                {"type": "null"},
            ]
        },
        "labels": {"type": "object", "additionalProperties": {"type": "string"}},
        "code": {"type": "string", "pattern": "^[A-Z]+$", "deprecated": True},
    },
    "required": ["path", "where"],
    "additionalProperties": False,
}


def run_of(language: Language, mode: Mode = "emulated") -> str:
    """A whole run as the model reads it, with every way a call can end."""
    call = ToolCall("a", "read_table", {"path": "a.xlsx"})
    texts = []
    for status, content in (
        (Status.OK, "| a |"),
        (Status.OK, ""),
        (Status.FAILED, "x"),
        (Status.DENIED, "x"),
        (Status.UNKNOWN, "x"),
    ):
        result = ToolResult("a", "read_table", status, content, 5, truncated=content == "| a |")
        conversation = [Message.user("q"), Message.assistant("", [call]), Message.tool(result)]
        turn = Turn(conversation, TOOLS, mode=mode, language=language, fence="f00d")
        messages = turn.request().messages
        if not texts:
            texts += [f"[{message.role}]\n{message.content}" for message in messages[:3]]
        texts.append(f"[{messages[-1].role}]\n{messages[-1].content}")
    return "\n\n".join(texts) + "\n"


def corrections_of(language: Language, mode: Mode = "emulated") -> str:
    lines = []
    for reason in (reason for reason in Reason if reason is not Reason.SELECTION):
        for state in State:
            for level in (0, 1):
                text = correction(
                    Retry(reason, "D", "read_table"),
                    state,
                    level,
                    specs=TOOLS,
                    language=language,
                    forced="send_note",
                    block="B",
                    mode=mode,
                )
                if text not in lines:
                    lines.append(text)
    notices = [f"{kind}: {text}" for kind, text in wording(language, mode)["notice"].items()]
    return "\n\n".join([*lines, *notices]) + "\n"


def lookup_of(language: Language) -> str:
    """A contract that lists only a part, every kind of schema in it, and what a lookup answers."""
    plain = [ToolSpec(f"query_{n}", f"查询第 {n} 类 / query of kind {n}") for n in range(40)]
    specs = [replace(READ, examples=(), parameters=RICH), *plain]
    turn = Turn([Message.user("read_table")], specs, language=language, contract_budget=1400)
    contract = turn.request().messages[0].content
    texts = [contract[contract.index("find_book") - 200 :]]
    for query in ("query kind 31", "zzz"):
        turn.feed(Text(render_block("find_tools", {"query": query})))
        turn.finish("stop")
        texts.append(turn.request().messages[-1].content)
    return "\n\n".join(texts) + "\n"


def _in(mode: Mode) -> Callable[[Language], str]:
    return lambda language: f"{run_of(language, mode)}\n{corrections_of(language, mode)}"


MADE: dict[str, Callable[[Language], str]] = {
    "run": run_of,
    "corrections": corrections_of,
    "lookup": lookup_of,
    "structured": _in("structured"),
    "native": _in("native"),
}


@pytest.mark.parametrize("kind", MADE)
@pytest.mark.parametrize("language", ["zh", "en"])
def test_the_wording_is_what_it_was(kind, language):
    kept = (FOLDER / f"{kind}_{language}.txt").read_text(encoding="utf-8")
    made = MADE[kind](language)
    assert made == kept
    assert "\\u" not in made


if __name__ == "__main__":
    FOLDER.mkdir(parents=True, exist_ok=True)
    for kind, make in MADE.items():
        for language in ("zh", "en"):
            path = FOLDER / f"{kind}_{language}.txt"
            path.write_text(make(language), encoding="utf-8")
