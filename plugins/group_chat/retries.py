"""When to try again what could not be said: nobody reports the end of a mute that runs out, or a
peer that was stuck and answers again."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from plugins.group_chat.accepted import account_of
from plugins.group_chat.messages import Place
from plugins.group_chat.presence import LONGEST_MUTE, Presence

STUCK_SECONDS = 10.0
"""Before a peer is tried again that is connected and did not answer. Long enough for one that is
starved, short enough for people who wait."""
MARGIN_SECONDS = 1.0
"""After the end of a mute: the other side's clock is not ours."""


class Retries:
    """At most one timer for a chat, and one for an account; none once the process leaves.

    `catch_up(account)` says what is owed through an account; `later` runs work beside everything
    else; `connected(bot_id)` tells whether an account is there. Without one nothing is tried: the
    next connection begins with that.
    """

    def __init__(
        self,
        presence: Presence,
        *,
        later: Callable[[Coroutine[Any, Any, object]], None],
        connected: Callable[[str], Coroutine[Any, Any, bool]],
        catch_up: Callable[[str], Coroutine[Any, Any, object]],
    ) -> None:
        self._presence = presence
        self._later = later
        self._connected = connected
        self._catch_up = catch_up
        self._timers: dict[tuple[str, str | None], asyncio.TimerHandle] = {}
        self._closed = False

    def when_speaking(self, place: Place) -> None:
        """Try again when the bot's mute there is over; one without an end is lifted by a notice."""
        left = self._presence.seconds_left(place)
        if 0 < left <= LONGEST_MUTE:
            self._arm((account_of(place), place.group_id), left + MARGIN_SECONDS, place)

    def when_answering(self, place: Place) -> None:
        """Try again in a moment: the account's peer is stuck."""
        self._arm((account_of(place), None), STUCK_SECONDS, place)

    def close(self) -> None:
        self._closed = True
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()

    def _arm(self, key: tuple[str, str | None], seconds: float, place: Place) -> None:
        if key not in self._timers and not self._closed:
            loop = asyncio.get_running_loop()
            self._timers[key] = loop.call_later(seconds, self._due, key, place)

    def _due(self, key: tuple[str, str | None], place: Place) -> None:
        del self._timers[key]
        if key[1] is not None and self._presence.silent(place):
            self.when_speaking(place)  # it was muted for longer meanwhile
        else:
            self._later(self._try(place))

    async def _try(self, place: Place) -> None:
        if await self._connected(place.bot_id):
            await self._catch_up(account_of(place))
