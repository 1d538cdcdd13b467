"""Runs one case: turns and stand-in results until there is an answer."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

from chathands.conversation import Message, Status, ToolCall, ToolResult
from chathands.emulation import Answer, Calls, GiveUp, Retry, Turn
from chathands.evals.case import Case
from chathands.upstreams.base import Upstream

MAX_ROUNDS = 5
"""The same as a run in the group."""


@dataclass(slots=True)
class CaseResult:
    """What came of one case; the booleans are the first three layers, the numbers the fourth."""

    case: Case
    calls: list[ToolCall] = field(default_factory=list)
    answer: str = ""
    first_is_format: bool = False
    """The first reply was a readable block when a call was due, plain text when none was."""
    requests: int = 0
    retries: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    seconds: float = 0.0
    transcript: list[Message] = field(default_factory=list)

    @property
    def right_tools(self) -> bool:
        made = sorted(call.name for call in self.calls)
        return made == sorted(expected.tool for expected in self.case.expect)

    @property
    def right_arguments(self) -> bool:
        left = list(self.calls)
        for expected in self.case.expect:
            match = next(
                (c for c in left if c.name == expected.tool and expected.fits(c.arguments)), None
            )
            if match is None:
                return False
            left.remove(match)
        return not left

    @property
    def completed(self) -> bool:
        answer = self.answer
        return (
            bool(answer)
            and self.right_arguments
            and all(text in answer for text in self.case.answer_has)
            and not any(text in answer for text in self.case.answer_lacks)
        )


async def run_case(case: Case, upstream: Upstream, *, seconds: float = 120) -> CaseResult:
    """Drive `case` to its end. Raises UpstreamError: a fault of the endpoint is no result."""
    result = CaseResult(case)
    conversation = [Message.user(case.request)]
    served: dict[str, int] = {}
    started = time.perf_counter()
    for round_number in range(MAX_ROUNDS):
        last = round_number == MAX_ROUNDS - 1
        turn = Turn(
            conversation,
            case.specs,
            language=case.language,
            withdraw="last_round" if last else None,
        )
        outcome = await _decide(turn, upstream, result, seconds)
        conversation += turn.transcript
        if isinstance(outcome, Answer | GiveUp):
            result.answer = outcome.text if isinstance(outcome, Answer) else ""
            break
        for call in outcome.calls:
            result.calls.append(call)
            conversation.append(Message.tool(_stand_in(case, call, served)))
    result.seconds = time.perf_counter() - started
    result.transcript = conversation
    return result


async def _decide(
    turn: Turn, upstream: Upstream, result: CaseResult, seconds: float
) -> Answer | Calls | GiveUp:
    while True:
        stream = upstream.stream(turn.request(), timeout=seconds)
        try:
            async for piece in stream:
                turn.feed(piece)
        finally:
            await stream.aclose()
        result.requests += 1
        if stream.usage is not None:
            result.prompt_tokens += stream.usage.prompt
            result.completion_tokens += stream.usage.completion
        outcome = turn.finish(stream.finish_reason)
        if result.requests == 1:
            wanted = Calls if result.case.expect else Answer
            result.first_is_format = isinstance(outcome, wanted)
        if not isinstance(outcome, Retry):
            return outcome
        result.retries += 1


def _stand_in(case: Case, call: ToolCall, served: dict[str, int]) -> ToolResult:
    """The next stand-in result of the tool; a tool without one is refused, as in real life."""
    texts = case.results.get(call.name)
    if not texts:
        return ToolResult(call.id, call.name, Status.FAILED, "现在没有数据。")
    index = served.get(call.name, 0)
    served[call.name] = index + 1
    text = texts[min(index, len(texts) - 1)]
    if text.startswith("!"):
        return ToolResult(call.id, call.name, Status.FAILED, text[1:])
    return ToolResult(call.id, call.name, Status.OK, text)
