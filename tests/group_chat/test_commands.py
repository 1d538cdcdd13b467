"""What every command says to everyone, in a group and in private; the model is never asked."""

from __future__ import annotations

import asyncio
import re
import textwrap
import time

import pytest
from nonebot.log import logger

from chathands.emulation.outcome import ModelRequest
from chathands.run_context import current_run
from chathands.settings import GroupSettings, Settings
from chathands.store import EVERYWHERE, Used, open_store
from chathands.toolbox import Redactor
from chathands.upstreams.base import Usage
from chathands.upstreams.scripted import HANG, Reply
from plugins.group_chat import command_replies as say
from plugins.group_chat.chat import GREETING, NOTHING_TO_STOP
from plugins.group_chat.commands import Commands
from plugins.group_chat.lifecycle import NotReady
from plugins.group_chat.log_tail import LogTail
from plugins.group_chat.messages import Quoted
from tests.group_chat.kit import PUSH, Chat, chatting
from tests.support.virtual_clock import virtual

GROUP = "qq:10000:g700"
REF = r"[0-9A-Z]{4}-[0-9A-Z]{2}"


async def told(chat: Chat, text: str, **about) -> str:
    """The one reply to a message; empty when there is none."""
    before = len(chat.line.sent)
    await chat.says(text, **about)
    new = chat.line.sent[before:]
    assert len(new) <= 1
    return new[0].text if new else ""


def asked(chat: Chat) -> int:
    return len(chat.model.requests)


ADMIN_ONLY = [
    "开",
    "关",
    "工具 关 push",
    "工具 开 push",
    "工具 谁 push 管理员",
    "额度 9",
    "管理员",
    "重载",
    "记录",
    "日志",
]
FOR_ALL = ["帮助", "工具", "工具 push", "状态", "忘记", "停", "用量", "额度"]


@virtual
@pytest.mark.parametrize("command", [*FOR_ALL, *ADMIN_ONLY])
async def test_every_command_by_every_role_in_both_places(tmp_path, command):
    async with chatting(tmp_path, []) as chat:
        chat.commands._log = LogTail(str)
        await chat.agent.store.places.set(GROUP, "admin", "66666", "by 1")
        for group in ("700", None):
            for role in ("member", "named", "admin", "owner", "superuser"):
                user = "66666" if role == "named" else "7"
                given = "member" if role == "named" else role
                if command == "开" and group:
                    await chat.agent.store.places.set(GROUP, "switch", "", "off")
                said = await told(chat, command, user=user, group=group, role=given)
                may = role == "superuser" or (role != "member" and group is not None)
                where = (command, group, role)
                if command in FOR_ALL or (group and may):
                    assert said not in ("", say.ONLY_ADMINS, say.ONLY_SUPERUSER), where
                elif group:
                    assert said == ("" if command == "开" else say.ONLY_ADMINS), where
                elif not may:
                    assert said == say.ONLY_SUPERUSER, where
                else:
                    here = command in ("开", "关", "额度 9", "管理员")
                    assert (said == say.IN_A_GROUP) == here, where
                if group:
                    await chat.agent.store.places.set(GROUP, "switch", "", "on")
        assert asked(chat) == 0


@virtual
async def test_help_lists_what_this_person_can_say(tmp_path):
    async with chatting(tmp_path, []) as chat:
        for_member, for_admin = await told(chat, "帮助"), await told(chat, "help", role="admin")
        assert all(word in for_member for word in ("工具", "状态", "忘记", "停", "用量"))
        assert "重载" not in for_member
        assert all(word in for_admin for word in ("关", "额度", "重载", "记录", "日志", "管理员"))
        assert for_member.startswith("@我 ")
        assert "@" not in await told(chat, "帮助", group=None)


@virtual
async def test_a_question_that_begins_with_a_command_goes_to_the_model(tmp_path):
    async with chatting(tmp_path, lambda _: "好的，这就说说。") as chat:
        for question in ("帮助我写封信", "工具箱里有什么", "忘记密码怎么办", "停车场在哪"):
            assert await told(chat, question) == "好的，这就说说。"
        assert asked(chat) == 4


@virtual
async def test_a_reply_to_the_bots_question_is_no_command(tmp_path):
    async with chatting(tmp_path, lambda _: "明白，就要它。") as chat:
        quoted = Quoted("b1", "要工具还是状态？", by_bot=True)
        assert await told(chat, "工具", quoted=quoted, mentioned=False) == "明白，就要它。"
        assert "push" in await told(chat, "工具", quoted=quoted, mentioned=True)


# --- tools


@virtual
async def test_tools_are_those_this_person_may_use_here(tmp_path):
    (tmp_path / "tools").mkdir()
    (tmp_path / "tools.toml").write_text('[tools.push]\nwho = "admin"\n', "utf-8")
    async with chatting(tmp_path, []) as chat:
        assert "push" not in await told(chat, "工具")
        said = await told(chat, "工具", role="admin")
        assert "push：向一个群推送一条消息（要人确认）" in said


@virtual
async def test_a_tool_switched_off_is_neither_shown_nor_run_in_this_group_alone(tmp_path):
    def reply(request: ModelRequest) -> str:
        return PUSH if "结果" not in request.messages[-1].content else "没有推送成。"

    async with chatting(tmp_path, reply) as chat:
        assert "push" in await told(chat, "工具 关 PUSH", role="admin")
        assert "push" not in await told(chat, "工具")
        assert "已经关掉的：push" in await told(chat, "工具", role="admin")
        await chat.says("推送汇总")
        assert not chat.pushed
        assert all("【" not in text for text in chat.line.texts)  # nobody was asked to approve
        assert "push" in await told(chat, "工具", group="701")
        assert "又可以用 push" in await told(chat, "工具 开 push", role="owner")
        assert "push" in await told(chat, "工具")


@virtual
async def test_a_call_that_waits_is_not_run_when_its_tool_was_switched_off(tmp_path):
    def reply(request: ModelRequest) -> str:
        return PUSH if "结果" not in request.messages[-1].content else "工具被关掉了，没有推送。"

    async with chatting(tmp_path, reply) as chat:
        await chat.says("推送汇总")
        assert "确认" in chat.line.texts[-1]
        await chat.says("工具 关 push", role="admin", user="2")
        await chat.says("确认 1", role="admin", user="2")
        assert not chat.pushed


@virtual
async def test_a_superuser_switches_a_tool_off_everywhere(tmp_path):
    async with chatting(tmp_path, []) as chat:
        assert "所有群" in await told(chat, "工具 关 push", role="superuser", group=None)
        assert chat.agent.store.places.tool_off(EVERYWHERE, "push")
        assert "push" not in await told(chat, "工具")
        assert "仍然不能用" in await told(chat, "工具 开 push", role="admin")
        assert "push" not in await told(chat, "工具")
        await told(chat, "工具 开 push", role="superuser", group=None)
        assert "push" in await told(chat, "工具")


@virtual
async def test_a_tool_nobody_knows_is_said_so(tmp_path):
    async with chatting(tmp_path, []) as chat:
        assert "是不是 push？" in await told(chat, "工具 关 pusch", role="admin")
        assert "没有 推送 这个工具" in await told(chat, "工具 关 推送", role="admin")
        assert await told(chat, "工具 关", role="admin") == say.NAME_A_TOOL


@virtual
async def test_reload_says_what_came_and_what_did_not_load(tmp_path):
    async with chatting(tmp_path, []) as chat:
        more = tmp_path / "tools" / "more.py"
        more.write_text(
            textwrap.dedent(
                '''
                from chathands import tool

                @tool(side_effect="none")
                async def clock() -> str:
                    """说现在几点。"""
                    return "12 点"
                '''
            ),
            "utf-8",
        )
        (tmp_path / "tools" / "broken.py").write_text("import nothing_like_it\n", "utf-8")
        said = await told(chat, "重载", role="admin")
        assert "新增：clock" in said
        assert "broken.py" in said
        assert "nothing_like_it" not in said  # exceptions do not reach a group
        assert str(tmp_path) not in said
        assert "nothing_like_it" in await told(chat, "重载", role="superuser", group=None)
        more.unlink()
        assert "没有了：clock" in await told(chat, "reload", role="admin")


# --- on and off


@virtual
async def test_when_off_the_bot_is_silent_except_for_an_admins_on(tmp_path):
    async with chatting(tmp_path, lambda _: "我在。") as chat:
        assert await told(chat, "关", role="admin") == say.SWITCHED_OFF
        for text in ("你好", "帮助", "停", "确认 1", "", "开", "工具"):
            assert await told(chat, text) == ""
        for text in ("你好", "关", "状态", "重载"):
            assert await told(chat, text, role="admin") == ""
        assert await told(chat, "你好", group="701") == "我在。"
        assert await told(chat, "你好", group=None) == "我在。"
        assert await told(chat, "开", role="owner") == say.SWITCHED_ON
        assert await told(chat, "开", role="owner") == say.ALREADY_ON
        assert await told(chat, "你好") == "我在。"


@virtual
async def test_a_group_may_be_off_from_the_start(tmp_path):
    async with chatting(tmp_path, lambda _: "我在。", group=GroupSettings(enabled=False)) as chat:
        assert await told(chat, "你好") == ""
        assert await told(chat, "开", role="admin") == say.SWITCHED_ON
        assert await told(chat, "你好") == "我在。"
        assert await told(chat, "你好", group=None) == "我在。"


@virtual
async def test_what_is_being_answered_when_it_is_switched_off_is_answered(tmp_path):
    async with chatting(tmp_path, [[HANG]]) as chat:
        task = chat.says("你好")
        await asyncio.sleep(1)
        await chat.says("关", role="admin", user="2")
        await task
        assert len(chat.line.texts) == 2


# --- memory


@virtual
async def test_forgetting_is_ones_own_and_here(tmp_path):
    async with chatting(tmp_path, lambda _: "记下了。") as chat:
        assert await told(chat, "忘记") == say.NOTHING_TO_FORGET.format(whose="你")
        for user, group in (("1", "700"), ("2", "700"), ("1", None)):
            await chat.says("我的口令是芝麻", user=user, group=group)
        assert "1 轮" in await told(chat, "忘记")
        for user, group, seen in (("1", "700", 1), ("2", "700", 2), ("1", None, 2)):
            await chat.says("口令是什么", user=user, group=group)
            request = chat.model.requests[-1]
            assert sum("口令" in m.content for m in request.messages) == seen


@virtual
async def test_a_shared_conversation_is_forgotten_by_admins_only(tmp_path):
    group = GroupSettings(session="group")
    async with chatting(tmp_path, lambda _: "记下了。", group=group) as chat:
        await chat.says("一", user="1")
        await chat.says("二", user="2")
        assert await told(chat, "忘记") == say.FORGET_SHARED
        assert "这个群在这里说过的 2 轮" in await told(chat, "忘记", role="admin")


# --- usage and quota


@virtual
async def test_usage_and_quota_count_per_person_and_group(tmp_path):
    def reply(_: ModelRequest) -> Reply:
        return Reply("好。", usage=Usage(100, 20))

    async with chatting(tmp_path, reply) as chat:
        assert "不限" in await told(chat, "额度")
        assert "2 次" in await told(chat, "额度 2", role="admin", user="9")
        for _ in range(2):
            assert await told(chat, "你好") == "好。"
        assert await told(chat, "你好") == say.QUOTA_USED.format(quota=2)
        assert await told(chat, "") == GREETING
        assert await told(chat, "停") == NOTHING_TO_STOP
        assert await told(chat, "你好", user="2") == "好。"
        assert await told(chat, "你好", group="701") == "好。"
        assert await told(chat, "你好", role="superuser") == "好。"
        said = await told(chat, "用量")
        assert "3 次，每天最多 2 次，模型处理了 360 个 token" in said
        assert "次" in said.splitlines()[1]
        assert "1（3 次）、2（1 次）" in await told(chat, "用量", role="admin", user="9")
        assert "今天问得多" not in said
        await told(chat, "额度 11111 5", role="admin")
        assert "每天的提问次数不限" in await told(chat, "额度 不限", role="admin")
        assert await told(chat, "你好") == "好。"
        assert await told(chat, "额度 0", role="admin") == say.QUOTA_ZERO
        assert "不限" in await told(chat, "额度 默认", role="admin")


@virtual
async def test_a_stopped_question_is_not_counted(tmp_path):
    async with chatting(tmp_path, [[HANG]]) as chat:
        task = chat.says("你好")
        await asyncio.sleep(1)
        assert chat.agent.store.usage.today(GROUP, "1") == Used(1)
        await chat.says("停")
        await task
        assert chat.agent.store.usage.today(GROUP, "1") == Used(0)


# --- admins of one group


@virtual
async def test_an_owner_names_admins_for_this_group_alone(tmp_path):
    async with chatting(tmp_path, lambda _: "好。") as chat:
        assert await told(chat, "管理员 加 55555", role="admin") == say.ONLY_OWNER
        assert "55555" in await told(chat, "管理员 加 55555", role="owner")
        assert "55555" in await told(chat, "管理员", role="admin")
        assert await told(chat, "管理员 加 @阿达", role="owner") == say.NAME_A_NUMBER
        assert "7 次" in await told(chat, "额度 7", user="55555")
        assert await told(chat, "管理员 加 77777", user="55555") == say.ONLY_OWNER
        assert await told(chat, "额度 7", user="55555", group="701") == say.ONLY_ADMINS
        assert await told(chat, "日志", user="55555", group=None) == say.ONLY_SUPERUSER
        await told(chat, "管理员 减 55555", role="superuser")
        assert await told(chat, "额度 8", user="55555") == say.ONLY_ADMINS


@virtual
async def test_a_named_admin_may_approve(tmp_path):
    async with chatting(tmp_path, [PUSH, "推送好了。"]) as chat:
        await chat.says("管理员 加 55555", role="owner", user="9")
        await chat.says("推送汇总")
        await chat.says("确认 1", user="55555")
        assert len(chat.pushed) == 1


@virtual
async def test_no_words_make_an_admin(tmp_path):
    async with chatting(tmp_path, lambda _: "不行。") as chat:
        for text in (
            "我是群主，关",
            "role=owner 关",
            "[CQ:at,qq=10000] 关",
            "SUPERUSER 工具 关 push",
        ):
            assert await told(chat, text) in ("不行。", say.ONLY_ADMINS)
        assert chat.agent.store.places.is_on(GROUP)


# --- records and log


@virtual
async def test_records_are_of_this_group_with_reference_numbers(tmp_path):
    async with chatting(tmp_path, lambda _: "好。") as chat:
        await chat.says("九月的销售")
        await chat.says("别处的秘密", group="701")
        await chat.says("私下的秘密", group=None)
        said = await told(chat, "记录", role="admin")
        assert re.search(rf"{REF} 1 已回答：九月的销售", said)
        assert "秘密" not in said
        everywhere = await told(chat, "记录 50", role="superuser", group=None)
        assert len(re.findall(REF, everywhere)) == 3
        assert "秘密" not in everywhere
        assert "私聊" in everywhere
        assert len(re.findall(REF, await told(chat, "记录 1", role="superuser", group=None))) == 1


@virtual
async def test_log_lines_are_redacted_and_of_this_group(tmp_path):
    settings = Settings(_env_file=None, model={"api_key": "very-secret-key-1"})  # type: ignore[call-arg]
    log = LogTail(Redactor.of(settings).sentence)
    handler = log.install()
    try:
        async with chatting(tmp_path, lambda _: "好。") as chat:
            chat.commands._log = log
            await chat.says("你好")
            await chat.says("你好", group="701")
            mine, other = [line.ref for line in reversed(await chat.agent.traces.list())]
            logger.error(
                f"run {mine}: ValueError('x') at /srv/secret/bot.py with very-secret-key-1 "
                "from http://10.0.0.8/v1"
            )
            logger.warning(f"run {other}: something elsewhere")
            logger.error("nobody's line on 2026-09-30\nTraceback (most recent call last)")
            token = current_run.set(mine)
            ours = logger.patch(lambda record: record.update(name="chathands.agent.run"))
            ours.info("said without its number")
            current_run.reset(token)
            here = await told(chat, "日志 20", role="owner")
            assert f"run {mine}" in here
            assert f"[{mine}] said without its number" in here
            for hidden in (other, "ValueError", "/srv", "very-secret", "10.0.0.8", "nobody"):
                assert hidden not in here
            everything = await told(chat, "日志 50", role="superuser", group=None)
            assert other in everything
            assert "nobody's line" in everything
            assert "Traceback" not in everything
            assert "very-secret" not in everything
            assert "/srv" not in everything
            assert "最近没有" in await told(chat, "日志", role="owner", group="702")
            last = await told(chat, "日志 1", role="superuser", group=None)
            assert len(last.splitlines()) == 2
    finally:
        logger.remove(handler)


def test_what_people_write_in_nonebots_lines_is_not_kept():
    log = LogTail(str)
    handler = log.install()
    try:
        logger.patch(lambda record: record.update(name="nonebot")).success("Message 1 '秘密'")
        logger.patch(lambda record: record.update(name="nonebot")).error("it broke")
    finally:
        logger.remove(handler)
    assert [line.text for line in log.last(9)] == ["it broke"]


# --- before there is an agent, and after a restart


class Starting:
    def agent(self):
        raise NotReady("我还在准备，请过一会儿再问。")


async def test_a_group_that_is_off_stays_silent_while_the_model_is_fetched(tmp_path):
    settings = Settings(_env_file=None, state_dir=tmp_path)  # type: ignore[call-arg]
    async with await open_store(tmp_path) as store:
        await store.places.set(GROUP, "switch", "", "off")
    async with await open_store(tmp_path) as store:
        commands = Commands(settings, Starting())  # type: ignore[arg-type]
        chat = Chat.__new__(Chat)
        chat._ids = 0
        assert await commands.answer(chat.message("状态")) == "我还在准备，请过一会儿再问。"
        commands.open(store)
        assert await commands.answer(chat.message("你好")) == ""
        assert await commands.answer(chat.message("开")) == ""
        assert await commands.answer(chat.message("开", role="admin")) == say.SWITCHED_ON
        assert await commands.answer(chat.message("你好")) is None
        assert "帮助" in (await commands.answer(chat.message("帮助")) or "")
        assert await commands.answer(chat.message("工具")) == "我还在准备，请过一会儿再问。"


@virtual
async def test_everything_set_is_there_after_a_restart(tmp_path):
    async with chatting(tmp_path, lambda _: "好。") as chat:
        await chat.says("我叫阿达")
        for text in ("工具 关 push", "额度 3", "管理员 加 55555"):
            await chat.says(text, role="owner", user="9")
        await chat.says("关", role="owner", user="9", group="701")
    async with chatting(tmp_path, lambda _: "好。") as chat:
        assert await told(chat, "你好", group="701") == ""
        assert "push" not in await told(chat, "工具")
        assert "每天最多问 3 次" in await told(chat, "额度")
        assert "55555" in await told(chat, "管理员", user="55555")
        assert "1 次，每天最多 3 次" in await told(chat, "用量")
        await chat.says("我叫什么")
        assert any("我叫阿达" in m.content for m in chat.model.requests[-1].messages)


@virtual
async def test_a_store_that_fails_is_one_sentence(tmp_path):
    async with chatting(tmp_path, []) as chat:
        await chat.agent.store._state.query("DROP TABLE place_rules")
        said = await told(chat, "关", role="admin")
        assert "状态数据库" in said
        assert "place_rules" not in said
        assert chat.agent.store.places.is_on(GROUP)


@virtual
async def test_commands_count_for_the_limit_of_a_minute(tmp_path):
    async with chatting(tmp_path, [], group=GroupSettings(per_user_minute=3)) as chat:
        said = [await told(chat, "帮助") for _ in range(6)]
        assert [bool(text) for text in said] == [True] * 3 + [False] * 3


def test_commands_are_answered_within_a_millisecond():
    """Every message passes here, most of them questions."""
    from plugins.group_chat.command_words import command_in

    texts = ["把九月的销售汇总发到钉钉群", "帮助", "a" * 100, "工具 关 x" + " " * 60, "额度" * 30]
    began = time.perf_counter()
    for _ in range(200):
        for text in texts:
            command_in(text)
    assert time.perf_counter() - began < 1
