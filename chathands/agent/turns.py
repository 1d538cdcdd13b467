"""How a turn of a run is set up: as a value, so that a trace can set up the very same one again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from chathands.conversation import Message, ToolChoice, ToolSpec
from chathands.emulation import Turn
from chathands.emulation.outcome import Language, Mode

AUTO = ToolChoice()

Withdraw = Literal["last_round", "deadline"]


@dataclass(frozen=True, slots=True)
class TurnSetup:
    """Everything about a turn but the conversation and the tools; JSON-safe as a dict."""

    language: Language
    fence: str
    mode: Mode = "emulated"
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
            language=self.language,
            commit="finish",
            persona=self.persona,
            fence=self.fence,
            withdraw=self.withdraw,
            contract_budget=self.contract_budget,
        )

    def to_dict(self) -> dict[str, Any]:
        return {
            "language": self.language,
            "fence": self.fence,
            "mode": self.mode,
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
            persona=row["persona"],
            choice=ToolChoice(kind, name),
            withdraw=row["withdraw"],
            # Traces and suspended runs from before there was one have none.
            contract_budget=row.get("contract_budget"),
        )
