"""What of a streamed reply may leave before it is whole: the commit rule `stream`.

The first sentence or 64 characters are held, longer while they look like a refusal or a promise.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from chathands.conversation import ToolCall
from chathands.emulation.marks import may_become_mark
from chathands.emulation.outcome import (
    Answer,
    CallReady,
    Calls,
    Event,
    Outcome,
    ParsedReply,
    Reason,
    Retry,
    TextDelta,
)
from chathands.emulation.refusal import UNDONE, says_nothing, stance_of
from chathands.limits import HOLD_CHARACTERS

_SENTENCE_END = re.compile(r"[。！？!?\n]|[.]\s")

_AFTER_TEXT = (Reason.MISSED_CALL, Reason.BROKEN_CALL, Reason.TRUNCATED)
"""Reasons that may retry when text has already left."""


class _Text:
    """Text that grows by pieces: joined when it is asked for, not at every piece."""

    __slots__ = ("_pieces", "size")

    def __init__(self, text: str = "") -> None:
        self._pieces = [text]
        self.size = len(text)

    def add(self, text: str) -> None:
        self._pieces.append(text)
        self.size += len(text)

    def __str__(self) -> str:
        if len(self._pieces) > 1:
            self._pieces = ["".join(self._pieces)]
        return self._pieces[0]


class Gate:
    """The way out of one turn. Text and calls go in; what may leave comes back.

    `hold_text` keeps all text until the end (a forced choice: any text may lead to a retry);
    `may_pass` says of a call whether it can leave before the reply is whole; `clean` removes marks
    of ours from text.
    """

    def __init__(
        self,
        *,
        hold_text: bool,
        after_result: bool,
        may_pass: Callable[[ToolCall], bool],
        clean: Callable[[str], str],
    ) -> None:
        self._hold_text = hold_text
        self._after_result = after_result
        self._may_pass = may_pass
        self._clean = clean
        self._left = _Text()
        self.calls: list[ToolCall] = []
        """Calls that have left."""
        self._held = _Text()
        self._opened = False
        self._suspect = False
        self._mute = False
        self._stuck = False
        self._joint = False
        self._line_start = True
        """Whether what is held begins a line."""
        self.most_held = 0

    def next_reply(self, *, goes_on: bool = False) -> None:
        """A new reply begins. Once text has left, only calls of it may leave; unless it `goes_on`
        from the one before, in which nothing was wrong."""
        self._held = _Text()
        self._opened = self._suspect = self._stuck = False
        self._line_start = True
        self._mute = bool(self.text) and not goes_on
        self._joint = goes_on and bool(self.text)

    def hold_reply(self) -> None:
        """Let nothing more of this reply out before it is whole."""
        if not self._opened:
            self._suspect = self._stuck = True

    def hold_instead(self, text: str) -> None:
        """Replace the held text."""
        self._held = _Text(text)

    @property
    def text(self) -> str:
        """Text that has left, of all replies of the turn."""
        return str(self._left)

    @property
    def reply_opened(self) -> bool:
        """Whether text of this reply has left."""
        return self._opened

    @property
    def muted(self) -> bool:
        return self._mute

    def put(self, event: Event) -> list[Event]:
        """What may leave now that this has come."""
        if isinstance(event, CallReady):
            if self._stuck or not self._may_pass(event.call):
                # Later calls wait with it, so that they leave in order.
                self._stuck = True
                return []
            self.calls.append(event.call)
            return [*self._release(whole=True), event]
        if self._mute:
            return []
        start = self._held.size
        self._held.add(event.text)
        if not self._opened:
            self._try_to_open(start)
        self.most_held = max(self.most_held, self._held.size)
        return self._release(whole=False)

    def begin(self, *, sure: bool) -> list[Event]:
        """Something that may be a block begins: what was said before it may leave, a promise too,
        for it is kept or sent back; a refusal only when what begins can be nothing but a call."""
        if self._mute or self._hold_text or self._stuck:
            return []
        if not self._opened and (held := str(self._held)).strip():
            self._opened = sure or not (self._suspect or self._stance(held) == "refusal")
        return self._release(whole=self._opened)

    def rest(self, calls: tuple[ToolCall, ...] | None) -> list[Event]:
        """What is left to say when the reply stands: held text, then the calls not yet out."""
        events = self._release(whole=True) if not self._mute else []
        out = {call.id for call in self.calls}
        for call in calls or ():
            if call.id not in out:
                self.calls.append(call)
                events.append(CallReady(call))
        return events

    def committed(self, outcome: Outcome, parsed: ParsedReply) -> Outcome:
        """What is left of an outcome, seeing what has left."""
        if self.calls:
            left = {call.id for call in self.calls}
            more = outcome.calls if isinstance(outcome, Calls) else ()
            calls = (*self.calls, *(call for call in more if call.id not in left))
            broken = outcome.broken if isinstance(outcome, Calls) else parsed.broken
            return Calls(parsed.text, calls, broken)
        if not self.text:
            return outcome
        if isinstance(outcome, Retry) and outcome.reason not in _AFTER_TEXT:
            if outcome.reason in (Reason.UNCONFIRMED, Reason.FAR_FETCHED):
                return Calls(self.text, parsed.calls, parsed.broken)
            return Answer(self.text)
        if isinstance(outcome, Answer) and self._mute:
            # Only calls of a second reply may leave; its text would contradict what is out.
            return Answer(self.text)
        return outcome

    def _release(self, *, whole: bool) -> list[Event]:
        if not whole and not self._opened:
            return []
        text, self._held = str(self._held), _Text()
        if not whole:
            # A line that may turn out to be one of our own marks is not whole yet.
            line = text.rfind("\n") + 1
            if (line or self._line_start) and may_become_mark(text[line : line + 80]):
                text, self._held = text[:line], _Text(text[line:])
        if text:
            self._line_start = text.endswith("\n")
        text = self._clean(text)
        if self._joint:
            text = text.lstrip()
        if not text:
            return []
        if self._joint:
            text, self._joint = f"\n\n{text}", False
        self._opened = True
        self._left.add(text)
        return [TextDelta(text)]

    def _try_to_open(self, start: int) -> None:
        """Decide at every sentence end and at the limit, never at the end of a piece: how a reply
        is cut must not decide what becomes of it."""
        if self._hold_text or self._suspect:
            return
        held = str(self._held)
        ends = {found.end() for found in _SENTENCE_END.finditer(held)} | {HOLD_CHARACTERS}
        for end in sorted(end for end in ends if start < end <= len(held)):
            if self._suspect:
                return
            opening = held[:end]
            if end < HOLD_CHARACTERS and says_nothing(opening):
                continue
            stance = self._stance(opening)
            self._suspect = stance == "refusal"
            # a promise may still be sent back when it has left; a refusal must not leave
            if not self._suspect and (stance not in UNDONE or end == HOLD_CHARACTERS):
                self._opened = True
                return

    def _stance(self, opening: str) -> str:
        return stance_of(opening, after_result=self._after_result).kind
