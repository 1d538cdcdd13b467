"""One bot with a 3 s deadline for most of the ring; others where a test ends or breaks its own."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from tests.black_box.harness import KEY, TOKEN, BotProcess, ModelBrain, Ring
from tests.sim.onebot_sim import Sim, World
from tests.standins.dingtalk import DingTalk
from tests.standins.model_server import ModelServer, Reply

SECRET = "SECring0123456789abcdef"
_numbers = count(1)

StartRing = Callable[..., Awaitable[Ring]]


@asynccontextmanager
async def running(
    directory: Path,
    dingtalk: DingTalk,
    brain: ModelBrain,
    world: World | None = None,
    **settings: Any,
) -> AsyncIterator[Ring]:
    """A bot that is started, connected and ready; `settings` become environment variables."""
    robots = {"销售群": {"webhook": dingtalk.webhook, "secret": SECRET}}
    async with AsyncExitStack() as closing:
        model = await closing.enter_async_context(ModelServer(brain, key=KEY))
        env = {
            "HOST": "127.0.0.1",
            "ONEBOT_ACCESS_TOKEN": TOKEN,
            "SUPERUSERS": '["9001"]',
            "NICKNAME": '["小手"]',
            "CHATHANDS__GROUP__BOTS": '["424242"]',
            "CHATHANDS__MODEL__BASE_URL": model.url,
            "CHATHANDS__MODEL__API_KEY": KEY,
            "CHATHANDS__MODEL__NAME": "stand-in",
            "CHATHANDS__DINGTALK__ROBOTS": json.dumps(robots, ensure_ascii=False),
            **{key: str(value) for key, value in settings.items()},
        }
        bot = BotProcess(directory, env)
        closing.push_async_callback(bot.stop)
        await bot.start()
        await bot.wait_log("模型：")
        await bot.wait_log("Uvicorn running")
        sim = Sim(world or World(), bot.url, token=TOKEN, reconnect=0.2)
        await closing.enter_async_context(sim)
        yield Ring(bot, sim, brain, model)


@pytest.fixture(scope="session")
async def dingtalk() -> AsyncIterator[DingTalk]:
    async with DingTalk(secret=SECRET, per_minute=1000) as robot:
        yield robot


@pytest.fixture(scope="session")
async def ring(tmp_path_factory: pytest.TempPathFactory, dingtalk: DingTalk) -> AsyncIterator[Ring]:
    """The shared bot, with a 3 s deadline."""
    directory = tmp_path_factory.mktemp("ring") / "bot"
    async with running(
        directory, dingtalk, ModelBrain(), CHATHANDS__DEADLINE=3, CHATHANDS__APPROVAL_SECONDS=20
    ) as ring:
        await ring.read_a_workbook(1, 1)  # a cold child may take longer than a 3 s run leaves it
        yield ring


@pytest.fixture
async def start_ring(tmp_path: Path, dingtalk: DingTalk) -> AsyncIterator[StartRing]:
    """Start a bot of one's own."""
    async with AsyncExitStack() as closing:

        async def start(name: str = "bot", **settings: Any) -> Ring:
            one = running(tmp_path / name, dingtalk, ModelBrain(), **settings)
            return await closing.enter_async_context(one)

        yield start


@pytest.fixture
def fresh() -> Callable[[], int]:
    """A number nobody else has: groups and people of a test are its own."""
    return lambda: 50_000 + next(_numbers)


@pytest.fixture(scope="session", autouse=True)
async def default_deadline(
    tmp_path_factory: pytest.TempPathFactory, dingtalk: DingTalk
) -> AsyncIterator[asyncio.Task[tuple[str, float]]]:
    """A model that hangs, asked with the default deadline of 30 s. It begins with the ring and
    goes on beside it: what came back, and after how many seconds."""
    directory = tmp_path_factory.mktemp("default") / "bot"

    async def story() -> tuple[str, float]:
        async with running(directory, dingtalk, ModelBrain()) as ring:
            ring.brain.plays("等到底", Reply(hang="head"))
            began = time.monotonic()
            question = await ring.ask(800, 1, "@bot 等到底")
            answer = await ring.reply(question, within=40)
            return answer, time.monotonic() - began

    task = asyncio.ensure_future(story())
    yield task
    task.cancel()
    await asyncio.wait({task})
