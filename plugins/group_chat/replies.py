"""How a debt is paid: the one reply, now or when it can be said, and what a stopped run says."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Coroutine, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from nonebot.log import logger

from chathands.settings import GroupSettings
from chathands.store.outbox import Kind
from plugins.group_chat.accepted import Accepted, Debt
from plugins.group_chat.approvals import Approvals, Waiting, notice
from plugins.group_chat.delivery import Delivery, paying
from plugins.group_chat.jobs import Crashed, Job, Stage, Why
from plugins.group_chat.messages import Fate, Line, Place
from plugins.group_chat.notices import Silenced
from plugins.group_chat.presence import Presence
from plugins.group_chat.reply import RECONNECT_SECONDS, Receipt, Sender
from plugins.group_chat.retries import Retries

if TYPE_CHECKING:
    from chathands.agent import Agent, Finished, Suspended

BROKEN = "程序出了错，没能回答，请管理员查看日志。"
STOPPED_EARLY = "已停止，这个问题还没有开始处理。"
RESTARTING = "我正在重启，请过一分钟再问。"
RESTARTING_EARLY = "我正在重启，这个问题还没有开始处理，请过一分钟再问一次。"
WAS_SILENCED = "刚才我在这个群里不能发言，{name}的问题没有做完，请再问一次。"
WAS_RECALLED = "{name} 的提问已撤回。"
FILES_NOT_KEPT = "（附带的文件当时没能发出来，需要的话请再问一次。）"

FLUSH_PATIENCE = 5.0
"""For a message of earlier: the next connection tries again."""
FLUSH_LANES = 8
"""Chats that are caught up with at once after a reconnect; more looks like flooding to QQ."""
APOLOGY_SECONDS = 600.0
"""After a longer mute nobody remembers the question that was not answered."""


class Replies:
    """Everything this plugin says."""

    def __init__(
        self,
        line: Line,
        settings: GroupSettings,
        presence: Presence,
        accepted: Accepted,
        approvals: Approvals,
        later: Callable[[Coroutine[Any, Any, object]], None],
    ) -> None:
        self.line = Delivery(line, presence)
        self.sender = Sender(self.line, settings)
        self._presence = presence
        self._accepted = accepted
        self._approvals = approvals
        self.retries = Retries(
            presence,
            later=later,
            connected=lambda bot_id: self.line.connected(bot_id, seconds=0),
            catch_up=self.catch_up,
        )
        self._in_hand: set[str] = set()
        """Ids of debts that are being paid."""

    # -- one reply

    async def pay(
        self,
        debt: Debt,
        text: str,
        *,
        quote: str | None = None,
        files: Sequence[tuple[str, bytes]] = (),
        patience: float = RECONNECT_SECONDS,
    ) -> Receipt:
        """Say `text`, which is what is owed; what cannot be said now is kept for later, without
        the `files` behind it."""
        place = debt.place
        later = f"{text}\n{FILES_NOT_KEPT}" if files else text
        with self._held(debt):
            if self._presence.silent(place):
                await self._keep(debt, later)
                return Receipt(fate=Fate.REFUSED)
            with paying(debt):
                receipt = await self.sender.say(
                    place,
                    text,
                    quote=quote,
                    mention=debt.mention,
                    files=files,
                    patience=patience,
                )
            if debt.untouched and await self._may_come_later(receipt.fate, place):
                await self._keep(debt, later)
                if receipt.fate is Fate.DOWN:
                    self.retries.when_answering(place)
            else:
                await debt.settle()
            logger.info(f"run {debt.row.run_id or '-'}: reply {receipt.fate}")
            return receipt

    def _held(self, debt: Debt) -> _InHand:
        return _InHand(self._in_hand, debt.row.id)

    async def _keep(self, debt: Debt, text: str) -> None:
        if self._presence.removed(debt.place):
            await debt.drop()
        else:
            await debt.keep(text)

    async def _may_come_later(self, fate: Fate, place: Place) -> bool:
        """Whether what surely was not shown may be said another time. UNKNOWN: the process left in
        the middle of it."""
        return fate in (Fate.DOWN, Fate.UNKNOWN) or (
            fate is Fate.REFUSED and await self._muted(place)
        )

    async def _muted(self, place: Place) -> bool:
        """Whether a refused send has to do with a mute we were not told of."""
        seconds = await self.line.muted(place)
        if seconds > 0 and place.group_id is not None:
            logger.warning(f"group {place.group_id}: muted for {seconds:.0f} s, waiting")
            group = (place.platform, place.bot_id, place.group_id)
            everybody = seconds == math.inf
            self._presence.note(
                Silenced(*group, everybody=everybody, seconds=None if everybody else seconds)
            )
            self.retries.when_speaking(place)
        return self._presence.silent(place)

    async def conclude(self, job: Job, debt: Debt, outcome: Finished | Suspended) -> None:
        """Send the reply, or ask for approval; then nobody waits in the queue for it.

        A suspended run gives its turn back: the person's next question is answered meanwhile, and
        the decided run goes on beside it. What it still owes is in the store of suspended runs.
        """
        from chathands.agent import Suspended

        job.stage = Stage.REPLYING
        if isinstance(outcome, Suspended):
            await self.ask_for(
                self._approvals.add(outcome.approval, job.place, job.message_id), debt
            )
        else:
            await self.pay(debt, outcome.text, quote=job.message_id, files=outcome.files)

    async def ask_for(self, waiting: Waiting, debt: Debt) -> None:
        """Send the message that asks for an approval; when the process leaves before it could, the
        debt stays, and the next one asks."""
        with self._held(debt), paying(debt):
            receipt = await self.sender.say(
                waiting.place,
                notice(waiting),
                quote=waiting.question_id,
                verbatim=True,
                patience=waiting.seconds_left,  # later it would ask for what is already over
            )
        waiting.message_ids.update(receipt.ids)
        if not (self.sender.left and debt.untouched):
            await debt.settle()

    async def explain(self, agent: Agent, job: Job, debt: Debt, end: Exception) -> None:
        """The reply of a run that was stopped or crashed: what it has already caused."""
        early = job.stage is Stage.QUEUED or not job.begun
        job.stage = Stage.REPLYING
        account = "" if early else agent.cancelled_reply(job.run_id)
        changed = not early and agent.changed_something(job.run_id)
        quote = job.message_id
        if isinstance(end, Crashed):
            text = f"{BROKEN}（编号 {job.run_id}）" if job.run_id else BROKEN
        elif job.why is Why.RECALLED:
            if not changed:  # nothing happened, and the question is gone: nothing to say
                await debt.drop()
                return
            text, quote = f"{WAS_RECALLED.format(name=debt.name)}{account}", None
        elif job.why is Why.SILENCED:
            text = WAS_SILENCED.format(name=debt.name)
            text = f"{text}\n{account}" if changed else text
            await debt.keep(text, **({} if changed else {"seconds": APOLOGY_SECONDS}))
            if self._presence.removed(debt.place):
                await debt.drop()
            return
        elif job.why is Why.SHUTDOWN:
            text = RESTARTING_EARLY if early else f"{account}\n{RESTARTING}"
        else:
            text = STOPPED_EARLY if early else account
        await self.pay(debt, text, quote=quote)

    # -- later

    async def notify(
        self,
        place: Place,
        text: str,
        *,
        quote: str | None = None,
        mention: str | None = None,
        key: str | None = None,
    ) -> bool:
        """Have `text` said in `place`, now or as soon as it can be: after a reconnect, a mute or a
        restart. It is on disk when this returns or is cancelled, and is said once.

        `key` names the occasion (a reminder's id): a second call with it does nothing and gives
        False. `mention` is called up, where that is possible.
        """
        debt = await self._accepted.owe(
            place, quote, kind=Kind.MESSAGE, text=text, key=key, mention=mention
        )
        if debt is None:
            return False
        await self.pay(debt, text, quote=quote, patience=FLUSH_PATIENCE)
        return True

    async def catch_up(self, bot: str | None = None) -> None:
        """Say what could not be said before: of one account (`platform:bot_id`), or of all."""
        lanes: dict[str, list[Debt]] = {}
        for debt in await self._accepted.open(bot):
            if debt.row.kind is Kind.MESSAGE and debt.untouched:
                lanes.setdefault(debt.place.lane, []).append(debt)
        width = asyncio.Semaphore(FLUSH_LANES)
        await asyncio.gather(*(self._catch_up(lane, width) for lane in lanes.values()))

    async def _catch_up(self, debts: Iterable[Debt], width: asyncio.Semaphore) -> None:
        async with width:
            for debt in debts:
                if debt.row.id in self._in_hand or self._presence.silent(debt.place):
                    continue
                with self._held(debt):  # first this, then the look: it may have been paid meanwhile
                    owed = await debt.still_owed()
                if owed:
                    await self.pay(debt, debt.text, quote=debt.quote, patience=FLUSH_PATIENCE)


class _InHand:
    """While inside, nobody else pays the debt."""

    def __init__(self, ids: set[str], mine: str) -> None:
        self._ids, self._mine = ids, mine

    def __enter__(self) -> None:
        self._ids.add(self._mine)

    def __exit__(self, *_: object) -> None:
        self._ids.discard(self._mine)
