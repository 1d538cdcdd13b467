"""What is owed survives the process, is known by its state, and ends."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from chathands.store.outbox import KEPT_SECONDS, OUTBOX_FILE, Kind, Outbox, OutboxRow, State


def row(row_id: str, *, created: float = 100.0, bot: str = "qq:1") -> OutboxRow:
    return OutboxRow(
        row_id, Kind.QUESTION, bot, created, created + 50, run_id="A7F3-09", data={"text": "\ud83d"}
    )


async def test_rows_are_there_after_reopening_in_order_and_by_account(tmp_path: Path):
    outbox = await Outbox.at(tmp_path)
    assert await outbox.put(row("b", created=2))
    assert await outbox.put(row("a", created=1))
    assert await outbox.put(row("c", created=3, bot="qq:2"))
    await outbox.mark("b", State.SENDING)
    await outbox.aclose()
    outbox = await Outbox.at(tmp_path)
    assert [one.id for one in await outbox.open()] == ["a", "b", "c"]
    assert [one.id for one in await outbox.open("qq:2")] == ["c"]
    assert (await outbox.open("qq:1"))[1] == replace(row("b", created=2), state=State.SENDING)
    await outbox.aclose()


async def test_a_known_id_is_not_stored_twice_even_when_it_is_over(tmp_path: Path):
    outbox = await Outbox.at(tmp_path)
    assert await outbox.put(row("a"))
    await outbox.mark("a", State.SENT)
    assert not await outbox.put(row("a"))
    assert await outbox.open() == []
    await outbox.aclose()


async def test_what_was_crossed_out_is_not_brought_back(tmp_path: Path):
    outbox = await Outbox.at(tmp_path)
    await outbox.put(row("a"))
    await outbox.remove("a")
    assert not await outbox.replace(row("a"))
    assert not await outbox.is_owed("a")
    assert await outbox.open() == []
    await outbox.aclose()


async def test_what_nobody_waits_for_is_dropped_and_given_and_old_ends_are_forgotten(
    tmp_path: Path,
):
    outbox = await Outbox.at(tmp_path)
    for name in ("late", "ambiguous", "sending"):
        await outbox.put(row(name))
    await outbox.mark("ambiguous", State.UNKNOWN)
    await outbox.mark("sending", State.SENDING)
    assert await outbox.expire(149) == []
    assert [one.id for one in await outbox.expire(150)] == ["late"]
    assert [one.id for one in await outbox.unknown()] == ["ambiguous"]
    await outbox.expire(100 + KEPT_SECONDS)
    assert await outbox.unknown() == []
    await outbox.aclose()


@pytest.mark.parametrize(
    "content", [b"", b"not a database, but long enough to be taken for one" * 9]
)
async def test_a_broken_file_is_moved_aside(tmp_path: Path, content: bytes):
    (tmp_path / OUTBOX_FILE).write_bytes(content)
    outbox = await Outbox.at(tmp_path)
    assert await outbox.put(row("a"))
    await outbox.aclose()
    aside = [name for name in os.listdir(tmp_path) if ".broken-" in name]
    assert len(aside) == bool(content)
