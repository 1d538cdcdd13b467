"""`chathands approvals` beside a tool server that runs: two processes' view of one state."""

from __future__ import annotations

import asyncio

from typer.testing import CliRunner

from chathands.cli import app
from chathands.cli.approvals import register
from tests.server.kit import serving


def run(*arguments: str):
    import typer

    own = typer.Typer()
    register(own)
    return CliRunner().invoke(own, ["approvals", *arguments])


async def test_it_lists_and_decides_what_the_server_asks_for(tmp_path, monkeypatch):
    monkeypatch.setenv("CHATHANDS__STATE_DIR", str(tmp_path / "state"))
    monkeypatch.chdir(tmp_path)
    async with serving(tmp_path) as served:
        assert "没有程序发起的操作" in (await asyncio.to_thread(run)).output
        push = {"robot": "销售群", "content": "换\x1b[2J行"}
        tickets = []
        for number in range(2):
            reply = await served.call("push", **(push | {"content": f"{push['content']}{number}"}))
            tickets.append(reply.json())
        listed = await asyncio.to_thread(run, "list")
        first, second = (str(one["approval"]["number"]) for one in tickets)
        for part in (first, second, "ci", "push", "销售群", "换[U+001B][2J行0"):
            assert part in listed.output
        assert "\x1b" not in listed.output
        assert (await asyncio.to_thread(run, "yes", first)).exit_code == 0
        assert (await asyncio.to_thread(run, "no", second)).exit_code == 0
        late = await asyncio.to_thread(run, "yes", second)
        assert late.exit_code == 1
        for wrong in ("77", "9" * 30):
            none = await asyncio.to_thread(run, "yes", wrong)
            assert (none.exit_code, none.exception.__class__) == (1, SystemExit)
        headers = {"approval-ticket": tickets[0]["ticket"]}
        done = await served.client.post(
            "/tools/push", json=push | {"content": f"{push['content']}0"}, headers=headers
        )
        assert done.status_code == 200
        row = await served.toolbox.store.tickets.get(tickets[0]["ticket"])
        assert row is not None
        assert row.decided_by.startswith("terminal")


def test_it_is_registered():
    from chathands import cli

    if not any(group.name == "approvals" for group in app.registered_groups):
        cli._register()
    assert any(group.name == "approvals" for group in app.registered_groups)
