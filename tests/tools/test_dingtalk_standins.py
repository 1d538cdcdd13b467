"""The stand-ins as processes of their own, the way a black-box test starts them."""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx

from tools.push.dingtalk import signature

ROOT = Path(__file__).resolve().parents[2]


@asynccontextmanager
async def process(module: str, *arguments: str) -> AsyncIterator[dict[str, Any]]:
    """What the process printed when it was ready; it is ended on leaving."""
    child = await asyncio.create_subprocess_exec(
        sys.executable, "-m", module, *arguments, cwd=ROOT, stdout=asyncio.subprocess.PIPE
    )
    try:
        assert child.stdout is not None
        async with asyncio.timeout(20):
            yield json.loads(await child.stdout.readline())
    finally:
        child.terminate()
        await child.wait()


async def test_dingtalk_takes_messages_and_queued_faults() -> None:
    body = {"msgtype": "markdown", "markdown": {"title": "周报", "text": "日报：好"}}
    async with (
        process("tests.standins.dingtalk", "--secret", "SECx", "--keywords", "日报") as said,
        httpx.AsyncClient(base_url=said["url"], trust_env=False) as client,
    ):
        unsigned = await client.post(said["path"], json=body)
        assert unsigned.json() == {"errcode": 310000, "errmsg": "invalid timestamp"}
        now = str(int(time.time() * 1000))
        address = httpx.URL(said["path"])
        address = address.copy_merge_params({"timestamp": now, "sign": signature("SECx", now)})
        assert (await client.post(address, json=body)).json() == {"errcode": 0, "errmsg": "ok"}
        await client.post("/standin/fault", content="rate")
        assert (await client.post(address, json=body)).json()["errcode"] == 130101
        assert (await client.get("/standin/accepted")).json() == [body]


async def test_open_meteo_answers_and_tells_what_it_was_asked() -> None:
    async with (
        process("tests.standins.open_meteo") as said,
        httpx.AsyncClient(base_url=said["url"], trust_env=False) as client,
    ):
        found = await client.get("/v1/search", params={"name": "东京", "language": "zh"})
        assert found.json()["results"][0]["country_code"] == "JP"
        nothing = await client.get("/v1/search", params={"name": "某地", "language": "zh"})
        assert "results" not in nothing.json()
        bad = await client.get("/v1/forecast", params={"latitude": 91, "longitude": 0})
        assert bad.status_code == 400
        assert bad.json()["error"] is True
        await client.post("/standin/fault", content="503")
        assert (await client.get("/v1/forecast")).status_code == 503
        asked = (await client.get("/standin/requests")).json()
        assert [request["path"] for request in asked][:2] == ["/v1/search", "/v1/search"]
