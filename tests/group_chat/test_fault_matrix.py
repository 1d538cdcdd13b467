"""Whatever breaks, and whenever: a question ends in exactly one reply, or in a documented silence.

Every fault meets a run at every moment of its life. Each answer of the model takes five seconds of
the virtual clock, the tool eight, so that a moment is a point in time.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from chathands.errors import UpstreamGarbage, UpstreamUnreachable
from chathands.settings import GroupSettings
from chathands.upstreams.scripted import HANG, Scripted
from plugins.group_chat.messages import Fate, Place
from plugins.group_chat.notices import Allowed, Joined, Recalled, Removed, Silenced
from tests.group_chat.kit import Chat, action, chatting
from tests.support.virtual_clock import real_time, virtual

THINKING = 5.0
SLOW_PUSH = action("push", robot="销售群", content="慢")
PUSH = action("push", robot="销售群", content="快")
HERE = ("qq", "10000", "700")
WAITING, UNACKNOWLEDGED = "while an approval waits", "while the reply is not acknowledged"


class Model(Scripted):
    """Plays the script of Q1, slowly; `instead` of an answer, once it is set, that happens."""

    def __init__(self, script: list[Any]) -> None:
        self.instead: Any = None
        self._script = list(script)
        super().__init__(self._next)

    def _next(self, request: Any) -> Any:
        if any("Q0" in message.content for message in request.messages[-1:]):
            return "答 Q0。"
        return self._script.pop(0) if self._script else "好。"

    def stream(self, request: Any, *, timeout: float) -> Any:
        stream, model = super().stream(request, timeout=timeout), self
        inner, begun = stream.__anext__, [False]

        class Slow:
            finish_reason = property(lambda _: stream.finish_reason)
            usage = property(lambda _: stream.usage)
            aclose = staticmethod(stream.aclose)

            def __aiter__(self) -> Any:
                return self

            async def __anext__(self) -> Any:
                if not begun[0]:
                    begun[0] = True
                    await asyncio.sleep(THINKING)
                    if isinstance(model.instead, Exception):
                        raise model.instead
                    if model.instead is HANG:
                        await asyncio.sleep(timeout)
                return await inner()

        return Slow()


@dataclass(frozen=True)
class Moment:
    """What the model says, when the run is there, and what is to be seen of it then: questions in
    work and waiting, pushes, approvals that wait, messages sent, requests to the model."""

    script: list[str]
    after: float
    seen: tuple[int, int, int, int, int, int]


MOMENTS = {
    "in the queue": Moment(["好。"], 2, (1, 1, 0, 0, 0, 1)),
    "while the model thinks": Moment(["好。"], 2, (1, 0, 0, 0, 0, 1)),
    "while a tool runs": Moment([SLOW_PUSH, "好。"], 8, (1, 0, 1, 0, 0, 1)),
    "behind a tool": Moment([SLOW_PUSH, "好。"], 15, (1, 0, 1, 0, 0, 2)),
    WAITING: Moment([PUSH, "好。"], 8, (0, 0, 0, 1, 1, 1)),
    UNACKNOWLEDGED: Moment(["好。"], 6, (1, 0, 0, 0, 1, 1)),
}
ACTED = ("while a tool runs", "behind a tool")
"""Something has happened by then that must be said."""


def model_of(chat: Chat) -> Model:
    assert isinstance(chat.model, Model)
    return chat.model


async def nothing(chat: Chat) -> None: ...


async def the_model_is_down(chat: Chat) -> None:
    model_of(chat).instead = UpstreamUnreachable("gone")


async def the_model_hangs(chat: Chat) -> None:
    model_of(chat).instead = HANG


async def the_model_answers_with_a_page(chat: Chat) -> None:
    model_of(chat).instead = UpstreamGarbage("<html>")


async def the_connection_is_dead_for_a_while(chat: Chat) -> None:
    chat.line.answers = False
    await asyncio.sleep(8)
    chat.line.answers = True
    chat.connected("qq", "10000")


async def a_send_is_refused(chat: Chat) -> None:
    chat.line.fates = [Fate.REFUSED]


async def every_send_is_refused(chat: Chat) -> None:
    chat.line.fates = [Fate.REFUSED] * 20


async def a_send_is_ambiguous(chat: Chat) -> None:
    chat.line.fates = [Fate.UNKNOWN]


async def the_question_is_recalled(chat: Chat) -> None:
    await chat.notice(Recalled("10000", "m2"))


async def the_asker_stops_it(chat: Chat) -> None:
    await chat.receive(chat.message("停"))


async def the_bot_is_muted_for_a_while(chat: Chat) -> None:
    await chat.notice(Silenced(*HERE))
    await asyncio.sleep(60)
    await chat.notice(Allowed(*HERE))


async def the_bot_is_removed(chat: Chat) -> None:
    await chat.notice(Removed(*HERE))
    await asyncio.sleep(60)
    await chat.notice(Joined(*HERE))


async def the_process_is_told_to_end(chat: Chat) -> None:
    await chat.say_goodbye()


async def the_process_is_killed(chat: Chat) -> None: ...


FAULTS: list[Callable[[Chat], Coroutine[Any, Any, None]]] = [
    nothing,
    the_model_is_down,
    the_model_hangs,
    the_model_answers_with_a_page,
    the_connection_is_dead_for_a_while,
    a_send_is_refused,
    every_send_is_refused,
    a_send_is_ambiguous,
    the_question_is_recalled,
    the_asker_stops_it,
    the_bot_is_muted_for_a_while,
    the_bot_is_removed,
    the_process_is_told_to_end,
    the_process_is_killed,
]


def documented_silence(moment: str, fault: Any) -> bool:
    """The silences that docs/onebot.md names."""
    if fault is every_send_is_refused:
        return True
    if moment == UNACKNOWLEDGED:
        return False  # it was shown already
    unnoticed = fault is the_question_is_recalled and moment not in (*ACTED, WAITING)
    return unnoticed or fault is the_bot_is_removed


def shown_to_the_asker(chat: Chat) -> list[str]:
    """Final replies to the person; not what asks for an approval, and no answer to 停 itself."""
    return [
        message.text
        for message, fate in chat.line.sent_as
        if fate in (Fate.SENT, Fate.UNKNOWN)
        and message.place == Place(*HERE, "1")
        and message.quote != "m3"
        and "待确认" not in message.text
        and "等待确认" not in message.text
    ]


@pytest.mark.parametrize(
    ("moment", "fault"),
    list(product(MOMENTS, FAULTS)),
    ids=lambda value: getattr(value, "__name__", value).replace(" ", "_"),
)
@virtual
async def test_every_fault_at_every_moment_ends_in_one_reply(tmp_path: Path, moment: str, fault):
    when = MOMENTS[moment]
    settings: dict[str, Any] = {
        "group": GroupSettings(session="group"),
        "approval": "outward" if moment == WAITING else "never",
    }
    image, shown = None, []
    async with chatting(tmp_path / "1", [], upstream=Model(when.script), **settings) as chat:
        if moment == "in the queue":
            chat.says("Q0", user="2")
        else:
            chat.message("nobody hears this")
        asked = chat.says("Q1")
        if moment == UNACKNOWLEDGED:
            chat.line.acknowledges = asyncio.Event()
        await asyncio.sleep(when.after)
        seen = (len(chat.pushed), len(chat.agent.waiting()), len(chat.line.sent))
        assert (*chat.commands.busy(), *seen, len(chat.model.requests)) == when.seen
        if fault is the_process_is_killed:
            shown = shown_to_the_asker(chat)
            with real_time():
                image = chat.crash_image(tmp_path / "2")
        breaking = asyncio.ensure_future(fault(chat))
        await asyncio.sleep(0.2)
        if chat.line.acknowledges is not None:
            chat.line.acknowledges.set()
        await breaking
        if fault is the_process_is_told_to_end:
            shown = shown_to_the_asker(chat)
            with real_time():
                image = chat.crash_image(tmp_path / "2")
        elif image is None:
            await asked
            await asyncio.sleep(200)  # approvals expire, connections and mutes end
            shown = shown_to_the_asker(chat)
    if image is not None:
        async with chatting(image, [], upstream=Model([]), **settings) as after:
            await asyncio.sleep(200)
            shown += shown_to_the_asker(after)
    silent = documented_silence(moment, fault)
    assert len(shown) == (0 if silent else 1), shown
