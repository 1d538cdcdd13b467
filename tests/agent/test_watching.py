"""Changes of files are noticed, however they are made, and told once they have come to rest."""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from chathands.agent.watching import Watcher, look_at


class Told:
    """What a watcher calls; `sees` waits until a call found what was to be found."""

    def __init__(self) -> None:
        self.count = 0
        self._news = asyncio.Condition()

    async def __call__(self) -> None:
        async with self._news:
            self.count += 1
            self._news.notify_all()

    async def until(self, enough: Callable[[], bool], *, within: float = 10) -> None:
        async with asyncio.timeout(within), self._news:
            await self._news.wait_for(enough)

    async def once(self) -> None:
        await self.until(lambda: self.count > 0)
        self.count = 0


@asynccontextmanager
async def watched(path: Path) -> AsyncIterator[Told]:
    told, watcher = Told(), Watcher(look_seconds=0.2)
    watcher.add(path, told)
    watcher.start()
    try:
        yield told
    finally:
        await watcher.aclose()


@pytest.fixture
def tools(tmp_path: Path) -> Path:
    directory = tmp_path / "tools"
    (directory / "pack" / "deep").mkdir(parents=True)
    (directory / "a.py").write_text("a = 1\n")
    (directory / "pack" / "__init__.py").write_text("")
    (directory / "pack" / "deep" / "_help.py").write_text("x = 1\n")
    return directory


def replaced_by_a_temporary_file(tools: Path) -> None:
    (tools / ".a.py.swp").write_text("a = 2\n")
    (tools / ".a.py.swp").replace(tools / "a.py")


def kept_as_a_backup(tools: Path) -> None:
    (tools / "a.py").rename(tools / "a.py~")
    (tools / "a.py").write_text("a = 2\n")
    (tools / "a.py~").unlink()


def written_with_its_old_time_and_length(tools: Path) -> None:
    before = (tools / "a.py").stat()
    (tools / "a.py").write_text("a = 2\n")
    os.utime(tools / "a.py", ns=(before.st_atime_ns, before.st_mtime_ns))


def whole_directory_replaced(tools: Path) -> None:
    tools.rename(tools.parent / "old")
    tools.mkdir()
    (tools / "a.py").write_text("a = 1\n")


def removed_and_there_again(tools: Path) -> None:
    shutil.rmtree(tools)
    tools.mkdir()
    (tools / "b.py").write_text("b = 1\n")


CHANGES = {
    "written": lambda tools: (tools / "a.py").write_text("a = 2\n"),
    "new": lambda tools: (tools / "b.py").write_text("b = 1\n"),
    "new package": lambda tools: shutil.copytree(tools / "pack", tools / "pack2"),
    "nested helper": lambda tools: (tools / "pack" / "deep" / "_help.py").write_text("x = 2\n"),
    "temporary file": replaced_by_a_temporary_file,
    "backup": kept_as_a_backup,
    "same time": written_with_its_old_time_and_length,
    "deleted": lambda tools: (tools / "a.py").unlink(),
    "renamed": lambda tools: (tools / "a.py").rename(tools / "z.py"),
    "package deleted": lambda tools: shutil.rmtree(tools / "pack"),
    "directory deleted": shutil.rmtree,
    "directory replaced": whole_directory_replaced,
    "directory renewed": removed_and_there_again,
}


@pytest.mark.parametrize("how", CHANGES)
async def test_a_change_is_noticed(tools: Path, how: str):
    async with watched(tools) as told:
        CHANGES[how](tools)
        await told.once()


async def test_a_directory_that_comes_later_is_watched_from_then_on(tmp_path: Path):
    tools = tmp_path / "later" / "tools"
    async with watched(tools) as told:
        tools.mkdir(parents=True)
        (tools / "a.py").write_text("a = 1\n")
        await told.once()
        (tools / "a.py").write_text("a = 2\n")
        await told.once()


async def test_a_replaced_directory_is_watched_on(tools: Path):
    async with watched(tools) as told:
        whole_directory_replaced(tools)
        await told.once()
        (tools / "a.py").write_text("a = 3\n")
        await told.once()


async def test_what_a_link_points_to_counts(tmp_path: Path, tools: Path):
    elsewhere = tmp_path / "elsewhere"
    (elsewhere / "pack").mkdir(parents=True)
    (elsewhere / "one.py").write_text("x = 1\n")
    (elsewhere / "pack" / "__init__.py").write_text("x = 1\n")
    (tools / "one.py").symlink_to(elsewhere / "one.py")
    (tools / "linked").symlink_to(elsewhere / "pack")
    (tools / "loop").symlink_to(tools)
    link = tmp_path / "current"
    link.symlink_to(tools)
    async with watched(link) as told:
        (elsewhere / "one.py").write_text("x = 2\n")
        await told.once()
        (elsewhere / "pack" / "__init__.py").write_text("x = 2\n")
        await told.once()
        link.unlink()
        link.symlink_to(elsewhere)
        await told.once()


async def test_many_quick_saves_are_few_calls_and_the_last_one_is_seen(tools: Path):
    seen: list[str] = []
    watcher, told = Watcher(), Told()

    async def read() -> None:
        seen.append((tools / "a.py").read_text())
        await told()

    watcher.add(tools, read)
    watcher.start()
    for number in range(60):
        (tools / "a.py").write_text(f"a = {number}\n")
        await asyncio.to_thread(os.sync) if number % 20 == 0 else await asyncio.sleep(0)
    await told.until(lambda: seen[-1:] == ["a = 59\n"])
    await watcher.aclose()
    assert len(seen) <= 3


async def test_other_files_and_what_did_not_really_change_say_nothing(tools: Path):
    async with watched(tools) as told:
        (tools / "notes.txt").write_text("no tool")
        (tools / "__pycache__").mkdir()
        (tools / "__pycache__" / "a.cpython-311.pyc").write_bytes(b"")
        (tools / ".hidden.py").write_text("")
        (tools / "a.py").write_text("a = 2\n")
        await told.until(lambda: told.count > 0)
        assert told.count == 1


async def test_a_single_file_is_watched_before_it_is_there_and_its_neighbours_are_not(
    tmp_path: Path,
):
    file = tmp_path / "tools.toml"
    async with watched(file) as told:
        (tmp_path / "other.toml").write_text("")
        file.write_text("")
        await told.once()
        (tmp_path / "new").write_text("approval = 'always'\n")
        (tmp_path / "new").replace(file)
        await told.once()
        file.unlink()
        await told.once()


async def test_what_is_done_about_a_change_may_fail_and_take_its_time(tools: Path, caplog):
    watcher, told, toml_told = Watcher(look_seconds=0.2), Told(), Told()
    begun, go_on = asyncio.Event(), asyncio.Event()
    failed = asyncio.Event()

    async def changed() -> None:
        if not failed.is_set():
            failed.set()
            raise RuntimeError("the first time")
        begun.set()
        await go_on.wait()
        await told()

    watcher.add(tools, changed)
    watcher.start()
    watcher.add(tools.parent / "tools.toml", toml_told)  # also when it goes already
    (tools / "a.py").write_text("a = 2\n")
    await asyncio.wait_for(failed.wait(), 10)
    (tools / "a.py").write_text("a = 3\n")
    await asyncio.wait_for(begun.wait(), 10)
    # While it works: another subject is seen to, and what changes meanwhile is not lost.
    (tools.parent / "tools.toml").write_text("")
    await toml_told.once()
    (tools / "a.py").write_text("a = 4\n")
    go_on.set()
    await told.until(lambda: told.count == 2)
    await watcher.aclose()
    assert "the first time" in caplog.text


async def test_without_notifications_the_look_finds_it(tools: Path, monkeypatch, caplog):
    def refuse(*_: object, **__: object) -> None:
        raise OSError("OS file watch limit reached")

    monkeypatch.setattr("watchfiles.awatch", refuse)
    async with watched(tools) as told:
        (tools / "a.py").write_text("a = 2\n")
        await told.once()
        (tools / "a.py").write_text("a = 3\n")
        await told.once()
    assert caplog.text.count("watch limit") == 1


def test_a_directory_nobody_may_read_is_empty_and_not_an_error(tools: Path):
    assert look_at(tools / "nothing") == {}
    assert look_at(tools / "a.py" / "below") == {}
    assert look_at(Path("a\0b")) == {}
