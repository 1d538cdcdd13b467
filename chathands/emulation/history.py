"""A conversation as plain messages: the projection that a request carries.

It is append-only: messages added to a conversation never change what was already rendered in the
same run, so an upstream can keep its prompt cache. Clients send anything; these are the rules:

| in the conversation                          | what the model reads                             |
|----------------------------------------------|--------------------------------------------------|
| an assistant's calls                         | blocks, byte for byte as the contract shows them |
| calls over several assistant messages in row | one message with all the blocks                  |
| results in any order                         | by the number of their calls, in one message     |
| a second result for one call                 | nothing: the first counts                        |
| one id for two calls                         | its results answer them in order                 |
| a call without a result                      | "no result came back", before what follows       |
| a result behind that                         | where it arrives, under the number of its call   |
| text of a person between call and result     | the text, then the result                        |
| a result nobody asked for                    | behind the others, as belonging to no block      |
| a picture, an attachment                     | a numbered placeholder, and that it is not seen  |
| system text further on                       | a user message, marked                           |
| thinking                                     | nothing                                          |
| two messages of one role                     | one message                                      |
| an assistant's message first                 | behind a line that the conversation starts here  |
| an empty message                             | a word that it is empty                          |
| what went wrong in earlier runs              | nothing (see cleaning.py)                        |
"""

from __future__ import annotations

import hashlib
import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace

from chathands.conversation import (
    Conversation,
    Image,
    Message,
    Notice,
    OtherPart,
    Part,
    Role,
    Status,
    Tag,
    ToolCall,
    ToolResult,
    ToolSpec,
    canonical_json,
)
from chathands.emulation import continuation
from chathands.emulation.cleaning import clean
from chathands.emulation.continuation import Shown
from chathands.emulation.contract import Unlisted, render_contract
from chathands.emulation.matching import effects_asked_for
from chathands.emulation.outcome import ChatMessage, Language
from chathands.emulation.prompts import wording
from chathands.emulation.signature import one_line
from chathands.emulation.state import (
    Tools,
    continues_batch,
    declared_tools,
    has_tool_history,
    is_notice,
    is_question,
    run_start,
    settled_tools,
)
from chathands.emulation.writing import BLOCKS, Writer
from chathands.limits import THOUGHT_BEFORE_BLOCK

REJECTED_CAP = 2000
"""Characters of a rejected reply that are shown again: enough to see the fault."""

_MIME = re.compile(r"[\w.+-]{1,40}/[\w.+-]{1,60}")

__all__ = ["clean", "derived_fence", "project", "shortened"]


def project(
    conversation: Conversation,
    tools: Tools | None,
    *,
    language: Language,
    persona: str | None = None,
    fence: str | None = None,
    offered: Sequence[ToolSpec] | None = None,
    unlisted: Unlisted | None = None,
    writer: Writer = BLOCKS,
) -> tuple[ChatMessage, ...]:
    """The plain messages of a request; user and assistant alternate after the system message.

    `tools=None` declares those of the history; `offered` are those the contract lists where it does
    not list all, `unlisted` what can be looked up; `writer` has the form of the mode. `fence` is
    the run's random token around results; without one it is derived from the head of the
    conversation. With neither tools nor tool history the messages come out as they are, the persona
    before them: not even their roles are put in order, and each brings its `source` along for what
    plain text cannot say.
    """
    specs = declared_tools(conversation, tools)
    if not specs and not has_tool_history(conversation):
        marks = _Attachments(language)
        plain = [ChatMessage(m.role, marks.beside(headed(m), m), source=m) for m in conversation]
        return tuple([ChatMessage(Role.SYSTEM, persona)] if persona else []) + tuple(plain)
    background_text, talk = background_and_talk(conversation, persona, language)
    if specs:
        listed = specs if offered is None else offered
        system = render_contract(
            listed, language=language, persona=background_text, unlisted=unlisted, writer=writer
        )
    else:
        nothing = wording(language)["contract"]["no_tools"]
        system = f"{nothing}\n\n{background_text}" if background_text else nothing
    fence = fence or derived_fence(conversation)
    projection = _Projection(talk, specs, language, fence, writer)
    return (ChatMessage(Role.SYSTEM, system), *projection.messages())


def background_and_talk(
    conversation: Conversation, persona: str | None, language: Language
) -> tuple[str | None, list[Message]]:
    """The persona with the leading system texts, and what follows these, earlier runs cleaned."""
    lead = 0
    while lead < len(conversation) and conversation[lead].role is Role.SYSTEM:
        lead += 1
    background = [persona or "", *(message.text for message in conversation[:lead])]
    text = "\n\n".join(text for text in background if text.strip()) or None
    run = max(run_start(conversation), lead)
    return text, [*clean(conversation[lead:run], language=language), *conversation[run:]]


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
        specs: Sequence[ToolSpec],
        language: Language,
        fence: str,
        writer: Writer,
    ) -> None:
        self._writer = writer
        self._conversation = conversation
        self._specs = {spec.name: spec for spec in specs}
        self._language: Language = language
        self._words = wording(language)["history"]
        self._fence = fence
        self._run = run_start(conversation)
        self._attachments = _Attachments(language)
        self._out: list[ChatMessage] = []
        self._calls: list[ToolCall] = []
        self._numbers: dict[str, list[int]] = defaultdict(list)
        """Call id -> numbers of its calls; ids of clients may come twice."""
        self._answered: set[int] = set()
        self._pending: list[int] = []
        """Numbers of the latest calls that have no result yet."""
        self._failures: list[ToolCall] = []

    def messages(self) -> tuple[ChatMessage, ...]:
        at = 0
        while at < len(self._conversation):
            message = self._conversation[at]
            if message.result is not None:
                at = self._results(at)
                continue
            if self._ends_the_wait(at):
                self._close_pending(at)
            if at == self._run:
                self._failures.clear()
            self._plain(message)
            at += 1
        self._close_pending(at)
        return tuple(self._out)

    def _ends_the_wait(self, at: int) -> bool:
        """Whether calls without a result are given up before this message. Results may stand
        behind a remark of ours, system text and further calls of the same batch."""
        message = self._conversation[at]
        if message.role is Role.ASSISTANT:
            return not continues_batch(self._conversation, at)
        return message.tag is Tag.CORRECTION or is_question(self._conversation, at)

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
            text = self._attachments.beside(headed(message), message)
            self._say(Role.USER, text if text.strip() else self._words["empty_reply"])

    def _assistant_text(self, message: Message) -> str:
        if message.tag is Tag.REJECTED:
            return (
                shortened(message.text, REJECTED_CAP, self._language)
                or (self._words["empty_reply"])
            )
        if not message.calls:
            text = self._attachments.beside(message.text, message)
            return self._writer.answer(text if text.strip() else self._words["empty_reply"])
        thought = message.text.strip()
        if len(thought) > THOUGHT_BEFORE_BLOCK:
            thought = thought[:THOUGHT_BEFORE_BLOCK].rstrip() + "…"
        return self._writer.calls([(call.name, call.arguments) for call in message.calls], thought)

    def _results(self, at: int) -> int:
        """Render the group of results that starts at `at`; returns the index behind it."""
        shown: dict[int, Shown] = {}
        orphans: list[Shown] = []
        end = at
        while end < len(self._conversation):
            result = self._conversation[end].result
            if result is None:
                break
            end += 1
            result = self._attachments.inside(result)
            numbers = self._numbers.get(result.call_id, [])
            open_ones = [n for n in numbers if n not in self._answered]
            if not numbers:
                orphans.append(Shown(None, None, result))
            elif open_ones:
                # The first result of a call counts; one that comes again is dropped.
                number = open_ones[0]
                self._answered.add(number)
                shown[number] = Shown(self._calls[number - 1], number, result)
        for number in self._given_up(end):
            shown[number] = Shown(self._calls[number - 1], number, None)
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

    def _close_pending(self, at: int) -> None:
        """Calls that something else followed instead of their results."""
        entries = [Shown(self._calls[n - 1], n, None) for n in self._given_up(at)]
        if entries:
            self._say(Role.USER, self._render(entries))

    def _given_up(self, at: int) -> list[int]:
        """The pending calls that get no result from here to the next reply; they stop waiting."""
        coming: set[str] = set()
        for message in self._conversation[at:]:
            if message.result is not None:
                coming.add(message.result.call_id)
            elif message.role is Role.ASSISTANT:
                break
        waiting = [n for n in self._pending if n not in self._answered]
        self._pending = [n for n in waiting if self._calls[n - 1].id in coming]
        return [n for n in waiting if n not in self._pending]

    def _say_results(self, entries: Sequence[Shown], at: int, end: int) -> None:
        earlier = at <= self._run
        text = self._render(entries, earlier=earlier)
        following = self._conversation[end] if end < len(self._conversation) else None
        chosen = following is not None and is_notice(
            following, Notice.LAST_ROUND, Notice.NONE, Notice.REQUIRED, Notice.NAMED
        )
        # Old results need no way on, and where a notice follows it says how to go on.
        way_on = (
            ""
            if earlier
            else continuation.guide(
                entries,
                self._specs,
                pending=self._asked_for_and_not_done(end),
                broken_siblings=at > 0 and is_notice(self._conversation[at - 1], Notice.SIBLINGS),
                decided=chosen,
                language=self._language,
                mode=self._writer.mode,
            )
        )
        self._say(Role.USER, f"{text}\n\n{way_on}" if way_on else text)

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
        if not self._out and role is Role.ASSISTANT:
            self._out.append(ChatMessage(Role.USER, self._words["start"]))
        if self._out and self._out[-1].role is role:
            before = self._out.pop().content
            ours = role is Role.ASSISTANT
            text = self._writer.joined(before, text) if ours else f"{before}\n\n{text}"
        self._out.append(ChatMessage(role, text))


class _Attachments:
    """What plain text cannot hold, as placeholders numbered through the conversation."""

    def __init__(self, language: Language) -> None:
        self._words = wording(language)["history"]
        self._count = 0

    def beside(self, text: str, message: Message) -> str:
        """A message's text with the placeholders of its attachments below it."""
        return self._below(text, message.images, message.ordered)

    def inside(self, result: ToolResult) -> ToolResult:
        """A result whose content ends in the placeholders of its attachments."""
        content = self._below(result.content, result.images, result.ordered)
        return result if content == result.content else replace(result, content=content)

    def _below(self, text: str, images: Iterable[Image], parts: Iterable[Part]) -> str:
        marks = [self._mark("image", image.mime or "") for image in images]
        kinds = [part.kind for part in parts if isinstance(part, OtherPart)]
        marks += [self._mark("attachment", kind) for kind in kinds if kind not in _NOT_SHOWN]
        if not marks:
            return text
        marks.append(self._words["unseen"])
        return "\n".join([text, " ".join(marks)] if text else [" ".join(marks)])

    def _mark(self, word: str, kind: str) -> str:
        self._count += 1
        known = word == "attachment" or _MIME.fullmatch(kind)
        told = f": {one_line(kind, 60)}" if kind and known else ""
        return self._words[word].format(number=self._count, kind=told)


_NOT_SHOWN = ("redacted_thinking", "thinking", "reasoning", "refusal")


def headed(message: Message) -> str:
    return f"{message.head}\n{message.text}" if message.head else message.text


def shortened(text: str, cap: int, language: Language) -> str:
    """Head and tail of a long text, saying how much is missing."""
    if len(text) <= cap:
        return text
    head, tail = cap * 3 // 4, cap // 4
    mark = wording(language)["history"]["cut"].format(count=len(text) - head - tail)
    return f"{text[:head]}\n{mark}\n{text[-tail:]}"
