"""What is asked before something leaves the group, who may answer, and how."""

from __future__ import annotations

import asyncio

import pytest

from plugins.group_chat.approvals import NONE_WAITING, NOT_WAITING, OTHER_NUMBER, UNREADABLE
from plugins.group_chat.capture import Decision, decision_in, is_stop
from plugins.group_chat.messages import Fate, Quoted
from tests.group_chat.kit import PUSH, Chat, action, chatting
from tests.support.virtual_clock import virtual

DONE = "已经发到销售群了。"
NOT_DONE = "好的，没有推送。"


@pytest.mark.parametrize(
    ("text", "decision"),
    [
        ("确认", Decision(True)),
        (" 确认。 ", Decision(True)),
        ("确认 2", Decision(True, 2)),
        ("确认2", Decision(True, 2)),
        ("确认 #12！", Decision(True, 12)),
        ("确认 ２", Decision(True, 2)),
        ("取消", Decision(False)),
        ("取消 3 号", Decision(False, 3)),
        ("确认一下明天的天气", None),
        ("不确认", None),
        ("确认 确认", None),
        ("请确认", None),
        ("确认 2 3", None),
        ("取消明天的会", None),
    ],
)
def test_only_a_whole_message_is_a_decision(text, decision):
    assert decision_in(text) == decision


def test_only_a_whole_message_is_a_stop():
    assert all(is_stop(text) for text in ("停", "停。", "停止", "停下！"))
    assert not any(is_stop(text) for text in ("停车在哪", "别停", "停 停", ""))


async def asked(chat: Chat, *, user: str = "1", group: str | None = "700") -> str:
    """Ask for the push; gives the id of the message that asks for approval."""
    await chat.says("推送", user=user, group=group)
    return f"b{len(chat.line.sent)}"


@virtual
async def test_the_message_shows_target_and_full_content_and_names_the_words(tmp_path):
    content = "## 九月汇总\n" + "\n".join(f"第{n}行 **重点** [CQ:at,qq=all]" for n in range(120))
    push = action("push", robot="销售群", content=content)
    async with chatting(tmp_path, [push, DONE]) as chat:
        await chat.says("推送")
        notice = "".join(message.text for message in chat.line.sent)
        assert len(chat.line.sent) > 1
        assert chat.line.sent[0].quote == "m1"
        assert all(line in notice for line in content.split("\n"))
        for part in ("销售群", "user1", "确认", "取消", "待确认 1", "60 秒"):
            assert part in notice
        assert chat.pushed == []
        # Any of its parts may be quoted.
        await chat.says("确认", user="5", role="admin", quoted="b2", mentioned=False)
        assert len(chat.pushed) > 0
        assert chat.line.sent[-1].quote == "m1"


@pytest.mark.parametrize("role", ["owner", "admin", "superuser"])
@virtual
async def test_a_yes_by_quote_runs_the_call_once_and_the_reply_goes_to_the_asker(tmp_path, role):
    async with chatting(tmp_path, [PUSH, DONE]) as chat:
        notice = await asked(chat)
        await chat.says("确认", user="5", role=role, quoted=notice, mentioned=False)
        assert chat.pushed == ["销售群:九月汇总 [CQ:at,qq=all]"]
        assert (chat.line.sent[-1].text, chat.line.sent[-1].quote) == (DONE, "m1")
        await chat.says("确认", user="5", role=role, quoted=notice, mentioned=False)
        assert len(chat.pushed) == 1
        assert chat.line.texts[-1] == NOT_WAITING


@virtual
async def test_a_yes_by_mention_with_or_without_the_number(tmp_path):
    async with chatting(tmp_path, [PUSH, DONE, PUSH, DONE]) as chat:
        await asked(chat)
        await chat.says("确认", user="5", role="admin")
        await asked(chat)
        await chat.says("确认 2", user="5", role="admin")
        assert len(chat.pushed) == 2


@virtual
async def test_a_late_number_is_not_a_yes_to_something_newer(tmp_path):
    other = action("push", robot="运营群", content="十月")
    async with chatting(tmp_path, [PUSH, "没有推送。", other]) as chat:
        await asked(chat)
        await chat.says("取消 1", user="5", role="admin")
        await asked(chat)
        await chat.says("确认 1", user="6", role="admin")
        assert chat.pushed == []
        assert "没有编号 1" in chat.line.texts[-1]


@virtual
async def test_the_message_says_why_a_yes_is_needed(tmp_path):
    repaired = PUSH.replace("}\n```", "\n```")  # its last brace is missing
    async with chatting(tmp_path, [repaired]) as chat:
        await asked(chat)
        (reason,) = [line for line in chat.line.texts[-1].split("\n") if line.startswith("原因：")]
        assert "影响群外" in reason
        assert "修复" in reason


@virtual
async def test_the_asker_may_take_it_back_but_not_say_yes(tmp_path):
    async with chatting(tmp_path, [PUSH, NOT_DONE]) as chat:
        notice = await asked(chat)
        assert "提问的人可以 取消" in chat.line.texts[-1]
        await chat.says("确认", quoted=notice)
        assert "管理员" in chat.line.texts[-1]
        await chat.says("取消", user="2", quoted=notice)
        assert len(chat.line.sent) == 2
        await chat.says("取消", quoted=notice)
        assert chat.line.texts[-1] == NOT_DONE
        assert chat.pushed == []


@virtual
async def test_a_member_in_private_is_answered_at_once_and_asked_nothing(tmp_path):
    async with chatting(tmp_path, [PUSH, "私聊里没有人能确认，没有推送。"]) as chat:
        await chat.says("推送", group=None)
        assert chat.line.texts == ["私聊里没有人能确认，没有推送。"]
        assert "群管理员" in chat.model.requests[-1].messages[-1].content
        assert chat.pushed == []


@virtual
async def test_a_member_may_not_and_is_told_once_per_approval(tmp_path):
    async with chatting(tmp_path, [PUSH, DONE]) as chat:
        notice = await asked(chat)
        for user in ("1", "2", "3"):
            await chat.says("确认", user=user, quoted=notice)
        assert chat.pushed == []
        assert len(chat.line.sent) == 2
        assert "管理员" in chat.line.texts[-1]
        await chat.says("确认", user="5", role="admin", quoted=notice)
        assert len(chat.pushed) == 1


@virtual
async def test_a_no_denies_the_call_and_the_run_goes_on_to_say_so(tmp_path):
    async with chatting(tmp_path, [PUSH, NOT_DONE]) as chat:
        notice = await asked(chat)
        await chat.says("取消", user="5", role="admin", quoted=notice)
        assert chat.pushed == []
        assert (chat.line.sent[-1].text, chat.line.sent[-1].quote) == (NOT_DONE, "m1")


@virtual
async def test_nobody_answering_ends_in_one_reply_after_the_time(tmp_path):
    clock = asyncio.get_running_loop().time
    async with chatting(tmp_path, [PUSH, "没有人确认，没有推送。"]) as chat:
        await asked(chat)
        began = clock()
        await chat.line.so_many(2)
        assert 55 < clock() - began < 65
        assert chat.line.texts[-1] == "没有人确认，没有推送。"
        await chat.says("确认", user="5", role="admin")
        assert chat.pushed == []
        assert chat.line.texts[-1] == NONE_WAITING


@virtual
async def test_the_next_question_is_answered_meanwhile(tmp_path):
    async with chatting(tmp_path, [PUSH, "晴。", DONE]) as chat:
        notice = await asked(chat)
        await chat.says("天气")
        assert chat.line.texts[-1] == "晴。"
        await chat.says("确认", user="5", role="admin", quoted=notice)
        assert (chat.line.sent[-1].text, chat.line.sent[-1].quote) == (DONE, "m1")


@virtual
async def test_two_waiting_ones_are_told_apart(tmp_path):
    other = action("push", robot="运营群", content="十月")
    async with chatting(tmp_path, [PUSH, other, DONE, DONE]) as chat:
        first = await asked(chat)
        await asked(chat, user="2")
        await chat.says("确认", user="5", role="admin")
        assert "1、2" in chat.line.texts[-1]
        await chat.says("确认 9", user="5", role="admin")
        assert "9" in chat.line.texts[-1]
        await chat.says("确认 2", user="5", role="admin")
        assert chat.pushed == ["运营群:十月"]
        await chat.says("确认", user="5", role="admin", quoted=first)
        assert chat.pushed[1:] == ["销售群:九月汇总 [CQ:at,qq=all]"]


@virtual
async def test_a_quote_of_one_with_the_number_of_another_is_no_yes(tmp_path):
    other = action("push", robot="运营群", content="十月")
    async with chatting(tmp_path, [PUSH, other, DONE]) as chat:
        first = await asked(chat)
        second = await asked(chat, user="2")
        for quoted, number in ((first, 2), (second, 1)):
            for mentioned in (False, True):
                about = {"quoted": quoted, "mentioned": mentioned}
                await chat.says(f"确认 {number}", user="5", role="admin", **about)
                assert chat.line.texts[-1] == OTHER_NUMBER
        beside = {"quoted": "b99", "mentioned": False}
        await chat.says("确认 2", user="5", role="admin", **beside)
        assert chat.line.texts[-1] == NOT_WAITING
        assert chat.pushed == []
        await chat.says("确认 2", user="5", role="admin", quoted=second, mentioned=False)
        assert chat.pushed == ["运营群:十月"]


@virtual
async def test_quoting_something_else_means_nothing_that_waits(tmp_path):
    async with chatting(tmp_path, ["早。", PUSH, DONE]) as chat:
        await chat.says("早")
        await asked(chat)
        await chat.says("确认", user="5", role="admin", quoted="b1")
        assert chat.line.texts[-1] == NOT_WAITING
        assert chat.pushed == []


@virtual
async def test_quoting_somebody_elses_message_means_only_what_was_asked_there(tmp_path):
    async with chatting(tmp_path, [PUSH, DONE]) as chat:
        await asked(chat)
        for word in ("确认", "取消"):
            beside = Quoted("m99", "周末去哪", sender="乙")
            await chat.says(word, user="5", role="admin", quoted=beside)
            assert chat.line.texts[-1] == NOT_WAITING
        assert chat.pushed == []
        question = Quoted("m1", "推送", sender="user1")
        await chat.says("确认", user="5", role="admin", quoted=question)
        assert len(chat.pushed) == 1


@virtual
async def test_a_request_that_could_not_be_shown_in_time_is_not_shown_afterwards(tmp_path):
    async with chatting(tmp_path, [PUSH, NOT_DONE]) as chat:
        chat.line.fates = [Fate.DOWN] * 3

        async def later(bot_id: str, *, seconds: float) -> bool:
            await asyncio.sleep(min(70, seconds))  # reconnected when the time is up
            return seconds > 70

        chat.line.connected = later  # type: ignore[method-assign]
        await chat.says("推送")
        await asyncio.sleep(300)
        assert chat.pushed == []
        assert chat.line.texts[-1] == NOT_DONE
        assert sum("待确认" in text for text in chat.line.texts) == chat.line.texts.index(NOT_DONE)


@virtual
async def test_an_approval_belongs_to_its_group(tmp_path):
    async with chatting(tmp_path, [PUSH, DONE]) as chat:
        notice = await asked(chat)
        await chat.says("确认 1", user="5", role="admin", group="701")
        await chat.says("确认", user="5", role="admin", group="701", quoted=notice)
        assert chat.pushed == []


@virtual
async def test_in_private_a_bare_word_counts_and_strangers_have_no_say(tmp_path):
    async with chatting(tmp_path, [PUSH, DONE]) as chat:
        await chat.says("推送", user="1", group=None, role="superuser")
        assert "秒内回复 确认 或 取消" in chat.line.texts[-1]
        await chat.says("确认", user="2", group=None)
        assert chat.line.texts[-1] == NONE_WAITING
        await chat.says("确认", user="1", group=None, role="superuser")
        assert len(chat.pushed) == 1


@virtual
async def test_nothing_waiting_is_said_and_the_words_never_reach_the_model(tmp_path):
    async with chatting(tmp_path, []) as chat:
        await chat.says("确认")
        await chat.says("取消")
        assert chat.line.texts == [NONE_WAITING] * 2
        assert chat.model.requests == []


@virtual
async def test_words_do_not_queue_behind_a_run(tmp_path):
    from chathands.upstreams.scripted import HANG

    async with chatting(tmp_path, [PUSH, HANG, DONE], deadline=300) as chat:
        notice = await asked(chat, user="1")
        busy = chat.says("慢", user="2")
        await asyncio.sleep(1)
        await chat.says("确认", user="2", role="admin", quoted=notice)
        assert len(chat.pushed) == 1
        await chat.says("停", user="2")
        await busy


@virtual
async def test_the_asker_may_stop_a_waiting_run(tmp_path):
    async with chatting(tmp_path, [PUSH]) as chat:
        await asked(chat)
        await chat.says("停", user="2")
        await chat.says("停")
        assert chat.line.sent[-1].quote == "m1"
        assert "push（销售群）：没有执行" in chat.line.texts[-1]
        await chat.says("确认", user="5", role="admin")
        assert chat.pushed == []


@virtual
async def test_the_farewell_tells_that_an_approval_still_waits(tmp_path):
    async with chatting(tmp_path, [PUSH]) as chat:
        await asked(chat)
        await chat.say_goodbye()
        assert "重启" in chat.line.texts[-1]
        assert "还没有执行" in chat.line.texts[-1]
        assert chat.line.sent[-1].quote == "m1"


@virtual
async def test_after_a_restart_the_approval_is_found_by_quote_and_by_number(tmp_path):
    async with chatting(tmp_path, [PUSH]) as chat:
        await asked(chat)
        notice = chat.line.texts[-1]
    async with chatting(tmp_path, [DONE]) as chat:
        # The id of the old message is not known any more; what it says is.
        await chat.says("确认", user="5", role="admin", quoted=Quoted("old", notice, by_bot=True))
        assert len(chat.pushed) == 1
        assert (chat.line.sent[-1].text, chat.line.sent[-1].quote) == (DONE, "m1")


@virtual
async def test_after_a_restart_the_time_still_runs_out(tmp_path):
    async with chatting(tmp_path, [PUSH]) as chat:
        await asked(chat)
    async with chatting(tmp_path, ["没有人确认。"]) as chat:
        assert await chat.line.so_many(1) == ["没有人确认。"]
        assert chat.line.sent[0].quote == "m1"


@virtual
async def test_what_a_member_copies_does_not_stand_for_an_approval(tmp_path):
    async with chatting(tmp_path, [PUSH]) as chat:
        await asked(chat)
        forged = Quoted("x", chat.line.texts[-1], sender="user2", by_bot=False)
        await chat.says("确认", user="5", role="admin", quoted=forged, mentioned=False)
        assert chat.line.texts[-1] == NOT_WAITING
        assert chat.pushed == []


@virtual
async def test_a_request_whose_send_was_not_acknowledged_can_still_be_quoted(tmp_path):
    async with chatting(tmp_path, [PUSH, DONE]) as chat:
        chat.line.fates = [Fate.UNKNOWN]
        await asked(chat)
        notice = Quoted("?", chat.line.texts[-1], by_bot=True)
        await chat.says("确认", user="5", role="admin", quoted=notice, mentioned=False)
        assert len(chat.pushed) == 1


@virtual
async def test_a_quote_that_cannot_be_read_names_nothing(tmp_path):
    async with chatting(tmp_path, [PUSH, DONE]) as chat:
        await asked(chat)
        await chat.says("确认", user="5", role="admin", quoted=Quoted("?"))
        assert chat.line.texts[-1] == UNREADABLE
        assert chat.pushed == []
        await chat.says("确认 1", user="5", role="admin", quoted=Quoted("?"))
        assert len(chat.pushed) == 1
