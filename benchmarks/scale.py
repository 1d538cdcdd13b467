"""Texts that grow and texts that are hostile, and what reading them costs.

A peer is measured in a child process with a time limit: some need minutes, some do not return.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from benchmarks.peers import NAMES, Reader, peers  # noqa: E402
from chathands.conversation import (  # noqa: E402
    Message,
    Status,
    ToolCall,
    ToolResult,
    ToolSpec,
)
from chathands.emulation import (  # noqa: E402
    ParsedReply,
    Text,
    Turn,
    clean,
    project,
    review_reply,
)
from chathands.emulation.reading import parse_reply  # noqa: E402
from chathands.emulation.scanner import Scanner  # noqa: E402

UNCAPPED = 1 << 40
CLEAN = '```json action\n{"tool":"read_file","parameters":{"path":"src/app.py"}}\n```'
SIZES = (250_000, 500_000, 1_000_000)
PATIENCE = 3.0
"""Seconds a peer gets for one text."""

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
    "thinking": lambda n: "<think>" + "先看看，再想想。\n" * (n // 9) + "</think>\n" + CLEAN,
}
HOSTILE: dict[str, str] = {
    '{"a":"b, x 4,000': '{"a":"b,' * 4000,
    "the same in a block": "```json action\n" + '{"a":"b,' * 4000,
    "[ x 100,000": "[" * 100_000,
    '{"a": x 50,000 in a block': "```json action\n" + '{"a":' * 50_000,
    "` x 100,000": "`" * 100_000,
    "fence lines x 25,000": "```\n" * 25_000,
    '" x 100,000': '"' * 100_000,
    'a block, then " x 100,000': '```json action\n{"tool":"' + '"' * 100_000,
    "< x 100,000": "<" * 100_000,
    "<tool_call> x 10,000": "<tool_call>" * 10_000,
    "\\ x 100,000 in a block": '```json action\n{"a":"\n' + "\\" * 100_000,
    "spaces x 100,000 in a block": '```json action\n{"a":"b"' + " " * 100_000,
    "tool names x 9,000": "get_time()\n" * 9_000,
}
BEHIND: dict[str, str] = {
    "digits": "1",
    "line breaks": "\n",
    "figures": "1 ",
    "versions": "1.1.1.",
    "file names": "a.a.a.xls",
    "rows of a table": "| 华东 | 123 |\n",
    "result heads": "结果 #1 a [status=ok",
    "backticks": "`",
    "open elements": "<invoke ",
    "pleas": "我无法",
    "characters": "好",
}
"""Units of texts of 100,000 characters for the ways behind the reading."""
FOR_PEERS = ("a long text argument", "prose")


def cost(run: Callable[[], object], repeat: int = 9) -> float:
    """Microseconds of CPU time, the median of several runs."""
    times = []
    for _ in range(repeat):
        start = time.process_time()
        run()
        times.append(time.process_time() - start)
    return statistics.median(times) * 1e6


def growing(tools: list[dict[str, Any]]) -> tuple[float, float]:
    """Prints what doubling costs us; returns the worst ratio and the worst extra of a piece."""
    heads = " ".join(f"{size // 1000:>6} kB" for size in SIZES)
    print(f"\n{'chathands, cap lifted':28} {heads} {'ratio':>6} {'per piece of 1':>15}")
    worst, most = 0.0, 0.0
    for label, make in GROWING.items():
        texts = [make(size) for size in SIZES]
        # the sizes in turn, so that a busy machine slows all of them alike
        rounds = [
            [cost(lambda t=text: parse_reply(t, tools, cap=UNCAPPED), 1) for text in texts]
            for _ in range(5)
        ]
        times = [statistics.median(column) for column in zip(*rounds, strict=True)]
        ratio = max(
            statistics.median(after / before for before, after in pairs)
            for pairs in zip(*(pairwise(one) for one in rounds), strict=True)
        )
        short = make(60_000)
        whole = cost(lambda t=short: parse_reply(t, tools, cap=UNCAPPED), 5)
        pieces = cost(lambda t=short: _in_single_characters(t, tools), 5)
        extra = (pieces - whole) / len(short)
        row = " ".join(f"{t / 1000:6.0f} ms" for t in times)
        print(f"{label:28} {row} {ratio:6.2f} {extra:12.2f} µs")
        worst, most = max(worst, ratio), max(most, extra)
    return worst, most


def hostile(tools: list[dict[str, Any]]) -> float:
    """Prints what hostile texts cost us; returns the worst, in seconds."""
    print(f"\n{'chathands, hostile text':28}")
    worst = 0.0
    for label, text in HOSTILE.items():
        seconds = cost(lambda t=text: parse_reply(t, tools), 3) / 1e6
        print(f"{label:28} {seconds * 1000:6.0f} ms")
        worst = max(worst, seconds)
    return worst


def behind() -> float:
    """Prints what hostile texts cost behind the reading; returns the worst, in seconds."""
    print(f"\n{'chathands, behind the reading':30}" + "".join(f"{way:>12}" for way in _WAYS))
    worst = 0.0
    for label, unit in BEHIND.items():
        text = (unit * 100_000)[:100_000]
        # once, and no two texts alike: some of these ways remember what they have seen
        row = [cost(lambda t=f"{text}{way}", w=walk: w(t), 1) / 1e6 for way, walk in _WAYS.items()]
        print(f"{label:30}" + "".join(f"{seconds * 1000:9.0f} ms" for seconds in row))
        worst = max(worst, *row)
    return worst


_TOOLS = [
    ToolSpec("read_sales", "读取销售额", side_effect="none"),
    ToolSpec("send_message", "发送消息", side_effect="outward"),
]


def _asked(result: str) -> list[Message]:
    call = ToolCall("c1", "read_sales", {})
    told = Message.tool(ToolResult("c1", "read_sales", Status.OK, result))
    return [Message.user("华东的销售额，发出去"), Message.assistant("", [call]), told]


def _turn(text: str, commit: Literal["finish", "stream"]) -> None:
    turn = Turn(_asked("| 区 | 额 |\n|---|---|\n| 华东 | 123 |\n"), _TOOLS, commit=commit)
    turn.request()
    for at in range(0, len(text), 100):
        turn.feed(Text(text[at : at + 100]))
    turn.finish("stop")


def _result(text: str) -> None:
    review_reply(ParsedReply("华东的销售额是 98765 元。"), _TOOLS, "auto", _asked(text))


_WAYS: dict[str, Callable[[str], object]] = {
    "a turn": lambda text: _turn(text, "finish"),
    "streamed": lambda text: _turn(text, "stream"),
    "a result": _result,
    "a history": lambda text: project([Message.user("a"), *_asked(text)], _TOOLS, language="zh"),
    "cleaning": lambda text: clean([Message.user("a"), Message.assistant(text)]),
}


def _in_single_characters(text: str, tools: list[dict[str, Any]]) -> None:
    scanner = Scanner(tools, cap=UNCAPPED)
    for char in text:
        scanner.feed(char)
    scanner.close()


# --- peers


def others(tools_file: Path) -> None:
    """Prints what the same texts cost the peers, each in a child that is stopped in time."""
    absent = [peer.name for peer in peers(json.loads(tools_file.read_text("utf-8")))
              if peer.read is None]  # fmt: skip
    names = [name for name in NAMES[1:] if name not in absent]
    print(f"\nthe peers on the same texts (ms of CPU; at most {PATIENCE:g} s each)")
    print(f"{'':34}" + "".join(f"{name[:20]:>21}" for name in names))
    labels = [f"{label}, {size // 1000} kB" for label in FOR_PEERS for size in SIZES[1:]]
    for label in [*labels, *HOSTILE]:
        row = [_in_child(name, label, tools_file) for name in names]
        print(f"{label:34}" + "".join(f"{entry:>21}" for entry in row), flush=True)


def _in_child(name: str, label: str, tools_file: Path) -> str:
    command = [sys.executable, __file__, name, label, str(tools_file)]
    try:
        # a child needs a moment to import the library before its own clock starts
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=PATIENCE + 2, check=False
        )
    except subprocess.TimeoutExpired:
        return f"> {PATIENCE * 1000:.0f}"
    if done.returncode != 0:
        return f"died ({done.returncode})"
    return done.stdout.strip()


def _child(name: str, label: str, tools_file: Path) -> str:
    (peer,) = peers(json.loads(tools_file.read_text("utf-8")), [name])
    assert peer.read is not None
    text = HOSTILE.get(label)
    if text is None:
        kind, _, size = label.removesuffix(" kB").rpartition(", ")
        text = GROWING[kind](int(size) * 1000)
    start = time.process_time()
    failed = "" if attempt(peer.read, text, peer.failures)[1] else " raised"
    return f"{(time.process_time() - start) * 1000:.0f}{failed}"


def attempt(
    read: Reader, reply: str, failures: tuple[type[BaseException], ...]
) -> tuple[list[dict[str, Any]], bool]:
    """A reader's calls, and whether it came back; who raises has found none."""
    try:
        return read(reply), True
    except (KeyboardInterrupt, SystemExit):
        raise
    except failures:
        return [], False


if __name__ == "__main__":
    print(_child(sys.argv[1], sys.argv[2], Path(sys.argv[3])))
