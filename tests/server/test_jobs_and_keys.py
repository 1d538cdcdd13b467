"""Long calls as jobs, and requests that are sent twice."""

from __future__ import annotations

import asyncio
import json

import pytest

from chathands.server.openapi import document
from tests.server.kit import bearer, serving


@pytest.fixture(scope="module")
async def server(tmp_path_factory):
    async with serving(tmp_path_factory.mktemp("server"), job_after=0.3) as served:
        yield served


async def start(served, tool, token="tok-ci", **arguments):
    headers = {"prefer": "respond-async, wait=5", **bearer(token)}
    return await served.client.post(f"/tools/{tool}", json=arguments, headers=headers)


async def finished(served, location):
    job = served.tools.jobs.get(location.rpartition("/")[2], "ci")
    await asyncio.wait({job.task}, timeout=10)
    return (await served.client.get(location)).json()


async def test_a_call_goes_on_as_a_job_when_asked_to(server):
    accepted = await start(server, "waits", name="a")
    assert accepted.status_code == 202
    location = accepted.headers["location"]
    running = await server.client.get(location)
    assert running.json()["status"] == "running"
    assert "retry-after" in running.headers
    server.let_go("a")
    job = await finished(server, location)
    assert (job["status"], job["code"], job["result"]["content"]) == ("done", 200, "等到了")
    assert job["expires_at"] > job["created"]


async def test_a_call_that_takes_long_becomes_one_by_itself(server):
    accepted = await server.call("waits", name="b")
    assert accepted.status_code == 202
    server.let_go("b")
    assert (await finished(server, accepted.headers["location"]))["code"] == 200


async def test_what_is_wrong_with_a_call_is_said_at_once(server):
    assert (await start(server, "waits")).status_code == 400
    assert (await start(server, "push", robot="a", content="b")).status_code == 409


async def test_only_the_token_that_started_a_job_sees_it(server):
    location = (await start(server, "waits", name="c")).headers["location"]
    for token in ("tok-other", "tok-boss"):
        for method in ("GET", "DELETE"):
            reply = await server.client.request(method, location, headers=bearer(token))
            assert (reply.status_code, reply.json()["error"]["code"]) == (404, "unknown_job")
    assert (await server.client.get(location)).json()["status"] == "running"
    await server.client.delete(location)


async def test_a_job_can_be_cancelled(server):
    read = (await start(server, "waits", name="never")).headers["location"]
    ended = (await server.client.delete(read)).json()
    assert (ended["status"], "result" in ended) == ("cancelled", False)
    before = len(server.effects)
    effect = (await start(server, "note", text="半途", until="never")).headers["location"]
    await server.until_effects(before + 1)
    ended = (await server.client.delete(effect)).json()
    assert (ended["status"], ended["result"]["status"]) == ("cancelled", "unknown")
    assert (await server.client.delete(effect)).json() == ended
    lines = "".join(
        file.read_text("utf-8") for file in (server.settings.state_dir / "audit").rglob("*.jsonl")
    )
    intent = next(x for x in map(json.loads, lines.splitlines()) if "半途" in str(x))
    outcome = next(
        x for x in map(json.loads, lines.splitlines()) if x.get("intent") == intent["seq"]
    )
    assert outcome["status"] == "unknown"


async def test_too_many_jobs_are_refused(server, monkeypatch):
    monkeypatch.setattr("chathands.server.jobs.MOST_RUNNING", 1)
    location = (await start(server, "waits", "tok-other", name="never")).headers["location"]
    full = await start(server, "waits", "tok-other", name="never")
    assert (full.status_code, full.json()["error"]["code"]) == (429, "too_many_jobs")
    await server.client.delete(location, headers=bearer("tok-other"))


async def test_a_result_is_kept_for_a_while(server, monkeypatch):
    location = (await start(server, "look_up", city="北京")).headers["location"]
    await finished(server, location)
    monkeypatch.setattr(server.tools.jobs, "keep", 0)
    assert (await server.client.get(location)).status_code == 404


async def keyed(served, key, text, token="tok-ci", **more):
    headers = {"idempotency-key": key, **bearer(token)}
    return await served.client.post("/tools/note", json={"text": text, **more}, headers=headers)


async def test_the_same_key_and_body_run_once(server):
    before = len(server.effects)
    first = await keyed(server, "k1", "甲")
    again = await keyed(server, '"k1"', "甲")
    assert again.json() == first.json()
    assert (again.status_code, again.headers["idempotent-replayed"]) == (200, "true")
    assert "idempotent-replayed" not in first.headers
    other = await keyed(server, "k1", "乙")
    assert (other.status_code, other.json()["error"]["code"]) == (422, "idempotency_key_reused")
    assert (await keyed(server, "k1", "甲", "tok-other")).json() != first.json()
    assert server.effects[before:] == ["note 甲", "note 甲"]


async def test_a_repeat_while_the_first_still_runs_waits_for_it(server):
    before = len(server.effects)
    first = asyncio.ensure_future(keyed(server, "k2", "慢", until="d"))
    await server.until_effects(before + 1)
    rest = [asyncio.ensure_future(keyed(server, "k2", "慢", until="d")) for _ in range(5)]
    server.let_go("d")
    bodies = [reply.json() for reply in await asyncio.gather(first, *rest)]
    assert len(server.effects) == before + 1
    assert all(body == bodies[0] for body in bodies)


async def test_a_failure_before_anything_ran_leaves_the_key_free(server):
    headers = {"idempotency-key": "k3", **bearer("tok-ci")}
    push = {"robot": "群", "content": "带键"}
    asked = await server.client.post("/tools/push", json=push, headers=headers)
    assert asked.status_code == 409
    ticket = asked.json()["ticket"]
    yes = {"decision": "yes"}
    await server.client.post(f"/approvals/{ticket}", json=yes, headers=bearer("tok-boss"))
    headers["approval-ticket"] = ticket
    done = await server.client.post("/tools/push", json=push, headers=headers)
    assert done.status_code == 200
    again = await server.client.post("/tools/push", json=push, headers=headers)
    assert again.json() == done.json()
    assert server.effects.count("http/ci 群 带键") == 1


async def test_a_client_that_hangs_up_does_not_undo_a_side_effect(server):
    before = len(server.effects)
    body = json.dumps({"text": "走了", "until": "e"}).encode()
    _reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
    writer.write(
        b"POST /tools/note HTTP/1.1\r\nhost: x\r\nauthorization: Bearer tok-ci\r\n"
        b"content-type: application/json\r\nidempotency-key: k4\r\n"
        + f"content-length: {len(body)}\r\n\r\n".encode() + body
    )  # fmt: skip
    await server.until_effects(before + 1)
    writer.close()
    server.let_go("e")
    again = await keyed(server, "k4", "走了", until="e")
    assert (again.status_code, again.json()["content"]) == (200, "记好了 走了")
    assert len(server.effects) == before + 1


async def test_after_a_restart_a_key_still_gives_its_answer(tmp_path):
    async with serving(tmp_path) as served:
        done = await keyed(served, "r1", "甲")
        cut = asyncio.ensure_future(keyed(served, "r2", "断", until="never"))
        await served.until_effects(2)
        await served.tools.aclose()  # as at shutdown, in the middle of a call
        assert (await cut).status_code in (502, 503)
    async with serving(tmp_path) as served:
        assert (await keyed(served, "r1", "甲")).json() == done.json()
        assert (await keyed(served, "r1", "乙")).status_code == 422
        unknown = await keyed(served, "r2", "断", until="never")
        assert (unknown.status_code, unknown.json()["status"]) == (502, "unknown")
        # Killed in the middle: the row stands there, and nobody knows.
        await served.toolbox.store.idempotency.begin("ci", "r3", "x", "dead process")
        await served.toolbox.store._state.query(
            "UPDATE idempotency SET request ="
            " (SELECT request FROM idempotency WHERE key = 'r1') WHERE key = 'r3'"
        )
        lost = await keyed(served, "r3", "甲")
        assert (lost.status_code, lost.json()["error"]["code"]) == (409, "outcome_unknown")
        assert served.effects == ["note 甲", "note 断"]


async def test_openapi_holds_each_visible_tools_real_schema(server):
    shown = (await server.client.get("/openapi.json", headers=bearer("tok-boss"))).json()
    assert shown["openapi"] == "3.1.0"
    assert {"/tools/look_up", "/tools/report"} <= set(shown["paths"])
    narrow = (await server.client.get("/openapi.json", headers=bearer("tok-narrow"))).json()
    tools = [path for path in narrow["paths"] if path.startswith("/tools/")]
    assert tools == ["/tools/look_up", "/tools/{name}"]
    schemas = shown["components"]["schemas"]
    look_up = schemas["tool.look_up"]
    assert look_up["properties"]["days"]["maximum"] == 7
    ref = look_up["properties"]["people"]["items"]["$ref"]
    assert schemas[ref.removeprefix("#/components/schemas/")]["required"] == ["name"]

    def refs(node):
        if isinstance(node, dict):
            if isinstance(node.get("$ref"), str):
                yield node["$ref"]
            for child in node.values():
                yield from refs(child)
        elif isinstance(node, list):
            for child in node:
                yield from refs(child)

    for ref in refs(shown):
        target = shown
        for part in ref.removeprefix("#/").split("/"):
            target = target[part]
    keys = {"idempotency-key"}
    posts = {name: shown["paths"][f"/tools/{name}"]["post"] for name in ("look_up", "note")}
    heads = {n: {p["name"].lower() for p in post["parameters"]} for n, post in posts.items()}
    assert keys & heads["note"] == keys
    assert not keys & heads["look_up"]
    assert document((), "1")["info"]["version"] == "1"
