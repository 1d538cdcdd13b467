"""Reminders in the bot: real tools, store and outbox on a virtual clock; only model and line are
played."""

import asyncio
import shutil
from contextlib import asynccontextmanager
from datetime import datetime
from zoneinfo import ZoneInfo

import pytest

from chathands.agent.reminding import Said
from plugins.group_chat.messages import Fate, Place
from plugins.group_chat.notices import Allowed, Removed, Silenced
from tests.group_chat.kit import action, chatting
from tests.support.virtual_clock import real_time, virtual
from tests.tools.live import TOOLS

SHANGHAI = ZoneInfo("Asia/Shanghai")
START = datetime(2026, 3, 11, 10, tzinfo=SHANGHAI).timestamp()
GROUP = Place("qq", "10000", "700", "1")


@pytest.fixture(autouse=True)
def _the_clock_of_the_tool(monkeypatch):
    """The tool asks the wall clock; a run on the virtual loop has its own."""
    monkeypatch.setattr("time.time", wall)
    monkeypatch.setattr("chathands.agent.reminding.LOOK_SECONDS", 7200.0)  # days pass in a test


class Clock:
    offset = 0.0


def wall():
    """Wall-clock seconds that go with the loop's clock, which begins at 1000."""
    try:
        moved = asyncio.get_running_loop().time() - 1000
    except RuntimeError:
        moved = 0.0
    return START + Clock.offset + moved


@asynccontextmanager
async def reminding(directory, replies=(), *, offset=0.0, tools=True):
    """`offset`: seconds after START at which this process begins."""
    Clock.offset = offset - (asyncio.get_running_loop().time() - 1000)
    if tools:
        shutil.copytree(TOOLS / "reminders", directory / "tools" / "reminders", dirs_exist_ok=True)
    async with chatting(directory, replies, wall=wall, watch_tools=False) as chat:
        yield chat


def wish(when, text="开会"):
    return action("set_reminder", when=when, text=text)


async def rows(chat, user="1"):
    with real_time():
        return await chat.agent.store.reminders.of("qq", user)


@virtual
async def test_a_reminder_is_said_once_at_its_time_to_the_one_who_asked(tmp_path):
    async with reminding(tmp_path, [wish("半小时后"), "好的。"]) as chat:
        await chat.says("半小时后提醒我开会")
        (answer,) = chat.line.texts
        assert "2026-03-11（周三）10:30" in answer  # whatever the model wrote
        await asyncio.sleep(1790)
        assert len(chat.line.sent) == 1
        await chat.line.so_many(2)
        message = chat.line.sent[1]
        assert message.text == "【提醒 10:30】开会"
        assert (message.place, message.mention, message.quote) == (GROUP, "1", None)
        await asyncio.sleep(7200)
        assert len(chat.line.sent) == 2
        assert await rows(chat) == []


@virtual
async def test_in_private_nobody_is_called_up(tmp_path):
    async with reminding(tmp_path, [wish("五分钟后"), "好的。"]) as chat:
        await chat.says("五分钟后提醒我开会", group=None)
        await chat.line.so_many(2)
        assert chat.line.sent[1].mention is None
        assert chat.line.sent[1].place.private


@virtual
async def test_a_repeating_one_comes_again_until_it_is_cancelled_by_its_owner(tmp_path):
    replies = [
        wish("每天下午三点"), "好的。",
        action("cancel_reminder", which="开会"), "不行。",
        action("list_reminders"), "1 号提醒。",
        action("cancel_reminder", which="1"), "取消了。",
    ]  # fmt: skip
    async with reminding(tmp_path, replies) as chat:
        await chat.says("每天下午三点提醒我开会")
        await asyncio.sleep(30 * 3600)
        assert chat.line.texts[1:] == ["【提醒 15:00】开会"] * 2
        await chat.says("取消开会的提醒", user="2")  # somebody else's
        assert len(await rows(chat)) == 1
        await chat.says("有哪些提醒")
        await chat.says("取消 1 号提醒")
        assert await rows(chat) == []
        count = len(chat.line.sent)
        await asyncio.sleep(3 * 86400)
        assert len(chat.line.sent) == count


@virtual
async def test_what_was_missed_while_the_bot_was_away_comes_once_with_a_note(tmp_path):
    async with reminding(
        tmp_path, [wish("半小时后"), "好。", wish("每小时", "喝水"), "好。"]
    ) as chat:
        await chat.says("一")
        await chat.says("二")
        image = chat.crash_image(tmp_path / "second")
    async with reminding(image, offset=3 * 3600 + 300) as chat:
        first, second = await chat.line.so_many(2)
        assert first == (
            "【提醒 10:30】（本来是 2026-03-11 10:30 的，当时我不在线，晚了 2 小时 35 分钟）开会"
        )
        assert second == (
            "【提醒 11:00】（本来是 2026-03-11 11:00 的，当时我不在线，晚了 2 小时 5 分钟；"
            "这之后还错过了 2 次）喝水"
        )
        await asyncio.sleep(1)
        (left,) = await rows(chat)
        assert left.due == START + 4 * 3600


@virtual
async def test_a_send_nobody_knows_the_end_of_is_not_repeated_after_a_restart(tmp_path):
    async with reminding(tmp_path, [wish("五分钟后"), "好的。"]) as chat:
        await chat.says("五分钟后提醒我开会")
        chat.line.acknowledges = asyncio.Event()  # it never comes
        await chat.line.so_many(2)
        image = chat.crash_image(tmp_path / "second")  # killed in the middle of it
    async with reminding(image, offset=600) as chat:
        await asyncio.sleep(600)
        assert chat.line.sent == []
        assert await rows(chat) == []


@virtual
async def test_a_row_that_could_not_be_advanced_is_still_said_once(tmp_path):
    async with reminding(tmp_path, [wish("五分钟后"), "好的。"]) as chat:
        await chat.says("五分钟后提醒我开会")
        advance, failed = chat.agent.store.reminders.advance, []

        async def fails(*args):
            failed.append(args)
            raise OSError("disk full")

        chat.agent.store.reminders.advance = fails
        await chat.line.so_many(2)
        await asyncio.sleep(120)
        assert len(failed) > 3
        chat.agent.store.reminders.advance = advance
        await asyncio.sleep(60)
        assert len(chat.line.sent) == 2
        assert await rows(chat) == []


@virtual
async def test_without_a_connection_or_under_a_mute_it_waits(tmp_path):
    async with reminding(tmp_path, [wish("五分钟后"), "好的。"]) as chat:
        await chat.says("五分钟后提醒我开会")
        chat.line.answers = False
        await asyncio.sleep(600)
        assert len(chat.line.sent) == 1
        await chat.notice(Silenced("qq", "10000", "700", everybody=False, seconds=3600))
        chat.line.answers = True
        chat.connected("qq", "10001")  # another account
        await asyncio.sleep(600)
        assert len(chat.line.sent) == 1
        await chat.notice(Allowed("qq", "10000", "700", everybody=False))
        text = (await chat.line.so_many(2))[1]
        assert "当时我不在线，晚了 15 分钟" in text


@virtual
async def test_a_group_that_removed_the_bot_or_switched_it_off_hears_nothing(tmp_path):
    replies = [wish("五分钟后"), "好。", wish("每天下午三点"), "好。"]
    async with reminding(tmp_path, replies) as chat:
        await chat.says("一")
        await chat.says("关", user="5", role="admin")
        count = len(chat.line.sent)
        await asyncio.sleep(600)
        assert len(chat.line.sent) == count
        assert await rows(chat) == []
        await chat.says("开", user="5", role="admin")
        await chat.says("二")
        assert len(await rows(chat)) == 1
        await chat.notice(Removed("qq", "10000", "700"))
        assert await rows(chat) == []


@virtual
async def test_a_tool_that_is_forbidden_or_gone_takes_its_reminders_along(tmp_path):
    replies = [wish("五分钟后"), "好。", wish("明天下午三点"), "好。"]
    async with reminding(tmp_path, replies) as chat:
        await chat.says("一")
        await chat.says("工具 关 set_reminder", user="5", role="admin")
        count = len(chat.line.sent)
        await asyncio.sleep(600)
        assert len(chat.line.sent) == count
        await chat.says("工具 开 set_reminder", user="5", role="admin")
        await chat.says("二")
        assert len(await rows(chat)) == 1
        shutil.rmtree(tmp_path / "tools" / "reminders")
        await chat.agent.reload_tools()
        await asyncio.sleep(10)
        assert await rows(chat) == []


@virtual
async def test_each_person_has_so_many_and_the_same_one_is_not_kept_twice(tmp_path):
    async with reminding(tmp_path, lambda _: wish("明天下午三点")) as chat:
        book = chat.agent.store.reminders
    replies = [wish("明天下午三点", text) for text in ("一", "一", "二", "三")]
    both = [reply for wished in replies for reply in (wished, "好。")]
    async with chatting(
        tmp_path, both, wall=wall, watch_tools=False, reminders={"per_person": 2}
    ) as chat:
        for text in ("1", "2", "3", "4"):
            await chat.says(text)
        assert [row.text for row in await rows(chat)] == ["一", "二"]
    assert book is not None


@virtual
async def test_what_the_reminder_says_is_data(tmp_path):
    nasty = "[CQ:at,qq=all] 确认 1\u202e\x07"
    async with reminding(tmp_path, [wish("五分钟后", nasty), "好的。"]) as chat:
        await chat.says("五分钟后提醒我")
        await chat.line.so_many(2)
        message = chat.line.sent[1]
        assert message.kind == "text"
        assert message.text.startswith("【提醒 10:05】")
        assert "\u202e" not in message.text
        assert "\x07" not in message.text


@virtual
async def test_a_refused_mention_is_left_out_and_the_text_comes(tmp_path):
    async with reminding(tmp_path, [wish("五分钟后"), "好的。"]) as chat:
        await chat.says("五分钟后提醒我开会")
        chat.line.fates = [Fate.REFUSED]
        await chat.line.so_many(3)
        assert [message.mention for message in chat.line.sent[1:]] == ["1", None]
        await asyncio.sleep(1)
        assert await rows(chat) == []


def test_fates_are_what_the_loop_knows():
    assert {said.value for said in Said} == {"done", "later", "never"}
