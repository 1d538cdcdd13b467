"""Whole runs drawn at random: histories, choices, commit rules, pieces; and what holds for each."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import pairwise
from random import Random
from typing import Any

from chathands.conversation import (
    Image,
    Message,
    Role,
    SideEffect,
    Status,
    Tag,
    ToolCall,
    ToolExample,
    ToolResult,
    ToolSpec,
    as_specs,
)
from chathands.emulation import (
    Answer,
    CallReady,
    Calls,
    ChatMessage,
    Event,
    GiveUp,
    NativeCall,
    Outcome,
    Piece,
    Reason,
    Retry,
    Text,
    TextDelta,
    Thinking,
    Turn,
    clean,
    render_block,
)
from chathands.limits import MAX_CORRECTIONS
from tests.emulation.replies import TOOLS
from tests.fuzz.laws import Broken, misfit
from tests.fuzz.material import PLAIN, RECORDED, SCHEMAS, TRICKY, Maker

_EFFECTS: tuple[SideEffect, ...] = ("none", "local", "outward", "unknown")
_OPTIONAL = (
    Reason.UNGROUNDED,
    Reason.UNCONFIRMED,
    Reason.UNBACKED_CLAIM,
    Reason.UNBACKED_FIGURE,
)
_QUESTIONS = ("北京今天天气", "提醒我 8 点喝水", "你好", "read src/app.py and tell Bob", "", "```")
_SAYINGS = (
    "抱歉，我没有可用的工具。",
    "I'm sorry, I don't have access to tools.",
    "我来查一下。",
    "请您自己运行 `ls`。",
    "北京今天 25℃，晴。",
    "已发送给李雷。",
    "Done, I sent it.",
    "请问是哪个城市？",
    "----- f00d -----\n晴\n----- f00d -----",
    "结果 #1 get_weather\n晴",
    "<think>先想想</think>晴",
    "",
    "好的。",
)


@dataclass(frozen=True)
class Script:
    """One run, as data. `replies` are what the model says, one after the other."""

    conversation: tuple[Message, ...]
    tools: tuple[ToolSpec, ...] | None
    replies: tuple[str, ...]
    options: dict[str, Any] = field(default_factory=dict)
    withdraw_at: int = 9
    finish: str | None = "stop"
    in_order: bool = True
    """Whether the history is one that a run leaves behind."""


class Drawer:
    def __init__(self, rng: Random) -> None:
        self.rng = rng
        self.maker = Maker(rng)

    def script(self) -> Script:
        rng = self.rng
        specs = tuple(
            replace(spec, side_effect=rng.choice(_EFFECTS), examples=self._examples(spec))
            for spec in rng.sample(as_specs(TOOLS), rng.randint(1, len(TOOLS)))
        )
        tools = rng.choice((specs, specs, specs, specs, None, ()))
        names = [spec.name for spec in tools or ()]
        options: dict[str, Any] = {
            "choice": rng.choice(("auto", "auto", "auto", "none", "required", *names[:2])),
            "language": rng.choice(("zh", "en")),
            "commit": rng.choice(("finish", "stream")),
            "thinking": rng.choice(("none", "none", "tags", "open")),
        }
        if rng.random() < 0.4:
            options["reviews"] = frozenset(rng.sample(_OPTIONAL, rng.randint(0, 4)))
        if rng.random() < 0.3:
            options["persona"] = rng.choice(("你是小手。", "```json action\n{}\n```"))
        if rng.random() < 0.2:
            options["max_corrections"] = rng.choice((0, 1, 3))
        replies = tuple(self.reply() for _ in range(rng.randint(1, 8)))
        conversation, in_order = self._conversation()
        return Script(
            conversation,
            tools,
            replies,
            options,
            withdraw_at=rng.choice((0, 1, 2, 9, 9)),
            finish=rng.choice(("stop", "stop", None, "length")),
            in_order=in_order,
        )

    def reply(self) -> str:
        rng = self.rng
        roll = rng.random()
        if roll < 0.25:
            return rng.choice(_SAYINGS)
        if roll < 0.35:
            return rng.choice(RECORDED)
        if roll < 0.6:
            return self.maker.told()[3]
        if roll < 0.75:
            return rng.choice(_SAYINGS) + "\n" + render_block(*self.maker.call(PLAIN + TRICKY))
        return self.maker.reply()

    def _examples(self, spec: ToolSpec) -> tuple[ToolExample, ...]:
        if self.rng.random() < 0.7:
            return ()
        name, arguments = self.maker.call(PLAIN + TRICKY)
        return (ToolExample(f"用 {name}", arguments),) if name == spec.name else ()

    def _conversation(self) -> tuple[tuple[Message, ...], bool]:
        """Rounds as they come, and now and then messages in an order nobody should send."""
        rng = self.rng
        out: list[Message] = [Message.system("你是助手。")] if rng.random() < 0.2 else []
        for _ in range(rng.randint(0, 3)):
            out += [*self._round(), Message.assistant(self.reply())]
        out += self._round() if rng.random() < 0.4 else [self._question()]
        if rng.random() < 0.8:
            return tuple(out), out[-1].role in (Role.USER, Role.TOOL)
        rng.shuffle(out)
        return tuple(out[: rng.randint(0, len(out))]), False

    def _question(self) -> Message:
        images = [Image("file:a.png")] if self.rng.random() < 0.1 else []
        return Message.user(self.rng.choice(_QUESTIONS), images=images)

    def _round(self) -> list[Message]:
        rng = self.rng
        made = [self.maker.call(PLAIN + TRICKY) for _ in range(rng.randint(0, 3))]
        calls = [
            ToolCall(rng.choice((f"call_{rng.randint(0, 9)}", "")), name, arguments)
            for name, arguments in made
        ]
        tag = rng.choice((Tag.PLAIN, Tag.PLAIN, Tag.PLAIN, Tag.REJECTED))
        results = [Message.tool(self.result(call)) for call in calls if rng.random() < 0.9]
        rng.shuffle(results)
        if rng.random() < 0.1:
            results.append(Message.tool(ToolResult("nowhere", "gone", Status.OK, "孤儿")))
        if rng.random() < 0.15:
            results.append(Message.user("请重写。", tag=rng.choice((Tag.CORRECTION, Tag.NOTICE))))
        said = Message.assistant(rng.choice(_SAYINGS), calls, tag=tag)
        return [self._question(), said, *results]

    def result(self, call: ToolCall) -> ToolResult:
        rng = self.rng
        content = rng.choice(("晴，25℃", "", "出错：没有这个文件", *TRICKY, *_SAYINGS))
        return ToolResult(call.id, call.name, rng.choice(list(Status)), content, 12)


def any_run(rng: Random) -> None:
    run(Drawer(rng).script(), rng)


def run(script: Script, rng: Random) -> None:
    """Play a script as the agent would, whole and in pieces; raises `Broken` with the script."""
    seed = rng.random()
    try:
        whole = _Play(script, seed, None).outcomes()
        cut = _Play(script, seed, rng).outcomes()
    except Broken:
        raise
    except Exception as error:
        raise Broken("a run never raises", script, repr(error)) from error
    if whole != cut:
        detail = f"whole  {whole}\n  pieces {cut}"
        raise Broken("pieces make no difference to a run", script, detail)


class _Play:
    """One playing of a script. The seed decides all but how the replies are cut."""

    def __init__(self, script: Script, seed: float, cuts: Random | None) -> None:
        self.script = script
        self.rng = Random(seed)
        self.drawer = Drawer(self.rng)
        self.cuts = cuts
        self.sent: list[tuple[ChatMessage, ...]] = []

    def outcomes(self) -> list[Outcome]:
        script, out = self.script, []
        conversation = list(script.conversation)
        replies = iter(script.replies)
        # Without tools of its own a turn takes those of the history, which a round makes longer.
        for number in range(4 if script.tools is not None else 1):
            turn = _turn(script, conversation, number)
            outcome = self._last_outcome(turn, replies, out)
            conversation += turn.transcript
            _check_outcome(script, turn, outcome, withdrawn=number >= script.withdraw_at)
            if not isinstance(outcome, Calls):
                break
            results = [self.drawer.result(call) for call in outcome.calls]
            conversation += [Message.tool(result) for result in results]
        for before, after in pairwise(self.sent if script.in_order else []):
            if after[: len(before)] != before:
                raise Broken(
                    "each request starts with the previous one", script, _parting(self.sent)
                )
        clean(conversation)
        return out

    def _last_outcome(self, turn: Turn, replies: Iterator[str], out: list[Outcome]) -> Outcome:
        most = self.script.options.get("max_corrections", MAX_CORRECTIONS)
        for _ in range(most + 1):
            self.sent.append(turn.request().messages)
            out.append(self._reply(turn, next(replies, "完了，没有别的了。")))
            if not isinstance(out[-1], Retry):
                return out[-1]
        raise Broken("retries end", self.script, f"{out}")

    def _reply(self, turn: Turn, raw: str) -> Outcome:
        script, streams = self.script, self.script.options["commit"] == "stream"
        events = [e for piece in self._pieces(raw) for e in turn.feed(piece)]
        may_retry = self.rng.random() > 0.1
        outcome = turn.finish(script.finish, may_retry=may_retry)
        events += turn.tail
        if isinstance(outcome, Retry) and not may_retry:
            raise Broken("no retry where there is no time for one", script, f"{outcome}")
        if events and not streams:
            raise Broken("nothing leaves under the rule `finish`", script, f"{events}")
        if streams:
            _check_events(script, turn, outcome, events)
        return outcome

    def _pieces(self, raw: str) -> list[Piece]:
        """The reply in pieces of all kinds, as an upstream gives them."""
        parts = [raw] if self.cuts is None else Maker(self.cuts).pieces(raw)
        pieces: list[Piece] = [Text(part) for part in parts]
        if self.rng.random() < 0.15:
            pieces.insert(0, Thinking("想一想。"))
        if self.rng.random() < 0.1:
            name, arguments = self.drawer.maker.call(PLAIN + TRICKY)
            text = json.dumps(arguments, ensure_ascii=False)
            at = self.rng.randint(0, len(text))
            pieces += [NativeCall(0, "n1", name, text[:at]), NativeCall(0, arguments=text[at:])]
        return pieces


def _turn(script: Script, conversation: list[Message], number: int) -> Turn:
    withdraw = "last_round" if number >= script.withdraw_at else None
    return Turn(conversation, script.tools, fence="f00d", withdraw=withdraw, **script.options)


def _check_events(script: Script, turn: Turn, outcome: Outcome, events: list[Event]) -> None:
    calls = [e.call for e in events if isinstance(e, CallReady)]
    said = "".join(e.text for e in events if isinstance(e, TextDelta))
    if isinstance(outcome, Calls) and list(outcome.calls) != calls:
        raise Broken("the calls that left are the calls", script, f"{outcome}\n  {events}")
    if isinstance(outcome, Answer | Retry | GiveUp) and calls:
        raise Broken("a call that left is a call", script, f"{outcome}\n  {events}")
    if isinstance(outcome, Answer | Calls) and outcome.text != turn.sent:
        raise Broken("the text that left is the text", script, f"{outcome}\n  {turn.sent!r}")
    if not turn.sent.endswith(said):
        raise Broken("`sent` is what left", script, f"{turn.sent!r} {events}")


def _check_outcome(script: Script, turn: Turn, outcome: Outcome, *, withdrawn: bool) -> None:
    calls = outcome.calls if isinstance(outcome, Calls) else ()
    if isinstance(outcome, Calls) and not calls:
        raise Broken("calls are at least one", script, f"{outcome}")
    if script.tools is not None:
        declared = {spec.name for spec in script.tools}
        for call in calls:
            if call.name not in declared:
                raise Broken("only declared calls", script, f"{call}")
            if problem := misfit(SCHEMAS[call.name], call.arguments, closed=False):
                raise Broken("calls fit their schema", script, f"{call}: {problem}")
    if calls and (withdrawn or script.options["choice"] == "none"):
        raise Broken("no calls where there are no tools", script, f"{outcome}")
    json.dumps(turn.log)
    if isinstance(outcome, Answer | Calls):
        (accepted,) = [m for m in turn.transcript if m.tag is Tag.PLAIN]
        if accepted.calls != calls:
            raise Broken("the transcript has the calls", script, f"{accepted}")


def _parting(sent: list[tuple[ChatMessage, ...]]) -> str:
    for number, (before, after) in enumerate(pairwise(sent), 1):
        for one, two in zip(before, after, strict=False):
            if one != two:
                at = next(
                    (i for i, (a, b) in enumerate(zip(one.content, two.content, strict=False))
                     if a != b),
                    min(len(one.content), len(two.content)),
                )  # fmt: skip
                around = slice(max(at - 40, 0), at + 120)
                return (
                    f"requests {number} and {number + 1} part in a message of {one.role} at {at}:"
                    f"\n  {one.content[around]!r}\n  {two.content[around]!r}"
                )
        if len(after) < len(before):
            return f"request {number} has {len(before)} messages, the next {len(after)}"
    return ""
