"""Whether a OneBot v11 peer is still there, and the reaction that shows it was heard.

A half-open connection looks open for up to two ping intervals, and what is sent into it is gone
without anybody knowing whether it was shown. So a peer that has been quiet for a moment is asked
something harmless before something that must not be said twice.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from time import monotonic
from typing import Any

from nonebot import get_bots
from nonebot.adapters import Bot as BaseBot
from nonebot.adapters import Event as BaseEvent
from nonebot.adapters.onebot.v11 import ActionFailed, Bot
from nonebot.log import logger
from nonebot.message import event_preprocessor

from chathands.settings import GroupSettings
from plugins.group_chat.messages import Place
from plugins.group_chat.onebot_v11_calls import FAILURES, NO_ANSWER

QUIET_SECONDS = 1.0
"""After its last answer a peer is taken to be there for so long. Asking costs a round trip, 1 to
2 ms on one machine."""
PROBE_SECONDS = 2.0
"""For the answer. NapCat answers get_status from memory; one that takes longer is not about to
send anything either."""
HEARD_EMOJI = "124"
"""QQ's OK hand: heard, working on it."""


class Liveness:
    """Answers of every connected bot's peer.

    Only an answer shows that the other side reads: one that is stuck may go on reporting events.
    """

    def __init__(self) -> None:
        self.doubt_seconds = 3 * GroupSettings().ping_seconds
        """After so long without an answer a message is tried all the same: the pings would have
        closed a dead connection by then, so this one only does not know the question."""
        self._answered: dict[str, float] = {}
        """Bot id → when its peer last answered."""
        self._doubted: dict[str, float] = {}
        """Bot id → since when it does not."""
        self._unasked: set[str] = set()
        """Bots whose peers do not answer get_status."""
        self._no_reactions: set[str] = set()
        self._sockets: dict[str, Any] = {}
        self._on_connect: Callable[[str], object] = lambda _: None

    def install(self, on_connect: Callable[[str], object]) -> None:
        """Listen to events and answers. Call once, at import.

        `on_connect` is given the bot's id at the first event of each connection. NoneBot's own
        hook needs its lifespan to be running; implementations begin with a lifecycle event.
        """
        self._on_connect = on_connect
        event_preprocessor(self._event)
        Bot.on_called_api(self._called)

    async def _event(self, bot: BaseBot, event: BaseEvent) -> None:
        socket = _socket_of(bot)
        if socket is not None and socket is not self._sockets.get(bot.self_id):
            self._sockets[bot.self_id] = socket
            for known in (self._answered, self._doubted):
                known.pop(bot.self_id, None)
            for kind in (self._unasked, self._no_reactions):  # another implementation, perhaps
                kind.discard(bot.self_id)
            self._on_connect(bot.self_id)

    async def _called(
        self, bot: BaseBot, error: Exception | None, api: str, data: Any, result: Any
    ) -> None:
        if error is None or isinstance(error, ActionFailed):
            self._answered[bot.self_id] = monotonic()
            self._doubted.pop(bot.self_id, None)

    async def alive(self, bot_id: str) -> bool:
        """Whether that bot's peer can be expected to take a message now."""
        bot = get_bots().get(bot_id)
        if bot is None:
            return False
        if _socket_of(bot) is None:
            return True  # spoken to over HTTP: each call fails or does not by itself
        began = monotonic()
        recent = began - self._answered.get(bot_id, -QUIET_SECONDS) < QUIET_SECONDS
        if recent or bot_id in self._unasked:
            return True
        try:
            await asyncio.wait_for(
                bot.call_api("get_status", _timeout=PROBE_SECONDS), PROBE_SECONDS
            )
        except ActionFailed:
            return True  # it does not know the question, but it is there
        except (TimeoutError, *NO_ANSWER) as error:
            since = self._doubted.setdefault(bot_id, began)
            logger.warning(f"bot {bot_id} does not answer, holding messages back: {error!r}")
            if monotonic() - since < self.doubt_seconds or bot_id not in get_bots():
                return False
            self._unasked.add(bot_id)
        return True

    async def drained(self, seconds: float) -> None:
        """Wait until every event that was sent before this is dealt with, for `seconds` at most.

        Frames keep their order: once a peer has answered, all it sent before has been read, and
        the adapter has a task for each.
        """

        async def of(bot: BaseBot) -> None:
            with suppress(*FAILURES):
                await bot.call_api("get_status", _timeout=seconds)
            if events := _being_handled(bot):
                await asyncio.wait(events)

        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                connected = [bot for bot in get_bots().values() if _socket_of(bot) is not None]
                await asyncio.gather(*map(of, connected))

    async def react(self, place: Place, message_id: str) -> None:
        """Put an emoji on the message, in groups of NapCat and LLOneBot; elsewhere nothing."""
        bot = get_bots().get(place.bot_id)
        if bot is None or place.group_id is None or place.bot_id in self._no_reactions:
            return
        if _socket_of(bot) is None:
            return
        if not message_id.lstrip("-").isdecimal():
            return
        try:
            await bot.call_api(
                "set_msg_emoji_like",
                message_id=int(message_id),
                emoji_id=HEARD_EMOJI,
                _timeout=PROBE_SECONDS,
            )
        except FAILURES as error:
            logger.info(f"no reaction: {error!r}")
            if isinstance(error, ActionFailed):  # go-cqhttp and Lagrange do not know it
                self._no_reactions.add(place.bot_id)


def _being_handled(bot: BaseBot) -> list[asyncio.Task[Any]]:
    """The adapter's tasks for events; it keeps those of its client connections beside them."""
    tasks = getattr(bot.adapter, "tasks", ())
    return [task for task in tasks if getattr(task.get_coro(), "__name__", "") == "handle_event"]


def _socket_of(bot: BaseBot) -> Any:
    return getattr(bot.adapter, "connections", {}).get(bot.self_id)
