"""docs/clients.md: the SDKs' programs are run as they stand, every other block says it is not."""

import asyncio
import io
import re
from contextlib import redirect_stdout

import pytest
import pytest_asyncio

from chathands.settings import Settings
from chathands.store.responses import Responses
from tests.clients.kit import BLOCK, GATEWAY, PAGE, PROGRAMS, ROOT, check, program, replies
from tests.server.gateway_kit import Gate, gate, in_thread

SDKS = ("openai", "openai-stream", "anthropic", "anthropic-stream")
RING = ("pydantic-ai", "langchain-openai", "openai-agents", "smolagents")
"""Run by `python -m tests.clients`."""


@pytest_asyncio.fixture(scope="module")
async def server(tmp_path_factory):
    store = Responses(tmp_path_factory.mktemp("responses"), days=1, most=9, megabytes=1)
    async with gate(responses=store) as running:
        yield running
    await store.aclose()


def run(code: str) -> str:
    said = io.StringIO()
    with redirect_stdout(said):
        exec(compile(code, "docs/clients.md", "exec"), {"__name__": "__main__"})
    return said.getvalue()


@pytest.mark.parametrize("name", SDKS)
async def test_a_program_of_the_page_does_its_task_as_it_stands(server: Gate, name: str):
    server.plays(*replies(name))
    async with asyncio.timeout(30):
        said = await in_thread(lambda: run(program(name, server.url)))
    check(name, said, server.asked)


async def test_the_program_of_the_gateways_page_goes_on_from_its_first_response(server: Gate):
    page = (ROOT / "docs" / "gateway.md").read_text("utf-8")
    (code,) = re.findall(r"^```python\n(.*?)^```", page, re.M | re.S)
    server.plays("记住了。", "你叫小明。")
    said = await in_thread(lambda: run(code.replace(GATEWAY, server.url)))
    assert said == "你叫小明。\n"
    assert "我叫小明。" in str(server.asked[1].body["messages"])


def test_every_block_is_run_or_says_that_nobody_tried_it():
    assert set(PROGRAMS) == {*SDKS, *RING}
    others = [found for found in BLOCK.finditer(PAGE) if found["mark"] is None]
    assert [found["code"].split()[:2] for found in others] == [["chathands", "serve"]]
    for section in PAGE.split("\n## ")[1:]:
        assert ("\n跑过" in section) != ("\n没有试过。" in section), section.splitlines()[0]
        assert ("<!-- run: " in section) == ("\n跑过" in section)


def test_the_context_the_page_calls_the_default_is_the_default():
    assert f"默认 {Settings(_env_file=None).model.context}" in PAGE  # type: ignore[call-arg]
