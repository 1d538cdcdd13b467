"""How well and how fast replies are read, beside other libraries in the same run.

    python benchmarks/parser.py [corpus.jsonl [tools.json]] [--categories] [--quick] [--check]

Without arguments it reads the project's own corpus. A corpus has one case a line: `raw`, `expected`
(a list of {"tool", "parameters"}), and optionally `alt_expected`, a list of further accepted lists.
`--quick` leaves out the peers' figures for long and hostile texts; `--check` exits 1 when one of
TARGETS is missed. Times are CPU time, medians of repeated runs. The peers come with
`pip install -e ".[bench]"`; one that is not installed is named as such.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import platform
import statistics
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from benchmarks.peers import NAMES, Peer, peers  # noqa: E402
from benchmarks.scale import CLEAN, attempt, behind, cost, growing, hostile, others  # noqa: E402

DATA = ROOT / "tests" / "data"
TARGETS = {
    "right, own corpus (%)": 100.0,
    "right, another corpus (%)": 95.0,
    "wrong calls": 0.0,
    "clean block (µs)": 100.0,
    "p99 of the corpus (µs)": 1000.0,
    "doubling the length (x)": 2.3,
    "a hostile text (s)": 0.3,
    "the same behind the reading (s)": 0.5,
    "a piece of one character (µs)": 3.0,
}
"""A share of right calls must be reached; everything else must not be exceeded."""


@dataclass
class Score:
    name: str
    right: int = 0
    wrong: int = 0
    """Replies for which calls came back that are not the right ones."""
    raised: int = 0
    clean: float = 0.0
    times: list[float] = field(default_factory=list)
    by_category: Counter[str] = field(default_factory=Counter)
    misses: list[str] = field(default_factory=list)

    @property
    def p99(self) -> float:
        ordered = sorted(self.times)
        return ordered[min(len(ordered) - 1, int(len(ordered) * 0.99))]


def measured(peer: Peer, cases: list[dict[str, Any]]) -> Score:
    """A reader over the corpus. Its standard error is closed: one prints a panic a case."""
    assert peer.read is not None
    read, score = peer.read, Score(peer.name)
    with quiet():
        for case in cases:
            got, came_back = attempt(read, case["raw"], peer.failures)
            fits = got == case["expected"] or got in case.get("alt_expected", [])
            score.right += fits
            score.wrong += bool(got) and not fits
            score.raised += not came_back
            score.by_category[case.get("category", "")] += fits
            if not fits:
                score.misses.append(case.get("id", case["raw"][:40]))
            score.times.append(cost(lambda r=case["raw"]: attempt(read, r, peer.failures), 5))
        score.clean = cost(lambda: [read(CLEAN) for _ in range(200)]) / 200
    return score


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    kept = os.dup(2)
    with open(os.devnull, "wb") as nowhere:
        os.dup2(nowhere.fileno(), 2)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)


def table(scores: list[Score], count: int) -> None:
    loads, repair = (next((s for s in scores if s.name.startswith(n)), None) for n in NAMES[1:3])
    print(
        f"{'':32} {'right':>7} {'wrong':>6} {'raised':>7} {'clean µs':>9} "
        f"{'x json':>7} {'x repair':>9} {'median µs':>10} {'p99 µs':>8}"
    )
    for score in scores:
        against = [f"{score.clean / s.clean:.1f}" if s else "-" for s in (loads, repair)]
        print(
            f"{score.name:32} {100 * score.right / count:6.1f}% {score.wrong:6} {score.raised:7} "
            f"{score.clean:9.1f} {against[0]:>7} {against[1]:>9} "
            f"{statistics.median(score.times):10.1f} {score.p99:8.0f}"
        )


def categories(scores: list[Score], cases: list[dict[str, Any]]) -> None:
    total = Counter(case.get("category", "") for case in cases)
    print(f"\n{'':20}" + "".join(f"{score.name[:20]:>22}" for score in scores))
    for category, count in sorted(total.items()):
        row = "".join(f"{score.by_category[category]:>14} of {count:>4}" for score in scores)
        print(f"{category:20}{row}")


def report(found: dict[str, float]) -> bool:
    """Prints each target beside what was measured; whether all are met."""
    print(f"\n{'target':32} {'wanted':>10} {'found':>10}")
    missed = False
    for name, value in found.items():
        share = name.startswith("right")
        ok = value >= TARGETS[name] if share else value <= TARGETS[name]
        missed = missed or not ok
        sign = "≥" if share else "≤"
        print(f"{name:32} {sign} {TARGETS[name]:8g} {value:10.2f}{'' if ok else '   missed'}")
    return not missed


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("corpus", nargs="?", type=Path, default=DATA / "malformed.jsonl")
    parser.add_argument("tools", nargs="?", type=Path, default=DATA / "malformed_tools.json")
    parser.add_argument("--categories", action="store_true")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    try:
        tools = json.loads(options.tools.read_text("utf-8"))
        lines = options.corpus.read_text("utf-8").split("\n")  # U+2028 stands inside strings
        cases = [json.loads(line) for line in lines if line.strip()]
    except OSError as error:
        sys.exit(f"cannot read {error.filename}: {error.strerror}")
    except ValueError as error:
        sys.exit(f"{options.corpus} and {options.tools} must hold JSON: {error}")

    print(f"Python {platform.python_version()}, {platform.machine()}, {os.cpu_count()} cores")
    negatives = sum(not case["expected"] for case in cases)
    print(f"{options.corpus.name}: {len(cases)} replies, {negatives} of them without a call\n")
    readers = peers(tools)
    scores = [measured(peer, cases) for peer in readers if peer.read is not None]
    table(scores, len(cases))
    for peer in readers:
        if peer.read is None:
            print(f"{peer.name:32} not installed")
    print("\nwrong: calls came back that are not the expected ones, or where none was expected")
    ours = scores[0]
    if ours.misses:
        print(f"not right in chathands: {', '.join(ours.misses)}")
    if options.categories:
        categories(scores, cases)

    ratio, piece = growing(tools)
    worst, after = hostile(tools), behind()
    if not options.quick:
        others(options.tools)
    own = options.corpus.resolve().parent == DATA.resolve()
    met = report(
        {
            f"right, {'own' if own else 'another'} corpus (%)": 100 * ours.right / len(cases),
            "wrong calls": ours.wrong,
            "clean block (µs)": ours.clean,
            "p99 of the corpus (µs)": ours.p99,
            "doubling the length (x)": ratio,
            "a hostile text (s)": worst,
            "the same behind the reading (s)": after,
            "a piece of one character (µs)": piece,
        }
    )
    return 1 if options.check and not met else 0


if __name__ == "__main__":
    sys.exit(main())
