"""Files go into a child and come out of one, within its limits; the bot's process stays small."""

from __future__ import annotations

import os
import tempfile

import pytest

from chathands.errors import WorkerLimit
from chathands.settings import WorkerSettings
from chathands.workers.pool import WorkerPool
from chathands.workers.protocol import BLOB_CAP
from tests.workers.test_hostile import resident_mb
from tests.workers.test_pool import limits_of


@pytest.mark.parametrize("by_descriptor", [True, False])
async def test_two_files_at_once_are_handed_over_whole(by_descriptor: bool) -> None:
    pool = WorkerPool(WorkerSettings(), pass_descriptors=by_descriptor)
    with tempfile.TemporaryFile() as one, tempfile.TemporaryFile() as two:
        one.write(b"a" * 300_000)
        two.write(b"b" * 7)
        one.flush()
        two.flush()
        files = [one.fileno(), two.fileno()]
        got = await pool.run("probe", {"try": "size"}, file=files)
        os.fstat(files[0])  # still the caller's
    await pool.aclose()
    assert got == {"size": 300_007}


async def test_what_a_child_makes_comes_out_whole_and_no_more_than_may_be_sent(
    pool: WorkerPool,
) -> None:
    made = await pool.run("probe", {"try": "blob", "value": BLOB_CAP})
    assert len(made["blob"]) == BLOB_CAP
    with pytest.raises(WorkerLimit, match="frame cap"):
        await pool.run("probe", {"try": "blob", "value": BLOB_CAP + 1})
    assert (await pool.run("probe", {"try": "echo", "value": 1}))["echo"] == 1


async def test_a_large_workbook_is_made_in_the_child_and_the_parent_stays_small(
    pool: WorkerPool,
) -> None:
    rows = [[n, f"第{n}行", n * 1.5, "备注" * 5] for n in range(5_000)]
    payload = {"title": "大", "columns": ["号", "名", "数", "注"], "rows": rows}
    before = resident_mb()
    made = await pool.run("write_rows", payload)
    assert made["blob"].startswith(b"PK")
    assert resident_mb() - before < 30
    assert limits_of(pool.pids[0])["Max file size"] == str(1024 * 1024)  # back to what it was
