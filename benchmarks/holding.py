"""How much of a streamed reply is held back, under the commit rule `stream`.

    python benchmarks/holding.py [replies.jsonl ...] [--piece 3] [--check]

Every reply is fed a few characters at a time. Held after a piece is what has been fed (white space
at both ends aside) and has not left. A line of a file has `reply` (or `output`, or `raw`), and
`user` (or `messages`) where the question is known. Three figures a file:

- plain replies, those that end as an answer in their own words: characters held after a piece, the
  median and the most. Wanted: at most 24 and never more than 64.
- replies with text before a block that opens with a fence or a tag: how many of them had all of
  that text out before the block's first `{` was fed. Wanted: all.
- replies that were sent back, refused or promised instead of done: held whole, so that nobody reads
  them, and not counted above. Among plain answers that is a false alarm.

The corpora (`raw`) are written to look like calls; of them only the second figure is taken.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from chathands.conversation import Message, ToolSpec, as_specs  # noqa: E402
from chathands.emulation import Answer, Calls, Outcome, Text, Turn  # noqa: E402

DATA = ROOT / "tests" / "data"
FILES = ("recorded_plain.jsonl", "recorded_small_model.jsonl", "forms.jsonl", "malformed.jsonl")
TEXT = {"type": "string"}
TYPICAL, MOST = 24, 64


@dataclass(frozen=True)
class Course:
    """How one reply went."""

    reply: str
    outcome: Outcome
    held: tuple[int, ...]
    """Characters held after each piece."""

    @property
    def is_plain(self) -> bool:
        return isinstance(self.outcome, Answer) and self.outcome.text == self.reply.strip()


def course_of(
    reply: str, tools: Sequence[ToolSpec], *, question: str = "", piece: int = 3
) -> Course:
    turn = Turn([Message.user(question or "请回答。")], tools, commit="stream")
    held = []
    for at in range(0, len(reply), piece):
        turn.feed(Text(reply[at : at + piece]))
        fed = reply[: at + piece]
        held.append(len(fed.strip()) - len(turn.sent.strip()))
    return Course(reply, turn.finish("stop"), tuple(held))


def out_before_block(
    reply: str, tools: Sequence[ToolSpec], *, question: str = "", piece: int = 3
) -> tuple[str, str] | None:
    """(text before the block, what of it had left before the block's first brace); None for a
    reply without a block, without text before it, or without anything between text and brace: then
    nothing says that a block begins."""
    whole = Turn([Message.user(question or "请回答。")], tools)
    whole.feed(Text(reply))
    outcome = whole.finish("stop")
    if not isinstance(outcome, Calls) or not outcome.text:
        return None
    end = reply.find(outcome.text) + len(outcome.text)
    brace = reply.find("{", end)
    if brace < 0 or not reply[end:brace].strip() or outcome.text not in reply:
        return None
    turn = Turn([Message.user(question or "请回答。")], tools, commit="stream")
    for at in range(0, brace, piece):
        turn.feed(Text(reply[at : min(at + piece, brace)]))
    return outcome.text, turn.sent.strip()


@dataclass
class Figures:
    plain: int = 0
    held: list[int] = field(default_factory=list)
    most: int = 0
    most_in: str = ""
    with_block: int = 0
    late: list[tuple[str, str]] = field(default_factory=list)
    sent_back: list[str] = field(default_factory=list)

    def add(self, course: Course) -> None:
        if course.is_plain and course.held:
            self.plain += 1
            self.held += course.held
            if max(course.held) > self.most:
                self.most, self.most_in = max(course.held), course.reply
        elif not isinstance(course.outcome, Answer | Calls):
            self.sent_back.append(course.reply)

    @property
    def median(self) -> float:
        return statistics.median(self.held) if self.held else 0.0


def declared() -> tuple[ToolSpec, ...]:
    """The tools of the corpora, and those the recorded replies were asked with."""
    corpus = json.loads((DATA / "malformed_tools.json").read_text("utf-8"))
    more = {
        "read_excel_data": ("file_path", "sheet_name"),
        "aggregate_excel_data": ("file_path", "column", "function"),
        "send_dingtalk_message": ("title", "content", "robot"),
    }
    return (
        *as_specs(corpus),
        *(
            ToolSpec(name, parameters={"type": "object", "properties": dict.fromkeys(keys, TEXT)})
            for name, keys in more.items()
        ),
    )


def figures_of(cases: Sequence[dict[str, Any]], tools: Sequence[ToolSpec], piece: int) -> Figures:
    found = Figures()
    for case in cases:
        reply, question = _reply(case), _question(case)
        if "raw" not in case:
            found.add(course_of(reply, tools, question=question, piece=piece))
        before = out_before_block(reply, tools, question=question, piece=piece)
        if before is not None:
            found.with_block += 1
            if before[0] != before[1]:
                found.late.append(before)
    return found


def _reply(case: dict[str, Any]) -> str:
    return next((case[key] for key in ("reply", "output", "raw", "text") if key in case), "")


def _question(case: dict[str, Any]) -> str:
    messages = [m["content"] for m in case.get("messages", ()) if m["role"] == "user"]
    return case.get("user") or (messages[-1] if messages else "")


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("files", nargs="*", type=Path)
    parser.add_argument("--piece", type=int, default=3)
    parser.add_argument("--check", action="store_true", help="exit 1 when a figure is missed")
    options = parser.parse_args()
    files = options.files or [DATA / name for name in FILES if (DATA / name).exists()]
    tools = declared()
    met = True
    print(f"{'pieces of ' + str(options.piece):28} plain  median  most   with text before a block")
    for path in files:
        lines = path.read_text("utf-8").split("\n")  # U+2028 stands inside strings
        found = figures_of([json.loads(line) for line in lines if line], tools, options.piece)
        out = found.with_block - len(found.late)
        print(
            f"{path.name:28} {found.plain:5} {found.median:7g} {found.most:5}   "
            f"{found.with_block} ({out} in time), {len(found.sent_back)} replies sent back"
        )
        if found.most > MOST:
            print(f"  held most: {found.most_in!r}")
        for text, sent in found.late[:3]:
            print(f"  late: {text!r}, of which {sent!r} was out")
        met = met and found.median <= TYPICAL and found.most <= MOST and not found.late
    print(f"wanted: median ≤ {TYPICAL}, most ≤ {MOST}, text before a block always in time")
    return 1 if options.check and not met else 0


if __name__ == "__main__":
    sys.exit(main())
