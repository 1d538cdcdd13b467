"""From a captured message to the one reply: limits, turn, run, answer, approvals, 停, farewell."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING, Any, TypeVar

from nonebot.log import logger

from plugins.group_chat import capture
from plugins.group_chat.approvals import Approvals, Waiting, notice
from plugins.group_chat.lifecycle import Engine, NotReady
from plugins.group_chat.messages import Incoming, Line, Place
from plugins.group_chat.queue import ConversationQueue, FairGate, QueueFull, RateLimit
from plugins.group_chat.reply import Sender

if TYPE_CHECKING:
    from chathands.agent import Agent, Declined, Finished, Suspended
    from chathands.settings import Settings

    _Resumed = Finished | Suspended | Declined | None

T = TypeVar("T")

GREETING = "我在。请在 @我 的同时写下要做的事，例如：@我 杭州明天天气怎么样？"
BUSY = "前面还有 {waiting} 条在等，请等它们答完再问。"
WAITED = "排队超过 {seconds:.0f} 秒还没有轮到，这个问题没有处理，请过一会儿再问。"
TOO_OFTEN = "问得有点快，请过一分钟再问。"
GROUP_TOO_OFTEN = "这个群问得有点快，请过一分钟再问。"
BROKEN = "程序出了错，没能回答，请管理员查看日志。"
NOTHING_TO_STOP = "现在没有你正在进行的提问。"
STOPPED_EARLY = "已停止，这个问题还没有开始处理。"
CUT_OFF = (
    "{who}：我上次退出时正在执行 {what}，不确定有没有完成，请人工核对；不会自动重试。（编号 {run}）"
)
RESTARTING = "我正在重启，请过一分钟再问。"
RESTARTING_EARLY = "我正在重启，这个问题还没有开始处理，请过一分钟再问一次。"
RESTARTING_PENDING = (
    "我正在重启。等待确认的 {number} 号操作还没有执行；重启以后在有效期内仍可确认，过期会告诉你。"
)

FAREWELL_SECONDS = 1.0
"""For saying goodbye to everybody; the process must be gone within 2 s of the signal."""


class Stopped(Exception):
    """The job was cancelled, by its asker or by a shutdown."""


class Crashed(Exception):
    """The engine raised something it should not have; it is in the log."""


class Stage(IntEnum):
    QUEUED = 1
    RUNNING = 2
    REPLYING = 3


@dataclass(eq=False, slots=True)
class Job:
    """What stands between an accepted question (or decision) and its one reply."""

    place: Place
    message_id: str | None
    stage: Stage = Stage.QUEUED
    run_id: str | None = None
    farewell: bool = False
    """It was stopped by a shutdown."""
    stopped: bool = False
    _work: asyncio.Task[Any] | None = None

    async def do(self, work: Coroutine[Any, Any, T]) -> T:
        """The result of `work`, which `stop()` cancels. Raises Stopped or Crashed."""
        task = self._work = asyncio.ensure_future(work)
        if self.stopped:
            task.cancel()
        try:
            await asyncio.wait({task})
        except asyncio.CancelledError:
            task.cancel()
            raise
        if task.cancelled():
            raise Stopped
        if (error := task.exception()) is not None:
            logger.opt(exception=error).error(f"run {self.run_id or '-'} crashed")
            raise Crashed
        return task.result()

    def stop(self, *, farewell: bool = False) -> None:
        """Cancel it, unless its reply is already on the way."""
        if self.stage is not Stage.REPLYING and not self.stopped:
            self.stopped, self.farewell = True, farewell
            if self._work is not None:
                self._work.cancel()

    def note(self, event: object) -> None:
        """Learn the run's id, for the account of a cancelled run (an `on_event` callback)."""
        self.run_id = getattr(event, "run_id", None) or self.run_id


class GroupChat:
    """The bot's behaviour in groups and private chats, over any line."""

    def __init__(self, settings: Settings, line: Line, engine: Engine) -> None:
        self._settings = settings.group
        self._engine = engine
        self._sender = Sender(line, settings.group)
        self._queue = ConversationQueue(settings.group.queue_length)
        self._gate = FairGate(settings.group.concurrency)
        self._per_user = RateLimit(settings.group.per_user_minute)
        self._per_group = RateLimit(settings.group.per_group_minute)
        self._seen = capture.Seen()
        self._jobs: set[Job] = set()
        self._busy: set[asyncio.Future[Any]] = set()
        """One for each message, expiry and notice that is being dealt with."""
        self._approvals = Approvals(self._expire)
        self._closing = False

    # -- in

    def first_time(self, bot_id: str, message_id: str) -> bool:
        """Whether this message was not heard before (and from now on it was)."""
        return self._seen.first_time(bot_id, message_id)

    async def receive(self, incoming: Incoming) -> None:
        """Deal with one message that is meant for the bot; returns when its reply is out.

        A run that waits for approval ends here as well: whoever decides it brings the reply.
        """
        with self._being_busy():
            await self._receive(incoming)

    @contextmanager
    def _being_busy(self) -> Iterator[None]:
        over = asyncio.get_running_loop().create_future()
        self._busy.add(over)
        try:
            yield
        finally:
            self._busy.discard(over)
            over.set_result(None)

    async def _receive(self, incoming: Incoming) -> None:
        if self._closing:
            await self._answer(incoming, RESTARTING)
            return
        try:
            agent = self._engine.agent()
        except NotReady as reason:
            if self._may_ask(incoming) is None:
                await self._answer(incoming, reason.sentence)
            return
        self._gate.resize(1 if agent.local else self._settings.concurrency)
        decision = capture.decision_in(incoming.text)
        if decision is not None:
            await self._decide(agent, incoming, decision)
        elif capture.is_stop(incoming.text):
            await self._stop(agent, incoming)
        elif (sentence := self._may_ask(incoming)) is not None:
            if sentence:
                await self._answer(incoming, sentence)
        elif (text := capture.question_text(incoming)) is None:
            await self._answer(incoming, GREETING)
        else:
            await self._ask(agent, incoming, text)

    def _may_ask(self, incoming: Incoming) -> str | None:
        """None when the limits allow it; else the sentence to say, empty when it was said."""
        place = incoming.place
        person = f"{place.platform}:{place.bot_id}:{place.user_id}"
        if not self._per_user.allows(person):
            return TOO_OFTEN if self._per_user.should_tell(person) else ""
        if not place.private and not self._per_group.allows(place.lane):
            return GROUP_TOO_OFTEN if self._per_group.should_tell(place.lane) else ""
        return None

    # -- a question

    async def _ask(self, agent: Agent, incoming: Incoming, text: str) -> None:
        from chathands.agent import Question

        conversation = capture.conversation_id(incoming, self._settings)
        question = Question(
            text=text,
            caller=incoming.caller,
            conversation_id=conversation,
            quoted=capture.quoted_text(incoming),
            meta=capture.meta_of(incoming),
        )
        try:
            turn = self._queue.join(conversation)
        except QueueFull as full:
            await self._answer(incoming, BUSY.format(waiting=full.waiting + 1))
            return
        slot = None
        job = Job(incoming.place, incoming.message_id or None)
        self._jobs.add(job)
        try:
            async with asyncio.timeout(self._settings.queue_wait):
                await job.do(turn.ready())
                slot = self._gate.join(incoming.place.lane)
                await job.do(slot.ready())
            job.stage = Stage.RUNNING
            outcome = await job.do(agent.ask(question, on_event=job.note))
            slot.leave()  # sending needs no model; the turn is kept, so that replies keep order
            await self._conclude(job, outcome)
        except TimeoutError:
            await self._answer(incoming, WAITED.format(seconds=self._settings.queue_wait))
        except (Stopped, Crashed) as end:
            await self._explain(agent, job, end)
        finally:
            self._jobs.discard(job)
            turn.leave()
            if slot is not None:
                slot.leave()

    async def _conclude(self, job: Job, outcome: Finished | Suspended) -> None:
        """Send the reply, or ask for approval; then nobody waits in the queue for it.

        A suspended run gives its turn back: the person's next question is answered meanwhile, and
        the decided run goes on beside it.
        """
        from chathands.agent import Suspended

        job.stage = Stage.REPLYING
        if isinstance(outcome, Suspended):
            waiting = self._approvals.add(outcome.approval, job.place, job.message_id)
            receipt = await self._sender.say(
                job.place,
                notice(waiting),
                quote=job.message_id,
                verbatim=True,
                patience=waiting.seconds_left,  # later it would ask for what is already over
            )
            waiting.message_ids.update(receipt.ids)
        else:
            await self._sender.say(job.place, outcome.text, quote=job.message_id)

    async def _explain(self, agent: Agent, job: Job, end: Exception) -> None:
        """The reply of a run that was stopped or crashed: what it has already caused."""
        early = job.stage is Stage.QUEUED
        job.stage = Stage.REPLYING
        if isinstance(end, Crashed):
            text = f"{BROKEN}（编号 {job.run_id}）" if job.run_id else BROKEN
        elif early or job.run_id is None:
            text = RESTARTING_EARLY if job.farewell else STOPPED_EARLY
        else:
            text = agent.cancelled_reply(job.run_id)
            text = f"{text}\n{RESTARTING}" if job.farewell else text
        await self._sender.say(job.place, text, quote=job.message_id)

    # -- approvals

    async def _decide(self, agent: Agent, incoming: Incoming, decision: capture.Decision) -> None:
        waiting = self._approvals.meant(incoming, decision)
        if isinstance(waiting, str):
            if self._may_ask(incoming) is None:
                await self._answer(incoming, waiting)
            return
        declined = await self._resume(
            agent,
            waiting,
            lambda on_event: agent.decide(
                waiting.approval.id, decision.approve, incoming.caller, on_event=on_event
            ),
        )
        if declined is not None and not waiting.told_no:
            waiting.told_no = True
            await self._answer(incoming, declined.sentence)

    async def _expire(self, waiting: Waiting) -> None:
        try:
            agent = self._engine.agent()
        except NotReady:
            return  # it stays in the store, and is armed again at the next start
        with self._being_busy():
            await self._resume(
                agent, waiting, lambda event: agent.expire(waiting.approval.id, on_event=event)
            )

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
        job = Job(waiting.place, waiting.question_id, Stage.RUNNING)
        self._jobs.add(job)

        def note(event: object) -> None:
            job.note(event)
            if isinstance(event, RunStarted):  # it is taken: from here on it waits for nobody
                self._approvals.remove(waiting)

        try:
            outcome = await job.do(go_on(note))
            if isinstance(outcome, Declined):
                return outcome
            self._approvals.remove(waiting)
            slot.leave()
            if outcome is not None:
                await self._conclude(job, outcome)
        except (Stopped, Crashed) as end:
            self._approvals.remove(waiting)
            await self._explain(agent, job, end)
        finally:
            self._jobs.discard(job)
            slot.leave()
        return None

    def restore(self, agent: Agent) -> None:
        """Wait again for the approvals that were open when the process last ended, and tell those
        whose side effect was cut off by a crash."""
        for suspended in agent.waiting():
            origin = capture.origin_of(suspended.meta)
            if origin is not None:
                self._approvals.add(suspended.approval, *origin)
        for cut_off in agent.unfinished:
            place = capture.place_of(cut_off.caller)
            if place is not None:
                who = cut_off.caller.name or cut_off.caller.user_id
                what = f"{cut_off.name}（{cut_off.target}）" if cut_off.target else cut_off.name
                text = CUT_OFF.format(who=who, what=what, run=cut_off.run_id)
                self._later(self._sender.say(place, text))

    def _later(self, work: Coroutine[Any, Any, object]) -> None:
        """Do it beside everything else; the farewell waits for it."""
        task = asyncio.ensure_future(work)
        self._busy.add(task)
        task.add_done_callback(self._busy.discard)

    # -- endings

    async def _stop(self, agent: Agent, incoming: Incoming) -> None:
        """停: the asker's runs in this chat end, each with its own reply."""
        place = incoming.place
        jobs = [
            job
            for job in self._jobs
            if job.place.same_chat(place)
            and job.place.user_id == place.user_id
            and job.stage is not Stage.REPLYING
        ]
        asked = self._approvals.of_asker(place)
        for job in jobs:
            job.stop()
        for waiting in asked:
            await self._resume(agent, waiting, lambda _, w=waiting: agent.stop(w.approval.id))
        if not jobs and not asked and self._may_ask(incoming) is None:
            await self._answer(incoming, NOTHING_TO_STOP)

    async def say_goodbye(self) -> None:
        """Stop everything and tell everybody who waits, while the connections are still open."""
        self._closing = True
        for job in self._jobs:
            job.stop(farewell=True)
        for waiting in self._approvals:
            text = RESTARTING_PENDING.format(number=waiting.number)
            self._later(
                self._sender.say(waiting.place, text, quote=waiting.question_id, patience=0)
            )
        self._approvals.close()
        clock = asyncio.get_running_loop().time
        until = clock() + FAREWELL_SECONDS
        while self._busy and clock() < until:  # again: a last message may have come meanwhile
            await asyncio.wait(set(self._busy), timeout=until - clock())
        self._sender.leave()  # whoever could not be told holds the process up no longer

    async def _answer(self, incoming: Incoming, text: str) -> None:
        await self._sender.say(incoming.place, text, quote=incoming.message_id or None)
