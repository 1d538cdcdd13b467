"""Kill a process that writes the audit trail at full speed, again and again, and check the trail.

    python -m tests.toolbox.audit_soak [--kills 50] [--seed N]

The child says over a pipe which lines it was told are on the disk. After each `kill -9` every one
of them must be there, `verify` must find nothing wrong, and on copies of the trail that are cut
within the last three lines (every byte after each tenth kill, every 11th after the others) it must
say exactly what is missing. The same trail goes on
through all kills, with small segments and old ones being let go, so that kills hit those too.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from chathands.toolbox.audit import verify

ROOT = Path(__file__).parents[2]
SEGMENT_BYTES = 200_000

CHILD = """
import asyncio, os, sys
from pathlib import Path
from chathands.conversation import Status
from chathands.toolbox import Caller, Redactor, journal, open_audit

journal.SEGMENT_BYTES = int(sys.argv[2])
say = lambda *what: os.write(1, (" ".join(map(str, what)) + "\\n").encode())

async def worker(audit, n):
    caller, turn = Caller(str(n), "2001"), 0
    while True:
        turn += 1
        text = "内容" * (turn % 40)
        intent = await audit.intent(caller, f"R{n}-{turn}", "send", {"content": text}, target="甲")
        say("intent", intent)
        audit.call(caller, f"R{n}-{turn}", "look", {"what": text}, Status.OK, text, len(text))
        await audit.outcome(intent, Status.OK, "已推送", 3)
        say("outcome", intent)

async def main():
    audit = open_audit(Path(sys.argv[1]), Redactor(), keep_days=float(sys.argv[3]))
    say("open", len(audit.unfinished))
    await asyncio.gather(*(worker(audit, n) for n in range(8)))

asyncio.run(main())
"""


@dataclass
class Told:
    """What the child was told is on the disk."""

    opened: bool = False
    intents: set[int] = field(default_factory=set)
    outcomes: set[int] = field(default_factory=set)

    @property
    def last(self) -> int:
        return max(self.intents, default=0)


@dataclass
class Figures:
    kills: int = 0
    lines: int = 0
    torn: int = 0
    before_open: int = 0
    cuts: int = 0
    pruned: int = 0


def killed_child(state: Path, seconds: float, keep_days: float = 0) -> Told:
    """Run the child, kill it `seconds` after it opened the trail (less than 0: that long after the
    process began, wherever it is then), and give back what it was told."""
    arguments = [sys.executable, "-c", CHILD, str(state), str(SEGMENT_BYTES), str(keep_days)]
    child = subprocess.Popen(arguments, stdout=subprocess.PIPE, cwd=ROOT)
    assert child.stdout is not None
    try:
        first = b"" if seconds < 0 else child.stdout.readline()
        time.sleep(abs(seconds))
    finally:
        os.kill(child.pid, signal.SIGKILL)
    rest = child.stdout.read()
    child.stdout.close()
    child.wait(30)
    told = Told()
    for row in (first + rest).split(b"\n")[:-1]:
        kind, number = row.split()
        told.opened = True
        if kind == b"intent":
            told.intents.add(int(number))
        elif kind == b"outcome":
            told.outcomes.add(int(number))
    return told


def rows(state: Path) -> list[dict[str, Any]]:
    """Every whole line of the trail, read without our own reader."""
    found = []
    for path in sorted(state.glob("audit/1/*.jsonl")):
        found += [json.loads(row) for row in path.read_bytes().split(b"\n")[:-1]]
    return found


def check(state: Path, told: Told) -> None:
    faults = verify(state)
    assert not faults, [str(fault) for fault in faults]
    lines = rows(state)
    there = {line["seq"] for line in lines if line["kind"] == "intent"}
    ended = {line["intent"] for line in lines if line["kind"] == "outcome"}
    first = lines[0]["seq"] if lines else 1
    gone = {seq for seq in told.intents if seq >= first} - there
    assert not gone, f"intents {sorted(gone)} were told to be on the disk"
    gone = {seq for seq in told.outcomes if seq >= first} - ended
    assert not gone, f"outcomes of {sorted(gone)} were told to be on the disk"


def check_cuts(state: Path, told: int, *, step: int = 1) -> int:
    """Cut copies of the trail at every `step`th byte of the last three lines; how many cuts.

    `told`: the last line the writer was told of. What was marked but not told yet may be called
    missing; what was told must be; what was neither must not be.
    """
    with tempfile.TemporaryDirectory() as directory:
        copy = Path(directory) / "state"
        shutil.copytree(state, copy)
        segment = [p for p in sorted(copy.glob("audit/1/*.jsonl")) if p.stat().st_size][-1]
        whole = segment.read_bytes()
        marked = _marked(copy)
        ends = [at.end() for at in re.finditer(rb"\n", whole)]
        start = ends[-4] if len(ends) > 3 else 0
        before = max((line["seq"] for line in rows(copy)), default=0) - len(ends)
        cuts = 0
        for at in range(start, len(whole), step):
            with segment.open("r+b") as file:
                file.write(whole)
                file.truncate(at)
            left = before + whole[:at].count(b"\n")
            faults = verify(copy)
            if left < told or left < marked:
                (fault,) = faults
                assert fault.code == "missing", (at, str(fault))
                if left + 1 < max(told, marked):
                    assert f"第 {left + 1} 到 " in str(fault), (at, left, str(fault))
                else:
                    assert f"第 {left + 1} 行" in str(fault), (at, left, str(fault))
            else:
                assert not faults, (at, left, [str(one) for one in faults])
            cuts += 1
        return cuts


def _marked(state: Path) -> int:
    """The further of the marks, read without our own reader."""
    data = (state / "audit" / "1" / "head.json").read_bytes() + (
        state / "audit.anchor"
    ).read_bytes()
    return max(int(seq) for seq in re.findall(rb'"seq": (\d+)', data))


def soak(kills: int, seed: int) -> Figures:
    chance = random.Random(seed)
    figures = Figures()
    with tempfile.TemporaryDirectory() as directory:
        state = Path(directory) / "state"
        while figures.kills < kills:
            # Every fifth kill hits a process that starts: making the key, mending, pruning.
            seconds = chance.uniform(0, 0.3)
            if figures.kills % 5 == 0:
                seconds = -chance.uniform(0.05, 0.5)
            told = killed_child(state, seconds, keep_days=2 / 86400)
            figures.kills += 1
            figures.before_open += not told.opened
            check(state, told)
            if told.intents:
                step = 1 if figures.kills % 10 == 9 else 11
                figures.cuts += check_cuts(state, told.last, step=step)
        lines = rows(state)
        figures.lines = max(line["seq"] for line in lines)
        figures.pruned = lines[0]["seq"] - 1
        figures.torn = len(list(state.glob("audit/1/*.part")))
    return figures


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--seed", type=int, default=random.randrange(10**6))
    wanted = parser.parse_args()
    sys.stdout.write(f"seed {wanted.seed}\n")
    sys.stdout.write(f"{soak(wanted.kills, wanted.seed)}\n")


if __name__ == "__main__":
    main()
