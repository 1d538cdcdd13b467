"""What differs between the modes: how a request is put, and how a reply to it is read.

Everything after the reading (review, retry, corrections, gate, doubt, log) is the same; see Turn.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from chathands.conversation import Conversation, ToolChoice, ToolSpec
from chathands.emulation.history import project
from chathands.emulation.native import NativeCalls
from chathands.emulation.offer import Offer
from chathands.emulation.outcome import (
    ChatMessage,
    Enforcement,
    Event,
    Language,
    Mode,
    ModelRequest,
    NativeCall,
    ParsedReply,
    Piece,
    Sign,
    Text,
    Thinking,
    ThinkingStyle,
)
from chathands.emulation.scanner import Scanner
from chathands.emulation.writing import BLOCKS, Writer

Entries = Sequence[Event | Sign]


@dataclass(frozen=True, slots=True)
class Setting:
    """What a form needs to know of its turn."""

    specs: tuple[ToolSpec, ...]
    offer: Offer
    choice: ToolChoice
    language: Language
    persona: str | None
    fence: str
    thinking: ThinkingStyle
    enforcement: Enforcement
    shows_forms: bool = False
    """The form of a call is what was asked for, so a reply may consist of one."""


class Reading(Protocol):
    """One reply while it comes."""

    @property
    def raw(self) -> str:
        """The reply as history shows it when it is turned down."""
        ...

    @property
    def plan(self) -> str:
        """What of its thinking stays in history before its calls."""
        ...

    @property
    def retracted(self) -> bool:
        """See Scanner."""
        ...

    def feed(self, piece: Piece) -> Entries: ...

    def end(self, finish_reason: str | None) -> tuple[Entries, ParsedReply]: ...


class Form(Protocol):
    """A mode."""

    writer: Writer

    def request(self, conversation: Conversation) -> ModelRequest:
        """The request for the conversation so far; a longer one begins with it."""
        ...

    def reading(self, *, position: int, taken: Collection[str]) -> Reading:
        """For the next reply; `position` and `taken` as for Scanner."""
        ...


def form_of(mode: Mode, setting: Setting) -> Form:
    """The form of a mode. Without declared tools nothing is to be enforced or declared, and a
    history with calls is told in plain text, which every server takes."""
    if setting.specs and mode == "structured":
        from chathands.emulation.structured import Structured

        return Structured(setting)
    if setting.specs and mode == "native":
        from chathands.emulation.native_form import Native

        return Native(setting)
    return Emulated(setting)


class PlainReading:
    """Text read while it arrives; native calls, if any come, as blocks behind it."""

    plan = ""

    def __init__(self, scanner: Scanner) -> None:
        self.raw = ""
        self._scanner = scanner
        self._native = NativeCalls()
        self._thought: list[str] = []
        self._text: list[str] = []

    @property
    def retracted(self) -> bool:
        return self._scanner.retracted

    def feed(self, piece: Piece) -> Entries:
        match piece:
            case Thinking(text):
                self._thought.append(text)
            case NativeCall():
                self._native.add(piece)
            case Text(text):
                self._text.append(text)
                return self._scanner.read(text)
        return ()

    def end(self, finish_reason: str | None) -> tuple[Entries, ParsedReply]:
        entries: list[Event | Sign] = []
        for block in self._blocks():
            entries += self._scanner.read(block)
        last, parsed = self._scanner.end(finish_reason)
        self.raw = "".join([*self._text, *self._shown()])
        thought = "".join([*self._thought, parsed.thought])
        return [*entries, *last], replace(parsed, thought=thought)

    def _blocks(self) -> list[str]:
        """The native calls as they are read."""
        return self._native.blocks()

    def _shown(self) -> list[str]:
        """The native calls as history shows them."""
        return self._native.blocks()


class Emulated:
    """Messages only: the contract, and blocks in the text."""

    writer: Writer = BLOCKS

    def __init__(self, setting: Setting) -> None:
        self._setting = setting

    def request(self, conversation: Conversation) -> ModelRequest:
        return ModelRequest(projected(self._setting, conversation, self.writer))

    def reading(self, *, position: int, taken: Collection[str]) -> Reading:
        return PlainReading(scanner_for(self._setting, position, taken, self._setting.thinking))


def projected(
    setting: Setting, conversation: Conversation, writer: Writer
) -> tuple[ChatMessage, ...]:
    """The messages of a request that carries nothing else."""
    return project(
        conversation,
        setting.specs,
        language=setting.language,
        persona=setting.persona,
        fence=setting.fence,
        offered=setting.offer.listed,
        unlisted=setting.offer.unlisted,
        writer=writer,
    )


def scanner_for(
    setting: Setting,
    position: int,
    taken: Collection[str],
    thinking: ThinkingStyle,
    tools: Sequence[ToolSpec] | None = None,
) -> Scanner:
    """The scanner of a reply; `tools` are those it may call, by default all that are offered."""
    return Scanner(
        setting.offer.readable if tools is None else tools,
        position=position,
        taken=taken,
        thinking=thinking,
        language=setting.language,
        strangers=not setting.shows_forms,
    )
