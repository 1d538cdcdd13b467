"""The tool server under 50 callers at once: seconds from first byte sent to last byte read.

    python benchmarks/tool_server.py [--rounds 6] [--at-once 50]

A real `chathands serve` in a process of its own, without a model, with two tools: a read-only one
that takes 50 ms and a side effect (local, so that nobody is asked) that is in the audit trail
before it starts and after it ended. The client speaks HTTP/1.1 over raw sockets, one kept-alive
connection a caller; what it costs itself is in the figures. Prints p50, p95 and the worst, in ms.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import socket
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]
TOKEN = "benchmark"

TOOLS = '''
import asyncio
from typing import Annotated
from pydantic import Field
from chathands import ToolContext, tool


@tool(side_effect="none")
async def look(ctx: ToolContext, n: Annotated[int, Field(description="第几个")]) -> str:
    """看一眼。"""
    await asyncio.sleep(0.05)
    return f"看到 {n}"


@tool(side_effect="local")
async def note(ctx: ToolContext, n: Annotated[int, Field(description="第几个")]) -> str:
    """记一笔。"""
    return f"记下 {n}"
'''

TARGETS = {"look": 100, "note": 150}
CONCURRENCY = 64
"""Of each tool: the default guards services behind tools, not this one."""


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--at-once", type=int, default=50)
    wanted = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        server, port = await started(Path(directory))
        try:
            for tool, target in TARGETS.items():
                taken = await measured(tool, port, wanted.at_once, wanted.rounds)
                print(line(tool, taken, target))
        finally:
            server.terminate()
            await server.wait()


async def started(directory: Path) -> tuple[asyncio.subprocess.Process, int]:
    (directory / "tools").mkdir()
    (directory / "data").mkdir()
    (directory / "tools" / "box.py").write_text(TOOLS, "utf-8")
    limits = "".join(f"[tools.{name}]\nconcurrency = {CONCURRENCY}\n" for name in TARGETS)
    (directory / "tools.toml").write_text(limits, "utf-8")
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    tokens = {TOKEN: {"name": "benchmark", "rate": 1_000_000}}
    env = {
        **os.environ,
        "PYTHONPATH": str(ROOT),
        "CHATHANDS__LOCAL_MODEL": "false",
        "CHATHANDS__API__TOKENS": json.dumps(tokens),
    }
    code = "from chathands.cli import main; main()"
    server = await asyncio.create_subprocess_exec(
        sys.executable, "-c", code, "serve", "--port", str(port), cwd=directory, env=env,
        stdout=asyncio.subprocess.DEVNULL,
    )  # fmt: skip
    async with asyncio.timeout(60):
        while True:
            try:
                _, writer = await asyncio.open_connection("127.0.0.1", port)
            except OSError:
                await asyncio.sleep(0.1)
            else:
                writer.close()
                return server, port


async def measured(tool: str, port: int, at_once: int, rounds: int) -> list[float]:
    """Seconds of every call, the first round (imports, first file) left out."""
    ways = [await asyncio.open_connection("127.0.0.1", port) for _ in range(at_once)]
    taken: list[float] = []
    for turn in range(rounds + 1):
        calls = [call(*way, tool, turn * at_once + n) for n, way in enumerate(ways)]
        times = await asyncio.gather(*calls)
        taken += times if turn else []
    for _, writer in ways:
        writer.close()
    return taken


async def call(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, tool: str, number: int
) -> float:
    body = json.dumps({"n": number}).encode()
    began = time.perf_counter()
    writer.write(
        f"POST /tools/{tool} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {TOKEN}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n".encode()
        + body
    )
    head = await reader.readuntil(b"\r\n\r\n")
    length = next(
        int(row.split(b":")[1]) for row in head.lower().split(b"\r\n") if b"content-length" in row
    )
    answer = await reader.readexactly(length)
    took = time.perf_counter() - began
    if not head.startswith(b"HTTP/1.1 200") or json.loads(answer)["status"] != "ok":
        raise SystemExit(f"{tool} answered {head[:40]!r} {answer[:200]!r}")
    return took


def line(tool: str, taken: list[float], target: int) -> str:
    ms = sorted(1000 * one for one in taken)
    p50, p95 = ms[len(ms) // 2], ms[int(len(ms) * 0.95)]
    verdict = "ok" if p95 <= target else "over"
    return (
        f"{tool:5} {len(ms)} calls  p50 {p50:6.1f}  p95 {p95:6.1f}  worst {ms[-1]:6.1f} ms"
        f"  (p95 at most {target}: {verdict})"
    )


if __name__ == "__main__":
    asyncio.run(main())
