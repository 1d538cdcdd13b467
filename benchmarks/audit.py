"""What the audit trail costs: milliseconds a side effect waits for it, and how fast it is verified.

    python benchmarks/audit.py [--slow-disk 5]

Each side effect is an intent and an outcome, both on the disk before anybody goes on; N of them at
once, over and over. `alone` writes the same lines one by one with an fsync each, as without group
commit. `--slow-disk` adds so many milliseconds to every fsync, for disks that are not this one.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import tempfile
import time
from pathlib import Path

from chathands.conversation import Status
from chathands.toolbox import Caller, Redactor, open_audit
from chathands.toolbox.audit_check import examined
from chathands.toolbox.journal import Journal

AT_ONCE = (1, 10, 50, 200)
EFFECTS = 2000
CALLER = Caller("1001", "2001", "member", "小明", "onebot11", "9")
ARGUMENTS = {"robot": "销售群", "content": "十二月合计 1,234,567 元，比上月多 3 %。" * 3}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--slow-disk", type=float, default=0, metavar="MS")
    wanted = parser.parse_args()
    real, synced = os.fsync, []

    def fsync(descriptor: int) -> None:
        synced.append(descriptor)
        real(descriptor)
        if wanted.slow_disk:
            time.sleep(wanted.slow_disk / 1000)

    os.fsync = fsync
    with tempfile.TemporaryDirectory() as directory:
        for at_once in AT_ONCE:
            synced.clear()
            waits, seconds = asyncio.run(together(Path(directory) / str(at_once), at_once))
            print(line(f"{at_once} at once", waits, seconds, len(synced)))
        synced.clear()
        waits, seconds = alone(Path(directory) / "alone")
        print(line("alone", waits, seconds, len(synced)))
        began = time.perf_counter()
        verdict = examined(Path(directory) / "50")
        took = time.perf_counter() - began
        assert not verdict.faults
        print(
            f"verify  {verdict.lines} lines in {took:.2f} s ({verdict.lines / took:,.0f} a second)"
        )


async def together(state: Path, at_once: int) -> tuple[list[float], float]:
    """Seconds that each side effect waited for its two lines, and for all of them."""
    audit = await asyncio.to_thread(open_audit, state, Redactor(["sk-live-0123456789"]))
    waits: list[float] = []

    async def one(number: int) -> None:
        for turn in range(EFFECTS // at_once):
            began = time.perf_counter()
            run = f"R{number}-{turn}"
            intent = await audit.intent(CALLER, run, "send", ARGUMENTS, target="销售群")
            await audit.outcome(intent, Status.OK, "已推送", 3)
            waits.append(time.perf_counter() - began)

    began = time.perf_counter()
    await asyncio.gather(*(one(number) for number in range(at_once)))
    seconds = time.perf_counter() - began
    await asyncio.to_thread(audit.close)
    return waits, seconds


def alone(directory: Path) -> tuple[list[float], float]:
    """The same lines, each with an fsync of its own, as 50 tasks that share a writer would wait."""
    directory.mkdir()
    journal = Journal.take(directory / "1", b"k" * 32)
    assert journal is not None
    record = {"kind": "intent", "tool": "send", "arguments": ARGUMENTS, "target": "销售群"}
    count, waits, began = 10, [], time.perf_counter()
    for _ in range(count):
        round_began = time.perf_counter()
        for _ in range(2 * 50):
            journal.append(record, durable=True)
        waits.append(time.perf_counter() - round_began)
    seconds = time.perf_counter() - began
    journal.close()
    return [wait for wait in waits for _ in range(50)], seconds


def line(name: str, waits: list[float], seconds: float, fsyncs: int) -> str:
    ms = sorted(1000 * one for one in waits)
    p50, p95 = ms[len(ms) // 2], ms[int(len(ms) * 0.95)]
    rate = len(ms) / seconds
    return (
        f"{name:11} p50 {p50:6.1f}  p95 {p95:6.1f} ms  {rate:6,.0f} a second"
        f"  {fsyncs / len(ms):.2f} fsyncs each"
    )


if __name__ == "__main__":
    main()
