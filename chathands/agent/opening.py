"""How a run begins: from a question, or from what was stored while a person was asked."""

from __future__ import annotations

import asyncio
import secrets
from datetime import datetime

from chathands.agent import memory
from chathands.agent.deadline import Deadline
from chathands.agent.events import OnEvent, Question
from chathands.agent.prompts import persona, question_text
from chathands.agent.run import Run
from chathands.agent.suspension import StoredRun
from chathands.agent.trace import RunTrace
from chathands.agent.turns import TurnSetup
from chathands.conversation import Message
from chathands.emulation.outcome import ModelRequest
from chathands.settings import Settings
from chathands.store import Store
from chathands.toolbox import Caller, Policy, Registry, RunScope


class Opening:
    """Makes runs. `seconds` is what one is given, `model` the name that traces show."""

    def __init__(
        self,
        registry: Registry,
        store: Store,
        settings: Settings,
        policy: Policy,
        *,
        seconds: float,
        model: str,
    ) -> None:
        self._registry = registry
        self._store = store
        self._settings = settings
        self._policy = policy
        self._model = model
        self.seconds = seconds

    def trace(self, run_id: str, question: Question, *, goes_on: bool = False) -> RunTrace:
        caller = question.caller
        asked = {
            "text": question.text,
            "quoted": question.quoted,
            "user": caller.user_id,
            "group": caller.group_id,
            "role": caller.role,
            "name": question.name or caller.name,
        }
        clock = asyncio.get_running_loop().time
        return RunTrace(
            run_id,
            model=self._model,
            place=question.conversation,
            question=asked,
            clock=clock,
            goes_on=goes_on,
        )

    async def begin(
        self, run_id: str, question: Question, trace: RunTrace, on_event: OnEvent | None
    ) -> Run:
        """A run at its first decision; its clock goes. Raises StoreError."""
        deadline = Deadline(self.seconds)
        rounds = await self._store.conversations.load_rounds(
            question.conversation, self._settings.store.history_rounds
        )
        history = memory.recall(rounds)
        head = question_text(
            question.text,
            now=question.now or datetime.now(),
            name=question.name or question.caller.name,
            quoted=question.quoted,
            language=self._settings.model.language,
        )
        generation = self._registry.current
        scope = RunScope(
            run_id=run_id,
            caller=question.caller,
            generation=generation,
            remaining=deadline.working,
            read_foreign=question.foreign
            or question.quoted is not None
            # What a page said in an earlier run is still in front of the model.
            or any(m.result is not None and m.result.foreign for m in history),
        )
        return Run(
            question=question,
            conversation=[*history, Message.user(head)],
            question_at=len(history),
            scope=scope,
            tools=generation.visible_to(question.caller, self._policy),
            deadline=deadline,
            setup=self._setup(secrets.token_hex(4)),
            trace=trace,
            on_event=on_event,
        )

    def resume(self, stored: StoredRun, trace: RunTrace | None, on_event: OnEvent | None) -> Run:
        """The stored run over today's tools; its clock stands until somebody lets it go."""
        question, approval = stored.question, stored.approval
        deadline = Deadline(self.seconds, left=stored.seconds_left)
        deadline.pause()
        generation = self._registry.current
        if trace is None:
            trace = self.trace(approval.run_id, question, goes_on=True)
            trace.note("重启后继续")
        scope = RunScope(
            run_id=approval.run_id,
            caller=approval.caller,
            generation=generation,
            remaining=deadline.working,
            done=[dict(entry) for entry in stored.done],
            read_foreign=stored.read_foreign,
        )
        return Run(
            question=question,
            conversation=list(stored.conversation),
            question_at=stored.question_at,
            scope=scope,
            tools=generation.visible_to(approval.caller, self._policy),
            deadline=deadline,
            setup=self._setup(stored.fence),
            trace=trace,
            on_event=on_event,
            round=stored.round,
            withdrawn=stored.withdrawn,
            open_calls=list(stored.remaining),
        )

    def first_request(self) -> ModelRequest:
        """What a first question of anybody is asked with; its contract is what is worth caching."""
        anybody = Caller("", "")
        tools = self._registry.current.visible_to(anybody, self._policy)
        setup = self._setup("")
        return setup.build([Message.user("你好")], tools).request()

    def _setup(self, fence: str) -> TurnSetup:
        language = self._settings.model.language
        return TurnSetup(language=language, fence=fence, persona=persona(language))
