"""Tickets: single use, one decision, numbers that differ, and two processes on one file."""

from __future__ import annotations

import asyncio
import itertools

import pytest

from chathands.store.db import Database
from chathands.store.idempotency import SCHEMA as KEYS_SCHEMA
from chathands.store.idempotency import IdempotencyKeys, TooManyKeys
from chathands.store.tickets import (
    FIRST_NUMBER,
    KEPT_SECONDS,
    LAST_NUMBER,
    SCHEMA,
    TAKING_SECONDS,
    Tickets,
)


@pytest.fixture
async def files(tmp_path):
    """Two connections to one file, as two processes have."""
    opened = [await Database.open(tmp_path / "s.db", ((*SCHEMA, *KEYS_SCHEMA),)) for _ in "ab"]
    yield opened
    for one in opened:
        await one.aclose()


class Clock:
    now = 1_000_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock():
    return Clock()


_ids = itertools.count()


async def put(tickets: Tickets, *, seconds: float = 60, **about):
    about = {"platform": "http", "asker": "ci", "call_hash": "h"} | about
    return await tickets.put(f"t{next(_ids)}", seconds=seconds, data={"shown": "内容"}, **about)


async def test_a_ticket_is_seen_decided_and_used_once_from_either_process(files, clock):
    here, there = (Tickets(file, wall=clock) for file in files)
    ticket = await put(here)
    assert [row.id for row in await there.waiting()] == [ticket.id]
    both = await asyncio.gather(
        here.decide(ticket.id, approve=True, by="9001"),
        there.decide(ticket.id, approve=False, by="9002"),
    )
    decided = [row for row in both if row is not None]
    assert len(decided) == 1
    if decided[0].state == "no":
        assert await here.take(ticket.id) is None
        return
    taken = await asyncio.gather(here.take(ticket.id), there.take(ticket.id))
    assert [row is not None for row in taken].count(True) == 1
    again = await there.get(ticket.id)
    assert again is not None
    assert (again.state, again.decided_by) == ("used", "9001")


async def test_an_undecided_or_denied_or_expired_ticket_is_not_taken(files, clock):
    tickets = Tickets(files[0], wall=clock)
    waiting, denied, late = [await put(tickets) for _ in range(3)]
    await tickets.decide(denied.id, approve=False, by="9001")
    await tickets.decide(late.id, approve=True, by="9001")
    clock.now += 60 + TAKING_SECONDS
    assert [await tickets.take(one.id) for one in (waiting, denied, late)] == [None] * 3
    assert await tickets.decide(waiting.id, approve=True, by="9001") is None
    assert await tickets.waiting() == []
    ended = await tickets.settle(("http", "mcp"))
    assert {row.id for row in ended} == {waiting.id, denied.id, late.id}
    assert await tickets.settle(("http", "mcp")) == []


async def test_a_yes_in_the_last_second_leaves_time_to_use_it(files, clock):
    tickets = Tickets(files[0], wall=clock)
    ticket = await put(tickets)
    clock.now += 59.5
    decided = await tickets.decide(ticket.id, approve=True, by="9001")
    assert decided is not None
    assert decided.expires_at == clock.now + TAKING_SECONDS


async def test_numbers_go_on_and_round_and_pass_over_those_that_are_kept(files, clock):
    tickets = Tickets(files[0], wall=clock)
    first, second = await put(tickets), await put(tickets)
    assert (first.number, second.number) == (FIRST_NUMBER, FIRST_NUMBER + 1)
    await files[0].query("UPDATE tickets SET number = ? WHERE id = ?", [LAST_NUMBER, second.id])
    assert (await put(tickets)).number == FIRST_NUMBER + 1
    clock.now += KEPT_SECONDS + 1
    assert (await put(tickets)).number == FIRST_NUMBER
    assert await tickets.get(first.id) is None


async def test_a_key_is_new_once_and_keeps_its_answer(files, clock):
    here, there = (IdempotencyKeys(file, wall=clock) for file in files)
    assert await here.begin("ci", "k", "r1", "p1") is None
    running = await there.begin("ci", "k", "r1", "p2")
    assert running is not None
    assert (running.owner, running.code) == ("p1", None)
    assert await there.begin("other", "k", "r2", "p2") is None
    await here.finish("ci", "k", 200, b"{}")
    done = await there.begin("ci", "k", "r3", "p2")
    assert done is not None
    assert (done.request, done.code, done.body) == ("r1", 200, b"{}")
    await here.forget("ci", "k")
    assert await there.begin("ci", "k", "r3", "p2") is None
    clock.now += 24 * 3600 + 1
    assert await there.begin("ci", "k", "r4", "p2") is None


async def test_a_caller_with_too_many_keys_is_told(files, clock, monkeypatch):
    monkeypatch.setattr("chathands.store.idempotency.MOST_PER_CALLER", 2)
    keys = IdempotencyKeys(files[0], wall=clock)
    for key in ("a", "b"):
        assert await keys.begin("ci", key, "r", "p") is None
    with pytest.raises(TooManyKeys):
        await keys.begin("ci", "c", "r", "p")
    assert await keys.begin("ci", "a", "r", "p") is not None
    assert await keys.begin("other", "c", "r", "p") is None
