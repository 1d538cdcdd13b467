"""What a run leaves for whoever has to find out what went wrong: everything, in order.

A trace is a plain dict (see `RunTrace.to_dict`); reading it is in trace_reading.py.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

from chathands.agent.turns import TurnSetup
from chathands.conversation import Message, SameSpecs, ToolCall, ToolResult, ToolSpec
from chathands.emulation.outcome import (
    Answer,
    BrokenCall,
    Calls,
    ChatMessage,
    GiveUp,
    ModelRequest,
    NativeCall,
    Outcome,
    Piece,
    Text,
    Thinking,
    Verbatim,
)
from chathands.store import codec
from chathands.upstreams.base import Usage

VERSION = 1

REQUEST_EXTRAS = ("response_format", "tools", "tool_choice", "stop", "sampling")
"""Of a request, besides its messages."""


class RunTrace:
    """Collects while a run goes; nothing here waits for anything.

    `clock` gives seconds, as the event loop does; wall time is taken once, at the start.
    """

    def __init__(
        self,
        run_id: str,
        *,
        model: str,
        place: str,
        question: Mapping[str, Any],
        clock: Callable[[], float],
        goes_on: bool = False,
        person: tuple[str, str] | None = None,
    ) -> None:
        """`goes_on`: an earlier process wrote the beginning of this run. `person`: place and user
        who asked, for their account."""
        self.run_id = run_id
        self.person = person
        self._tokens = 0
        self._clock = clock
        self._zero = clock()
        self._head = {
            "version": VERSION,
            "ref": run_id,
            "started": time.time(),
            "model": model,
            "place": place,
            "question": question.get("text", ""),
            "asked": dict(question),
            "goes_on": goes_on,
        }
        self._conversations: list[list[Message]] = []
        self._toolsets: list[tuple[ToolSpec, ...]] = []
        self._steps: list[dict[str, Any]] = []
        self._began: dict[str, float] = {}
        self._end: dict[str, Any] = {"outcome": "running", "reply": "", "verdict": ""}
        self._last_messages: tuple[ChatMessage, ...] = ()

    def now(self) -> float:
        return round(self._clock() - self._zero, 3)

    def tokens_since_asked(self) -> int:
        """Tokens the model's server reported, both directions, since this was last asked."""
        tokens, self._tokens = self._tokens, 0
        return tokens

    def note(self, what: str, detail: str = "") -> None:
        """Something that happened beside turns and calls: approval, withdrawal, an error."""
        self._steps.append({"kind": "note", "at": self.now(), "what": what, "detail": detail})

    def turn(
        self,
        round_number: int,
        setup: TurnSetup,
        conversation: Sequence[Message],
        tools: tuple[ToolSpec, ...],
    ) -> TurnTrace:
        """A turn begins on this conversation."""
        step = {
            "kind": "turn",
            "at": self.now(),
            "round": round_number,
            "setup": setup.to_dict(),
            "tools": self._toolset(tools),
            "conversation": self._conversation(conversation),
            "length": len(conversation),
            "requests": [],
            "log": [],
        }
        self._steps.append(step)
        return TurnTrace(self, step)

    def call_started(self, call: ToolCall) -> None:
        """A call is being run."""
        self._began[call.id] = self.now()

    def call_finished(self, result: ToolResult, calls: Sequence[ToolCall]) -> None:
        """One of `calls` has its result, run or not."""
        call = next((call for call in calls if call.id == result.call_id), None)
        step: dict[str, Any] = {"kind": "call", "at": self.now()}
        if result.call_id in self._began:
            step["began"] = self._began.pop(result.call_id)
        step["call"] = codec.call_to_dict(call) if call else {"name": result.name, "arguments": {}}
        step["result"] = codec.result_to_dict(result)
        self._steps.append(step)

    def finish(
        self, outcome: str, reply: str, verdict: Callable[[Mapping[str, Any]], str]
    ) -> dict[str, Any]:
        """The run has ended, or is suspended: the trace as it is now. A suspended run goes on with
        the same RunTrace; what was given out before stays as it was."""
        self._end = {"outcome": outcome, "reply": reply, "took": self.now(), "verdict": ""}
        trace = self.to_dict()
        trace["verdict"] = self._end["verdict"] = verdict(trace)
        return trace

    def to_dict(self) -> dict[str, Any]:
        """Head, steps and end, JSON-safe. Conversations and tool lists are stored once each."""
        return {
            **self._head,
            "toolsets": [_toolset_rows(SameSpecs(specs)) for specs in self._toolsets],
            "conversations": [codec.messages_to_dicts(one) for one in self._conversations],
            "steps": [dict(step) for step in self._steps],
            **self._end,
        }

    def _toolset(self, tools: tuple[ToolSpec, ...]) -> int:
        if not self._toolsets or self._toolsets[-1] != tools:
            self._toolsets.append(tools)
        return len(self._toolsets) - 1

    def _conversation(self, conversation: Sequence[Message]) -> int:
        """Index of the stored list this one extends: within a run lists only grow, save once when
        the context runs out."""
        known = self._conversations[-1] if self._conversations else None
        grown = known is not None and all(
            mine is theirs for mine, theirs in zip(known, conversation, strict=False)
        )
        if known is None or not grown:
            self._conversations.append(list(conversation))
        else:
            known.extend(conversation[len(known) :])
        return len(self._conversations) - 1

    def _request(self, request: ModelRequest) -> dict[str, Any]:
        same = 0
        for mine, theirs in zip(self._last_messages, request.messages, strict=False):
            if mine != theirs:
                break
            same += 1
        self._last_messages = request.messages
        row: dict[str, Any] = {
            "at": self.now(),
            "same": same,
            "messages": [message_row(message) for message in request.messages[same:]],
            "pieces": [],
        }
        for name in REQUEST_EXTRAS:
            if getattr(request, name):
                row[name] = codec.plain(getattr(request, name))
        return row


class TurnTrace:
    """One turn: its requests with the pieces that came, what was decided, and the turn's log."""

    def __init__(self, run: RunTrace, step: dict[str, Any]) -> None:
        self._run = run
        self._step = step
        self._request: dict[str, Any] = {}
        self._pieces: list[Piece] = []

    def asked(self, request: ModelRequest) -> None:
        self._request, self._pieces = self._run._request(request), []
        self._step["requests"].append(self._request)

    def piece(self, piece: Piece) -> None:
        if not self._pieces:
            self._request["first"] = self._run.now()
        self._pieces.append(piece)

    def ended(
        self,
        *,
        finish_reason: str | None = None,
        usage: Usage | None = None,
        error: str | None = None,
    ) -> None:
        """The reply is whole, or broke off with `error`."""
        self._request["ended"] = self._run.now()
        self._request["pieces"] = pieces_to_rows(self._pieces)
        self._request["finish"] = finish_reason
        if usage is not None:
            self._request["usage"] = [usage.prompt, usage.completion, usage.cached]
            self._run._tokens += usage.prompt + usage.completion
        if error is not None:
            self._request["error"] = error

    def decided(self, outcome: Outcome, log: Sequence[Mapping[str, Any]], may_retry: bool) -> None:
        self._request["may_retry"] = may_retry
        self._request["outcome"] = outcome_to_row(outcome)
        self._step["log"] = [codec.plain(entry) for entry in log]


@lru_cache(maxsize=4)
def _toolset_rows(same: SameSpecs) -> list[dict[str, Any]]:
    """Shared by the traces that wait to be written; nobody changes them."""
    return [codec.spec_to_dict(spec) for spec in same.specs]


def message_row(message: ChatMessage) -> dict[str, Any]:
    """A message of a request, JSON-safe."""
    row: dict[str, Any] = {"role": str(message.role), "content": message.content}
    if message.tool_calls:
        row["tool_calls"] = codec.plain(message.tool_calls)
    if message.tool_call_id is not None:
        row["tool_call_id"] = message.tool_call_id
    return row


def pieces_to_rows(pieces: Sequence[Piece]) -> list[list[Any]]:
    """Pieces that belong together as one row: what they are, the joined text, their lengths.

    Joined, because secrets are taken out afterwards, and one that came in two pieces would stay.
    """
    rows: list[list[Any]] = []
    for piece in pieces:
        *head, text = _piece_row(piece)
        before = rows[-1] if rows else None
        if before is not None and before[:-2] == head and _may_join(piece):
            before[-2] += text
            before[-1].append(len(text))
        else:
            rows.append([*head, text, [len(text)]])
    return rows


def pieces_from_rows(rows: Sequence[Sequence[Any]]) -> Iterator[Piece]:
    """The pieces again; where the text has become another length, the last one differs."""
    for *head, text, lengths in rows:
        at = 0
        for number, length in enumerate(lengths, 1):
            end = len(text) if number == len(lengths) else at + length
            part, at = text[at:end], end
            match head:
                case ["text"]:
                    yield Text(part)
                case ["thinking"]:
                    yield Thinking(part)
                case [_, index, call_id, name]:
                    yield NativeCall(index, call_id, name, part)


def _piece_row(piece: Piece) -> list[Any]:
    match piece:
        case Text(text):
            return ["text", text]
        case Thinking(text):
            return ["thinking", text]
        case NativeCall(index, call_id, name, arguments):
            return ["call", index, call_id, name, arguments]
        case Verbatim(data):  # of a request that no run sends; kept as it is, read by nobody
            return ["verbatim", data]


def _may_join(piece: Piece) -> bool:
    """A fragment with an id or a name begins a call, or repeats what it said."""
    return not isinstance(piece, NativeCall) or (piece.id is None and piece.name is None)


def outcome_to_row(outcome: Outcome) -> dict[str, Any]:
    """An outcome as a dict that can be compared with another."""
    match outcome:
        case Answer(text):
            return {"kind": "answer", "text": text}
        case Calls(text, calls, broken):
            return {
                "kind": "calls",
                "text": text,
                "calls": [codec.call_to_dict(call) for call in calls],
                "broken": [_broken_row(one) for one in broken],
            }
        case GiveUp(reason, text, detail):
            return {"kind": "give_up", "reason": str(reason), "text": text, "detail": detail}
        case _:
            return {
                "kind": "retry",
                "reason": str(outcome.reason),
                "name": outcome.name,
                "detail": outcome.detail,
            }


def _broken_row(broken: BrokenCall) -> dict[str, Any]:
    return {
        "reason": str(broken.reason),
        "name": broken.name,
        "detail": broken.detail,
        "raw": broken.raw,
    }
