"""What the tests of the reader share: the corpora's tools and cases, and a reply read in pieces."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from chathands.conversation import ToolCall
from chathands.emulation.outcome import ParsedReply, TextDelta
from chathands.emulation.scanner import Scanner

DATA = Path(__file__).parents[1] / "data"
TOOLS: list[dict[str, Any]] = json.loads((DATA / "malformed_tools.json").read_text("utf-8"))


def cases(name: str) -> list[dict[str, Any]]:
    """The cases of a JSONL file. Never splitlines(): U+2028 stands inside strings."""
    lines = (DATA / name).read_text("utf-8").split("\n")
    return [json.loads(line) for line in lines if line.strip()]


def calls_of(reading: ParsedReply) -> list[dict[str, Any]]:
    """The calls as the corpora write them."""
    return [{"tool": call.name, "parameters": dict(call.arguments)} for call in reading.calls]


def accepts(case: dict[str, Any], got: list[dict[str, Any]]) -> bool:
    """Whether these calls are the expected ones, or one of the accepted alternatives."""
    return got == case["expected"] or got in case.get("alt_expected", [])


def block(body: str, info: str = "json action") -> str:
    """A fence around a body."""
    return f"```{info}\n{body}\n```"


def read_in_pieces(
    pieces: Iterable[str], finish_reason: str | None = None, **options: Any
) -> tuple[list[str | ToolCall], ParsedReply]:
    """The events of a reply, texts between two calls joined, and its reading."""
    scanner = Scanner(options.pop("tools", TOOLS), **options)
    events = [event for piece in pieces for event in scanner.feed(piece)]
    rest, reading = scanner.close(finish_reason)
    joined: list[str | ToolCall] = []
    for event in [*events, *rest]:
        if not isinstance(event, TextDelta):
            joined.append(event.call)
        elif joined and isinstance(joined[-1], str):
            joined[-1] += event.text
        else:
            joined.append(event.text)
    return joined, reading


def in_pieces_of(size: int, text: str) -> list[str]:
    """A text cut every `size` characters."""
    return [text[at : at + size] for at in range(0, len(text), size)]
