"""What leaves a reply: text, calls, broken calls; and where the batch of calls ends."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection

from chathands.conversation import ToolCall, canonical_json
from chathands.emulation.dialects.quotation import (
    LEAD,
    announces,
    announces_data,
    is_quoted,
    names_a_result,
)
from chathands.emulation.outcome import (
    Begins,
    BrokenCall,
    CallReady,
    Event,
    ParsedReply,
    Retracted,
    Sign,
    TextDelta,
)
from chathands.emulation.reading_found import Block
from chathands.emulation.reading_judge import Accepted, Judge
from chathands.limits import BATCH_PROSE, HOLD_CHARACTERS, MAX_CALLS

_WHITE = " \t\r\n\f\v\ufeff\u200b\u2028\u2029"

_RUNAWAY = 4 * MAX_CALLS
"""Blocks after which a reply only repeats itself; identical calls count here as well."""
_BLANKS = re.compile(f"[{_WHITE}]{{2,}}")


class Outlet:
    """Takes text and blocks in the order of the reply and keeps what they come to.

    `events` are those nobody has fetched yet.
    """

    def __init__(
        self,
        judge: Judge,
        position: int,
        taken: Collection[str] = (),
        *,
        strangers: bool = True,
    ) -> None:
        """`strangers`: a reply that is nothing but calls of undeclared tools is not shown."""
        self.events: list[Event | Sign] = []
        self.calls: list[ToolCall] = []
        self.thought: list[str] = []
        self.cut_off = False
        """The model was stopped by its length limit."""
        self.invented = False
        """A tool's result was made up; no call after it may run."""
        self.over = False
        """The batch has ended; the rest of the reply counts for nothing."""
        self.retracted = False
        """Text that had left turned out to be thinking."""
        self._judge = judge
        self._position = position
        self._taken = taken
        self._said: list[str] = []
        self._blank: list[str] = []
        """White space that leaves only when text follows it."""
        self._recent: list[str] = []
        """The last text said, enough of it to look back at; see `lead`."""
        self._aside: str | None = None
        """Text since the last block of the batch; None before the first."""
        self._broken: list[BrokenCall] = []
        self._strangers = strangers
        self._apart: list[BrokenCall] = []
        """Calls of undeclared tools, which are text if more text follows them."""
        self._apart_text = ""
        self._no_tool = False
        self._plan = ""
        """The first sentence of a thought in a call."""
        self._remark = ""
        """Why no tool was needed; the answer where there is no other."""
        self._blocks = 0
        self._seen: set[tuple[str, str]] = set()

    @property
    def is_empty(self) -> bool:
        """Whether nothing was said or called so far."""
        return not self._said and not self._blocks and not self._apart

    @property
    def is_bare(self) -> bool:
        """Whether there was nothing but calls so far."""
        return not self._said and not (self._aside or "").strip(_WHITE)

    def reading(self, finish_reason: str | None) -> ParsedReply:
        """The whole reply."""
        if not (self._said or self.calls or self._broken or self._apart):
            self.say(self._remark)
        return ParsedReply(
            "".join(self._said),
            tuple(self.calls),
            (*self._broken, *self._apart),
            "".join(self.thought).strip(),
            finish_reason,
            self._no_tool and not self.calls,
            self._plan,
        )

    def say(self, text: str) -> None:
        """Text that is for people: out it goes. Inside a batch it is dropped and counted."""
        if not text or self.over:
            return
        if self._apart and not text.strip(_WHITE):
            self._apart_text += text
            return
        if self._apart:
            before, self._apart_text = self._apart_text, ""
            self._apart.clear()
            self.say(before)
        if self._aside is not None:
            self._aside = _BLANKS.sub(_one_blank, self._aside + text)
            self.over = len(self._aside.strip(_WHITE)) > BATCH_PROSE
            return
        body = text.rstrip(_WHITE)
        blank = text[len(body) :]
        self._recent.append(text)
        if not self._said:
            body = body.lstrip(_WHITE)
        if body:
            if self._blank:
                body = "".join(self._blank) + body
                self._blank.clear()
            self._said.append(body)
            self.events.append(TextDelta(body))
        if self._said and blank:
            self._blank.append(blank)

    def lead(self) -> str:
        """The last characters of text before the place where we are."""
        if self._aside is not None:
            return self._aside
        lead = "".join(self._recent)[-LEAD:]
        self._recent = [lead]
        return lead

    def begin(self, *, sure: bool) -> None:
        """Something that may be a block begins behind the text said so far."""
        if self._said and self._aside is None and not self.over:
            self.events.append(Begins(sure))

    def end_batch(self) -> None:
        """Something came that is more than a few words between two blocks."""
        self.over = self.over or self._aside is not None

    def invent(self) -> None:
        """A tool's result was made up here."""
        self.invented = True
        self.end_batch()

    def is_shown(self, *, plain: bool = False) -> bool:
        """Whether a block here is shown, not meant. Inside a batch that is its end. `plain`: the
        block has no marks of a call around it, so that it may be data as well."""
        if self.invented:
            return True
        if self._aside is None:
            lead = self.lead()
            return is_quoted(lead) or (plain and announces_data(lead))
        if names_a_result(self._aside, after_call=True) or is_quoted(self._aside):
            self.over = True
        return self.over

    def is_quoting(self) -> bool:
        """Whether the words before this place say that what follows is shown, not meant."""
        return self._aside is None and is_quoted(self.lead())

    def take(self, block: Block, raw: str) -> bool:
        """Judge a block and keep what it comes to; False if it is text."""
        verdict = self._judge.block(block, raw, cut_off=self.cut_off)
        if verdict.is_text:
            return self._set_apart(block, raw)
        self._broken += self._apart
        self._apart.clear()
        self._apart_text = ""
        if verdict.answer is not None and not verdict.calls:
            self._no_tool = True
            self._remark = self._remark or verdict.remark
            self._break_line()
            self.say(verdict.answer)
            if self._aside is None and not verdict.broken:
                # No batch has begun: what stands behind such an action is the answer.
                self._break_line()
                self._blocks += 1
                return True
        self._broken += verdict.broken
        self._plan = self._plan or verdict.thought
        for accepted in verdict.calls:
            self._call(accepted)
        self._aside = ""
        self._blocks += 1
        self.over = self.over or self._blocks >= _RUNAWAY
        return True

    def _break_line(self) -> None:
        """What is said next begins a line."""
        if self._said and not self._blank and self._aside is None:
            self._blank.append("\n")

    def _set_apart(self, block: Block, raw: str) -> bool:
        """Hold back a call of an undeclared tool where nothing was said but what announces it."""
        if not self._strangers or self._aside is not None or self.over:
            return False
        said = "".join(self._said) if len(self._said) <= BATCH_PROSE else None
        if said is None or len(said) > BATCH_PROSE or (said and not announces(said)):
            return False
        broken = self._judge.stranger(block, raw)
        if broken is not None:
            self._apart.append(broken)
            self._apart_text += raw
            self.over = len(self._apart) >= _RUNAWAY
        return broken is not None

    def retract(self) -> bool:
        """A lone `</think>`: in the opening all before it was thinking; later it says nothing."""
        said = "".join(self._said) + self._apart_text
        if len(said) > HOLD_CHARACTERS or self._aside is not None:
            return False
        self.thought.append(said)
        self.retracted = self.retracted or bool(said)
        if said:
            self.events.append(Retracted())
        self._said.clear()
        self._apart.clear()
        self._apart_text = ""
        self._recent.clear()
        self._blank.clear()
        return True

    def _call(self, accepted: Accepted) -> None:
        arguments = canonical_json(accepted.arguments)
        key = (accepted.name, arguments)
        if key in self._seen or len(self.calls) >= MAX_CALLS:
            return
        self._seen.add(key)
        identity = f"{self._position}\n{len(self.calls)}\n{accepted.name}\n{arguments}"
        call = ToolCall(
            self._free_id(identity),
            accepted.name,
            accepted.arguments,
            accepted.confidence,
            accepted.repairs,
        )
        self.calls.append(call)
        self.events.append(CallReady(call))

    def _free_id(self, identity: str) -> str:
        """An id from the call's identity. Where earlier rounds have left the conversation, the same
        call at the same position may have one already: then the next."""
        while True:
            digest = hashlib.sha256(identity.encode("utf-8", "surrogatepass")).hexdigest()
            if (id := f"call_{digest[:12]}") not in self._taken:
                return id
            identity += "\n+"


def _one_blank(blanks: re.Match[str]) -> str:
    return "\n" if "\n" in blanks.group() else " "
