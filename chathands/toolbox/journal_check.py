"""Reads a journal and says what is wrong with it, one Chinese sentence for each thing done to it.

The lines are read once, in the order of the files. What belongs together is a `_Run`: authentic
lines that follow each other. A whole journal is one run; a cut, a swap, a copy put in make several,
and how they lie to each other tells what was done.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from chathands.toolbox.journal import LOSSES
from chathands.toolbox.journal_lines import (
    GENESIS,
    Head,
    raw_lines,
    read_line,
    segments,
    untouched,
)
from chathands.toolbox.journal_marks import marks_of

MOST_OF_A_KIND = 20
"""Faults of one kind that are told one by one; who rewrote a file changed thousands of lines."""


@dataclass(frozen=True, slots=True)
class Fault:
    """`code`: edited, unreadable, missing, twice, order, fork, no_head, no_anchor, changed, key,
    receipt, unmarked, interfered, gone, no_key, unreadable_file, more."""

    code: str
    sentence: str

    def __str__(self) -> str:
        return self.sentence


@dataclass(slots=True)
class Checked:
    """A journal as it was found. `notes`: what was noticed and is in order."""

    name: str
    faults: list[Fault] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    lines: int = 0
    first: int = 0
    last: Head = field(default_factory=Head)
    journals: int = 0
    """How many there were when this one was last begun."""


@dataclass(slots=True)
class _Run:
    first: int
    last: int
    prev: str
    seal: str
    where: str
    bad_before: int
    """Lines just before it that are edited or unreadable: they stand where others are missing."""


@dataclass(slots=True)
class _Found:
    runs: list[_Run] = field(default_factory=list)
    edited: list[str] = field(default_factory=list)
    unreadable: list[str] = field(default_factory=list)
    bad_after: int = 0
    torn: bytes = b""
    lines: int = 0
    seals: dict[int, str] = field(default_factory=dict)
    pruned: list[Head] = field(default_factory=list)
    recovered: list[dict[str, Any]] = field(default_factory=list)
    journals: int = 0


def checked(directory: Path, key: bytes, receipts: Iterable[Head] = ()) -> Checked:
    """What is to be said of a journal. `receipts`: lines somebody wrote down, to be found again
    (`seal` its beginning). It may be written meanwhile. Raises OSError."""
    inner, outer = (mark.read() for mark in marks_of(directory, key))
    marks = [head for head in (inner, outer) if head is not None]
    receipts = list(receipts)
    found = _read(directory, key, {head.seq for head in (*marks, *receipts)})
    result = Checked(directory.name, lines=found.lines, journals=found.journals)
    faults, name = result.faults, f"{directory.name} 号日志"
    if found.lines and not found.runs:
        text = f"{found.lines} 行没有一行对得上密钥，audit.key 被换过或整个被重写"
        faults.append(Fault("key", f"{name}：{text}"))
        return result
    faults += _some("edited", f"{name}：有一行被改过", found.edited)
    faults += _some("unreadable", f"{name}：有一行不是审计记录", found.unreadable)
    end = _end(found, marks, faults, name)
    faults += _of_runs(found, end, name)
    ordered = sorted(found.runs, key=lambda run: run.first)
    result.first = ordered[0].first if ordered else 0
    last = max(found.runs, key=lambda run: run.last, default=None)
    result.last = Head(last.last, last.seal) if last else Head()
    for code, mark, file in (("no_head", inner, "head.json"), ("no_anchor", outer, "audit.anchor")):
        if mark is None and found.runs:
            faults.append(Fault(code, f"{name}：{file} 不见了或被改过，末尾有没有少要看另一处标记"))
    for head in marks:
        given = found.seals.get(head.seq)
        if given is not None and given != head.seal and head.seq:
            text = f"{name}：第 {head.seq} 行和写的时候记下的不是同一行，换成了别的副本"
            faults.append(Fault("changed", text))
            break
    faults += _of_receipts(found, receipts, name)
    faults += [
        Fault(one["code"], f"{name}：{_LOSS[one['code']]}（{where}）")
        for one in found.recovered
        if one.get("code") in LOSSES and (where := f"第 {one['seq']} 行写明")
    ]
    result.notes += _notes(found, name)
    return result


_LOSS = {
    "unmarked": "启动时两处末尾标记都不见了，这之前少没少记录无法判断",
    "interfered": "程序正在写的时候，文件被别人动过",
}


def _read(directory: Path, key: bytes, wanted: set[int]) -> _Found:
    found = _Found()
    run: _Run | None = None
    bad = 0
    existing = segments(directory)
    for segment in existing:
        for number, raw in enumerate(raw_lines(segment), 1):
            where = f"{segment.parent.name}/{segment.name} 第 {number} 行"
            if not raw.endswith(b"\n") and segment == existing[-1]:
                found.torn = raw
                break
            line = read_line(raw)
            found.lines += 1
            if line is None:
                found.unreadable.append(where)
                bad, run = bad + 1, None
                continue
            if not raw.endswith(b"\n") or not untouched(key, line, raw):
                found.edited.append(f"{where}，自称第 {line['seq']} 行")
                bad, run = bad + 1, None
                continue
            seq = line["seq"]
            if run is not None and (seq, line["prev"]) == (run.last + 1, run.seal):
                run.last, run.seal = seq, line["seal"]
            else:
                run = _Run(seq, seq, line["prev"], line["seal"], where, bad)
                found.runs.append(run)
            bad = 0
            if seq in wanted:
                found.seals.setdefault(seq, line["seal"])
            _of_line(found, line)
    found.bad_after = bad
    return found


def _of_line(found: _Found, line: dict[str, Any]) -> None:
    kind = line.get("kind")
    if kind == "pruned":
        found.pruned.append(Head(line["through"], line["last"]))
    elif kind == "recovered":
        found.recovered.append(line)
    elif kind == "start":
        found.journals = max(found.journals, line.get("journals", 0))


def _end(found: _Found, marks: Sequence[Head], faults: list[Fault], name: str) -> int:
    """The number of the last line that was told to be on the disk."""
    end = max((head.seq for head in marks), default=0)
    line = read_line(found.torn) if found.torn else None
    if line and line["seq"] == end and any(line["seal"] == head.seal for head in marks):
        faults.append(Fault("missing", f"{name}：第 {end} 行的行尾被截掉了"))
        found.torn = b""
        return end - 1
    return end


def _of_runs(found: _Found, end: int, name: str) -> Iterator[Fault]:
    fresh: list[_Run] = []
    twice, order = [], []
    for run in found.runs:
        left, again = _apart(run, fresh)
        twice += [f"{_lines(*lines)}，{run.where}" for lines in again]
        for piece in left:
            if fresh and piece.first <= fresh[-1].last:
                order.append(f"第 {piece.first} 行排在第 {fresh[-1].last} 行后面，{piece.where}")
            fresh.append(piece)
    yield from _some("twice", f"{name}：重复出现", twice)
    yield from _some("order", f"{name}：顺序被打乱", order)
    fresh.sort(key=lambda run: run.first)
    pruned = max(found.pruned, key=lambda head: head.seq, default=Head())
    before = Head(0, GENESIS)
    if fresh and fresh[0].first > 1 and fresh[0].first <= pruned.seq + 1:
        before = pruned if fresh[0].first == pruned.seq + 1 else Head(fresh[0].first - 1, "")
    missing, forks = [], []
    for run in fresh:
        gap = run.first - before.seq - 1
        if gap > 0 and run.bad_before < gap:
            missing.append(f"{_lines(before.seq + 1, run.first - 1)}，{run.where}之前")
        elif gap == 0 and before.seal and run.prev and run.prev != before.seal:
            forks.append(f"第 {run.first} 行，{run.where}")
        before = Head(run.last, run.seal)
    if before.seq < end and found.bad_after < end - before.seq:
        rest = f"，只剩到第 {before.seq} 行" if fresh else "，一行都没有了"
        missing.append(f"末尾被截掉：{_lines(before.seq + 1, end)}{rest}")
    yield from _some("missing", f"{name}：少了记录", missing)
    yield from _some("fork", f"{name}：和前一行接不上，混进了另一份副本", forks)


def _apart(run: _Run, others: Sequence[_Run]) -> tuple[list[_Run], list[tuple[int, int]]]:
    """What of a run was not there before, and what was, as (first, last)."""
    new, again = [(run.first, run.last)], []
    for other in others:
        pieces = []
        for first, last in new:
            low, high = max(first, other.first), min(last, other.last)
            if low > high:
                pieces.append((first, last))
                continue
            again.append((low, high))
            pieces += [(first, low - 1)] if first < low else []
            pieces += [(high + 1, last)] if high < last else []
        new = pieces
    left = [
        replace(
            run,
            first=first,
            last=last,
            prev=run.prev if first == run.first else "",  # unknown: not kept line by line
            seal=run.seal if last == run.last else "",
            bad_before=run.bad_before if first == run.first else 0,
        )
        for first, last in new
    ]
    return left, again


def _of_receipts(found: _Found, receipts: Sequence[Head], name: str) -> Iterator[Fault]:
    through = max((head.seq for head in found.pruned), default=0)
    for head in receipts:
        given = found.seals.get(head.seq)
        if given is None and head.seq > through:
            text = f"{name}：凭据里的第 {head.seq} 行不在了，记录被退回到了更早的副本"
            yield Fault("receipt", text)
        elif given is not None and not given.startswith(head.seal):
            yield Fault("receipt", f"{name}：第 {head.seq} 行和凭据对不上，换成了别的记录")


def _notes(found: _Found, name: str) -> Iterator[str]:
    if found.pruned:
        through = max(head.seq for head in found.pruned)
        yield f"{name}：第 {through} 行和更早的已按保留期限清理，属于正常"
    if found.torn:
        size = f"{len(found.torn)} 字节"
        yield f"{name}：末尾有半行（{size}），正在写，或断在写到一半，没有据此执行过什么"
    said = {
        "torn": "启动时把没写完的半行移到了旁边的文件",
        "no_line_end": "启动时补上了末行丢掉的行尾",
        "no_head": "启动时补上了不见的 head.json",
        "no_anchor": "启动时补上了 audit.anchor 里的标记",
    }
    for one in found.recovered:
        text = said.get(one.get("code", ""))
        if text:
            yield f"{name}：{text}（第 {one['seq']} 行写明：{one.get('remark', '')}）"


def _some(code: str, what: str, places: Sequence[str]) -> Iterator[Fault]:
    for place in places[:MOST_OF_A_KIND]:
        yield Fault(code, f"{what}（{place}）")
    if len(places) > MOST_OF_A_KIND:
        yield Fault("more", f"{what}：还有 {len(places) - MOST_OF_A_KIND} 处")


def _lines(first: int, last: int) -> str:
    return f"第 {first} 行" if first == last else f"第 {first} 到 {last} 行"
