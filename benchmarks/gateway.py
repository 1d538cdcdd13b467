"""The gateway beside the least a gateway can do, in the same run.

    python benchmarks/gateway.py [--rounds 3] [--requests 1500] [--one 300] [--streams 500]
        [--memory 10000] [--only first,rate,memory,streams] [--litellm PATH] [--check]

One worker each: `chathands serve`, a FastAPI pass-through of 25 lines over the same HTTP client
(gateway_passthrough.py), and LiteLLM's proxy where `--litellm` gives its executable; all before
one stand-in model in its own process (gateway_upstream.py), all over loopback. A request carries
about 1.5 kB of tools and another question each time; the reply is a sentence and a call. The client
speaks HTTP/1.1 over raw sockets. Prints a table of medians. Needs Linux.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import AsyncExitStack
from itertools import count
from pathlib import Path
from statistics import median

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT)]

from benchmarks.gateway_stand import KEY, MODEL, SLOW, Connection, Server, Stand  # noqa: E402
from benchmarks.gateway_upstream import SLOW_PAUSE, SLOW_PIECES, run_quickly  # noqa: E402
from chathands.open_files import raise_open_files  # noqa: E402

CLIENTS = 32
FIRST_AT_MOST = 1.6
RATE_AT_LEAST = 0.4
RATE_OVER_LITELLM = 6.0
MEMORY_AT_MOST = 5.0
"""MB between the first 2,000 requests and the last."""
MEMORY_FROM = 2000
STREAMS_AT_MOST = 1.5

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


async def rates(table: Table, servers: dict[str, Server], wanted: argparse.Namespace) -> None:
    for stream in (False, True):
        kind = "streamed" if stream else "whole"
        taken: dict[str, list[float]] = {name: [] for name in servers}
        cpu: dict[str, list[float]] = {name: [] for name in servers}
        for _ in range(wanted.rounds):
            for name, server in servers.items():
                requests = wanted.requests if name != "LiteLLM" else wanted.requests // 5
                before = server.cpu()
                taken[name].append(await per_second(server.port, requests, stream=stream))
                cpu[name].append((server.cpu() - before) / requests)
        rate = {name: median(rates) for name, rates in taken.items()}
        for name, value in rate.items():
            ms = 1000 * median(cpu[name])
            table.row(
                f"{kind}, {CLIENTS} clients: {name}", f"{value:.0f} req/s, {ms:.2f} ms CPU each"
            )
        ratio = rate["ours"] / rate["pass-through"]
        by_cpu = median(cpu["pass-through"]) / median(cpu["ours"])
        ok = ratio >= RATE_AT_LEAST
        value = f"{ratio:.2f} (by CPU {by_cpu:.2f})"
        table.row("… ours : pass-through", value, f"≥ {RATE_AT_LEAST}", ok)
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
    own, length = 0.0, SLOW_PAUSE * SLOW_PIECES
    for name, port in ways.items():
        if name == "LiteLLM":
            continue
        middle, longest = await at_once(port, wanted.streams)
        own = own or longest  # the upstream is asked first
        value = f"median {middle:.2f} s, last {longest:.2f} s ({longest / own:.2f} ×)"
        target = {"target": f"≤ {STREAMS_AT_MOST} ×", "ok": longest <= STREAMS_AT_MOST * own}
        what = f"{wanted.streams} streams of {length:.1f} s at once: {name}"
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
            upstream = await stand.upstream()
            servers = {"ours": await stand.ours()}
            table = Table()
            if "memory" in only:
                await memory(table, servers["ours"], wanted)
            servers["pass-through"] = await stand.passthrough()
            if wanted.litellm:
                servers["LiteLLM"] = await stand.litellm(wanted.litellm)
            probe = await Connection.to(servers["ours"].port)
            for stream in (False, True):
                await probe.ask(request_bytes(stream=stream), holds='"tool_calls"')
            probe.close()
            ways = {"upstream": upstream.port, **{name: s.port for name, s in servers.items()}}
            for port in ways.values():
                await per_second(port, 2 * CLIENTS, stream=True)
            if "first" in only:
                await first_token(table, ways, wanted)
            if "rate" in only:
                await rates(table, servers, wanted)
            if "streams" in only:
                await streams(table, ways, wanted)
    if table.missed and wanted.check:
        raise SystemExit(1)


if __name__ == "__main__":
    run_quickly(main())
