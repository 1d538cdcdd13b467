"""`chathands serve`: one line and no file; nothing beyond this machine without tokens."""

import asyncio
import os
import signal
import sys
from pathlib import Path

import httpx
import typer
from typer.testing import CliRunner

from chathands.cli.serve import models_line, register
from chathands.errors import ConfigError
from chathands.settings import load_settings
from chathands.upstreams.build import build_router
from tests.standins.model_server import ModelServer

ROOT = Path(__file__).parents[2]
MAIN = "from chathands.cli import main; main()"


def environment(directory: Path) -> dict[str, str]:
    keep = ("PATH", "SYSTEMROOT", "TEMP", "TMP", "LANG", "LC_ALL")
    own = {"HOME": str(directory), "PYTHONPATH": str(ROOT), "PYTHONIOENCODING": "utf-8"}
    return {name: os.environ[name] for name in keep if name in os.environ} | own


async def started(directory: Path, *arguments: str) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        sys.executable, "-c", MAIN, "serve", *arguments, cwd=directory, env=environment(directory),
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT,
    )  # fmt: skip


async def ended(process: asyncio.subprocess.Process) -> str:
    assert process.stdout is not None
    async with asyncio.timeout(20):
        said = (await process.stdout.read()).decode()
        await process.wait()
    getattr(process, "_transport").close()  # noqa: B009
    return said


async def test_an_upstream_and_a_name_are_enough(tmp_path, unused_tcp_port):
    async with ModelServer(["好"]) as model:
        port = str(unused_tcp_port)
        process = await started(
            tmp_path, "--upstream", model.url, "--model", "plain", "--port", port
        )
        transport = httpx.AsyncHTTPTransport(retries=8)
        address = f"http://127.0.0.1:{port}"
        assert process.stdout is not None
        async with asyncio.timeout(20):
            while b"/tools" not in await process.stdout.readline():
                assert not process.stdout.at_eof()
        async with httpx.AsyncClient(transport=transport, base_url=address) as client:
            rows = (await client.get("/v1/models")).json()["data"]
            body = {"model": "whatever", "messages": [{"role": "user", "content": "q"}]}
            reply = (await client.post("/v1/chat/completions", json=body)).json()
        process.send_signal(signal.SIGTERM)
        await ended(process)
    assert [row["id"] for row in rows] == ["plain"]
    assert reply["choices"][0]["message"]["content"] == "好"
    assert model.requests[0].body["model"] == "plain"
    assert not (tmp_path / "chathands.toml").exists()
    assert process.returncode == 0


def test_another_address_is_refused_without_tokens(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    own = typer.Typer()
    register(own)
    for host in ("0.0.0.0", "192.168.1.5", "::"):
        result = CliRunner().invoke(own, ["--host", host])
        assert isinstance(result.exception, ConfigError)
        assert "CHATHANDS__API__TOKENS" in result.exception.sentence


async def test_the_start_line_names_every_model_and_its_mode(tmp_path):
    (tmp_path / "chathands.toml").write_text(
        '[models.a]\nbase_url = "http://127.0.0.1:1/v1"\nmode = "native"\n'
        '[models.b]\nbase_url = "http://127.0.0.1:1/v1"\n',
        "utf-8",
    )
    settings = load_settings(tmp_path)
    router = await build_router(settings)
    assert models_line(settings, router) == "a，模式 native；b（emulated（没有测量过））"
    await router.aclose()
