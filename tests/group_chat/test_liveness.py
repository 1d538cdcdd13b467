"""What the farewell waits for: everything a peer had sent before it, and no peer for ever."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest
from nonebot.adapters.onebot.v11 import ApiNotAvailable

from plugins.group_chat import onebot_v11_liveness
from plugins.group_chat.onebot_v11_liveness import Liveness
from tests.support.virtual_clock import virtual


class Peer:
    """A bot whose peer answers after `seconds`, sends an event first, or is gone."""

    def __init__(self, seconds: float = 0.1, *, gone: bool = False) -> None:
        self.self_id = "10000"
        self.adapter = SimpleNamespace(connections={"10000": object()}, tasks=set())
        self.handled: list[str] = []
        self._seconds, self._gone = seconds, gone

    async def call_api(self, api: str, **data: Any) -> dict[str, Any]:
        assert api == "get_status"
        if self._gone:
            raise ApiNotAvailable
        await asyncio.sleep(self._seconds)
        self.adapter.tasks.add(asyncio.ensure_future(self.handle_event("last", 0.2)))
        return {}

    async def handle_event(self, event: str, seconds: float) -> None:
        await asyncio.sleep(seconds)
        self.handled.append(event)


async def client_connection() -> None:
    await asyncio.Event().wait()


@pytest.mark.parametrize(
    ("peer", "handled", "seconds"),
    [
        (Peer(), ["last", "before"], 0.4),
        (Peer(gone=True), ["before"], 0.4),
        (Peer(seconds=60), ["before"], 1.0),
    ],
    ids=["answers", "gone", "stuck"],
)
@virtual
async def test_the_last_events_are_dealt_with(monkeypatch, peer: Peer, handled, seconds):
    monkeypatch.setattr(onebot_v11_liveness, "get_bots", lambda: {"10000": peer})
    forever = asyncio.ensure_future(client_connection())
    peer.adapter.tasks |= {forever, asyncio.ensure_future(peer.handle_event("before", 0.4))}
    clock = asyncio.get_running_loop().time
    began = clock()
    await Liveness().drained(1.0)
    assert peer.handled == handled
    assert clock() - began == pytest.approx(seconds, abs=0.01)
    assert not forever.done()
    forever.cancel()
