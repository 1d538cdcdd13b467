"""Which models a client sees, whether the gateway is well, and what it counts: over a socket."""

import asyncio
import json
import socket
from contextlib import asynccontextmanager

import httpx
import pytest
import uvicorn
from prometheus_client.parser import text_string_to_metric_families

from chathands.server import create_app
from chathands.settings import ApiToken, load_settings
from chathands.upstreams.build import build_router
from tests.standins.model_server import ModelServer, Reply

CALL = '```json action\n{"tool": "lookup", "parameters": {"city": "北京"}}\n```'
TOOL = {
    "type": "function",
    "function": {
        "name": "lookup",
        "description": "Looks a city up.",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}},
    },
}
TOKENS = {
    "t-all": ApiToken(name="all", rate=500),
    "t-small": ApiToken(name="small", models=("small", "org/x:7b"), rate=500),
}


@asynccontextmanager
async def gateway(directory, script, *, tokens=None, more="", **entry):
    """A gateway over entries `qwen` and `small`, both of which are one stand-in."""
    async with ModelServer(script, takes_tools=True) as model:
        about = "\n".join(f"{key} = {value}" for key, value in entry.items())
        (directory / "chathands.toml").write_text(
            f'[models.qwen]\nbase_url = "{model.url}"\nmodel = "qwen-max"\n{about}\n'
            f'[models.small]\nbase_url = "{model.url}"\n'
            f"{more.replace('URL', model.url)}",
            "utf-8",
        )
        router = await build_router(load_settings(directory))
        app = create_app(router, tokens=tokens)
        config = uvicorn.Config(app, log_level="critical", lifespan="off", ws="none")
        server = uvicorn.Server(config)
        listening = socket.create_server(("127.0.0.1", 0))
        serving = asyncio.create_task(server.serve([listening]))
        address = f"http://127.0.0.1:{listening.getsockname()[1]}"
        try:
            async with httpx.AsyncClient(base_url=address, timeout=10) as client:
                yield client, model
        finally:
            server.should_exit = True
            await serving
            await router.aclose()
            listening.close()


async def ask(client, model="qwen", headers=None, **fields):
    body = {"model": model, "messages": [{"role": "user", "content": "北京"}], **fields}
    return await client.post("/v1/chat/completions", json=body, headers=headers)


async def counted(client, headers=None) -> dict:
    """Samples by name and label values."""
    response = await client.get("/metrics", headers=headers)
    assert response.headers["content-type"].startswith("text/plain")
    return {
        (sample.name.removeprefix("chathands_gateway_"), *_values(sample.labels)): sample.value
        for family in text_string_to_metric_families(response.text)
        for sample in family.samples
    }


def _values(labels):
    """The entry's name first: the format sorts labels by their names."""
    return [labels[key] for key in sorted(labels, key=lambda key: key not in ("model", "upstream"))]


async def test_each_name_goes_to_its_entry_and_others_are_404(tmp_path):
    async with gateway(tmp_path, ["好", "好"]) as (client, model):
        assert (await ask(client)).json()["model"] == "qwen"
        assert (await ask(client, "small")).status_code == 200
        missing = await ask(client, "nobody")
    assert [r.body["model"] for r in model.requests] == ["qwen-max", "small"]
    assert missing.status_code == 404
    assert missing.json()["error"]["code"] == "model_not_found"
    assert "qwen" not in missing.text


async def test_a_list_of_models_has_the_shape_of_whoever_asks(tmp_path):
    everything = '[models."*"]\nbase_url = "http://127.0.0.1:1/v1"\n'
    async with gateway(tmp_path, [], more=everything) as (client, _):
        rows = (await client.get("/v1/models")).json()
        assert [row["id"] for row in rows["data"]] == ["qwen", "small"]
        assert rows["object"] == "list"
        one = (await client.get("/v1/models/org/x:7b")).json()
        assert (one["id"], one["object"]) == ("org/x:7b", "model")
        other = {"anthropic-version": "2023-06-01", "x-api-key": "any"}
        rows = (await client.get("/v1/models", headers=other)).json()
        assert [row["type"] for row in rows["data"]] == ["model", "model"]
        assert (rows["has_more"], rows["first_id"], rows["last_id"]) == (False, "qwen", "small")
        assert (await client.get("/v1/models/small", headers=other)).json()["type"] == "model"


async def test_a_token_sees_and_uses_only_its_models(tmp_path):
    everything = '[models."*"]\nbase_url = "http://127.0.0.1:1/v1"\n'
    small = {"authorization": "Bearer t-small"}
    async with gateway(tmp_path, ["好"], tokens=TOKENS, more=everything) as (client, model):
        rows = (await client.get("/v1/models", headers=small)).json()["data"]
        assert [row["id"] for row in rows] == ["small"]
        assert (await ask(client, "small", small)).status_code == 200
        refused = [await ask(client, name, small) for name in ("qwen", "nobody", "*")]
        assert [r.status_code for r in refused] == [403] * 3
        assert len({r.text for r in refused}) == 1
    assert len(model.requests) == 1


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"x-api-key": "t-all"}, 200),
        ({"x-api-key": "t-al"}, 401),
        ({"authorization": "Bearer wrong", "x-api-key": "t-all"}, 401),
        ({"authorization": "Bearer t-all", "x-api-key": "dummy"}, 200),
        ({}, 401),
    ],
)
async def test_a_token_may_come_as_x_api_key(tmp_path, headers, status):
    version = {"anthropic-version": "2023-06-01"}
    async with gateway(tmp_path, [], tokens=TOKENS) as (client, _):
        response = await client.get("/v1/models", headers=headers | version)
    assert response.status_code == status
    if status == 401:
        assert response.json()["type"] == "error"
        assert response.json()["error"]["type"] == "authentication_error"


async def test_health_says_nothing_to_strangers_and_which_keys_rest_to_those_let_in(tmp_path):
    busy = Reply(status=429, headers={"retry-after": "600"})
    keys = '["sk-one-123456", "sk-two-123456"]'
    options = {"tokens": TOKENS, "api_key": keys}
    right = {"authorization": "Bearer t-all"}
    async with gateway(tmp_path, [busy, "好"], **options) as (client, _):
        assert (await client.get("/health")).json() == {"status": "ok"}
        assert (await client.get("/health/ready")).json() == {"status": "ready"}
        assert (await ask(client, headers=right)).status_code == 200
        ready = await client.get("/health/ready", headers=right)
        assert ready.json()["upstreams"]["qwen"] == {
            "resting_seconds": 0.0,
            "keys": 2,
            "keys_resting": 1,
        }
        assert (await client.get("/metrics")).status_code == 401
        text = (await client.get("/metrics", headers=right)).text
        assert 'keys_resting{upstream="qwen"} 1.0' in text
        assert "sk-" not in text + ready.text


async def test_readiness_without_a_model_is_503():
    app = create_app(None)
    transport = httpx.ASGITransport(app)
    async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
        assert (await client.get("/health")).status_code == 200
        assert (await client.get("/health/ready")).status_code == 503


@pytest.mark.parametrize("stream", [False, True])
async def test_what_happened_is_counted_by_entry(tmp_path, stream):
    script = ["抱歉，我没有可用的工具，无法查询。", CALL, "好", *[Reply(status=500)] * 4]
    more = '[models."*"]\nbase_url = "URL"\n'
    async with gateway(tmp_path, script, more=more, aliases='["gpt-4o"]') as (client, _):
        await ask(client, tools=[TOOL], stream=stream)
        await ask(client, "gpt-4o", stream=stream)
        await ask(client, "small", stream=stream)
        for n in range(3):
            await ask(client, f"made-up-{n}", stream=stream)
        seen = await counted(client)
    assert seen["requests_total", "qwen", "calls"] == 1
    assert seen["requests_total", "qwen", "answer"] == 1
    assert seen["requests_total", "small", "upstream"] == 1
    assert seen["requests_total", "*", "upstream"] == 3
    assert seen["retries_total", "qwen", "refusal"] == 1
    assert seen["calls_total", "qwen", "strict"] == 1
    assert seen["upstream_errors_total", "small", "UpstreamFailed"] == 1
    assert seen["in_flight", "qwen"] == 0
    assert seen["request_seconds_count", "qwen"] == 2
    assert not stream or seen["first_token_seconds_count", "qwen"] == 2
    assert not any("made-up" in str(key) for key in seen)


async def test_a_client_that_hangs_up_is_counted_and_the_upstream_let_go(tmp_path):
    hang = Reply("一二三四" * 40, hang="stream", finish_reason=None)
    async with gateway(tmp_path, [hang]) as (client, model):
        body = {"model": "qwen", "messages": [{"role": "user", "content": "q"}], "stream": True}
        async with client.stream("POST", "/v1/chat/completions", json=body) as response:
            async for line in response.aiter_lines():
                if "一" in line:
                    break
            assert (await counted(client))["in_flight", "qwen"] == 1
        async with asyncio.timeout(5):
            await model.hung_up.wait()
            while (await counted(client))["in_flight", "qwen"]:
                pass
            assert (await counted(client))["requests_total", "qwen", "cancelled"] == 1


NATIVE_CALL = [
    {"choices": [{"index": 0, "delta": {"tool_calls": [call]}, "finish_reason": None}]}
    for call in (
        {"index": 0, "id": "c1", "type": "function", "function": {"name": "lookup"}},
        {"index": 0, "function": {"arguments": '{"city": '}},
        {"index": 0, "function": {"arguments": '"北京"}'}},
    )
] + [{"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]}]
LEAKED = '<tool_call>\n{"name": "lookup", "arguments": {"city": "北京"}}\n</tool_call>'


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    "reply",
    [
        Reply(events=NATIVE_CALL),
        Reply(LEAKED),
        Reply('{"name": "lookup", "arguments": {"city": "北京"}}'),
        Reply(f"我查一下。\n{LEAKED}"),
        Reply('[TOOL_CALLS][{"name": "lookup", "arguments": {"city": "北京"}}]'),
    ],
    ids=["native", "leaked", "bare", "after prose", "mistral"],
)
async def test_a_native_upstream_gets_the_tools_and_a_leaked_call_is_one(tmp_path, reply, stream):
    async with gateway(tmp_path, [reply], mode='"native"') as (client, model):
        response = await ask(client, tools=[TOOL], tool_choice="required", stream=stream)
    sent = model.requests[0].body
    assert sent["tools"][0]["function"]["name"] == "lookup"
    assert sent["tool_choice"] == "required"
    if stream:
        lines = [line[6:] for line in response.text.split("\n") if line.startswith("data: {")]
        deltas = [json.loads(line)["choices"][0] for line in lines]
        calls = [c for d in deltas for c in d["delta"].get("tool_calls") or []]
        text = "".join(d["delta"].get("content") or "" for d in deltas)
        reason = deltas[-1]["finish_reason"]
    else:
        choice = response.json()["choices"][0]
        calls, reason = choice["message"]["tool_calls"], choice["finish_reason"]
        text = choice["message"]["content"] or ""
    assert [call["function"]["name"] for call in calls if call["function"].get("name")] == [
        "lookup"
    ]
    arguments = "".join(call["function"].get("arguments") or "" for call in calls)
    assert json.loads(arguments) == {"city": "北京"}
    assert reason == "tool_calls"
    assert "lookup" not in text
    assert "tool_call" not in text


async def test_a_native_history_goes_on_as_the_protocols_own_messages(tmp_path):
    call = {"id": "c1", "type": "function",
            "function": {"name": "lookup", "arguments": '{"city": "北京"}'}}  # fmt: skip
    messages = [
        {"role": "user", "content": "北京"},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c1", "content": "晴"},
    ]
    async with gateway(tmp_path, ["晴。"], mode='"native"') as (client, model):
        response = await ask(client, tools=[TOOL], messages=messages)
    assert response.json()["choices"][0]["message"]["content"] == "晴。"
    sent = model.requests[0].body["messages"]
    assert sent[-2]["tool_calls"] == [call]
    assert (sent[-1]["role"], sent[-1]["tool_call_id"], sent[-1]["content"]) == ("tool", "c1", "晴")


async def test_when_the_native_one_is_down_the_one_that_only_chats_steps_in(tmp_path):
    def script(body):
        return Reply(status=500) if body["model"] == "qwen-max" else Reply(CALL)

    options = {"mode": '"native"', "fallback": '["small"]'}
    async with gateway(tmp_path, script, **options) as (client, model):
        for _ in range(2):
            reply = (await ask(client, tools=[TOOL])).json()
            assert reply["choices"][0]["finish_reason"] == "tool_calls"
        seen = await counted(client)
    asked = [(r.body["model"], "tools" in r.body) for r in model.requests]
    assert asked == [("qwen-max", True), ("small", False), ("small", False)]
    assert seen["fallbacks_total", "qwen", "small"] == 1


@pytest.mark.parametrize("status", [401, 403, 429, 500])
@pytest.mark.parametrize("stream", [False, True])
async def test_a_key_that_the_upstream_repeats_stays_inside(tmp_path, status, stream, caplog):
    caplog.set_level("DEBUG")
    key = "sk-upstream-0123456789"
    replies = [Reply(status=status, text=f"bad {key}"), Reply(status=status, text=f"bad {key}")]
    async with gateway(tmp_path, replies, api_key=f'"{key}"') as (client, _):
        response = await ask(client, stream=stream)
        text = (await client.get("/metrics")).text
    ours = "".join(record.getMessage() for record in caplog.records)
    assert key[:9] not in response.text + str(response.headers) + text + ours
