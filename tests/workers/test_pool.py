"""What the pool promises: children are warm, limited, replaced, and gone in the end."""

from __future__ import annotations

import asyncio
import os
import re
import select
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest

from chathands.errors import WorkerError, WorkerLimit, WorkerRejected
from chathands.settings import WorkerSettings
from chathands.workers.pool import WorkerPool

ROOT = Path(__file__).resolve().parents[2]


async def probe(pool: WorkerPool, attempt: str, value: Any = None, **how: Any) -> dict[str, Any]:
    return await pool.run("probe", {"try": attempt, "value": value}, **how)


def limits_of(pid: int) -> dict[str, str]:
    text = Path(f"/proc/{pid}/limits").read_text()
    return dict(re.findall(r"^(Max [a-z ]+?)\s{2,}(\S+)", text, re.M))


def exists(pid: int) -> bool:
    return Path(f"/proc/{pid}").exists()


async def test_nothing_runs_before_it_is_needed(pool: WorkerPool) -> None:
    assert pool.pids == ()


async def test_a_child_answers_and_stays_warm(pool: WorkerPool) -> None:
    first = await probe(pool, "echo", {"文": [1, None]})
    second = await probe(pool, "echo", "again")
    assert first["echo"] == {"文": [1, None]}
    assert first["pid"] == second["pid"] == pool.pids[0]


async def test_limits_are_set_in_the_living_child(pool: WorkerPool) -> None:
    await probe(pool, "echo")
    limits = limits_of(pool.pids[0])
    assert limits["Max address space"] == str(512 * 1024 * 1024)
    assert limits["Max cpu time"] == "5"
    assert limits["Max core file size"] == "0"
    assert int(limits["Max open files"]) <= 64
    assert int(limits["Max file size"]) <= 1024 * 1024


async def test_a_child_is_replaced_after_its_share_of_jobs() -> None:
    pool = WorkerPool(WorkerSettings(), jobs_per_child=2)
    pids = [(await probe(pool, "echo"))["pid"] for _ in range(5)]
    await pool.aclose()
    assert pids[0] == pids[1] != pids[2] == pids[3] != pids[4]


async def test_at_most_two_children_at_once(pool: WorkerPool) -> None:
    answers = await asyncio.gather(*(probe(pool, "wait", 0.05) for _ in range(6)))
    assert len(answers) == 6
    assert len(pool.pids) == 2


async def test_the_child_sees_none_of_our_environment(
    pool: WorkerPool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CHATHANDS__MODEL__API_KEY", "sk-secret")
    monkeypatch.setenv("HTTPS_PROXY", "http://user:pass@proxy")
    names = (await probe(pool, "environment"))["environment"]
    assert not [name for name in names if "CHATHANDS" in name or "PROXY" in name]


async def test_the_child_inherits_no_descriptors(pool: WorkerPool) -> None:
    with tempfile.TemporaryFile() as ours:
        os.set_inheritable(ours.fileno(), True)
        high = os.dup2(ours.fileno(), 60, inheritable=True)
        try:
            assert high not in (await probe(pool, "files"))["descriptors"]
        finally:
            os.close(high)


async def test_stray_prints_do_not_break_the_answers(pool: WorkerPool) -> None:
    assert await probe(pool, "print") == {"printed": True}
    assert (await probe(pool, "echo", "still"))["echo"] == "still"


async def test_a_refusal_keeps_its_sentence_and_the_child(pool: WorkerPool) -> None:
    with pytest.raises(WorkerRejected) as refused:
        await probe(pool, "reject", "这个文件不行。")
    assert refused.value.sentence == "这个文件不行。"
    assert len(pool.pids) == 1


@pytest.mark.parametrize(
    ("attempt", "value", "said"),
    [("memory", 1 << 33, "512 MB"), ("abort", None, "上限")],
)
async def test_memory_and_crashes_are_limits(
    pool: WorkerPool, attempt: str, value: int | None, said: str
) -> None:
    with pytest.raises(WorkerLimit) as limit:
        await probe(pool, attempt, value)
    assert said in limit.value.sentence
    assert (await probe(pool, "echo", "next"))["echo"] == "next"


async def test_computing_without_end_is_stopped_by_the_cpu_limit() -> None:
    pool = WorkerPool(WorkerSettings(cpu_seconds=1, wall_seconds=15))
    with pytest.raises(WorkerLimit) as limit:
        await probe(pool, "cpu")
    await pool.aclose()
    assert "1 秒" in limit.value.sentence


async def test_the_cpu_limit_is_per_job_and_not_per_life(pool: WorkerPool) -> None:
    before = limits_of((await probe(pool, "echo"))["pid"])["Max cpu time"]
    child = WorkerPool(WorkerSettings(cpu_seconds=3))
    await probe(child, "burn", 1.2)
    await probe(child, "echo")
    after = limits_of(child.pids[0])["Max cpu time"]
    await child.aclose()
    assert (before, int(after) > 3) == ("5", True)


async def test_the_watchdog_kills_what_hangs(pool: WorkerPool) -> None:
    await probe(pool, "echo")
    pid = pool.pids[0]
    with pytest.raises(WorkerLimit) as limit:
        await probe(pool, "wait", 60, timeout=0.2)
    assert "0.2 秒" in limit.value.sentence
    assert pid not in pool.pids
    assert not exists(pid)


async def test_a_job_that_finds_no_free_child_in_time_says_so(pool: WorkerPool) -> None:
    busy = [asyncio.create_task(probe(pool, "wait", 60)) for _ in range(2)]
    await asyncio.sleep(0)
    with pytest.raises(WorkerLimit) as limit:
        await probe(pool, "echo", timeout=0.05)
    assert "没有轮到" in limit.value.sentence
    for task in busy:
        task.cancel()
    await asyncio.gather(*busy, return_exceptions=True)


async def test_no_time_left_starts_nothing(pool: WorkerPool) -> None:
    with pytest.raises(WorkerLimit, match="no time left"):
        await probe(pool, "echo", timeout=-0.5)
    assert pool.pids == ()


async def test_an_idle_child_that_was_killed_is_replaced(pool: WorkerPool) -> None:
    pid = (await probe(pool, "echo"))["pid"]
    ended = os.pidfd_open(pid)
    os.kill(pid, signal.SIGKILL)
    select.select([ended], [], [], 10)
    os.close(ended)
    assert (await probe(pool, "echo", "next"))["echo"] == "next"
    assert pid not in pool.pids


async def test_a_fault_of_ours_is_no_limit_and_logs_its_traceback(pool: WorkerPool) -> None:
    with pytest.raises(WorkerError) as fault:
        await probe(pool, "no such thing")
    assert not isinstance(fault.value, WorkerLimit)
    assert "nothing to try" in str(fault.value)
    assert "nothing to try" not in fault.value.sentence


async def test_a_cancelled_run_kills_its_child_and_frees_the_slot(pool: WorkerPool) -> None:
    await probe(pool, "echo")
    pid = pool.pids[0]
    task = asyncio.create_task(probe(pool, "wait", 60))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert not exists(pid)
    assert (await probe(pool, "echo", 1))["echo"] == 1


async def test_closing_ends_running_and_idle_children() -> None:
    pool = WorkerPool(WorkerSettings())
    await asyncio.gather(probe(pool, "wait", 0.05), probe(pool, "wait", 0.05))
    pids = pool.pids
    running = asyncio.create_task(probe(pool, "wait", 60))
    await asyncio.sleep(0)
    await pool.aclose()
    with pytest.raises(WorkerError) as closed:
        await running
    assert "正在关闭" in closed.value.sentence
    assert len(pids) == 2
    assert pool.pids == ()
    assert not any(exists(pid) for pid in pids)
    with pytest.raises(WorkerError):
        await probe(pool, "echo")


@pytest.mark.parametrize("by_descriptor", [True, False])
async def test_files_are_handed_over_whole_and_stay_the_callers(by_descriptor: bool) -> None:
    pool = WorkerPool(WorkerSettings(), pass_descriptors=by_descriptor)
    with tempfile.TemporaryFile() as file:
        file.write(b"x" * 700_000)
        file.flush()
        sizes = [await probe(pool, "size", file=file.fileno()) for _ in range(2)]
        file.seek(0)
        assert len(file.read()) == 700_000
    await pool.aclose()
    assert sizes == [{"size": 700_000}, {"size": 700_000}]


async def test_a_huge_file_is_refused_before_anything_starts(pool: WorkerPool) -> None:
    with tempfile.TemporaryFile() as file:
        file.truncate(100 * 1024 * 1024)
        with pytest.raises(WorkerLimit) as limit:
            await probe(pool, "size", file=file.fileno())
    assert "100 MB" in limit.value.sentence
    assert pool.pids == ()


async def test_an_answer_over_the_frame_cap_never_reaches_the_parent(pool: WorkerPool) -> None:
    with pytest.raises(WorkerLimit) as limit:
        await probe(pool, "flood", 8 * 1024 * 1024)
    assert "太大" in limit.value.sentence


def test_children_die_with_a_parent_that_was_killed() -> None:
    program = (
        "import asyncio, sys\n"
        f"sys.path.insert(0, {str(ROOT)!r})\n"
        "from chathands.settings import WorkerSettings\n"
        "from chathands.workers.pool import WorkerPool\n"
        "async def main():\n"
        "    pool = WorkerPool(WorkerSettings())\n"
        "    await pool.run('probe', {'try': 'echo'})\n"
        "    job = asyncio.create_task(pool.run('probe', {'try': 'wait', 'value': 60}))\n"
        "    await asyncio.sleep(0)\n"
        "    print(pool.pids[0], flush=True)\n"
        "    await job\n"
        "asyncio.run(main())\n"
    )
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE) as parent:
        assert parent.stdout is not None
        child = os.pidfd_open(int(parent.stdout.readline()))
        parent.send_signal(signal.SIGKILL)
    ended, _, _ = select.select([child], [], [], 10)
    os.close(child)
    assert ended


async def test_a_child_of_a_large_parent_still_stays_warm(pool: WorkerPool) -> None:
    ballast = bytearray(300 * 1024 * 1024)
    for page in range(0, len(ballast), 4096):  # it counts as resident once it is written to
        ballast[page] = 1
    pids = [(await probe(pool, "echo"))["pid"] for _ in range(2)]
    assert pids[0] == pids[1]
    assert ballast[0] == 1
