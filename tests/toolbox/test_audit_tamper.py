"""What was done to a trail is said in one line, whoever did it can compute any plain hash."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from chathands.conversation import Status
from chathands.toolbox import Redactor, journal, open_audit
from chathands.toolbox.audit import Audit
from chathands.toolbox.audit_check import Receipt, examined, verify
from chathands.toolbox.journal_lines import seal, segments
from tests.toolbox.kit import MEMBER

pytestmark = pytest.mark.usefixtures("small_segments")


@pytest.fixture
def small_segments(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two or three lines each."""
    monkeypatch.setattr(journal, "SEGMENT_BYTES", 900)


def opened(state: Path) -> Audit:
    return open_audit(state, Redactor(), clock=lambda: 1000.0)


async def push(audit: Audit, count: int) -> None:
    for number in range(count):
        intent = await audit.intent(MEMBER, "R1", "send", {"content": str(number)}, target="甲")
        await audit.outcome(intent, Status.OK, "已推送", 3)


async def pushed(state: Path, count: int = 6) -> list[Path]:
    audit = opened(state)
    await push(audit, count)
    audit.close()
    assert verify(state) == []
    return segments(state / "audit" / "1")


def codes(state: Path) -> list[str]:
    return [fault.code for fault in verify(state)]


def rehashed(path: Path) -> None:
    """Edit the second line, and give it and every line after it a new, matching chain."""
    rows, before = [], None
    for number, raw in enumerate(path.read_bytes().splitlines()):
        line = json.loads(raw)
        line.pop("seal")
        if number == 1:
            line["user"] = "1"
        line["prev"] = before or line["prev"]
        before = seal(b"a key of his own", line)
        rows.append(json.dumps({**line, "seal": before}))
    path.write_text("\n".join(rows) + "\n")


async def test_an_edit_with_all_hashes_made_anew_shows_line_by_line(tmp_path: Path):
    files = await pushed(tmp_path)
    assert len(files) > 3
    rehashed(files[1])
    count = len(files[1].read_bytes().splitlines())
    assert codes(tmp_path) == ["edited"] * count


def swapped(files: list[Path]) -> None:
    first, second = files[1].read_bytes(), files[2].read_bytes()
    files[1].write_bytes(second)
    files[2].write_bytes(first)


def doubled(files: list[Path]) -> None:
    rows = files[1].read_bytes().splitlines(keepends=True)
    files[1].write_bytes(b"".join([rows[0], rows[0], *rows[1:]]))


@pytest.mark.parametrize(
    ("do", "code", "said"),
    [
        (lambda files: files[0].unlink(), "missing", "第 1 到"),
        (lambda files: files[2].unlink(), "missing", "之前"),
        (lambda files: files[-1].unlink(), "missing", "末尾被截掉"),
        (lambda files: [file.unlink() for file in files[1:]], "missing", "末尾被截掉"),
        (swapped, "order", "后面"),
        (doubled, "twice", "行，"),
        (lambda files: shutil.copy(files[1], files[-1].with_name("9.jsonl")), "twice", "到"),
        (lambda files: files[1].write_bytes(b""), "missing", "之前"),
        (lambda files: files[1].write_bytes(files[1].read_bytes()[:-1]), "edited", "自称"),
        (lambda files: files[1].write_bytes(b"\xff\xfe\0 \n"), "unreadable", "不是审计记录"),
    ],
    ids=[
        "first segment", "a segment", "last segment", "all but one", "swapped", "line twice",
        "segment twice", "emptied", "line end", "garbage",
    ],
)  # fmt: skip
async def test_whole_segments_and_lines_put_elsewhere_show_once_and_stay(
    tmp_path: Path, do: Callable[[list[Path]], object], code: str, said: str
):
    do(await pushed(tmp_path))
    fault, *more = verify(tmp_path)
    assert (fault.code, said in fault.sentence) == (code, True), fault.sentence
    # A segment that became one line of garbage is also short of the rest.
    assert [one.code for one in more] == (["missing"] if code == "unreadable" else [])
    opened(tmp_path).close()
    assert code in codes(tmp_path)


def rolled_back(state: Path, old: Path, *names: str) -> None:
    """Put the older, consistent copy of these back."""
    for name in names:
        if (state / name).is_dir():
            shutil.rmtree(state / name)
            shutil.copytree(old / name, state / name)
        else:
            shutil.copy(old / name, state / name)


async def earlier_and_now(tmp_path: Path) -> tuple[Path, Path]:
    state, old = tmp_path / "state", tmp_path / "old"
    await pushed(state, 2)
    shutil.copytree(state, old)
    await pushed(state, 2)
    return state, old


async def test_an_older_copy_of_the_journals_does_not_fit_the_anchor(tmp_path: Path):
    state, old = await earlier_and_now(tmp_path)
    rolled_back(state, old, "audit")
    assert codes(state) == ["missing"]
    await pushed_anyway(state)
    assert codes(state) == ["missing"]


async def test_an_older_anchor_alone_loses_nothing(tmp_path: Path):
    state, old = await earlier_and_now(tmp_path)
    rolled_back(state, old, "audit.anchor")
    assert codes(state) == []


async def pushed_anyway(state: Path) -> None:
    audit = opened(state)
    await push(audit, 1)
    audit.close()


async def test_a_rollback_of_everything_shows_only_to_who_kept_a_receipt(tmp_path: Path):
    state, old = await earlier_and_now(tmp_path)
    (kept,) = examined(state).receipts
    rolled_back(state, old, "audit", "audit.anchor")
    assert codes(state) == []  # all that is on this machine says so: docs/audit.md says this
    receipt = Receipt.read(str(kept))
    assert receipt is not None
    (fault,) = examined(state, [receipt]).faults
    assert fault.code == "receipt"
    for _ in range(8):  # grown past it, with other lines
        await pushed_anyway(state)
    (fault,) = examined(state, [receipt]).faults
    assert "对不上" in fault.sentence


async def test_a_receipt_of_a_whole_trail_is_met(tmp_path: Path):
    await pushed(tmp_path)
    (kept,) = examined(tmp_path).receipts
    await pushed(tmp_path)
    assert examined(tmp_path, [kept]).faults == ()
    assert Receipt.read("1:5:zz") is None


async def test_a_tail_cut_together_with_head_shows_by_the_anchor(tmp_path: Path):
    files = await pushed(tmp_path)
    files[-1].unlink()
    (tmp_path / "audit/1/head.json").unlink()
    assert sorted(codes(tmp_path)) == ["missing", "no_head"]
    opened(tmp_path).close()
    assert codes(tmp_path) == ["missing"]


async def test_a_tail_cut_together_with_both_marks_is_said_before_and_after_a_start(
    tmp_path: Path,
):
    files = await pushed(tmp_path)
    files[-1].unlink()
    (tmp_path / "audit/1/head.json").unlink()
    (tmp_path / "audit.anchor").unlink()
    assert sorted(codes(tmp_path)) == ["no_anchor", "no_head"]
    opened(tmp_path).close()
    assert codes(tmp_path) == ["unmarked"]


async def test_everything_but_the_key_removed_is_said_before_and_after_a_start(tmp_path: Path):
    await pushed(tmp_path)
    shutil.rmtree(tmp_path / "audit")
    (tmp_path / "audit.anchor").unlink()
    assert codes(tmp_path) == ["gone"]
    opened(tmp_path).close()
    assert codes(tmp_path) == ["unmarked"]


async def test_the_journal_of_another_process_cannot_go_in_silence(tmp_path: Path):
    first, second = opened(tmp_path), opened(tmp_path)
    await push(second, 2)
    first.close()
    second.close()
    shutil.rmtree(tmp_path / "audit" / "2")
    assert codes(tmp_path) == ["gone"]


async def test_marks_of_one_journal_do_not_pass_for_those_of_another(tmp_path: Path):
    first, second = opened(tmp_path), opened(tmp_path)
    await push(first, 3)
    await push(second, 1)
    first.close()
    second.close()
    shutil.copy(tmp_path / "audit/1/head.json", tmp_path / "audit/2/head.json")
    assert codes(tmp_path) == ["no_head"]


@pytest.mark.parametrize("junk", [b"", b"{}", b"\0" * 512, b"[[[[", b"\xff" * 600])
async def test_marks_that_are_junk_are_said_and_made_anew(tmp_path: Path, junk: bytes):
    await pushed(tmp_path)
    (tmp_path / "audit/1/head.json").write_bytes(junk)
    assert codes(tmp_path) == ["no_head"]
    await pushed_anyway(tmp_path)
    assert codes(tmp_path) == []


async def test_a_copy_an_admin_put_aside_is_no_journal(tmp_path: Path):
    await pushed(tmp_path)
    for name in ("1.bak", "backup", "²"):
        shutil.copytree(tmp_path / "audit" / "1", tmp_path / "audit" / name)
    assert codes(tmp_path) == []


def removed(file: Path) -> None:
    file.unlink()


def replaced(file: Path) -> None:
    content = file.read_bytes()
    file.unlink()
    file.write_bytes(content)


def shortened(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:-40])


@pytest.mark.parametrize("do", [removed, replaced, shortened])
async def test_what_is_done_under_a_running_process_is_noticed_and_nothing_later_is_lost(
    tmp_path: Path, do: Callable[[Path], None]
):
    audit = opened(tmp_path)
    await push(audit, 1)
    do(segments(tmp_path / "audit/1")[-1])
    await push(audit, 2)
    audit.close()
    found = codes(tmp_path)
    assert "interfered" in found
    assert ("missing" in found or "unreadable" in found) == (do is not replaced)
    kept = "".join(file.read_text("utf-8") for file in segments(tmp_path / "audit/1"))
    assert '"content": "1"' in kept


async def test_a_line_that_claims_a_huge_number_does_not_lead_the_chain_astray(tmp_path: Path):
    files = await pushed(tmp_path)
    forged = {"kind": "start", "seq": 10**12, "prev": "", "seal": "0" * 64}
    with files[-1].open("a") as file:
        file.write(json.dumps(forged) + "\n")
    await pushed_anyway(tmp_path)
    assert codes(tmp_path) == ["edited"]


@pytest.mark.parametrize(
    "do",
    [
        lambda raw: raw.replace(b'"user": ', b'"user": "10001", "user": '),
        lambda raw: raw.replace(b'{"approved"', b'{ "approved"'),
        lambda raw: raw.replace(b'"R1"', b'"\\u00521"'),
    ],
    ids=["key twice", "space", "escape"],
)
async def test_a_line_that_reads_the_same_but_is_written_otherwise_is_edited(
    tmp_path: Path, do: Callable[[bytes], bytes]
):
    first, *_ = await pushed(tmp_path)
    rows = first.read_bytes().splitlines(keepends=True)
    rows[1] = do(rows[1])
    assert rows[1] != first.read_bytes().splitlines(keepends=True)[1]
    first.write_bytes(b"".join(rows))
    assert codes(tmp_path) == ["edited"]


async def test_whatever_a_model_writes_reads_back_as_it_was_sealed(tmp_path: Path):
    audit = opened(tmp_path)
    odd = {"a": "\ud83d" + "\ude00", "\udfff": "\ud800", "b": [1e300, -0.0, 1 << 80, float("nan")]}
    await audit.intent(MEMBER, "\x00\u2028\r\n", "send", odd, target="\x85")
    audit.close()
    assert verify(tmp_path) == []


async def test_hostile_lines_do_not_stop_verify_or_the_next_start(tmp_path: Path):
    files = await pushed(tmp_path)
    with files[-1].open("ab") as file:
        file.write(b'{"seq": true, "seal": 1}\n' + b"[" * 100_000 + b"\n\r\n\n")
        file.write(b'{"seq": 1, "prev": "", "seal": "\\ud800"}\nnull\n')
    assert set(codes(tmp_path)) == {"unreadable", "edited"}
    await pushed_anyway(tmp_path)
    assert set(codes(tmp_path)) == {"unreadable", "edited"}


async def test_thousands_of_faults_are_counted_not_listed(tmp_path: Path):
    (first, *_) = await pushed(tmp_path)
    with first.open("ab") as file:
        file.write(b"x\n" * 5000)
    found = verify(tmp_path)
    assert len(found) < 30
    assert "还有 4980 处" in found[-1].sentence
