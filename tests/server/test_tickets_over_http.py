"""Approval by ticket: asked, decided, used once; and replayed, expired, altered, by another."""

from __future__ import annotations

import asyncio
import json

import pytest

from tests.server.kit import bearer, serving, until

PUSH = {"robot": "销售群", "content": "九月汇总"}


def with_ticket(ticket: str, token: str = "tok-ci") -> dict[str, str]:
    return {**bearer(token), "approval-ticket": ticket}


async def asked(served, token: str = "tok-ci", **arguments):
    reply = await served.call("push", token, **(PUSH | arguments))
    assert reply.status_code == 409
    assert reply.json()["error"]["code"] == "approval_required"
    return reply.json()["ticket"]


async def decide(served, ticket, decision="yes", token="tok-boss"):
    path = f"/approvals/{ticket}"
    return await served.client.post(path, json={"decision": decision}, headers=bearer(token))


async def repeat(served, ticket, token="tok-ci", **arguments):
    return await served.client.post(
        "/tools/push", json=PUSH | arguments, headers=with_ticket(ticket, token)
    )


def code(reply):
    return reply.status_code, reply.json()["error"]["code"]


@pytest.fixture(scope="module")
async def server(tmp_path_factory):
    async with serving(tmp_path_factory.mktemp("server")) as served:
        yield served


def trail(served):
    return [
        json.loads(line)
        for file in sorted((served.settings.state_dir / "audit").rglob("*.jsonl"))
        for line in file.read_text("utf-8").splitlines()
    ]


async def test_an_approved_call_runs_exactly_once(server):
    before = len(server.effects)
    ticket = await asked(server, content="一次")
    assert code(await repeat(server, ticket, content="一次")) == (409, "approval_pending")
    decided = await decide(server, ticket)
    assert (decided.status_code, decided.json()["status"]) == (200, "approved")
    replies = await asyncio.gather(*(repeat(server, ticket, content="一次") for _ in range(8)))
    assert sorted(reply.status_code for reply in replies) == [200] + [409] * 7
    assert {code(r) for r in replies if r.status_code != 200} == {(409, "ticket_used")}
    assert server.effects[before:] == ["http/ci 销售群 一次"]
    (intent,) = [one for one in trail(server) if one.get("arguments", {}).get("content") == "一次"]
    assert (intent["kind"], intent["user"], intent["decision"]) == ("intent", "ci", "yes")
    assert intent["decided_by"] == "http:boss"
    done = next(r.json() for r in replies if r.status_code == 200)
    assert done["run"] == intent["run"]


async def test_asked_again_before_it_is_decided_it_is_the_same_ticket(server):
    first = await asked(server, content="同一个")
    assert await asked(server, content="同一个") == first
    assert await asked(server, content="另一个") != first


async def test_altered_arguments_or_another_tool_run_nothing_and_leave_the_ticket(server):
    before = len(server.effects)
    ticket = await asked(server, content="原文")
    await decide(server, ticket)
    altered = await repeat(server, ticket, content="改过的")
    assert code(altered) == (409, "ticket_for_another_call")
    assert code(await repeat(server, ticket, robot="别的群", content="原文")) == code(altered)
    assert len(server.effects) == before
    assert (await repeat(server, ticket, content="原文")).status_code == 200


async def test_a_ticket_is_its_callers_alone(server):
    ticket = await asked(server, content="我的")
    await decide(server, ticket)
    other = await repeat(server, ticket, "tok-other", content="我的")
    assert code(other) == (403, "ticket_of_another_caller")
    assert code(await repeat(server, ticket, "tok-boss", content="我的")) == code(other)
    assert code(await repeat(server, "0" * 24, content="我的")) == (404, "ticket_unknown")
    assert (await repeat(server, ticket, content="我的")).status_code == 200


async def test_a_no_is_a_no_and_is_in_the_audit_trail(server):
    ticket = await asked(server, content="不行")
    assert (await decide(server, ticket, "no")).json()["status"] == "denied"
    assert code(await repeat(server, ticket, content="不行")) == (403, "approval_denied")
    assert code(await decide(server, ticket, "yes")) == (409, "already_decided")
    await server.tools.desk.tickets.settle(server.toolbox.executor, server.toolbox.registry)
    await asyncio.to_thread(server.toolbox.audit.flush)
    (line,) = [one for one in trail(server) if one.get("arguments", {}).get("content") == "不行"]
    assert (line["kind"], line["status"], line["user"]) == ("call", "denied", "ci")
    assert (line["decision"], line["decided_by"]) == ("no", "http:boss")


async def test_who_asked_may_say_no_and_never_yes(server):
    ticket = await asked(server, "tok-approver", content="自己")
    assert code(await decide(server, ticket, "yes", "tok-approver")) == (
        403, "not_yours_to_decide",
    )  # fmt: skip
    assert code(await decide(server, ticket, "yes", "tok-ci")) == (403, "not_yours_to_decide")
    assert (await decide(server, ticket, "no", "tok-approver")).status_code == 200
    boss = await asked(server, "tok-boss", content="老板自己")
    assert code(await decide(server, boss, "yes", "tok-boss")) == (403, "not_yours_to_decide")
    assert (await decide(server, boss, "yes", "tok-approver")).status_code == 200


async def test_a_token_that_may_not_approve_sees_its_own_only(server):
    mine = await asked(server, content="列表里的")
    theirs = await asked(server, "tok-other", content="别人的")

    async def ids(token):
        listed = (await server.client.get("/approvals", headers=bearer(token))).json()
        return {one["id"]: one for one in listed["approvals"]}

    seen = await ids("tok-ci")
    assert mine in seen
    assert theirs not in seen
    assert seen[mine]["yours_to_decide"] is False
    both = await ids("tok-approver")
    assert {mine, theirs} <= set(both)
    assert both[mine]["shown"] == "正文：列表里的"
    assert both[mine]["target"] == "销售群"
    reply = await server.client.get(f"/approvals/{theirs}")
    assert code(reply) == (403, "not_yours_to_decide")


@pytest.mark.parametrize(
    "body", [{}, {"decision": "maybe"}, {"decision": ["yes"]}, {"decision": "yes", "more": 1}]
)
async def test_a_decision_is_yes_or_no(server, body):
    ticket = await asked(server, content="决定")
    path = f"/approvals/{ticket}"
    reply = await server.client.post(path, json=body, headers=bearer("tok-boss"))
    assert code(reply) == (400, "invalid_arguments")
    assert code(await decide(server, "nothing")) == (404, "ticket_unknown")


async def test_an_expired_ticket_runs_nothing(tmp_path):
    async with serving(tmp_path, ticket_seconds=0.05) as served:
        ticket = await asked(served)
        store = served.toolbox.store.tickets
        row = await store.get(ticket)
        assert row is not None
        await until(lambda: row.expired(store.now()))
        assert code(await repeat(served, ticket)) == (410, "ticket_expired")
        assert code(await decide(served, ticket)) == (410, "ticket_expired")
        assert served.effects == []


async def test_tickets_survive_a_restart(tmp_path):
    async with serving(tmp_path) as served:
        waiting, approved, used = [await asked(served, content=c) for c in "甲乙丙"]
        await decide(served, approved)
        await decide(served, used)
        await repeat(served, used, content="丙")
    async with serving(tmp_path) as served:
        assert code(await repeat(served, used, content="丙")) == (409, "ticket_used")
        assert code(await repeat(served, waiting, content="甲")) == (409, "approval_pending")
        assert code(await repeat(served, approved, content="改")) == (
            409, "ticket_for_another_call",
        )  # fmt: skip
        assert (await repeat(served, approved, content="乙")).status_code == 200
        assert served.effects == ["http/ci 销售群 丙", "http/ci 销售群 乙"]


async def test_a_tool_that_changed_meanwhile_is_not_run(tmp_path):
    async with serving(tmp_path) as served:
        ticket = await asked(served)
        await decide(served, ticket)
        file = tmp_path / "tools" / "box.py"
        text = file.read_text("utf-8").replace('description="正文")', 'description="正文和抄送")')
        file.write_text(text, "utf-8")
        await served.toolbox.tools.reload()
        assert code(await repeat(served, ticket)) == (409, "tool_changed")
        assert served.effects == []


async def test_a_flood_of_calls_does_not_flood_who_approves(tmp_path, monkeypatch):
    monkeypatch.setattr("chathands.agent.tickets.MOST_WAITING", 2)
    async with serving(tmp_path) as served:
        for content in "甲乙":
            await asked(served, content=content)
        full = await served.call("push", **(PUSH | {"content": "丙"}))
        assert code(full) == (429, "too_many_approvals")
        assert "retry-after" in full.headers
        await asked(served, "tok-other", content="丙")


async def test_the_asker_approves_where_the_policy_says_so(tmp_path):
    toml = '[tools.push]\napprove = "asker"\n'
    async with serving(tmp_path, toml=toml) as served:
        ticket = await asked(served)
        assert (await decide(served, ticket, "yes", "tok-ci")).status_code == 200
        assert (await repeat(served, ticket)).status_code == 200


async def test_a_tool_left_to_superusers_needs_the_token_of_one(tmp_path):
    toml = '[tools.push]\napprove = "superuser"\n'
    async with serving(tmp_path, toml=toml) as served:
        ticket = await asked(served)
        assert code(await decide(served, ticket, "yes", "tok-approver")) == (
            403, "not_yours_to_decide",
        )  # fmt: skip
        assert (await decide(served, ticket, "yes", "tok-boss")).status_code == 200


@pytest.mark.parametrize(("listed", "status"), [("http:approver", 200), ("approver", 403)])
async def test_a_list_of_approvers_names_tokens_as_every_list_does(tmp_path, listed, status):
    """A token that is called like somebody's QQ number is not that person."""
    async with serving(tmp_path, toml=f'[tools.push]\napprove = ["{listed}"]\n') as served:
        ticket = await asked(served)
        assert (await decide(served, ticket, "yes", "tok-approver")).status_code == status
