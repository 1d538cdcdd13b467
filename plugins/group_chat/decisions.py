"""What becomes of runs that wait for a person: decided, expired, stopped, taken back."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

from chathands.store.outbox import Kind
from plugins.group_chat.accepted import Accepted, Debt
from plugins.group_chat.approvals import Approvals, Waiting
from plugins.group_chat.capture import Decision
from plugins.group_chat.jobs import Crashed, Job, Stage, Stopped
from plugins.group_chat.lifecycle import Engine, NotReady
from plugins.group_chat.messages import Incoming, Line, Place
from plugins.group_chat.presence import Presence
from plugins.group_chat.queue import FairGate
from plugins.group_chat.replies import WAS_RECALLED, Replies
from plugins.group_chat.tickets import ProgramTickets

if TYPE_CHECKING:
    from chathands.agent import Agent, Declined, Finished, Suspended
    from chathands.settings import GroupSettings

    _Resumed = Finished | Suspended | Declined | None


class Decisions:
    """`jobs` is the chat's set of running jobs; what is done between messages is done inside
    `busy()`, so that the farewell waits for it."""

    def __init__(
        self,
        line: Line,
        settings: GroupSettings,
        *,
        engine: Engine,
        presence: Presence,
        accepted: Accepted,
        gate: FairGate,
        jobs: set[Job],
        busy: Callable[[], AbstractContextManager[None]],
        later: Callable[[Coroutine[Any, Any, object]], None],
    ) -> None:
        self._engine = engine
        self._accepted = accepted
        self._gate = gate
        self._jobs = jobs
        self._busy = busy
        self.approvals = Approvals(self._expire)
        self.replies = Replies(line, settings, presence, accepted, self.approvals, later)
        self.tickets = ProgramTickets(self.replies.sender)

    async def decide(self, agent: Agent, incoming: Incoming, decision: Decision) -> str | None:
        """Let the run that is meant go on to its reply; the sentence to answer when there is none,
        or it is not this person's to decide (said once)."""
        here = [one for one in self.approvals if one.place.same_chat(incoming.place)]
        said = await self.tickets.answer(agent.store.tickets, incoming, decision, here)
        if said is not None:
            return said
        waiting = self.approvals.meant(incoming, decision)
        if isinstance(waiting, str):
            return waiting
        declined = await self._resume(
            agent,
            waiting,
            lambda on_event: agent.decide(
                waiting.approval.id, decision.approve, incoming.caller, on_event=on_event
            ),
        )
        if declined is None or waiting.told_no:
            return None
        waiting.told_no = True
        return declined.sentence

    async def _expire(self, waiting: Waiting) -> None:
        try:
            agent = self._engine.agent()
        except NotReady:
            return  # it stays in the store, and is armed again at the next start
        with self._busy():
            await self._resume(
                agent, waiting, lambda event: agent.expire(waiting.approval.id, on_event=event)
            )

    async def stop(self, agent: Agent, place: Place) -> bool:
        """End those this person asked for in this chat, each with its reply; whether there were
        any."""
        asked = self.approvals.of_asker(place)
        for waiting in asked:
            await self._resume(agent, waiting, lambda _, w=waiting: agent.stop(w.approval.id))
        return bool(asked)

    async def _resume(
        self,
        agent: Agent,
        waiting: Waiting,
        go_on: Callable[[Callable[[object], None]], Coroutine[Any, Any, _Resumed]],
    ) -> Declined | None:
        """Let a suspended run go on to its reply; gives back why not, when it was declined.

        It does not queue: it had its turn, and a yes must not expire in a line. It counts at the
        gate, over the limit if need be.
        """
        from chathands.agent import Declined, RunStarted

        slot = self._gate.join(waiting.place.lane, at_once=True)
        job = Job(waiting.place, waiting.question_id, Stage.RUNNING, waiting.approval.run_id)
        job.called = True  # it had its first calls before a person was asked
        self._jobs.add(job)

        def note(event: object) -> None:
            job.note(event)
            if isinstance(event, RunStarted):  # it is taken: from here on it waits for nobody
                self.approvals.remove(waiting)

        try:
            debt = await self._owe_again(waiting)
            try:
                outcome = await job.do(go_on(note))
                if outcome is None or isinstance(outcome, Declined):
                    await debt.drop()
                    if outcome is None:
                        self.approvals.remove(waiting)
                    return outcome
                self.approvals.remove(waiting)
                slot.leave()
                await self.replies.conclude(job, debt, outcome)
            except (Stopped, Crashed) as end:
                if isinstance(end, Stopped) and _still_waits(agent, waiting):
                    await debt.drop()  # it was not taken, and is told of with those that wait
                    return None
                self.approvals.remove(waiting)
                await self.replies.explain(agent, job, debt, end)
        finally:
            self._jobs.discard(job)
            slot.leave()
        return None

    async def _owe_again(self, waiting: Waiting) -> Debt:
        """A suspended run leaves its store when it goes on, and owes its reply from then on."""
        approval = waiting.approval
        debt = await self._accepted.owe(
            waiting.place,
            waiting.question_id,
            kind=Kind.RESUMED,
            run_id=approval.run_id,
            name=approval.caller.name,
        )
        assert debt is not None  # only a key of one's own can be taken
        return debt

    async def recalled(self, bot_id: str, message_id: str) -> None:
        """The questions behind approvals were taken back: nothing is executed, and the group, which
        sees it being asked for, is told so."""
        for waiting in self.approvals:
            if (waiting.place.bot_id, waiting.question_id) != (bot_id, message_id):
                continue
            debt = await self._owe_again(waiting)
            outcome = await self._end(waiting)
            if outcome is None:
                await debt.drop()
                continue
            text = f"{WAS_RECALLED.format(name=debt.name)}{outcome.text}"
            await self.replies.pay(debt, text)

    async def leave(self, place: Place) -> None:
        """The bot is not in that group any more: nobody there can decide or be told."""
        for waiting in self.approvals:
            if waiting.place.same_chat(place):
                await self._end(waiting)

    async def _end(self, waiting: Waiting) -> Finished | None:
        self.approvals.remove(waiting)
        try:
            return await self._engine.agent().stop(waiting.approval.id)
        except NotReady:
            return None


def _still_waits(agent: Agent, waiting: Waiting) -> bool:
    return any(one.approval.id == waiting.approval.id for one in agent.waiting())
