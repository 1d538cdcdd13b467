"""The plugin's parts, put together when NoneBot starts and taken apart when it ends."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING

from nonebot.log import logger

from chathands.errors import StoreError
from chathands.settings import Settings, load_settings
from chathands.store.outbox import Outbox
from chathands.toolbox import Redactor
from plugins.group_chat import onebot_v11
from plugins.group_chat.admins import Admins
from plugins.group_chat.chat import GroupChat
from plugins.group_chat.commands import Commands
from plugins.group_chat.lifecycle import Engine, Farewell
from plugins.group_chat.log_tail import LogTail
from plugins.group_chat.onebot_v11_connecting import connected_accounts, superuser_chats

if TYPE_CHECKING:
    from chathands.agent import Agent, AgentFacts
    from chathands.toolbox.delivery import Deliver
    from chathands.upstreams.weights import Progress


class Service:
    """`chat` is there from `start()` on, which is before the first connection."""

    chat: GroupChat

    def __init__(self, line: onebot_v11.OneBotLine) -> None:
        self.followers: list[Callable[[Agent], Awaitable[object]]] = []
        """Told of the agent when it is there."""
        self._line = line
        self._engine: Engine | None = None
        self._farewell: Farewell | None = None
        self._outbox: Outbox | None = None
        self._log_handler: int | None = None
        self._admins: Admins | None = None
        self._announcing: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """A NoneBot startup hook. Raises ConfigError; bot.py has looked for one before."""
        settings = load_settings()
        self._line.configure(settings.group)
        log = LogTail(Redactor.of(settings).sentence)
        self._log_handler = log.install()
        self._engine = engine = Engine(
            lambda: _agent_of(
                settings, told, commands, admins, self.chat.pushing(connected_accounts)
            )
        )
        commands = Commands(settings, engine, log)

        def told(progress: Progress) -> None:
            engine.progress(progress.sentence.rstrip("…"))
            log_progress(progress)

        log_progress = _ProgressLog()
        self._outbox = await _outbox_of(settings)
        self.chat = GroupChat(settings, self._line, engine, self._outbox, commands)
        self._admins = admins = Admins(self.chat.tell, superuser_chats)
        self._farewell = Farewell(self.chat.say_goodbye)
        self._farewell.install()
        for level, text in onebot_v11.connection_lines():
            logger.log(level, text)
        await self._engine.start(self._ready)

    async def stop(self) -> None:
        """A NoneBot shutdown hook; the connections are closed by now."""
        if self._farewell is not None:
            self._farewell.remove()
        if self._admins is not None:
            self._admins.close()
        if self._announcing is not None:
            self._announcing.cancel()
            await asyncio.wait({self._announcing})
        if self._engine is not None:
            await self._engine.stop()
        if self._outbox is not None:
            await self._outbox.aclose()
        if self._log_handler is not None:
            logger.remove(self._log_handler)
            self._log_handler = None

    def connected(self, platform: str, bot_id: str) -> None:
        """An account has connected: what it still owes is sent beside everything else."""
        if hasattr(self, "chat"):
            self.chat.connected(platform, bot_id)
        if self._admins is not None:
            self._admins.connected()

    async def _ready(self, agent: Agent) -> None:
        for level, text in _agent_lines(agent.describe()):
            logger.log(level, text)
        self.chat.restore(agent)
        self.chat.reminders.open(agent)
        for follow in self.followers:
            await follow(agent)
        self._announcing = asyncio.create_task(
            self.chat.tickets.announce_forever(agent.store.tickets, superuser_chats),
            name="chathands-announce-tickets",
        )


async def _outbox_of(settings: Settings) -> Outbox | None:
    """Where is written down what is owed to people. Without it the bot answers all the same."""
    try:
        return await Outbox.at(settings.state_dir)
    except StoreError as error:
        logger.error(
            f"没法把还没回答的问题写到磁盘，重启会丢掉它们；请检查状态目录的空间和权限（{error}）"
        )
        return None


def _agent_of(
    settings: Settings,
    told: Callable[[Progress], None],
    commands: Commands,
    admins: Admins,
    deliver: Deliver,
) -> AbstractAsyncContextManager[Agent]:
    # Here and not above: it brings in the model client, the tools and the store.
    from chathands.agent import build_agent

    return build_agent(
        settings,
        on_load_error=admins.failed,
        on_mended=admins.mended,
        progress=told,
        on_store=commands.open,
        deliver=deliver,
        reminds=True,
    )


class _ProgressLog:
    """Logs how far the local model is: each new stage, and every tenth of a download."""

    def __init__(self) -> None:
        self._last: tuple[str, int] = ("", 0)

    def __call__(self, progress: Progress) -> None:
        tenth = 10 * progress.done // progress.total if progress.total else 0
        if (progress.stage, tenth) != self._last:
            self._last = (progress.stage, tenth)
            logger.info(progress.sentence)


def _agent_lines(facts: AgentFacts) -> list[tuple[str, str]]:
    """What the agent found at start, as (log level, Chinese line). Tools that did not load have
    been logged one by one, with file and line."""
    lines = []
    if facts.no_model is not None:
        lines.append(("WARNING", f"模型：没有。{facts.no_model.sentence}"))
    else:
        where = "，在本机运行" if facts.local else ""
        time = f"一次提问最多 {facts.seconds:g} 秒"
        lines.append(("INFO", f"模型：{facts.model}{where}，方式 {facts.mode_line}，{time}"))
    failed = f"，{len(facts.load_errors)} 个文件没有加载" if facts.load_errors else ""
    lines.append(("INFO", f"工具：{len(facts.tools)} 个（{'、'.join(facts.tools)}）{failed}"))
    return lines
