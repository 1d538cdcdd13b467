import time

import pytest

from chathands.store import Traces, open_store, traces
from chathands.store.db import Database


@pytest.fixture
async def store(tmp_path):
    async with await open_store(tmp_path) as opened:
        yield opened


def trace(ref: str, started: float | None = None, **fields):
    return {"ref": ref, "started": time.time() if started is None else started, **fields}


async def test_recording_returns_at_once_and_reading_sees_it(store):
    store.traces.record(trace("A7F3-09", question="天气？", outcome="answered", verdict="ok"))
    last = await store.traces.last()
    assert last["question"] == "天气？"
    assert await store.traces.get("A7F3-09") == last


async def test_there_is_none_at_first(store):
    assert await store.traces.last() is None
    assert await store.traces.get("A7F3-09") is None
    assert await store.traces.list(5) == []


async def test_a_reference_may_be_typed_carelessly(store):
    store.traces.record(trace("A0F1-09"))
    assert (await store.traces.get(" aof1-o9 "))["ref"] == "A0F1-09"


async def test_the_newest_come_first(store):
    for number in range(4):
        store.traces.record(trace(f"AAAA-0{number}", question=str(number), verdict="ok"))
    lines = await store.traces.list(2)
    assert [line.question for line in lines] == ["3", "2"]
    assert lines[0].verdict == "ok"


async def test_a_run_that_went_on_replaces_its_trace(store):
    store.traces.record(trace("AAAA-01", 5e9, outcome="suspended"))
    store.traces.record(trace("AAAA-01", 5e9, outcome="answered"))
    assert [line.outcome for line in await store.traces.list()] == ["answered"]


async def test_what_is_not_yet_written_is_written_at_closing(tmp_path):
    store = await open_store(tmp_path)
    for number in range(20):
        store.traces.record(trace(f"AAAA-{number:02}"))
    await store.aclose()
    async with await open_store(tmp_path) as again:
        assert len(await again.traces.list(50)) == 20


async def test_secrets_are_taken_out_of_keys_and_values(tmp_path):
    def redact(text: str) -> str:
        return text.replace("hunter2", "***")

    async with await open_store(tmp_path, redact=redact) as store:
        store.traces.record(
            trace("AAAA-01", question="hunter2", deep=[{"hunter2": ("x hunter2",)}, 5])
        )
        last = await store.traces.last()
        (line,) = await store.traces.list()
    assert "hunter2" not in str(last) + str(line)
    assert last["deep"] == [{"***": ["x ***"]}, 5]
    assert b"hunter2" not in (tmp_path / "traces.db").read_bytes()


async def test_a_trace_that_is_not_json_is_logged_and_the_next_one_written(store, caplog):
    store.traces.record(trace("AAAA-01", bad=object()))
    store.traces.record(trace("AAAA-02", question="\ud83d"))
    assert (await store.traces.last())["ref"] == "AAAA-02"
    assert "AAAA-01" in caplog.text


async def test_old_ones_leave(store):
    store.traces.record(trace("AAAA-01", time.time() - 8 * 86400))
    store.traces.record(trace("AAAA-02"))
    await store.traces.flush()
    await store.traces.clean()
    assert [line.ref for line in await store.traces.list()] == ["AAAA-02"]


async def test_the_oldest_leave_when_the_file_is_too_big(tmp_path):
    database = await Database.open(tmp_path / "t.db", (traces.SCHEMA,))
    few = Traces(database, days=7, megabytes=0.01)
    for number in range(6):
        # what does not compress, so that the sizes are what they look like
        noise = "".join(chr(0x4E00 + hash((number, i)) % 20000) for i in range(1500))
        few.record(trace(f"AAAA-0{number}", noise=noise))
    await few.flush()
    await few.clean()
    kept = [line.ref for line in await few.list()]
    await few.aclose()
    assert kept == ["AAAA-05", "AAAA-04"] or kept == ["AAAA-05", "AAAA-04", "AAAA-03"]


async def test_a_full_queue_drops_instead_of_waiting(store, caplog):
    for number in range(traces.QUEUE_LENGTH + 3):
        store.traces.record(trace(f"AAAA-{number}"))
    assert "keep up" in caplog.text
    assert len(await store.traces.list(1000)) == traces.QUEUE_LENGTH


async def test_recording_after_closing_is_only_logged(tmp_path, caplog):
    store = await open_store(tmp_path)
    await store.aclose()
    store.traces.record(trace("AAAA-01"))
    assert "AAAA-01" in caplog.text
