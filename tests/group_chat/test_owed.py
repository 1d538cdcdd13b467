"""Every accepted question is answered once, whenever the process dies: (moment × what is said)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from chathands.store.outbox import State
from chathands.upstreams.scripted import HANG
from plugins.group_chat.messages import Fate, Place
from plugins.group_chat.replies import RESTARTING_EARLY
from tests.group_chat.kit import PUSH, Chat, action, chatting
from tests.support.virtual_clock import real_time, virtual

LEFT_OVER = "重启前没做完"
SLOW_PUSH = action("push", robot="销售群", content="慢")
GROUP = Place("qq", "10000", "700", "1")


async def states(chat: Chat) -> list[tuple[str, State]]:
    """What stands in the outbox: text and state."""
    assert chat.accepted._outbox is not None
    rows = [*await chat.accepted._outbox.open(), *await chat.accepted._outbox.unknown()]
    return [(row.data["text"], row.state) for row in rows]


async def in_the_queue(chat: Chat) -> None:
    chat.says("Q1")
    chat.says("Q2")
    await asyncio.sleep(1)


async def while_the_model_thinks(chat: Chat) -> None:
    chat.says("Q1")
    await asyncio.sleep(1)


async def while_the_socket_is_down(chat: Chat) -> None:
    chat.line.answers = False
    chat.says("Q1")
    await asyncio.sleep(1)


async def before_the_acknowledgement(chat: Chat) -> None:
    chat.line.acknowledges = asyncio.Event()
    chat.says("Q1")
    await asyncio.sleep(1)
    assert len(chat.line.sent) == 1


async def after_the_reply(chat: Chat) -> None:
    await chat.says("Q1")


async def amid_a_side_effect(chat: Chat) -> None:
    chat.says("Q1")
    await asyncio.sleep(1)
    assert chat.pushed == ["销售群:慢"]


async def behind_a_side_effect(chat: Chat) -> None:
    chat.says("Q1")
    await asyncio.sleep(1)
    assert chat.pushed == ["销售群:九月汇总 [CQ:at,qq=all]"]


@asynccontextmanager
async def killed(
    tmp_path: Path,
    replies: list[Any],
    moment: Callable[[Chat], Coroutine[Any, Any, None]],
    **more: Any,
):
    """The bot that starts on what another one left at that moment."""
    async with chatting(tmp_path / "first", replies, **more) as first:
        await moment(first)
        image = first.crash_image(tmp_path / "second")
        first.line.answers = True
        if first.line.acknowledges:
            first.line.acknowledges.set()
    async with chatting(image, lambda _: "好。", **more) as second:
        await asyncio.sleep(1)
        yield second


@pytest.mark.parametrize(
    ("moment", "replies", "said"),
    [
        (in_the_queue, [HANG], [("m1", LEFT_OVER), ("m2", LEFT_OVER)]),
        (while_the_model_thinks, [HANG], [("m1", LEFT_OVER)]),
        (while_the_socket_is_down, ["好。"], [("m1", LEFT_OVER)]),
        (before_the_acknowledgement, ["好。"], []),
        (after_the_reply, ["好。"], []),
        (amid_a_side_effect, [SLOW_PUSH, "好。"], [("m1", "不确定有没有完成")]),
        (behind_a_side_effect, [PUSH, HANG], [("m1", "push（销售群）：已完成")]),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
@virtual
async def test_who_was_not_answered_before_a_kill_is_answered_once_after_it(
    tmp_path, moment, replies, said
):
    async with killed(tmp_path, replies, moment, approval="never") as chat:
        assert [message.quote for message in chat.line.sent] == [quote for quote, _ in said]
        for message, (_, part) in zip(chat.line.sent, said, strict=True):
            assert part in message.text
            assert "user1" in message.text
            assert message.place == GROUP
        left = await states(chat)
        ambiguous = moment is before_the_acknowledgement
        assert [state for _, state in left] == ([State.UNKNOWN] if ambiguous else [])
        with real_time():
            again = chat.crash_image(tmp_path / "third")
    async with chatting(again, []) as third:
        await asyncio.sleep(1)
        assert third.line.sent == []


@virtual
async def test_a_kill_before_an_approval_was_shown_shows_it_after_the_restart(tmp_path):
    async def unseen(chat: Chat) -> None:
        chat.line.answers = False
        chat.says("推送")
        await asyncio.sleep(1)

    async with killed(tmp_path, [PUSH], unseen) as chat:
        (notice,) = chat.line.texts
        assert "待确认 1" in notice
        await chat.says("确认", user="5", role="admin", quoted="b1")
        assert len(chat.pushed) == 1
        assert chat.line.texts[1:] == ["好。"]
        assert await states(chat) == []


@virtual
async def test_a_kill_while_an_approval_waits_shows_nothing_twice(tmp_path):
    async def waiting(chat: Chat) -> None:
        await chat.says("推送")

    async with killed(tmp_path, [PUSH], waiting) as chat:
        assert chat.line.sent == []
        await chat.says("确认 1", user="5", role="admin")
        assert len(chat.pushed) == 1
        assert chat.line.texts == ["好。"]


@virtual
async def test_a_kill_after_the_yes_says_what_was_done(tmp_path):
    async def decided(chat: Chat) -> None:
        await chat.says("推送")
        chat.says("确认 1", user="5", role="admin")
        await asyncio.sleep(1)
        assert len(chat.pushed) == 1

    async with killed(tmp_path, [PUSH, HANG], decided) as chat:
        (text,) = chat.line.texts
        assert "push（销售群）：已完成" in text
        assert chat.line.sent[0].quote == "m1"


@virtual
async def test_a_reply_that_outlives_the_patience_comes_with_the_next_connection(tmp_path):
    async with chatting(tmp_path, ["好。"]) as chat:
        chat.line.answers = False

        async def away(bot_id: str, *, seconds: float) -> bool:
            await asyncio.sleep(seconds)
            return False

        chat.line.connected = away  # type: ignore[method-assign]
        await chat.says("Q1")
        assert chat.line.sent == []
        chat.line.answers = True
        chat.connected("qq", "10000")
        assert await chat.line.so_many(1) == ["好。"]
        assert chat.line.sent[0].quote == "m1"
        chat.connected("qq", "10000")
        await asyncio.sleep(400)
        assert len(chat.line.sent) == 1
        assert await states(chat) == []


@virtual
async def test_an_ambiguous_reply_is_written_down_and_never_repeated(tmp_path):
    async with chatting(tmp_path, ["好。"]) as chat:
        chat.line.fates = [Fate.UNKNOWN]
        await chat.says("Q1")
        chat.connected("qq", "10000")
        await asyncio.sleep(10)
        assert len(chat.line.sent) == 1
        assert [state for _, state in await states(chat)] == [State.UNKNOWN]


@virtual
async def test_who_could_not_be_told_at_the_end_is_told_after_it(tmp_path):
    async with chatting(tmp_path, [HANG]) as chat:
        chat.says("Q1")
        await asyncio.sleep(1)
        chat.line.answers = False
        await chat.say_goodbye()
        assert chat.line.sent == []
    async with chatting(tmp_path, []) as chat:
        (text,) = await chat.line.so_many(1)
        assert "重启" in text
        assert chat.line.sent[0].quote == "m1"


@virtual
async def test_who_spoke_just_before_the_signal_is_told_before_the_end(tmp_path):
    async with chatting(tmp_path, []) as chat:

        async def in_the_socket() -> None:
            await asyncio.sleep(0.2)  # it is being read, or its quote looked up
            await chat.says("Q1")

        chat.line.spoken_before = in_the_socket
        await chat.say_goodbye()
        assert [(m.quote, m.text) for m in chat.line.sent] == [("m1", RESTARTING_EARLY)]
        assert await states(chat) == []


@virtual
async def test_a_reply_cut_off_before_its_frame_left_comes_after_the_restart(tmp_path):
    async with chatting(tmp_path, ["好。"]) as chat:
        outbox, begun = chat.accepted._outbox, asyncio.Event()
        assert outbox is not None
        mark = outbox.mark

        async def slowly(row_id: str, state: State) -> None:
            if state is State.SENDING:
                begun.set()
                await asyncio.sleep(60)  # a starved disk
            await mark(row_id, state)

        outbox.mark = slowly  # type: ignore[method-assign]
        chat.says("Q1")
        await begun.wait()
        await chat.say_goodbye()
        assert chat.line.sent == []
        assert await states(chat) == [("好。", State.OWED)]
    async with chatting(tmp_path, []) as chat:
        assert await chat.line.so_many(1) == ["好。"]
        assert chat.line.sent[0].quote == "m1"


@virtual
async def test_an_approval_that_was_not_shown_before_the_end_is_shown_after_it(tmp_path):
    async with chatting(tmp_path, [PUSH]) as chat:
        chat.line.answers = False
        chat.says("推送")
        await asyncio.sleep(1)
        await chat.say_goodbye()
        assert chat.line.sent == []
    async with chatting(tmp_path, []) as chat:
        (notice,) = await chat.line.so_many(1)
        assert "待确认 1" in notice


@virtual
async def test_a_yes_that_came_too_late_to_be_taken_leaves_the_approval_waiting(tmp_path):
    async with chatting(tmp_path, [PUSH]) as chat:
        await chat.says("推送")
        chat.agent.decide = hang  # type: ignore[method-assign,assignment]
        chat.says("确认 1", user="5", role="admin")
        await asyncio.sleep(0.1)
        await chat.say_goodbye()
        assert ["仍可确认" in text for text in chat.line.texts] == [False, True]
        assert await states(chat) == []
    async with chatting(tmp_path, lambda _: "好。") as chat:
        await chat.says("确认 1", user="5", role="admin")
        assert len(chat.pushed) == 1
        assert chat.line.texts == ["好。"]


async def hang(*_: Any, **__: Any) -> None:
    await asyncio.Event().wait()


@virtual
async def test_a_peer_that_was_stuck_gets_the_reply_without_a_new_connection(tmp_path):
    async with chatting(tmp_path, []) as chat:
        chat.line.answers = False
        for text in ("一", "二"):
            await chat.notify(GROUP, text)
        chat.line.answers = True
        assert sorted(await chat.line.so_many(2)) == ["一", "二"]
        await asyncio.sleep(60)
        assert len(chat.line.sent) == 2


# -- messages for later


@virtual
async def test_a_message_for_later_waits_for_the_connection_and_a_restart(tmp_path):
    async with chatting(tmp_path, []) as chat:
        chat.line.answers = False
        await chat.notify(GROUP, "该开会了", key="reminder-7")
        assert chat.line.sent == []
        image = chat.crash_image(tmp_path / "second")
    async with chatting(image, []) as chat:
        assert await chat.line.so_many(1) == ["该开会了"]
        assert chat.line.sent[0].place == GROUP
        await asyncio.sleep(10)
        assert not await chat.notify(GROUP, "该开会了", key="reminder-7")
        assert await chat.notify(GROUP, "又该开会了", key="reminder-8")
        assert chat.line.texts == ["该开会了", "又该开会了"]


@virtual
async def test_an_outbox_that_fails_costs_no_answer(tmp_path):
    async with chatting(tmp_path, ["好。"]) as chat:
        assert chat.accepted._outbox is not None
        with real_time():
            await chat.accepted._outbox.aclose()
        await chat.says("Q1")
        assert chat.line.texts == ["好。"]
