"""Messages through the adapter's own parsing down to what the chat is given."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import nonebot
import pytest
from nonebot.adapters.onebot.v11 import Adapter, Bot
from nonebug import App

import plugins.group_chat as plugin
from chathands.settings import GroupSettings, Settings
from plugins.group_chat.hearing import Hearing
from plugins.group_chat.messages import Incoming
from tests.group_chat.events import BOT


class Recorder:
    """Stands where the chat is and keeps what it is given; the real hearing decides."""

    def __init__(self, data_dir: Path) -> None:
        settings = Settings(
            _env_file=None,  # type: ignore[call-arg]
            data_dir=data_dir,
            group=GroupSettings(bots=("42",)),
        )
        self.hearing = Hearing(settings, plugin.line)
        self.admits = self.hearing.admits
        self.overhear = self.hearing.overhear
        self.heard: list[Incoming] = []

    async def receive(self, incoming: Incoming) -> None:
        self.heard.append(self.hearing.with_earlier(incoming))


@pytest.fixture
def chat(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Recorder:
    recorder = Recorder(tmp_path)
    monkeypatch.setattr(plugin.service, "chat", recorder, raising=False)
    plugin.line._names.clear()
    plugin.line._roles.clear()
    return recorder


Call = tuple[str, dict[str, Any], Any]
Hear = Callable[..., Awaitable[Incoming | None]]


@pytest.fixture
async def hear(app: App, chat: Recorder) -> AsyncIterator[Hear]:
    """Hand a payload to the adapter as its socket would; gives what the chat got.

    `calls` are the API calls it must make: name, data, answer (an exception: it fails).
    """
    async with app.test_api() as ctx:
        bot = ctx.create_bot(base=Bot, adapter=nonebot.get_adapter(Adapter), self_id=str(BOT))

        async def hear(payload: dict[str, Any], *calls: Call) -> Incoming | None:
            before = len(chat.heard)
            for api, data, answer in calls:
                failure = answer if isinstance(answer, Exception) else None
                ctx.should_call_api(api, data, None if failure else answer, exception=failure)
            event = Adapter.json_to_event(payload)
            assert event is not None
            await bot.handle_event(event)
            assert ctx.wait_list.empty()
            assert len(chat.heard) - before in (0, 1)
            return chat.heard[-1] if len(chat.heard) > before else None

        yield hear
