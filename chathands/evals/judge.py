"""The judge: what a finished case was worth, layer by layer, and why not when it was not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from chathands.conversation import ToolCall
from chathands.evals.case import Case, ExpectedCall
from chathands.evals.rules import call_fits


@dataclass(frozen=True, slots=True)
class Verdict:
    """One case's layers. `why` has a sentence for each layer that failed."""

    tools: bool
    """The right tools, as often as wanted."""
    arguments: bool
    """And every argument as wanted."""
    completed: bool
    """And the final answer says what it must; with `first_only`, the same as `arguments`."""
    why: tuple[str, ...] = ()


def judge(case: Case, calls: Sequence[ToolCall], answer: str, *, failed: str = "") -> Verdict:
    """Judge the calls that ran (or, with `first_only`, were decided) and the final answer.

    `failed` says that the run ended without an answer, and why.
    """
    why: list[str] = []
    tools = _right_tools(case, calls)
    if not tools:
        why.append(f"tools: made {[call.name for call in calls]}, wanted {_wanted(case)}")
    arguments = tools and _right_calls(case, calls)
    if tools and not arguments:
        why.append(f"arguments: {[dict(call.arguments) for call in calls]}")
    for call in calls:
        if forbidden := _forbidden(case, call):
            why.append(f"forbidden: {call.name} {forbidden}")
            tools = arguments = False
    completed = arguments
    if not case.first_only:
        faults = [failed] if failed else _answer_faults(case, answer)
        why += [f"answer: {fault}" for fault in faults]
        completed = arguments and not faults
    return Verdict(tools, arguments, completed, tuple(why))


def _wanted(case: Case) -> str:
    if case.any_call:
        return "any call"
    lists = [[c.tool + ("?" if c.optional else "") for c in calls] for calls in case.accepted]
    return " or ".join(map(str, lists))


def _right_tools(case: Case, calls: Sequence[ToolCall]) -> bool:
    if case.any_call:
        return bool(calls)
    return any(_assign(case, calls, wanted, names_only=True) for wanted in case.accepted)


def _right_calls(case: Case, calls: Sequence[ToolCall]) -> bool:
    if case.any_call:
        return True
    return any(_assign(case, calls, wanted, names_only=False) for wanted in case.accepted)


def _assign(
    case: Case, calls: Sequence[ToolCall], wanted: Sequence[ExpectedCall], *, names_only: bool
) -> bool:
    """Whether every call has its own expected one, and every expected one its call.

    Searched with backtracking: one call may fit two expectations of which another fits only one.
    """
    specs = {spec.name: spec for spec in case.specs}

    def fits(call: ToolCall, expected: ExpectedCall) -> bool:
        if call.name != expected.tool:
            return False
        if names_only:
            return True
        return call_fits(call.name, call.arguments, expected, specs[call.name], case.rule)

    def search(at: int, free: tuple[int, ...]) -> bool:
        if at == len(calls):
            return all(wanted[index].optional for index in free)
        call = calls[at]
        if call.name in case.may_run and search(at + 1, free):
            return True
        for index in free:
            if case.ordered and index != free[0] and not _skippable(wanted, free, index):
                break
            if fits(call, wanted[index]) and search(at + 1, tuple(i for i in free if i != index)):
                return True
        if case.repeats_allowed and any(call.name == expected.tool for expected in wanted):
            return search(at + 1, free)
        return False

    return search(0, tuple(range(len(wanted))))


def _skippable(wanted: Sequence[ExpectedCall], free: tuple[int, ...], index: int) -> bool:
    return all(wanted[i].optional for i in free if i < index)


def _forbidden(case: Case, call: ToolCall) -> str:
    specs = {spec.name: spec for spec in case.specs}
    for ban in case.forbid:
        if call.name in specs and call_fits(
            call.name, call.arguments, ban, specs[call.name], "own"
        ):
            return str(dict(call.arguments))
    return ""


def _answer_faults(case: Case, answer: str) -> list[str]:
    if not answer.strip():
        return ["there is none"]
    # 12,500 and 12500 are the same figure to a reader.
    seen = answer.casefold()
    plain = seen.replace(",", "").replace("，", "")
    faults = []
    for text in case.answer_has:
        choices = [text] if isinstance(text, str) else text
        if not any(choice.casefold() in seen or choice.casefold() in plain for choice in choices):
            faults.append(f"lacks {' / '.join(choices)}")
    faults += [
        f"has {text}"
        for text in case.answer_lacks
        if text.casefold() in seen or text.casefold() in plain
    ]
    if case.answer_asks and not any(mark in answer for mark in "?？"):
        faults.append("asks nothing")
    return faults
