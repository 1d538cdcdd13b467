"""Cost of `from chathands import Turn, tool` against pydantic with one model; medians, one run."""

from __future__ import annotations

import statistics
import subprocess
import sys
import time

PYDANTIC = "from pydantic import BaseModel\nclass A(BaseModel):\n    x: int"
OURS = "from chathands import Turn, tool"
RUNS = 11


def seconds(code: str) -> float:
    started = time.perf_counter()
    subprocess.run([sys.executable, "-c", code], check=True)
    return time.perf_counter() - started


def main() -> None:
    seconds(PYDANTIC), seconds(OURS)  # warm the disk cache
    pairs = [(seconds(OURS), seconds(PYDANTIC)) for _ in range(RUNS)]
    ours, theirs = (statistics.median(column) for column in zip(*pairs, strict=True))
    ratio = statistics.median(a / b for a, b in pairs)
    print(f"ours {ours * 1000:.0f} ms  pydantic {theirs * 1000:.0f} ms  ratio {ratio:.2f}")


if __name__ == "__main__":
    main()
