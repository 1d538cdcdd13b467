"""`chathands serve` beside the bot, two real processes on one state: asked there, decided here."""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx

from tests.black_box.conftest import SECRET
from tests.black_box.harness import ROOT, Ring, free_port
from tests.standins.dingtalk import DingTalk

SUPERUSER = 9001
TOKENS = {"tok-report": {"name": "报表程序"}}


@asynccontextmanager
async def tool_server(ring: Ring, dingtalk: DingTalk) -> AsyncIterator[httpx.AsyncClient]:
    """A tool server in the bot's directory, without a model; a client with its token."""
    port = free_port()
    robots = {"销售群": {"webhook": dingtalk.webhook, "secret": SECRET}}
    keep = ("PATH", "SYSTEMROOT", "TEMP", "TMP", "LANG", "LC_ALL")
    env = {name: os.environ[name] for name in keep if name in os.environ} | {
        "HOME": str(ring.bot.directory),
        "PYTHONPATH": str(ROOT),
        "PYTHONIOENCODING": "utf-8",
        "CHATHANDS__LOCAL_MODEL": "false",
        "CHATHANDS__DINGTALK__ROBOTS": json.dumps(robots),
        "CHATHANDS__API__TOKENS": json.dumps(TOKENS),
    }
    code = "from chathands.cli import main; main()"
    server = await asyncio.create_subprocess_exec(
        sys.executable, "-c", code, "serve", "--port", str(port),
        cwd=ring.bot.directory, env=env, stdout=asyncio.subprocess.PIPE,
    )  # fmt: skip
    assert server.stdout is not None
    try:
        async with asyncio.timeout(30):
            while b"/tools" not in await server.stdout.readline():
                assert not server.stdout.at_eof()
        async with httpx.AsyncClient(
            base_url=f"http://127.0.0.1:{port}",
            headers={"authorization": "Bearer tok-report"},
            transport=httpx.AsyncHTTPTransport(retries=5),  # uvicorn is about to listen
            timeout=20,
        ) as client:
            yield client
    finally:
        server.terminate()
        await server.wait()
        getattr(server, "_transport").close()  # noqa: B009


async def test_a_superuser_is_told_within_two_seconds_and_their_yes_runs_it_once(
    ring: Ring, dingtalk: DingTalk
):
    async with tool_server(ring, dingtalk) as client:
        push = {"robot": "销售群", "title": "日报", "content": "程序推送的九月汇总"}
        asked = await client.post("/tools/send_dingtalk_message", json=push)
        began = time.monotonic()
        assert asked.status_code == 409, asked.text
        number = asked.json()["approval"]["number"]
        told = await ring.sim.wait_delivered(match=f"待确认 {number} ")
        assert time.monotonic() - began < 2
        assert (told.user_id, told.group_id) == (SUPERUSER, None)
        for part in ("报表程序", "销售群", "程序推送的九月汇总"):
            assert part in told.text
        heard = len(ring.world.delivered)
        await ring.sim.raw(private(ring, f"确认 {number}"))
        await ring.sim.wait_delivered(match=f"已批准 {number}", after=heard)
        headers = {"approval-ticket": asked.json()["ticket"]}
        twice = [
            await client.post("/tools/send_dingtalk_message", json=push, headers=headers)
            for _ in range(2)
        ]
        assert [reply.status_code for reply in twice] == [200, 409], twice[0].text
    assert sum("程序推送的九月汇总" in one.text for one in dingtalk.accepted) == 1


def private(ring: Ring, text: str) -> dict[str, object]:
    """A private message of the superuser, as NapCat reports one."""
    return {
        "message_type": "private",
        "sub_type": "friend",
        "message_id": int(time.time() * 1000) % 2**31,
        "user_id": SUPERUSER,
        "message": [{"type": "text", "data": {"text": text}}],
        "raw_message": text,
        "font": 0,
        "sender": {"user_id": SUPERUSER, "nickname": "boss"},
    }
