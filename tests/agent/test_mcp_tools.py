"""Runs with tools of external MCP servers: `mcp-server-time`, which nobody here wrote, and one that
dies; only the model is a script."""

from __future__ import annotations

import json
import sys

from chathands.agent import Finished, Suspended, build_agent
from chathands.upstreams.scripted import Scripted
from tests.agent.kit import BOSS, MEMBER, block, world
from tests.server.kit import until
from tests.toolbox.kit import settings_in
from tests.toolbox.mcp_kit import SCRIPT, listed

TIME = f"""
[mcp.time]
command = {json.dumps(sys.executable)}
args = ["-m", "mcp_server_time", "--local-timezone", "Asia/Shanghai"]

[mcp.time.tools.convert_time]
side_effect = "none"
"""
CONVERT = {
    "source_timezone": "Asia/Shanghai",
    "time": "08:30",
    "target_timezone": "Asia/Tokyo",
}


async def tools_are_there(here, *names):
    await until(lambda: set(names) <= set(here.agent.describe().tools))


async def test_a_server_from_the_package_index_answers_a_question(tmp_path):
    replies = [
        block("time_convert_time", **CONVERT),
        "东京时间 09:30。",
        block("time_get_current_time", timezone="Asia/Tokyo"),
        "2026 年。",
    ]
    async with world(tmp_path, replies, toml=TIME) as here:
        await tools_are_there(here, "time_convert_time")
        finished = await here.ask("北京时间 08:30 是东京几点？从 Asia/Shanghai 到 Asia/Tokyo")
        assert "09:30" in here.last_text()
        assert "T09:30:00+09:00" in here.last_text()
        assert isinstance(finished, Finished)
        assert finished.text == "东京时间 09:30。"
        # Its own mark says that it only reads; a person is asked all the same.
        suspended = await here.ask("现在 Asia/Tokyo 几点？", MEMBER)
        assert isinstance(suspended, Suspended)
        done = await here.decide(suspended, True, BOSS)
        assert "Asia/Tokyo" in here.last_text()
        assert done.text == "2026 年。"


async def test_one_that_dies_in_a_call_is_told_and_leaves_the_contract(tmp_path):
    file, calls = tmp_path / "far.json", tmp_path / "far.json.calls"
    file.write_text(json.dumps({"tools": listed("die", "echo")}), "utf-8")
    args = json.dumps(["-S", "-E", str(SCRIPT), str(file)])
    toml = f"[mcp.far]\ncommand = {json.dumps(sys.executable)}\nargs = {args}\n"
    replies = [block("far_die", x="甲"), "不能确定有没有完成，请核对。", "现在没有这个工具。"]
    async with world(tmp_path, replies, toml=toml) as here:
        await tools_are_there(here, "far_die")
        suspended = await here.ask("用 far_die 处理“甲”")
        assert isinstance(suspended, Suspended)
        # Whoever says yes sees what will be sent.
        assert "甲" in suspended.approval.shown
        file.unlink()  # it cannot list tools any more when it is started again
        finished = await here.decide(suspended, True, BOSS)
        assert "status=unknown" in here.last_text()
        assert "不能确定" in finished.text
        await until(lambda: here.agent.describe().tools == ())
        assert calls.read_text("utf-8").splitlines() == ['die {"x": "甲"}']
        after = await here.ask("再用 far_die 处理“乙”")
        assert not any("far_die" in m.content for m in here.requests[-1].messages[:1])
        assert isinstance(after, Finished)


async def test_a_table_with_a_mistake_is_told_and_nothing_else_is_lost(tmp_path):
    told = []
    settings = settings_in(tmp_path)
    (tmp_path / "tools.toml").write_text('[mcp.far]\ncommand = "x"\nurl = "http://x"\n', "utf-8")
    async with build_agent(
        settings, upstream=Scripted(["好"]), on_load_error=lambda e: told.append(e.sentence)
    ):
        pass
    assert len(told) == 1
    assert "[mcp.far]" in told[0]


async def test_a_server_written_into_the_file_is_there_without_a_restart(tmp_path):
    file = tmp_path / "far.json"
    file.write_text(json.dumps({"tools": listed("echo")}), "utf-8")
    args = json.dumps(["-S", "-E", str(SCRIPT), str(file)])
    table = f"[mcp.far]\ncommand = {json.dumps(sys.executable)}\nargs = {args}\n"
    toml = tmp_path / "tools.toml"
    async with world(tmp_path, ["好"], toml="# nothing yet\n") as here:
        assert here.agent.describe().tools == ()
        # A rule about a tool that is not there yet is no mistake.
        toml.write_text(table + '[tools.far_echo]\nwho = "admin"\n', "utf-8")
        await here.agent.reload_tools()
        await tools_are_there(here, "far_echo")
        toml.write_text("# nothing any more\n", "utf-8")
        await here.agent.reload_tools()
        await until(lambda: here.agent.describe().tools == ())
