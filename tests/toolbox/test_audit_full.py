"""A disk without space stops side effects, not reading; they go on when there is space again."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from chathands.conversation import Status
from chathands.toolbox import Redactor, open_audit
from chathands.toolbox.audit import verify
from tests.toolbox.audit_soak import ROOT, rows
from tests.toolbox.kit import ADMIN, READ, SEND, Bench, bench, call

FULL = OSError(errno.ENOSPC, "No space left on device")


@pytest.fixture
def box(tmp_path: Path):
    with bench(tmp_path, SEND, READ, approval="never") as made:
        yield made


class Disk:
    """Takes `left` bytes more, then half a line, then nothing; until `left` is None."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.left: int | None = None
        self._write = os.write
        monkeypatch.setattr(os, "write", self.write)

    def write(self, descriptor: int, data: bytes) -> int:
        if self.left is None:
            return self._write(descriptor, data)
        if not self.left:
            raise FULL
        taken = self._write(descriptor, data[: self.left])
        self.left -= taken
        return taken


async def send(box: Bench, content: str) -> Any:
    batch = await box.run(call("send", robot="甲", content=content), scope=box.scope(ADMIN))
    return batch.results[0]


async def test_half_a_line_is_taken_back_and_all_goes_on_when_there_is_space(
    box: Bench, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    disk = Disk(monkeypatch)
    assert (await send(box, "一")).status is Status.OK
    disk.left = 100
    for content in ("二", "三"):
        refused = await send(box, content)
        assert refused.status is Status.DENIED
        assert "没有执行" in refused.content
        assert "磁盘" in refused.content
    batch = await box.run(call("look", what="x"), scope=box.scope(ADMIN))
    assert batch.results[0].status is Status.OK
    disk.left = None
    assert (await send(box, "四")).status is Status.OK
    box.audit.close()
    assert verify(box.settings.state_dir) == []
    sent = [line["arguments"]["content"] for line in intents(box)]
    assert sent == ["一", "四"]
    said = [r for r in caplog.records if "cannot be written, so that" in r.message]
    assert len(said) == 1


def intents(box: Bench) -> list[dict[str, Any]]:
    return [line for line in rows(box.settings.state_dir) if line["kind"] == "intent"]


async def test_an_outcome_that_found_no_space_is_written_when_there_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    disk = Disk(monkeypatch)
    audit = open_audit(tmp_path, Redactor())
    intent = await audit.intent(ADMIN, "R1", "send", {}, target="甲")
    disk.left = 50
    with pytest.raises(OSError, match="No space"):
        await audit.outcome(intent, Status.OK, "已推送", 3)
    with pytest.raises(OSError, match="No space"):
        await audit.intent(ADMIN, "R2", "send", {})
    disk.left = None
    await audit.intent(ADMIN, "R3", "send", {})
    audit.close()
    kinds = [(line["kind"], line.get("intent")) for line in rows(tmp_path)]
    assert kinds == [("start", None), ("intent", None), ("outcome", intent), ("intent", None)]
    assert verify(tmp_path) == []


async def test_a_disk_that_does_not_sync_acknowledges_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    audit = open_audit(tmp_path, Redactor())
    before = rows(tmp_path)

    def broken(descriptor: int) -> None:
        raise OSError(errno.EIO, "Input/output error")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", broken)
        with pytest.raises(OSError, match="Input/output"):
            await audit.intent(ADMIN, "R1", "send", {})
    assert rows(tmp_path) == before
    assert await audit.intent(ADMIN, "R2", "send", {}) == 2
    audit.close()
    assert verify(tmp_path) == []


async def test_what_cannot_even_be_taken_back_is_taken_back_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    disk = Disk(monkeypatch)
    audit = open_audit(tmp_path, Redactor())

    def refuse(descriptor: int, length: int) -> None:
        raise OSError(errno.EROFS, "Read-only file system")

    disk.left = 60
    with monkeypatch.context() as patch:
        patch.setattr(os, "ftruncate", refuse)
        for _ in range(2):
            with pytest.raises(OSError, match=r"No space|Read-only"):
                await audit.intent(ADMIN, "R1", "send", {})
    disk.left = None
    await audit.intent(ADMIN, "R2", "send", {})
    audit.close()
    assert [line["kind"] for line in rows(tmp_path)] == ["start", "intent"]
    assert verify(tmp_path) == []


LIMITED = """
import asyncio, resource, sys
from pathlib import Path
from chathands.conversation import Status
from chathands.toolbox import Caller, Redactor, open_audit

async def main():
    audit = open_audit(Path(sys.argv[1]), Redactor())
    caller, told, refused = Caller("1001"), [], 0
    _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (5000, hard))
    async def push(n):
        intent = await audit.intent(caller, f"R{n}", "send", {"content": "x" * 200})
        told.append(intent)
        await audit.outcome(intent, Status.OK, "", 0)
    for n in range(0, 40, 4):
        done = await asyncio.gather(*(push(n + k) for k in range(4)), return_exceptions=True)
        refused += sum(isinstance(one, OSError) for one in done)
    resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
    await push(99)
    audit.close()
    print(refused, *told)

asyncio.run(main())
"""


def test_a_real_limit_of_the_file_size_loses_nothing_that_was_told(tmp_path: Path):
    done = subprocess.run(
        [sys.executable, "-c", LIMITED, str(tmp_path)],
        cwd=ROOT, capture_output=True, text=True, timeout=60, check=True,
    )  # fmt: skip
    refused, *told = map(int, done.stdout.split())
    assert refused > 20
    lines = rows(tmp_path)
    assert set(told) == {line["seq"] for line in lines if line["kind"] == "intent"}
    assert set(told) == {line["intent"] for line in lines if line["kind"] == "outcome"}
    assert verify(tmp_path) == []
