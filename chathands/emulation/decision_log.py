"""What a decision of a turn looks like in a trace: plain data, JSON-safe."""

from __future__ import annotations

from typing import Any

from chathands.emulation.outcome import Answer, Calls, Outcome, ParsedReply
from chathands.emulation.refusal import Stance


def described(outcome: Outcome, parsed: ParsedReply, stance: Stance) -> dict[str, Any]:
    """The outcome, and the reading and evidence it rests on."""
    entry: dict[str, Any] = {
        "outcome": type(outcome).__name__,
        "calls": [
            {"name": call.name, "confidence": call.confidence, "repairs": list(call.repairs)}
            for call in parsed.calls
        ],
        "broken": [
            {"name": broken.name, "reason": broken.reason.value, "detail": broken.detail}
            for broken in parsed.broken
        ],
        "stance": {"kind": stance.kind, "evidence": list(stance.evidence)},
        "finish_reason": parsed.finish_reason,
        "thought_characters": len(parsed.thought),
    }
    if not isinstance(outcome, Answer | Calls):
        entry["reason"] = outcome.reason.value
        entry["detail"] = outcome.detail
    return entry
