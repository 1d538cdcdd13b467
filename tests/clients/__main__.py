"""Agent frameworks through `chathands serve`, unchanged. A ring of its own:

    pip install -e ".[clients]"
    python -m tests.clients [NAME ...]

Each program of docs/clients.md and of `programs/` is a process, `chathands serve` is one, and
behind it stands a model that can only chat and answers 400 to native tool fields. It fails when a
program does not do its two-tool task, or is not installed.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import signal
import socket
import sys
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from tests.clients.kit import OWN, PROGRAMS, ROOT, check, program, replies
from tests.standins.model_server import ModelServer, ReplyLike

SECONDS = 90
"""For one program: the imports alone take ten on a busy machine."""

MAIN = "from chathands.cli import main; main()"
PACKAGES = {
    "pydantic-ai": "pydantic-ai-slim",
    "langchain-openai": "langchain-openai",
    "openai-agents": "openai-agents",
    "smolagents": "smolagents",
    "openai": "openai",
    "anthropic": "anthropic",
}


def package(name: str) -> str:
    """The distribution that a program is about."""
    return next(found for start, found in PACKAGES.items() if name.startswith(start))


def environment(directory: str) -> dict[str, str]:
    """Nobody's settings, and no address but loopback's in it."""
    keep = ("PATH", "SYSTEMROOT", "TEMP", "TMP", "LANG", "LC_ALL")
    own = {
        "HOME": directory, "PYTHONPATH": str(ROOT), "PYTHONIOENCODING": "utf-8",
        "HF_HUB_OFFLINE": "1",
    }  # fmt: skip
    return {name: os.environ[name] for name in keep if name in os.environ} | own


async def process(*arguments: str, directory: str) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        sys.executable, *arguments, cwd=directory, env=environment(directory),
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT,
    )  # fmt: skip


@asynccontextmanager
async def served(upstream: str, directory: str) -> AsyncIterator[str]:
    """The gateway's address, from when it listens."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    gateway = await process(
        "-c", MAIN, "serve", "--upstream", upstream, "--model", "plain", "--port", str(port),
        directory=directory,
    )  # fmt: skip
    assert gateway.stdout is not None
    said = b""
    try:
        async with asyncio.timeout(SECONDS):
            while b"/tools" not in (line := await gateway.stdout.readline()):
                said += line
                if gateway.stdout.at_eof():
                    raise SystemExit(f"the gateway did not start:\n{said.decode()}")
        draining = asyncio.create_task(gateway.stdout.read())
        url = f"http://127.0.0.1:{port}"
        while True:
            try:
                _, writer = await asyncio.open_connection("127.0.0.1", port)
            except ConnectionError:
                await asyncio.sleep(0.05)
            else:
                writer.close()
                break
        yield url
        gateway.send_signal(signal.SIGTERM)
        await draining
    finally:
        if gateway.returncode is None:
            gateway.kill()
        await gateway.wait()


async def try_one(name: str, url: str, model: ModelServer, directory: str) -> str | None:
    """What is wrong, or None."""
    code = program(name, url)
    model.requests.clear()
    script = Path(directory, f"{name.replace('-', '_')}_program.py")  # some read their own source
    await asyncio.to_thread(script.write_text, code, "utf-8")
    running = await process(str(script), directory=directory)
    try:
        async with asyncio.timeout(SECONDS):
            said = (await running.communicate())[0].decode("utf-8", "replace")
    except TimeoutError:
        running.kill()
        await running.wait()
        return f"not done after {SECONDS} seconds, {len(model.requests)} requests"
    if running.returncode != 0:
        return f"ended with {running.returncode}:\n{said[-3000:]}"
    try:
        check(name, said, model.requests)
    except AssertionError as error:
        return f"{error}\n{said[-3000:]}"
    return None


async def run(names: list[str]) -> int:
    """How many programs failed."""
    failed = 0
    now: list[ReplyLike] = []
    with tempfile.TemporaryDirectory() as directory:
        async with (
            ModelServer(lambda _: now.pop(0) if now else {"status": 500}) as model,
            served(model.url, directory) as url,
        ):
            for name in names:
                try:
                    shown = f"{package(name)} {version(package(name))}"
                except PackageNotFoundError:
                    wrong, shown = "not installed", package(name)
                else:
                    now[:] = replies(name)
                    wrong = await try_one(name, url, model, directory)
                failed += wrong is not None
                print(f"{'ok  ' if wrong is None else 'FAIL'} {name} ({shown})", flush=True)
                if wrong is not None:
                    print(wrong, flush=True)
    return failed


def main() -> None:
    every = sorted([*PROGRAMS, *OWN])
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(every))
    names = parser.parse_args().names or every
    if unknown := set(names) - set(every):
        parser.error(f"no such program: {', '.join(sorted(unknown))}")
    sys.exit(1 if asyncio.run(run(names)) else 0)


if __name__ == "__main__":
    main()
