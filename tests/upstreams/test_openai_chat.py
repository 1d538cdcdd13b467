"""An upstream over real sockets: what it asks for, what it gives, what each fault becomes."""

import asyncio
import json
import logging
import socket

import pytest

from chathands.conversation import Role
from chathands.emulation.outcome import ChatMessage, ModelRequest, NativeCall, Text, Thinking
from chathands.errors import (
    ConfigError,
    UpstreamAuthError,
    UpstreamBusy,
    UpstreamError,
    UpstreamFailed,
    UpstreamGarbage,
    UpstreamNotFound,
    UpstreamRefused,
    UpstreamTimeout,
    UpstreamUnreachable,
)
from chathands.upstreams.openai_chat import OpenAIChat
from tests.standins.model_server import ModelServer, Reply

HELLO = ModelRequest((ChatMessage(Role.SYSTEM, "规则"), ChatMessage(Role.USER, "你好")))
KEY = "sk-very-secret-0123456789"


class Heard:
    def __init__(self, pieces, stream):
        self.pieces = pieces
        self.text = "".join(p.text for p in pieces if isinstance(p, Text))
        self.finish_reason = stream.finish_reason
        self.usage = stream.usage


async def hear(upstream, request=HELLO, *, seconds=10.0) -> Heard:
    stream = upstream.stream(request, timeout=seconds)
    try:
        return Heard([piece async for piece in stream], stream)
    finally:
        await stream.aclose()


async def hear_from(url: str, request=HELLO, *, seconds=10.0, **options) -> Heard:
    upstream = OpenAIChat(url, name="stand-in", **options)
    try:
        return await hear(upstream, request, seconds=seconds)
    finally:
        await upstream.aclose()


async def fail_from(url: str, kind, **options):
    """The error that a request to `url` ends in."""
    with pytest.raises(UpstreamError) as caught:
        await hear_from(url, **options)
    assert type(caught.value) is kind, repr(caught.value)
    return caught.value


@pytest.fixture(autouse=True)
def _short_pause(monkeypatch):
    monkeypatch.setattr("chathands.upstreams.openai_chat.PAUSE_SECONDS", 0.01)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


async def test_a_reply_is_streamed_with_its_end_and_usage():
    async with ModelServer([Reply("你好，我在。", thinking="嗯")]) as server:
        heard = await hear_from(server.url)
    assert heard.pieces == [Thinking("嗯"), Text("你好，我"), Text("在。")]
    assert heard.finish_reason == "stop"
    assert heard.usage is not None
    assert heard.usage.prompt == 10


async def test_the_request_is_plain_chat_and_carries_the_key():
    async with ModelServer(["好"], key=KEY) as server:
        await hear_from(server.url, api_key=f" {KEY}\n", temperature=0.3, max_tokens=77)
    seen = server.requests[0]
    assert seen.path == "/v1/chat/completions"
    assert seen.body == {
        "model": "stand-in",
        "messages": [{"role": "system", "content": "规则"}, {"role": "user", "content": "你好"}],
        "stream": True,
        "temperature": 0.3,
        "max_tokens": 77,
    }


async def test_what_a_native_request_has_is_sent_and_its_calls_are_pieces():
    call = {"index": 0, "id": "c", "function": {"name": "f", "arguments": "{}"}}
    events = [{"choices": [{"delta": {"tool_calls": [call]}, "finish_reason": "tool_calls"}]}]
    request = ModelRequest(HELLO.messages, tools=({"type": "function"},), tool_choice="auto")
    async with ModelServer([Reply(events=events)]) as server:
        await fail_from(server.url, UpstreamRefused, request=request)  # it can only chat
        assert server.requests[0].body["tool_choice"] == "auto"
        heard = await hear_from(server.url)
    assert heard.pieces == [NativeCall(0, "c", "f", "{}")]


@pytest.mark.parametrize("ending", ["", "/", "/chat/completions", "/chat/completions/"])
async def test_an_address_works_however_it_ends(ending):
    async with ModelServer(["好"]) as server:
        assert (await hear_from(server.url + ending)).text == "好"


async def test_a_query_in_the_address_is_kept_and_not_logged(caplog):
    caplog.set_level(logging.INFO)
    async with ModelServer(["好"]) as server:
        await hear_from(server.url + "?api-version=1&key=hidden")
    assert server.requests[0].path == "/v1/chat/completions?api-version=1&key=hidden"
    assert "hidden" not in caplog.text


async def test_a_user_and_password_in_the_address_are_sent_and_never_told():
    async with ModelServer([Reply(status=500)]) as server:
        url = server.url.replace("://", "://ann:pass-word@")
        error = await fail_from(url, UpstreamFailed)
    assert server.requests[0].headers["authorization"].startswith("Basic ")
    assert "pass-word" not in str(error)


@pytest.mark.parametrize(
    "address", ["", "example.com/v1", "ftp://a/v1", "http://", "http://a:port/v1"]
)
def test_an_address_that_can_never_work_is_a_config_error(address):
    with pytest.raises(ConfigError, match="base_url") as caught:
        OpenAIChat(address, name="m")
    assert "CHATHANDS__MODEL__BASE_URL" in caught.value.sentence


@pytest.mark.parametrize("key", ["sk-密钥", "a b", "a\nb"])
def test_a_key_that_no_header_can_carry_is_a_config_error_without_the_key(key):
    with pytest.raises(ConfigError) as caught:
        OpenAIChat("http://127.0.0.1/v1", name="m", api_key=key)
    assert key not in str(caught.value) + caught.value.sentence


@pytest.mark.parametrize("size", [1, 2, 7])
async def test_bytes_in_small_cuts_give_the_same_text(size):
    async with ModelServer([Reply("北京🙂晴，22℃。", bytes_at_once=size)]) as server:
        assert (await hear_from(server.url)).text == "北京🙂晴，22℃。"


async def test_a_server_that_ignores_stream_is_understood():
    async with ModelServer([Reply("你好，我在。", ignores_stream=True)]) as server:
        heard = await hear_from(server.url)
    assert (heard.text, heard.finish_reason) == ("你好，我在。", "stop")


async def test_a_stream_without_done_is_whole():
    async with ModelServer([Reply("好", done=False, unframed=True)]) as server:
        assert (await hear_from(server.url)).text == "好"


async def test_a_server_that_never_ends_its_stream_is_not_waited_for(monkeypatch):
    monkeypatch.setattr("chathands.upstreams.openai_chat.LINGER_SECONDS", 0.05)
    async with ModelServer([Reply("好", done=False, hang="stream")]) as server:
        heard = await hear_from(server.url, seconds=60)
        await asyncio.wait_for(server.hung_up.wait(), 5)
    assert (heard.text, heard.finish_reason) == ("好", "stop")


async def test_one_connection_serves_one_request_after_the_other():
    async with ModelServer(["一", "二", "三"]) as server:
        upstream = OpenAIChat(server.url, name="m")
        for expected in "一二三":
            assert (await hear(upstream)).text == expected
        await upstream.aclose()
    assert server.connections == 1


async def test_a_proxy_of_the_environment_is_used_but_never_for_this_machine(monkeypatch):
    monkeypatch.delenv("NO_PROXY", raising=False)
    monkeypatch.delenv("no_proxy", raising=False)
    async with ModelServer(["好", "好"]) as proxy:
        monkeypatch.setenv("HTTP_PROXY", proxy.url.removesuffix("/v1"))
        assert (await hear_from("http://model.invalid/v1")).text == "好"
        assert proxy.requests[0].path == "http://model.invalid/v1/chat/completions"
        async with ModelServer(["好"]) as server:
            await hear_from(server.url)
        assert len(proxy.requests) == 1


async def test_a_proxy_that_is_down_is_named_as_such(monkeypatch):
    monkeypatch.setenv("HTTP_PROXY", f"http://127.0.0.1:{free_port()}")
    error = await fail_from("http://model.invalid/v1", UpstreamUnreachable)
    assert "代理" in error.sentence


# --- once more when nothing came


@pytest.mark.parametrize("status", [502, 503, 504])
async def test_a_gateway_fault_is_repeated_once(status):
    async with ModelServer([Reply(status=status), "好"]) as server:
        assert (await hear_from(server.url)).text == "好"
    assert len(server.requests) == 2


@pytest.mark.parametrize("fault", [Reply(down=True), Reply("好", drop_after=0)])
async def test_a_connection_that_broke_before_the_answer_is_repeated_once(fault):
    async with ModelServer([fault, "好"]) as server:
        assert (await hear_from(server.url)).text == "好"
    assert len(server.requests) == 2


async def test_a_second_fault_is_told():
    async with ModelServer([Reply(down=True), Reply(down=True), "好"]) as server:
        error = await fail_from(server.url, UpstreamFailed)
    assert error.nothing_received
    assert len(server.requests) == 2


async def test_a_short_retry_after_is_kept_and_then_tried_again():
    async with ModelServer([Reply(status=429, headers={"retry-after": "0"}), "好"]) as server:
        assert (await hear_from(server.url)).text == "好"


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"retry-after": "60"},
        {"retry-after": "5"},
        {"retry-after": "soon"},
        {"retry-after": "nan"},
    ],
)
async def test_a_busy_service_without_a_short_retry_after_is_told_at_once(headers):
    async with ModelServer([Reply(status=429, headers=headers), "好"]) as server:
        await fail_from(server.url, UpstreamBusy, seconds=4)
    assert len(server.requests) == 1


async def test_nothing_is_repeated_when_no_time_is_left():
    async with ModelServer([Reply(status=503), "好"]) as server:
        await fail_from(server.url, UpstreamFailed, seconds=1.0)
    assert len(server.requests) == 1


async def test_a_broken_stream_is_not_repeated():
    async with ModelServer([Reply("你好，我在。", drop_after=2), "好"]) as server:
        error = await fail_from(server.url, UpstreamFailed)
    assert not error.nothing_received
    assert len(server.requests) == 1


# --- what each fault becomes


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (401, UpstreamAuthError),
        (403, UpstreamAuthError),
        (404, UpstreamNotFound),
        (400, UpstreamRefused),
        (413, UpstreamRefused),
        (422, UpstreamRefused),
        (500, UpstreamFailed),
    ],
)
async def test_a_status_becomes_its_error_with_a_sentence(status, kind):
    async with ModelServer([Reply(status=status, text="because")]) as server:
        error = await fail_from(server.url, kind)
    assert error.sentence == kind.default_sentence
    assert "because" in str(error)
    assert len(server.requests) == 1


async def test_the_key_is_never_in_the_text_of_an_error(caplog):
    caplog.set_level(logging.DEBUG)
    async with ModelServer([], key="another") as server:  # its 401 repeats the key it got
        error = await fail_from(server.url, UpstreamAuthError, api_key=KEY)
    assert "wrong key" in str(error)
    assert KEY not in str(error) + error.sentence + caplog.text + repr(error.__context__)


async def test_the_key_is_cut_out_of_an_error_inside_the_stream_too():
    async with ModelServer([Reply(events=[{"error": {"message": f"bad {KEY}"}}])]) as server:
        error = await fail_from(server.url, UpstreamFailed, api_key=KEY)
    assert "bad ***" in str(error)


@pytest.mark.parametrize(
    "reply",
    [
        Reply(body="<html>登录</html>", content_type="text/html"),
        Reply(body="<!doctype html>", content_type="text/plain"),
        Reply(body="oops"),
        Reply(body='{"choices": []}'),
        Reply(events=["[DONE]"]),
        Reply(status=302, headers={"location": "/elsewhere"}),
    ],
)
async def test_what_is_no_reply_is_garbage(reply):
    async with ModelServer([reply]) as server:
        error = await fail_from(server.url, UpstreamGarbage)
    assert "CHATHANDS__MODEL__BASE_URL" in error.sentence


async def test_a_refused_connection_is_unreachable_and_not_a_timeout():
    error = await fail_from(f"http://127.0.0.1:{free_port()}/v1", UpstreamUnreachable)
    assert error.nothing_received


async def test_a_host_that_does_not_exist_is_named_as_such():
    error = await fail_from("http://no-such-host.invalid/v1", UpstreamUnreachable)
    assert "主机名" in error.sentence


async def test_a_failed_encryption_is_told_as_such():
    async def answer_plainly(reader, writer):
        await reader.read(1)
        writer.write(b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n")
        writer.close()

    async with await asyncio.start_server(answer_plainly, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        error = await fail_from(f"https://127.0.0.1:{port}/v1", UpstreamUnreachable)
    assert "加密" in error.sentence


async def test_something_that_is_no_http_is_garbage():
    async def greet(reader, writer):
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"220 mail.example.org ESMTP\r\n\r\n")
        writer.close()

    async with await asyncio.start_server(greet, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        await fail_from(f"http://127.0.0.1:{port}/v1", UpstreamGarbage)


@pytest.mark.parametrize(("hang", "fresh"), [("head", True), ("stream", False)])
async def test_the_whole_reply_has_one_deadline(hang, fresh):
    async with ModelServer([Reply("好", hang=hang, finish_reason=None, done=False)]) as server:
        error = await fail_from(server.url, UpstreamTimeout, seconds=0.3)
        await asyncio.wait_for(server.hung_up.wait(), 5)
    assert error.nothing_received is fresh


async def test_a_reply_that_drips_does_not_outlive_the_deadline():
    async with ModelServer([Reply("好" * 400, delay=0.02)]) as server:
        started = asyncio.get_running_loop().time()
        error = await fail_from(server.url, UpstreamTimeout, seconds=0.5)
        assert asyncio.get_running_loop().time() - started < 2
    assert not error.nothing_received


# --- ending early


@pytest.mark.parametrize("hang", ["head", "stream"])
async def test_cancelling_the_reader_closes_the_connection(hang):
    async with ModelServer([Reply("好", hang=hang, done=False, finish_reason=None)]) as server:
        upstream = OpenAIChat(server.url, name="m")
        task = asyncio.create_task(hear(upstream, seconds=60))
        await asyncio.wait_for(server.asked.wait(), 5)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await asyncio.wait_for(server.hung_up.wait(), 5)
        await upstream.aclose()


async def test_closing_from_another_task_ends_the_reading():
    async with ModelServer([Reply("你好，我在。", hang="stream", done=False)]) as server:
        upstream = OpenAIChat(server.url, name="m")
        stream = upstream.stream(HELLO, timeout=60)
        first = asyncio.Event()

        async def read():
            async for _ in stream:
                first.set()

        task = asyncio.create_task(read())
        await first.wait()
        await asyncio.sleep(0)
        await stream.aclose()
        await asyncio.wait_for(task, 5)
        await asyncio.wait_for(server.hung_up.wait(), 5)
        await upstream.aclose()


async def test_closing_in_the_middle_closes_the_connection():
    async with ModelServer([Reply("好" * 100, delay=0.01)]) as server:
        upstream = OpenAIChat(server.url, name="m")
        stream = upstream.stream(HELLO, timeout=60)
        assert isinstance(await anext(stream), Text)
        await stream.aclose()
        with pytest.raises(StopAsyncIteration):
            await anext(stream)
        await asyncio.wait_for(server.hung_up.wait(), 5)
        await upstream.aclose()


async def test_a_stream_closed_before_it_began_asks_nothing():
    async with ModelServer(["好"]) as server:
        upstream = OpenAIChat(server.url, name="m")
        stream = upstream.stream(HELLO, timeout=5)
        await stream.aclose()
        assert [piece async for piece in stream] == []
        await upstream.aclose()
    assert server.requests == []


async def test_a_closed_upstream_says_so():
    upstream = OpenAIChat("http://127.0.0.1:1/v1", name="m")
    await upstream.aclose()
    with pytest.raises(UpstreamFailed, match="closed"):
        await hear(upstream)


async def test_many_streams_go_on_at_once():
    async with ModelServer(
        lambda body: Reply(body["messages"][1]["content"], delay=0.01)
    ) as server:
        upstream = OpenAIChat(server.url, name="m")
        requests = [
            ModelRequest((HELLO.messages[0], ChatMessage(Role.USER, f"第{n}个")))
            for n in range(150)
        ]
        heard = await asyncio.gather(*(hear(upstream, request) for request in requests))
        await upstream.aclose()
    assert [h.text for h in heard] == [f"第{n}个" for n in range(150)]


async def test_the_bodies_are_valid_whatever_people_paste():
    async with ModelServer(["好"]) as server:
        request = ModelRequest((ChatMessage(Role.USER, 'a\ud83d"\u2028\x00'),))
        assert (await hear_from(server.url, request)).text == "好"
    assert json.dumps(server.requests[0].body["messages"][0]["content"]) == '"a?\\"\\u2028\\u0000"'


async def test_an_error_whose_body_never_ends_is_told_by_its_status():
    async def never_ends(reader, writer):
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 401 No\r\nContent-Type: application/json\r\n\r\n{")
        await reader.read()
        await asyncio.sleep(60)

    async with await asyncio.start_server(never_ends, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        with pytest.raises(UpstreamAuthError):
            await hear_from(f"http://127.0.0.1:{port}/v1", seconds=5)
