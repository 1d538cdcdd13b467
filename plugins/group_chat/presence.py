"""Where the bot may speak: mutes of its own, of whole groups, and groups it was removed from.

Known from notices and from refused sends; what happened while it was away is not, so a reconnect
begins with a clean page.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from time import monotonic

from plugins.group_chat.messages import Place
from plugins.group_chat.notices import Allowed, Joined, Removed, Silenced

LONGEST_MUTE = 31 * 86400.0
"""Seconds; QQ allows 30 days. Anything beyond is a broken notice."""

_Key = tuple[str, str, str]


class Presence:
    """`clock` gives seconds and never goes back."""

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        self._clock = clock
        self._muted: dict[_Key, float] = {}
        """When the bot's own mute ends."""
        self._closed: set[_Key] = set()
        """Groups in which nobody may speak."""
        self._removed: set[_Key] = set()

    def silent(self, place: Place) -> bool:
        """Whether nothing can be said there now."""
        key = _key(place)
        return key is not None and (
            key in self._removed or key in self._closed or self.seconds_left(place) > 0
        )

    def removed(self, place: Place) -> bool:
        return _key(place) in self._removed

    def seconds_left(self, place: Place) -> float:
        """Of the bot's own mute; 0 when there is none."""
        key = _key(place)
        if key is None or key not in self._muted:
            return 0.0
        left = self._muted[key] - self._clock()
        if left <= 0:
            del self._muted[key]
        return max(0.0, left)

    def note(self, change: Silenced | Allowed | Removed | Joined) -> None:
        key = (change.platform, change.bot_id, change.group_id)
        match change:
            case Silenced(everybody=True):
                self._closed.add(key)
            case Silenced(seconds=seconds):
                known = seconds is not None and 0 < seconds <= LONGEST_MUTE
                self._muted[key] = self._clock() + seconds if seconds and known else math.inf
            case Allowed(everybody=True):
                self._closed.discard(key)
            case Allowed():
                self._muted.pop(key, None)
            case Removed():
                self._removed.add(key)
            case Joined():
                self._removed.discard(key)
                self._muted.pop(key, None)
                self._closed.discard(key)

    def forget(self, bot_id: str) -> None:
        """That account has connected anew: what it missed meanwhile is not known."""
        self._muted = {key: end for key, end in self._muted.items() if key[1] != bot_id}
        self._closed = {key for key in self._closed if key[1] != bot_id}
        self._removed = {key for key in self._removed if key[1] != bot_id}


def _key(place: Place) -> _Key | None:
    return None if place.group_id is None else (place.platform, place.bot_id, place.group_id)
