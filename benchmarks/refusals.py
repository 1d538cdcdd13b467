"""How well replies without a call are told apart: ask again, or let them stand.

    python benchmarks/refusals.py [--misses]

Judges `tests/data/refusals.jsonl` and, for false alarms alone, the recorded plain answers in
`tests/data/recorded_plain.jsonl`, each from the reply and its tools alone and, where there is one,
with its question; beside it the two things people write first: a list of keywords, and asking again
whenever there is no call. Shares come with their 95 % interval (Wilson). Sets are described in
`tests/data/refusals.md`; of `b1-held` nothing was read while the patterns were written.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from benchmarks.figures import wilson  # noqa: E402
from benchmarks.labelled import cases, decidable, decided  # noqa: E402

Case = dict[str, Any]
Judge = Callable[[Case], bool]

KEYWORDS = (
    *("抱歉", "对不起", "无法", "不能", "没有工具", "没有权限", "作为一个", "语言模型", "我不具备"),
    *("让我", "我将", "我会", "我来", "我需要", "请稍等", "正在", "您可以", "请提供", "请运行"),
    *("sorry", "i can't", "i cannot", "unable to", "as an ai", "language model", "don't have"),
    *("no access", "let me", "i will", "i'll", "i need to", "one moment", "you can", "please run"),
)
"""What such lists hold, in our words: apologies, inability, promises, advice."""


def ours(*, asked: bool) -> Judge:
    return lambda case: decided(case, asked=asked).retry


def keywords(case: Case) -> bool:
    text = case["text"].casefold().replace("’", "'")
    return any(word in text for word in KEYWORDS)


def no_call(case: Case) -> bool:
    return True


def share(rows: Iterable[Case], judge: Judge, *, upper: bool) -> str:
    """How many are asked again, with the bound that counts."""
    judged = [judge(case) for case in rows]
    if not judged:
        return f"{'-':>26s}"
    low, high = wilson(sum(judged), len(judged))
    bound = f"<={high:6.1%}" if upper else f">={low:6.1%}"
    return f"{sum(judged):4d}/{len(judged):<4d}{sum(judged) / len(judged):6.1%} {bound}"


def table(title: str, rows: list[Case], judges: dict[str, Judge]) -> None:
    print(f"\n{title}\n{'':24s}" + "".join(f"{name:>28s}" for name in judges))
    groups: list[tuple[str, list[Case]]] = [("all", rows)]
    for key in ("lang", "label", "set", "source"):
        values = sorted({case[key] for case in rows if key in case})
        groups += [(f"{key} {v}", [c for c in rows if c.get(key) == v]) for v in values]
    for name, group in groups:
        for should, upper in ((True, False), (False, True)):
            chosen = [case for case in group if case.get("should_retry", False) is should]
            if chosen:
                cells = [share(chosen, judge, upper=upper) for judge in judges.values()]
                print(f"{name:18s}{'caught' if should else 'false':>6s}" + "  ".join(cells))


def misses(rows: list[Case], judge: Judge) -> None:
    for case in rows:
        should = case.get("should_retry", False)
        if judge(case) is not should and case.get("set") != "b1-held":
            print(f"  {'missed' if should else 'false '} {case['id']} {case['text'][:100]!r}")


def main() -> None:
    labelled, plain = cases(), cases("recorded_plain.jsonl")
    for asked, name in ((False, "reply and tools alone"), (True, "with the question")):
        judges = {"chathands": ours(asked=asked), "keywords": keywords, "no call": no_call}
        for title, rows in (("refusals.jsonl", labelled), ("recorded_plain.jsonl", plain)):
            chosen = [case for case in rows if decidable(case, asked=asked)]
            table(f"{title}, {name}", chosen, judges)
            if "--misses" in sys.argv:
                misses(chosen, judges["chathands"])


if __name__ == "__main__":
    main()
