"""How long until QQ can connect: `python bot.py` against a bare NoneBot of the same run.

    python benchmarks/startup.py [--runs 7] [--limit 4.0]

"Ready" is a OneBot handshake over the websocket; for the bot also its own line that the agent is
there. Both are started in turn, so that a busy machine slows them alike; the first run of each is
thrown away (it compiles). Prints medians and their ratio; exits 1 when the ratio is over the limit.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import shutil
import socket
import statistics
import sys
import tempfile
import time
from pathlib import Path

from websockets.asyncio.client import connect

ROOT = Path(__file__).resolve().parents[1]

BARE = """
import nonebot
from nonebot.adapters.onebot.v11 import Adapter

nonebot.init()
nonebot.get_driver().register_adapter(Adapter)
nonebot.run()
"""

READY_LINE = "模型"
PATIENCE = 60.0


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


async def _connectable(port: int) -> None:
    headers = {"X-Self-ID": "10000", "X-Client-Role": "Universal"}
    url = f"ws://127.0.0.1:{port}/onebot/v11/ws"
    while True:
        try:
            async with connect(url, additional_headers=headers, proxy=None):
                return
        except OSError:
            await asyncio.sleep(0.005)


async def _says(process: asyncio.subprocess.Process, word: str) -> None:
    assert process.stdout is not None
    async for line in process.stdout:
        if word in line.decode("utf-8", "replace"):
            return
    raise RuntimeError("the process ended before it was ready")


async def _seconds_to_ready(script: str, directory: Path, ready_line: str | None) -> float:
    port = _free_port()
    env = {
        **os.environ,
        "PORT": str(port),
        "PYTHONPATH": str(ROOT),
        "PYTHONUNBUFFERED": "1",
        "PYTHONIOENCODING": "utf-8",
        "CHATHANDS__MODEL__BASE_URL": "http://127.0.0.1:9/v1",  # never asked
        "CHATHANDS__MODEL__NAME": "nobody",
    }
    start = time.perf_counter()
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        script,
        cwd=directory,
        env=env,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    try:
        async with asyncio.timeout(PATIENCE):
            if ready_line is not None:
                await _says(process, ready_line)
            await _connectable(port)
        return time.perf_counter() - start
    finally:
        process.kill()
        await process.communicate()


async def _measure(runs: int, directory: Path) -> tuple[list[float], list[float]]:
    for name in ("bot.py", "pyproject.toml"):
        shutil.copy(ROOT / name, directory)
    for name in ("plugins", "tools", "data"):
        shutil.copytree(ROOT / name, directory / name)
    bare_directory = directory / "bare"
    bare_directory.mkdir()
    (bare_directory / "bare.py").write_text(BARE, "utf-8")
    bare: list[float] = []
    bot: list[float] = []
    for _ in range(runs + 1):
        bare.append(await _seconds_to_ready("bare.py", bare_directory, None))
        bot.append(await _seconds_to_ready("bot.py", directory, READY_LINE))
    return bare[1:], bot[1:]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--runs", type=int, default=7)
    parser.add_argument("--limit", type=float, default=4.0)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        bare, bot = asyncio.run(_measure(options.runs, Path(directory)))
    ratio = statistics.median(bot) / statistics.median(bare)
    for name, times in (("bare NoneBot", bare), ("bot.py", bot)):
        print(
            f"{name:<13} median {statistics.median(times):.2f} s  "
            f"({min(times):.2f} to {max(times):.2f}, {len(times)} runs)"
        )
    print(f"ratio         {ratio:.2f}  (limit {options.limit:g})")
    sys.exit(0 if ratio <= options.limit else 1)


if __name__ == "__main__":
    main()
