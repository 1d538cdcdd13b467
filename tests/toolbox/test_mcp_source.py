"""External MCP servers as tools: real children, the real executor; a server that dies, hangs, lies
or floods costs its own tools and no more."""

from __future__ import annotations

import asyncio
import json
import logging
import sys
import time
from pathlib import Path

import pytest

from chathands.conversation import Status
from chathands.toolbox import mcp_link
from chathands.toolbox.attachments import files_of
from tests.server.kit import until
from tests.toolbox.kit import MEMBER
from tests.toolbox.mcp_kit import alive, foreign, listed

ALL = ("echo", "die", "hang", "fail", "env", "picture", "hostile", "flood", "grow", "refuse", "nag")


def running(pid: int) -> bool:
    """Not a process that is only waiting to be collected by init."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.fixture(scope="module")
async def far(tmp_path_factory):
    directory = tmp_path_factory.mktemp("far")
    async with foreign(directory, FAR_TOKEN="geheim-123456", SECRET_OF_OURS="x") as world:
        world.offers(listed(*ALL))
        reads = {name: {"side_effect": "none"} for name in ("env", "picture", "hostile")}
        await world.sources.apply(
            {"far": world.table(env={"GIVEN": "${FAR_TOKEN}"}, timeout=5, tools=reads)}
        )
        await world.until(lambda: "far_echo" in world.names)
        yield world


async def test_its_tools_run_like_any_others(far):
    result = await far.call("far_echo", x="你好")
    assert (result.status, result.content) == (Status.OK, 'echo:{"x": "你好"}')
    assert result.foreign
    assert far.registry.current.owners["far_echo"] == "mcp:far"
    standing = far.standing()
    assert (standing.state, standing.where, standing.info) == ("ready", "stdio", "foreign 0.1")


async def test_wrong_arguments_do_not_reach_it(far):
    before = far.calls()
    result = await far.call("far_echo", x=["a", {}])
    assert result.status is Status.FAILED
    assert far.calls() == before


async def test_what_it_calls_an_error_is_one(far):
    result = await far.call("far_fail")
    assert result.status is Status.FAILED
    assert result.content.startswith("没有这个人 line two")
    assert "<tool_call" not in result.content
    assert (await far.call("far_refuse")).status is Status.FAILED


async def test_a_result_is_data(far):
    result = await far.call("far_hostile")
    assert result.status is Status.OK
    for mark in ("```json action", "<tool_call", "\u200b", "\u202e"):
        assert mark not in result.content


async def test_a_picture_goes_to_the_person(far):
    scope_done: list = []
    tool = far.registry.current.tools["far_picture"]
    result = await far.call("far_picture")
    assert result.status is Status.OK
    assert "picture-1.png" in result.content
    assert tool.side_effect == "none"
    assert files_of(scope_done) == ()


async def test_a_child_sees_nothing_of_our_environment(far, monkeypatch):
    result = await far.call("far_env")
    seen = json.loads(result.content)
    assert {"PATH", "GIVEN", "MCP_WITHIN_CHATHANDS"} <= set(seen)
    assert "SECRET_OF_OURS" not in seen
    assert not any(name.startswith(("CHATHANDS", "FAR_")) for name in seen)
    # It was given the secret, and what it says does not show it.
    assert seen["GIVEN"] == "***"


async def test_a_list_that_changes_is_read_again(far):
    far.offers(listed(*ALL, "new"))
    before = far.registry.current
    assert (await far.call("far_grow")).status is Status.OK
    await far.until(lambda: "far_new" in far.names)
    assert "far_new" not in before.specs  # a run that had begun keeps what it had


async def test_one_that_always_tells_of_changes_is_not_always_asked(far, monkeypatch):
    monkeypatch.setattr(mcp_link, "LOOK_PAUSE", 0.1)
    assert (await far.call("far_nag")).status is Status.OK
    began = time.monotonic()
    await until(lambda: far.calls().count("list") >= 4)
    assert time.monotonic() - began > 0.25
    assert (await far.call("far_nag")).status is Status.OK


async def test_dying_in_a_call_is_unknown_and_it_comes_back(far):
    pid = far.pid()
    result = await far.call("far_die")
    assert result.status is Status.UNKNOWN
    assert "不能确定" in result.content
    await far.until(lambda: far.standing().state == "ready" and far.pid() != pid)
    assert not alive(pid)
    assert (await far.call("far_echo")).status is Status.OK


async def test_while_it_is_away_its_tools_are_too(far):
    pinned = far.registry.current
    await far.sources.apply({"far": far.table(command="/no/such/program")})
    await far.until(lambda: far.standing().state == "down")
    assert far.names == set()
    assert "启动不了" in far.standing().reason
    tool = pinned.tools["far_echo"]
    assert tool.name == "far_echo"
    await far.sources.apply({"far": far.table()})
    await far.until(lambda: "far_echo" in far.names)


async def test_one_that_hangs_is_replaced_and_the_call_ends_in_time(far, monkeypatch):
    monkeypatch.setattr("chathands.toolbox.mcp_link.LIST_SECONDS", 0.2)
    pid = far.pid()
    await far.sources.apply({"far": far.table(timeout=0.3)})
    result = await far.call("far_hang")
    assert result.status is Status.UNKNOWN
    await far.until(lambda: far.standing().state == "ready" and far.pid() != pid)
    assert not alive(pid)
    await far.sources.apply({"far": far.table()})


async def test_a_message_without_end_is_not_kept(far):
    result = await far.call("far_flood")
    assert result.status is Status.UNKNOWN
    await far.until(lambda: far.standing().state == "ready")


async def test_its_stderr_reaches_the_log_redacted(far, caplog):
    with caplog.at_level(logging.INFO, logger="chathands"):
        await far.sources.apply({})
        await far.sources.apply({"far": far.table()})
        await far.until(lambda: "far_echo" in far.names)
    assert "mcp far: starting with Bearer ***" in caplog.text
    assert "abcdefgh12345678" not in caplog.text


async def test_what_leaves_the_file_leaves_the_tools(far):
    pid = far.pid()
    await far.sources.apply({})
    assert far.names == set()
    assert far.sources.standing() == ()
    assert not alive(pid)


async def test_overrides_change_without_a_new_connection(tmp_path):
    async with foreign(tmp_path) as world:
        world.offers(listed("a", "b"))
        await world.sources.apply({"far": world.table()})
        await world.until(lambda: "far_a" in world.names)
        pid = world.pid()
        table = world.table(
            prefix="f_", tools={"a": {"side_effect": "none"}, "b": {"enabled": False}}
        )
        await world.sources.apply({"far": table})
        assert world.names == {"f_a"}
        assert world.registry.current.specs["f_a"].side_effect == "none"
        assert world.pid() == pid


async def test_a_foreign_tool_asks_first_and_the_policy_holds(tmp_path):
    toml = '[tools.far_b]\nwho = "superuser"\n'
    async with foreign(tmp_path, toml=toml) as world:
        world.offers(listed("a", "b"))
        await world.sources.apply({"far": world.table()})
        await world.until(lambda: "far_a" in world.names)
        policy = world.executor.policy
        visible = world.registry.current.visible_to(MEMBER, policy)
        assert [spec.name for spec in visible] == ["far_a"]
        assert policy.approval_reason(visible[0], read_foreign=False)
        assert (await world.call("far_b", by=MEMBER)).status is Status.DENIED
        assert world.calls() == []


async def test_bad_servers_do_not_hold_up_good_ones(tmp_path):
    async with foreign(tmp_path) as world:
        world.offers(listed("a"), "good")
        slow = {"command": "sleep", "args": ["60"], "connect_timeout": 0.3}
        tables = {
            "good": world.table("good"),
            "slow": slow,
            "gone": {"command": "/no/such/program"},
            "secret": {"command": "true", "env": {"X": "${NOT_SET}"}},
            "wrong": {"comand": "x"},
            "off": {"command": "x", "enabled": False},
            "unreachable": {"url": "http://127.0.0.1:9/mcp"},
        }
        started = asyncio.get_running_loop().time()
        await world.sources.apply(tables)
        assert asyncio.get_running_loop().time() - started < 0.3
        await world.until(lambda: "good_a" in world.names)
        await world.sources.settled(10)
        states = {each.name: each.state for each in world.sources.standing()}
        assert states == {
            "good": "ready", "slow": "down", "gone": "down", "secret": "down", "wrong": "off",
            "off": "off", "unreachable": "down",
        }  # fmt: skip
        reasons = {each.name: each.reason for each in world.sources.standing()}
        assert "NOT_SET" in reasons["secret"]
        assert "comand" in reasons["wrong"]
        assert all(reasons[name] for name in states if name != "good")


async def test_one_that_is_itself_a_server_starts_no_more(tmp_path, monkeypatch):
    monkeypatch.setenv("MCP_WITHIN_CHATHANDS", "1")
    async with foreign(tmp_path) as world:
        await world.sources.apply({"far": world.table()})
        assert (world.standing().state, world.names) == ("off", set())
        assert "自己就是" in world.standing().reason


async def test_a_name_that_is_taken_stays_its_owners(tmp_path):
    async with foreign(tmp_path) as world:
        world.offers(listed("a"), "one")
        world.offers(listed("a"), "two")
        await world.sources.apply({"one": world.table("one", prefix="x_")})
        await world.until(lambda: "x_a" in world.names)
        await world.sources.apply(
            {"one": world.table("one", prefix="x_"), "two": world.table("two", prefix="x_")}
        )
        await world.until(lambda: world.standing("two").state == "ready")
        assert world.registry.current.owners["x_a"] == "mcp:one"


async def test_a_child_that_will_not_go_is_killed_with_its_children(tmp_path):
    """It ignores the end of its input and SIGTERM, and so does what it started."""
    stubborn = (
        "import os, signal, sys, time\n"
        "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        "child = os.fork()\n"
        "if child: open(sys.argv[1], 'w').write(f'{os.getpid()} {child} ')\n"
        "time.sleep(600)\n"
    )
    pids = tmp_path / "pids"
    async with foreign(tmp_path) as world:
        table = {"command": sys.executable, "args": ["-S", "-c", stubborn, str(pids)]}
        await world.sources.apply({"bad": table})
        await until(lambda: pids.exists() and pids.read_text().endswith(" "))
        started = asyncio.get_running_loop().time()
        await world.sources.aclose()
        assert asyncio.get_running_loop().time() - started < 1.9
    for pid in pids.read_text().split():
        await until(lambda pid=pid: not running(int(pid)))
