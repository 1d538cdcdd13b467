"""From a captured message to the one reply: limits, turn, run, answer, approvals, 停, farewell."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from nonebot.log import logger

from chathands.bounded import Bounded
from chathands.run_context import current_run
from chathands.store.outbox import Outbox
from plugins.group_chat import capture
from plugins.group_chat.accepted import Accepted, Debt, account_of
from plugins.group_chat.approvals import Waiting
from plugins.group_chat.commands import Commands
from plugins.group_chat.decisions import Decisions
from plugins.group_chat.hearing import Hearing
from plugins.group_chat.jobs import Again, Crashed, Job, Stage, Stopped, Why
from plugins.group_chat.leftovers import restore_debts
from plugins.group_chat.lifecycle import Engine, NotReady
from plugins.group_chat.messages import Arrival, Attachment, Fate, Forwarded, Incoming, Line, Place
from plugins.group_chat.notices import Allowed, Joined, Notice, Recalled, Removed
from plugins.group_chat.pace import Bundle, Bundles, Signs
from plugins.group_chat.presence import Presence
from plugins.group_chat.pushing import Pushing
from plugins.group_chat.queue import ConversationQueue, FairGate, QueueFull, RateLimit
from plugins.group_chat.redaction import Redaction
from plugins.group_chat.reminders import ReminderDesk
from plugins.group_chat.replies import RESTARTING_EARLY

if TYPE_CHECKING:
    from chathands.agent import Agent, Finished, Suspended
    from chathands.settings import Settings

GREETING = "我在。请在 @我 的同时写下要做的事，例如：@我 杭州明天天气怎么样？"
BUSY = "前面还有 {waiting} 条没答完，这一条没有收下，请等它们答完再问。"
WAITED = "排队超过 {seconds:.0f} 秒还没有轮到，这个问题没有处理，请过一会儿再问。"
TOO_OFTEN = "问得有点快，请过一分钟再问。"
GROUP_TOO_OFTEN = "这个群问得有点快，请过一分钟再问。"
NOTHING_TO_STOP = "现在没有你正在进行的提问。"
RESTARTING_PENDING = (
    "我正在重启。等待确认的 {number} 号操作还没有执行；重启以后在有效期内仍可确认，过期会告诉你。"
)

FAREWELL_SECONDS = 1.0
"""For saying goodbye to everybody; the process must be gone within 2 s of the signal."""
LEAVING_SECONDS = 0.3
"""For writing down what could not be said."""
RECALLED_KEPT = 1024
"""Recalls that are remembered: one may overtake its message, which waits for look-ups."""


class GroupChat:
    """The bot's behaviour in groups and private chats, over any line.

    Without an `outbox` what is owed to people does not survive the process.
    """

    def __init__(
        self,
        settings: Settings,
        line: Line,
        engine: Engine,
        outbox: Outbox | None = None,
        commands: Commands | None = None,
    ) -> None:
        self._settings = settings.group
        self._engine = engine
        self.commands = commands or Commands(settings, engine)
        self.commands.busy = self._load
        self._hearing = Hearing(settings, line)
        self.presence = Presence()
        self.accepted = Accepted(outbox)
        self._queue = ConversationQueue(settings.group.queue_length)
        self._gate = FairGate(settings.group.concurrency)
        self._jobs: set[Job] = set()
        self._busy: set[asyncio.Future[Any]] = set()
        """One for each message, expiry and notice that is being dealt with."""
        self._decisions = Decisions(
            line,
            settings.group,
            engine=engine,
            presence=self.presence,
            accepted=self.accepted,
            gate=self._gate,
            jobs=self._jobs,
            busy=self._being_busy,
            later=self._later,
        )
        self._approvals = self._decisions.approvals
        self._replies = self._decisions.replies
        self.tickets = self._decisions.tickets
        self._sender = self._replies.sender
        self._sender.redaction = Redaction.of(settings)
        self._signs = Signs(
            settings.group,
            self._replies.line.react,
            lambda place, text: self._sender.say(place, text, patience=0),
            self._later,
        )
        self._bundles = Bundles(settings.group)
        self._per_user = RateLimit(settings.group.per_user_minute)
        self._per_group = RateLimit(settings.group.per_group_minute)
        self._recalled: Bounded[tuple[str, str], None] = Bounded(RECALLED_KEPT)
        self._closing = False
        self.reminders = ReminderDesk(
            settings, line, self.presence, silent=self.commands.silent, notify=self.notify
        )

    # -- in

    def admits(self, arrival: Arrival) -> bool:
        """Whether to deal with a message: not by a bot, not too old, not seen before."""
        return self._hearing.admits(arrival)

    def overhear(self, place: Place, what: Sequence[Attachment | Forwarded]) -> None:
        """Somebody sent this, not necessarily to the bot."""
        self._hearing.overhear(place, what)

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
        if self.presence.silent(incoming.place):
            return  # nothing could be said; the group sees why
        if (incoming.place.bot_id, incoming.message_id) in self._recalled:
            return
        incoming = self.commands.ranked(incoming)
        if (said := await self.commands.answer(incoming)) is not None:
            if said and self._may_ask(incoming) is None:
                await self._answer(incoming, said)
            return
        if self._closing:  # written down: the connection may close before it can be said
            place, quote = incoming.place, incoming.message_id or None
            await self._replies.notify(place, RESTARTING_EARLY, quote=quote)
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
            said = await self._decisions.decide(agent, incoming, decision)
            if said is not None and self._may_ask(incoming) is None:
                await self._answer(incoming, said)
        elif capture.is_stop(incoming.text):
            await self._stop(agent, incoming)
        elif (sentence := self._why_not(incoming)) is not None:
            if sentence:
                await self._answer(incoming, sentence)
        else:
            incoming = self._hearing.with_earlier(incoming)
            if capture.question_text(incoming) is None:
                await self._answer(incoming, capture.why_nothing(incoming, GREETING))
            else:
                await self._ask(agent, incoming)

    def _why_not(self, incoming: Incoming) -> str | None:
        """None when the question is taken; else the sentence to say, empty when it was said."""
        sentence = self._may_ask(incoming)
        return self._hearing.too_many_turns(incoming.place) if sentence is None else sentence

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

    async def _ask(self, agent: Agent, incoming: Incoming) -> None:
        from chathands.agent import new_run_id

        conversation = capture.conversation_id(incoming, self._settings)
        bundle = self._bundles.add(conversation, incoming)
        if bundle is not None:
            await bundle.over.wait()
            return
        try:
            ticket = self._queue.join(conversation)
        except QueueFull as full:
            await self._answer(incoming, BUSY.format(waiting=full.waiting + 1))
            return
        slot = None
        place, quote = incoming.place, incoming.message_id or None
        job = Job(place, quote, run_id=new_run_id())
        current_run.set(job.run_id or "")
        bundle = self._bundles.begin(conversation, job, incoming)
        self._jobs.add(job)
        no_more_signs = self._signs.watch(job)
        try:
            debt = await self.accepted.owe(place, quote, run_id=job.run_id, name=incoming.name)
            assert debt is not None  # only a key of one's own can be taken
            logger.info(f"run {job.run_id}: accepted message {quote} of {place.user_id}")
            try:
                async with asyncio.timeout(self._settings.queue_wait):
                    await job.do(ticket.ready())
                    await job.do(self._bundles.settled(bundle))
                    slot = self._gate.join(place.lane)
                    await job.do(slot.ready())
                job.stage = Stage.RUNNING
                outcome = await self._run(agent, job, bundle, debt, conversation)
                slot.leave()  # sending needs no model; the ticket is kept: replies keep their order
                await self._replies.conclude(job, debt, outcome)
            except TimeoutError:
                job.stage = Stage.REPLYING
                text = WAITED.format(seconds=self._settings.queue_wait)
                await self._replies.pay(debt, text, quote=job.message_id)
            except (Stopped, Crashed) as end:
                await self._replies.explain(agent, job, debt, end)
        finally:
            no_more_signs()
            self._jobs.discard(job)
            self._bundles.end(conversation, bundle)
            ticket.leave()
            if slot is not None:
                slot.leave()

    async def _run(
        self, agent: Agent, job: Job, bundle: Bundle, debt: Debt, conversation: str
    ) -> Finished | Suspended:
        """Ask the agent; once more, with everything, when a line was added in time."""
        from chathands.agent import Question, new_run_id

        while True:
            if debt.quote != job.message_id or debt.row.run_id != job.run_id:
                await debt.change(quote=job.message_id, run_id=job.run_id)
            try:
                incoming = await job.do(self._hearing.complete(bundle.question()))
                question = Question(
                    text=capture.question_text(incoming) or "",
                    caller=incoming.caller,
                    conversation_id=conversation,
                    quoted=capture.quoted_text(incoming),
                    meta=capture.meta_of(incoming),
                    run_id=job.run_id,
                )
                return await job.do(agent.ask(question, on_event=job.note))
            except Again:
                job.run_id, job.begun = new_run_id(), False

    def restore(self, agent: Agent) -> None:
        """Wait again for the approvals that were open when the process last ended, and answer
        those whose questions it did not."""
        waiting: dict[str, Waiting] = {}
        for suspended in agent.waiting():
            origin = capture.origin_of(suspended.meta)
            if origin is not None:
                waiting[suspended.run_id] = self._approvals.add(suspended.approval, *origin)
        self._later(restore_debts(agent, self.accepted, self._replies, waiting))

    def _later(self, work: Coroutine[Any, Any, object]) -> None:
        """Do it beside everything else; the farewell waits for it."""
        task = asyncio.ensure_future(work)
        self._busy.add(task)
        task.add_done_callback(self._done)

    def _done(self, task: asyncio.Future[Any]) -> None:
        self._busy.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            logger.opt(exception=error).error("something beside the replies failed")

    # -- later, and what happens around messages

    async def notify(
        self,
        place: Place,
        text: str,
        *,
        quote: str | None = None,
        mention: str | None = None,
        key: str | None = None,
    ) -> bool:
        """Have `text` said in `place` once, now or as soon as it can be; see `Replies.notify`."""
        with self._being_busy():
            return await self._replies.notify(place, text, quote=quote, mention=mention, key=key)

    async def tell(self, places: Sequence[Place], text: str) -> bool:
        """Say `text` as it is at the first of one person's `places` that takes it; whether one
        did, or may have."""
        for place in places:
            receipt = await self._sender.say(place, text, verbatim=True, patience=0)
            if receipt.fate in (Fate.SENT, Fate.UNKNOWN):
                return True
        return False

    def pushing(self, accounts: Callable[[], Sequence[tuple[str, str]]]) -> Pushing:
        """What brings to other chats what tools send there; `accounts`: those connected now."""
        return Pushing(self._sender, self.presence, accounts)

    def connected(self, platform: str, bot_id: str) -> None:
        """An account is there (again): what could not be said is said now."""
        self.presence.forget(bot_id)
        if not self._closing:
            self._later(self._replies.catch_up(f"{platform}:{bot_id}"))
            self.reminders.look()

    async def notice(self, notice: Notice) -> None:
        """A message was taken back, or the bot may (not) speak somewhere."""
        if isinstance(notice, Recalled):
            with self._being_busy():
                await self._recall(notice)
            return
        self.presence.note(notice)
        place = Place(notice.platform, notice.bot_id, notice.group_id, "")
        if isinstance(notice, Allowed | Joined):
            if not self.presence.silent(place):
                self._later(self._replies.catch_up(account_of(place)))
                self.reminders.look()
            return
        for job in [job for job in self._jobs if job.place.same_chat(place)]:
            job.stop(Why.SILENCED)
        if isinstance(notice, Removed):
            await self._decisions.leave(place)
            await self.reminders.leave(place)
        else:
            self._replies.retries.when_speaking(place)

    async def _recall(self, recalled: Recalled) -> None:
        key = (recalled.bot_id, recalled.message_id)
        self._recalled[key] = None
        for bundle in self._bundles.with_message(*key):
            if not bundle.without(recalled.message_id):
                bundle.job.stop(Why.RECALLED)
                continue
            bundle.job.message_id = bundle.messages[-1].message_id or None
            if bundle.job.may_grow:
                bundle.job.grown()
        for job in self._jobs:
            if (job.place.bot_id, job.message_id) == key:
                job.stop(Why.RECALLED)
        await self._decisions.recalled(*key)

    def _load(self) -> tuple[int, int]:
        """Questions that are being dealt with, and those that wait."""
        waiting = sum(job.stage is Stage.QUEUED for job in self._jobs)
        return len(self._jobs) - waiting, waiting

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
        for job in jobs:
            job.stop(Why.ASKER)
        asked = await self._decisions.stop(agent, place)
        if not jobs and not asked and self._may_ask(incoming) is None:
            await self._answer(incoming, NOTHING_TO_STOP)

    async def say_goodbye(self) -> None:
        """Stop everything and tell everybody who waits, while the connections are still open."""
        self._closing = True
        self.reminders.close()
        self._replies.retries.close()
        for job in self._jobs:
            job.stop(Why.SHUTDOWN)
        for waiting in self._approvals:
            text = RESTARTING_PENDING.format(number=waiting.number)
            self._later(
                self._sender.say(waiting.place, text, quote=waiting.question_id, patience=0)
            )
        self._approvals.close()
        # Whoever spoke before the signal is heard: it may be in the socket, or being looked up.
        self._later(self._replies.line.drained(seconds=FAREWELL_SECONDS))
        clock = asyncio.get_running_loop().time
        until = clock() + FAREWELL_SECONDS
        while self._busy and clock() < until:  # again: a last message may have come meanwhile
            await asyncio.wait(set(self._busy), timeout=until - clock())
        self._sender.leave()  # whoever could not be told holds the process up no longer
        if self._busy:  # what they are owed is written down
            await asyncio.wait(set(self._busy), timeout=LEAVING_SECONDS)

    async def _answer(self, incoming: Incoming, text: str) -> None:
        await self._sender.say(incoming.place, text, quote=incoming.message_id or None)
