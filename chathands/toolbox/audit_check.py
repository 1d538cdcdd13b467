"""Whether the audit trail is whole: every journal of a state directory, and that none is gone.

What can be found with what is on this machine, and what cannot: docs/audit.md.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from chathands.toolbox.journal_check import Checked, Fault, checked
from chathands.toolbox.journal_lines import Head, segments
from chathands.toolbox.journal_marks import Mark, anchor_of, anchored

KEY_FILE = "audit.key"
RECEIPT_LENGTH = 16
"""Characters of a seal that are enough to write down: 64 bits."""

_RECEIPT = re.compile(r"(\d{1,6}):(\d{1,15}):([0-9a-f]{16,64})")


@dataclass(frozen=True, slots=True)
class Receipt:
    """A line somebody wrote down elsewhere; `str()` is what to write down."""

    journal: str
    head: Head

    def __str__(self) -> str:
        return f"{self.journal}:{self.head.seq}:{self.head.seal[:RECEIPT_LENGTH]}"

    @classmethod
    def read(cls, text: str) -> Receipt | None:
        found = _RECEIPT.fullmatch(text.strip().lower())
        if found is None:
            return None
        return cls(str(int(found[1])), Head(int(found[2]), found[3]))


@dataclass(frozen=True, slots=True)
class Verdict:
    """`begun`: whether there is, or was, a trail at all."""

    begun: bool
    faults: tuple[Fault, ...] = ()
    notes: tuple[str, ...] = ()
    receipts: tuple[Receipt, ...] = ()
    """The last line of each journal, to be written down where this machine cannot change it."""
    lines: int = 0


def has_trail(state_dir: Path) -> bool:
    """Whether anything was ever written there (and was not removed whole)."""
    return bool(journals(state_dir))


def journals(state_dir: Path) -> list[Path]:
    """Directories of journals, by number; what else an admin put there is none."""
    found = [path for path in (state_dir / "audit").glob("[1-9]*") if path.is_dir()]
    numbered = [path for path in found if path.name.isdecimal() and path.name.isascii()]
    return sorted(numbered, key=lambda path: int(path.name))


def verify(state_dir: Path) -> list[Fault]:
    """What was cut, edited, put elsewhere or removed; empty when the trail is whole."""
    return list(examined(state_dir).faults)


def examined(state_dir: Path, receipts: Sequence[Receipt] = ()) -> Verdict:
    """All there is to say about a trail. It may be written meanwhile. Raises OSError."""
    key_file = state_dir / KEY_FILE
    directory = state_dir / "audit"
    anchors = anchored(directory)
    there = journals(state_dir)
    if not key_file.exists():
        if not any(segments(journal) for journal in there) and not receipts:
            return Verdict(False)
        return Verdict(True, (Fault("no_key", "audit.key 不见了，没有它什么都核对不了"),))
    key = key_file.read_bytes()
    if not there and not anchors:
        return Verdict(True, (Fault("gone", "审计记录整个不见了，只剩下 audit.key"),))
    results: list[Checked] = []
    for journal in there:
        mine = [one.head for one in receipts if one.journal == journal.name]
        results.append(_checked(journal, key, mine))
    faults = [fault for result in results for fault in result.faults]
    known = {journal.name for journal in there}
    expected = max([anchors, *(result.journals for result in results)])
    for number in map(str, range(1, expected + 1)):
        mark = Mark(anchor_of(directory), key, number, int(number) - 1).read()
        if number not in known and (mark is None or mark.seq):
            lines = f"，应有 {mark.seq} 行" if mark and mark.seq else ""
            faults.append(Fault("gone", f"{number} 号日志整个不见了{lines}"))
    for one in receipts:
        if one.journal not in known and int(one.journal) > expected:
            faults.append(Fault("receipt", f"凭据说有 {one.journal} 号日志，现在没有"))
    if anchors == 0 and not any(fault.code == "no_anchor" for fault in faults):
        faults.append(Fault("no_anchor", "audit.anchor 不见了，末尾有没有少要看 head.json"))
    return Verdict(
        True,
        tuple(faults),
        tuple(note for result in results for note in result.notes),
        tuple(Receipt(result.name, result.last) for result in results if result.last.seq),
        sum(result.lines for result in results),
    )


def _checked(journal: Path, key: bytes, receipts: Sequence[Head]) -> Checked:
    """A second look when a file goes away meanwhile: old segments do, when they are let go."""
    try:
        return checked(journal, key, receipts)
    except FileNotFoundError:
        return checked(journal, key, receipts)
