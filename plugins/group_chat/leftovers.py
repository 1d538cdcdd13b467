"""After a restart: who was not answered, and what their runs had already caused."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from nonebot.log import logger

from chathands.conversation import Status
from chathands.store.outbox import Kind
from plugins.group_chat import capture
from plugins.group_chat.accepted import Accepted, Debt
from plugins.group_chat.approvals import Waiting
from plugins.group_chat.replies import Replies

if TYPE_CHECKING:
    from chathands.agent import Agent
    from chathands.toolbox.audit import Effect, Unfinished

LEFT_OVER = "{who}：你的这个问题，我在重启前没做完，请再问一次。（编号 {run}）"
LEFT_OVER_DONE = (
    "{who}：你的这个问题，我在重启前没做完。已经执行过的如下，再问时请不要重复要求：\n"
    "{done}\n（编号 {run}）"
)
CUT_OFF = (
    "{who}：我上次退出时正在执行 {what}，不确定有没有完成，请人工核对；不会自动重试。（编号 {run}）"
)
ALSO_DONE = "同一次提问里已经执行过的：\n{done}"

_OUTCOMES = {
    Status.OK: "已完成",
    Status.UNKNOWN: "不确定是否完成，请人工核对",
    Status.FAILED: "没有成功",
}


async def restore_debts(
    agent: Agent, accepted: Accepted, replies: Replies, waiting: Mapping[str, Waiting]
) -> None:
    """Answer, once each, those an earlier process did not. `waiting` are the approvals that are
    open again, by run: such a run owes its reply later, not now.

    One message a run: where a side effect was cut off, that is what it says.
    """
    cut_off: dict[str, list[Unfinished]] = {}
    for one in agent.unfinished:
        cut_off.setdefault(one.run_id, []).append(one)
    for debt in await accepted.left_over():
        run_id = debt.row.run_id
        if debt.row.kind is Kind.MESSAGE:
            if not debt.untouched:
                await debt.settle()
        elif run_id in waiting:
            if debt.untouched and debt.row.kind is Kind.QUESTION:
                await replies.ask_for(waiting[run_id], debt)  # it was never shown
            else:
                await debt.drop()
        elif not debt.untouched:
            cut_off.pop(run_id, None)
            await debt.settle()
        else:
            effects = [one for one in agent.finished if one.run_id == run_id]
            await debt.keep(_what_happened(debt, cut_off.pop(run_id, []), effects))
    for run_id, cut in cut_off.items():
        await _tell(accepted, run_id, cut)
    await replies.catch_up()


def _what_happened(debt: Debt, cut: Sequence[Unfinished], effects: Sequence[Effect]) -> str:
    who, run_id = debt.name, debt.row.run_id
    done = "\n".join(
        f"- {_named(one.name, one.target)}：{_OUTCOMES[one.status]}"
        for one in effects
        if one.status in _OUTCOMES
    )
    if cut:
        text = _cut_off(who, run_id, cut)
        return f"{text}\n{ALSO_DONE.format(done=done)}" if done else text
    if done:
        return LEFT_OVER_DONE.format(who=who, done=done, run=run_id)
    return LEFT_OVER.format(who=who, run=run_id)


async def _tell(accepted: Accepted, run_id: str, cut: Sequence[Unfinished]) -> None:
    """A side effect that was cut off, of a run that nothing else is known of."""
    caller = cut[0].caller
    place = capture.place_of(caller)
    if place is None:
        return  # asked in the terminal
    text = _cut_off(caller.name or caller.user_id, run_id, cut)
    await accepted.owe(
        place, None, kind=Kind.MESSAGE, run_id=run_id, text=text, key=f"cut:{run_id}"
    )
    logger.warning(f"run {run_id}: a side effect was cut off by the last exit")


def _cut_off(who: str, run_id: str, cut: Sequence[Unfinished]) -> str:
    what = "、".join(_named(one.name, one.target) for one in cut)
    return CUT_OFF.format(who=who, what=what, run=run_id)


def _named(name: str, target: str) -> str:
    return f"{name}（{target}）" if target else name
