"""How fast, and together with what: messages that make one question, and signs of life on the way.

A single question is never held back for a second one that may come (`debounce` is 0): who adds a
line while the model still reads gets one answer to both, because the run begins anew.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, fields, replace
from typing import Any

from chathands.settings import GroupSettings
from plugins.group_chat.jobs import Job, Stage
from plugins.group_chat.messages import Incoming, Place

MOST_MERGED = 6
"""Messages of one question. Who writes more is not adding to it but flooding."""

PROGRESS = "还在处理，已经 {seconds:.0f} 秒了，请再等等。不想等可以 @我 说“停”。"


@dataclass(eq=False, slots=True)
class Bundle:
    """Messages of one person that get one reply, which quotes the last of them."""

    job: Job
    messages: list[Incoming]
    last: float
    """Loop time of the newest message."""
    over: asyncio.Event

    def question(self) -> Incoming:
        """All of it as one message."""
        return merged(self.messages)

    def without(self, message_id: str) -> bool:
        """Take a recalled message out; whether anything is left."""
        self.messages = [m for m in self.messages if m.message_id != message_id]
        return bool(self.messages)


class Bundles:
    """The open ones, by conversation."""

    def __init__(self, settings: GroupSettings) -> None:
        self._settings = settings
        self._open: dict[str, list[Bundle]] = {}

    def begin(self, conversation: str, job: Job, incoming: Incoming) -> Bundle:
        now = asyncio.get_running_loop().time()
        bundle = Bundle(job, [incoming], now, asyncio.Event())
        self._open.setdefault(conversation, []).append(bundle)
        return bundle

    def with_message(self, bot_id: str, message_id: str) -> list[Bundle]:
        """The open ones that message is part of."""
        return [
            bundle
            for bundles in self._open.values()
            for bundle in bundles
            for message in bundle.messages
            if (message.place.bot_id, message.message_id) == (bot_id, message_id)
        ]

    def end(self, conversation: str, bundle: Bundle) -> None:
        bundle.over.set()
        others = self._open.get(conversation, [])
        if bundle in others:
            others.remove(bundle)
        if not others:
            self._open.pop(conversation, None)

    def add(self, conversation: str, incoming: Incoming) -> Bundle | None:
        """The bundle this message was added to; None when it is a question of its own."""
        merge = self._settings.merge
        if merge == "off" or (merge == "private" and not incoming.place.private):
            return None
        now = asyncio.get_running_loop().time()
        for bundle in reversed(self._open.get(conversation, [])):
            if bundle.messages[-1].place.user_id != incoming.place.user_id:
                continue
            quick = now - bundle.last <= self._settings.merge_seconds
            if not (quick and bundle.job.may_grow and len(bundle.messages) < MOST_MERGED):
                return None  # an older one would be answered out of order
            bundle.messages.append(incoming)
            bundle.last = now
            bundle.job.message_id = incoming.message_id or bundle.job.message_id
            bundle.job.grown()
            return bundle
        return None

    async def settled(self, bundle: Bundle) -> None:
        """Wait until the person has been quiet for the debounce time."""
        clock = asyncio.get_running_loop().time
        left = self._settings.debounce
        while left > 0:
            await asyncio.sleep(left)
            left = bundle.last + self._settings.debounce - clock()


def merged(messages: list[Incoming]) -> Incoming:
    """Several messages as one: their words on lines of their own, everything they carry, the last
    one's id and the newest quote."""
    last = messages[-1]
    if len(messages) == 1:
        return last
    changes: dict[str, Any] = {
        "text": "\n".join(message.text for message in messages if message.text),
        "quoted": next((m.quoted for m in reversed(messages) if m.quoted is not None), None),
        "mentioned": any(message.mentioned for message in messages),
    }
    for field in fields(Incoming):
        if isinstance(getattr(last, field.name), tuple):
            values = (getattr(message, field.name) for message in messages)
            changes[field.name] = tuple(item for value in values for item in value)
    return replace(last, **changes)


class Signs:
    """What shows a person that the bot is at it: a reaction, and by setting one line of progress.

    At most one of each for a job, and nothing once its reply is on the way.
    """

    def __init__(
        self,
        settings: GroupSettings,
        react: Callable[[Place, str], Coroutine[Any, Any, None]],
        say: Callable[[Place, str], Coroutine[Any, Any, Any]],
        later: Callable[[Coroutine[Any, Any, Any]], None],
    ) -> None:
        self._settings = settings
        self._react = react
        self._say = say
        self._later = later

    def watch(self, job: Job) -> Callable[[], None]:
        """Begin; the result ends it."""
        loop = asyncio.get_running_loop()
        timers = []
        if self._settings.busy_seconds and job.message_id:
            timers.append(loop.call_later(self._settings.busy_seconds, self._busy, job))
        if self._settings.progress_seconds:
            timers.append(loop.call_later(self._settings.progress_seconds, self._progress, job))

        def end() -> None:
            for timer in timers:
                timer.cancel()

        return end

    def _busy(self, job: Job) -> None:
        if job.stage is not Stage.REPLYING and job.why is None and job.message_id:
            self._later(self._react(job.place, job.message_id))

    def _progress(self, job: Job) -> None:
        if job.stage is not Stage.REPLYING and job.why is None:
            text = PROGRESS.format(seconds=self._settings.progress_seconds)
            self._later(self._say(job.place, text))
