"""Files that kill or mislead readers, through a real child: the parent lives, with a sentence."""

from __future__ import annotations

import random
import resource
import tempfile
from pathlib import Path
from typing import Any

import pytest

from chathands.errors import WorkerLimit, WorkerRejected
from chathands.workers.pool import WorkerPool
from tests.workers import books

PAYLOAD = {"name": "t.xlsx", "sheet": None, "columns": [], "limit": 30, "hidden": False}


async def read(pool: WorkerPool, data: bytes, name: str = "t.xlsx") -> dict[str, Any]:
    with tempfile.TemporaryFile() as file:
        file.write(data)
        file.flush()
        return await pool.run("read_table", PAYLOAD | {"name": name}, file=file.fileno())


def resident_mb() -> float:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / 1024 / 1024


async def test_a_cell_in_the_far_corner_kills_the_child_only(pool: WorkerPool) -> None:
    assert (await read(pool, books.orders(3)))["total_rows"] == 3
    with pytest.raises(WorkerLimit) as limit:
        await read(pool, books.lying_far_cell())
    assert "没有读取" in limit.value.sentence
    assert (await read(pool, books.orders(3)))["total_rows"] == 3


async def test_a_cell_in_the_far_corner_is_named_and_costs_nothing(pool: WorkerPool) -> None:
    await read(pool, books.orders(3))
    pids = pool.pids
    with pytest.raises(WorkerRejected, match="XFD1048576") as refused:
        await read(pool, books.far_cell())
    assert "删掉远处的行和列" in refused.value.sentence
    assert pool.pids == pids


async def test_the_parent_does_not_grow_with_hostile_workbooks(pool: WorkerPool) -> None:
    data = [books.far_cell(), books.lying_far_cell(), books.stray_cell(), books.zip_bomb()]
    await read(pool, books.orders(3))
    before = resident_mb()
    for each in data:
        try:
            await read(pool, each)
        except (WorkerLimit, WorkerRejected):
            continue
    assert resident_mb() - before < 20


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "空的"),
        (books.zip_bomb(), "解压后太大"),
        (books.orders(3)[:-200], "损坏"),
        (books.damaged(books.orders(300)), "损坏"),
        (b"PK\x03\x04" + b"\x00" * 100, "损坏"),
        (b"<html><body><table><tr><td>1</td></tr></table></body></html>", "网页"),
        (b"\xef\xbb\xbf\r\n<!DOCTYPE html><table>", "网页"),
        (b'<?xml version="1.0"?><Workbook xmlns="urn:x"/>', "XML"),
        ((books.FILES / "password.xlsx").read_bytes(), "密码"),
        (books.ole_stand_in("EncryptedPackage"), "密码"),
        (books.ole_stand_in("WordDocument"), "Word"),
        (books.ole_stand_in("Workbook"), "损坏"),
        (b"%PDF-1.7 ...", "PDF"),
        (b"\x89PNG\r\n\x1a\n....", "图片"),
    ],
)
async def test_each_kind_of_bad_file_gets_its_own_sentence(
    pool: WorkerPool, data: bytes, said: str
) -> None:
    with pytest.raises(WorkerRejected) as refused:
        await read(pool, data)
    assert said in refused.value.sentence
    assert "Traceback" not in refused.value.sentence


@pytest.mark.parametrize(
    ("member", "said"), [("word/document.xml", "Word"), ("a/photo.jpg", "压缩包")]
)
async def test_other_archives_are_told_apart(pool: WorkerPool, member: str, said: str) -> None:
    with pytest.raises(WorkerRejected) as refused:
        await read(pool, books.archive(member))
    assert said in refused.value.sentence


async def test_lock_files_are_refused_by_name(pool: WorkerPool) -> None:
    with pytest.raises(WorkerRejected) as refused:
        await read(pool, books.orders(3), "sales/~$09.xlsx")
    assert "~$" in refused.value.sentence


async def test_damaged_bytes_anywhere_give_a_table_or_a_sentence(pool: WorkerPool) -> None:
    chance = random.Random(7)
    whole = books.orders(50)
    answers = 0
    for _ in range(40):
        data = bytearray(whole)
        for _ in range(chance.randint(1, 6)):
            data[chance.randrange(len(data))] = chance.randrange(256)
        try:
            answers += bool((await read(pool, bytes(data)))["rows"])
        except (WorkerRejected, WorkerLimit) as error:
            answers += error.sentence.endswith("。")
    assert answers == 40
