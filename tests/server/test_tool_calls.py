"""Calls over HTTP: what is listed, what is answered, and every way to be refused."""

from __future__ import annotations

import asyncio
import json

import pytest

from chathands.toolbox.audit import verify
from tests.server.kit import TOKENS, bearer, serving


@pytest.fixture(scope="module")
async def server(tmp_path_factory):
    async with serving(tmp_path_factory.mktemp("server"), body_kb=8) as served:
        yield served


async def test_a_call_gives_the_result_with_its_files(server):
    reply = await server.call("look_up", city="北京", days=2, day="2026-01-02")
    body = reply.json()
    assert reply.status_code == 200
    assert (body["status"], body["truncated"], body["tool"]) == ("ok", False, "look_up")
    assert body["content"].startswith("北京 2 c 2026-01-02 []")
    assert body["cost_ms"] >= 0
    (file,) = body["files"]
    assert (file["name"], file["media_type"], file["size"]) == ("图.png", "image/png", 8)
    assert "access-control-allow-origin" not in reply.headers
    assert reply.headers["x-content-type-options"] == "nosniff"


async def test_the_list_shows_what_the_token_may_use(server):
    async def names(token):
        reply = await server.client.get("/tools", headers=bearer(token))
        return {tool["name"] for tool in reply.json()["tools"]}

    everyone = {"look_up", "too_slow", "waits", "note", "push"}
    assert await names("tok-ci") == everyone
    assert await names("tok-boss") == everyone | {"report"}
    assert await names("tok-narrow") == {"look_up"}
    one = (await server.client.get("/tools/push")).json()
    assert (one["side_effect"], one["approval"]) == ("outward", True)
    assert one["parameters"]["required"] == ["robot", "content"]


@pytest.mark.parametrize(
    ("arguments", "path"),
    [
        ({}, "city"),
        ({"city": 5}, "city"),
        ({"city": "北" * 21}, "city"),
        ({"city": "北京", "days": 9}, "days"),
        ({"city": "北京", "days": "2"}, "days"),
        ({"city": "北京", "days": True}, "days"),
        ({"city": "北京", "unit": "k"}, "unit"),
        ({"city": "北京", "unti": "c"}, "unti"),
        ({"city": "北京", "extra": 1}, "extra"),
        ({"city": "北京", "day": "2026-13-01"}, "day"),
        ({"city": "北京", "people": [{"name": "甲"}, {"name": ""}]}, "people[1].name"),
        ({"city": None}, "city"),
    ],
)
async def test_an_argument_that_does_not_fit_is_named_by_its_path(server, arguments, path):
    reply = await server.call("look_up", **arguments)
    assert reply.status_code == 400
    error = reply.json()["error"]
    assert error["code"] == "invalid_arguments"
    assert path in {field["path"] for field in error["fields"]}
    assert all(field["message"] for field in error["fields"])


@pytest.mark.parametrize(
    ("body", "headers", "status", "code"),
    [
        (b"{", {}, 400, "invalid_json"),
        (b"[]", {}, 400, "invalid_json"),
        (b"\xff\xfe", {}, 400, "invalid_json"),
        (b'{"city": NaN}', {}, 400, "invalid_json"),
        (b'{"city": %s}' % (b"9" * 309), {}, 400, "invalid_json"),
        (b'{"city": 1e999}', {}, 400, "invalid_json"),
        (b'{"city": "a", "city": "b"}', {}, 400, "invalid_json"),
        (b'{"n": ' + b"9" * 5000 + b"}", {}, 400, "invalid_json"),
        (b'{"a":' * 100 + b"1" + b"}" * 100, {}, 400, "too_deep"),
        (b"[" * 8000, {}, 400, "too_deep"),
        (b'{"city": "' + b"x" * 9000 + b'"}', {}, 413, "too_large"),
        (b'{"city": "\\ud83d"}', {}, 400, "invalid_arguments"),
        (b"{}", {"content-type": "text/plain"}, 415, "unsupported_media_type"),
        (b"{}", {"content-encoding": "gzip"}, 415, "unsupported_encoding"),
        (b"{}", {"idempotency-key": "a b"}, 400, "invalid_idempotency_key"),
        (b"{}", {"approval-ticket": "x" * 65}, 400, "invalid_ticket"),
    ],
)
async def test_a_body_that_cannot_be_read_is_refused_clearly(server, body, headers, status, code):
    headers = {"content-type": "application/json"} | headers
    reply = await server.client.post("/tools/look_up", content=body, headers=headers)
    assert (reply.status_code, reply.json()["error"]["code"]) == (status, code)


@pytest.mark.parametrize(
    "arguments",
    [
        {"city": "北京", "people": [1] * 2000},
        {"city": "北京", "people": [{"name": ""}] * 500},
        {str(n): n for n in range(500)},
        {"c" * 7000: "北京"},
    ],
)
async def test_an_answer_about_wrong_arguments_is_short_whatever_was_sent(server, arguments):
    reply = await server.call("look_up", **arguments)
    assert reply.status_code == 400
    assert 0 < len(reply.json()["error"]["fields"]) <= 20
    assert len(reply.content) < 10_000


async def test_a_number_written_as_text_is_refused_with_the_type_it_must_have(server):
    reply = await server.call("look_up", city="北京", days="3")
    assert reply.json()["error"]["fields"] == [
        {"path": "days", "message": "`days` has the wrong type; it must be integer"}
    ]


async def test_half_a_character_is_named(server):
    body = b'{"city": "\\ud83d"}'
    headers = {"content-type": "application/json"}
    reply = await server.client.post("/tools/look_up", content=body, headers=headers)
    assert reply.status_code == 400
    assert "half of a character" in reply.json()["error"]["fields"][0]["message"]


async def test_a_body_without_a_length_is_capped_too(server):
    async def pieces():
        for _ in range(20):
            yield b" " * 1000

    headers = {"content-type": "application/json"}
    reply = await server.client.post("/tools/look_up", content=pieces(), headers=headers)
    assert reply.status_code == 413


async def test_an_unknown_tool_names_near_ones_among_those_that_are_visible(server):
    reply = await server.call("look_upp", city="北京")
    assert reply.status_code == 404
    assert reply.json()["error"]["near"] == ["look_up"]
    assert "near" not in (await server.call("repord")).json()["error"]
    assert (await server.call("repord", "tok-boss")).json()["error"]["near"] == ["report"]


async def test_out_of_scope_and_not_permitted_is_403(server):
    for token, tool in (("tok-narrow", "note"), ("tok-narrow", "report"), ("tok-ci", "report")):
        reply = await server.call(tool, token, text="x")
        assert (reply.status_code, reply.json()["error"]["code"]) == (403, "forbidden")
        shown = await server.client.get(f"/tools/{tool}", headers=bearer(token))
        assert shown.status_code == 403
    assert (await server.call("report", "tok-boss")).json()["content"] == "报表"


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"authorization": "Bearer nope"},
        {"authorization": "Bearer"},
        {"authorization": "tok-ci"},
        {"authorization": "Basic tok-ci"},
        [("authorization", "Bearer nope"), ("authorization", "Bearer tok-ci")],
    ],
)
async def test_without_a_known_token_nothing_is_told(server, headers):
    for method, path in (("GET", "/tools"), ("POST", "/tools/look_up"), ("GET", "/openapi.json"),
                         ("GET", "/approvals"), ("GET", "/jobs/1")):  # fmt: skip
        reply = await server.anonymous.request(method, path, headers=headers)
        assert reply.status_code == 401
        assert reply.headers["www-authenticate"] == "Bearer"
        assert reply.json()["error"]["code"] == "unauthorized"


async def test_a_token_may_hold_any_characters(server):
    headers = {"authorization": "bearer tok-中文".encode()}
    assert (await server.anonymous.get("/tools", headers=headers)).status_code == 200


async def test_too_often_says_when_to_come_back(server):
    statuses = [(await server.call("look_up", "tok-slow", city="北京")).status_code for _ in "abc"]
    assert statuses == [200, 200, 429]
    reply = await server.call("look_up", "tok-slow", city="北京")
    assert 0 < int(reply.headers["retry-after"]) <= 60
    assert reply.json()["error"]["code"] == "rate_limited"
    assert (await server.call("look_up", city="北京")).status_code == 200


async def test_a_tool_that_fails_is_an_answer_and_one_that_crashes_shows_nothing(server):
    failed = await server.call("look_up", city="没有")
    assert (failed.status_code, failed.json()["status"]) == (200, "failed")
    assert failed.json()["content"] == "没有这个城市。"
    crashed = await server.call("look_up", city="坏")
    assert crashed.json()["status"] == "failed"
    assert not any(word in crashed.text for word in ("Traceback", "RuntimeError", "shadow"))
    assert crashed.json()["run"] in crashed.text


async def test_a_tool_that_takes_too_long_is_504(server):
    reply = await server.call("too_slow")
    body = reply.json()
    assert (reply.status_code, body["error"]["code"], body["status"]) == (504, "timeout", "failed")


async def test_an_unknown_outcome_is_502_and_says_so(server):
    reply = await server.call("note", text="不明")
    assert (reply.status_code, reply.json()["status"]) == (502, "unknown")


async def test_paths_and_methods_that_are_none_have_the_same_shape(server):
    for method, path, status in (
        ("GET", "/nothing", 404),
        ("PUT", "/tools/look_up", 405),
        ("OPTIONS", "/tools/look_up", 405),
        ("GET", "/tools/" + "x" * 3000, 404),
        ("POST", "/tools/%2e%2e%2fetc", 404),
    ):
        reply = await server.client.request(method, path)
        assert reply.status_code == status
        assert set(reply.json()["error"]) >= {"code", "message"}


async def test_the_gateway_says_that_there_is_no_model_in_its_own_shape(server):
    reply = await server.client.post("/v1/chat/completions", json={"model": "x", "messages": []})
    assert reply.status_code == 503
    assert reply.json()["error"]["type"] == "server_error"
    unknown = await server.anonymous.get("/v1/models")
    assert unknown.json()["error"]["type"] == "authentication_error"


async def test_a_web_page_is_not_served_where_no_tokens_are_set(tmp_path):
    async with serving(tmp_path, tokens={}) as served:
        assert (await served.anonymous.get("/tools")).status_code == 200
        for headers in (
            {"origin": "https://evil.example"},
            {"host": "evil.example"},
            {"origin": "null"},
        ):
            reply = await served.anonymous.get("/tools", headers=headers)
            assert reply.status_code == 403
        near = {"origin": "http://localhost:3000"}
        assert (await served.anonymous.get("/tools", headers=near)).status_code == 200


async def test_the_limits_of_a_tool_say_when_to_come_back(tmp_path):
    toml = '[tools.look_up]\nrate = {user = "2/minute"}\n[tools.note]\nquota = 1\n'
    async with serving(tmp_path, toml=toml) as served:
        calls = [await served.call("look_up", city="北京") for _ in range(3)]
        assert [reply.status_code for reply in calls] == [200, 200, 429]
        assert 0 < int(calls[2].headers["retry-after"]) <= 60
        assert (calls[2].json()["error"]["code"], calls[2].json()["status"]) == ("rate", "denied")
        assert (await served.call("look_up", "tok-other", city="北京")).status_code == 200
        assert (await served.call("note", text="甲")).status_code == 200
        over = await served.call("note", text="乙")
        assert (over.status_code, over.json()["error"]["code"]) == (429, "quota")
        assert int(over.headers["retry-after"]) > 0


async def test_a_tool_that_is_not_for_http_is_not_served(tmp_path):
    toml = '[tools.look_up]\nfaces = ["bot"]\n'
    async with serving(tmp_path, toml=toml) as served:
        assert (await served.call("look_up", city="北京")).status_code == 403
        assert "look_up" not in (await served.client.get("/tools")).text


async def test_every_call_is_in_the_audit_trail(tmp_path):
    async with serving(tmp_path) as served:
        await served.call("note", text="甲")
        await served.call("look_up", city="北京")
        await served.call("report")
        await served.call("note", "tok-narrow", text="乙")
    trail = [
        json.loads(line)
        for file in sorted((tmp_path / "state" / "audit").rglob("*.jsonl"))
        for line in file.read_text("utf-8").splitlines()
    ]
    told = [
        (line["kind"], line["tool"], line["platform"], line["user"], line["role"])
        for line in trail
        if "tool" in line
    ]
    assert told == [
        ("intent", "note", "http", "ci", "member"),
        ("call", "look_up", "http", "ci", "member"),
        ("call", "report", "http", "ci", "member"),
        ("call", "note", "http", "narrow", "member"),
    ]
    assert [line["status"] for line in trail if "status" in line] == [
        "ok", "ok", "denied", "failed",
    ]  # fmt: skip
    assert verify(tmp_path / "state") == []


async def test_fifty_at_once_are_all_answered(server):
    replies = await asyncio.gather(*(server.call("look_up", city=f"c{n}") for n in range(50)))
    assert [r.json()["content"].split()[0] for r in replies] == [f"c{n}" for n in range(50)]


def test_two_tokens_of_one_name_or_an_empty_token_are_refused():
    from pydantic import ValidationError

    from chathands.settings import ApiSettings

    for tokens in ({"a": TOKENS["tok-ci"], "b": TOKENS["tok-ci"]}, {" ": TOKENS["tok-ci"]}):
        with pytest.raises(ValidationError):
            ApiSettings(tokens=tokens)
