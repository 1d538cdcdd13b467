"""Approvals that wait in a chat: how one is asked for, which one a yes means, when it expires."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Callable, Coroutine, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from plugins.group_chat.capture import APPROVE, DENY, Decision
from plugins.group_chat.messages import Incoming, Place, Quoted
from plugins.group_chat.speech import APPROVAL_HEAD

if TYPE_CHECKING:
    from chathands.toolbox import Approval

NOT_WAITING = "引用的不是等待确认的消息，或者它已经处理过、已经过期。"
UNREADABLE = f"引用的消息读取不到，请 @我 并写上编号，例如：{APPROVE} 1"
OTHER_NUMBER = (
    "引用的那一条和写的编号不是同一个，没有执行。请只引用要处理的那条消息，或者只写它的编号。"
)
NONE_WAITING = "现在没有等待确认的操作。如果是在回答我的问题，请把话说完整。"

REQUEST_HEAD = re.compile(rf"{APPROVAL_HEAD} (?P<number>\d+) · (?P<run>[0-9A-Z-]+)】")
"""How a message that asks begins: with the number and the run."""


@dataclass(eq=False, slots=True)
class Waiting:
    """One approval somebody was asked for."""

    approval: Approval
    place: Place
    question_id: str | None
    """The asker's message, which the final reply quotes."""
    message_ids: set[str] = field(default_factory=set)
    """The messages that ask for it: quoting one of them names this approval."""
    told_no: bool = False
    """Somebody without the right has been told so; the next one is not."""
    timer: asyncio.TimerHandle | None = None

    @property
    def number(self) -> int:
        return self.approval.number

    @property
    def seconds_left(self) -> float:
        return max(0.0, self.approval.expires_at - time.time())


def notice(waiting: Waiting) -> str:
    """The message that asks: what, where to, the full content, and the words to answer with."""
    approval = waiting.approval
    seconds = max(1, round(waiting.seconds_left))
    if waiting.place.private:
        how = (
            f"请在 {seconds} 秒内回复 {APPROVE} 或 {DENY}，"
            f"有几条时写上编号：{APPROVE} {approval.number}"
        )
    else:
        how = (
            f"请群主或管理员在 {seconds} 秒内引用这条消息回复 {APPROVE} 或 {DENY}，"
            f"也可以 @我 发送：{APPROVE} {approval.number}"
            f"；提问的人可以 {DENY}"
        )
    who = approval.caller.name or approval.caller.user_id
    lines = [f"{APPROVAL_HEAD} {approval.number} · {approval.run_id}】{who} 要我执行："]
    lines.append(f"操作：{approval.call.name}")
    if approval.target:
        lines.append(f"目标：{approval.target}")
    lines += [approval.shown.strip(), "————"]
    if approval.reason:
        lines.append(f"原因：{approval.reason}")
    return "\n".join((*lines, how))


class Approvals:
    """Those waiting in all chats; `on_expired` is called once for each whose time ran out."""

    def __init__(self, on_expired: Callable[[Waiting], Coroutine[Any, Any, None]]) -> None:
        self._on_expired = on_expired
        self._waiting: dict[str, Waiting] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    def __iter__(self) -> Iterator[Waiting]:
        return iter(list(self._waiting.values()))

    def add(self, approval: Approval, place: Place, question_id: str | None) -> Waiting:
        """Wait for a decision until the approval expires."""
        waiting = Waiting(approval, place, question_id)
        self._waiting[approval.id] = waiting
        loop = asyncio.get_running_loop()
        waiting.timer = loop.call_later(waiting.seconds_left, self._expire, waiting)
        return waiting

    def remove(self, waiting: Waiting) -> None:
        self._waiting.pop(waiting.approval.id, None)
        if waiting.timer is not None:
            waiting.timer.cancel()

    def close(self) -> None:
        """Let go of the timers. The approvals stay in the store and are armed at the next start."""
        for waiting in list(self._waiting.values()):
            self.remove(waiting)

    def of_asker(self, place: Place) -> list[Waiting]:
        """Those this person asked for in this chat."""
        return [
            waiting
            for waiting in self
            if waiting.place.same_chat(place) and waiting.place.user_id == place.user_id
        ]

    def meant(self, incoming: Incoming, decision: Decision) -> Waiting | str:
        """The approval a decision means, or the sentence to answer with.

        A quote decides alone: who quotes something that is over does not mean another one.
        """
        here = [waiting for waiting in self if waiting.place.same_chat(incoming.place)]
        if incoming.quoted is not None:
            quoted, number = incoming.quoted, decision.number
            found = _asked_for_in(quoted, here)
            if found is not None:
                # Who points at one and writes the number of another may mean either.
                return found if number in (None, found.number) else OTHER_NUMBER
            unreadable = quoted.text is None and not quoted.by_bot
            if number is None and unreadable and incoming.mentioned and here:
                return UNREADABLE
            if not incoming.mentioned:
                return NOT_WAITING
            if number is None:
                # The asker's own message is the other thing that names an approval. Whatever else
                # is quoted, the yes is to that, and not to what happens to wait.
                here = [waiting for waiting in here if waiting.question_id == quoted.message_id]
                if not here:
                    return NOT_WAITING
        if decision.number is not None:
            for waiting in here:
                if waiting.number == decision.number:
                    return waiting
            return f"没有编号 {decision.number} 的待确认操作，它可能已经处理过或过期了。"
        if not here:
            return NONE_WAITING
        if len(here) > 1:
            numbers = "、".join(str(waiting.number) for waiting in here)
            return (
                f"有 {len(here)} 条等待确认（编号 {numbers}），"
                f"请引用其中一条，或写上编号：{APPROVE} {here[0].number}"
            )
        return here[0]

    def _expire(self, waiting: Waiting) -> None:
        task = asyncio.ensure_future(self._on_expired(waiting))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


def _asked_for_in(quoted: Quoted, here: Sequence[Waiting]) -> Waiting | None:
    """The one of `here` that the quoted message asks for."""
    found = [waiting for waiting in here if quoted.message_id in waiting.message_ids]
    if not found and quoted.by_bot and (head := REQUEST_HEAD.match(quoted.text or "")):
        # Asked for before a restart, or the send was not acknowledged: no id is known.
        found = [w for w in here if w.approval.run_id == head["run"]]
        found = [w for w in found if w.number == int(head["number"])]
    return found[0] if found else None
