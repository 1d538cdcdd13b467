"""docs/tool_server.md, line by line: each curl answers what stands behind it."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from string import Template

import httpx
import pytest

from chathands.agent.tickets import Fault
from chathands.server.tools_api import _FAULT_STATUS
from chathands.settings import DingTalkSettings, Robot
from tests.server import kit

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "tool_server.md").read_text("utf-8")


def lines() -> list[tuple[str, int]]:
    blocks = re.findall(r"^```bash\n(.*?)^```", PAGE, re.M | re.S)
    found = [re.fullmatch(r"(curl .*?)\s+# → (\d{3})", line)
             for block in blocks for line in block.splitlines()]  # fmt: skip
    assert all(found)
    return [(match[1], int(match[2])) for match in found if match is not None]


def as_request(command: str, values: dict[str, str]) -> httpx.Request:
    words = iter(shlex.split(Template(command).substitute(values))[1:])
    method, url, body, headers = "", "", None, {}
    for word in words:
        if word == "-H":
            name, _, value = next(words).partition(": ")
            headers[name] = value
        elif word == "-d":
            body = next(words).encode()
        elif word == "-X":
            method = next(words)
        else:
            url = word
    return httpx.Request(method or ("POST" if body else "GET"), url, headers=headers, content=body)


async def test_every_line_of_the_page_answers_as_it_says(tmp_path, monkeypatch):
    def settings_in(directory, **api):
        settings = made(directory, **api)
        dry = DingTalkSettings(robots={"销售群": Robot(webhook="dry-run")})  # type: ignore[arg-type]
        return settings.model_copy(
            update={"tools_dir": ROOT / "tools", "data_dir": ROOT / "data", "dingtalk": dry}
        )

    made = kit.settings_in
    monkeypatch.setattr(kit, "settings_in", settings_in)
    async with kit.serving(tmp_path) as served:
        values = {"URL": str(served.client.base_url), "TOKEN": "tok-ci", "ADMIN": "tok-boss"}
        told = lines()
        assert len(told) > 12
        for command, status in told:
            reply = await served.anonymous.send(as_request(command, values))
            assert (command, reply.status_code) == (command, status), reply.text
            body = reply.json()
            if "ticket" in body:
                values["TICKET"] = body["ticket"]
            if status == 202:
                values["JOB"] = reply.headers["location"].rpartition("/")[2]


@pytest.mark.parametrize(
    "fault", [one for one in Fault if one not in (Fault.DECIDED, Fault.NOT_YOURS)]
)
def test_the_page_lists_every_way_a_ticket_may_not_do(fault):
    assert re.search(rf"\| {_FAULT_STATUS[fault]} \| `{fault}` \|", PAGE)
