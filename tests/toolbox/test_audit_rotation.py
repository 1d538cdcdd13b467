"""Old segments go by the retention rule, and only by it."""

from __future__ import annotations

from pathlib import Path

import pytest

from chathands.conversation import Status
from chathands.toolbox import Redactor, journal, open_audit
from chathands.toolbox.audit import verify
from chathands.toolbox.audit_check import Receipt, examined
from chathands.toolbox.journal_lines import segments
from tests.toolbox.audit_soak import rows
from tests.toolbox.kit import MEMBER

DAY = 86400


@pytest.fixture(autouse=True)
def small_segments(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journal, "SEGMENT_BYTES", 900)


async def day(state: Path, now: float, *, keep_days: float = 30, pushes: int = 6) -> None:
    """A process that lives on that day."""
    audit = open_audit(state, Redactor(), keep_days=keep_days, clock=lambda: now * DAY)
    for number in range(pushes):
        intent = await audit.intent(MEMBER, "R1", "send", {"content": str(number)}, target="甲")
        await audit.outcome(intent, Status.OK, "已推送", 3)
    audit.close()


async def test_what_is_older_goes_and_the_rest_is_whole(tmp_path: Path):
    await day(tmp_path, 100)
    await day(tmp_path, 120)
    before = len(segments(tmp_path / "audit/1"))
    await day(tmp_path, 135)
    assert len(segments(tmp_path / "audit/1")) > 3
    left = rows(tmp_path)
    assert min(line["time"] for line in left[5:]) >= 105 * DAY
    assert left[0]["seq"] > 1
    assert verify(tmp_path) == []
    assert "保留期限" in examined(tmp_path).notes[0]
    for now in (150, 200, 300, 400):
        await day(tmp_path, now)
        assert verify(tmp_path) == []
    assert rows(tmp_path)[0]["time"] >= 300 * DAY
    assert len(segments(tmp_path / "audit/1")) < 2 * before


async def test_without_a_rule_everything_stays(tmp_path: Path):
    for now in (100, 5000):
        await day(tmp_path, now, keep_days=0)
    assert rows(tmp_path)[0]["seq"] == 1


async def test_one_segment_more_than_the_rule_let_go_is_missing(tmp_path: Path):
    for now in (100, 120, 135):
        await day(tmp_path, now)
    segments(tmp_path / "audit/1")[0].unlink()
    (fault,) = verify(tmp_path)
    assert fault.code == "missing"


async def test_a_copy_of_the_line_about_pruning_covers_nothing_more(tmp_path: Path):
    for now in (100, 120, 135):
        await day(tmp_path, now)
    files = segments(tmp_path / "audit/1")
    (said,) = [raw for file in files for raw in file.read_bytes().splitlines() if b"pruned" in raw]
    forged = said.replace(b'"through": ', b'"through": 1')
    files[0].write_bytes(forged + b"\n")
    assert sorted({fault.code for fault in verify(tmp_path)}) == ["edited", "missing"]


async def test_a_kill_between_saying_and_removing_is_whole_and_finished_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    for now in (100, 120):
        await day(tmp_path, now)

    def killed(path: Path, missing_ok: bool = False) -> None:
        raise PermissionError("as if killed here")

    with monkeypatch.context() as patch:
        patch.setattr(Path, "unlink", killed)
        await day(tmp_path, 135)
    assert rows(tmp_path)[0]["seq"] == 1
    assert verify(tmp_path) == []
    segments(tmp_path / "audit/1")[0].unlink()  # killed after the first of them
    assert verify(tmp_path) == []
    await day(tmp_path, 136)
    assert rows(tmp_path)[5]["time"] >= 105 * DAY  # one segment has lines of both days
    assert verify(tmp_path) == []


async def test_a_process_that_never_restarts_lets_old_segments_go_as_well(tmp_path: Path):
    await day(tmp_path, 100)
    now = [110.0]
    audit = open_audit(tmp_path, Redactor(), keep_days=30, clock=lambda: now[0] * DAY)
    for number in range(20):
        now[0] += 5
        intent = await audit.intent(MEMBER, "R1", "send", {"content": str(number)})
        await audit.outcome(intent, Status.OK, "已推送", 3)
    left_open = await audit.intent(MEMBER, "R2", "send", {}, target="乙")
    audit.close()
    left = rows(tmp_path)
    assert left[0]["seq"] > 1
    # What the next start needs stays, however old: everything since this process began.
    assert any(line["kind"] == "start" for line in left)
    assert verify(tmp_path) == []
    again = open_audit(tmp_path, Redactor(), keep_days=30, clock=lambda: now[0] * DAY)
    assert [one.target for one in again.unfinished] == ["乙"]
    assert left_open
    again.close()


async def test_a_receipt_for_what_was_let_go_is_no_fault(tmp_path: Path):
    await day(tmp_path, 100)
    (kept,) = examined(tmp_path).receipts
    for now in (120, 135, 160, 180):
        await day(tmp_path, now)
    assert rows(tmp_path)[0]["seq"] > kept.head.seq
    assert examined(tmp_path, [kept, Receipt("1", kept.head)]).faults == ()
