"""What the bot itself costs in a group: `python bot.py` between a QQ side and a model played here.

    python benchmarks/group.py [--conversations 10000] [--runs 200] [--check]

Both sides speak over loopback and answer at once or after a stated delay, so what is left is the
bot: CPU of a run, what it adds to the model's time at ten runs a second, how long a question takes
to the model when nothing else goes on, the order of a burst, and memory of conversations that have
become idle. Needs Linux (/proc). With `--check` it exits 1 when a target is missed.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import random
import re
import shutil
import socket
import statistics
import sys
import tempfile
import time
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

from websockets.asyncio.client import ClientConnection, connect

ROOT = Path(__file__).resolve().parents[1]
BOT = 10000

CPU_MS, ADDED_MS, IDLE_MS, FAIR, SLOPE_KB = 20.0, 80.0, 10.0, 2, 2.0
"""The targets."""
CONCURRENCY = 16
"""The gate's default: so many of a burst begin at once, in whatever order they came."""

QUIET_CPU = 0.05
"""CPU seconds in two seconds: a bot that only waits takes less, pings and watchers included."""

TOOL = '''
from typing import Annotated
from pydantic import Field
from chathands import ToolContext, tool


@tool(side_effect="none")
async def look_up(ctx: ToolContext, token: Annotated[str, Field(description="编号")]) -> str:
    """查一个编号的值。"""
    return f"值 {token}"
'''


def _token_in(text: str) -> str | None:
    found = re.findall(r"T\d{6}", text)
    return found[-1] if found else None


class Model:
    """An OpenAI-compatible endpoint that answers with the question's token.

    `seconds` is before each reply; a share of `tools` of the questions calls a tool first.
    """

    def __init__(self) -> None:
        self.seconds = 0.0
        self.tools = 0.0
        self.first: dict[str, float] = {}
        """Token → when its first request was here, in order."""
        self.spent: dict[str, float] = defaultdict(float)
        """Token → seconds the replies took here."""

    async def serve(self) -> str:
        server = await asyncio.start_server(self._connection, "127.0.0.1", 0, limit=1 << 20)
        self._server = server
        return f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"

    async def _connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                length = re.search(rb"(?i)content-length: *(\d+)", head)
                body = await reader.readexactly(int(length[1]) if length else 0)
                began = time.perf_counter()
                token, said = self._reply(json.loads(body or b"{}"), began)
                if self.seconds:
                    await asyncio.sleep(self.seconds)
                writer.write(_streamed(said))
                await writer.drain()
                self.spent[token] += time.perf_counter() - began
        writer.close()

    def _reply(self, body: dict[str, Any], now: float) -> tuple[str, str]:
        users = [m["content"] for m in body.get("messages", ()) if m["role"] == "user"]
        token = next((t for text in reversed(users) if (t := _token_in(text))), None) or "?"
        fresh = token not in self.first
        self.first.setdefault(token, now)
        if fresh and random.Random(token).random() < self.tools:
            call = json.dumps({"tool": "look_up", "parameters": {"token": token}})
            return token, f"```json action\n{call}\n```"
        return token, f"答 {token}。"


def _streamed(text: str) -> bytes:
    deltas = [({"role": "assistant", "content": text}, None), ({}, "stop")]
    events = [
        json.dumps({"choices": [{"index": 0, "delta": delta, "finish_reason": end}]})
        for delta, end in deltas
    ]
    body = "".join(f"data: {event}\n\n" for event in (*events, "[DONE]")).encode()
    head = f"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: {len(body)}"
    return head.encode() + b"\r\n\r\n" + body


class Peer:
    """The QQ side: reports questions, takes every call, notes when a reply came."""

    def __init__(self) -> None:
        self.sent: dict[str, float] = {}
        self.answered: dict[str, float] = {}
        self.doubled = 0
        self._news = asyncio.Event()
        self._ids = iter(range(1, 1 << 30))
        self._token_of: dict[str, str] = {}

    async def listen(self, socket_: ClientConnection) -> None:
        self._socket = socket_
        await self._event(post_type="meta_event", meta_event_type="lifecycle", sub_type="connect")
        async for frame in socket_:
            call = json.loads(frame)
            if call["action"] == "send_msg":
                self._note(call["params"]["message"])
            answer = {"message_id": next(self._ids), "online": True, "good": True}
            done = {"status": "ok", "retcode": 0, "data": answer, "echo": call.get("echo")}
            await socket_.send(json.dumps(done))

    def _note(self, message: list[dict[str, Any]]) -> None:
        quoted = next((s["data"]["id"] for s in message if s["type"] == "reply"), None)
        token = self._token_of.get(str(quoted))
        if token is None:
            return
        self.doubled += token in self.answered
        self.answered.setdefault(token, time.perf_counter())
        self._news.set()

    async def ask(self, token: str, group: int, user: int) -> None:
        number = next(self._ids)
        self._token_of[str(number)] = token
        self.sent[token] = time.perf_counter()
        await self._event(
            post_type="message",
            message_type="group",
            sub_type="normal",
            message_id=number,
            group_id=group,
            user_id=user,
            font=14,
            raw_message="",
            message=[
                {"type": "at", "data": {"qq": str(BOT)}},
                {"type": "text", "data": {"text": f" 请处理 {token}"}},
            ],
            sender={"user_id": user, "nickname": f"u{user}", "card": "", "role": "member"},
        )

    async def _event(self, **fields: Any) -> None:
        await self._socket.send(json.dumps({"time": int(time.time()), "self_id": BOT, **fields}))

    async def all_answered(self, tokens: list[str], *, within: float) -> list[str]:
        """Wait for their replies; gives those that did not come."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(within):
                while not self.answered.keys() >= set(tokens):
                    self._news.clear()
                    await self._news.wait()
        return [token for token in tokens if token not in self.answered]


class Bench:
    def __init__(self, peer: Peer, model: Model, pid: int) -> None:
        self.peer, self.model, self.pid = peer, model, pid
        self._count = 0

    def tokens(self, count: int) -> list[str]:
        self._count += count
        return [f"T{number:06}" for number in range(self._count - count, self._count)]

    def cpu(self) -> float:
        """CPU seconds of the bot's process so far, without its children."""
        fields = Path(f"/proc/{self.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def rss(self) -> float:
        """Resident memory in KB."""
        found = re.search(r"VmRSS:\s+(\d+)", Path(f"/proc/{self.pid}/status").read_text())
        assert found is not None
        return float(found[1])

    async def idle(self, runs: int) -> float:
        """Median milliseconds from the event to the request at the model, nothing else going on."""
        self.model.seconds = self.model.tools = 0.0
        tokens = self.tokens(runs)
        for number, token in enumerate(tokens):
            await self.peer.ask(token, 100 + number % 20, 200_000 + number)
            await self.peer.all_answered([token], within=30)
            await asyncio.sleep(0.1)
        waits = [self.model.first[t] - self.peer.sent[t] for t in tokens if t in self.model.first]
        return 1000 * statistics.median(waits)

    async def steady(self, runs: int, rate: float) -> tuple[float, float, int]:
        """CPU milliseconds of a run, p95 of what the bot added, and how many were lost."""
        self.model.seconds, self.model.tools = 0.3, 0.4
        tokens, before = self.tokens(runs), self.cpu()
        began = time.perf_counter()
        for number, token in enumerate(tokens):
            due = began + number / rate
            await asyncio.sleep(max(0.0, due - time.perf_counter()))
            await self.peer.ask(token, 200 + number % 20, 300_000 + number)
        lost = await self.peer.all_answered(tokens, within=60)
        cpu = 1000 * (self.cpu() - before) / runs
        added = sorted(
            self.peer.answered[t] - self.peer.sent[t] - self.model.spent[t]
            for t in tokens
            if t in self.peer.answered
        )
        return cpu, 1000 * added[int(len(added) * 0.95)], len(lost)

    async def burst(self, groups: int, each: int) -> tuple[int, int]:
        """A burst of questions: how many were lost, and how far apart two groups ever were in
        questions begun, while the one that was behind had some waiting."""
        self.model.seconds, self.model.tools = 0.3, 0.0
        tokens = self.tokens(groups * each)
        group_of = {token: number // each for number, token in enumerate(tokens)}
        mixed = random.Random(1).sample(tokens, len(tokens))
        for number, token in enumerate(mixed):
            await self.peer.ask(token, 300 + group_of[token], 400_000 + number)
        lost = await self.peer.all_answered(tokens, within=120)
        begun: Counter[int] = Counter()
        apart = 0
        for token in sorted(tokens, key=lambda t: self.model.first.get(t, 0.0)):
            begun[group_of[token]] += 1
            behind = min(begun[group] for group in range(groups))
            if sum(begun.values()) > CONCURRENCY and behind < each:  # before, all had come in
                apart = max(apart, begun[group_of[token]] - behind)
        return len(lost), apart

    async def memory(self, conversations: int, rate: float) -> float:
        """KB that each conversation leaves behind."""
        self.model.seconds = self.model.tools = 0.0
        warm = max(200, conversations // 10)
        await self._conversations(warm, rate)
        await self._quiet()
        before = self.rss()
        await self._conversations(conversations, rate)
        await self._quiet()
        return (self.rss() - before) / conversations

    async def _quiet(self) -> None:
        """Wait until what goes on behind the replies (traces, summaries) has ended."""
        async with asyncio.timeout(300):
            while True:
                before = self.cpu()
                await asyncio.sleep(2)
                if self.cpu() - before < QUIET_CPU:
                    return

    async def _conversations(self, count: int, rate: float) -> None:
        tokens = self.tokens(count)
        waiting: list[str] = []
        for number, token in enumerate(tokens):
            await self.peer.ask(token, 1000 + number % 500, 500_000 + self._count + number)
            waiting.append(token)
            if len(waiting) >= rate:
                await self.peer.all_answered(waiting, within=60)
                waiting = []
        await self.peer.all_answered(waiting, within=60)


async def _started(directory: Path, model_url: str) -> tuple[asyncio.subprocess.Process, str]:
    for name in ("bot.py", "pyproject.toml"):
        shutil.copy(ROOT / name, directory)
    for name in ("plugins", "tools", "data"):
        shutil.copytree(ROOT / name, directory / name)
    (directory / "tools" / "benching.py").write_text(TOOL, "utf-8")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    env = {
        **os.environ,
        "PORT": str(port),
        "PYTHONPATH": str(ROOT),
        "PYTHONIOENCODING": "utf-8",
        "LOG_LEVEL": "WARNING",
        "CHATHANDS__MODEL__BASE_URL": model_url,
        "CHATHANDS__MODEL__NAME": "played",
    }
    process = await asyncio.create_subprocess_exec(
        sys.executable, "bot.py", cwd=directory, env=env,
        stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.DEVNULL,
    )  # fmt: skip
    return process, f"ws://127.0.0.1:{port}/onebot/v11/ws"


async def _connected(url: str) -> ClientConnection:
    headers = {"X-Self-ID": str(BOT), "X-Client-Role": "Universal"}
    async with asyncio.timeout(120):
        while True:
            try:
                return await connect(url, additional_headers=headers, proxy=None)
            except OSError:
                await asyncio.sleep(0.05)


async def measure(options: argparse.Namespace, directory: Path) -> bool:
    model, peer = Model(), Peer()
    process, url = await _started(directory, await model.serve())
    try:
        connection = await _connected(url)
        listening = asyncio.ensure_future(peer.listen(connection))
        bench = Bench(peer, model, process.pid)
        await asyncio.sleep(0.5)
        await bench.idle(10)  # warm
        report = Report()
        report.say("event to model request, p50, idle", await bench.idle(50), IDLE_MS, "ms")
        cpu, added, lost = await bench.steady(options.runs, 10)
        report.say("CPU of a run", cpu, CPU_MS, "ms")
        report.say("added at 10 runs/s, p95", added, ADDED_MS, "ms")
        report.say("lost at 10 runs/s", lost, 0)
        gone, apart = await bench.burst(20, 10)
        report.say("lost of a burst of 200", gone, 0)
        report.say("groups apart in it", apart, FAIR)
        slope = await bench.memory(options.conversations, 40)
        what = f"left by each of {options.conversations} conversations"
        report.say(what, slope, SLOPE_KB, "KB")
        report.say("answered twice", peer.doubled, 0)
        listening.cancel()
        await connection.close()
    finally:
        process.kill()
        await process.wait()
    return report.fine


class Report:
    """Says each figure as soon as it is there; `fine` while no target was missed."""

    def __init__(self) -> None:
        self.fine = True

    def say(self, name: str, value: float, target: float, unit: str = "") -> None:
        missed = value > target
        self.fine = self.fine and not missed
        mark = "  MISSED" if missed else ""
        print(f"{name:<42} {value:8.2f} {unit:<2} (target {target:g}){mark}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--conversations", type=int, default=10_000)
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        fine = asyncio.run(measure(options, Path(directory)))
    sys.exit(1 if options.check and not fine else 0)


if __name__ == "__main__":
    main()
