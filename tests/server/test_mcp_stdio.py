"""`chathands mcp`: a child process of the official client, in both protocol revisions."""

from __future__ import annotations

import asyncio
import json
import signal
import socket
import sys
from contextlib import AsyncExitStack
from pathlib import Path

import pytest
from mcp import Client

from chathands.toolbox.audit import verify
from tests.server.kit import settings_in
from tests.server.mcp_kit import command, error_of, over_stdio, text_of
from tests.toolbox.mcp_kit import SCRIPT, alive, listed


@pytest.fixture(scope="module")
def box(tmp_path_factory):
    directory = tmp_path_factory.mktemp("stdio")
    settings_in(directory)
    # What a tool prints must not reach the client, and what it reads is not the client's.
    (directory / "tools" / "noisy.py").write_text(
        "import os, sys\n"
        "from chathands import tool\n"
        "print('at import')\n"
        "@tool(side_effect='none')\n"
        "async def noisy() -> str:\n"
        '    """说个不停。"""\n'
        "    print('loud')\n"
        "    os.write(1, b'raw\\n')\n"
        "    return repr(os.read(0, 10))\n",
        "utf-8",
    )
    return directory


async def test_a_client_lists_and_calls_as_a_member(box):
    async with over_stdio(box) as client:
        listed = {tool.name for tool in (await client.list_tools()).tools}
        assert {"look_up", "note", "push", "noisy"} <= listed
        assert "report" not in listed
        assert text_of(await client.call_tool("look_up", {"city": "北京"})).startswith("北京 1")
        assert text_of(await client.call_tool("noisy", {})) == "b''"
        refused = await client.call_tool("push", {"robot": "群", "content": "早"})
        assert error_of(refused)["code"] == "approval_required"
        assert error_of(await client.call_tool("report", {}))["code"] == "forbidden"
    said = (box / "stderr.txt").read_text("utf-8")
    assert "at import" in said
    assert "loud" in said
    assert "raw" in said
    assert verify(box / "state") == []


async def test_the_role_and_the_name_are_the_starters_to_say(box):
    arguments = ("--role", "superuser", "--name", "ide")
    async with over_stdio(box, *arguments, mode="legacy") as client:
        assert "report" in {tool.name for tool in (await client.list_tools()).tools}
        assert text_of(await client.call_tool("report", {})) == "报表"
    lines = [
        json.loads(line)
        for file in (box / "state" / "audit").rglob("*.jsonl")
        for line in file.read_text("utf-8").splitlines()
    ]
    (call,) = [line for line in lines if line.get("tool") == "report" and line["status"] == "ok"]
    assert (call["platform"], call["user"], call["role"]) == ("mcp", "ide", "superuser")


async def test_it_ends_when_it_is_told_to(box):
    started = command(box)
    async with AsyncExitStack() as closing:
        process = await asyncio.create_subprocess_exec(
            started.command, *started.args, env=started.env, cwd=box,
            stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
        )  # fmt: skip
        closing.callback(lambda: process.returncode is None and process.kill())
        assert process.stdin
        assert process.stdout
        hello = {
            "jsonrpc": "2.0", "id": 1, "method": "initialize",
            "params": {
                "protocolVersion": "2025-06-18", "capabilities": {},
                "clientInfo": {"name": "t", "version": "1"},
            },
        }  # fmt: skip
        process.stdin.write(b"no message\n" + json.dumps(hello).encode() + b"\n")
        async with asyncio.timeout(20):
            reply = json.loads(await process.stdout.readline())
            assert reply["result"]["serverInfo"]["name"] == "chathands"
            assert reply["result"]["capabilities"]["tools"] == {"listChanged": True}
        process.send_signal(signal.SIGTERM)
        async with asyncio.timeout(5):
            assert await process.stdout.read() == b""
            assert await process.wait() == 0


async def test_serve_has_mcp_and_ends_its_foreign_servers_with_itself(tmp_path):
    file = tmp_path / "far.json"
    file.write_text(json.dumps({"tools": listed("env")}), "utf-8")
    args = json.dumps(["-S", "-E", str(SCRIPT), str(file)])
    (tmp_path / "tools.toml").write_text(
        f"[mcp.far]\ncommand = {json.dumps(sys.executable)}\nargs = {args}\n"
        '[mcp.far.tools.env]\nside_effect = "none"\n',
        "utf-8",
    )
    settings_in(tmp_path)
    started = command(tmp_path)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    environment = {**(started.env or {}), "CHATHANDS__LOCAL_MODEL": "false"}
    process = await asyncio.create_subprocess_exec(
        started.command, *started.args[:-1], "serve", "--port", str(port),
        env=environment, cwd=tmp_path, stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
    )  # fmt: skip
    try:
        assert process.stdout
        async with asyncio.timeout(20):
            while b"/mcp" not in await process.stdout.readline():
                pass
            client = await connected(port)
        async with client:
            async with asyncio.timeout(10):
                while "far_env" not in {  # noqa: ASYNC110
                    tool.name for tool in (await client.list_tools()).tools
                }:
                    await asyncio.sleep(0.02)
            seen = json.loads(text_of(await client.call_tool("far_env", {})))
            assert not any(name.startswith("CHATHANDS") for name in seen)
        (child,) = children_of(process.pid)
        process.terminate()
        async with asyncio.timeout(5):
            assert await process.wait() == 0
        assert not alive(child)
    finally:
        if process.returncode is None:
            process.kill()


def children_of(pid: int) -> list[int]:
    return [int(p) for p in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


async def connected(port: int) -> Client:
    """The line is printed a moment before the port listens."""
    while True:
        try:
            _, writer = await asyncio.open_connection("127.0.0.1", port)
        except OSError:
            await asyncio.sleep(0.02)
        else:
            writer.close()
            return Client(f"http://127.0.0.1:{port}/mcp")
