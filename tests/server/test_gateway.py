"""The gateway over real sockets: a plain-chat upstream in, real tool calls out."""

import asyncio
import json
import socket
from contextlib import asynccontextmanager

import httpx
import pytest
import uvicorn

from chathands.server import create_app
from chathands.settings import ApiToken
from chathands.upstreams.openai_chat import OpenAIChat
from chathands.upstreams.ways import Way, Ways
from tests.standins.model_server import ModelServer, Reply

CALL = '```json action\n{"tool": "lookup", "parameters": {"city": "北京"}}\n```'
TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "lookup",
            "description": "Looks a city up.",
            "parameters": {
                "type": "object",
                "properties": {"city": {"type": "string"}},
                "required": ["city"],
            },
        },
    }
]


@asynccontextmanager
async def gateway(replies, *, takes_tools=False, **options):
    """A client of a running gateway, and the stand-in model behind it."""
    async with ModelServer(replies, takes_tools=takes_tools) as model:
        upstream = OpenAIChat(model.url, name="plain", temperature=0, max_tokens=256)
        app = create_app(upstream, **options)
        config = uvicorn.Config(app, log_level="error", lifespan="off", ws="none")
        server = uvicorn.Server(config)
        listening = socket.create_server(("127.0.0.1", 0))  # it accepts before uvicorn is up
        port = listening.getsockname()[1]
        serving = asyncio.create_task(server.serve([listening]))
        try:
            address = f"http://127.0.0.1:{port}"
            async with httpx.AsyncClient(base_url=address, timeout=10) as client:
                yield client, model
        finally:
            server.should_exit = True
            await serving
            await upstream.aclose()
            listening.close()


def body(**fields):
    return {"model": "plain", "messages": [{"role": "user", "content": "北京怎么样"}]} | fields


async def events(response: httpx.Response) -> list:
    lines = [line.removeprefix("data: ") for line in response.text.split("\n") if line]
    assert lines.pop() == "[DONE]"
    return [json.loads(line)["choices"][0] for line in lines]


async def test_a_block_becomes_a_tool_call():
    async with gateway([CALL]) as (client, _):
        reply = (await client.post("/v1/chat/completions", json=body(tools=TOOLS))).json()
    choice = reply["choices"][0]
    assert choice["finish_reason"] == "tool_calls"
    function = choice["message"]["tool_calls"][0]["function"]
    assert (function["name"], json.loads(function["arguments"])) == ("lookup", {"city": "北京"})


async def test_a_stream_carries_the_call_and_no_markup():
    async with gateway([f"我来查一下。\n\n{CALL}"]) as (client, _):
        request = body(tools=TOOLS, stream=True)
        deltas = await events(await client.post("/v1/chat/completions", json=request))
    text = "".join(d["delta"].get("content") or "" for d in deltas)
    calls = [d["delta"]["tool_calls"][0] for d in deltas if d["delta"].get("tool_calls")]
    assert "```" not in text
    assert "tool" not in text
    assert [call["function"]["name"] for call in calls] == ["lookup"]
    assert deltas[-1]["finish_reason"] == "tool_calls"


async def test_a_plain_answer_streams_as_text():
    answer = "北京今天晴，适合出门走走，记得多喝水，早晚温差大，带一件外套。" * 3
    async with gateway([answer]) as (client, _):
        request = body(stream=True)
        deltas = await events(await client.post("/v1/chat/completions", json=request))
    assert "".join(d["delta"].get("content") or "" for d in deltas) == answer
    assert deltas[-1]["finish_reason"] == "stop"


async def test_a_refusal_is_corrected_before_anything_leaves():
    async with gateway(["抱歉，我没有可用的工具，无法查询。", CALL]) as (client, model):
        request = body(tools=TOOLS, stream=True)
        deltas = await events(await client.post("/v1/chat/completions", json=request))
    assert "抱歉" not in "".join(d["delta"].get("content") or "" for d in deltas)
    assert deltas[-1]["finish_reason"] == "tool_calls"
    assert len(model.requests) == 2


async def test_no_tools_means_the_request_is_not_touched():
    async with gateway(["好"]) as (client, model):
        messages = [{"role": "system", "content": "s"}, {"role": "user", "content": "q"}]
        request = body(messages=messages, temperature=0.7)
        reply = (await client.post("/v1/chat/completions", json=request)).json()
    assert reply["choices"][0]["message"]["content"] == "好"
    sent = model.requests[0].body
    assert sent["messages"] == messages
    assert sent["temperature"] == 0.7


async def test_a_forced_choice_that_never_comes_is_an_error():
    async with gateway(["不行。", "还是不行。", "不。"]) as (client, _):
        request = body(tools=TOOLS, tool_choice="required")
        response = await client.post("/v1/chat/completions", json=request)
    assert response.status_code == 502
    assert response.json()["error"]["type"] == "upstream_error"


@pytest.mark.parametrize(("status", "seen"), [(401, 502), (429, 429), (500, 502)])
async def test_an_upstream_failure_has_the_protocols_shape(status, seen):
    failure = Reply(status=status, body='{"error": {"message": "SECRET-DETAIL"}}')
    async with gateway([failure] * 3) as (client, _):
        response = await client.post("/v1/chat/completions", json=body())
    assert response.status_code == seen
    assert "SECRET-DETAIL" not in response.text


@pytest.mark.parametrize("raw", [b"", b"{", b"[1]", b'{"model": "m"}', b"[" * 100_000])
async def test_a_body_that_is_not_the_protocol_is_400(raw):
    async with gateway([]) as (client, _):
        response = await client.post("/v1/chat/completions", content=raw)
    assert response.status_code == 400
    assert response.json()["error"]["type"] == "invalid_request_error"


async def test_tokens_are_checked_when_there_are_any():
    tokens = {"t-1": ApiToken(name="ci")}
    async with gateway(["好"], tokens=tokens) as (client, _):
        without = await client.get("/v1/models")
        wrong = await client.get("/v1/models", headers={"Authorization": "Bearer t-2"})
        right = await client.get("/v1/models", headers={"Authorization": "Bearer t-1"})
    assert [r.status_code for r in (without, wrong, right)] == [401, 401, 200]
    assert right.json()["data"][0]["id"] == "plain"


async def test_a_second_request_without_tools_still_reads_calls():
    history = [
        {"role": "user", "content": "北京和上海"},
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [
                {
                    "id": "c1",
                    "type": "function",
                    "function": {"name": "lookup", "arguments": '{"city": "北京"}'},
                }
            ],
        },
        {"role": "tool", "tool_call_id": "c1", "content": "晴"},
    ]
    call = CALL.replace("北京", "上海")
    async with gateway([call]) as (client, _):
        request = body(messages=history)
        reply = (await client.post("/v1/chat/completions", json=request)).json()
    assert reply["choices"][0]["finish_reason"] == "tool_calls"


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    "fields",
    [
        {"tools": TOOLS, "tool_choice": {"type": "function", "function": {"name": "other"}}},
        {"tool_choice": "required"},
        {"tools": TOOLS * 2},
    ],
)
async def test_a_choice_that_cannot_be_met_is_400(fields, stream):
    async with gateway([]) as (client, _):
        request = body(stream=stream, **fields)
        response = await client.post("/v1/chat/completions", json=request)
    assert response.status_code == 400
    assert response.json()["error"]["param"] in ("tools", "tool_choice")


async def test_json_mode_is_passed_on_only_without_tools():
    wanted = {"type": "json_object"}
    async with gateway(["{}", CALL]) as (client, model):
        await client.post("/v1/chat/completions", json=body(response_format=wanted))
        with_tools = body(response_format=wanted, tools=TOOLS)
        await client.post("/v1/chat/completions", json=with_tools)
    assert model.requests[0].body["response_format"] == wanted
    assert "response_format" not in model.requests[1].body


async def test_a_token_is_held_to_its_models_and_rate():
    tokens = {"a": ApiToken(name="a", models=("other",)), "b": ApiToken(name="b", rate=1)}
    async with gateway(["好", "好"], tokens=tokens) as (client, _):
        statuses = [
            (
                await client.post(
                    "/v1/chat/completions",
                    json=body(),
                    headers={"Authorization": f"Bearer {token}"},
                )
            ).status_code
            for token in ("a", "b", "b")
        ]
    assert statuses == [403, 200, 429]


@pytest.mark.parametrize("stream", [False, True])
async def test_a_client_that_hangs_up_ends_the_request_to_the_model(stream):
    raw = json.dumps(body(stream=stream)).encode()
    head = f"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: {len(raw)}\r\n\r\n"
    async with gateway([Reply("字" * 4000, delay=0.05)]) as (client, model):
        _, writer = await asyncio.open_connection("127.0.0.1", client.base_url.port)
        writer.write(head.encode() + raw)
        await model.asked.wait()
        writer.transport.abort()
        async with asyncio.timeout(3):
            await model.hung_up.wait()


@pytest.mark.parametrize("stream", [False, True])
async def test_a_lone_surrogate_in_what_is_repeated_does_not_break_the_reply(stream):
    raw = json.dumps(body(model="m\ud800", stream=stream))  # as an escape, which is valid JSON
    async with gateway(["好"]) as (client, _):
        response = await client.post("/v1/chat/completions", content=raw)
    assert response.status_code == 200
    assert '"m?"' in response.text


async def test_arguments_nested_without_end_are_kept_as_text_in_history():
    wild = {"id": "c1", "function": {"name": "lookup", "arguments": "[" * 100_000}}
    history = [
        {"role": "user", "content": "北京怎么样"},
        {"role": "assistant", "tool_calls": [wild]},
        {"role": "tool", "tool_call_id": "c1", "content": "晴"},
    ]
    async with gateway(["晴天。"]) as (client, _):
        request = body(messages=history, tools=TOOLS)
        response = await client.post("/v1/chat/completions", json=request)
    assert response.status_code == 200


# --- modes


ANSWERED = '{"thought": "", "calls": [], "answer": "北京在北方。"}'
CALLED = (
    '{"thought": "查", "calls": [{"tool": "lookup", "parameters": {"city": "北京"}}], "answer": ""}'
)
NATIVE = [
    {"choices": [{"index": 0, "delta": {"tool_calls": [{"index": 0, "id": "n1", "function": {
        "name": "lookup", "arguments": '{"city": "北京"}'}}]}, "finish_reason": "tool_calls"}]},
    "[DONE]",
]  # fmt: skip


def mode_of(seen):
    wanted = (seen.body.get("response_format") or {}).get("type")
    return "native" if "tools" in seen.body else wanted or "text"


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize(
    ("way", "replies", "asked"),
    [
        (Way("structured"), [CALLED], ["json_schema"]),
        (Way("structured"), [Reply(status=400), CALLED], ["json_schema", "json_object"]),
        (Way("native"), [Reply(events=NATIVE)], ["native"]),
        (Way("native"), [Reply(status=422), CALL], ["native", "text"]),
    ],
    ids=["structured", "structured refused", "native", "native refused"],
)
async def test_every_mode_gives_the_client_the_same_call(way, replies, asked, streamed):
    options = {"ways": Ways(way), "takes_tools": True}
    async with gateway(replies, **options) as (client, model):
        fields = body(tools=TOOLS, stream=streamed)
        response = await client.post("/v1/chat/completions", json=fields)
        assert response.status_code == 200, response.text
        assert [mode_of(seen) for seen in model.requests] == asked
    assert '"lookup"' in response.text
    assert "thought" not in response.text
    if not streamed:
        choice = response.json()["choices"][0]
        assert choice["finish_reason"] == "tool_calls"
        assert json.loads(choice["message"]["tool_calls"][0]["function"]["arguments"]) == {
            "city": "北京"
        }


async def test_a_structured_answer_reaches_the_client_as_text():
    ways = Ways(Way("structured"))
    async with gateway([ANSWERED, ANSWERED], ways=ways) as (client, _):
        whole = await client.post("/v1/chat/completions", json=body(tools=TOOLS))
        assert whole.json()["choices"][0]["message"]["content"] == "北京在北方。"
        pieces = await client.post("/v1/chat/completions", json=body(tools=TOOLS, stream=True))
        assert "北京在北方。" in pieces.text


async def test_what_is_refused_once_is_not_sent_again():
    replies = [Reply(status=400), CALL, CALL]
    ways = Ways(Way("native"))
    async with gateway(replies, ways=ways, takes_tools=True) as (client, model):
        for _ in range(2):
            await client.post("/v1/chat/completions", json=body(tools=TOOLS))
        assert [mode_of(seen) for seen in model.requests] == ["native", "text", "text"]
    assert ways.way.mode == "emulated"


async def test_a_clients_own_json_mode_is_kept_where_there_are_no_tools():
    ways = Ways(Way("structured"))
    async with gateway(['{"a": 1}'], ways=ways) as (client, model):
        fields = body(response_format={"type": "json_object"})
        response = await client.post("/v1/chat/completions", json=fields)
        assert response.json()["choices"][0]["message"]["content"] == '{"a": 1}'
        assert model.requests[0].body["response_format"] == {"type": "json_object"}
