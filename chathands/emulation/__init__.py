"""Tool calls over plain chat: the contract, the reading, the review and the turn. Sans-IO.

The public names, loaded when first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from chathands.emulation.contract import render_block, render_contract
    from chathands.emulation.history import clean, project
    from chathands.emulation.outcome import (
        Answer,
        BrokenCall,
        CallReady,
        Calls,
        ChatMessage,
        Commit,
        Event,
        GiveUp,
        Language,
        Mode,
        ModelRequest,
        NativeCall,
        Outcome,
        ParsedReply,
        Piece,
        Reason,
        Retry,
        Text,
        TextDelta,
        Thinking,
    )
    from chathands.emulation.reading import parse_reply
    from chathands.emulation.review import review_reply
    from chathands.emulation.scanner import Scanner
    from chathands.emulation.state import State, state_of
    from chathands.emulation.turn import Turn

_HOMES = {
    "Scanner": "scanner",
    "State": "state",
    "Turn": "turn",
    "clean": "history",
    "parse_reply": "reading",
    "project": "history",
    "render_block": "contract",
    "render_contract": "contract",
    "review_reply": "review",
    "state_of": "state",
}

__all__ = [
    "Answer",
    "BrokenCall",
    "CallReady",
    "Calls",
    "ChatMessage",
    "Commit",
    "Event",
    "GiveUp",
    "Language",
    "Mode",
    "ModelRequest",
    "NativeCall",
    "Outcome",
    "ParsedReply",
    "Piece",
    "Reason",
    "Retry",
    "Scanner",
    "State",
    "Text",
    "TextDelta",
    "Thinking",
    "Turn",
    "clean",
    "parse_reply",
    "project",
    "render_block",
    "render_contract",
    "review_reply",
    "state_of",
]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'chathands.emulation' has no attribute {name!r}")
    value = getattr(import_module(f"chathands.emulation.{_HOMES.get(name, 'outcome')}"), name)
    globals()[name] = value
    return value
