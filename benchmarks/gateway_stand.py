"""The processes of benchmarks/gateway.py, and a connection to one of them."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import sys
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from benchmarks.gateway_upstream import FIRST_WORD

HERE = Path(__file__).parent
ROOT = HERE.parent
START_SECONDS = 120
"""LiteLLM imports for half a minute on a busy machine."""
MODEL, SLOW = "plain", "slow"
KEY = "sk-benchmark"


@dataclass(slots=True)
class Took:
    """Seconds from the first byte sent."""

    first: float
    whole: float


class Connection:
    """One kept-alive connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    @classmethod
    async def to(cls, port: int) -> Connection:
        return cls(*await asyncio.open_connection("127.0.0.1", port, limit=1 << 20))

    def close(self) -> None:
        self._writer.close()

    async def ask(self, request: bytes, *, holds: str = FIRST_WORD) -> Took:
        """Raises SystemExit: the reply does not have what it must."""
        began = time.perf_counter()
        self._writer.write(request)
        head = (await self._reader.readuntil(b"\r\n\r\n")).lower()
        first, body = 0.0, b""
        async for part in self._parts(head):
            body += part
            if not first and FIRST_WORD.encode() in body:
                first = time.perf_counter() - began
        whole = time.perf_counter() - began
        if not head.startswith(b"http/1.1 200") or not first or holds.encode() not in body:
            raise SystemExit(f"a gateway answered {head[:40]!r} {body[:300]!r}")
        return Took(first, whole)

    async def _parts(self, head: bytes) -> AsyncIterator[bytes]:
        for row in head.split(b"\r\n"):
            if row.startswith(b"content-length:"):
                yield await self._reader.readexactly(int(row[15:]))
                return
        while size := int(await self._reader.readuntil(b"\r\n"), 16):
            yield (await self._reader.readexactly(size + 2))[:-2]
        await self._reader.readexactly(2)


@dataclass(slots=True)
class Server:
    """A process that listens."""

    port: int
    process: asyncio.subprocess.Process

    def resident(self) -> float:
        """MB."""
        status = Path(f"/proc/{self.process.pid}/status").read_text("ascii")
        row = next(row for row in status.splitlines() if row.startswith("VmRSS:"))
        return int(row.split()[1]) / 1024

    def cpu(self) -> float:
        """Seconds of CPU so far: what a shared machine does not blur."""
        fields = (
            Path(f"/proc/{self.process.pid}/stat").read_text("ascii").rpartition(")")[2].split()
        )
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@asynccontextmanager
async def served(
    command: list[str], port: int, directory: Path, **env: str
) -> AsyncIterator[Server]:
    process = await asyncio.create_subprocess_exec(
        *command, cwd=directory, env={**os.environ, **env}, stdout=asyncio.subprocess.DEVNULL
    )
    try:
        async with asyncio.timeout(START_SECONDS):
            while True:
                if process.returncode is not None:
                    raise SystemExit(f"{command[0]} ended with {process.returncode}")
                try:
                    (await Connection.to(port)).close()
                except OSError:
                    await asyncio.sleep(0.1)
                else:
                    break
        yield Server(port, process)
    finally:
        if process.returncode is None:
            process.terminate()
        await process.wait()


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return probe.getsockname()[1]


class Stand:
    """The model, and what stands before it, each in its process."""

    def __init__(self, stack: AsyncExitStack, directory: Path) -> None:
        self._stack = stack
        self._directory = directory
        self.url = ""

    async def _begin(self, command: list[str], port: int, **env: str) -> Server:
        place = served(command, port, self._directory, **env)
        return await self._stack.enter_async_context(place)

    async def upstream(self) -> Server:
        port = free_port()
        self.url = f"http://127.0.0.1:{port}/v1"
        return await self._begin(
            [sys.executable, str(HERE / "gateway_upstream.py"), str(port)], port
        )

    async def ours(self) -> Server:
        port = free_port()
        (self._directory / "tools").mkdir(exist_ok=True)
        entries = "".join(f'[models.{name}]\nbase_url = "{self.url}"\n' for name in (MODEL, SLOW))
        (self._directory / "chathands.toml").write_text(entries, "utf-8")
        code = "from chathands.cli import main; main()"
        command = [sys.executable, "-c", code, "serve", "--port", str(port)]
        return await self._begin(command, port, PYTHONPATH=str(ROOT))

    async def passthrough(self) -> Server:
        port = free_port()
        command = [sys.executable, "-m", "uvicorn", "gateway_passthrough:app", "--no-access-log"]
        command += ["--port", str(port), "--log-level", "warning", "--app-dir", str(HERE)]
        return await self._begin(command, port, UPSTREAM=self.url)

    async def litellm(self, executable: str) -> Server:
        port = free_port()
        params = {"model": f"openai/{MODEL}", "api_base": self.url, "api_key": "none"}
        config = self._directory / "litellm.json"  # JSON is YAML
        models = [{"model_name": MODEL, "litellm_params": params}]
        config.write_text(json.dumps({"model_list": models}), "utf-8")
        command = [executable, "--config", str(config), "--port", str(port), "--num_workers", "1"]
        return await self._begin(
            [*command, "--host", "127.0.0.1"], port,
            LITELLM_DANGEROUSLY_PERMIT_WEAK_OR_UNSET_MASTER_KEY="true",
            LITELLM_LOG="ERROR",
        )  # fmt: skip
