"""Keeps a request within the model's context: measures it, and shrinks a conversation once."""

from __future__ import annotations

from collections.abc import Sequence

from chathands.agent.memory import cut_result, one_line_result
from chathands.agent.prompts import summary_in, summary_round
from chathands.agent.summary import SUMMARY_CHARACTERS, digest
from chathands.conversation import Message, Role, Tag
from chathands.emulation.outcome import Language
from chathands.emulation.sizes import MESSAGE_TOKENS, tokens


def prompt_limit(context: int, max_tokens: int | None) -> int:
    """Tokens a request may have, so that the reply still fits; at least half of the context."""
    return max(context - (max_tokens or 1024), context // 2)


def shrink(
    conversation: Sequence[Message],
    question_at: int,
    excess: float,
    *,
    language: Language = "zh",
    characters: int = SUMMARY_CHARACTERS,
    spare: float = 0,
) -> tuple[list[Message], int]:
    """The conversation with `excess` tokens less, as far as that goes, and where the question is.

    First old rounds leave whole, oldest first, and stand in the summary the conversation begins
    with (of at most `characters`) from then on; then older results of this run become a line; then
    the newest results are cut, longest first; last, when more than `spare` of the excess is still
    there, the summary leaves. System texts and the question stay.
    """
    head, history, run = _apart(conversation, question_at)
    lead, history = _lead_apart(history)
    gone: list[list[Message]] = []
    while excess > 0 and history:
        leaving = _first_round(history)
        gone.append(history[:leaving])
        excess -= _tokens(history[:leaving])
        history = history[leaving:]
    if gone:
        text = digest(summary_in(lead) or "", gone, language, characters=characters)
        excess -= _tokens(lead)
        lead = summary_round(text, language) if text else []
        excess += _tokens(lead)
    run, excess = _shrink_older_results(run, excess)
    run, excess = _cut_newest_results(run, excess)
    if excess > spare:
        lead = []
    return [*head, *lead, *history, *run], len(head) + len(lead) + len(history)


def _lead_apart(history: list[Message]) -> tuple[list[Message], list[Message]]:
    """The summary the history begins with, if it does, and the rounds behind it."""
    size = 0 if summary_in(history) is None else _first_round(history)
    return history[:size], history[size:]


def _tokens(messages: Sequence[Message]) -> float:
    return sum(map(message_tokens, messages))


def _apart(
    conversation: Sequence[Message], question_at: int
) -> tuple[list[Message], list[Message], list[Message]]:
    before = list(conversation[:question_at])
    system = 0
    while system < len(before) and before[system].role is Role.SYSTEM:
        system += 1
    return before[:system], before[system:], list(conversation[question_at:])


def _first_round(history: Sequence[Message]) -> int:
    """How many messages the oldest round has."""
    for at in range(1, len(history)):
        if history[at].role is Role.USER and history[at].tag is Tag.PLAIN:
            return at
    return len(history)


def _shrink_older_results(run: list[Message], excess: float) -> tuple[list[Message], float]:
    newest = max((at for at, message in enumerate(run) if message.calls), default=0)
    shrunk = list(run)
    for at, message in enumerate(run[:newest]):
        if excess <= 0:
            break
        if message.result is not None:
            shrunk[at] = Message.tool(one_line_result(message.result))
            excess -= message_tokens(message) - message_tokens(shrunk[at])
    return shrunk, excess


def _cut_newest_results(run: list[Message], excess: float) -> tuple[list[Message], float]:
    cut = list(run)
    sizes = {at: len(m.text) for at, m in enumerate(run) if m.result is not None}
    for at in sorted(sizes, key=lambda at: -sizes[at]):
        message = cut[at]
        if excess <= 0 or message.result is None:
            break
        whole = tokens(message.text)
        # A cut result also says how long it was; 40 tokens are for that.
        keep = max(200, int(len(message.text) * (1 - (excess + 40) / max(whole, 1))))
        cut[at] = Message.tool(cut_result(message.result, keep))
        excess -= whole - tokens(cut[at].text)
    return cut, excess


def message_tokens(message: Message) -> float:
    """An upper guess of a message's tokens."""
    calls = sum(tokens(call.name) + tokens(str(dict(call.arguments))) for call in message.calls)
    return tokens(message.text) + calls + MESSAGE_TOKENS
