"""Says reminders in the chats where they were asked for, as far as the bot may speak there."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol
from zoneinfo import ZoneInfo

from nonebot.log import logger

from chathands.errors import StoreError
from chathands.reminders import Reminder
from chathands.toolbox.context import Caller
from plugins.group_chat.messages import Line, Place
from plugins.group_chat.presence import Presence

if TYPE_CHECKING:
    from chathands.agent import Agent
    from chathands.agent.reminding import Reminding, Said
    from chathands.settings import Settings


class Notify(Protocol):
    """`GroupChat.notify`."""

    async def __call__(
        self, place: Place, text: str, *, mention: str | None = None, key: str | None = None
    ) -> bool: ...


class ReminderDesk:
    """Does nothing until `open()`."""

    def __init__(
        self,
        settings: Settings,
        line: Line,
        presence: Presence,
        *,
        silent: Callable[[Place], bool],
        notify: Notify,
    ) -> None:
        self._settings = settings
        self._line = line
        self._presence = presence
        self._silent = silent
        self._notify = notify
        self._agent: Agent | None = None
        self._reminding: Reminding | None = None
        self._task: asyncio.Task[None] | None = None

    def open(self, agent: Agent, *, wall: Callable[[], float] = time.time) -> None:
        """Say what is due from now on, what was missed while the process was away first."""
        from chathands.agent.reminding import Reminding

        self._agent = agent
        self._reminding = Reminding(
            agent.store.reminders,
            self._say,
            self._settings.calendar.work_calendar(),
            ZoneInfo(self._settings.timezone),
            wall=wall,
        )
        self._task = asyncio.create_task(self._reminding.run(), name="chathands-reminding")

    def look(self) -> None:
        """Somebody can be told now who could not be before."""
        if self._reminding is not None:
            self._reminding.look()

    def close(self) -> None:
        """Begin no more; what is being sent belongs to the outbox."""
        if self._task is not None:
            self._task.cancel()
            self._task = None
        self._reminding = None

    async def leave(self, place: Place) -> None:
        """The bot is no longer in that group."""
        if self._agent is None or place.group_id is None:
            return
        try:
            count = await self._agent.store.reminders.remove_of_group(
                place.platform, place.bot_id, place.group_id
            )
        except StoreError as error:
            logger.error(f"reminders: {error}")
            return
        if count:
            logger.info(f"group {place.group_id}: {count} reminders went with it")

    async def _say(self, reminder: Reminder, text: str, key: str) -> Said:
        from chathands.agent.reminding import Said

        agent = self._agent
        assert agent is not None
        place = Place(reminder.platform, reminder.bot_id, reminder.group_id, reminder.user_id)
        if reminder.tool not in agent.describe().tools:
            return Said.LATER  # its file is being written; one that is gone takes this along
        if not self._may_still(agent, reminder):
            logger.warning(f"reminder {reminder.id}: {reminder.tool} is not allowed there any more")
            return Said.NEVER
        if self._presence.removed(place) or self._silent(place):
            return Said.NEVER
        if self._presence.silent(place):
            return Said.LATER
        if not await self._line.connected(place.bot_id, seconds=0):
            return Said.LATER
        if not await self._line.alive(place.bot_id):
            return Said.LATER
        mention = None if place.private else reminder.user_id
        await self._notify(place, text, mention=mention, key=key)
        return Said.DONE

    def _may_still(self, agent: Agent, reminder: Reminder) -> bool:
        """Whether the person could set it there today; the rules may have changed since."""
        caller = Caller(
            user_id=reminder.user_id,
            group_id=reminder.group_id,
            role=reminder.role,  # type: ignore[arg-type]
            name=reminder.name,
            platform=reminder.platform,
            bot_id=reminder.bot_id,
        )
        return any(spec.name == reminder.tool for spec in agent.tools_for(caller))
