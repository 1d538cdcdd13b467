"""Clients that hold on, lie about lengths, send garbage or inject: raw sockets, a real server."""

import asyncio
import json
import socket
from contextlib import asynccontextmanager

import pytest
import uvicorn

from chathands.server import connection as limits
from chathands.server import create_app
from chathands.server.connection import GuardedProtocol, serve_options
from chathands.server.gateway import BODY_CAP
from chathands.upstreams.openai_chat import OpenAIChat
from tests.standins.model_server import ModelServer, Reply


class Impatient(GuardedProtocol):
    head_seconds = body_seconds = stall_seconds = 0.08
    tick_seconds = 0.02


@asynccontextmanager
async def served(script=(), protocol=Impatient):
    """A gateway without tokens: its port, the model behind it, the server."""
    async with ModelServer(script) as model:
        upstream = OpenAIChat(model.url, name="plain")
        options = serve_options() | {"http": protocol, "timeout_keep_alive": 0.1}
        config = uvicorn.Config(
            create_app(upstream), log_level="critical", lifespan="off", **options
        )
        server = uvicorn.Server(config)
        listening = socket.create_server(("127.0.0.1", 0))
        serving = asyncio.create_task(server.serve([listening]))
        try:
            yield listening.getsockname()[1], model, server
        finally:
            server.should_exit = True
            await serving
            await upstream.aclose()
            listening.close()


@asynccontextmanager
async def connected(port):
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        async with asyncio.timeout(10):
            yield reader, writer
    finally:
        writer.transport.abort()


async def rest_of(reader) -> bytes:
    try:
        return await reader.read()
    except ConnectionError:
        return b""


async def said(port, *parts: bytes) -> bytes:
    """All that the server answers to these bytes until it closes."""
    async with connected(port) as (reader, writer):
        for part in parts:
            writer.write(part)
        return await rest_of(reader)


async def until(condition):
    async with asyncio.timeout(5):
        while not condition():  # noqa: ASYNC110
            await asyncio.sleep(0.005)


def post(body: bytes, *headers: str, path="/v1/chat/completions", close=True) -> bytes:
    lines = [f"POST {path} HTTP/1.1", "Host: localhost", f"Content-Length: {len(body)}", *headers]
    if close:
        lines.append("Connection: close")
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


def chat(**fields) -> bytes:
    body = {"model": "m", "messages": [{"role": "user", "content": "q"}], **fields}
    return json.dumps(body).encode()


GET = b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n"
LAST = b"GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
HEAD = b"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\n"


@pytest.mark.parametrize(
    "begin",
    [
        b"",
        b"\r\n",
        b"GET /health HTTP/1.1\r\nHost: localhost\r\nX-A: ",
        HEAD + b"Content-Length: 100000\r\n\r\n{",
        HEAD + b"Transfer-Encoding: chunked\r\n\r\n186A0\r\n{",
        GET + b"\r\n",
        GET + b"GET /he",
    ],
    ids=["nothing", "line ends", "head", "body", "chunk", "after one", "second head"],
)
@pytest.mark.parametrize("drips", [True, False])
async def test_a_client_that_drips_or_stops_is_cut_off(begin, drips):
    async with served() as (port, model, server):
        async with connected(port) as (reader, writer):
            writer.write(begin)
            ended = asyncio.ensure_future(rest_of(reader))
            while not ended.done():
                if drips and not writer.transport.is_closing():
                    writer.write(b"\r\n" if begin.endswith(b"\n") else b"a")
                await asyncio.wait({ended}, timeout=0.02)
        if begin not in (b"", b"\r\n") and not begin.startswith(GET):
            assert b"HTTP/1.1 408" in ended.result()
        await until(lambda: not server.server_state.connections)
        assert not server.server_state.tasks
        assert model.requests == []


async def test_a_slow_body_that_keeps_coming_is_read(monkeypatch):
    monkeypatch.setattr(limits, "BODY_BYTES_PER_SECOND", 100)
    body = chat(user="x" * 200)
    async with served(["好"]) as (port, _, _), connected(port) as (reader, writer):
        writer.write(post(body)[: -len(body)])
        for start in range(0, len(body), 20):
            writer.write(body[start : start + 20])
            await asyncio.sleep(0.02)
        assert (
            b'"content":"\\u597d"' in (answer := await rest_of(reader)) or "好".encode() in answer
        )


async def test_a_client_that_does_not_read_is_let_go_and_its_upstream_too():
    endless = Reply("字" * 3_000_000, piece=100_000)
    async with served([endless]) as (port, model, server):
        with socket.socket() as client:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            client.connect(("127.0.0.1", port))
            client.sendall(post(chat(stream=True)))
            await model.asked.wait()
            await until(lambda: server.server_state.connections)
            await until(lambda: not server.server_state.connections)
            await until(lambda: not server.server_state.tasks)


@pytest.mark.parametrize(
    "head",
    [
        b"GET /" + b"a" * 80_000,
        b"GET /health HTTP/1.1\r\nX-A: " + b"a" * 80_000,
        b"GET /health HTTP/1.1\r\n" + b"X-A: aaaaaaaaaaaaaa\r\n" * 5_000,
        b"GET /health HTTP/1.1\r\n" + b"X-A: aaaaaaaaaaaaaa\r\n" * 5_000 + b"\r\n",
    ],
    ids=["path", "one header", "headers without end", "headers"],
)
async def test_a_huge_head_is_431(head):
    async with served(protocol=GuardedProtocol) as (port, _, server):
        assert (await said(port, head)).startswith(b"HTTP/1.1 431")
        await until(lambda: not server.server_state.connections)


@pytest.mark.parametrize("framing", ["length", "chunked"])
async def test_a_body_beyond_the_cap_is_413_in_the_protocols_shape(framing):
    async with served(protocol=GuardedProtocol) as (port, model, _):
        body = b" " * (BODY_CAP + 1)
        if framing == "length":
            answer = await said(port, post(body))
        else:
            chunk = b"%x\r\n%b\r\n" % (len(body), body)
            answer = await said(
                port, HEAD + b"Transfer-Encoding: chunked\r\n\r\n", chunk, b"0\r\n\r\n"
            )
        head, _, text = answer.partition(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 413")
        assert json.loads(text)["error"]["type"] == "invalid_request_error"
        assert model.requests == []


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/messages"])
@pytest.mark.parametrize(
    "bomb",
    [
        b'{"model": "m", "messages": ' + b"[" * 100 + b"]" * 100 + b"}",
        b'{"model": "m", "messages": ' + b"[" * 200_000,
        b'{"model": "m", "messages": [], "tools": ' + b'{"a":' * 5000 + b"1" + b"}" * 5001,
        b'{"model": "m", "messages": [], "x": ' + b"[" * 5000 + b"]" * 5000 + b"}",
    ],
)
async def test_json_beyond_the_depth_is_400(path, bomb):
    async with served() as (port, model, _):
        answer = await said(port, post(bomb, path=path))
        assert answer.startswith(b"HTTP/1.1 400")
        assert model.requests == []


@pytest.mark.parametrize(
    "lie",
    [
        HEAD + b"Content-Length: 10\r\nContent-Length: 11\r\n\r\n{}",
        HEAD + b"Content-Length: -1\r\n\r\n",
        HEAD + b"Content-Length: 99999999999999999999999\r\n\r\n",
        HEAD + b"Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        HEAD + b"Transfer-Encoding: chunked\r\n\r\nZZ\r\n{}\r\n0\r\n\r\n",
        HEAD + b"Transfer-Encoding: chunked\r\n\r\n-1\r\n{}\r\n0\r\n\r\n",
        HEAD + b"X-A\x00: b\r\n\r\n",
        HEAD + b"X A: b\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc",
        b"GET http://[::1 HTTP/1.1\r\n\r\n",
        b"GET /\xff\xfe HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"SSH-2.0-OpenSSH_9.6\r\n\r\n",
    ],
)
async def test_what_is_no_http_is_refused_and_closed(lie):
    async with served() as (port, model, server):
        assert (await said(port, lie))[:12] in (b"HTTP/1.1 400", b"HTTP/1.1 404", b"HTTP/1.1 408")
        await until(lambda: not server.server_state.connections)
        assert model.requests == []


async def test_a_body_shorter_than_it_says_and_a_half_closed_line_end_without_an_upstream():
    async with served(protocol=GuardedProtocol) as (port, model, server):
        async with connected(port) as (reader, writer):
            writer.write(HEAD + b"Content-Length: 100\r\n\r\n{")
            writer.write_eof()
            await rest_of(reader)
        await until(lambda: not server.server_state.connections and not server.server_state.tasks)
        assert model.requests == []


async def test_a_client_that_half_closes_behind_its_request_lets_the_upstream_go():
    async with served([Reply(hang="head")], GuardedProtocol) as (port, model, server):
        async with connected(port) as (reader, writer):
            writer.write(post(chat()))
            await model.asked.wait()
            writer.write_eof()
            await rest_of(reader)
            await model.hung_up.wait()
        await until(lambda: not server.server_state.tasks)


async def test_garbage_behind_a_request_does_not_get_into_its_answer():
    async with served([Reply("一二三四" * 50, delay=0.005)]) as (port, model, _):
        async with connected(port) as (reader, writer):
            writer.write(post(chat(stream=True), close=False))
            await model.asked.wait()
            await reader.readuntil("一".encode())
            writer.write(b"\x00\xffgarbage\r\n\r\n" * 20)
            answer = await rest_of(reader)
        assert b"HTTP/1.1" not in answer
        assert b"Invalid" not in answer


async def test_requests_in_a_row_are_answered_in_a_row():
    async with served(["好"]) as (port, _, _):
        answer = await said(port, GET * 3 + post(chat(), close=False) + GET * 50 + LAST)
        assert answer.count(b"HTTP/1.1 200") == 55
        assert answer.rindex(b"choices") > answer.index(b'"ok"')


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("name", ["m\r\n\r\ndata: [DONE]\n\n", "m\u2028\nX-Evil: 1", "\ud800"])
async def test_nothing_a_client_or_a_model_says_becomes_a_header_or_an_event(name, stream):
    text = '好\n\ndata: {"evil": 1}\n\nevent: evil\r\n\r\nHTTP/1.1 200 OK'
    async with served([Reply(text, piece=100)]) as (port, _, _):
        answer = await said(port, post(chat(model=name, stream=stream)))
    head, _, body = answer.partition(b"\r\n\r\n")
    assert b"evil" not in head.lower()
    assert b"\nevent: evil" not in body
    assert b'\ndata: {"evil"' not in body
    assert answer.count(b"HTTP/1.1") == 2  # the second one inside a string
    assert body.count(b"data: [DONE]") <= (2 if stream and "DONE" in name else 1) * 100


@pytest.mark.parametrize("method", ["GET", "OPTIONS", "POST"])
@pytest.mark.parametrize("path", ["/v1/models", "/v1/chat/completions", "/tools", "/health"])
async def test_no_page_of_another_origin_is_let_in(method, path):
    async with served() as (port, model, _):
        head = f"{method} {path} HTTP/1.1\r\nHost: localhost\r\nOrigin: https://evil.example\r\n"
        head += (
            "Access-Control-Request-Method: POST\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
        )
        answer = await said(port, head.encode())
        assert b"access-control" not in answer.lower()
        assert model.requests == []


def test_the_limit_of_open_files_is_raised(monkeypatch):
    resource = pytest.importorskip("resource")
    from chathands import open_files

    set_to = []
    monkeypatch.setattr(resource, "setrlimit", lambda _, both: set_to.append(both))
    for limits_now, after in [
        ((1024, 4096), (1024, 4096)),
        ((1024, 1_048_576), (1024, 65_536)),
        ((1024, resource.RLIM_INFINITY), (1024, 65_536)),
        ((70_000, 1_048_576), (70_000, 70_000)),
        ((resource.RLIM_INFINITY, resource.RLIM_INFINITY), (-1, -1)),
    ]:
        monkeypatch.setattr(resource, "getrlimit", lambda _, now=limits_now: now)
        assert open_files.raise_open_files() == after
    assert set_to == [(4096, 4096), (65_536, 1_048_576), (65_536, resource.RLIM_INFINITY)]
