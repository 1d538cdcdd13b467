"""A crowd over the real process and a real websocket: nobody is lost, doubled or mixed up.

    python -m tests.group_chat.soak                          # 3,000 mentions, about ten minutes
    python -m tests.group_chat.soak --mentions 300 --groups 10 --members 8 --rate 8

Not part of the suite. 40 % of the runs call a tool, 5 % refuse first, 5 % write a broken call, 3 %
never stop calling, 2 % need a person's yes; the model takes 0.2 to 2 s. Meanwhile acknowledgements
are lost, sends are ambiguous, sockets break and freeze; after a third of the mentions comes a
SIGTERM, after two thirds a kill -9, each with a restart. Every question carries a token, and every
reply must carry its asker's. Prints what was seen and exits 1 when it should not have been.
"""

# ruff: noqa: T201
from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import random
import re
import signal
import sqlite3
import sys
import tempfile
import time
from collections import Counter
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.black_box.harness import KEY, TOKEN, BotProcess, action
from tests.sim.onebot_sim import Delivered, Sim, World, at, reply, text
from tests.standins.model_server import ModelServer, Reply

ADMIN = 9001
KINDS = {"plain": 45, "tool": 40, "refuse": 5, "break": 5, "endless": 3, "approve": 2}
EVENTS_OF_A_REPLY = 4
"""In a stand-in's stream when its text is one piece; the delay is before each."""
PATIENCE = 100.0
"""After the last mention: the queue's 60 s, a deadline, and a reconnect."""
UNHEARD_SECONDS = 1.5
"""What was said so shortly before a kill may still have been in the socket."""
BROKEN_SECONDS = 0.2
"""What was said so shortly before a socket broke may not have arrived."""

NOTICES = ("待确认", "等待确认的")
TOOLS = '''
from typing import Annotated
from pydantic import Field
from chathands import ToolContext, tool


@tool(side_effect="none")
async def look_up(ctx: ToolContext, token: Annotated[str, Field(description="编号")]) -> str:
    """查一个编号的值。"""
    return f"值 {token}"


@tool(side_effect="outward", target="content", shows=("content",))
async def announce(ctx: ToolContext, content: Annotated[str, Field(description="正文")]) -> str:
    """向公告栏发一条。"""
    with open(ctx.settings.state_dir / "announced.txt", "a", encoding="utf-8") as file:
        file.write(content + "\\n")
    return "已发"
'''


@dataclass
class Asked:
    token: str
    kind: str
    group: int
    user: int
    at: float
    message_id: int = 0
    replies: list[Delivered] = field(default_factory=list)


class Model:
    """Plays each token's kind; `seen` are the tokens that have reached it."""

    def __init__(self, kinds: dict[str, str], dice: random.Random) -> None:
        self._kinds = kinds
        self._dice = dice
        self._turns: Counter[str] = Counter()
        self.seen: set[str] = set()
        self.unknown = 0

    def __call__(self, body: dict[str, Any]) -> Reply:
        users = [m["content"] for m in body["messages"] if m["role"] == "user"]
        token = next((found[-1] for t in reversed(users) if (found := tokens_in(t))), None)
        if token is None or token not in self._kinds:
            self.unknown += 1
            return Reply("好。")
        self._turns[token] += 1
        self.seen.add(token)
        if self._dice.random() < 0.005:
            return Reply(status=500) if self._dice.random() < 0.5 else Reply(down=True)
        said = self._text(token, self._turns[token])
        seconds = self._dice.uniform(0.2, 2.0)
        return Reply(said, piece=100_000, delay=seconds / EVENTS_OF_A_REPLY)

    def _text(self, token: str, turn: int) -> str:
        call, done = action("look_up", token=token), f"答 {token}。"
        match self._kinds[token]:
            case "tool":
                script = [call, done]
            case "refuse":
                script = ["抱歉，作为一个语言模型，我没有可用的工具，无法查询。", call, done]
            case "break":
                script = [call[: call.rindex('"')] + "\n```", call, done]
            case "endless":
                script = [action("look_up", token=f"{token}-{turn}")]
            case "approve":
                script = [action("announce", content=f"公告 {token}"), done]
            case _:
                script = [done]
        return script[min(turn, len(script)) - 1]


def tokens_in(words: str) -> list[str]:
    return re.findall(r"T\d{5}", words)


class Soak:
    def __init__(
        self, options: argparse.Namespace, bot: BotProcess, sim: Sim, model: Model
    ) -> None:
        self.options, self.bot, self.sim, self.model = options, bot, sim, model
        self.dice = random.Random(options.seed)
        self.asked: dict[str, Asked] = {}
        self.dead: list[tuple[float, float]] = []
        """From the signal to the next connection."""
        self.unknown: set[int] = set()
        """Questions whose replies the bot calls ambiguous."""
        self.log: list[str] = []
        """Of the processes before this one."""
        self._decided = 0

    async def run(self) -> None:
        numbers = list(self.model._kinds)
        third = len(numbers) // 3
        upset = asyncio.ensure_future(self._upset())
        decide = asyncio.ensure_future(self._decide())
        restart: asyncio.Task[None] | None = None
        for count, token in enumerate(numbers):
            if count in (third, 2 * third):
                number = signal.SIGTERM if count == third else signal.SIGKILL
                restart = asyncio.ensure_future(self._restart(number))
            await self._say(token)
            await asyncio.sleep(self.dice.expovariate(self.options.rate))
        if restart is not None:
            await restart
        upset.cancel()
        try:
            await asyncio.wait_for(self._all_answered(), PATIENCE)
        except TimeoutError:
            print("not all were answered in time")
        decide.cancel()

    async def _say(self, token: str) -> None:
        group = 1000 + self.dice.randrange(self.options.groups)
        user = 100 * group + self.dice.randrange(self.options.members)
        asked = Asked(token, self.model._kinds[token], group, user, time.monotonic())
        self.asked[token] = asked
        while True:
            await self.sim._up.wait()
            try:
                asked.at = time.monotonic()
                asked.message_id = await self.sim.say(group, user, f"@bot 请处理 {token}")
                return
            except Exception as error:  # the socket went while it was written
                print("said again:", token, type(error).__name__)
                await asyncio.sleep(0.2)

    async def _upset(self) -> None:
        """Faults of the QQ side, a few a minute."""
        while True:
            await asyncio.sleep(self.dice.uniform(2, 6))
            what = self.dice.choice(["ambiguous", "silent", "lost", "abort", "close", "drop"])
            if what in ("abort", "close"):
                await self.sim.drop(what)
            else:
                self.sim.fault("send_msg", what)

    async def _decide(self) -> None:
        """Admins answer what asks for a yes: most say yes, some no, some nothing."""
        while True:
            await asyncio.sleep(0.2)
            for delivered in self.sim.world.delivered[self._decided :]:
                self._decided += 1
                if "待确认" not in delivered.text or self.dice.random() < 0.2:
                    continue
                word = "确认" if self.dice.random() < 0.7 else "取消"
                said = [reply(delivered.message_id), at(10000), text(f" {word}")]
                try:
                    await self.sim.say(delivered.group_id or 0, ADMIN, said)
                except Exception as error:
                    print("a decision was lost:", type(error).__name__)

    async def _restart(self, number: signal.Signals) -> None:
        began = time.monotonic()
        self.bot.signal(number)
        await self.bot.ended(within=10)
        print(f"{number.name}: gone after {time.monotonic() - began:.2f} s")
        self.log += self.bot.log
        self.bot.log.clear()
        await self.bot.start()
        await self.bot.wait_log("Uvicorn running", within=120)
        await asyncio.wait_for(self.sim._up.wait(), 30)
        self.dead.append((began, time.monotonic()))

    async def _all_answered(self) -> None:
        def done() -> bool:
            waiting = [one for one in self._collect().values() if not one.replies]
            if not waiting or all(self._unheard(one) for one in waiting):
                return True
            unknown = unknown_in(self.bot.directory / "state")
            return all(self._unheard(one) or one.message_id in unknown for one in waiting)

        while not done():  # noqa: ASYNC110 (what is waited for is on the other side)
            await asyncio.sleep(0.5)

    def _collect(self) -> dict[str, Asked]:
        by_id = {one.message_id: one for one in self.asked.values()}
        for one in self.asked.values():
            one.replies = []
        for delivered in self.sim.world.delivered:
            if any(word in delivered.text[:20] for word in NOTICES[:1]) or NOTICES[1] in (
                delivered.text
            ):
                continue
            one = by_id.get(delivered.reply_to or 0)
            if one is None and (tokens := tokens_in(delivered.text)):
                one = self.asked.get(tokens[0])
            if one is not None:
                one.replies.append(delivered)
        return self.asked

    def verdict(self) -> bool:
        """Print what was seen; whether all is as it should be."""
        asked = self._collect().values()
        nobody = [one for one in asked if not one.replies]
        unheard = [one for one in nobody if self._unheard(one)]
        silent = [one for one in nobody if one not in unheard and one.message_id in self.unknown]
        accepted = set(
            re.findall(r"run \S+: accepted message (-?\d+)", "".join([*self.log, *self.bot.log]))
        )
        unheard = [one for one in unheard if str(one.message_id) not in accepted]
        lost = [one for one in nobody if one not in unheard and one not in silent]
        twice = [one for one in asked if len(one.replies) > 1]
        crossed = [
            (one.token, reply_.text)
            for one in asked
            for reply_ in one.replies
            if set(tokens_in(reply_.text)) - {one.token} or reply_.group_id != one.group
        ]
        ends = Counter(self._end(one) for one in asked)
        waits = sorted(one.replies[0].t - one.at for one in asked if one.replies)
        print(f"{len(asked)} mentions, {len(self.sim.world.delivered)} messages seen")
        print("ends:", dict(ends))
        print("faults:", dict(Counter(c["fault"] for c in self.sim.calls if "fault" in c)))
        if waits:
            print(
                f"seconds to the reply: p50 {waits[len(waits) // 2]:.1f}, "
                f"p95 {waits[int(len(waits) * 0.95)]:.1f}, most {waits[-1]:.1f}"
            )
        print(f"not heard when a socket broke: {len(unheard)}, ambiguous and silent: {len(silent)}")
        for name, wrong in (("LOST", lost), ("TWICE", twice)):
            for one in wrong[:10]:
                said = [reply_.text[:60] for reply_ in one.replies]
                heard = "accepted" if str(one.message_id) in accepted else "not accepted"
                gap = min((began - one.at for began, _ in self.dead), key=abs, default=0.0)
                print(name, one.token, one.kind, heard, f"{gap:.1f} s before a signal", said)
        for token, said in crossed[:10]:
            print("CROSSED", token, said[:100])
        print(f"lost {len(lost)}, twice {len(twice)}, crossed {len(crossed)}")
        return not (lost or twice or crossed or self.model.unknown)

    def _unheard(self, one: Asked) -> bool:
        """Whether its event may have been in a socket that broke, or in a process that died."""
        broken = [
            self.sim._t0 + record["t"]
            for record in self.sim.records
            if record["kind"] == "conn.drop"
        ]
        return one.token not in self.model.seen and (
            any(began - UNHEARD_SECONDS <= one.at <= ended for began, ended in self.dead)
            or any(abs(when - one.at) <= BROKEN_SECONDS for when in broken)
        )

    def _end(self, one: Asked) -> str:
        if not one.replies:
            return "none"
        said = one.replies[0].text
        words = {"重启": "restart", "没做完": "restart", "前面还有": "busy", "编号": "account"}
        return next((end for word, end in words.items() if word in said), "answer")


def unknown_in(state: Path) -> set[int]:
    """Ids of the questions whose replies the bot has written down as ambiguous."""
    with contextlib.closing(sqlite3.connect(state / "outbox.db")) as database:
        rows = database.execute("SELECT data FROM outbox WHERE state = 'unknown'").fetchall()
    return {int(json.loads(data)["quote"] or 0) for (data,) in rows}


async def soak(options: argparse.Namespace, directory: Path) -> bool:
    dice = random.Random(options.seed)
    kinds = dice.choices(list(KINDS), list(KINDS.values()), k=options.mentions)
    model = Model({f"T{number:05}": kind for number, kind in enumerate(kinds)}, dice)
    async with AsyncExitStack() as closing:
        server = await closing.enter_async_context(ModelServer(model, key=KEY))
        env = {
            "HOST": "127.0.0.1",
            "ONEBOT_ACCESS_TOKEN": TOKEN,
            "SUPERUSERS": json.dumps([str(ADMIN)]),
            "CHATHANDS__MODEL__BASE_URL": server.url,
            "CHATHANDS__MODEL__API_KEY": KEY,
            "CHATHANDS__MODEL__NAME": "stand-in",
            "CHATHANDS__APPROVAL_SECONDS": "20",
        }
        bot = BotProcess(directory / "bot", env)
        bot.prepare()
        (bot.directory / "tools" / "soaking.py").write_text(TOOLS, "utf-8")
        closing.push_async_callback(bot.stop)
        await bot.start()
        await bot.wait_log("Uvicorn running", within=120)
        await bot.wait_log("模型：", within=120)
        sim = Sim(World(), bot.url, token=TOKEN, reconnect=0.5)
        await closing.enter_async_context(sim)
        run = Soak(options, bot, sim, model)
        await run.run()
        run.unknown = unknown_in(bot.directory / "state")
        fine = run.verdict()
        announced = bot.directory / "state" / "announced.txt"
        if announced.exists():
            lines = announced.read_text("utf-8").split("\n")[:-1]
            doubled = len(lines) - len(set(lines))
            print(f"announced {len(lines)}, doubled {doubled}")
            fine = fine and not doubled
        for line in bot.log:
            if "ERROR" in line or "Traceback" in line:
                print("LOG", line.rstrip()[:200])
        return fine


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--mentions", type=int, default=3000)
    parser.add_argument("--groups", type=int, default=50)
    parser.add_argument("--members", type=int, default=20)
    parser.add_argument("--rate", type=float, default=6.0, help="mentions a second")
    parser.add_argument("--seed", type=int, default=7)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="chathands-soak-") as directory:
        fine = asyncio.run(soak(options, Path(directory)))
    sys.exit(0 if fine else 1)


if __name__ == "__main__":
    main()
