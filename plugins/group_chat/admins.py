"""What only SUPERUSERS can mend is told them by private message: tool files that do not load."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from nonebot.log import logger

from chathands.errors import ToolLoadError
from plugins.group_chat.messages import Place

GATHER_SECONDS = 1.0
"""What happens within a second is one message: a pull changes many files, and an editor that saves
by itself breaks a file and mends it."""
LINES = 10
"""Faults in one message; `重载` in a private chat lists all."""
LINE_LENGTH = 400

HEAD = "有工具文件没有加载（原来能用的继续用旧的，改好存盘会再加载）："
MORE = "……还有 {count} 条，私聊发 重载 可以看到全部。"

Tell = Callable[[Sequence[Place], str], Awaitable[bool]]
"""Says a text at the first of one person's places that takes it; whether one did."""


class Admins:
    """Gathers what is to be said, and keeps it until an account is connected."""

    def __init__(self, tell: Tell, chats: Callable[[], Sequence[Sequence[Place]]]) -> None:
        self._tell = tell
        self._chats = chats
        self._faults: dict[str, dict[str, None]] = {}
        """File → sentences that are still to be said."""
        self._mended: dict[str, None] = {}
        self._told: set[str] = set()
        """Files whose faults they know of."""
        self._due: asyncio.TimerHandle | None = None
        self._telling: set[asyncio.Task[None]] = set()

    def failed(self, error: ToolLoadError) -> None:
        """A fault, each once."""
        logger.error(error.sentence)
        self._faults.setdefault(error.file, {})[error.sentence[:LINE_LENGTH]] = None
        self._mended.pop(error.file, None)
        self._soon()

    def mended(self, file: str) -> None:
        """The faults of this file are over; who never heard of them need not hear of it."""
        from chathands.agent.loading import mended_sentence

        logger.info(mended_sentence(file))
        self._faults.pop(file, None)
        if file in self._told:
            self._mended[file] = None
            self._soon()

    def connected(self) -> None:
        """An account is there (again)."""
        if self._faults or self._mended:
            self._soon()

    def close(self) -> None:
        """Say nothing more."""
        if self._due is not None:
            self._due.cancel()
        for task in self._telling:
            task.cancel()

    def _soon(self) -> None:
        if self._due is None:
            self._due = asyncio.get_running_loop().call_later(GATHER_SECONDS, self._say)

    def _say(self) -> None:
        from chathands.agent.loading import mended_sentence

        self._due = None
        people = [places for places in self._chats() if places]
        if not people:
            return
        faults = [sentence for each in self._faults.values() for sentence in each]
        lines = [mended_sentence(file) for file in self._mended]
        if faults:
            lines += [HEAD, *faults[:LINES]]
        if len(faults) > LINES:
            lines.append(MORE.format(count=len(faults) - LINES))
        self._told.update(self._faults)
        self._told.difference_update(self._mended)
        self._faults.clear()
        self._mended.clear()
        if not lines:
            return
        for places in people:
            task = asyncio.ensure_future(self._say_to(places, "\n".join(lines)))
            self._telling.add(task)
            task.add_done_callback(self._telling.discard)

    async def _say_to(self, places: Sequence[Place], text: str) -> None:
        if not await self._tell(places, text):
            logger.warning(f"{places[0].user_id} could not be told of tool files in private")
