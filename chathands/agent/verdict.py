"""The verdict on a run: which layer to look at, in one line, read off its trace.

A run that ended well may still have one: an answer that honestly reports a failed tool is a good
answer, and the tool is what somebody has to look at. What people decided (a denial, 停) is `ok`.
"""

from __future__ import annotations

import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, get_args

from chathands import errors
from chathands.agent.turns import Withdraw
from chathands.emulation.outcome import Basis
from chathands.toolbox.render import one_line

LAYERS = ("contract", "parser", "review", "state", "tool", "upstream")
"""What a verdict may blame; with nothing to blame it is `ok`."""

DEADLINE_ERROR = "deadline"
"""What `error` of a request says that we cut off ourselves."""
CANCELLED_ERROR = "cancelled"

STATE_NOTE, NO_MODEL_NOTE = "state", "upstream"
"""Notes that name the layer to blame, with the detail of an error."""
YES_NOTE, WITHDRAWN_NOTE, CUT_NOTE = "已确认", "收回工具", "被打断"
"""Notes that the verdict reads; the run and the agent write them."""
WEAKER_NOTE = "换一种方式再问"
"""The upstream refused what the mode puts into a request."""

_CUT_SHORT = ("length", "max_tokens", "content_filter")
"""Finish reasons that say the upstream ended the reply, not the model."""
_DETAIL_CHARACTERS = 60


@dataclass(frozen=True, slots=True)
class Verdict:
    """As a string: `layer: what（fact）；next`, or `ok` with what is worth knowing."""

    layer: str
    what: str = ""
    fact: str = ""
    next: str = ""

    def __str__(self) -> str:
        fact = f"（{self.fact}）" if self.fact and self.what else self.fact
        text = "；".join(part for part in (f"{self.what}{fact}", self.next) if part)
        return f"{self.layer}: {text}" if text else self.layer


def verdict_of(trace: Mapping[str, Any]) -> str:
    """One line: `ok`, or contract, parser, review, state, tool or upstream; what happened; what
    to do next."""
    return str(_Run(trace).verdict())


@cache
def _texts() -> dict[str, dict[str, dict[str, str]]]:
    text = files("chathands.agent").joinpath("verdicts.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)


class _Run:
    """A trace with what the verdict asks of it."""

    def __init__(self, trace: Mapping[str, Any]) -> None:
        self._trace = trace
        self._steps: Sequence[Mapping[str, Any]] = trace.get("steps", ())
        self._requests = [
            row for step in self._steps if step["kind"] == "turn" for row in step["requests"]
        ]
        self._rejected = [row for row in self._requests if turned_down(row)]
        self._without_tools = [
            row
            for step in self._steps
            if step["kind"] == "turn" and _tools_were_over(step)
            for row in step["requests"]
        ]

    def verdict(self) -> Verdict:
        match self._trace.get("outcome"):
            case "suspended":
                return Verdict("ok", "等待确认")
            case "cancelled":
                return Verdict("ok", "已停止", self._stopped_at())
            case "answered":
                return self._of_state() or self._of_answered()
            case _:
                return self._of_state() or self._of_failed()

    # --- the ways a run ends

    def _of_state(self) -> Verdict | None:
        """What is damaged on our side comes first: everything else may follow from it."""
        detail = self._note(STATE_NOTE)
        if detail is not None:
            cause = {"crashed": "crash", "answered": "not_remembered"}
            name = cause.get(self._trace.get("outcome", ""), "store")
            return self._blame("cause", name, _short(detail))
        if obsolete := self._denied_after_yes():
            return self._blame("cause", "obsolete", obsolete)
        orphans = max((entry["asked"]["history"]["orphans"] for entry in self._log()), default=0)
        return self._blame("cause", "orphans", f"{orphans} 条") if orphans else None

    def _of_answered(self) -> Verdict:
        if self._withdrawn("deadline"):
            return self._of_lost_time()
        failures = self._failures(("failed", "unknown"))
        if failures:
            return self._blame("cause", "tool", failures[0])
        if (plea := self._pleaded_to_the_end()) is not None:
            return self._blame("cause", "pleaded", plea)
        remarks = [*self._mended(), *self._failures(("denied",))]
        if self._withdrawn("last_round"):
            remarks.append("收回工具后才答出")
        if self._rejected:
            remarks.append(f"纠正 {len(self._rejected)} 次后答出：{_counted(self._rejected)}")
        broken = [
            one["reason"]
            for row in self._requests
            if _kind(row) == "calls"
            for one in row["outcome"]["broken"]
        ]
        if broken:
            remarks.append(f"并排的调用有 {len(broken)} 个没有执行：{broken[0]}")
        return Verdict("ok", "；".join(remarks))

    def _of_failed(self) -> Verdict:
        if (detail := self._note(NO_MODEL_NOTE)) is not None:
            return self._blame("cause", "no_model", _short(detail))
        last = self._requests[-1] if self._requests else {}
        error = last.get("error")
        if error and error not in (DEADLINE_ERROR, CANCELLED_ERROR):
            return self._blame("cause", "upstream", _sentence_of(error))
        if error == DEADLINE_ERROR or self._withdrawn("deadline") or not self._rejected:
            return self._of_lost_time()
        # Of the last decision: what ended the run, not what was mended before.
        return self._of_reasons(self._rejected_last())

    def _of_reasons(self, rejected: Sequence[Mapping[str, Any]]) -> Verdict:
        """Replies that were turned down to the end: the reason most of them share."""
        reasons = [self._reason(row) for row in rejected]
        often = max(Counter(reasons).values())
        last = next(one for one in reversed(reasons) if reasons.count(one) == often)
        facts = [_counted(rejected), _short(rejected[-1]["outcome"].get("detail", ""))]
        before = self._failures(("failed", "unknown", "denied"))
        facts += [f"此前 {before[0]}"] if before else []
        return self._blame("reason", last, "，".join(fact for fact in facts if fact))

    def _of_lost_time(self) -> Verdict:
        """Nothing failed by itself, but time ran out: who took most of it?"""
        took: dict[str, float] = {}
        for _, result in self._results():
            seconds = (result.get("cost_ms") or 0) / 1000
            took[result["name"]] = took.get(result["name"], 0.0) + seconds
        tools, model = sum(took.values()), sum(map(_seconds, self._requests))
        rejected = sum(map(_seconds, self._rejected))
        fact = f"模型用了 {model:.1f} 秒，工具用了 {tools:.1f} 秒"
        if tools > model:
            return self._blame(
                "cause", "slow_tool", f"{fact}，最久的是 {max(took, key=took.__getitem__)}"
            )
        if rejected > model / 2:
            blamed = self._of_reasons(self._rejected).layer
            fact = f"{_counted(self._rejected)}，共 {rejected:.1f} 秒"
            return self._blame("cause", "slow_corrections", fact, layer=blamed)
        return self._blame("cause", "slow_model", fact)

    def _blame(self, table: str, name: str, fact: str, *, layer: str = "") -> Verdict:
        row = _texts()[table][name]
        next_step = row["next"].format(ref=self._trace.get("ref", ""))
        return Verdict(layer or row["layer"], row["what"], fact, next_step)

    # --- what is read off the steps

    def _note(self, what: str) -> str | None:
        """The detail of the last such note."""
        found = [s["detail"] for s in self._steps if s["kind"] == "note" and s["what"] == what]
        return found[-1] if found else None

    def _withdrawn(self, why: Withdraw) -> bool:
        assert why in get_args(Withdraw)
        return self._note(WITHDRAWN_NOTE) == why

    def _log(self) -> Iterator[Mapping[str, Any]]:
        for step in self._steps:
            if step["kind"] == "turn":
                yield from step["log"]

    def _reason(self, row: Mapping[str, Any]) -> str:
        """A row of `verdicts.toml`: a call after the last one that was allowed is not a call of the
        wrong tool."""
        reason = _reason(row)
        over = reason == "wrong_tool" and any(row is other for other in self._without_tools)
        return "called_withdrawn" if over else reason

    def _pleaded_to_the_end(self) -> str | None:
        """The plea that the run ended in, where it was asked once and stood all the same."""
        turns = [step for step in self._steps if step["kind"] == "turn"]
        log = turns[-1]["log"] if turns else []
        if len(log) < 2 or log[-1]["outcome"] != "Answer" or log[-2]["basis"] != Basis.SOFT:
            return None
        stance = log[-1]["stance"]
        return _short(stance["phrase"]) if stance["kind"] in ("refusal", "missed_call") else None

    def _denied_after_yes(self) -> str:
        """Why a call did not run although a person had said yes."""
        _, _, why = (self._note(YES_NOTE) or "").partition(" ")
        return _short(why)

    def _stopped_at(self) -> str:
        cut = self._note(CUT_NOTE)
        if cut is not None:
            return f"当时正在运行 {_short(cut)}"
        waiting = self._requests and self._requests[-1].get("error") == CANCELLED_ERROR
        return "当时模型正在回答" if waiting else ""

    def _rejected_last(self) -> list[Mapping[str, Any]]:
        rounds = [step for step in self._steps if step["kind"] == "turn"]
        last = {step["round"] for step in rounds[-1:]}
        rows = [row for step in rounds if step["round"] in last for row in step["requests"]]
        return [row for row in rows if turned_down(row)] or self._rejected

    def _failures(self, statuses: Sequence[str]) -> list[str]:
        """Tools whose call came to such an end, for which no later try came to a good one."""
        return [
            f"{result['name']} {result['status']}：{_short(result['content'])}"
            for batch, result in self._results()
            if result["status"] in statuses and not self._mended_later(batch, result)
        ]

    def _mended(self) -> list[str]:
        names = Counter(
            result["name"]
            for batch, result in self._results()
            if result["status"] == "failed" and self._mended_later(batch, result)
        )
        return [f"{name} 失败 {count} 次，再试成功" for name, count in names.items()]

    def _mended_later(self, batch: int, result: Mapping[str, Any]) -> bool:
        """What stood in the same reply is another matter, and an unknown outcome stays unknown."""
        return result["status"] != "unknown" and any(
            later > batch and other["name"] == result["name"] and other["status"] == "ok"
            for later, other in self._results()
        )

    def _results(self) -> Iterator[tuple[int, Mapping[str, Any]]]:
        """Results with the number of their batch."""
        batch = 0
        for step in self._steps:
            batch += step["kind"] == "turn"
            if step["kind"] == "call":
                yield batch, step["result"]


def turned_down(row: Mapping[str, Any]) -> bool:
    """Whether the reply to a stored request did not stand. Looking for a tool is no fault."""
    outcome = row.get("outcome") or {}
    return outcome.get("kind") in ("retry", "give_up") and outcome["reason"] != LOOKUP


LOOKUP = "selection"
"""The reason of a retry that follows a search for tools."""


def _tools_were_over(step: Mapping[str, Any]) -> bool:
    """Whether the model was told in this turn that it may not use tools."""
    setup = step.get("setup") or {}
    return bool(setup.get("withdraw")) or (setup.get("choice") or [""])[0] == "none"


def _kind(row: Mapping[str, Any]) -> str:
    return (row.get("outcome") or {}).get("kind", "")


def _seconds(row: Mapping[str, Any]) -> float:
    return row.get("ended", row["at"]) - row["at"]


def _reason(row: Mapping[str, Any]) -> str:
    """A row of `verdicts.toml`: the reason, told apart by whose doing it was."""
    reason = row["outcome"]["reason"]
    if reason in ("truncated", "broken_call") and row.get("finish") in _CUT_SHORT:
        return "length"
    if reason == "empty" and not any(piece[-2].strip() for piece in row["pieces"]):
        return "nothing"
    return reason


def _counted(rows: Sequence[Mapping[str, Any]]) -> str:
    counts = Counter(row["outcome"]["reason"] for row in rows)
    return "、".join(f"{name}×{n}" if n > 1 else name for name, n in counts.items())


def _sentence_of(error: str) -> str:
    """An error of a request (`UpstreamFailed: detail`) as people are told it: what and what next.

    The detail stands on the page."""
    name = error.partition(":")[0]
    kind = getattr(errors, name, None)
    if isinstance(kind, type) and issubclass(kind, errors.ChatHandsError):
        return f"{kind.default_sentence}（{name}）"
    return _short(error)


def _short(text: str) -> str:
    return one_line(text, _DETAIL_CHARACTERS)
