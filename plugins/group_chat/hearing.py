"""Which of the heard messages are dealt with, and what comes with them. Knows no protocol.

Nothing here decides whether a message is meant for the bot: the line does.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

from nonebot.log import logger

from chathands.bounded import Bounded
from chathands.errors import ToolError
from chathands.toolbox.received import Received, image_name
from plugins.group_chat.capture import Seen
from plugins.group_chat.messages import Arrival, Attachment, Forwarded, Incoming, Line, Place

if TYPE_CHECKING:
    from chathands.settings import Settings

FILES_AT_ONCE = 5
"""Fetched for one question; whoever has more says which."""
LOGS_AT_ONCE = 6
"""Chat logs opened for one question: QQ puts one in a message, and so many messages are merged."""
IMAGE_SECONDS = 4.0
"""For one picture, which arrives at once or not at all; few questions are about it."""
EARLIER_KEPT = 3
"""Of one person: the file somebody means by "this file" is one of the last few."""
EARLIER_PEOPLE = 4096
"""Whose earlier files and turns are remembered; who has been quiet for longest is forgotten
first."""

PAUSE_SECONDS = 180.0
"""A pause that ends a row of turns. Longer than a run, so that a slow model makes no pause; people
make one within thirty turns, a bot that answers every answer never does."""
TOO_MANY_TURNS = (
    "我们已经连着说了 {cap} 轮，中间没有停过，我先停一停（防止两个机器人互相对话）。"
    "请过三分钟再问。"
)

SKEW_SECONDS = 2.0
"""Two messages whose clocks differ by the same to within this are live, and the clock is wrong."""
SKEW_APART = 10.0
"""Seconds between them: what is reported again comes in one burst."""

TIMED_OUT = "没有在时限内取到"
TOO_MANY_LOGS = "（这份聊天记录没有打开：一次最多打开 6 份）"
TOO_MANY_FILES = f"一次最多取 {FILES_AT_ONCE} 个文件"

_POINTS_BACK = re.compile(
    "[这那][个张幅份些条段]?|它|图|照片|截屏|截图|刚才|刚刚|刚发|上面|以上|前面|聊天记录|转发"
)
"""Words that may mean a picture or a chat log sent before. Pictures are sent all day long: without
such a word one is left alone. Files are rare, and need none."""


T = TypeVar("T", Attachment, Forwarded)


class Freshness:
    """Tells what was said long ago and is only now reported. Some do so after a reconnect."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._skew: dict[str, float] = {}
        self._last: dict[str, tuple[float, float]] = {}

    def is_old(self, bot_id: str, sent_at: float | None, now: float) -> bool:
        """Whether it is. A clock that is wrong by minutes must not make the bot deaf: two messages
        that come as far apart as they were sent are live, however old they look."""
        if sent_at is None:
            return False
        last_now, last_sent = self._last.get(bot_id, (now, sent_at))
        self._last[bot_id] = (now, sent_at)
        lag = now - sent_at
        if lag - self._skew.get(bot_id, 0.0) <= self._seconds:
            return False
        apart = now - last_now
        if apart >= SKEW_APART and abs(apart - (sent_at - last_sent)) <= SKEW_SECONDS:
            self._skew[bot_id] = lag
            logger.warning(f"本机和 QQ 的时钟相差约 {lag:.0f} 秒，请管理员校对时间")
            return False
        return True


class Turns:
    """Counts how many turns somebody takes in a row without a pause, in one chat."""

    def __init__(self, cap: int, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._cap = cap
        self._clock = clock
        self._rows: Bounded[tuple[str, str], tuple[int, float]] = Bounded(EARLIER_PEOPLE)

    def over(self, place: Place) -> int:
        """Count one more; by how many the row is longer than allowed (0: go on)."""
        key, now = (place.lane, place.user_id), self._clock()
        count, last = self._rows.get(key, (0, now))
        count = 1 if now - last >= PAUSE_SECONDS else count + 1
        self._rows[key] = (count, now)
        return max(0, count - self._cap)


class Earlier:
    """What people sent in the last minutes without asking: references, no bytes."""

    def __init__(self, minutes: float, wall: Callable[[], float]) -> None:
        self._seconds = minutes * 60
        self._wall = wall
        self._sent: Bounded[tuple[str, str], list[Attachment | Forwarded]] = Bounded(EARLIER_PEOPLE)

    def note(self, place: Place, what: Sequence[Attachment | Forwarded]) -> None:
        """Remember it as sent now. An upload is reported twice (message and notice): once kept."""
        key = (place.lane, place.user_id)
        kept = list(self._sent.get(key, ()))
        for one in what:
            same = next((k for k in kept if alike(k, one)), None)
            if same is not None:
                kept.remove(same)
                one = replace(one, handle={**one.handle, **same.handle})  # each may hold the key
            kept.append(replace(one, sent_at=self._wall()))
        self._sent[key] = kept[-EARLIER_KEPT:]

    def of(self, place: Place, words: str) -> list[Attachment | Forwarded]:
        """What those words may mean, oldest first; nothing is forgotten by this."""
        oldest = self._wall() - self._seconds
        points_back = not words or _POINTS_BACK.search(words) is not None
        return [
            one
            for one in self._sent.get((place.lane, place.user_id), ())
            if one.sent_at >= oldest
            and (points_back or (isinstance(one, Attachment) and one.kind == "file"))
        ]

    def used(self, place: Place, what: Sequence[Attachment | Forwarded]) -> None:
        """It went to the model, whose history has it from now on."""
        key = (place.lane, place.user_id)
        left = [one for one in self._sent.get(key, ()) if not any(alike(one, w) for w in what)]
        if left:
            self._sent[key] = left
        else:
            self._sent.pop(key, None)


def alike(one: Attachment | Forwarded, other: Attachment | Forwarded) -> bool:
    """Whether both are the same thing, reported in two ways or at two times."""
    if one.handle and one.handle == other.handle:
        return True
    if isinstance(one, Forwarded) or isinstance(other, Forwarded):
        return False
    sizes = {one.size, other.size} - {None}
    return one.kind == other.kind == "file" and one.name == other.name and len(sizes) < 2


def _unlike(things: tuple[T, ...]) -> tuple[T, ...]:
    """Each once: two messages of one question may both point at the same earlier file."""
    kept: list[T] = []
    for one in things:
        if not any(alike(one, other) for other in kept):
            kept.append(one)
    return tuple(kept)


class Hearing:
    """Drops what must not be answered, and brings what a question speaks of."""

    def __init__(
        self, settings: Settings, line: Line, *, wall: Callable[[], float] = time.time
    ) -> None:
        self._settings = settings.group
        self._line = line
        self._wall = wall
        self._seen = Seen()
        self._fresh = Freshness(self._settings.stale_seconds)
        self._cap = self._settings.turn_cap or self._settings.per_user_minute * 3 // 2
        self._turns = Turns(self._cap)
        self._earlier = Earlier(self._settings.recent_minutes, wall)
        self._bots = frozenset(bot.strip() for bot in self._settings.bots)
        self._received = Received(
            settings.data_dir,
            per_person=int(self._settings.received_mb * 2**20),
            days=self._settings.received_days,
        )

    def admits(self, arrival: Arrival) -> bool:
        """Whether to deal with it: not by a bot, not too old, not seen before."""
        place = arrival.place
        if arrival.from_bot or place.user_id in self._bots or place.user_id == place.bot_id:
            return False
        if self._fresh.is_old(place.bot_id, arrival.sent_at, self._wall()):
            logger.info(f"message {arrival.message_id} is too old to answer")
            return False
        return self._seen.first_time(place.lane, arrival.message_id)

    def too_many_turns(self, place: Place) -> str | None:
        """None as long as the row of turns is short enough; then the sentence to say, and from the
        second time on an empty one."""
        over = self._turns.over(place)
        if over == 0:
            return None
        return TOO_MANY_TURNS.format(cap=self._cap) if over == 1 else ""

    def overhear(self, place: Place, what: Sequence[Attachment | Forwarded]) -> None:
        """Somebody sent this, not necessarily to the bot."""
        self._earlier.note(place, what)

    def with_earlier(self, incoming: Incoming) -> Incoming:
        """The message together with what its sender may mean by "this file"."""
        own = [*incoming.files, *incoming.forwarded]
        earlier = [
            one
            for one in self._earlier.of(incoming.place, incoming.text)
            if not any(alike(one, mine) for mine in own)
        ]
        if incoming.quoted is not None or own:
            # Whoever quotes or sends something means that, and a file at most besides.
            earlier = [one for one in earlier if isinstance(one, Attachment) and one.kind == "file"]
        if not earlier:
            return incoming
        return replace(
            incoming,
            files=(*incoming.files, *(one for one in earlier if isinstance(one, Attachment))),
            forwarded=(
                *incoming.forwarded,
                *(one for one in earlier if isinstance(one, Forwarded)),
            ),
        )

    async def complete(self, incoming: Incoming) -> Incoming:
        """Open what is forwarded and fetch what is attached, both within `fetch_seconds`.

        What cannot be had says so in its place; nothing raises but a cancellation.
        """
        quoted = incoming.quoted
        if not (
            incoming.files or incoming.forwarded or (quoted and (quoted.files or quoted.forwarded))
        ):
            return incoming
        incoming = replace(
            incoming, files=_unlike(incoming.files), forwarded=_unlike(incoming.forwarded)
        )
        self._earlier.used(incoming.place, [*incoming.files, *incoming.forwarded])
        clock = asyncio.get_running_loop().time
        until = clock() + self._settings.fetch_seconds
        place = incoming.place

        async def opened(logs: tuple[Forwarded, ...]) -> tuple[Forwarded, ...]:
            seconds = max(0.1, until - clock())
            first, rest = logs[:LOGS_AT_ONCE], logs[LOGS_AT_ONCE:]
            found = [self._line.open_forwarded(place, log, seconds=seconds) for log in first]
            left = [replace(log, text=TOO_MANY_LOGS) for log in rest]
            return (*await asyncio.gather(*found), *left)

        forwarded = await opened(incoming.forwarded)
        files = list(incoming.files)
        if quoted is not None:
            quoted = replace(quoted, forwarded=await opened(quoted.forwarded))
        groups = [
            files,
            *([list(quoted.files)] if quoted else []),
            *(list(log.files) for log in forwarded),
            *(list(log.files) for log in (quoted.forwarded if quoted else ())),
        ]
        wanted = [one for group in groups for one in group]
        fetched = iter(
            await asyncio.gather(
                *(
                    self._fetched(place, one, until - clock(), number)
                    for number, one in enumerate(wanted)
                )
            )
        )
        done = [tuple(next(fetched) for _ in group) for group in groups]
        own = done.pop(0)
        of_quoted = done.pop(0) if quoted else ()
        forwarded = tuple(replace(log, files=done.pop(0)) for log in forwarded)
        if quoted is not None:
            logs = tuple(replace(log, files=done.pop(0)) for log in quoted.forwarded)
            quoted = replace(quoted, files=of_quoted, forwarded=logs)
        return replace(incoming, files=own, quoted=quoted, forwarded=forwarded)

    async def _fetched(
        self, place: Place, file: Attachment, seconds: float, number: int
    ) -> Attachment:
        if file.path is not None or file.problem:
            return file
        if number >= FILES_AT_ONCE:
            return replace(file, problem=TOO_MANY_FILES)
        limit = int(self._settings.file_mb * 2**20)
        if file.kind == "image":
            seconds = min(seconds, IMAGE_SECONDS)
        if file.size is not None and file.size > limit:
            return replace(file, problem=f"超过 {self._settings.file_mb:g} MB 的上限")
        try:
            async with asyncio.timeout(max(0.1, seconds)):
                content = await self._line.fetch(place, file, limit=limit, seconds=seconds)
            name = image_name(content) if file.kind == "image" else file.name
            path = await asyncio.to_thread(self._received.keep, place.user_id, name, content)
        except TimeoutError:
            return replace(file, problem=TIMED_OUT)
        except ToolError as error:
            logger.info(f"a file was not fetched: {error}")
            return replace(file, problem=error.sentence.rstrip("。"))
        return replace(file, path=path, size=len(content))
