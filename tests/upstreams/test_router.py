"""Several upstreams over real sockets: keys that rest, others that step in, names that match."""

import asyncio
import logging
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace

import pytest

from chathands.conversation import Role
from chathands.emulation.outcome import ChatMessage, ModelRequest, Text
from chathands.errors import (
    UpstreamAuthError,
    UpstreamBusy,
    UpstreamError,
    UpstreamFailed,
    UpstreamRefused,
    UpstreamUnreachable,
)
from chathands.settings import load_settings
from chathands.upstreams.build import build_router, build_upstream
from chathands.upstreams.resting import Circuit, KeyRing
from chathands.upstreams.ways import OtherWay, Way, Ways
from tests.standins.model_server import ModelServer, Reply

HELLO = ModelRequest((ChatMessage(Role.USER, "你好"),))
NATIVE = replace(HELLO, tools=({"type": "function", "function": {"name": "f"}},))
BUSY = Reply(status=429, headers={"retry-after": "30"})


class Seen:
    """What a router tells of."""

    def __init__(self):
        self.errors, self.rests, self.falls = [], [], []

    def upstream_error(self, entry, kind):
        self.errors.append((entry, kind))

    def key_rests(self, entry, reason):
        self.rests.append((entry, reason))

    def falls_back(self, entry, to):
        self.falls.append((entry, to))


@asynccontextmanager
async def routed(directory, scripts, **entries):
    """A router with an entry for each script (None: nobody listens); its servers by name."""
    async with AsyncExitStack() as closing:
        servers, tables = {}, []
        for name, script in scripts.items():
            if script is None:
                url = "http://127.0.0.1:1/v1"
            else:
                server = ModelServer(script, takes_tools=True)
                servers[name] = await closing.enter_async_context(server)
                url = servers[name].url
            tables.append(f'[models."{name}"]\nbase_url = "{url}"\n{entries.get(name, "")}\n')
        (directory / "chathands.toml").write_text("\n".join(tables), "utf-8")
        router = await build_router(load_settings(directory))
        router.watch = Seen()
        closing.push_async_callback(router.aclose)
        yield router, servers


async def ask(router, name="a", request=HELLO, seconds=5.0):
    route = router.route(name)
    stream = route.stream(request, timeout=seconds)
    try:
        return "".join([p.text async for p in stream if isinstance(p, Text)])
    finally:
        await stream.aclose()


def keys_of(server):
    return [
        seen.headers.get("authorization", "").removeprefix("Bearer ") for seen in server.requests
    ]


async def test_names_and_aliases_find_their_entry_and_the_upstream_hears_its_own(tmp_path):
    entries = {"a": 'model = "a-large"\naliases = ["gpt-4o"]', "b": ""}
    async with routed(tmp_path, {"a": ["1", "2"], "b": ["3"]}, **entries) as (router, servers):
        assert [await ask(router, n) for n in ("a", "gpt-4o", "b")] == ["1", "2", "3"]
        assert [r.body["model"] for r in servers["a"].requests] == ["a-large", "a-large"]
        assert servers["b"].requests[0].body["model"] == "b"
        assert router.route("c") is None
        assert router.route("*") is None
        assert router.names == ("a", "b")


async def test_an_entry_for_all_names_passes_the_name_on(tmp_path):
    async with routed(tmp_path, {"a": [], "*": ["1", "2"]}) as (router, servers):
        assert await ask(router, "what/ever:7b") == "1"
        assert servers["*"].requests[0].body["model"] == "what/ever:7b"
        assert router.route("what/ever:7b").label == "*"
        assert router.names == ("a",)
        assert router.route("x" * 201) is None


@pytest.mark.parametrize("status", [429, 402, 401, 403])
async def test_a_key_that_is_turned_down_rests_while_others_go_on(tmp_path, status):
    def script(body):
        return Reply("好") if turned.pop(0) == 200 else Reply(status=status)

    turned = [status, 200, 200]
    keys = {"a": 'api_key = ["k-first", "k-second"]'}
    async with routed(tmp_path, {"a": script}, **keys) as (router, servers):
        assert [await ask(router), await ask(router)] == ["好", "好"]
        assert keys_of(servers["a"]) == ["k-first", "k-second", "k-second"]
        reason = "limited" if status in (429, 402) else "refused"
        assert router.watch.rests == [("a", reason)]


async def test_when_all_keys_are_used_up_nobody_is_asked_until_one_is_awake(tmp_path):
    keys = {"a": 'api_key = ["k-1", "k-2"]'}
    async with routed(tmp_path, {"a": [BUSY, BUSY]}, **keys) as (router, servers):
        for _ in range(2):
            with pytest.raises(UpstreamBusy) as caught:
                await ask(router)
            assert 25 < caught.value.retry_after <= 30
        assert len(servers["a"].requests) == 2


async def test_a_short_rest_of_the_last_key_is_waited_for(tmp_path):
    short = Reply(status=429, headers={"retry-after": "0.05"})
    keys = {"a": 'api_key = ["k-1", "k-2"]'}
    async with routed(tmp_path, {"a": [short, short, "好"]}, **keys) as (router, _):
        with pytest.raises(UpstreamBusy):
            await ask(router)
        assert await ask(router) == "好"


async def test_refused_keys_are_tried_again_when_there_is_no_other(tmp_path):
    no = Reply(status=403)
    keys = {"a": 'api_key = ["k-1", "k-2"]'}
    async with routed(tmp_path, {"a": [no, no, "好"]}, **keys) as (router, _):
        with pytest.raises(UpstreamAuthError) as caught:
            await ask(router)
        assert "chathands.toml 里 [models.a] 的 api_key" in caught.value.sentence
        assert await ask(router) == "好"


FALLBACK = {"a": 'fallback = ["b"]'}


@pytest.mark.parametrize(
    "first",
    [
        None,
        [Reply(down=True), Reply(down=True)],
        [Reply(status=500)],
        [Reply(status=503)],
        [BUSY],
        [Reply(status=404)],
        [Reply(body="<html>", content_type="text/html")],
        [Reply(hang="head")],
        [Reply("", hang="stream", events=[])],
    ],
    ids=["refused", "down", "500", "503", "429", "404", "html", "no head", "no byte"],
)
async def test_another_steps_in_when_no_byte_came(tmp_path, first):
    options = {"a": 'fallback = ["b"]\nfirst_byte_seconds = 0.1'}
    async with routed(tmp_path, {"a": first, "b": ["好", "好"]}, **options) as (router, servers):
        assert await ask(router) == "好"
        asked = len(servers["a"].requests) if "a" in servers else 0
        assert await ask(router) == "好"  # at once: the first one rests
        assert (len(servers["a"].requests) if "a" in servers else 0) == asked
        assert router.watch.falls == [("a", "b")]


async def test_what_has_left_is_not_taken_back(tmp_path):
    broken = [Reply("一二三四五六七八", drop_after=2)]
    async with routed(tmp_path, {"a": broken, "b": ["好"]}, **FALLBACK) as (router, servers):
        with pytest.raises(UpstreamFailed):
            await ask(router)
        assert servers["b"].requests == []
        assert router.watch.errors == [("a", "UpstreamFailed")]


async def test_a_request_that_is_wrong_is_wrong_everywhere(tmp_path):
    scripts = {"a": [Reply(status=400)], "b": ["好"]}
    async with routed(tmp_path, scripts, **FALLBACK) as (router, servers):
        with pytest.raises(UpstreamRefused):
            await ask(router)
        assert servers["b"].requests == []


async def test_the_last_error_is_told_when_all_are_down(tmp_path):
    async with routed(tmp_path, {"a": [Reply(status=500)], "b": None}, **FALLBACK) as (router, _):
        with pytest.raises(UpstreamUnreachable) as caught:
            await ask(router)
    assert "[models.b] 的 base_url" in caught.value.sentence


async def test_one_that_came_back_is_asked_again(tmp_path):
    scripts = {"a": [Reply(status=500), "回来了"], "b": [Reply(status=500), Reply(status=500)]}
    async with routed(tmp_path, scripts, **FALLBACK) as (router, _):
        with pytest.raises(UpstreamError):
            await ask(router)
        # Both rest now, and are asked all the same, in their order.
        assert await ask(router) == "回来了"
        assert router.members["a"].circuit.resting == 0


async def test_a_native_request_is_not_sent_to_one_that_only_chats(tmp_path):
    options = {"a": 'mode = "native"\nfallback = ["b"]', "b": 'mode = "emulated"'}
    scripts = {"a": [Reply(status=500)], "b": ["好"]}
    async with routed(tmp_path, scripts, **options) as (router, servers):
        ways = router.route("a").ways
        with pytest.raises(OtherWay) as caught:
            await ask(router, request=NATIVE)
        way = ways.after(caught.value, NATIVE, ways.way)
        assert way is not None
        assert (way.mode, way.detour) == ("emulated", "b")
        assert await ask(router) == "好"
        ways.accepted(way)
        assert ways.way == Way("native")  # what steps in says nothing about the first
        assert len(servers["a"].requests) == 1


async def test_closing_ends_a_request_that_waits(tmp_path):
    async with routed(tmp_path, {"a": [Reply(hang="head")]}) as (router, servers):
        stream = router.route("a").stream(HELLO, timeout=30)
        waiting = asyncio.ensure_future(anext(aiter(stream), None))
        await servers["a"].asked.wait()
        await stream.aclose()
        assert await waiting is None
        await servers["a"].hung_up.wait()


@pytest.mark.parametrize("status", [400, 401, 403, 404, 429, 500])
async def test_a_key_that_an_error_repeats_is_in_no_log_and_no_error(tmp_path, status, caplog):
    caplog.set_level(logging.DEBUG)
    key = "sk-secret-0123456789"

    def echo(body):
        return Reply(status=status, text=f"wrong key {key} " + "x" * 2015 + key)

    keys = {"a": f'api_key = ["{key}", "sk-other-9876543210"]\nfallback = ["b"]'}
    async with routed(tmp_path, {"a": echo, "b": [Reply(status=500)]}, **keys) as (router, _):
        with pytest.raises(UpstreamError) as caught:
            await ask(router)
    said = str(caught.value) + caught.value.sentence + repr(caught.value) + caplog.text
    for secret in (key, "sk-other-9876543210"):
        assert secret[:10] not in said


async def test_the_bot_gets_the_default_entry_with_what_steps_in(tmp_path):
    async with routed(tmp_path, {"a": [Reply(status=500)], "b": ["好"]}, **FALLBACK):
        upstream = await build_upstream(load_settings(tmp_path))
        stream = upstream.stream(HELLO, timeout=5)
        assert [p.text async for p in stream] == ["好"]
        assert (upstream.name, upstream.context, upstream.local) == ("a", 8192, False)
        await stream.aclose()
        await upstream.aclose()


async def test_thinking_and_mode_are_those_of_the_entry(tmp_path):
    entries = {"a": 'mode = "native"\nthinking = "open"', "b": ""}
    async with routed(tmp_path, {"a": [], "b": []}, **entries) as (router, _):
        assert router.route("a").ways.way == Way("native", thinking="open")
        assert router.route("b").ways.way == Ways().way


def test_rests_grow_with_failures_in_a_row_and_end_with_an_answer():
    now = [0.0]
    circuit = Circuit(lambda: now[0])
    seen = []
    for _ in range(8):
        circuit.failed()
        circuit.failed()  # on its way at the same time
        seen.append(circuit.resting)
        now[0] += circuit.resting
    assert seen == [2, 4, 8, 16, 32, 60, 60, 60]
    circuit.answered()
    assert circuit.resting == 0


def test_a_key_is_awake_again_after_the_time_its_service_said():
    now = [0.0]
    ring = KeyRing(["a", "b"], lambda: now[0])
    ring.rest("a", "limited", 7)
    assert ring.pick() == "b"
    assert ring.pick(["b"]) is None
    ring.rest("b", "limited", 1e9)
    assert (ring.pick(), ring.resting, ring.asleep) == (None, 7, 2)
    now[0] = 7
    assert ring.pick() == "a"
    now[0] = 3600
    assert ring.asleep == 0
