"""What of a run is remembered, and how earlier runs are told to the model again."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from chathands.conversation import Message, Role, Status, Tag, ToolCall, ToolResult
from chathands.emulation import clean
from chathands.emulation.marks import dropped_result
from chathands.emulation.outcome import Language

STORED_CHARACTERS = 4000
"""Of one result on disk; a table that is asked about again is read again."""
LAST_CHARACTERS = 1200
"""Of one result of the last run: enough for "and sorted the other way round?"."""
LINE_CHARACTERS = 160
"""Of one result further back."""


def remember(
    question: str, run: Iterable[Message], answer: str, *, foreign: bool = False
) -> list[Message]:
    """The round to store: the plain question, accepted calls with their results, the final reply.

    Nothing that was rejected, corrected or remarked by us; no call without its result; of failed
    calls only what nothing came after: the way there would be copied the next time. `foreign`: the
    run had read text from outside, which its answer may repeat.
    """
    plain = [message for message in run if message.tag is Tag.PLAIN]
    listed = [m.result for m in plain if m.result is not None]
    last = listed[-1].call_id if listed else None
    results = {
        result.call_id: result
        for result in listed
        if result.status is not Status.FAILED or result.call_id == last
    }
    kept = [Message.user(question)]
    for message in plain:
        calls = [call for call in message.calls if call.id in results]
        if calls:
            kept.append(Message.assistant(message.text, calls))
            kept.extend(
                Message.tool(cut_result(results[call.id], STORED_CHARACTERS)) for call in calls
            )
    return [*kept, replace(Message.assistant(answer), foreign=foreign)]


def recall(rounds: Sequence[Sequence[Message]], language: Language = "zh") -> list[Message]:
    """Earlier rounds for a new run: cleaned, old results shrunk, with ids nobody else has.

    Ids repeat between runs (they derive from position, name and arguments, so that the same
    question asked daily makes the same id), and within one conversation they must not.
    """
    messages: list[Message] = []
    for age, one in enumerate(reversed(rounds)):
        messages[:0] = aged(one, age, language)
    return _renumbered(clean(messages))


def aged(one: Sequence[Message], age: int, language: Language = "zh") -> list[Message]:
    """A round as it is told again when `age` others came after it."""
    return [_aged(message, age, language) for message in one]


def cut_result(result: ToolResult, limit: int) -> ToolResult:
    """At most about `limit` characters, head and tail kept, the true size said."""
    content = result.content
    if len(content) <= limit:
        return result
    head, tail = limit * 2 // 3, limit // 3
    note = f"\n…（共 {len(content)} 字，中间省略）…\n"
    return replace(result, content=content[:head] + note + content[-tail:], truncated=True)


def one_line_result(result: ToolResult, language: Language = "zh") -> ToolResult:
    """The result if it is one short line, else a word that it is gone.

    Half a table squeezed into a line is taken for the data: a model has been seen pushing three of
    four regions from it, and another time the headline alone.
    """
    content = result.content.strip()
    if len(content) <= LINE_CHARACTERS and "\n" not in content:
        return replace(result, content=content)
    return replace(result, content=dropped_result(language), truncated=True)


def _aged(message: Message, age: int, language: Language) -> Message:
    if message.result is None:
        return message
    if age == 0:
        return Message.tool(cut_result(message.result, LAST_CHARACTERS))
    return Message.tool(one_line_result(message.result, language))


def _renumbered(messages: Iterable[Message]) -> list[Message]:
    names: dict[str, str] = {}
    count = 0
    renumbered: list[Message] = []
    for message in messages:
        if message.calls:
            calls: list[ToolCall] = []
            for call in message.calls:
                count += 1
                names[call.id] = f"past_{count}"
                calls.append(replace(call, id=names[call.id]))
            message = replace(message, calls=tuple(calls))
        elif message.role is Role.TOOL and message.result is not None:
            known = names.get(message.result.call_id, message.result.call_id)
            message = replace(message, result=replace(message.result, call_id=known))
        renumbered.append(message)
    return renumbered
