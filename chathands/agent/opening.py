"""How a run begins: from a question, or from what was stored while a person was asked."""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import Sequence
from datetime import datetime

from chathands.agent.deadline import Deadline, run_seconds
from chathands.agent.events import OnEvent, Question
from chathands.agent.prompts import FILES_SHOWN, persona, question_head, question_text
from chathands.agent.remembering import Memory
from chathands.agent.run import Run
from chathands.agent.suspension import StoredRun, place_of
from chathands.agent.trace import RunTrace
from chathands.agent.turns import TurnSetup
from chathands.conversation import Message, ToolSpec
from chathands.emulation.outcome import ModelRequest
from chathands.limits import CONTRACT_SHARE
from chathands.settings import Settings
from chathands.store import SuspendedRow
from chathands.toolbox import Caller, FileRoots, Policy, Registry, RunScope
from chathands.upstreams.base import Upstream
from chathands.upstreams.ways import Ways

_log = logging.getLogger(__name__)

FILE_PARAMETER = "file_path"
"""A tool with this parameter reads what FileRoots gives."""


class Opening:
    """Makes runs for a model, or for none. `seconds` is what one is given."""

    def __init__(
        self,
        registry: Registry,
        memory: Memory,
        settings: Settings,
        policy: Policy,
        upstream: Upstream | None,
        ways: Ways,
    ) -> None:
        self._registry = registry
        self._memory = memory
        self._settings = settings
        self._policy = policy
        self._ways = ways
        self._model = upstream.name if upstream else ""
        self._contract_budget = int(upstream.context * CONTRACT_SHARE) if upstream else None
        self.seconds = run_seconds(settings, local=upstream is not None and upstream.local)

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
            person=(place_of(caller), caller.user_id),
        )

    def lost_trace(self, row: SuspendedRow) -> RunTrace:
        """For a run an earlier process suspended and of which nothing else can be read."""
        return RunTrace(
            row.run_id,
            model=self._model,
            place=row.place,
            question={},
            clock=asyncio.get_running_loop().time,
            goes_on=True,
        )

    async def begin(
        self, run_id: str, question: Question, trace: RunTrace, on_event: OnEvent | None
    ) -> Run:
        """A run at its first decision; its clock goes. Raises StoreError."""
        deadline = Deadline(self.seconds)
        recalled = await self._memory.recall(question.conversation)
        history = recalled.messages
        language = self._settings.model.language
        generation = self._registry.current
        tools = generation.visible_to(question.caller, self._policy)
        head = question_head(
            now=question.now or datetime.now(),
            name=question.name or question.caller.name,
            files=await self._files(question.caller, tools),
            language=language,
        )
        text = question_text(question.text, quoted=question.quoted, language=language)
        scope = RunScope(
            run_id=run_id,
            caller=question.caller,
            generation=generation,
            remaining=deadline.working,
            read_foreign=question.foreign
            or question.quoted is not None
            # What a page said in an earlier run is still in front of the model.
            or recalled.foreign,
        )
        return Run(
            question=question,
            conversation=[*history, Message.user(text, head=head)],
            question_at=len(history),
            scope=scope,
            tools=tools,
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
            asked_at=approval.created,
        )

    def first_request(self) -> ModelRequest:
        """What a first question of anybody is asked with; its contract is what is worth caching."""
        anybody = Caller("", "")
        tools = self._registry.current.visible_to(anybody, self._policy)
        setup = self._setup("")
        return setup.build([Message.user("你好")], tools).request()

    async def _files(self, caller: Caller, tools: Sequence[ToolSpec]) -> list[str]:
        """Names of the files the asker's tools can open, newest first; none without such a tool."""
        if not any(FILE_PARAMETER in spec.parameters.get("properties", {}) for spec in tools):
            return []
        try:
            entries = await asyncio.to_thread(FileRoots(self._settings.data_dir, caller).list)
        except OSError:
            _log.warning("the files of %s cannot be listed", caller.user_id, exc_info=True)
            return []
        newest = sorted(entries, key=lambda entry: (-entry.modified, entry.name))
        return sorted(entry.name for entry in newest[:FILES_SHOWN]) + [
            entry.name for entry in newest[FILES_SHOWN:]
        ]

    def _setup(self, fence: str) -> TurnSetup:
        language = self._settings.model.language
        return TurnSetup(
            language=language,
            fence=fence,
            persona=persona(language),
            contract_budget=self._contract_budget,
        ).asked(self._ways.way)
