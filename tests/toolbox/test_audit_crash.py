"""A process that is killed and a file that is cut: told lines are there or missed, others are not.

The long version, 50 kills: `python -m tests.toolbox.audit_soak`.
"""

from __future__ import annotations

import asyncio
import shutil
import threading
from pathlib import Path
from typing import Any

from chathands.conversation import Status
from chathands.toolbox import Redactor, open_audit
from chathands.toolbox.audit import verify
from chathands.toolbox.audit_check import examined
from chathands.toolbox.journal import Journal
from chathands.toolbox.journal_lines import segments
from tests.toolbox.audit_soak import check, check_cuts, killed_child, rows
from tests.toolbox.kit import MEMBER


async def written(state: Path, pushes: int = 4) -> None:
    audit = open_audit(state, Redactor())
    for number in range(pushes):
        intent = await audit.intent(MEMBER, "R1", "send", {"content": str(number)}, target="甲")
        await audit.outcome(intent, Status.OK, "已推送", 3)
    audit.close()


def test_after_a_kill_everything_that_was_told_is_there(tmp_path: Path):
    told = killed_child(tmp_path, 0.08)
    check(tmp_path, told)
    assert told.intents
    assert check_cuts(tmp_path, told.last, step=97) > 3
    again = killed_child(tmp_path, -0.3)  # while it starts, on what the other left
    check(tmp_path, again)
    check(tmp_path, told)


async def test_a_cut_at_every_byte_of_the_last_three_lines_is_said_exactly(tmp_path: Path):
    await written(tmp_path)
    last = rows(tmp_path)[-1]["seq"]
    assert check_cuts(tmp_path, last) > 900


async def test_after_a_cut_and_a_start_the_loss_is_still_said_and_half_a_line_is_kept(
    tmp_path: Path,
):
    state = tmp_path / "state"
    await written(state)
    whole = segments(state / "audit/1")[-1].read_bytes()
    for cut in (1, 2, 40, 250, 300, 600, 900):
        copy = tmp_path / str(cut)
        shutil.copytree(state, copy)
        segments(copy / "audit/1")[-1].write_bytes(whole[:-cut])
        audit = open_audit(copy, Redactor())
        audit.close()
        parts = b"".join(part.read_bytes() for part in (copy / "audit/1").glob("*.part"))
        if cut == 1:  # nothing but the line end: the line is whole, and gets it again
            assert (verify(copy), parts) == ([], b"")
            assert "行尾" in examined(copy).notes[0]
        else:
            assert [fault.code for fault in verify(copy)] == ["missing"]
            assert parts == whole[:-cut].rsplit(b"\n", 1)[1]


async def test_a_line_nobody_was_told_of_may_be_torn_anywhere(tmp_path: Path):
    state = tmp_path / "state"
    await written(state)
    marks = [state / "audit/1/head.json", state / "audit.anchor"]
    before = [mark.read_bytes() for mark in marks]
    segment = segments(state / "audit/1")[-1]
    told = segment.stat().st_size
    key = (state / "audit.key").read_bytes()
    journal = Journal.take(state / "audit/1", key, begun=True)
    assert journal is not None
    journal.append({"kind": "intent", "run": "R2", "tool": "send"}, durable=True)
    journal.close()
    for mark, content in zip(marks, before, strict=True):  # as if killed before it was marked
        mark.write_bytes(content)
    line = segment.read_bytes()[told:]
    for at in range(len(line), -1, -1):
        with segment.open("r+b") as file:
            file.truncate(told + at)
        assert verify(state) == []
        assert bool(examined(state).notes) == (0 < at < len(line))
        if at % 50 == 7:
            copy = tmp_path / f"copy{at}"
            shutil.copytree(state, copy)
            open_audit(copy, Redactor()).close()
            assert verify(copy) == []
            assert (copy / "audit/1/torn-1.part").read_bytes() == line[:at]


async def test_many_side_effects_at_once_share_an_fsync(tmp_path: Path, monkeypatch: Any):
    audit = open_audit(tmp_path, Redactor())
    batches: list[int] = []
    free = threading.Event()
    real = Journal.append_all

    def counted(journal: Journal, records: Any, *, durable: bool) -> Any:
        assert free.wait(20)
        batches.append(len(records))
        return real(journal, records, durable=durable)

    monkeypatch.setattr(Journal, "append_all", counted)
    waiting = [asyncio.ensure_future(audit.intent(MEMBER, f"R{n}", "s", {})) for n in range(50)]
    await asyncio.sleep(0)  # each has handed its record in
    free.set()
    numbers = await asyncio.gather(*waiting)
    audit.close()
    assert sorted(numbers) == list(range(2, 52))
    assert len(batches) <= 2
    assert sum(batches) == 50
    assert verify(tmp_path) == []


async def test_a_record_that_is_no_json_fails_alone(tmp_path: Path):
    audit = open_audit(tmp_path, Redactor())
    results = await asyncio.gather(
        audit.intent(MEMBER, "R1", "send", {"a": 1}),
        audit.intent(MEMBER, "R2", "send", {"a": object()}),
        audit.intent(MEMBER, "R3", "send", {"a": 3}),
        return_exceptions=True,
    )
    audit.close()
    assert isinstance(results[1], OSError)
    assert [results[0], results[2]] == [2, 3]
    assert verify(tmp_path) == []


async def test_verify_while_it_is_written_finds_nothing_wrong(tmp_path: Path):
    audit = open_audit(tmp_path, Redactor())
    going = True

    async def write() -> None:
        while going:
            intent = await audit.intent(MEMBER, "R1", "send", {"content": "长" * 300})
            await audit.outcome(intent, Status.OK, "", 0)

    writers = [asyncio.ensure_future(write()) for _ in range(4)]
    for _ in range(10):
        assert await asyncio.to_thread(verify, tmp_path) == []
    going = False
    await asyncio.gather(*writers)
    await asyncio.to_thread(audit.close)
