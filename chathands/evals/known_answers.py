"""The judge judged: runs that are known to be right or wrong, made from the cases themselves."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from chathands.conversation import ToolCall
from chathands.evals.case import Case, ExpectedCall, matcher_in
from chathands.evals.judge import Verdict, judge

Judge = Callable[..., Verdict]


@dataclass(frozen=True, slots=True)
class KnownRun:
    """Calls and an answer whose worth is known."""

    case: Case
    what: str
    calls: tuple[ToolCall, ...]
    answer: str
    right: bool


def known_runs(cases: Sequence[Case]) -> Iterator[KnownRun]:
    """For every case one run as it should be, and runs that are wrong in one way each."""
    for case in cases:
        if case.any_call or case.rule != "own":
            continue
        calls = tuple(_call(case, at, wanted) for at, wanted in enumerate(case.expect))
        needed = tuple(
            call for call, wanted in zip(calls, case.expect, strict=True) if not wanted.optional
        )
        answer = _answer(case)
        yield KnownRun(case, "as it should be", needed, answer, right=True)
        if needed:
            yield KnownRun(case, "a call is missing", needed[1:], answer, right=False)
            wrong = ToolCall("x", needed[0].name, dict.fromkeys(needed[0].arguments, "∅"))
            wants = next(w for w in case.expect if not w.optional)
            if wants.arguments and not any(w.optional for w in case.expect):
                yield KnownRun(case, "wrong values", (wrong, *needed[1:]), answer, right=False)
        stranger = ToolCall("y", "not_offered", {})
        yield KnownRun(case, "a call too many", (*needed, stranger), answer, right=False)
        if not case.first_only:
            yield KnownRun(case, "no answer", needed, "", right=False)
        if case.answer_has:
            yield KnownRun(case, "an answer without its facts", needed, "∅?", right=False)


def misjudged(cases: Sequence[Case], judged_by: Judge = judge) -> list[str]:
    """A line for each known run that the judge gets wrong; empty when it can be trusted."""
    return [
        f"{run.case.id}: {run.what} judged {'wrong' if run.right else 'right'}"
        for run in known_runs(cases)
        if judged_by(run.case, run.calls, run.answer).completed is not run.right
    ]


def _call(case: Case, at: int, wanted: ExpectedCall) -> ToolCall:
    """The expected call, with something for required arguments that the case leaves open."""
    arguments = {key: _value(value) for key, value in wanted.arguments.items()}
    given = {key: value for key, value in arguments.items() if value is not None}
    schema = next(tool.parameters for tool in case.tools if tool.name == wanted.tool)
    for name in schema.get("required", ()):
        if name not in given:
            choices = schema["properties"][name].get("enum")
            given[name] = choices[0] if choices else "9"
    return ToolCall(f"known_{at}", wanted.tool, given)


def _value(wanted: Any) -> Any:
    """A value that fits."""
    matcher = matcher_in(wanted)
    if matcher is None:
        return wanted
    if matcher.any_of is not None:
        return _value(matcher.any_of[0])
    if matcher.contains is not None:
        texts = [matcher.contains] if isinstance(matcher.contains, str) else matcher.contains
        return " ".join(texts)
    if matcher.near is not None:
        return matcher.near
    if matcher.pattern is not None:
        return matcher.pattern.replace("?", "").replace("\\", "")
    return "x" if matcher.present else None


def _answer(case: Case) -> str:
    said = [text if isinstance(text, str) else text[0] for text in case.answer_has]
    return " ".join([*said, "?" if case.answer_asks else "."])
