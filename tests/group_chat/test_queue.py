"""Turns, the fair gate and limits, without any chat around them."""

from __future__ import annotations

import asyncio

import pytest

from plugins.group_chat.queue import ConversationQueue, FairGate, QueueFull, RateLimit, Ticket


async def settle() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


async def test_one_at_a_time_in_order_of_arrival():
    queue = ConversationQueue(5)
    first, second, third = (queue.join("a") for _ in range(3))
    assert [first.granted, second.granted, third.granted] == [True, False, False]
    first.leave()
    assert [second.granted, third.granted] == [True, False]
    second.leave()
    third.leave()
    assert len(queue) == 0


async def test_conversations_do_not_wait_for_each_other():
    queue = ConversationQueue(5)
    assert queue.join("a").granted
    assert queue.join("b").granted


async def test_the_line_is_bounded():
    queue = ConversationQueue(2)
    running = queue.join("a")
    waiting = [queue.join("a"), queue.join("a")]
    with pytest.raises(QueueFull) as full:
        queue.join("a")
    assert full.value.waiting == 2
    waiting[0].leave()
    queue.join("a")
    running.leave()
    assert waiting[1].granted


async def test_giving_up_while_waiting_lets_the_next_in():
    queue = ConversationQueue(5)
    first, second, third = (queue.join("a") for _ in range(3))
    second.leave()
    second.leave()
    first.leave()
    assert third.granted


async def test_a_cancelled_wait_still_has_to_leave_and_then_passes_the_turn_on():
    gate = FairGate(1)
    first, second, third = (gate.join("x") for _ in range(3))
    wait = asyncio.ensure_future(second.ready())
    await settle()
    wait.cancel()
    await settle()
    first.leave()
    assert second.granted
    assert not third.granted
    second.leave()
    assert third.granted


async def test_lanes_take_turns_at_the_gate():
    gate = FairGate(1)
    inside = gate.join("busy")
    line = {f"busy{n}": gate.join("busy") for n in range(4)}
    line |= {"other": gate.join("other"), "third": gate.join("third")}
    order = []
    while len(order) < len(line):
        inside.leave()
        name = next(name for name, t in line.items() if t.granted and name not in order)
        order.append(name)
        inside = line[name]
    assert order == ["busy0", "other", "third", "busy1", "busy2", "busy3"]


async def test_going_in_at_once_makes_the_others_wait():
    gate = FairGate(1)
    first = gate.join("a")
    resumed = gate.join("b", at_once=True)
    assert resumed.granted
    waiting = gate.join("c")
    first.leave()
    assert not waiting.granted
    resumed.leave()
    assert waiting.granted


async def test_a_wider_gate_lets_the_waiting_in():
    gate = FairGate(1)
    gate.join("a")
    waiting = gate.join("b")
    gate.resize(2)
    assert waiting.granted


def test_limits_count_a_sliding_minute_for_each_key_and_speak_once():
    now = [1000.0]
    limit = RateLimit(2, clock=lambda: now[0])
    assert [limit.allows("a") for _ in range(3)] == [True, True, False]
    assert limit.allows("b")
    assert [limit.should_tell("a"), limit.should_tell("a")] == [True, False]
    now[0] += 59
    assert not limit.allows("a")
    now[0] += 2
    assert limit.allows("a")
    assert limit.should_tell("a")


def test_limits_forget_those_who_are_quiet():
    now = [0.0]
    limit = RateLimit(1, clock=lambda: now[0])
    for number in range(4096):
        limit.allows(str(number))
    now[0] += 100
    limit.allows("late")
    assert len(limit._times) == 1


async def test_after_a_burst_lanes_are_let_in_evenly_whoever_came_first():
    gate = FairGate(4)
    tickets = [(lane, gate.join(lane)) for lane in ("a",) * 6 + ("b",) * 4 + ("c",) * 4]
    order: list[str] = []
    inside: list[Ticket] = []
    while len(order) < len(tickets):
        if inside:
            inside.pop(0).leave()
        for lane, ticket in tickets:
            if ticket.granted and not ticket.left and ticket not in inside:
                inside.append(ticket)
                order.append(lane)
    assert order[:4] == ["a"] * 4  # the gate was open
    assert order[4:10] == ["b", "c"] * 3
    assert sorted(order[10:]) == ["a", "a", "b", "c"]


async def test_who_joins_the_line_late_does_not_catch_up_with_the_others():
    gate = FairGate(1)
    inside = gate.join("a")
    waiting = [gate.join("a") for _ in range(10)]
    for ticket in waiting[:5]:
        inside.leave()
        assert ticket.granted
        inside = ticket
    late = [gate.join("b") for _ in range(5)]
    order = []
    for _ in range(6):
        inside.leave()
        inside = next(t for t in (*late, *waiting) if t.granted and not t.left)
        order.append("b" if inside in late else "a")
    assert order.count("a") >= 2
