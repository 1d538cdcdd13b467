"""A workbook of 5 KB that aborts the process that reads it: the child dies, the bot does not."""

from __future__ import annotations

import sys
from pathlib import Path

import openpyxl
import pytest

from tests.black_box.harness import Ring, action

LINUX = sys.platform == "linux"


def far_cell_bomb(path: Path) -> None:
    """One value in the last cell there can be: a dense reader wants 17 billion cells."""
    book = openpyxl.Workbook()
    sheet = book.active
    assert sheet is not None
    sheet["A1"] = "x"
    sheet["XFD1048576"] = "boom"
    book.save(path)


@pytest.mark.skipif(not LINUX, reason="limits and sizes are read from /proc")
async def test_the_bot_stays_small_and_its_child_is_limited(ring: Ring, fresh):
    group, user = fresh(), fresh()
    shared = ring.bot.directory / "data" / "shared"
    far_cell_bomb(shared / "bomb.xlsx")
    assert (shared / "bomb.xlsx").stat().st_size < 8_000
    ring.brain.plays("读炸弹", action("read_excel_data", file_path="bomb.xlsx"), "这个文件读不了。")

    await ring.read_a_workbook(group, user)
    before = ring.bot.rss_mb()
    question = await ring.ask(group, user, "@bot 读炸弹")
    assert await ring.reply(question) == "这个文件读不了。"
    told = ring.brain.contents("读炸弹")
    assert "status=failed" in told
    assert "Traceback" not in told

    await ring.read_a_workbook(group, fresh())
    assert ring.bot.rss_mb() - before < 20

    workers = ring.bot.limits_of_workers()
    assert workers
    for limits in workers:
        assert int(limits["Max address space"]) <= 1024 * 1024 * 1024
        assert int(limits["Max cpu time"]) < 10_000
        assert int(limits["Max core file size"]) == 0
