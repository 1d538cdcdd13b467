"""The gateway beside the least a gateway can do, in the same run.

    python benchmarks/gateway.py [--rounds 3] [--requests 1500] [--one 300] [--streams 500]
        [--memory 10000] [--only first,rate,memory,streams] [--litellm PATH] [--check]

One worker each: `chathands serve`, a FastAPI pass-through of 25 lines over the same HTTP client
(gateway_passthrough.py), and LiteLLM's proxy where `--litellm` gives its executable; all before
one stand-in model in its own process (gateway_upstream.py), all over loopback. A request carries
about 1.5 kB of tools and another question each time; the reply is a sentence and a call. The client
speaks HTTP/1.1 over raw sockets. Prints a table of medians. The memory needs Linux.
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
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from statistics import median

ROOT = Path(__file__).parents[1]
HERE = Path(__file__).parent
sys.path[:0] = [str(ROOT)]

from benchmarks.gateway_upstream import (  # noqa: E402
    FIRST_WORD,
    SLOW_PAUSE,
    SLOW_PIECES,
    run_quickly,
)
from chathands.open_files import raise_open_files  # noqa: E402

CLIENTS = 32
START_SECONDS = 120
"""LiteLLM imports for half a minute on a busy machine."""
FIRST_AT_MOST = 1.6
RATE_AT_LEAST = 0.4
RATE_OVER_LITELLM = 6.0
MEMORY_AT_MOST = 5.0
"""MB between the first 2,000 requests and the last."""
MEMORY_FROM = 2000
STREAMS_AT_MOST = 1.5
MODEL, SLOW = "plain", "slow"
KEY = "sk-benchmark"

_numbers = count()


def _tool(name: str, says: str, **fields: tuple[str, str]) -> dict[str, object]:
    properties = {key: {"type": kind, "description": d} for key, (kind, d) in fields.items()}
    schema = {"type": "object", "properties": properties, "required": [next(iter(fields))]}
    return {
        "type": "function",
        "function": {"name": name, "description": says, "parameters": schema},
    }


TOOLS = [
    _tool(
        "search_orders",
        "Find orders of a customer, newest first.",
        customer=("string", "Full name of the customer, or the address they write from"),
        status=("string", "One of open, paid, shipped and cancelled; all of them by default"),
        limit=("integer", "How many orders at most, 20 by default"),
    ),
    _tool(
        "get_weather",
        "The weather of a city, today and on the next days.",
        city=("string", "Name of the city, with the country where there are several"),
        days=("integer", "For how many days, today included; at most 7"),
    ),
    _tool(
        "create_ticket",
        "Open a ticket with the support team.",
        title=("string", "One line that says what is wrong"),
        body=("string", "What happened, in the words of the customer"),
        urgent=("boolean", "Whether somebody has to look at it today"),
    ),
    _tool(
        "convert_currency",
        "Convert an amount by today's rate.",
        amount=("number", "How much"),
        source=("string", "Three letters, for instance EUR"),
        target=("string", "Three letters, for instance CNY"),
    ),
]


def request_bytes(*, stream: bool, model: str = MODEL) -> bytes:
    """One request, whose question nobody has asked before."""
    question = f"Which orders of Ada Lovelace are still open? Her number is {next(_numbers)}."
    body = json.dumps(
        {
            "model": model,
            "stream": stream,
            "messages": [
                {"role": "system", "content": "You help the people of a small shop."},
                {"role": "user", "content": question},
            ],
            "tools": TOOLS,
        }
    ).encode()
    return (
        b"POST /v1/chat/completions HTTP/1.1\r\nhost: 127.0.0.1\r\n"
        b"authorization: Bearer %s\r\ncontent-type: application/json\r\n"
        b"content-length: %d\r\n\r\n%s" % (KEY.encode(), len(body), body)
    )


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


async def one_client(port: int, requests: int) -> float:
    """Median seconds to the first token of a stream."""
    way = await Connection.to(port)
    took = [(await way.ask(request_bytes(stream=True))).first for _ in range(requests)]
    way.close()
    return median(took)


async def per_second(port: int, requests: int, *, stream: bool) -> float:
    """Requests a second of 32 clients."""
    ways = [await Connection.to(port) for _ in range(CLIENTS)]
    left: Iterator[int] = iter(range(requests))

    async def ask(way: Connection) -> None:
        for _ in left:
            await way.ask(request_bytes(stream=stream))

    began = time.perf_counter()
    await asyncio.gather(*map(ask, ways))
    took = time.perf_counter() - began
    for way in ways:
        way.close()
    return requests / took


async def at_once(port: int, streams: int) -> tuple[float, float]:
    """Median and longest seconds of so many streams of a model that takes its time."""
    ways = [await Connection.to(port) for _ in range(streams)]
    asks = (way.ask(request_bytes(stream=True, model=SLOW)) for way in ways)
    took = [one.whole for one in await asyncio.gather(*asks)]
    for way in ways:
        way.close()
    return median(took), max(took)


class Table:
    """Rows of a Markdown table, and whether a target was missed."""

    def __init__(self) -> None:
        self.missed = False
        print("| figure | value | target | |\n|---|---|---|---|")

    def row(self, figure: str, value: str, target: str = "", ok: bool | None = None) -> None:
        verdict = "" if ok is None else "ok" if ok else "**missed**"
        self.missed = self.missed or ok is False
        print(f"| {figure} | {value} | {target} | {verdict} |", flush=True)


async def first_token(table: Table, ways: dict[str, int], wanted: argparse.Namespace) -> None:
    taken: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(wanted.rounds):
        for name, port in ways.items():
            taken[name].append(await one_client(port, wanted.one))
    bare = median(taken.pop("upstream"))
    table.row("first token, 1 client: the upstream itself", f"{1000 * bare:.2f} ms")
    added = {name: median(times) - bare for name, times in taken.items()}
    for name, seconds in added.items():
        table.row(f"first token, 1 client: added by {name}", f"{1000 * seconds:.2f} ms")
    ratio = added["ours"] / added["pass-through"]
    ok = ratio <= FIRST_AT_MOST
    table.row("… ours : pass-through", f"{ratio:.2f}", f"≤ {FIRST_AT_MOST}", ok)


async def rates(table: Table, ways: dict[str, int], wanted: argparse.Namespace) -> None:
    for stream in (False, True):
        kind = "streamed" if stream else "whole"
        taken: dict[str, list[float]] = {name: [] for name in ways}
        for _ in range(wanted.rounds):
            for name, port in ways.items():
                requests = wanted.requests if name != "LiteLLM" else wanted.requests // 5
                taken[name].append(await per_second(port, requests, stream=stream))
        rate = {name: median(rates) for name, rates in taken.items()}
        for name, value in rate.items():
            table.row(f"{kind}, {CLIENTS} clients: {name}", f"{value:.0f} req/s")
        ratio = rate["ours"] / rate["pass-through"]
        ok = ratio >= RATE_AT_LEAST
        table.row("… ours : pass-through", f"{ratio:.2f}", f"≥ {RATE_AT_LEAST}", ok)
        if "LiteLLM" in rate:
            ratio = rate["ours"] / rate["LiteLLM"]
            ok = ratio >= RATE_OVER_LITELLM
            table.row("… ours : LiteLLM", f"{ratio:.1f}", f"≥ {RATE_OVER_LITELLM:.0f}", ok)


async def memory(table: Table, ours: Server, wanted: argparse.Namespace) -> None:
    """`ours` has answered nothing yet."""
    start = min(MEMORY_FROM, wanted.memory // 5)
    await per_second(ours.port, start // 2, stream=False)
    await per_second(ours.port, start // 2, stream=True)
    before = ours.resident()
    more = wanted.memory - start
    await per_second(ours.port, more // 2, stream=False)
    await per_second(ours.port, more // 2, stream=True)
    after = ours.resident()
    name = f"RSS after {start} and {wanted.memory} requests"
    value = f"{before:.1f}, {after:.1f} MB: {after - before:+.1f} MB"
    table.row(name, value, f"≤ +{MEMORY_AT_MOST:.0f} MB", after - before <= MEMORY_AT_MOST)


async def streams(table: Table, ways: dict[str, int], wanted: argparse.Namespace) -> None:
    own = SLOW_PAUSE * SLOW_PIECES
    for name, port in ways.items():
        if name == "LiteLLM":
            continue
        middle, longest = await at_once(port, wanted.streams)
        value = f"median {middle:.2f} s, last {longest:.2f} s ({longest / own:.2f} ×)"
        target = {"target": f"≤ {STREAMS_AT_MOST} ×", "ok": longest <= STREAMS_AT_MOST * own}
        what = f"{wanted.streams} streams of {own:.1f} s at once: {name}"
        table.row(what, value, **(target if name == "ours" else {}))


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--requests", type=int, default=1500, help="a round with 32 clients")
    parser.add_argument("--one", type=int, default=300, help="requests a round of one client")
    parser.add_argument("--streams", type=int, default=500)
    parser.add_argument("--memory", type=int, default=10_000, help="requests in all")
    parser.add_argument("--only", default="first,rate,memory,streams")
    parser.add_argument("--litellm", help="its executable")
    parser.add_argument("--check", action="store_true", help="exit 1 when a target is missed")
    wanted = parser.parse_args()
    only = set(wanted.only.split(","))
    raise_open_files()
    size = len(json.dumps(TOOLS))
    print(f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores, {size} bytes of tools\n")
    with tempfile.TemporaryDirectory() as directory:
        async with AsyncExitStack() as stack:
            stand = Stand(stack, Path(directory))
            ways = {"upstream": (await stand.upstream()).port}
            ours = await stand.ours()
            table = Table()
            if "memory" in only:
                await memory(table, ours, wanted)
            ways["ours"] = ours.port
            ways["pass-through"] = (await stand.passthrough()).port
            if wanted.litellm:
                ways["LiteLLM"] = (await stand.litellm(wanted.litellm)).port
            probe = await Connection.to(ours.port)
            for stream in (False, True):
                await probe.ask(request_bytes(stream=stream), holds='"tool_calls"')
            probe.close()
            for name in ways:
                await per_second(ways[name], 2 * CLIENTS, stream=True)
            if "first" in only:
                await first_token(table, ways, wanted)
            if "rate" in only:
                del ways["upstream"]
                await rates(table, ways, wanted)
                ways["upstream"] = 0
            if "streams" in only:
                await streams(table, {n: p for n, p in ways.items() if p}, wanted)
    if table.missed and wanted.check:
        raise SystemExit(1)


if __name__ == "__main__":
    run_quickly(main())
