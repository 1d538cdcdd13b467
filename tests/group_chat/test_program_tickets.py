"""Approvals that programs ask for: SUPERUSERS are told in private, once, and answer there."""

from __future__ import annotations

import asyncio
import itertools
from dataclasses import asdict

import pytest
from nonebot.log import logger

from chathands.conversation import ToolCall
from chathands.errors import StoreError
from chathands.store import codec
from chathands.toolbox import Caller
from plugins.group_chat.messages import Fate, Place, Quoted
from tests.group_chat.kit import PUSH, chatting
from tests.support.virtual_clock import real_time, virtual

BOSS = "9001"
CHATS = [[Place("qq", "10000", None, BOSS)]]
_ids = itertools.count()


async def ask(chat, content: str = "九月汇总 [CQ:at,qq=all]"):
    """A program asks, as another process would."""
    call = ToolCall("c", "push", {"robot": "销售群", "content": content})
    with real_time():
        return await chat.agent.store.tickets.put(
            f"t{next(_ids)}",
            platform="http",
            asker="报表程序",
            call_hash="h",
            seconds=300,
            data={
                "call": codec.call_to_dict(call),
                "caller": asdict(Caller("报表程序", name="报表程序", platform="http")),
                "run": "A7F3-09",
                "target": "销售群",
                "shown": f"正文：{content}",
                "reason": "这个操作会影响群外或其他人。",
                "spec": "",
            },
        )


async def tell(chat, chats=CHATS):
    await chat.tickets.announce(chat.agent.store.tickets, lambda: chats)


async def state(chat, row):
    found = await chat.agent.store.tickets.get(row.id)
    return found.state, found.decided_by


async def boss(chat, text, **about):
    before = len(chat.line.sent)
    about = {"user": BOSS, "group": None, "role": "superuser"} | about
    await chat.says(text, **about)
    return [message.text for message in chat.line.sent[before:]]


@virtual
async def test_they_are_told_once_with_target_and_full_content(tmp_path):
    async with chatting(tmp_path, []) as chat:
        row = await ask(chat)
        await tell(chat)
        await tell(chat)
        (message,) = chat.line.sent
        assert message.place == CHATS[0][0]
        for part in (
            f"【待确认 {row.number} · A7F3-09】", "报表程序", "http", "push", "销售群",
            "九月汇总 [CQ:at,qq=all]", "确认", "取消", "秒",
        ):  # fmt: skip
            assert part in message.text


@pytest.mark.parametrize(
    ("words", "became"),
    [("确认 {n}", "yes"), ("取消 {n}", "no"), ("确认", "yes"), ("取消。", "no")],
)
@virtual
async def test_a_word_in_private_decides(tmp_path, words, became):
    async with chatting(tmp_path, []) as chat:
        row = await ask(chat)
        await tell(chat)
        (said,) = await boss(chat, words.format(n=row.number))
        assert str(row.number) in said
        assert await state(chat, row) == (became, BOSS)
        again = await boss(chat, f"取消 {row.number}")
        assert "已经处理过" in again[0]
        assert await state(chat, row) == (became, BOSS)


@virtual
async def test_a_quote_of_the_message_decides_also_after_a_restart(tmp_path):
    async with chatting(tmp_path, []) as chat:
        first, second = await ask(chat, "甲"), await ask(chat, "乙")
        await tell(chat)
        text = chat.line.sent[1].text
        await boss(chat, "确认", quoted="b2")
        assert await state(chat, second) == ("yes", BOSS)
        third = await ask(chat, "丙")
        head = text.replace(str(second.number), str(third.number))
        await boss(chat, "确认", quoted=Quoted("gone", head, by_bot=True, sender_id="10000"))
        assert await state(chat, third) == ("yes", BOSS)
        forged = Quoted("x", head.replace(str(third.number), str(first.number)), by_bot=False)
        await boss(chat, "确认", quoted=forged)
        other_run = head.replace(str(third.number), str(first.number)).replace("A7F3-09", "B1-22")
        await boss(chat, "确认", quoted=Quoted("y", other_run, by_bot=True, sender_id="10000"))
        await boss(chat, f"确认 {first.number}", quoted=Quoted("z", head, by_bot=True))
        assert await state(chat, first) == ("waiting", "")


@pytest.mark.parametrize(
    "about",
    [
        {"user": "5", "role": "member"},
        {"user": "5", "role": "admin", "group": "700"},
        {"user": "5", "role": "owner", "group": "700"},
        {"group": "700"},
    ],
)
@virtual
async def test_nobody_else_and_no_group_decides(tmp_path, about):
    async with chatting(tmp_path, []) as chat:
        row = await ask(chat)
        await tell(chat)
        for words in (f"确认 {row.number}", "确认", f"取消 {row.number}"):
            await boss(chat, words, **about)
        assert await state(chat, row) == ("waiting", "")


@virtual
async def test_a_bare_word_with_several_waiting_decides_none(tmp_path):
    async with chatting(tmp_path, [PUSH, "已经发了。"]) as chat:
        await chat.says("推送", user=BOSS, group=None, role="superuser")
        row = await ask(chat)
        await tell(chat)
        (said,) = await boss(chat, "确认")
        assert f"1、{row.number}" in said
        assert chat.pushed == []
        assert await state(chat, row) == ("waiting", "")
        await boss(chat, f"确认 {row.number}")
        assert chat.pushed == []
        await boss(chat, "确认 1")
        assert len(chat.pushed) == 1
        assert await state(chat, row) == ("yes", BOSS)


@virtual
async def test_what_reached_nobody_is_told_again_and_what_may_have_is_not(tmp_path):
    async with chatting(tmp_path, []) as chat:
        await ask(chat)
        await tell(chat, [])
        assert chat.line.sent == []
        chat.line.fates = [Fate.REFUSED, Fate.UNKNOWN]
        await tell(chat)
        await tell(chat)
        await tell(chat)
        assert len(chat.line.sent) == 2


@virtual
async def test_an_account_that_is_no_friend_is_passed_over(tmp_path):
    chats = [[Place("qq", "10000", None, BOSS), Place("qq", "10001", None, BOSS)]]
    async with chatting(tmp_path, []) as chat:
        await ask(chat)
        chat.line.fates = [Fate.REFUSED]
        await tell(chat, chats)
        assert [message.place.bot_id for message in chat.line.sent] == ["10000", "10001"]


@virtual
async def test_a_store_that_cannot_be_read_is_logged_once_and_looked_at_again(tmp_path):
    looks = asyncio.Queue()

    def broken():
        looks.put_nowait(None)
        raise StoreError("state.db: disk I/O error")

    said: list[str] = []
    handler = logger.add(said.append, level="WARNING", format="{message}")
    async with chatting(tmp_path, []) as chat:
        forever = asyncio.create_task(
            chat.tickets.announce_forever(chat.agent.store.tickets, broken)
        )
        for _ in range(4):
            await looks.get()
        forever.cancel()
    logger.remove(handler)
    assert [line.strip() for line in said] == [
        "approvals of programs cannot be read: state.db: disk I/O error"
    ]
