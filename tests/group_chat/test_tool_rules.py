"""Commands about one tool: what holds for it here, and leaving it to some people."""

from __future__ import annotations

import pytest

from chathands.store import EVERYWHERE
from plugins.group_chat.command_words import command_in
from plugins.group_chat.tool_rules import NAME_SOMEBODY, left_to
from tests.group_chat.kit import PUSH, chatting
from tests.group_chat.test_commands import GROUP, told
from tests.support.virtual_clock import virtual

TOML = """
[tools.push]
rate = { user = "5/minute", tool = "100/day; 200 per 12 hour" }
quota = 20
timeout = 9
concurrency = 2
approve = ["10086"]
"""


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("管理员", "admin"),
        ("superuser", "superuser"),
        ("所有人", ""),
        ("12345678", "12345678"),
        ("12345678 87654321，12345678、11111", "12345678,87654321,11111"),
        ("小明", None),
        ("12345678 小明", None),
        ("1234", None),
        ("12345 " * 60, "12345"),
        (" ".join(str(10000 + n) for n in range(60)), None),
        ("", None),
        ("٣٣٣٣٣٣", None),
    ],
)
def test_whom_a_tool_can_be_left_to(text: str, kept: str | None):
    if text.startswith("12345 12345"):
        kept = None  # sixty of them, though all the same
    assert left_to(text.replace("，", ",")) == kept


@pytest.mark.parametrize(
    ("text", "name", "tool"),
    [
        ("工具 push", "tool_rule", "push"),
        ("工具：PUSH", "tool_rule", "push"),
        ("/tool get_weather", "tool_rule", "get_weather"),
        ("工具 谁 push", "tool_rule", "push"),
        ("工具 谁 push 管理员", "tool_who", "push"),
        ("tool who push admin", "tool_who", "push"),
        ("工具 开 push", "tool_on", "push"),
        ("工具", "tools", ""),
    ],
)
def test_what_is_taken_for_a_command(text: str, name: str, tool: str):
    command = command_in(text)
    assert command is not None
    assert (command.name, command.argument) == (name, tool)


@pytest.mark.parametrize(
    "text",
    ["工具箱里有什么", "工具 push 怎么用啊", "tools are useful", "tool please", "工具人是谁"],
)
def test_what_is_a_question(text: str):
    assert command_in(text) is None


@virtual
async def test_what_holds_for_a_tool_is_said(tmp_path):
    (tmp_path / "tools").mkdir()
    (tmp_path / "tools.toml").write_text(TOML, "utf-8")
    async with chatting(tmp_path, []) as chat:
        said = await told(chat, "工具 push")
        assert said.startswith("push：向一个群推送一条消息")
        assert "执行前要名单里的人或超级用户确认" in said
        assert "每人每分钟 5 次，合计每天 100 次，合计 200 per 12 hour" in said
        assert "每人每天 20 次（你今天用了 0 次）" in said
        assert "一次最多 9 秒，同时最多 2 次" in said
        assert "tools.toml" not in said
        assert "tools.toml" in await told(chat, "工具 push", role="admin")
        assert "没有 pusch 这个工具，是不是 push？" in await told(chat, "工具 pusch")


@virtual
async def test_an_admin_leaves_a_tool_to_some_in_this_group_alone(tmp_path):
    async with chatting(tmp_path, []) as chat:
        assert "只有群管理员" in await told(chat, "工具 谁 push 管理员", role="admin")
        assert "push" not in await told(chat, "工具")
        assert "push" in await told(chat, "工具", role="owner")
        assert "push" in await told(chat, "工具", group="701")
        why = await told(chat, "工具 push")
        assert "管理员在这里只让群管理员、群主和超级用户用" in why
        assert "12345678 和超级用户" in await told(chat, "工具 谁 push 12345678", role="admin")
        assert "push" not in await told(chat, "工具", role="admin")
        assert "push" in await told(chat, "工具", user="12345678")
        assert "12345678" not in await told(chat, "工具 push")  # lists are for admins
        assert "12345678" in await told(chat, "工具 push", role="admin")
        assert await told(chat, "工具 谁 push 小明", role="admin") == NAME_SOMEBODY
        assert "不再另外限制" in await told(chat, "工具 谁 push 所有人", role="admin")
        assert "push" in await told(chat, "工具")
        assert chat.agent.store.places.left_to(GROUP, "push") == ()


@virtual
async def test_a_command_opens_nothing_that_the_file_closes(tmp_path):
    (tmp_path / "tools").mkdir()
    (tmp_path / "tools.toml").write_text('[tools.push]\nwho = "superuser"\n', "utf-8")
    async with chatting(tmp_path, []) as chat:
        said = await told(chat, "工具 谁 push 所有人", role="admin")
        assert "没有权限使用 push" in said
        await told(chat, "工具 谁 push 7", role="admin", user="7")
        assert "push" not in await told(chat, "工具", user="7")


@virtual
async def test_a_superuser_leaves_a_tool_to_some_everywhere_and_both_must_hold(tmp_path):
    async with chatting(tmp_path, []) as chat:
        boss = {"group": None, "role": "superuser"}
        assert "所有群和私聊里" in await told(chat, "工具 谁 push 12345678", **boss)
        assert chat.agent.store.places.left_to_at(EVERYWHERE, "push") == "12345678"
        await told(chat, "工具 谁 push 管理员", role="admin")
        assert "push" not in await told(chat, "工具", user="12345678")
        assert "push" in await told(chat, "工具", user="12345678", role="admin")
        assert "push" in await told(chat, "工具", user="12345678", group="701")


@virtual
async def test_reload_reads_the_file_again_and_says_what_is_wrong_with_it(tmp_path):
    (tmp_path / "tools").mkdir()
    path = tmp_path / "tools.toml"
    path.write_text("# noch nichts\n", "utf-8")
    async with chatting(tmp_path, []) as chat:
        path.write_text('[tools.push]\nwho = "admin"\n', "utf-8")
        assert "有误" not in await told(chat, "重载", role="admin")
        assert "push" not in await told(chat, "工具")
        path.write_text('[tools.push]\nwho = "everybody"\n', "utf-8")
        said = await told(chat, "重载", role="admin")
        assert "tools.toml 有误：第 2 行，[tools.push] 里的 who 不对" in said
        assert "旧的规则继续有效" in said
        assert "push" not in await told(chat, "工具")


@virtual
async def test_how_often_somebody_used_a_tool_is_said_and_outlives_a_restart(tmp_path):
    (tmp_path / "tools").mkdir()
    (tmp_path / "tools.toml").write_text("[tools.push]\nquota = 9\n", "utf-8")

    def reply(request):
        return PUSH if "结果" not in request.messages[-1].content else "推送好了。"

    async with chatting(tmp_path, reply) as chat:
        await chat.says("推送汇总", role="admin")
        await chat.says("确认", role="admin")
        assert chat.pushed
        assert "你今天用了 1 次" in await told(chat, "工具 push")
    async with chatting(tmp_path, reply) as chat:
        assert "你今天用了 1 次" in await told(chat, "工具 push")
