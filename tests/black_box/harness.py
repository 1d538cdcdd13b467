"""The real `python bot.py` in a directory of its own, and the people and services around it."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import shutil
import signal
import socket
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Self

from tests.sim.onebot_sim import Sim, World
from tests.standins.model_server import ModelServer, Reply, ReplyLike

ROOT = Path(__file__).resolve().parents[2]
TOKEN = "ring-token-4711"
KEY = "model-key-ABCDEF"


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class BotProcess:
    """One bot process. Its log is read as it comes; `wait_log` waits for a line."""

    def __init__(self, directory: Path, env: Mapping[str, str], *, dotenv: str = "") -> None:
        self.directory = directory
        self.port = free_port()
        self.log: list[str] = []
        self._env = dict(env)
        self._dotenv = dotenv
        self._changed = asyncio.Condition()
        self._process: asyncio.subprocess.Process | None = None
        self._reader: asyncio.Task[None] | None = None

    @property
    def url(self) -> str:
        return f"ws://127.0.0.1:{self.port}/onebot/v11/ws"

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    @property
    def text(self) -> str:
        return "".join(self.log)

    def prepare(self) -> None:
        """The project's files as a user has them: nothing of the developer's `.env` or state."""
        if self.directory.exists():
            return
        self.directory.mkdir(parents=True)
        for name in ("bot.py", "pyproject.toml"):
            shutil.copy(ROOT / name, self.directory)
        for name in ("plugins", "tools", "data"):
            shutil.copytree(
                ROOT / name, self.directory / name, ignore=shutil.ignore_patterns("__pycache__")
            )
        (self.directory / ".env").write_text(self._dotenv, "utf-8")

    async def start(self) -> Self:
        self.prepare()
        keep = ("PATH", "SYSTEMROOT", "TEMP", "TMP", "LANG", "LC_ALL")
        env = {name: os.environ[name] for name in keep if name in os.environ}
        env |= {
            "HOME": str(self.directory),
            "PYTHONPATH": str(ROOT),
            "PYTHONIOENCODING": "utf-8",
            "PYTHONUNBUFFERED": "1",
            "PORT": str(self.port),
            **self._env,
        }
        self._process = await asyncio.create_subprocess_exec(
            sys.executable,
            "bot.py",
            cwd=self.directory,
            env=env,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            limit=2**24,  # a long message is one line; a reader that ended would stop the bot
        )
        self._reader = asyncio.ensure_future(self._read())
        return self

    async def _read(self) -> None:
        assert self._process is not None
        assert self._process.stdout is not None
        async for line in self._process.stdout:
            async with self._changed:
                self.log.append(line.decode("utf-8", "replace"))
                self._changed.notify_all()
        async with self._changed:
            self._changed.notify_all()

    async def wait_log(self, pattern: str, *, within: float = 20) -> str:
        """The first log line that fits."""

        def found() -> str | None:
            return next((line for line in self.log if re.search(pattern, line)), None)

        async def wait() -> str:
            async with self._changed:
                while (line := found()) is None:
                    assert self._reader is not None
                    if self._reader.done():
                        raise AssertionError(f"the bot ended without {pattern!r}:\n{self.text}")
                    await self._changed.wait()
                return line

        try:
            return await asyncio.wait_for(wait(), within)
        except TimeoutError:
            raise AssertionError(f"no {pattern!r} in the log:\n{self.text}") from None

    async def ended(self, *, within: float = 15) -> int:
        """Wait for the end; gives the exit code."""
        assert self._process is not None
        assert self._reader is not None
        code = await asyncio.wait_for(self._process.wait(), within)
        await self._reader
        return code

    def signal(self, number: signal.Signals = signal.SIGTERM) -> None:
        assert self._process is not None
        self._process.send_signal(number)

    async def stop(self) -> None:
        if self._process is None:
            return
        if self._process.returncode is None:
            self._process.terminate()
            try:
                await asyncio.wait_for(self._process.wait(), 5)
            except TimeoutError:
                self._process.kill()
                await self._process.wait()
        if self._reader is not None:
            await self._reader
        # Otherwise the pipe's transport is closed by the collector, with a ResourceWarning.
        transport = getattr(self._process, "_transport", None)
        if transport is not None:
            transport.close()

    def rss_mb(self) -> float:
        status = Path(f"/proc/{self.pid}/status").read_text()
        found = re.search(r"VmRSS:\s+(\d+) kB", status)
        assert found is not None
        return int(found[1]) / 1024

    def limits_of_workers(self) -> list[dict[str, str]]:
        """Soft limits of the living worker children, by their names in /proc."""
        found = []
        for pid in self._children():
            proc = Path(f"/proc/{pid}")
            if b"chathands.workers" in (proc / "cmdline").read_bytes():
                lines = (proc / "limits").read_text().splitlines()[1:]
                found.append({line[:26].strip(): line[26:].split()[0] for line in lines})
        return found

    def _children(self) -> list[int]:
        found = []
        for stat in Path("/proc").glob("[0-9]*/stat"):
            with contextlib.suppress(OSError):
                fields = stat.read_text().rsplit(")", 1)[1].split()
                if int(fields[1]) == self.pid:
                    found.append(int(stat.parent.name))
        return found


Answer = ReplyLike | Callable[[list[str]], ReplyLike]


class ModelBrain:
    """What the stand-in model says: each case by a word its questions contain.

    A case's replies come in order, the last one again and again; a function is given the user
    messages of the request.
    """

    def __init__(self) -> None:
        self.cases: dict[str, Sequence[Answer]] = {}
        self.asked: dict[str, list[list[dict[str, Any]]]] = {}
        self._news = asyncio.Event()

    async def was_asked(self, word: str, times: int = 1, *, within: float = 10) -> None:
        """Wait until the model was asked so often in that case."""
        async with asyncio.timeout(within):
            while len(self.asked[word]) < times:
                self._news.clear()
                await self._news.wait()

    def plays(self, word: str, *replies: Answer) -> None:
        self.cases[word] = replies
        self.asked[word] = []

    def __call__(self, body: dict[str, Any]) -> ReplyLike:
        users = [m["content"] for m in body["messages"] if m["role"] == "user"]
        # The newest message that names a case decides: earlier questions stand in the history.
        for text in reversed(users):
            for word, replies in self.cases.items():
                if word in text:
                    self.asked[word].append(body["messages"])
                    self._news.set()
                    reply = replies[min(len(self.asked[word]), len(replies)) - 1]
                    return reply(users) if callable(reply) else reply
        return Reply(status=500, text="no case fits")

    def contents(self, word: str, request: int = -1) -> str:
        return "\n".join(message["content"] for message in self.asked[word][request])


def action(tool: str, **parameters: Any) -> str:
    """A call as the contract asks for it."""
    import json

    body = json.dumps({"tool": tool, "parameters": parameters}, ensure_ascii=False)
    return f"```json action\n{body}\n```"


class Ring:
    """A bot, the QQ side that is connected to it, and the model behind it."""

    def __init__(self, bot: BotProcess, sim: Sim, brain: ModelBrain, model: ModelServer) -> None:
        self.bot, self.sim, self.brain, self.model = bot, sim, brain, model

    @property
    def world(self) -> World:
        return self.sim.world

    async def ask(self, group: int, user: int, message: Any, /, **override: Any) -> int:
        """Say it in the group; gives the message's id."""
        self.world.group(group)
        if user not in self.world.groups[group].members:
            self.world.groups[group].member(user, f"user{user}")
        return await self.sim.say(group, user, message, **override)

    async def replies(self, question: int, *, count: int = 1, within: float = 10) -> list[str]:
        """The texts that quote the question, once there are so many."""

        def found() -> list[str] | None:
            texts = [d.text for d in self.world.delivered if d.reply_to == question]
            return texts if len(texts) >= count else None

        try:
            return await self.sim.wait_for(found, within)
        except TimeoutError:
            said = [(d.group_id, d.reply_to, d.text[:80]) for d in self.world.delivered]
            raise AssertionError(
                f"{count} replies to {question} wanted, the groups saw {said}\n{self.bot.text}"
            ) from None

    async def reply(self, question: int, *, within: float = 10) -> str:
        return (await self.replies(question, within=within))[0]

    async def read_a_workbook(self, group: int, user: int) -> None:
        """Have a sample read, again if the first child is too slow for the deadline."""
        read = action("read_excel_data", file_path="sales/2024/12.xlsx")
        self.brain.plays("读一张表", lambda said: read if "读一张表" in said[-1] else "读到了。")
        for _ in range(5):
            question = await self.ask(group, user, "@bot 读一张表")
            await self.reply(question)
            if "status=ok" in self.brain.contents("读一张表"):
                return
        raise AssertionError(self.brain.contents("读一张表"))

    def message_id(self, text: str) -> int:
        """The id of the newest message of the bot that contains `text`."""
        return next(d.message_id for d in reversed(self.world.delivered) if text in d.text)
