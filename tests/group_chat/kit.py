"""A chat with a real agent: real tools, store and audit; only model and line are played."""

from __future__ import annotations

import asyncio
import shutil
import textwrap
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

from chathands.agent import Agent, build_agent
from chathands.emulation.outcome import ModelRequest
from chathands.errors import ToolError
from chathands.settings import Settings
from chathands.store.db import Database
from chathands.store.outbox import Outbox
from chathands.upstreams.scripted import Scripted
from plugins.group_chat.chat import GroupChat
from plugins.group_chat.lifecycle import Engine
from plugins.group_chat.messages import Fate, Incoming, Outgoing, Place, Quoted, Sent
from tests.support.virtual_clock import real_time

TOOLS = '''
import asyncio
from typing import Annotated
from pydantic import Field
from chathands import ToolContext, tool
from chathands.errors import ToolFailed


@tool(side_effect="outward", target="robot", shows=("content",), timeout=10)
async def push(
    ctx: ToolContext,
    robot: Annotated[str, Field(description="机器人")],
    content: Annotated[str, Field(description="正文")],
) -> str:
    """向一个群推送一条消息。"""
    with open(ctx.settings.state_dir / "pushed.txt", "a", encoding="utf-8") as file:
        file.write(f"{robot}:{content}\\n")
    if content == "慢":
        await asyncio.sleep(8)
    if content == "坏":
        raise ToolFailed("机器人不接受这条消息。")
    return f"已推送到 {robot}"
'''


def action(tool: str, **parameters: Any) -> str:
    """A call as the contract asks for it."""
    from chathands.conversation import canonical_json

    return f"```json action\n{canonical_json({'tool': tool, 'parameters': parameters})}\n```"


PUSH = action("push", robot="销售群", content="九月汇总 [CQ:at,qq=all]")


class PlayedLine:
    """Keeps what is sent. `fates` are those of the next sends; then everything arrives."""

    def __init__(self) -> None:
        self.sent: list[Outgoing] = []
        self.sent_as: list[tuple[Outgoing, Fate]] = []
        """What was sent, and what became of it; one that waits for its acknowledgement counts as
        unknown."""
        self.fates: list[Fate] = []
        self.answers = True
        self.acknowledges: asyncio.Event | None = None
        """When set, an acknowledgement waits for it."""
        self.reactions: list[str] = []
        self.mute_seconds = 0.0
        self.spoken_before: Callable[[], Coroutine[Any, Any, None]] = self._nothing
        """What is still in the socket when the farewell begins."""
        self.changed = asyncio.Event()

    async def _nothing(self) -> None: ...

    async def send(self, message: Outgoing, *, seconds: float) -> Sent:
        await asyncio.sleep(0)
        number = len(self.sent_as)
        self.sent.append(message)
        self.sent_as.append((message, Fate.UNKNOWN))
        self.changed.set()
        if self.acknowledges is not None:
            await self.acknowledges.wait()
        fate = self.fates.pop(0) if self.fates else Fate.SENT
        self.sent_as[number] = (message, fate)
        return Sent(fate, f"b{len(self.sent)}" if fate is Fate.SENT else None)

    async def connected(self, bot_id: str, *, seconds: float) -> bool:
        return True

    async def alive(self, bot_id: str) -> bool:
        return self.answers

    async def drained(self, *, seconds: float) -> None:
        await self.spoken_before()

    async def react(self, place: Place, message_id: str) -> None:
        self.reactions.append(message_id)

    async def muted(self, place: Place) -> float:
        return self.mute_seconds

    async def fetch(self, place: Place, file: Any, *, limit: int, seconds: float) -> bytes:
        raise ToolError("取不到。")

    async def open_forwarded(self, place: Place, forwarded: Any, *, seconds: float) -> Any:
        return forwarded

    @property
    def texts(self) -> list[str]:
        return [message.text for message in self.sent]

    async def so_many(self, count: int) -> list[str]:
        """The texts, once there are so many."""
        async with asyncio.timeout(600):
            while len(self.sent) < count:
                self.changed.clear()
                await self.changed.wait()
        return self.texts


class Chat(GroupChat):
    """A chat that is spoken to like a group."""

    line: PlayedLine
    model: Scripted
    agent: Agent
    state: Path

    def __init__(
        self, settings: Settings, line: PlayedLine, engine: Engine, outbox: Outbox | None = None
    ) -> None:
        super().__init__(settings, line, engine, outbox)
        self.line = line
        self._ids = 0

    def message(
        self,
        text: str,
        *,
        user: str = "1",
        group: str | None = "700",
        role: str = "member",
        quoted: Quoted | str | None = None,
        mentioned: bool = True,
    ) -> Incoming:
        self._ids += 1
        if isinstance(quoted, str):
            quoted = Quoted(quoted, by_bot=True)
        return Incoming(
            Place("qq", "10000", group, user),
            f"m{self._ids}",
            text,
            name=f"user{user}",
            role=role,  # type: ignore[arg-type]
            quoted=quoted,
            mentioned=mentioned,
        )

    def says(self, text: str, **about: Any) -> asyncio.Task[None]:
        """Somebody says it; the task ends when it is dealt with."""
        return asyncio.ensure_future(self.receive(self.message(text, **about)))

    def crash_image(self, directory: Path) -> Path:
        """What is on disk at this moment, as a kill would leave it, in a new directory."""
        shutil.copytree(self.state, directory / "state")
        return directory

    @property
    def pushed(self) -> list[str]:
        file = self.state / "pushed.txt"
        return file.read_text("utf-8").splitlines() if file.exists() else []


@contextmanager
def _store_in_no_time() -> Iterator[None]:
    """The store's thread is not the loop's: the virtual clock stands still while it works."""
    query = Database.query

    async def held(self: Database, sql: str, parameters: Iterable[Any] = ()) -> Any:
        with real_time():
            return await query(self, sql, parameters)

    Database.query = held  # type: ignore[method-assign]
    try:
        yield
    finally:
        Database.query = query  # type: ignore[method-assign]


Replies = Iterable[Any] | Callable[[ModelRequest], Any]


@asynccontextmanager
async def chatting(
    tmp_path: Path,
    replies: Replies | None,
    *,
    local: bool = False,
    upstream: Any = None,
    wall: Callable[[], float] | None = None,
    **settings: Any,
) -> AsyncIterator[Chat]:
    """A chat whose model says `replies` (None: there is no model); only on a virtual clock.

    With `wall`, a wall clock, reminders are said."""
    tools = tmp_path / "tools"
    tools.mkdir(parents=True, exist_ok=True)
    (tools / "pushing.py").write_text(textwrap.dedent(TOOLS), "utf-8")
    (tmp_path / "data" / "shared").mkdir(parents=True, exist_ok=True)
    made = Settings(
        _env_file=None,  # type: ignore[call-arg]
        data_dir=tmp_path / "data",
        tools_dir=tools,
        state_dir=tmp_path / "state",
        **settings,
    )
    model = upstream or (None if replies is None else Scripted(replies, local=local))
    engine = Engine(lambda: build_agent(made, upstream=model, reminds=True))
    line = PlayedLine()
    with _store_in_no_time():
        with real_time():
            outbox = await Outbox.at(made.state_dir)
        chat = Chat(made, line, engine, outbox)
        chat.state = made.state_dir
        if model is not None:
            chat.model = model

        async def ready(agent: Agent) -> None:
            chat.agent = agent
            chat.restore(agent)
            if wall is not None:
                chat.reminders.open(agent, wall=wall)

        with real_time():  # the store's thread is not the loop's
            await engine.start(ready)
        try:
            yield chat
        finally:
            await chat.say_goodbye()
            with real_time():
                await engine.stop()
                await outbox.aclose()
