"""Approvals that programs ask for (HTTP, MCP): SUPERUSERS are told in private and answer there.

The tool server is another process; both see the tickets in the store.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from nonebot.log import logger

from chathands.bounded import Bounded
from chathands.errors import StoreError
from plugins.group_chat.approvals import REQUEST_HEAD, Waiting
from plugins.group_chat.capture import APPROVE, DENY, Decision
from plugins.group_chat.messages import Fate, Incoming, Place, Quoted
from plugins.group_chat.speech import APPROVAL_HEAD

if TYPE_CHECKING:
    from chathands.agent.tickets import Asked
    from chathands.store import TicketRow, Tickets
    from plugins.group_chat.reply import Sender

LOOK_SECONDS = 1.0
"""Between two looks into the store: people are told within two seconds, and a look is one indexed
statement."""
MESSAGES_KEPT = 1024
"""Messages that asked, for whoever quotes one."""
TOLD_AT_ONCE = 5
"""Tickets told in a row; a second later the next. More at once looks like flooding to QQ."""

OVER = "编号 {number} 的程序操作已经处理过，或者已经过期。"
APPROVED = "已批准 {number}：{who} 凭票据再请求一次时执行，只执行一次。"
DENIED = "已拒绝 {number}，不会执行。"
SEVERAL = "有 {count} 条等待确认（编号 {numbers}），请引用其中一条，或写上编号：{word} {first}"
AMBIGUOUS = "编号 {number} 有两条在等确认，请引用要确认的那一条。"

SuperuserChats = Callable[[], Sequence[Sequence[Place]]]


class ProgramTickets:
    """Tells of tickets and takes the answers."""

    def __init__(self, sender: Sender) -> None:
        self._sender = sender
        self._messages: Bounded[tuple[str, str], str] = Bounded(MESSAGES_KEPT)
        """(bot, message) → the ticket it asked for."""

    # -- out

    async def announce_forever(self, tickets: Tickets, chats: SuperuserChats) -> None:
        """Tell of every new ticket, until cancelled. What fails is tried again a second later, and
        logged when it is not what failed before: once a second would bury everything else."""
        failure = ""
        while True:
            try:
                await self.announce(tickets, chats)
                failure = ""
            except StoreError as error:
                if str(error) != failure:
                    failure = str(error)
                    logger.warning(f"approvals of programs cannot be read: {failure}")
            await asyncio.sleep(LOOK_SECONDS)

    async def announce(self, tickets: Tickets, chats: SuperuserChats) -> None:
        """Tell of the tickets that are new. One that reached nobody is told of again.

        Without a connected account nothing is taken: another process may have one.
        """
        people = [places for places in chats() if places]
        if not people:
            return
        rows = await tickets.announce(TOLD_AT_ONCE)
        untold = {row.id for row in rows}
        try:
            for row in rows:
                told = await asyncio.gather(*(self._tell(row, places) for places in people))
                if any(told):
                    untold.discard(row.id)
        finally:  # also when the bot leaves in the middle
            for ticket_id in untold:
                await tickets.unannounce(ticket_id)

    async def _tell(self, row: TicketRow, places: Sequence[Place]) -> bool:
        """Whether this person has been told, or may have been."""
        from chathands.agent.tickets import asked_of

        text = notice(asked_of(row))
        for place in places:
            receipt = await self._sender.say(place, text, verbatim=True, patience=0)
            for message_id in receipt.ids:
                self._messages[place.bot_id, message_id] = row.id
            if receipt.fate in (Fate.SENT, Fate.UNKNOWN):
                logger.info(f"approval {row.number} of {row.asker} told to {place.user_id}")
                return True
        return False

    # -- in

    async def answer(
        self, tickets: Tickets, incoming: Incoming, decision: Decision, here: Sequence[Waiting]
    ) -> str | None:
        """Decide the ticket that is meant; the sentence to answer with. None when none is meant:
        it is about `here`, the runs that wait in this chat, or nothing.

        Only SUPERUSERS are asked, and only in private.
        """
        if incoming.role != "superuser" or not incoming.place.private:
            return None
        try:
            return await self._answer(tickets, incoming, decision, here)
        except StoreError as error:
            logger.error(f"approvals of programs cannot be decided: {error}")
            return None if here else error.sentence

    async def _answer(
        self, tickets: Tickets, incoming: Incoming, decision: Decision, here: Sequence[Waiting]
    ) -> str | None:
        row: TicketRow | None
        if decision.number is not None:
            row = await tickets.numbered(decision.number)
            if row is None or not _about(incoming.quoted, decision.number):
                return None
            if any(one.number == decision.number for one in here):
                return AMBIGUOUS.format(number=decision.number)
        elif incoming.quoted is not None:
            row = await self._quoted(tickets, incoming.place.bot_id, incoming.quoted)
            if row is None:
                return None
        else:
            waiting = await tickets.waiting()
            if not waiting:
                return None
            if len(waiting) + len(here) > 1:
                numbers = [one.number for one in (*here, *waiting)]
                return SEVERAL.format(
                    count=len(numbers),
                    numbers="、".join(map(str, numbers)),
                    word=APPROVE if decision.approve else DENY,
                    first=numbers[0],
                )
            row = waiting[0]
        decided = await tickets.decide(row.id, approve=decision.approve, by=incoming.caller.user_id)
        if decided is None:
            return OVER.format(number=row.number)
        logger.info(f"approval {row.number}: {decided.state} by {incoming.caller.user_id}")
        sentence = APPROVED if decision.approve else DENIED
        return sentence.format(number=row.number, who=row.asker)

    async def _quoted(self, tickets: Tickets, bot_id: str, quoted: Quoted) -> TicketRow | None:
        ticket_id = self._messages.get((bot_id, quoted.message_id))
        if ticket_id is not None:
            return await tickets.get(ticket_id)
        head = REQUEST_HEAD.match(quoted.text or "") if quoted.by_bot else None
        row = await tickets.numbered(int(head["number"])) if head else None
        # Numbers come round again; the run's does not.
        return row if head and row is not None and row.data.get("run") == head["run"] else None


def _about(quoted: Quoted | None, number: int) -> bool:
    """Whether what is quoted, if it asks for anything, asks for this."""
    head = REQUEST_HEAD.match(quoted.text or "") if quoted is not None else None
    return head is None or int(head["number"]) == number


def notice(asked: Asked) -> str:
    """The message that asks: who wants what, where to, the full content, and how to answer."""
    from chathands.agent.tickets import notice_lines

    number = asked.ticket.number
    seconds = max(1, round(asked.ticket.expires_at - time.time()))
    head = f"{APPROVAL_HEAD} {number} · {asked.run_id}】"
    lines = notice_lines(asked)
    how = (
        f"请在 {seconds} 秒内引用这条消息回复 {APPROVE} 或 {DENY}，"
        f"也可以直接发送：{APPROVE} {number}"
    )
    return "\n".join((head + lines[0], *lines[1:], how))
