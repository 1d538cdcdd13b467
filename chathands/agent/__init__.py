"""The run: from an accepted question to its one final reply."""

from __future__ import annotations

from chathands.agent.agent import Agent
from chathands.agent.build import build_agent
from chathands.agent.events import (
    Corrected,
    Declined,
    Finished,
    Question,
    RoundStarted,
    RunStarted,
    Suspended,
    Withdrawn,
    new_run_id,
)
from chathands.agent.facts import AgentFacts
from chathands.agent.trace_reading import Replay, render_trace, replay

__all__ = [
    "Agent",
    "AgentFacts",
    "Corrected",
    "Declined",
    "Finished",
    "Question",
    "Replay",
    "RoundStarted",
    "RunStarted",
    "Suspended",
    "Withdrawn",
    "build_agent",
    "new_run_id",
    "render_trace",
    "replay",
]
