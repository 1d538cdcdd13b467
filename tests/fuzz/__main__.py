"""A longer run by hand: python -m tests.fuzz [--seconds 60] [--seed x] [--target "any text"]

Prints, for every law that was broken, the smallest case found; exits 1 if there was one.
"""

from __future__ import annotations

import argparse
import sys
import time

from tests.fuzz.laws import Broken
from tests.fuzz.running import TARGETS, findings
from tests.fuzz.shrinking import shown, smallest

_SHRUNK = 3
"""Findings of one law that are made small; the rest are counted."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60.0, help="for all targets together")
    parser.add_argument("--seed", default=str(time.time_ns()))
    parser.add_argument("--target", choices=list(TARGETS), action="append")
    options = parser.parse_args()
    targets = options.target or list(TARGETS)
    by_law: dict[str, list[Broken]] = {}
    for name in targets:
        cases = 0
        for broken in findings(name, seed=options.seed, seconds=options.seconds / len(targets)):
            cases += 1
            if broken is not None:
                by_law.setdefault(broken.law, []).append(broken)
        sys.stdout.write(f"{name:16} {cases:8} cases\n")
    sys.stdout.write(f"seed {options.seed}\n")
    for law, found in by_law.items():
        found.sort(key=lambda broken: len(repr(broken.reply)))
        sys.stdout.write(f"\n{law}: {len(found)} times\n")
        for broken in found[:_SHRUNK]:
            small = smallest(broken)
            sys.stdout.write(f"  {broken.__notes__[0]}\n    {shown(small.reply)}\n")
            sys.stdout.write(f"    {small.detail[:2000]}\n")
    return 1 if by_law else 0


if __name__ == "__main__":
    sys.exit(main())
