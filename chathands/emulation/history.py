"""A conversation as plain messages: projection for a request, cleaning between runs, its state.

The projection is append-only: messages added to a conversation never change what was already
rendered in the same run, so an upstream can keep its prompt cache.
"""

from __future__ import annotations

import hashlib
import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace

from chathands.conversation import (
    Conversation,
    Message,
    Role,
    Status,
    Tag,
    ToolCall,
    ToolSpec,
    canonical_json,
)
from chathands.emulation import continuation
from chathands.emulation.continuation import Shown
from chathands.emulation.contract import render_block, render_contract
from chathands.emulation.matching import effects_asked_for
from chathands.emulation.outcome import ChatMessage, Language
from chathands.emulation.prompts import wording
from chathands.emulation.refusal import stance_of
from chathands.emulation.state import (
    Tools,
    declared_tools,
    has_tool_history,
    is_notice,
    run_start,
    settled_tools,
)
from chathands.limits import THOUGHT_BEFORE_BLOCK

_REJECTED_CAP = 2000
"""Characters of a rejected reply that are shown again: enough to see the fault."""


# --- projection


def project(
    conversation: Conversation,
    tools: Tools | None,
    *,
    language: Language,
    persona: str | None = None,
    fence: str | None = None,
) -> tuple[ChatMessage, ...]:
    """The plain messages of a request; user and assistant alternate after the system message.

    `tools=None` declares those of the history. `fence` is the run's random token around results;
    without one it is derived from the head of the conversation. With neither tools nor tool
    history the messages come out as they are, the persona before them.
    """
    specs = declared_tools(conversation, tools)
    if not specs and not has_tool_history(conversation):
        plain = [ChatMessage(m.role, _with_images(m, language)) for m in conversation]
        return tuple([ChatMessage(Role.SYSTEM, persona)] if persona else []) + tuple(plain)
    lead = 0
    while lead < len(conversation) and conversation[lead].role is Role.SYSTEM:
        lead += 1
    background = [persona or "", *(message.text for message in conversation[:lead])]
    background_text = "\n\n".join(text for text in background if text.strip()) or None
    if specs:
        system = render_contract(specs, language=language, persona=background_text)
    else:
        nothing = wording(language)["contract"]["no_tools"]
        system = f"{nothing}\n\n{background_text}" if background_text else nothing
    projection = _Projection(
        conversation, lead, specs, language, fence or derived_fence(conversation)
    )
    return (ChatMessage(Role.SYSTEM, system), *projection.messages())


def derived_fence(conversation: Conversation) -> str:
    """A fence token from the conversation's head, stable while messages are appended."""
    head: list[str] = []
    for message in conversation:
        head.append(f"{message.role}:{message.text}")
        if message.role is Role.USER:
            break
    return _token(head)


def _token(texts: list[str]) -> str:
    return hashlib.blake2b(
        canonical_json(texts).encode("utf-8", "replace"), digest_size=4
    ).hexdigest()


class _Projection:
    """One pass over the list; what it keeps depends only on messages already passed."""

    def __init__(
        self,
        conversation: Conversation,
        start: int,
        specs: Sequence[ToolSpec],
        language: Language,
        fence: str,
    ) -> None:
        self._conversation = conversation
        self._start = start
        self._specs = {spec.name: spec for spec in specs}
        self._language: Language = language
        self._words = wording(language)["history"]
        self._fence = fence
        self._run = run_start(conversation)
        self._out: list[ChatMessage] = []
        self._calls: list[ToolCall] = []
        self._numbers: dict[str, list[int]] = defaultdict(list)
        """Call id -> numbers of its calls; ids of clients may come twice."""
        self._answered: set[int] = set()
        self._pending: list[int] = []
        """Numbers of the latest calls that have no result yet."""
        self._failures: list[ToolCall] = []

    def messages(self) -> tuple[ChatMessage, ...]:
        at = self._start
        while at < len(self._conversation):
            message = self._conversation[at]
            if message.role is Role.TOOL:
                at = self._results(at)
                continue
            if message.tag is not Tag.NOTICE:
                self._close_pending()
            if at == self._run:
                self._failures.clear()
            self._plain(message)
            at += 1
        self._close_pending()
        return tuple(self._out)

    def _plain(self, message: Message) -> None:
        if message.role is Role.ASSISTANT:
            self._say(Role.ASSISTANT, self._assistant_text(message))
            for call in message.calls:
                self._calls.append(call)
                self._numbers[call.id].append(len(self._calls))
                self._pending.append(len(self._calls))
        elif message.role is Role.SYSTEM:
            self._say(Role.USER, f"{self._words['system']}\n{message.text}")
        else:
            text = _with_images(message, self._language)
            self._say(Role.USER, f"{message.head}\n{text}" if message.head else text)

    def _assistant_text(self, message: Message) -> str:
        if message.tag is Tag.REJECTED:
            return (
                shortened(message.text, _REJECTED_CAP, self._language)
                or (self._words["empty_reply"])
            )
        if not message.calls:
            return message.text or self._words["empty_reply"]
        thought = message.text.strip()
        if len(thought) > THOUGHT_BEFORE_BLOCK:
            thought = thought[:THOUGHT_BEFORE_BLOCK].rstrip() + "…"
        blocks = [render_block(call.name, call.arguments) for call in message.calls]
        return "\n".join([thought, *blocks] if thought else blocks)

    def _results(self, at: int) -> int:
        """Render the group of results that starts at `at`; returns the index behind it."""
        shown: dict[int, Shown] = {}
        orphans: list[Shown] = []
        end = at
        while end < len(self._conversation) and self._conversation[end].role is Role.TOOL:
            result = self._conversation[end].result
            end += 1
            if result is None:
                continue
            numbers = self._numbers.get(result.call_id, [])
            open_ones = [n for n in numbers if n not in self._answered]
            if not numbers:
                orphans.append(Shown(None, None, result))
            elif open_ones:
                # The first result of a call counts; one that comes again is dropped.
                number = open_ones[0]
                self._answered.add(number)
                shown[number] = Shown(self._calls[number - 1], number, result)
        for number in self._pending:
            if number not in self._answered:
                shown[number] = Shown(self._calls[number - 1], number, None)
        self._pending.clear()
        ordered = [self._with_hope(shown[number]) for number in sorted(shown)] + orphans
        if ordered:
            self._say_results(ordered, at, end)
        return end

    def _with_hope(self, entry: Shown) -> Shown:
        if entry.call is None or entry.status is not Status.FAILED:
            return entry
        hopeless = continuation.is_hopeless(entry.call, self._failures)
        self._failures.append(entry.call)
        return replace(entry, hopeless=hopeless)

    def _close_pending(self) -> None:
        """Calls that something else followed instead of their results."""
        missing = [n for n in self._pending if n not in self._answered]
        self._pending.clear()
        if missing:
            entries = [Shown(self._calls[n - 1], n, None) for n in missing]
            self._say(Role.USER, self._render(entries))

    def _say_results(self, entries: Sequence[Shown], at: int, end: int) -> None:
        text = self._render(entries, earlier=at <= self._run)
        following = self._conversation[end] if end < len(self._conversation) else None
        # Old results need no way on; in the last round the notice behind them says it.
        if at > self._run and not (following and is_notice(following, "last_round")):
            way_on = continuation.guide(
                entries,
                self._specs,
                pending=self._asked_for_and_not_done(end),
                language=self._language,
            )
            text = f"{text}\n\n{way_on}"
        self._say(Role.USER, text)

    def _asked_for_and_not_done(self, end: int) -> list[str]:
        question = self._conversation[self._run].text if self._run >= 0 else ""
        specs = tuple(self._specs.values())
        settled = settled_tools(self._conversation, specs, upto=end)
        return [name for name in effects_asked_for(question, specs) if name not in settled]

    def _render(self, entries: Sequence[Shown], *, earlier: bool = False) -> str:
        """The results as text. Those of earlier runs get a fence of their own content's making:
        the run's random one would change every old message and cost its place in the cache."""
        fence = self._fence
        if earlier:
            told = [entry.result.content for entry in entries if entry.result is not None]
            fence = _token(told)
        return continuation.render_results(entries, language=self._language, fence=fence)

    def _say(self, role: Role, text: str) -> None:
        if self._out and self._out[-1].role is role:
            before = self._out.pop()
            text = f"{before.content}\n\n{text}"
        self._out.append(ChatMessage(role, text))


def _with_images(message: Message, language: Language) -> str:
    if not message.images:
        return message.text
    marks = " ".join([wording(language)["history"]["image"]] * len(message.images))
    return f"{message.text}\n{marks}" if message.text else marks


def shortened(text: str, cap: int, language: Language) -> str:
    """Head and tail of a long text, saying how much is missing."""
    if len(text) <= cap:
        return text
    head, tail = cap * 3 // 4, cap // 4
    mark = wording(language)["history"]["cut"].format(count=len(text) - head - tail)
    return f"{text[:head]}\n{mark}\n{text[-tail:]}"


# --- between runs


def clean(conversation: Conversation, *, language: Language = "zh") -> tuple[Message, ...]:
    """The conversation as the next run should see it.

    Rejected replies, corrections and notices leave; markup that leaked into answers is cut out; an
    answer that was a refusal becomes a neutral remark, so that the model does not imitate it.
    """
    out: list[Message] = []
    for message in conversation:
        if message.tag is not Tag.PLAIN:
            continue
        if message.role is Role.ASSISTANT and not message.calls:
            text = _LEAKED.sub("", message.text).strip()
            if not text and not message.text.strip():
                continue
            stance = stance_of(text)
            if not text or (stance.kind == "refusal" and stance.strong):
                text = wording(language)["history"]["dropped_refusal"]
            message = replace(message, text=text)
        out.append(message)
    return tuple(out)


_LEAKED = re.compile(
    r"```+ ?(?:json )?action\b.*?(?:```+|\Z)"
    r"|<(tool_calls?|function_calls?|invoke|think|thinking)\b[^>]*>.*?(?:</\1>|\Z)"
    r"|</?(?:tool_calls?|function_calls?|invoke|think|thinking)>",
    re.DOTALL | re.IGNORECASE,
)
"""Blocks that were shown as text; broken ones run to the end."""
