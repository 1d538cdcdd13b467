"""The tools over MCP and HTTP, with the official client in both protocol revisions."""

from __future__ import annotations

import asyncio
import base64

import httpx
import pytest
from mcp.types import ToolListChangedNotification

from chathands.server.mcp_server import LOOK_SECONDS
from chathands.toolbox.audit import verify
from tests.server.kit import bearer
from tests.server.mcp_kit import error_of, serving_mcp, text_of
from tests.toolbox.mcp_kit import foreign

MODES = ["auto", "legacy"]


@pytest.fixture(scope="module")
async def server(tmp_path_factory):
    async with serving_mcp(tmp_path_factory.mktemp("mcp"), body_kb=64) as served:
        yield served


async def names(server, token):
    async with server.client(token) as client:
        return {tool.name for tool in (await client.list_tools()).tools}


@pytest.mark.parametrize("mode", MODES)
async def test_tools_are_listed_with_their_own_schema_and_marks(server, mode):
    async with server.client(mode=mode) as client:
        listed = {tool.name: tool for tool in (await client.list_tools()).tools}
        assert client.server_capabilities.tools.list_changed
    specs = server.toolbox.registry.current.specs
    for name, tool in listed.items():
        assert tool.input_schema == specs[name].parameters
        assert tool.description == specs[name].description
    marks = listed["look_up"].annotations
    assert (marks.read_only_hint, marks.destructive_hint, marks.idempotent_hint) == (
        True, False, True,
    )  # fmt: skip
    marks = listed["note"].annotations
    assert (marks.read_only_hint, marks.destructive_hint, marks.open_world_hint) == (
        False, False, False,
    )  # fmt: skip
    marks = listed["push"].annotations
    assert (marks.read_only_hint, marks.destructive_hint, marks.open_world_hint) == (
        False, True, True,
    )  # fmt: skip
    assert listed["push"].meta["chathands/approval"] is True


async def test_the_list_is_what_the_token_may_use(server):
    everyone = {"look_up", "too_slow", "waits", "note", "push"}
    assert await names(server, "tok-ci") == everyone
    assert await names(server, "tok-boss") == everyone | {"report"}
    assert await names(server, "tok-narrow") == {"look_up"}


@pytest.mark.parametrize("mode", MODES)
async def test_a_call_gives_text_and_pictures(server, mode):
    async with server.client(mode=mode) as client:
        # "2" has one meaning: what calls here is a model, and gets what a model gets.
        result = await client.call_tool("look_up", {"city": "北京", "days": "2"})
    assert not result.is_error
    assert text_of(result).startswith("北京 2 c None []")
    (picture,) = [block for block in result.content if block.type == "image"]
    assert picture.mime_type == "image/png"
    assert base64.b64decode(picture.data) == b"\x89PNG\r\n\x1a\n"
    assert result.meta["chathands/status"] == "ok"


@pytest.mark.parametrize(
    ("tool", "arguments", "code", "says"),
    [
        ("look_upp", {"city": "北京"}, "unknown_tool", "look_up"),
        ("report", {}, "forbidden", "report"),
        ("look_up", {}, "invalid_arguments", "city"),
        ("look_up", {"city": ["a"], "days": {}}, "invalid_arguments", "days"),
        ("look_up", {"city": "没有"}, "failed", "没有这个城市"),
        ("look_up", {"city": "坏"}, "failed", "出错"),
        ("too_slow", {}, "timeout", "时限"),
        ("note", {"text": "不明"}, "unknown", "断线"),
    ],
)
async def test_what_goes_wrong_is_one_sentence(server, tool, arguments, code, says):
    async with server.client() as client:
        result = await client.call_tool(tool, arguments)
    assert error_of(result)["code"] == code
    assert says in text_of(result)
    assert "/etc" not in text_of(result)
    assert "Traceback" not in text_of(result)


async def test_scopes_hold_for_calls_too(server):
    async with server.client("tok-narrow") as client:
        assert error_of(await client.call_tool("note", {"text": "x"}))["code"] == "forbidden"
    assert "note x" not in server.effects


async def test_rates_are_those_of_the_token(server):
    async with server.client("tok-slow") as client:
        for _ in range(2):
            assert not (await client.call_tool("look_up", {"city": "北京"})).is_error
        result = await client.call_tool("look_up", {"city": "北京"})
    assert error_of(result)["code"] == "rate_limited"
    assert "try again in" in text_of(result)


@pytest.mark.parametrize("mode", MODES)
async def test_an_approved_call_runs_when_it_is_repeated(server, mode):
    arguments = {"robot": "销售群", "content": f"周报 {mode}"}
    async with server.client(mode=mode) as client:
        first = error_of(await client.call_tool("push", arguments))
        assert first["code"] == "approval_required"
        again = error_of(await client.call_tool("push", arguments))
        assert again == {"code": "approval_pending", "ticket": first["ticket"]}
        await server.approve(first["ticket"])
        other = await client.call_tool("push", {**arguments, "content": f"别的 {mode}"})
        assert error_of(other)["code"] == "approval_required"
        done = await client.call_tool("push", arguments)
        assert text_of(done) == "已推送到 销售群"
        once_more = error_of(await client.call_tool("push", arguments))
        assert once_more["code"] == "approval_required"
        assert once_more["ticket"] != first["ticket"]
    assert server.effects.count(f"mcp/ci 销售群 周报 {mode}") == 1


@pytest.mark.parametrize("way", ["meta", "argument"])
async def test_a_ticket_can_be_sent_along(server, way):
    arguments = {"robot": "群", "content": f"票 {way}"}

    async def push(client, ticket):
        if way == "meta":
            return await client.call_tool("push", arguments, meta={"chathands/ticket": ticket})
        return await client.call_tool("push", {**arguments, "approval_ticket": ticket})

    async with server.client() as client, server.client("tok-other") as other:
        ticket = error_of(await client.call_tool("push", arguments))["ticket"]
        await server.approve(ticket)
        assert error_of(await push(other, ticket))["code"] == "ticket_of_another_caller"
        assert error_of(await push(client, "nonsense"))["code"] == "ticket_unknown"
        assert text_of(await push(client, ticket)) == "已推送到 群"
        assert error_of(await push(client, ticket))["code"] == "ticket_used"


async def test_who_asked_over_mcp_may_not_approve_over_http(server):
    async with (
        server.client("tok-approver") as client,
        httpx.AsyncClient(base_url=server.address, headers=bearer("tok-approver")) as web,
    ):
        asked = await client.call_tool("push", {"robot": "群", "content": "自己批自己"})
        path = f"/approvals/{error_of(asked)['ticket']}"
        assert (await web.get(path)).json()["yours_to_decide"] is False
        said = await web.post(path, json={"decision": "yes"})
        assert (said.status_code, said.json()["error"]["code"]) == (403, "not_yours_to_decide")
        assert (await web.post(path, json={"decision": "no"})).status_code == 200


async def test_a_denied_call_says_so(server):
    arguments = {"robot": "群", "content": "不要"}
    async with server.client() as client:
        ticket = error_of(await client.call_tool("push", arguments))["ticket"]
        await server.toolbox.store.tickets.decide(ticket, approve=False, by="boss")
        assert error_of(await client.call_tool("push", arguments))["code"] == "approval_denied"


@pytest.mark.parametrize("mode", MODES)
async def test_a_cancelled_call_ends_and_is_recorded(server, mode):
    before = len(server.effects)
    async with server.client(mode=mode) as client:
        call = asyncio.create_task(
            client.call_tool("note", {"text": f"halb {mode}", "until": "never"})
        )
        await server.until_effects(before + 1)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        # The same connection goes on.
        assert not (await client.call_tool("look_up", {"city": "上海"})).is_error
    assert verify(server.settings.state_dir) == []


@pytest.mark.parametrize("mode", MODES)
async def test_a_call_that_goes_on_says_so(server, mode):
    heard = asyncio.Event()

    async def progress(done, total, message):
        assert (done, total, message) == (0, 30, "running")
        heard.set()

    async with server.client(mode=mode) as client:
        call = asyncio.create_task(
            client.call_tool("waits", {"name": f"tor-{mode}"}, progress_callback=progress)
        )
        async with asyncio.timeout(10):
            await heard.wait()
        server.let_go(f"tor-{mode}")
        assert text_of(await call) == "等到了"


async def test_clients_of_the_older_protocol_hear_of_changes(server):
    heard = asyncio.Event()

    async def told(message):
        if isinstance(message, ToolListChangedNotification):
            heard.set()

    async with server.client(mode="legacy", message_handler=told) as client:
        await client.list_tools()
        waiting = asyncio.ensure_future(heard.wait())
        async with asyncio.timeout(10):
            while not waiting.done():
                # The stream for news is opened behind the handshake: what comes before is not sent.
                server.toolbox.tools.set_source("test:news", ())
                await asyncio.wait([waiting], timeout=2 * LOOK_SECONDS)
    server.toolbox.tools.set_source("test:news", None)


async def test_clients_of_the_newer_protocol_hear_of_changes(server):
    async with server.client() as client, client.listen(tools_list_changed=True) as changes:
        server.toolbox.tools.set_source("test:news", ())
        async with asyncio.timeout(10):
            assert (await anext(changes)) is not None
    server.toolbox.tools.set_source("test:news", None)


@pytest.mark.parametrize("token", ["", "wrong", "tok-ci "])
async def test_without_a_token_nothing_is_said(server, token):
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
    headers = {"accept": "application/json, text/event-stream"}
    if token:
        headers |= bearer(token) if token != "tok-ci " else {"authorization": "Basic tok-ci"}
    async with httpx.AsyncClient() as client:
        reply = await client.post(server.address + "/mcp", json=body, headers=headers)
    assert reply.status_code == 401
    assert reply.headers["www-authenticate"] == "Bearer"


HELLO = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "t", "version": "1"},
    },
}


async def test_one_token_does_not_take_the_sessions_of_the_others(server, monkeypatch):
    monkeypatch.setattr("chathands.server.mcp_http.MOST_OF_ONE", 2)
    headers = {"accept": "application/json, text/event-stream"}
    async with httpx.AsyncClient(base_url=server.address, headers=headers) as client:

        async def hello(token="tok-other", **more):
            return await client.post("/mcp", json=HELLO, headers=bearer(token) | more)

        assert (await client.post("/mcp", json={}, headers=bearer("tok-narrow"))).status_code == 400
        replies = await asyncio.gather(*(hello() for _ in range(4)))
        assert sorted(reply.status_code for reply in replies) == [200, 200, 429, 429]
        assert (await hello(**{"mcp-protocol-version": "2025-06-18"})).status_code == 429
        assert (await hello("tok-narrow")).status_code == 200
        opened = next(reply for reply in replies if reply.status_code == 200)
        session = {"mcp-session-id": opened.headers["mcp-session-id"]} | bearer("tok-other")
        assert (await client.delete("/mcp", headers=session)).status_code == 200
        assert (await hello()).status_code == 200


async def test_a_session_is_its_tokens_own(server):
    headers = {"accept": "application/json, text/event-stream"}
    async with httpx.AsyncClient(base_url=server.address, headers=headers) as client:
        reply = await client.post("/mcp", json=HELLO, headers=bearer("tok-ci"))
        assert reply.status_code == 200
        session = {"mcp-session-id": reply.headers["mcp-session-id"]}
        listing = {"jsonrpc": "2.0", "id": 2, "method": "tools/list"}
        stolen = await client.post("/mcp", json=listing, headers=session | bearer("tok-boss"))
        assert stolen.status_code == 404
        huge = await client.post("/mcp", content=b" " * 70_000, headers=bearer("tok-ci"))
        assert huge.status_code == 413
        ended = await client.delete("/mcp", headers=session | bearer("tok-ci"))
        assert ended.status_code == 200


async def test_a_page_in_a_browser_is_not_let_in_without_tokens(tmp_path):
    async with serving_mcp(tmp_path, tokens={}) as open_server:
        async with open_server.client("") as client:
            assert (await client.list_tools()).tools
        async with httpx.AsyncClient() as client:
            reply = await client.post(
                open_server.address + "/mcp", json={}, headers={"origin": "https://evil.example"}
            )
        assert reply.status_code == 403


async def test_one_installation_uses_the_tools_of_another_over_http(server, tmp_path):
    table = {
        "url": server.address + "/mcp",
        "headers": {"Authorization": "Bearer ${THEIR_TOKEN}"},
        "tools": {"look_up": {"side_effect": "none"}, "note": {"enabled": False}},
    }
    async with foreign(tmp_path, THEIR_TOKEN="tok-narrow", WRONG="nonsense") as here:
        await here.sources.apply({"far": table})
        await here.until(lambda: "far_look_up" in here.names)
        assert here.standing().where == "http"
        result = await here.call("far_look_up", city="北京")
        assert result.content.startswith("北京 1 c")
        assert "look_up-2.png" in result.content
        failed = await here.call("far_look_up", city="没有")
        assert (failed.status.value, failed.content) == ("failed", "没有这个城市。")
        await here.sources.apply(
            {"far": {**table, "headers": {"Authorization": "Bearer ${WRONG}"}}}
        )
        await here.until(lambda: here.standing().state == "down")
        assert "连不上" in here.standing().reason
        assert here.names == set()


@pytest.mark.parametrize(
    "head",
    [
        "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n\r\n",
        "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-encoding: gzip\r\n\r\n",
        "HTTP/1.1 302 Found\r\nlocation: http://127.0.0.1:9/elsewhere\r\n\r\n",
        "HTTP/1.1 200 OK\r\ncontent-type: text/html\r\n\r\n",
        "not http at all",
    ],
)
async def test_an_http_server_that_is_none_costs_nothing(tmp_path, monkeypatch, head):
    monkeypatch.setattr("chathands.toolbox.mcp_http.LONGEST_BODY", 100_000)

    async def answer(reader, writer):
        await reader.readuntil(b"\r\n\r\n")
        writer.write(head.encode())
        try:
            for _ in range(500):
                writer.write(b" " * 10_000)
                await writer.drain()
        except ConnectionError:
            pass
        finally:
            writer.close()

    async with (
        await asyncio.start_server(answer, "127.0.0.1", 0) as listening,
        foreign(tmp_path) as here,
    ):
        port = listening.sockets[0].getsockname()[1]
        await here.sources.apply(
            {"far": {"url": f"http://127.0.0.1:{port}/mcp", "connect_timeout": 5}}
        )
        await here.sources.settled(10)
        assert here.standing().state != "ready"
        assert "MCP" in here.standing().reason
        assert "127.0.0.1" not in here.standing().reason
        await here.sources.aclose()
