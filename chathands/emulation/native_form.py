"""The mode `native`: the upstream's own tools, and history as the protocol's own messages.

What is the client's goes through verbatim. The protocol wants a tool message for each call, right
behind it and in order; these are the rules for what does not fit (compare history.py):

| in the conversation                          | what the model reads                            |
|----------------------------------------------|-------------------------------------------------|
| calls over several assistant messages in row | one message with all the calls                  |
| results in any order                         | one tool message per call, in the calls' order  |
| a second result for one call                 | nothing: the first counts                       |
| one id for two calls                         | ids made different; results answer in order     |
| a call without a result                      | a tool message that no result came back         |
| a result behind that, or that nobody asked   | user text where it arrives                      |
| text between call and result                 | behind the results                              |
| arguments that are no JSON object            | as the value of one key: servers parse them     |
| a name that the protocol refuses             | a name it takes, the same in every request      |
| a reply that was turned down, our remarks    | plain assistant and user text                   |
| text from outside in a result                | in the run's fence, marked                      |
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

from chathands.conversation import (
    UNREADABLE,
    Conversation,
    Message,
    Role,
    Status,
    Tag,
    ToolCall,
    ToolResult,
    ToolSpec,
    canonical_json,
)
from chathands.emulation.continuation import Shown, neutralise, render_results
from chathands.emulation.contract import in_order
from chathands.emulation.forms import Entries, PlainReading, Reading, Setting, scanner_for
from chathands.emulation.history import (
    REJECTED_CAP,
    background_and_talk,
    headed,
    shortened,
)
from chathands.emulation.native import declared_name, wire_name
from chathands.emulation.outcome import (
    CallReady,
    ChatMessage,
    Language,
    ModelRequest,
    ParsedReply,
    Piece,
)
from chathands.emulation.prompts import wording
from chathands.emulation.scanner import Scanner
from chathands.emulation.state import continues_batch
from chathands.emulation.writing import WRITERS, Writer
from chathands.schema_words import in_json_words


class Native:
    """The upstream calls by itself; its replies are read, aligned and reviewed all the same."""

    writer: Writer = WRITERS["native"]

    def __init__(self, setting: Setting) -> None:
        self._setting = setting

    def request(self, conversation: Conversation) -> ModelRequest:
        setting = self._setting
        messages = native_messages(
            conversation, language=setting.language, persona=setting.persona, fence=setting.fence
        )
        tools = tuple(_declaration(spec) for spec in self._declared(conversation))
        return ModelRequest(messages, tools=tools, tool_choice=self._tool_choice())

    def reading(self, *, position: int, taken: Collection[str]) -> Reading:
        tools = self._setting.offer.readable
        # A call that leaks into the text has the name the request gave it.
        sent = [replace(tool, name=wire_name(tool.name)) for tool in tools]
        more = [tool for tool in sent if tool.name not in {known.name for known in tools}]
        thinking = self._setting.thinking
        scanner = scanner_for(self._setting, position, taken, thinking, [*tools, *more])
        return _Reading(scanner, [tool.name for tool in tools])

    def _declared(self, conversation: Conversation) -> list[ToolSpec]:
        """What the request declares. Of a large toolbox: what is listed, the pseudo tool, and at
        the end what has been told since, so that the list only grows."""
        offer, specs = self._setting.offer, in_order(self._setting.specs)
        if offer.listed is None:
            return list(specs)
        listed = [*in_order(offer.listed), *(s for s in offer.readable if s not in specs)]
        known = {spec.name for spec in listed}
        by_name = {spec.name: spec for spec in specs}
        for message in conversation:
            if message.role is not Role.USER or message.tag is Tag.PLAIN:
                continue
            for line in message.text.split("\n"):
                name = line.removeprefix("### ")
                if name != line and name in by_name and name not in known:
                    known.add(name)
                    listed.append(by_name[name])
        return listed

    def _tool_choice(self) -> str | Mapping[str, Any] | None:
        """None where the protocol's default says it: fewer servers refuse it."""
        choice = self._setting.choice
        if choice.kind == "named":
            return {"type": "function", "function": {"name": wire_name(choice.name or "")}}
        return None if choice.kind == "auto" else choice.kind


class _Reading(PlainReading):
    def __init__(self, scanner: Scanner, names: Sequence[str]) -> None:
        super().__init__(scanner)
        self._declared = declared_name(names)

    def feed(self, piece: Piece) -> Entries:
        return self._by_declared_names(super().feed(piece))

    def end(self, finish_reason: str | None) -> tuple[Entries, ParsedReply]:
        entries, parsed = super().end(finish_reason)
        calls = tuple(self._named(call) for call in parsed.calls)
        broken = tuple(
            replace(one, name=self._declared(one.name)) if one.name else one
            for one in parsed.broken
        )
        return self._by_declared_names(entries), replace(parsed, calls=calls, broken=broken)

    def _by_declared_names(self, entries: Entries) -> Entries:
        return [
            CallReady(self._named(entry.call)) if isinstance(entry, CallReady) else entry
            for entry in entries
        ]

    def _named(self, call: ToolCall) -> ToolCall:
        name = self._declared(call.name)
        return call if name == call.name else replace(call, name=name)

    def _blocks(self) -> list[str]:
        return self._native.blocks(self._declared)

    def _shown(self) -> list[str]:
        return self._native.lines()


def _declaration(spec: ToolSpec) -> dict[str, Any]:
    parameters = in_json_words({"type": "object", "properties": {}, **spec.parameters})
    function = {"name": wire_name(spec.name), "description": spec.description}
    return {"type": "function", "function": {**function, "parameters": parameters, **spec.extra}}


def native_messages(
    conversation: Conversation, *, language: Language, persona: str | None, fence: str
) -> tuple[ChatMessage, ...]:
    """The messages of a request; see the module's table."""
    background, talk = background_and_talk(conversation, persona, language)
    words = wording(language, "native")["contract"]
    rules = "\n".join(f"{n}. {rule}" for n, rule in enumerate(words["rules"], 1))
    sections = filter(None, (background, f"{words['rules_title']}\n{rules}"))
    system = ChatMessage(Role.SYSTEM, "\n\n".join(sections))
    return (system, *_Messages(talk, language, fence).all())


class _Messages:
    """One pass over the list; what it writes depends on what it has passed, and on the results
    that come before the next reply."""

    def __init__(self, conversation: Sequence[Message], language: Language, fence: str) -> None:
        self._conversation = conversation
        self._language: Language = language
        self._words = wording(language, "native")["history"]
        self._fence = fence
        self._out: list[ChatMessage] = []
        self._calls: list[ToolCall] = []
        self._ids: set[str] = set()
        self._open: dict[str, list[int]] = defaultdict(list)
        """Call id → indexes of its calls without a result."""

    def all(self) -> list[ChatMessage]:
        at = 0
        while at < len(self._conversation):
            message = self._conversation[at]
            if message.calls and message.role is Role.ASSISTANT:
                at = self._exchange(at)
            else:
                self._other(message)
                at += 1
        return self._out

    def _exchange(self, at: int) -> int:
        """Calls, their results, and what stands between them; gives the index behind it all."""
        end = at + 1
        while end < len(self._conversation) and continues_batch(self._conversation, end):
            end += 1
        batch, first = self._conversation[at:end], len(self._calls)
        ids = self._say_calls(batch)
        while end < len(self._conversation):
            if self._conversation[end].role is Role.ASSISTANT:
                break
            end += 1
        results: dict[int, Message] = {}
        others: list[Message] = []
        for message in self._conversation[at + len(batch) : end]:
            if message.result is None:
                others.append(message)
                continue
            waiting = self._open.get(message.result.call_id, [])
            if waiting and waiting[0] >= first:
                results[waiting.pop(0)] = message
            else:
                others.append(message)
        for number, call_id in enumerate(ids, first):
            self._say_result(call_id, results.get(number))
        for message in others:
            self._other(message)
        return end

    def _say_calls(self, batch: Sequence[Message]) -> list[str]:
        """The batch as one message; gives the ids its calls have on the wire."""
        ids, written = [], []
        for call in (call for message in batch for call in message.calls):
            index = len(self._calls)
            call_id = call.id if call.id and call.id not in self._ids else f"{call.id}_{index}"
            self._ids.add(call_id)
            self._open[call.id].append(index)
            self._calls.append(call)
            ids.append(call_id)
            written.append(_wire_call(call, call_id))
        text = "\n".join(message.text for message in batch if message.text.strip())
        source = batch[0] if len(batch) == 1 else None
        self._out.append(ChatMessage(Role.ASSISTANT, text, tuple(written), source=source))
        return ids

    def _say_result(self, call_id: str, message: Message | None) -> None:
        if message is None or message.result is None:
            status, content = Status.UNKNOWN, self._words["missing"]
        else:
            status, content = message.result.status, self._content(message.result)
        if status is not Status.OK:
            # The protocol has no word for it; the same line is understood in clients' histories.
            content = f"[status={status.value}]\n{content}".rstrip("\n")
        self._out.append(
            ChatMessage(Role.TOOL, content, tool_call_id=call_id, source=_with_parts(message))
        )

    def _content(self, result: ToolResult) -> str:
        if not result.foreign:
            return result.content
        marks = (self._words[side].format(fence=self._fence) for side in ("open", "close"))
        inside = neutralise(result.content.strip("\r\n"), self._fence)
        opened, closed = marks
        return "\n".join([self._words["foreign"], opened, inside, closed])

    def _other(self, message: Message) -> None:
        if message.result is not None:
            self._stray_result(message.result)
        elif message.tag is Tag.REJECTED:
            said = shortened(message.text, REJECTED_CAP, self._language)
            self._say(Role.ASSISTANT, said or self._words["empty_reply"])
        elif message.role is Role.ASSISTANT:
            bare = not message.text.strip() and not message.images and not message.parts
            text = self._words["empty_reply"] if bare else message.text
            self._out.append(ChatMessage(Role.ASSISTANT, text, source=message))
        elif message.tag is not Tag.PLAIN:
            self._say(Role.USER, message.text)
        else:
            self._out.append(ChatMessage(message.role, headed(message), source=message))

    def _stray_result(self, result: ToolResult) -> None:
        """A result that comes too late for its call, or that nobody asked for; not a second one."""
        waiting = self._open.get(result.call_id, [])
        if not waiting and any(call.id == result.call_id for call in self._calls):
            return
        number = waiting.pop(0) if waiting else None
        call = None if number is None else self._calls[number]
        shown = Shown(call, None if number is None else number + 1, result)
        text = render_results([shown], language=self._language, fence=self._fence)
        self._say(Role.USER, text)

    def _say(self, role: Role, text: str) -> None:
        """Words of ours; behind a person's they go into the same message, as templates that want
        the roles to alternate need it."""
        last = self._out[-1] if self._out else None
        if last is not None and last.role is role is Role.USER and _with_parts(last.source) is None:
            self._out[-1] = ChatMessage(role, f"{last.content}\n\n{text}")
        else:
            self._out.append(ChatMessage(role, text))


def _with_parts(message: Message | None) -> Message | None:
    """The message if there is more to it than its text."""
    if message is None:
        return None
    held = message.result or message
    return message if held.images or held.parts or held.extra or message.extra else None


def _wire_call(call: ToolCall, call_id: str) -> dict[str, Any]:
    raw = None if UNREADABLE in call.arguments else call.raw
    written = canonical_json(dict(call.arguments)) if raw is None else raw
    own = dict(call.extra)
    more = own.pop("function", {})
    function = {"name": wire_name(call.name), "arguments": written, **more}
    return {"id": call_id, "type": "function", "function": function, **own}
