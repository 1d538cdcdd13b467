"""The scripted upstream behaves like a real one, without a network."""

import asyncio

import pytest

from chathands.conversation import Role
from chathands.emulation.outcome import ChatMessage, ModelRequest, Text, Thinking
from chathands.errors import UpstreamBusy, UpstreamFailed, UpstreamTimeout
from chathands.upstreams.base import Usage
from chathands.upstreams.scripted import HANG, Reply, Scripted

HELLO = ModelRequest((ChatMessage(Role.USER, "你好"),))


async def hear(upstream, request=HELLO, *, seconds=5.0):
    return [piece async for piece in upstream.stream(request, timeout=seconds)]


async def test_replies_are_played_in_order_in_pieces_and_requests_kept():
    upstream = Scripted(["一二三四五", [Thinking("嗯"), Text("好")]], piece_size=2)
    assert await hear(upstream) == [Text("一二"), Text("三四"), Text("五")]
    assert await hear(upstream) == [Thinking("嗯"), Text("好")]
    assert upstream.requests == [HELLO, HELLO]


async def test_a_function_answers_what_was_asked():
    upstream = Scripted(lambda request: request.messages[-1].content * 2)
    assert await hear(upstream) == [Text("你好你好")]
    upstream = Scripted([lambda _: UpstreamBusy()])
    with pytest.raises(UpstreamBusy):
        await hear(upstream)


async def test_an_error_may_come_at_once_or_in_the_middle():
    upstream = Scripted([UpstreamBusy(), ["开头", UpstreamFailed()]])
    with pytest.raises(UpstreamBusy):
        await hear(upstream)
    stream = upstream.stream(HELLO, timeout=5)
    assert await anext(stream) == Text("开头")
    with pytest.raises(UpstreamFailed):
        await anext(stream)
    assert stream.finish_reason is None


async def test_the_end_of_a_reply_can_be_scripted():
    upstream = Scripted([Reply("断", finish_reason="length", usage=Usage(3, 1))])
    stream = upstream.stream(HELLO, timeout=5)
    assert [piece async for piece in stream] == [Text("断")]
    assert (stream.finish_reason, stream.usage) == ("length", Usage(3, 1))


async def test_a_hang_lasts_until_the_time_is_up():
    with pytest.raises(UpstreamTimeout):
        await hear(Scripted([HANG]), seconds=0.01)


async def test_a_hang_lasts_until_it_is_cancelled_or_closed():
    upstream = Scripted([["开头", HANG], HANG])
    stream = upstream.stream(HELLO, timeout=60)
    assert await anext(stream) == Text("开头")
    task = asyncio.ensure_future(anext(stream, None))
    await asyncio.sleep(0)
    await stream.aclose()
    assert await task is None
    task = asyncio.create_task(hear(upstream, seconds=60))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_a_request_beyond_the_script_is_a_fault_of_the_test():
    with pytest.raises(AssertionError, match="request 1"):
        await hear(Scripted([]))
