"""What holds for the streams of every protocol: time, signs of life, ends, and no injection."""

import asyncio
import json
import time

import httpx
import pytest
import pytest_asyncio

from chathands.server import streaming
from tests.server.gateway_kit import Gate, call, gate
from tests.standins.model_server import Reply

TOOL = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
LONG = "The sky over the city is clear today and it will stay so until the evening. " * 3
OPENAI, ANTHROPIC = "/v1/chat/completions", "/v1/messages"
PATHS = pytest.mark.parametrize("path", [OPENAI, ANTHROPIC], ids=["openai", "anthropic"])


@pytest_asyncio.fixture(scope="module")
async def server():
    async with gate() as running:
        yield running


@pytest_asyncio.fixture(scope="module")
async def client(server: Gate):
    async with httpx.AsyncClient(base_url=server.url, timeout=20) as client:
        yield client


def body(path, *, tools=True, **fields):
    messages = [{"role": "user", "content": "What is the weather in 北京?"}]
    request = {"model": "plain", "messages": messages, "max_tokens": 500, "stream": True}
    if tools and path == OPENAI:
        function = {"name": "get_weather", "parameters": TOOL}
        request["tools"] = [{"type": "function", "function": function}]
    elif tools:
        request["tools"] = [{"name": "get_weather", "input_schema": TOOL}]
    return request | fields


def text_in(line: str) -> str:
    if not line.startswith("data: {"):
        return ""
    event = json.loads(line.removeprefix("data: "))
    choices = event.get("choices") or [{}]
    return choices[0].get("delta", {}).get("content") or event.get("delta", {}).get("text") or ""


@PATHS
@pytest.mark.parametrize("tools", [True, False], ids=["tools", "plain"])
async def test_most_of_a_slow_reply_has_arrived_before_it_ends(server, client, path, tools):
    server.plays(Reply(LONG, piece=1, delay=0.0005))
    arrived = []
    async with client.stream("POST", path, json=body(path, tools=tools)) as response:
        async for line in response.aiter_lines():
            if text := text_in(line):
                arrived.append((time.perf_counter(), text))
        ended = time.perf_counter()
    assert "".join(text for _, text in arrived).strip() == LONG.strip()
    begun = arrived[0][0]
    early = [text for when, text in arrived if when < ended - 0.05 * (ended - begun)]
    assert len(early) >= 0.8 * len(arrived)
    assert len("".join(early)) >= 0.8 * len(LONG)


@PATHS
@pytest.mark.parametrize("tools", [True, False], ids=["tools", "plain"])
async def test_a_silent_stream_gives_signs_of_life(server, client, path, tools, monkeypatch):
    monkeypatch.setattr(streaming, "SILENCE_SECONDS", 0.05)
    server.plays(Reply(call("get_weather", city="北京") if tools else "Yes.", delay=0.03, piece=6))
    seen = []
    async with client.stream("POST", path, json=body(path, tools=tools)) as response:
        async for line in response.aiter_lines():
            seen.append(line)
    life = [at for at, line in enumerate(seen) if line in (": keep-alive", "event: ping")]
    if tools:
        first = next(at for at, line in enumerate(seen) if "get_weather" in line)
        assert [at for at in life if at < first]
    if path == ANTHROPIC:
        assert seen[0] == "event: message_start"
        assert seen.count("event: message_start") == 1


@PATHS
async def test_a_failure_behind_a_sign_of_life_is_an_event(server, client, path, monkeypatch):
    monkeypatch.setattr(streaming, "SILENCE_SECONDS", 0.05)
    server.plays(Reply(status=429, text="SECRET", body="SECRET", delay=0.2))
    async with client.stream("POST", path, json=body(path)) as response:
        assert response.status_code == 200
        text = (await response.aread()).decode()
    assert "rate_limit_error" in text.splitlines()[-2]
    assert "SECRET" not in text
    assert "[DONE]" not in text
    assert "message_stop" not in text


@PATHS
async def test_a_mistake_of_ours_ends_the_stream_as_the_protocol_says(
    server, client, path, monkeypatch
):
    from chathands.server.exchange import Exchange

    def broken(*_):
        raise RuntimeError("SECRET-PATH")

    monkeypatch.setattr(Exchange, "_end", broken)
    server.plays(LONG)
    async with client.stream("POST", path, json=body(path)) as response:
        text = (await response.aread()).decode()
    assert "internal error, reference" in text.splitlines()[-2]
    assert "SECRET" not in text


@PATHS
@pytest.mark.parametrize("tools", [True, False], ids=["tools", "plain"])
@pytest.mark.parametrize("streamed", [True, False], ids=["stream", "whole"])
async def test_nothing_a_client_or_a_model_writes_makes_a_line_of_its_own(
    server, client, path, tools, streamed
):
    evil = "x\n\ndata: [DONE]\r\n\r\nevent: message_stop\u2028\x85data: {}"
    reply = f"{evil}\n\n{call('get_weather', city=evil)}" if tools else evil
    server.plays(reply)
    request = body(path, tools=tools, model=evil, stream=streamed, user=evil)
    response = await client.post(path, json=request)
    assert response.status_code == 200
    assert not {"data", "event"} & set(response.headers)
    if not streamed:
        response.json()
        return
    for event in response.text.split("\n\n"):
        for line in event.split("\n"):
            assert line.startswith(("data: {", "event: ", ": keep", "data: [DONE]")) or not line
    assert response.text.count("data: [DONE]\n") <= 1
    datas = [e for e in response.text.split("\n") if e.startswith("data: {")]
    assert all(json.loads(line.removeprefix("data: ")) for line in datas)


@PATHS
async def test_errors_before_the_protocol_is_read_have_its_shape(server, client, path):
    for raw in (b"", b"{", b"[1]", b'{"model": 1, "model": 2}', b"\xff", b'{"a": NaN}'):
        response = await client.post(path, content=raw)
        assert response.status_code == 400
        error = response.json()["error"]
        assert error["type"] == "invalid_request_error"
        assert (response.json().get("type") == "error") is (path == ANTHROPIC)


@PATHS
async def test_streams_at_once_do_not_wait_for_each_other(server, client, path):
    server.plays(*[Reply(LONG, delay=0.005)] * 20)
    began = time.perf_counter()

    async def one():
        response = await client.post(path, json=body(path))
        assert response.status_code == 200
        return "".join(map(text_in, response.text.split("\n")))

    texts = await asyncio.gather(*(one() for _ in range(20)))
    assert {text.strip() for text in texts} == {LONG.strip()}
    alone = 0.005 * len(LONG) / 4
    assert time.perf_counter() - began < alone * 10
