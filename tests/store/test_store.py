"""The state directory as a whole: files, versions, damage, closing."""

import os
import sqlite3
import stat

import pytest

from chathands.conversation import Message
from chathands.errors import StoreError
from chathands.store import STATE_FILE, TRACE_FILE, open_store


async def test_only_the_owner_can_read_what_is_stored(tmp_path):
    async with await open_store(tmp_path / "state") as store:
        await store.conversations.append("c", [Message.user("秘密")])
        modes = {
            path.name: stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "state").iterdir()
        }
        directory = stat.S_IMODE((tmp_path / "state").stat().st_mode)
    if os.name == "posix":
        assert directory == 0o700
        assert set(modes.values()) == {0o600}
    assert {STATE_FILE, TRACE_FILE, f"{STATE_FILE}-wal"} <= set(modes)


async def test_what_was_stored_is_there_after_reopening(tmp_path):
    for _ in range(2):
        async with await open_store(tmp_path) as store:
            await store.conversations.append("c", [Message.user("又一次")])
    async with await open_store(tmp_path) as store:
        assert len(await store.conversations.load("c", 10)) == 2


async def test_a_file_that_is_no_database_is_named_in_a_sentence(tmp_path):
    (tmp_path / STATE_FILE).write_bytes(b"this is not a database, it only lies here " * 50)
    with pytest.raises(StoreError) as caught:
        await open_store(tmp_path)
    assert STATE_FILE in caught.value.sentence
    assert "损坏" in caught.value.sentence
    assert str(tmp_path) not in caught.value.sentence


async def test_damage_inside_the_file_shows_as_a_store_error(tmp_path):
    async with await open_store(tmp_path) as store:
        for number in range(30):
            await store.conversations.append("c", [Message.user(f"{number} " + "长" * 3000)])
    path = tmp_path / STATE_FILE
    data = bytearray(path.read_bytes())
    data[3 * 4096 :] = b"\xaa" * (len(data) - 3 * 4096)
    path.write_bytes(data)
    with pytest.raises(StoreError):
        async with await open_store(tmp_path) as store:
            await store.conversations.load("c", 50)


async def test_a_directory_that_is_a_file_is_a_store_error(tmp_path):
    (tmp_path / "state").write_text("x")
    with pytest.raises(StoreError):
        await open_store(tmp_path / "state")


async def test_a_newer_program_s_state_is_left_alone(tmp_path):
    async with await open_store(tmp_path):
        pass
    with sqlite3.connect(tmp_path / STATE_FILE) as connection:
        connection.execute("UPDATE schema_version SET version = 99")
    connection.close()
    with pytest.raises(StoreError) as caught:
        await open_store(tmp_path)
    assert "升级" in caught.value.sentence


async def test_a_broken_trace_file_is_moved_aside(tmp_path):
    (tmp_path / TRACE_FILE).write_bytes(b"no database at all " * 100)
    async with await open_store(tmp_path) as store:
        store.traces.record({"ref": "A7F3-09", "started": 1e12})
        assert (await store.traces.last())["ref"] == "A7F3-09"
    assert list(tmp_path.glob(f"{TRACE_FILE}.broken-*"))


async def test_a_closed_store_says_so(tmp_path):
    store = await open_store(tmp_path)
    await store.aclose()
    await store.aclose()
    with pytest.raises(StoreError):
        await store.conversations.load("c", 1)
