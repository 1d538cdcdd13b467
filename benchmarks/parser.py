"""How well and how fast replies are read, beside thirty lines of glue around a JSON library.

    python benchmarks/parser.py [corpus.jsonl tools.json]

Without arguments it reads the project's own corpus. A corpus has one case a line: `raw`, `expected`
(a list of {"tool", "parameters"}), and optionally `alt_expected`, a list of further accepted lists.
json_repair is compared when it is installed. Times are CPU time, medians of repeated runs.
"""

from __future__ import annotations

import importlib.util
import json
import re
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from chathands.conversation import as_specs  # noqa: E402
from chathands.emulation.reading import parse_reply  # noqa: E402
from chathands.emulation.scanner import Scanner  # noqa: E402

Calls = list[dict[str, Any]]
Reader = Callable[[str], Calls]
CLEAN = '```json action\n{"tool":"read_file","parameters":{"path":"src/app.py"}}\n```'
UNCAPPED = 1 << 40


def glue(loads: Callable[[str], Any], names: set[str]) -> Reader:
    """What people write themselves: strip thinking, take the first fence, load, map the keys."""

    def read(reply: str) -> Calls:
        reply = re.sub(r"<think>.*?</think>", "", reply, flags=re.DOTALL)
        fence = re.search(r"```[^\n{\[]*\n?(.*?)```", reply, re.DOTALL)
        body = fence.group(1) if fence else reply
        if not fence and (bare := re.search(r"[{\[].*[}\]]", reply, re.DOTALL)):
            body = bare.group()
        try:
            value = loads(body.strip())
        except ValueError:
            return []
        calls = []
        for item in value if isinstance(value, list) else [value]:
            if not isinstance(item, dict):
                continue
            keys = ("tool", "name", "function", "action", "tool_name")
            name = next((item[k] for k in keys if isinstance(item.get(k), str)), None)
            given = ("parameters", "arguments", "args", "input", "params", "action_input")
            arguments = next((item[k] for k in given if k in item), {})
            if isinstance(arguments, str):
                arguments = json.loads(arguments) if arguments.startswith("{") else {}
            if name in names:
                calls.append({"tool": name, "parameters": arguments or {}})
        return calls

    return read


def cost(run: Callable[[], object], repeat: int = 9) -> float:
    """Microseconds of CPU time, the median of several runs."""
    times = []
    for _ in range(repeat):
        start = time.process_time()
        run()
        times.append(time.process_time() - start)
    return statistics.median(times) * 1e6


def precise(run: Callable[[], object]) -> float:
    """The same for something that takes a few microseconds only."""
    return cost(lambda: [run() for _ in range(200)]) / 200


def compare(cases: list[dict[str, Any]], tools: list[dict[str, Any]]) -> None:
    names = {tool.get("function", tool)["name"] for tool in tools}
    specs = as_specs(tools)
    readers: dict[str, Reader] = {
        "chathands": lambda reply: [
            {"tool": call.name, "parameters": dict(call.arguments)}
            for call in parse_reply(reply, specs).calls
        ],
        "glue + json.loads": glue(json.loads, names),
    }
    if importlib.util.find_spec("json_repair"):
        import json_repair

        readers["glue + json_repair"] = glue(json_repair.loads, names)
    print(f"{len(cases)} replies, {sum(not c['expected'] for c in cases)} of them without a call\n")
    print(f"{'':20} {'right':>7} {'unsafe':>7} {'clean µs':>9} {'median µs':>10} {'p99 µs':>8}")
    for label, read in readers.items():
        right = unsafe = 0
        times = []
        for case in cases:
            got = attempt(read, case["raw"])
            fits = got == case["expected"] or got in case.get("alt_expected", [])
            right += fits
            unsafe += bool(got) and not fits
            times.append(cost(lambda r=read, raw=case["raw"]: attempt(r, raw), 5))
        times.sort()
        p99 = times[min(len(times) - 1, int(len(times) * 0.99))]
        clean = precise(lambda r=read: r(CLEAN))
        share = 100 * right / len(cases)
        print(
            f"{label:20} {share:6.1f}% {unsafe:7} {clean:9.1f} "
            f"{statistics.median(times):10.1f} {p99:8.0f}"
        )
    print("\nunsafe: calls returned that are not the expected ones, or where none was expected")


def attempt(read: Reader, reply: str) -> Calls:
    """A reader's calls; a library that raises on odd text has found none."""
    try:
        return read(reply)
    except (ValueError, TypeError, RecursionError):
        return []


GROWING: dict[str, Callable[[int], str]] = {
    "a long text argument": lambda n: CLEAN.replace(
        "src/app.py", r"a line \"of\" text\n" * (n // 19)
    ),
    "the same, raw line breaks": lambda n: CLEAN.replace(
        "src/app.py", "a line of text\n" * (n // 15)
    ),
    "the same, raw quotes": lambda n: CLEAN.replace("src/app.py", 'a "line" of text ' * (n // 17)),
    "prose": lambda n: "一段普通的回答，有 `code`，有（括号）：好。\n" * (n // 27),
    "a code block": lambda n: "```python\n" + "def f(x):\n    return [x]\n" * (n // 25) + "```",
    "data in JSON": lambda n: '{"rows": [' + '{"a": "b", "c": [1, 2]},\n' * (n // 25) + "]}",
}
HOSTILE: dict[str, str] = {
    '{"a":"b, x 4,000': '{"a":"b,' * 4000,
    "[ x 100,000": "[" * 100_000,
    "` x 100,000": "`" * 100_000,
    '" x 100,000': '"' * 100_000,
    'a block, then " x 100,000': '```json action\n{"tool":"' + '"' * 100_000,
    "< x 100,000": "<" * 100_000,
    "spaces x 100,000": '```json action\n{"a":"b"' + " " * 100_000,
}


def scale(tools: list[dict[str, Any]]) -> None:
    print(f"\n{'':28} {'250 kB':>9} {'500 kB':>9} {'1 MB':>9} {'ratio':>6} {'per piece of 1':>15}")
    for label, make in GROWING.items():
        texts = [make(size) for size in (250_000, 500_000, 1_000_000)]
        times = [cost(lambda t=text: parse_reply(t, tools, cap=UNCAPPED), 3) for text in texts]
        short = make(60_000)
        whole = cost(lambda t=short: parse_reply(t, tools, cap=UNCAPPED), 3)
        pieces = cost(lambda t=short: in_single_characters(t, tools), 3)
        row = " ".join(f"{t / 1000:6.0f} ms" for t in times)
        extra = (pieces - whole) / len(short)
        print(f"{label:28} {row} {times[2] / times[1]:6.2f} {extra:12.2f} µs")
    print()
    for label, text in HOSTILE.items():
        print(f"{label:28} {cost(lambda t=text: parse_reply(t, tools), 3) / 1000:6.0f} ms")


def in_single_characters(text: str, tools: list[dict[str, Any]]) -> None:
    scanner = Scanner(tools, cap=UNCAPPED)
    for char in text:
        scanner.feed(char)
    scanner.close()


def main() -> None:
    data = ROOT / "tests" / "data"
    given = [Path(argument) for argument in sys.argv[1:3]]
    corpus, tools_file = given if len(given) == 2 else (
        data / "malformed.jsonl", data / "malformed_tools.json"
    )  # fmt: skip
    tools = json.loads(tools_file.read_text("utf-8"))
    lines = corpus.read_text("utf-8").split("\n")
    compare([json.loads(line) for line in lines if line.strip()], tools)
    scale(tools)


if __name__ == "__main__":
    main()
