"""How a turn of a run is set up: as a value, so that a trace can set up the very same one again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from chathands.conversation import Message, ToolChoice, ToolSpec
from chathands.emulation import Turn
from chathands.emulation.outcome import Enforcement, Language, Mode, ThinkingStyle
from chathands.upstreams.ways import Way

AUTO = ToolChoice()

Withdraw = Literal["last_round", "deadline"]


@dataclass(frozen=True, slots=True)
class TurnSetup:
    """Everything about a turn but the conversation and the tools; JSON-safe as a dict."""

    language: Language
    fence: str
    mode: Mode = "emulated"
    enforcement: Enforcement = "json_schema"
    thinking: ThinkingStyle = "none"
    persona: str | None = None
    choice: ToolChoice = AUTO
    withdraw: Withdraw | None = None
    contract_budget: int | None = None

    def build(self, conversation: Sequence[Message], tools: Sequence[ToolSpec]) -> Turn:
        return Turn(
            conversation,
            tools,
            choice=self.choice,
            mode=self.mode,
            enforcement=self.enforcement,
            thinking=self.thinking,
            language=self.language,
            commit="finish",
            persona=self.persona,
            fence=self.fence,
            withdraw=self.withdraw,
            contract_budget=self.contract_budget,
        )

    @property
    def way(self) -> Way:
        return Way(self.mode, self.enforcement, self.thinking)

    def asked(self, way: Way) -> TurnSetup:
        """The same, asked in another way."""
        return replace(self, mode=way.mode, enforcement=way.enforcement, thinking=way.thinking)

    def to_dict(self) -> dict[str, Any]:
        return {
            "language": self.language,
            "fence": self.fence,
            "mode": self.mode,
            "enforcement": self.enforcement,
            "thinking": self.thinking,
            "persona": self.persona,
            "choice": [self.choice.kind, self.choice.name],
            "withdraw": self.withdraw,
            "contract_budget": self.contract_budget,
        }

    @classmethod
    def from_dict(cls, row: Mapping[str, Any]) -> TurnSetup:
        kind, name = row["choice"]
        return cls(
            language=row["language"],
            fence=row["fence"],
            mode=row["mode"],
            # Traces and suspended runs from before there were these have none.
            enforcement=row.get("enforcement", "json_schema"),
            thinking=row.get("thinking", "none"),
            persona=row["persona"],
            choice=ToolChoice(kind, name),
            withdraw=row["withdraw"],
            contract_budget=row.get("contract_budget"),
        )
