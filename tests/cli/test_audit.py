"""`chathands audit tail|verify|export` on a real trail, as an admin types it."""

from __future__ import annotations

import asyncio
import csv
import io
import json
import os
import sys
import time
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from chathands.cli import audit as audit_cli
from chathands.conversation import Status
from chathands.toolbox import Caller, Decision, Redactor, open_audit
from chathands.toolbox.journal_lines import segments

ROOT = Path(__file__).parents[2]
SOMEONE = Caller("1001", "2001", "member", "小明\x1b[2J", "onebot11", "9")
OTHER = Caller("报表", None, "admin", "", "http", "")
KEY = "zz-live-0123456789"


def noon(day: int) -> float:
    return datetime(2026, 11, day, 12).timestamp()


async def filled(state: Path) -> None:
    """Three side effects, one without an end, and a read, over three days of November."""
    now = [noon(1)]
    audit = open_audit(state, Redactor(), clock=lambda: now[0])
    first = await audit.intent(
        SOMEONE, "A7F3-09", "send", {"content": "=1+1", "note": f"用 {KEY} 登录"},
        target="销售群", decision=Decision("yes", "10001"),
    )  # fmt: skip
    await audit.outcome(first, Status.OK, "已推送", 3)
    now[0] = noon(2)
    audit.call(OTHER, "B1", "look", {"what": "第一行\n第二行"}, Status.OK, "看到", 2)
    second = await audit.intent(OTHER, "B2", "send", {"content": "二"}, target="-甲")
    await audit.outcome(second, Status.FAILED, "没成", 2)
    now[0] = noon(3)
    await audit.intent(SOMEONE, "C3", "note", {"content": "三"})
    audit.close()


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """The command in a directory that has a trail: (exit code, stdout, stderr)."""
    monkeypatch.chdir(tmp_path)
    # A secret by now that was none when the lines were written.
    monkeypatch.setenv("CHATHANDS__MODEL__API_KEY", KEY)
    asyncio.run(filled(tmp_path / "state"))
    app = typer.Typer()
    audit_cli.register(app)

    @app.command("other")
    def other() -> None:
        """Without a second one typer takes the name away from the first."""

    def command(*arguments: str) -> tuple[int, str, str]:
        result = CliRunner().invoke(app, ["audit", *arguments])
        return result.exit_code, result.stdout, result.stderr

    return command


def test_tail_says_who_did_what_when_in_one_line_each(run: Any):
    code, out, _ = run("tail")
    assert code == 0
    start, first, ended, read, second, failed, last = out.splitlines()
    assert "程序启动" in start
    assert first.startswith("2026-11-01 12:00:00  1:2  开始 send → 销售群")
    for part in ("小明", "1001", "群 2001", "成员", "A7F3-09", "批准：10001"):
        assert part in first
    assert "结果 成功  send → 销售群（第 2 行）" in ended
    assert "调用 look" in read
    assert "失败" in failed
    assert "note" in last
    assert "管理员" in second
    assert KEY not in out
    assert "\x1b" not in out


def test_tail_of_two_and_of_none(run: Any):
    assert len(run("tail", "2")[1].splitlines()) == 2
    assert run("tail", "0")[:2] == (0, "")


def test_verify_alone_or_by_name_says_whole_and_gives_a_receipt(run: Any, tmp_path: Path):
    for arguments in ([], ["verify"]):
        code, out, err = run(*arguments)
        assert (code, out) == (0, "审计记录完整\n")
    receipt = err.split("凭据 ")[1].split("（")[0]
    assert run("verify", "--receipt", receipt)[0] == 0
    other = receipt[:-1] + ("0" if receipt[-1] != "0" else "1")
    code, out, _ = run("verify", "--receipt", other)
    assert (code, "凭据" in out) == (1, True)
    code, _, err = run("verify", "--receipt", "什么")
    assert (code, "凭据要像" in err) == (2, True)


def test_a_changed_line_is_said_by_verify_tail_and_export(run: Any, tmp_path: Path):
    (segment,) = segments(tmp_path / "state" / "audit" / "1")
    segment.write_bytes(segment.read_bytes().replace('"二"'.encode(), '"九"'.encode()))
    code, out, _ = run("verify")
    assert code == 1
    assert "有一行被改过（1/000000001.jsonl 第 5 行" in out
    assert "【被改过】开始 send" in run("tail")[1]
    assert [json.loads(row)["intact"] for row in run("export")[1].splitlines()] == [
        True, True, False, True,
    ]  # fmt: skip


def test_export_is_one_line_a_call_with_its_outcome(run: Any):
    code, out, err = run("export")
    assert (code, err) == (0, "4 条\n")
    first, read, second, last = map(json.loads, out.splitlines())
    assert (first["tool"], first["target"], first["status"]) == ("send", "销售群", "ok")
    assert (first["decision"], first["decided_by"], first["user"]) == ("yes", "10001", "1001")
    assert datetime.fromisoformat(first["time"]).timestamp() == noon(1)
    assert first["arguments"]["note"] == "用 *** 登录"
    assert (read["status"], second["status"], last["status"]) == ("ok", "failed", "")
    assert len(first["sha256"]) == 64


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["--since", "2026-11-02"], ["B1", "B2", "C3"]),
        (["--until", "2026-11-02"], ["A7F3-09", "B1", "B2"]),
        (["--since", "2026-11-02 12:00", "--until", "2026-11-02 13:00"], ["B1", "B2"]),
        (["--since", "2026-11-02 12:00:01", "--until", "2026-11-02"], []),
        (["--user", "1001"], ["A7F3-09", "C3"]),
        (["--tool", "send", "--user", "报表"], ["B2"]),
        (["--tool", "nothing"], []),
    ],
    ids=lambda value: " ".join(value),
)
def test_export_takes_what_was_asked_for(run: Any, arguments: list[str], expected: list[str]):
    code, out, _ = run("export", *arguments)
    assert code == 0
    assert [json.loads(row)["run"] for row in out.splitlines()] == expected


@pytest.mark.parametrize("when", ["昨天", "2026-13-01", "", "99999-01-01"])
def test_a_time_that_is_none_is_said(run: Any, when: str):
    code, out, err = run("export", "--since", when)
    assert (code, out) == (2, "")
    assert "时间要像" in err


def test_a_csv_opens_as_text_in_a_spreadsheet(run: Any, tmp_path: Path):
    code, out, _ = run("export", "--format", "csv", "--out", "out.csv")
    assert (code, out) == (0, "")
    raw = (tmp_path / "out.csv").read_bytes()
    assert raw.startswith(b"\xef\xbb\xbf")
    head, first, read, second, last = csv.reader(io.StringIO(raw.decode("utf-8-sig")))
    assert head[:4] == ["时间", "工具", "目标", "结果"]
    assert (first[3], second[3], last[3]) == ("成功", "失败", "没有结果")
    assert second[2] == "'-甲"  # no formula
    assert len(read) == len(head)
    assert "\x1b" not in raw.decode("utf-8")
    code, _, err = run("export", "--format", "csv", "--out", "out.csv")
    assert (code, "已经有了" in err) == (2, True)
    code, _, err = run("export", "--out", "no/such/place.jsonl")
    assert (code, "no/such/place.jsonl 写不了" in err) == (2, True)


def test_where_there_is_nothing_it_says_so(tmp_path: Path, run: Any, monkeypatch: Any):
    empty = tmp_path / "empty"
    empty.mkdir()
    monkeypatch.chdir(empty)
    assert run()[:2] == (0, "还没有审计记录\n")
    assert run("tail")[:2] == (0, "")
    assert run("export") == (0, "", "0 条\n")


async def test_follow_prints_what_comes_and_ends_quietly(tmp_path: Path):
    await filled(tmp_path / "state")
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", "from chathands.cli import main; main()",
        "audit", "tail", "1", "--follow", cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": "1"},
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    assert process.stdout is not None
    async with asyncio.timeout(30):
        assert "note" in (await process.stdout.readline()).decode("utf-8")
        audit = open_audit(tmp_path / "state", Redactor(), clock=time.time)
        audit.call(SOMEONE, "D4", "look", {"what": "新的"}, Status.OK, "", 0)
        audit.close()
        seen = ""
        while "新的" not in seen:
            seen = (await process.stdout.readline()).decode("utf-8")
        process.send_signal(2)  # Ctrl-C
        _, err = await process.communicate()
    assert err == b""
