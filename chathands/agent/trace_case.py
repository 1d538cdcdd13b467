"""A reply that went wrong as one line of data, in the form that the project's tests read.

Two kinds: `parser` (what calls stand in this reply?) and `review`, which has two forms: the stance
of the words alone (does this plead, promise or answer?), and the judgement in its conversation (is
this claim backed, was this call asked for?). Each form has its file in `tests/data/`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from chathands.agent.trace import pieces_from_rows
from chathands.agent.trace_reading import RequestNumbers
from chathands.agent.verdict import turned_down
from chathands.conversation import ToolSpec
from chathands.emulation import parse_reply
from chathands.emulation.native import NativeCalls, declared_name
from chathands.emulation.outcome import Mode, NativeCall, ParsedReply, Reason, Text
from chathands.emulation.refusal import UNDONE, Stance
from chathands.emulation.review import OPTIONAL_REVIEWS, review_reply, stance_in
from chathands.emulation.structured import translated
from chathands.errors import ChatHandsError
from chathands.store import codec

Kind = Literal["parser", "review"]
Label = Literal["refusal", "missed_intent", "delegates", "safety_refusal", "clarify", "normal"]

PARSER_FILE = "tests/data/forms.jsonl"
STANCE_FILE = "tests/data/refusals.jsonl"
REVIEW_FILE = "tests/data/reviews.jsonl"
"""Where a line belongs in a checkout of the project."""

RETRIED: tuple[Label, ...] = ("refusal", "missed_intent", "delegates")
"""Labels of replies that should be asked again."""

NO_REASON = "none"
"""In place of a reason: the reply should stand."""

_REVIEW_REASONS = (
    *(Reason.REFUSAL, Reason.MISSED_CALL, Reason.UNGROUNDED, Reason.UNCONFIRMED),
    *(Reason.FAR_FETCHED, Reason.INCOMPLETE),
    *(Reason.UNBACKED_CLAIM, Reason.UNBACKED_FIGURE),
)
Redact = Callable[[str], str]


class CaseError(ChatHandsError):
    """The case cannot be written; the sentence says why."""


@dataclass(frozen=True, slots=True)
class Case:
    """`guessed`: nobody said what is right; the line holds what is read today."""

    line: str
    file: str
    id: str
    guessed: bool


@dataclass(frozen=True, slots=True)
class Recorded:
    """One reply of a run, with what it has to be read with."""

    round: int
    number: int
    row: Mapping[str, Any]
    tools: tuple[ToolSpec, ...]
    conversation: Sequence[Mapping[str, Any]]
    """As stored; what the turn was given, without its own corrections."""
    choice: str
    """As `ToolChoice.of` reads it."""
    mode: Mode = "emulated"

    @property
    def raw(self) -> str:
        """What the turn read: the text, and behind it native calls as blocks; an object of the mode
        `structured` as the contract's text."""
        native, parts = NativeCalls(), []
        for piece in pieces_from_rows(self.row["pieces"]):
            if isinstance(piece, Text):
                parts.append(piece.text)
            elif isinstance(piece, NativeCall):
                native.add(piece)
        said = "".join(parts)
        if self.mode == "structured" and (read := translated(said, self.tools)) is not None:
            said = read.text
        declared = declared_name(tool.name for tool in self.tools)
        return "".join([said, *native.blocks(declared)])

    @property
    def outcome(self) -> Mapping[str, Any]:
        return self.row.get("outcome") or {}

    @property
    def went_wrong(self) -> bool:
        """Turned down, or with a call that could not be run."""
        return turned_down(self.row) or bool(self.outcome.get("broken"))


def case_of(
    trace: Mapping[str, Any],
    *,
    round_number: int | None = None,
    reply: int | None = None,
    kind: Kind | None = None,
    expected: Sequence[Mapping[str, Any]] | None = None,
    label: Label | None = None,
    reason: str | None = None,
    redact: Redact = str,
) -> Case:
    """The case for one reply of a run; by default the last one that went wrong, else the last.

    `expected` (calls as `{"tool": …, "parameters": …}`; empty: no call) makes it a parser case,
    `label` (of the words) or `reason` (in the conversation, or `none`) a review case. With none of
    them, what the reply was turned down for decides, and the line holds what is read today. Raises
    CaseError.
    """
    said = [one for one in (expected, label, reason) if one is not None]
    if len(said) > 1:
        raise CaseError(sentence="--expected/--no-call、--label、--reason 只能说一样。")
    meant: Kind | None = None if not said else "parser" if expected is not None else "review"
    if kind is not None and meant is not None and kind != meant:
        raise CaseError(sentence=f"说的是 {meant} 用例才有的内容，和 --kind {kind} 不合。")
    recorded = _chosen(list(recorded_replies(trace)), round_number, reply)
    judged = recorded.outcome.get("reason")
    kind = kind or meant or ("review" if judged in _REVIEW_REASONS else "parser")
    raw = redact(recorded.raw)
    parsed = parse_reply(raw, recorded.tools, recorded.row.get("finish"))
    stance = stance_in(parsed.text, recorded.tools, None)
    if kind == "parser":
        file, row = PARSER_FILE, _parser_row(recorded, raw, parsed, expected)
    elif label is not None or (reason is None and stance.kind in ("refusal", *UNDONE)):
        file, row = STANCE_FILE, _stance_row(recorded, parsed, label or _label_of(stance))
    else:
        file, row = REVIEW_FILE, _review_row(recorded, raw, parsed, reason)
    case_id = f"{trace['ref']}-{recorded.round}-{recorded.number}".lower()
    note = f"{trace['model']}; judged then: {_judged(recorded.outcome)}"
    row = _redacted({"id": case_id, **row, "note": note}, redact)
    return Case(one_json_line(row), file, case_id, guessed=not said)


def expected_calls(text: str) -> list[dict[str, Any]]:
    """Calls as a person types them: one object or a list of `{"tool": …, "parameters": {…}}`.

    Raises CaseError.
    """
    try:
        value = json.loads(text)
    except ValueError as error:
        raise CaseError(sentence=f"--expected 不是 JSON：{error}") from None
    calls = value if isinstance(value, list) else [value]
    for call in calls:
        fits = isinstance(call, dict) and call.keys() == {"tool", "parameters"}
        if (
            not fits
            or not isinstance(call["tool"], str)
            or not isinstance(call["parameters"], dict)
        ):
            shape = '{"tool": "名称", "parameters": {…}}'
            raise CaseError(sentence=f"--expected 要写成 {shape}，几个调用就放在一个列表里。")
    return calls


def one_json_line(row: Mapping[str, Any]) -> str:
    """JSON on one line, readable, with escapes for what an editor or a terminal would not show."""
    text = json.dumps(row, ensure_ascii=False)
    return _INVISIBLE.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


_INVISIBLE = re.compile("[\x7f-\xa0\xad\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ud800-\udfff]")
"""Controls, zero widths, direction marks, odd line ends; surrogates, which UTF-8 does not take."""


def recorded_replies(trace: Mapping[str, Any]) -> Iterator[Recorded]:
    """Every reply that came to an end, with the numbers the trace's page shows."""
    if trace.get("earlier") is not None:
        yield from recorded_replies(trace["earlier"])
    numbers = RequestNumbers()
    for step in trace["steps"]:
        if step["kind"] != "turn":
            continue
        tools = tuple(codec.spec_from_dict(row) for row in trace["toolsets"][step["tools"]])
        kind, name = step["setup"]["choice"]
        choice = "none" if step["setup"]["withdraw"] else name or kind
        conversation = trace["conversations"][step["conversation"]][: step["length"]]
        for row in step["requests"]:
            number = numbers.next(step["round"])
            if row["pieces"] or row.get("outcome"):
                mode = step["setup"].get("mode", "emulated")
                yield Recorded(step["round"], number, row, tools, conversation, choice, mode)


def _chosen(replies: list[Recorded], round_number: int | None, reply: int | None) -> Recorded:
    found = [
        one for one in replies if round_number in (None, one.round) and reply in (None, one.number)
    ]
    if not found:
        there = (
            "、".join(f"第 {one.round} 轮请求 {one.number}" for one in replies) or "没有任何回复"
        )
        raise CaseError(sentence=f"没有这一条回复；这次运行里有：{there}。")
    wrong = [one for one in found if one.went_wrong]
    return (wrong or found)[-1]


def _parser_row(
    recorded: Recorded,
    raw: str,
    parsed: ParsedReply,
    expected: Sequence[Mapping[str, Any]] | None,
) -> dict[str, Any]:
    if expected is None:
        calls = [{"tool": c.name, "parameters": codec.plain(c.arguments)} for c in parsed.calls]
    else:
        calls = [dict(call) for call in expected]
        names = {spec.name for spec in recorded.tools}
        if unknown := [call["tool"] for call in calls if call["tool"] not in names]:
            sentence = f"当时没有工具 {unknown[0]}；有：{'、'.join(sorted(names)) or '无'}。"
            raise CaseError(sentence=sentence)
    return {
        "category": recorded.outcome.get("reason") or recorded.outcome.get("kind") or "unjudged",
        "raw": raw,
        "expected": calls,
        "tools": _tools(recorded.tools),
        **_finish(recorded),
    }


def _stance_row(recorded: Recorded, parsed: ParsedReply, label: Label) -> dict[str, Any]:
    if not parsed.text:
        raise CaseError(sentence="这条回复里只有调用，没有话；--label 看的是话。")
    return {
        "label": label,
        "should_retry": label in RETRIED,
        "lang": _language(parsed.text),
        "text": parsed.text,
        "tools": _tools(recorded.tools),
    }


def _label_of(stance: Stance) -> Label:
    match stance.kind:
        case "missed_call":
            return "missed_intent"
        case kind:
            return kind


def _review_row(
    recorded: Recorded, raw: str, parsed: ParsedReply, reason: str | None
) -> dict[str, Any]:
    if reason is None:
        conversation = codec.messages_from_dicts(recorded.conversation)
        outcome = review_reply(
            parsed, recorded.tools, recorded.choice, conversation, reviews=REVIEWS
        )
        reason = outcome.reason or NO_REASON
    elif reason != NO_REASON and reason not in list(Reason):
        known = "、".join([NO_REASON, *_REVIEW_REASONS])
        raise CaseError(sentence=f"--reason 是这些之一：{known}。")
    return {
        "lang": _language(raw),
        "reason": str(reason),
        "raw": raw,
        **_finish(recorded),
        "choice": recorded.choice,
        "conversation": [dict(message) for message in recorded.conversation],
        "tools": [codec.spec_to_dict(spec) for spec in recorded.tools],
    }


REVIEWS = OPTIONAL_REVIEWS - {Reason.UNGROUNDED}
"""Those that a run of the agent has on."""


def _language(text: str) -> str:
    return "zh" if re.search("[\u4e00-\u9fff]", text) else "en"


def _finish(recorded: Recorded) -> dict[str, str]:
    finish = recorded.row.get("finish")
    return {} if finish in (None, "stop") else {"finish_reason": finish}


def _tools(specs: Sequence[ToolSpec]) -> list[dict[str, Any]]:
    return [
        {
            "name": spec.name,
            "description": spec.description,
            "parameters": codec.plain(spec.parameters),
        }
        for spec in specs
    ]


def _judged(outcome: Mapping[str, Any]) -> str:
    return (
        " ".join(str(outcome[key]) for key in ("kind", "reason") if outcome.get(key)) or "nothing"
    )


def _redacted(value: Any, redact: Redact) -> Any:
    if isinstance(value, str):
        return redact(value)
    if isinstance(value, Mapping):
        return {key: _redacted(item, redact) for key, item in value.items()}
    if isinstance(value, list):
        return [_redacted(item, redact) for item in value]
    return value
