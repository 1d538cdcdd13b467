"""What a run is and how it ends; `Runner` drives it."""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from chathands.agent import fallback
from chathands.agent.deadline import Deadline
from chathands.agent.events import OnEvent, Question, tell
from chathands.agent.trace import RunTrace
from chathands.agent.turns import AUTO, TurnSetup, Withdraw
from chathands.conversation import Message, Status, ToolCall, ToolChoice, ToolSpec
from chathands.toolbox import CallFinished, CallStarted, Decision, RunScope

NOT_THE_SAME = "要执行的内容与请人确认的不一致，没有执行。"


@dataclass(slots=True)
class Run:
    """What a run knows; everything it needs to be stored and to go on is in here."""

    question: Question
    conversation: list[Message]
    question_at: int
    """Index of the question; what follows it is this run's own."""
    scope: RunScope
    tools: tuple[ToolSpec, ...]
    deadline: Deadline
    setup: TurnSetup
    trace: RunTrace
    on_event: OnEvent | None = None
    round: int = 1
    withdrawn: Withdraw | None = None
    choice: ToolChoice = AUTO
    """For the next turn only."""
    open_calls: list[ToolCall] = field(default_factory=list)
    """Asked for by the model and not finished."""
    begun: set[str] = field(default_factory=set)
    """Ids of calls that were started or answered."""
    remembered: bool = False
    asked_at: float = field(default_factory=time.time)
    """Wall seconds."""

    @property
    def run_id(self) -> str:
        return self.scope.run_id

    @property
    def own_messages(self) -> list[Message]:
        return self.conversation[self.question_at + 1 :]

    @property
    def turn_setup(self) -> TurnSetup:
        """Of the turn that comes next."""
        return replace(self.setup, withdraw=self.withdrawn, choice=self.choice)

    @property
    def changed_something(self) -> bool:
        """Whether a side effect happened, or may have."""
        return any(
            entry["side_effect"] != "none" and entry["status"] in (Status.OK, Status.UNKNOWN)
            for entry in self.scope.done
        )

    def cut_off(self) -> list[dict[str, Any]]:
        """Entries of `scope.done` whose call never got a result: the run was cancelled under it."""
        begun = sum(call.id in self.begun for call in self.open_calls)
        return self.scope.done[-begun:] if begun else []

    def emit(self, event: object) -> None:
        tell(self.on_event, event)

    def watch_call(self, event: CallStarted | CallFinished) -> None:
        """Keep account of the open calls, and tell whoever watches."""
        if isinstance(event, CallStarted):
            self.begun.add(event.call.id)
            self.trace.call_started(event.call)
        else:
            self.begun.add(event.result.call_id)
            self.trace.call_finished(event.result, self.open_calls)
        self.emit(event)

    def target_of(self, call: ToolCall) -> str:
        tool = self.scope.generation.tools.get(call.name)
        return tool.describe_target(call.arguments) if tool is not None else ""

    def not_done(self) -> list[dict[str, Any]]:
        """The open calls as the account wants them, but not those that began and were cut off:
        they stand in `scope.done`."""
        return [
            {"name": call.name, "target": self.target_of(call)}
            for call in self.open_calls
            if call.id not in self.begun
        ]


@dataclass(frozen=True, slots=True)
class Ended:
    """The run's reply. `remember`: the conversation should know of it."""

    status: Literal["answered", "fallback", "failed"]
    text: str
    remember: bool


@dataclass(frozen=True, slots=True)
class Fault:
    """No decision came, and why: one sentence for people."""

    sentence: str


@dataclass(frozen=True, slots=True)
class Resumption:
    """How a suspended run goes on."""

    remaining: tuple[ToolCall, ...]
    """Starts with the call a person was asked about."""
    call_hash: str
    decision: Decision
    denial: str | None
    """Why the call does not run, one sentence; None: it was granted."""


def account_of(run: Run, sentence: str) -> Ended:
    """The deterministic reply: the sentence, what was done, what was not, the reference."""
    done = run.scope.done
    text = fallback.account(sentence, done, run.not_done(), run.run_id)
    return Ended("fallback" if done else "failed", text, remember=run.changed_something)
