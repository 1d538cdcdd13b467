"""The gateway and the tool API on the bot's own port, beside QQ."""

import json

import httpx

from tests.black_box.conftest import running
from tests.black_box.harness import KEY, TOKEN, ModelBrain, action
from tests.standins.dingtalk import DingTalk

TOKENS = {"api-token-1": {"name": "ci", "rate": 500}, "api-token-2": {"name": "two", "rate": 500}}


async def test_programs_use_the_bots_port_its_tools_and_its_model(tmp_path):
    brain = ModelBrain()
    brain.plays("几点", action("now"))
    brain.plays("打个招呼", "你好")
    settings = {
        "CHATHANDS__API__ON_BOT_PORT": "true",
        "CHATHANDS__API__TOKENS": json.dumps(TOKENS),
    }
    async with (
        DingTalk() as dingtalk,
        running(tmp_path / "bot", dingtalk, brain, **settings) as ring,
    ):
        await ring.bot.wait_log("HTTP 接口：")
        base = f"http://127.0.0.1:{ring.bot.port}"
        right = {"authorization": "Bearer api-token-1"}
        async with httpx.AsyncClient(base_url=base, timeout=20) as client:
            for wrong in ({}, {"authorization": f"Bearer {TOKEN}"}, {"x-api-key": TOKEN}):
                for path in ("/v1/models", "/tools", "/metrics", "/openapi.json"):
                    assert (await client.get(path, headers=wrong)).status_code == 401
            assert (await client.get("/health/ready")).json() == {"status": "ready"}
            models = (await client.get("/v1/models", headers=right)).json()
            assert [row["id"] for row in models["data"]] == ["stand-in"]
            tools = (await client.get("/tools", headers=right)).json()["tools"]
            assert "send_dingtalk_message" in {tool["name"] for tool in tools}
            push = {"robot": "销售群", "title": "日报", "content": "程序推送的九月汇总"}
            asked = await client.post("/tools/send_dingtalk_message", json=push, headers=right)
            assert asked.status_code == 409
            await ring.sim.wait_delivered(match=f"待确认 {asked.json()['approval']['number']} ")
            body = {
                "model": "stand-in",
                "messages": [{"role": "user", "content": "现在几点"}],
                "tools": [{"type": "function", "function": {"name": "now", "parameters": {}}}],
            }
            reply = await client.post("/v1/chat/completions", json=body, headers=right)
            assert reply.json()["choices"][0]["finish_reason"] == "tool_calls"
            assert KEY not in reply.text
        question = await ring.ask(1, 2, "@bot 打个招呼")
        assert await ring.reply(question) == "你好"
