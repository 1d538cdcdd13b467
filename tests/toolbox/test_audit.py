"""The audit trail: what is durable before a side effect, and what tampering it shows."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import stat
import subprocess
import sys
import textwrap
import threading
from pathlib import Path
from typing import Any

import pytest

from chathands.conversation import Status
from chathands.toolbox import Decision, journal, journal_lines
from chathands.toolbox.audit import Audit, has_trail, open_audit, verify
from chathands.toolbox.redact import Redactor
from tests.toolbox.kit import ADMIN, BOSS, MEMBER, READ, SEND, bench, call


def opened(state: Path) -> Audit:
    return open_audit(state, Redactor(["sk-live-0123456789"]), clock=lambda: 1000.0)


def segment(state: Path) -> Path:
    return sorted(state.glob("audit/1/*.jsonl"))[-1]


def lines(state: Path) -> list[dict[str, Any]]:
    found = []
    for path in sorted(state.glob("audit/*/*.jsonl")):
        found += [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    return found


async def three_pushes(state: Path) -> None:
    audit = opened(state)
    for number in range(3):
        intent = await audit.intent(MEMBER, "R1", "send", {"content": str(number)}, target="甲")
        await audit.outcome(intent, Status.OK, "已推送", 3)
    audit.close()


async def test_a_run_leaves_intent_outcome_and_reads_in_order(tmp_path: Path):
    with bench(tmp_path, SEND, READ, approval="never") as box:
        scope = box.scope(ADMIN)
        await box.run(call("look", what="x"), scope=scope)
        await box.run(call("send", robot="甲", content="一"), scope=scope)
        await box.run(call("nothing"), scope=scope)
    start, read, intent, outcome, refused = lines(tmp_path / "state")
    assert start["kind"] == "start"
    assert (read["kind"], read["tool"], read["status"]) == ("call", "look", "ok")
    assert (intent["kind"], intent["tool"], intent["target"]) == ("intent", "send", "甲")
    assert (intent["user"], intent["group"], intent["role"]) == ("1002", "2001", "admin")
    assert (intent["run"], intent["approved"]) == ("A7F3-09", False)
    assert intent["arguments"] == {"robot": "甲", "content": "一"}
    assert (outcome["intent"], outcome["status"], outcome["size"]) == (intent["seq"], "ok", 6)
    assert len(outcome["sha256"]) == 64
    assert (refused["kind"], refused["tool"], refused["status"]) == ("call", "nothing", "failed")
    assert verify(tmp_path / "state") == []


async def test_the_intent_is_on_the_disk_before_the_tool_starts(tmp_path: Path, monkeypatch: Any):
    order = []
    real = os.fsync
    monkeypatch.setattr(os, "fsync", lambda fd: (order.append("fsync"), real(fd)))
    with bench(tmp_path, SEND, approval="never") as box:
        order.clear()
        await box.run(
            call("send", robot="甲", content="一"),
            on_event=lambda e: order.append(type(e).__name__),
        )
    assert order[:2] == ["fsync", "CallStarted"]
    assert "fsync" in order[2 : order.index("CallFinished")]


async def test_waiting_for_the_disk_does_not_block_the_loop(tmp_path: Path, monkeypatch: Any):
    loop_thread = threading.get_ident()
    threads = []
    real = os.fsync

    def fsync(descriptor: int) -> None:
        threads.append(threading.get_ident())
        real(descriptor)

    audit = opened(tmp_path)
    monkeypatch.setattr(journal.os, "fsync", fsync)
    await audit.intent(MEMBER, "R1", "send", {})
    audit.close()
    assert threads
    assert loop_thread not in threads


async def test_an_approved_call_is_marked_so(tmp_path: Path):
    with bench(tmp_path, SEND) as box:
        scope = box.scope(BOSS)
        sending = call("send", robot="甲", content="一")
        pending = (await box.run(sending, scope=scope)).pending
        granted = frozenset({pending.call_hash})
        await box.run(sending, scope=scope, granted=granted, granted_by="1002")
    (intent,) = [line for line in lines(tmp_path / "state") if line["kind"] == "intent"]
    assert intent["approved"] is True
    assert (intent["decision"], intent["decided_by"]) == ("yes", "1002")


@pytest.mark.parametrize("decision", [Decision("no", "1002"), Decision("expired")])
async def test_a_no_and_nobody_s_answer_leave_a_line(tmp_path: Path, decision: Decision):
    with bench(tmp_path, SEND) as box:
        scope = box.scope()
        asked = await box.run(
            call("send", "1", robot="甲", content="一"),
            call("send", "2", robot="乙", content="一"),
            scope=scope,
        )
        box.executor.deny(asked.remaining, scope, "没有执行。", decision)
    _, denied, behind = lines(tmp_path / "state")
    assert (denied["kind"], denied["tool"], denied["status"]) == ("call", "send", "denied")
    assert (denied["decision"], denied["decided_by"]) == (decision.answer, decision.by)
    assert denied["arguments"] == {"robot": "甲", "content": "一"}
    assert behind["status"] == "denied"
    assert "decision" not in behind


async def test_lines_name_who_asked(tmp_path: Path):
    with bench(tmp_path, READ) as box:
        await box.run(call("look", what="x"))
    assert lines(tmp_path / "state")[-1]["name"] == "小明"


def test_a_trail_that_was_removed_whole_is_not_one_that_never_was(tmp_path: Path):
    assert (has_trail(tmp_path), verify(tmp_path)) == (False, [])
    opened(tmp_path).close()
    assert (has_trail(tmp_path), verify(tmp_path)) == (True, [])
    shutil.rmtree(tmp_path / "audit")
    assert [one.code for one in verify(tmp_path)] == ["gone"]


async def test_secrets_in_arguments_are_hidden_by_value_and_by_name(tmp_path: Path):
    audit = opened(tmp_path)
    arguments = {
        "text": "用 sk-live-0123456789 登录",
        "password": "hunter2",
        "headers": {"Authorization": "Bearer abcdefghijk"},
        "url": ["https://x/?access_token=abc123&a=1"],
        "max_tokens": 5,
        "long": "长" * 10000,
    }
    await audit.intent(MEMBER, "R1", "send", arguments, target="sk-live-0123456789")
    audit.close()
    text = segment(tmp_path).read_text("utf-8")
    for secret in ("sk-live-0123456789", "hunter2", "abcdefghijk", "abc123"):
        assert secret not in text
    (intent,) = [line for line in lines(tmp_path) if line["kind"] == "intent"]
    assert intent["arguments"]["max_tokens"] == 5
    assert intent["arguments"]["long"].endswith("…（共 10000 个字符）")


async def test_the_key_is_readable_by_its_owner_only(tmp_path: Path):
    opened(tmp_path).close()
    assert stat.S_IMODE((tmp_path / "audit.key").stat().st_mode) == 0o600
    assert stat.S_IMODE(segment(tmp_path).stat().st_mode) == 0o600


async def test_an_untouched_trail_verifies_over_restarts_and_segments(
    tmp_path: Path, monkeypatch: Any
):
    monkeypatch.setattr(journal, "SEGMENT_BYTES", 1500)
    for _ in range(3):
        await three_pushes(tmp_path)
    assert len(journal_lines.segments(tmp_path / "audit/1")) > 2
    assert verify(tmp_path) == []
    assert [line["seq"] for line in lines(tmp_path)] == list(range(1, 22))


def rewrite(state: Path, change: Any) -> None:
    path = segment(state)
    path.write_bytes(b"".join(change(path.read_bytes().splitlines(keepends=True))))


def edited(rows: list[bytes]) -> list[bytes]:
    rows[3] = rows[3].replace(b'"1"', b'"9"')
    return rows


def resealed(rows: list[bytes]) -> list[bytes]:
    """By someone who does not have the key."""
    record = json.loads(rows[3]) | {"user": "1"}
    record.pop("seal")
    record["seal"] = journal_lines.seal(b"guess", record)
    rows[3] = (json.dumps(record) + "\n").encode()
    return rows


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        (edited, "edited"),
        (resealed, "edited"),
        (lambda rows: rows[:3] + rows[4:], "missing"),
        (lambda rows: [*rows[:3], rows[4], rows[3], *rows[5:]], "order"),
        (lambda rows: rows[1:], "missing"),
        (lambda rows: rows[:-1], "missing"),
        (lambda rows: rows[:2], "missing"),
        (lambda rows: [*rows, rows[2]], "twice"),
        (lambda rows: [*rows[:3], b"{}\n", *rows[3:]], "unreadable"),
        (lambda rows: [rows[0][:-9] + b"\n", *rows[1:]], "unreadable"),
    ],
    ids=["edit", "reseal", "cut", "swap", "head", "tail", "long tail", "replay", "insert", "torn"],
)
async def test_tampering_shows(tmp_path: Path, change: Any, fault: str):
    await three_pushes(tmp_path)
    assert verify(tmp_path) == []
    rewrite(tmp_path, change)
    assert [one.code for one in verify(tmp_path)] == [fault]


async def test_a_cut_tail_still_shows_after_the_next_start(tmp_path: Path):
    await three_pushes(tmp_path)
    rewrite(tmp_path, lambda rows: rows[:4])
    await three_pushes(tmp_path)
    assert verify(tmp_path)


async def test_a_removed_segment_shows(tmp_path: Path, monkeypatch: Any):
    monkeypatch.setattr(journal, "SEGMENT_BYTES", 1000)
    await three_pushes(tmp_path)
    journal_lines.segments(tmp_path / "audit/1")[1].unlink()
    assert verify(tmp_path)


async def test_all_lines_removed_shows(tmp_path: Path):
    await three_pushes(tmp_path)
    segment(tmp_path).unlink()
    (fault,) = verify(tmp_path)
    assert "第 1 到 7 行" in fault.sentence


async def test_a_removed_head_shows_and_stays_noted(tmp_path: Path):
    await three_pushes(tmp_path)
    (tmp_path / "audit/1/head.json").unlink()
    assert [one.code for one in verify(tmp_path)] == ["no_head"]
    opened(tmp_path).close()
    assert verify(tmp_path) == []  # the anchor says how far it went
    assert any("head.json" in line.get("remark", "") for line in lines(tmp_path))


def test_a_missing_key_is_said(tmp_path: Path):
    assert verify(tmp_path) == []
    opened(tmp_path).close()
    (tmp_path / "audit.key").unlink()
    assert [one.code for one in verify(tmp_path)] == ["no_key"]


async def test_another_key_makes_every_line_wrong(tmp_path: Path):
    await three_pushes(tmp_path)
    (tmp_path / "audit.key").write_bytes(b"x" * 32)
    assert [one.code for one in verify(tmp_path)] == ["key"]


async def test_a_torn_last_line_is_set_aside_and_the_chain_goes_on(tmp_path: Path):
    await three_pushes(tmp_path)
    torn = b'{"kind": "intent", "seq": 8, "pre'
    with segment(tmp_path).open("ab") as file:
        file.write(torn)
    assert verify(tmp_path) == []
    await three_pushes(tmp_path)
    assert verify(tmp_path) == []
    assert (tmp_path / "audit/1/torn-1.part").read_bytes() == torn
    assert any("torn" in line.get("remark", "") for line in lines(tmp_path))


async def test_an_intent_without_outcome_is_unknown_at_the_next_start_and_only_then(
    tmp_path: Path,
):
    audit = opened(tmp_path)
    await audit.intent(MEMBER, "R7", "send", {"content": "一"}, target="销售群")
    audit.close()
    (left,) = opened_and_closed(tmp_path)
    assert (left.run_id, left.name, left.target) == ("R7", "send", "销售群")
    assert left.caller.name == "小明"
    assert left.caller.conversation_id == MEMBER.conversation_id
    assert opened_and_closed(tmp_path) == ()
    assert [(line["kind"], line.get("status")) for line in lines(tmp_path)] == [
        ("start", None),
        ("intent", None),
        ("outcome", "unknown"),
        ("start", None),
        ("start", None),
    ]
    assert verify(tmp_path) == []


def opened_and_closed(state: Path) -> Any:
    audit = opened(state)
    audit.close()
    return audit.unfinished


KILLED = """
import asyncio, os, signal, sys
from pathlib import Path
from chathands.toolbox import Caller, open_audit, Redactor

async def main():
    audit = open_audit(Path(sys.argv[1]), Redactor())
    await audit.intent(Caller("1001"), "R8", "send", {"content": "一"}, target="甲")
    os.kill(os.getpid(), signal.SIGKILL)

asyncio.run(main())
"""


def test_a_killed_process_leaves_its_side_effect_to_be_found(tmp_path: Path):
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(KILLED), str(tmp_path)], check=False, timeout=60
    )
    assert done.returncode < 0
    (left,) = opened_and_closed(tmp_path)
    assert (left.run_id, left.target) == ("R8", "甲")
    assert verify(tmp_path) == []


async def test_a_second_process_on_the_same_state_does_not_break_the_chain(tmp_path: Path):
    first, second = opened(tmp_path), opened(tmp_path)
    for audit in (first, second, first, second):
        intent = await audit.intent(MEMBER, "R1", "send", {})
        await audit.outcome(intent, Status.OK, "", 0)
    open_intent = await second.intent(MEMBER, "R2", "send", {})
    assert open_intent
    first.close()
    # The other process still runs: what it is doing is not unknown.
    assert opened_and_closed(tmp_path) == ()
    second.close()
    assert [left.run_id for left in opened_and_closed(tmp_path)] == ["R2"]
    assert verify(tmp_path) == []


async def test_lone_surrogates_in_arguments_do_not_stop_the_trail(tmp_path: Path):
    audit = opened(tmp_path)
    audit.call(MEMBER, "R1", "no\ud800", {"a": "\udfff"}, Status.FAILED, "\ud800", 1)
    await asyncio.sleep(0)
    audit.close()
    assert lines(tmp_path)[-1]["arguments"] == {"a": "\udfff"}
    assert verify(tmp_path) == []


def test_two_processes_that_start_together_seal_with_one_key(tmp_path: Path):
    together = threading.Barrier(4)
    audits: list[Audit] = []

    def start() -> None:
        together.wait(10)
        audits.append(opened(tmp_path))

    threads = [threading.Thread(target=start) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    for audit in audits:
        audit.close()
    assert len(audits) == 4
    assert verify(tmp_path) == []
    assert [path.name for path in tmp_path.glob("audit.key*")] == ["audit.key"]


def test_a_cut_key_seals_nothing(tmp_path: Path):
    (tmp_path / "audit.key").write_bytes(b"")
    with pytest.raises(OSError, match="cut"):
        opened(tmp_path)


def test_an_intent_without_a_time_is_unfinished_all_the_same(tmp_path: Path):
    opened(tmp_path).close()
    line = {"seq": 2, "prev": "", "seal": "", "kind": "intent", "run": "R1", "time": "zz"}
    with next((tmp_path / "audit").rglob("*.jsonl")).open("a") as file:
        file.write(json.dumps(line) + "\n")
    (left,) = opened_and_closed(tmp_path)
    assert (left.run_id, left.time) == ("R1", 0.0)


async def test_another_kind_of_program_shows_an_open_intent_but_leaves_it_to_its_owner(
    tmp_path: Path,
):
    bot = opened(tmp_path)
    done = await bot.intent(MEMBER, "R1", "send", {}, target="甲")
    await bot.outcome(done, Status.OK, "已推送", 3)
    await bot.intent(MEMBER, "R1", "send", {}, target="乙")
    bot.close()
    for _ in range(2):
        terminal = open_audit(tmp_path, Redactor(), owner="terminal")
        assert [left.target for left in terminal.unfinished] == ["乙"]
        assert "甲" not in [effect.target for effect in terminal.finished]
        mine = await terminal.intent(BOSS, "R2", "send", {}, target="丙")
        await terminal.outcome(mine, Status.OK, "", 0)
        terminal.close()
    bot = opened(tmp_path)
    assert [left.target for left in bot.unfinished] == ["乙"]
    assert [(e.run_id, e.target, e.status) for e in bot.finished] == [("R1", "甲", Status.OK)]
    bot.close()
    assert opened_and_closed(tmp_path) == ()
    assert verify(tmp_path) == []


async def test_what_a_terminal_left_open_is_the_next_terminals_to_tell(tmp_path: Path):
    terminal = open_audit(tmp_path, Redactor(), owner="terminal")
    await terminal.intent(BOSS, "R2", "send", {}, target="丙")
    terminal.close()
    bot = opened(tmp_path)
    bot.close()
    for expected in (["丙"], []):
        terminal = open_audit(tmp_path, Redactor(), owner="terminal")
        assert [left.target for left in terminal.unfinished] == expected
        terminal.close()
