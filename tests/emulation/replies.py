"""What the tests of the reader share: the corpora's tools and cases, and a reply read in pieces."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from chathands.conversation import ToolCall, ToolSpec, as_specs
from chathands.emulation.outcome import ParsedReply, Reason, TextDelta
from chathands.emulation.reading import parse_reply
from chathands.emulation.review import OPTIONAL_REVIEWS, review_reply, stance_in
from chathands.emulation.scanner import Scanner
from chathands.store import codec

DATA = Path(__file__).parents[1] / "data"
TOOLS: list[dict[str, Any]] = json.loads((DATA / "malformed_tools.json").read_text("utf-8"))


def cases(name: str) -> list[dict[str, Any]]:
    """The cases of a JSONL file. Never splitlines(): U+2028 stands inside strings."""
    lines = (DATA / name).read_text("utf-8").split("\n")
    return [json.loads(line) for line in lines if line.strip()]


def tools_of(case: dict[str, Any]) -> list[dict[str, Any]]:
    """The tools of a case: its own (`chathands trace case` writes them), else the corpora's."""
    return case.get("tools", TOOLS)


def reading_of(case: dict[str, Any]) -> ParsedReply:
    """A parser case read as it came, with its own finish reason if it has one."""
    return parse_reply(case["raw"], tools_of(case), case.get("finish_reason"))


def calls_of(reading: ParsedReply) -> list[dict[str, Any]]:
    """The calls as the corpora write them."""
    return [{"tool": call.name, "parameters": dict(call.arguments)} for call in reading.calls]


def accepts(case: dict[str, Any], got: list[dict[str, Any]]) -> bool:
    """Whether these calls are the expected ones, or one of the accepted alternatives."""
    return got == case["expected"] or got in case.get("alt_expected", [])


RETRIED = ("refusal", "missed_call", "delegates")
KINDS = {
    "refusal": RETRIED,
    "missed_intent": RETRIED,
    "delegates": RETRIED,
    "safety_refusal": ("safety_refusal",),
    "clarify": ("clarify", "normal"),
    "normal": ("normal", "clarify"),
}
"""Labels of `refusals.jsonl`, and the stances that count as such."""


def stance_fits(case: dict[str, Any], tools: Sequence[ToolSpec] = ()) -> bool:
    """Whether the text of a labelled case is judged as labelled; its own tools come first."""
    specs = as_specs(case["tools"]) if "tools" in case else tools
    kind = stance_in(case["text"], specs, None).kind
    return kind in KINDS[case["label"]] and (kind in RETRIED) is case["should_retry"]


def reason_of(case: dict[str, Any]) -> str:
    """Why a case of `reviews.jsonl` is turned down where it stands in its conversation, or none."""
    specs = [codec.spec_from_dict(row) for row in case["tools"]]
    outcome = review_reply(
        parse_reply(case["raw"], specs, case.get("finish_reason")),
        specs,
        case["choice"],
        codec.messages_from_dicts(case["conversation"]),
        reviews=OPTIONAL_REVIEWS - {Reason.UNGROUNDED},
    )
    return str(outcome.reason or "none")


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
