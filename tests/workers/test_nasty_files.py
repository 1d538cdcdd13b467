"""Every file of the folder, through a real child: the right answer, or the right sentence."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from chathands.errors import WorkerRejected
from chathands.settings import WorkerSettings
from chathands.workers.pool import WorkerPool
from tests.workers.nasty import Nasty, files, payload, write_all

FILES = files()


@pytest.fixture(scope="module")
async def child() -> AsyncIterator[WorkerPool]:
    pool = WorkerPool(WorkerSettings())
    yield pool
    await pool.aclose()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("nasty")
    write_all(directory)
    return directory


async def answer(pool: WorkerPool, each: Nasty, folder: Path) -> dict[str, Any]:
    function = "read_table" if each.sums is None else "aggregate_table"
    with (folder / each.name).open("rb") as file:
        return await pool.run(function, payload(each), file=file.fileno())


@pytest.mark.parametrize("each", FILES, ids=lambda each: each.name)
async def test_each_file_gets_its_right_answer(
    child: WorkerPool, folder: Path, each: Nasty
) -> None:
    if each.rows is None and each.total is None and each.sums is None:
        with pytest.raises(WorkerRejected) as refused:
            await answer(child, each, folder)
        assert each.says in refused.value.sentence
        assert refused.value.sentence.endswith("。")
        return
    result = await answer(child, each, folder)
    if each.columns is not None:
        assert result["columns"] == list(each.columns)
    if each.rows is not None:
        assert result["rows"] == [list(row) for row in each.rows]
    if each.total is not None:
        assert result["total_rows"] == each.total
    if each.sums is not None:
        assert result["rows"] == [list(row) for row in each.sums]
    assert each.says in "；".join(result["notes"])


def test_every_kind_of_file_is_there_under_a_name_of_its_own() -> None:
    names = [each.name for each in FILES]
    assert len(names) == len(set(names)) > 40
