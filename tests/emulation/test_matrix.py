"""Every kind of turn, in both languages, streamed and whole: what is asked, said, and left behind.

One row of MATRIX is one run. `asks` has a line for each request: the roles of its messages (s, u,
a) and what its last message ends with, named by its place in the wording. A streamed run comes to
the same outcomes as a whole one; the commit rule only decides what leaves before the end.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

import pytest

from chathands.conversation import Message, Role, Status, ToolCall, ToolResult, ToolSpec
from chathands.emulation import (
    Answer,
    CallReady,
    Calls,
    GiveUp,
    Outcome,
    Reason,
    Retry,
    Text,
    TextDelta,
    Thinking,
    Turn,
    render_block,
)
from chathands.emulation.outcome import Commit, Language
from chathands.emulation.prompts import wording
from chathands.emulation.review import OPTIONAL_REVIEWS

CITY = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
NOTE = {
    "type": "object",
    "properties": {"title": {"type": "string"}, "times": {"type": "integer"}},
    "required": ["title"],
}
TOOLS = [
    ToolSpec("get_weather", "查询一个城市的天气 / weather of a city", CITY, "none"),
    ToolSpec("send_note", "发送通知到群 / send a note to the group", NOTE, "outward"),
]
SAYINGS: dict[str, dict[Language, str]] = {
    "ask": {"zh": "厦门天气怎么样", "en": "What is the weather in Xiamen?"},
    "ask both": {
        "zh": "厦门天气怎么样，发到群里",
        "en": "What is the weather in Xiamen? Send it to the group.",
    },
    "greet": {"zh": "你好", "en": "Hello"},
    "hello": {"zh": "你好！有什么可以帮忙？", "en": "Hello! How can I help you?"},
    "sunny": {"zh": "厦门现在是晴天。", "en": "It is sunny in Xiamen."},
    "told": {"zh": "厦门晴，已经发到群里了。", "en": "Xiamen is sunny, and the note is sent."},
    "refuse": {
        "zh": "抱歉，我没有可用的工具来查询天气。",
        "en": "I'm sorry, I don't have any tools to check the weather.",
    },
    "refuse again": {
        "zh": "很抱歉，我无法访问实时天气数据。",
        "en": "Sorry, I do not have access to real-time weather data.",
    },
    "refuse at last": {
        "zh": "抱歉，我没有查询天气的工具。",
        "en": "Sorry, I have no tool for looking up the weather.",
    },
    "promise": {
        "zh": "好的，我来查一下厦门的天气。",
        "en": "Sure, let me check the weather in Xiamen.",
    },
}


def block(tool: str = "get_weather", **arguments: Any) -> str:
    return render_block(tool, arguments or {"city": "厦门"})


WEATHER = block()
BOTH = f"{WEATHER}\n{block(city='武汉')}"
SEND = block("send_note", title="厦门晴")
BROKEN = '```json action\n{"tool": "get_weather", "parameters": {"city": }}\n```'
MISFIT = block("get_weather", town=5)
INVENTED = block("tell_fortune", name="x")
CUT = '```json action\n{"tool": "get_weather", "parameters": {"city": "厦'
THOUGHT = "<think>用户在打招呼 / they greet</think>"


@dataclass(frozen=True)
class Row:
    asks: list[str]
    """For each request: roles, and the place of the last message's end in the wording."""
    says: list[str]
    """The replies, as they are or by their name in SAYINGS; `…` at the end: stopped by length."""
    ends: list[str]
    """The outcomes: `Answer`, `Calls names`, `Retry reason`, `GiveUp reason`."""
    leaves: str
    """What a streamed run gives out: texts and [calls]."""
    kept: str
    """What the run adds: a for an accepted reply, r its rejected ones, c corrections, n notices,
    t results."""
    question: str = "ask"
    options: dict[str, Any] = field(default_factory=dict)
    tools: list[ToolSpec] | None = field(default_factory=lambda: TOOLS)
    before: list[Message] = field(default_factory=list)


PAST_CALL = ToolCall("old", "get_weather", {"city": "武汉"})
PAST = [
    Message.user("武汉天气 / weather in Wuhan"),
    Message.assistant("", [PAST_CALL]),
    Message.tool(ToolResult("old", "get_weather", Status.OK, "晴 / sunny")),
    Message.assistant("武汉晴 / sunny in Wuhan"),
]
MATRIX = {
    "single call": Row(["su ask"], [WEATHER], ["Calls get_weather"], "[get_weather]", "at"),
    "several rounds": Row(
        ["su ask both", "suau continuation.pending", "suauau continuation.done_effect"],
        [WEATHER, SEND, "told"],
        ["Calls get_weather", "Calls send_note", "Answer"],
        "[get_weather][send_note]told",
        "atata",
        question="ask both",
    ),
    "several blocks": Row(
        ["su ask", "suau continuation.done"],
        [BOTH, "sunny"],
        ["Calls get_weather get_weather", "Answer"],
        "[get_weather][get_weather]sunny",
        "atta",
    ),
    "second round without tools": Row(
        ["suauau ask"],
        [WEATHER],
        ["Calls get_weather"],
        "[get_weather]",
        "at",
        tools=None,
        before=PAST,
    ),
    "an empty list of tools": Row(
        ["suauau ask"], ["sunny"], ["Answer"], "sunny", "a", tools=[], before=PAST
    ),
    "named tool": Row(
        ["su notice.named", "suau continuation.done"],
        [WEATHER, "sunny"],
        ["Calls get_weather", "Answer"],
        "[get_weather]sunny",
        "nata",
        options={"choice": "get_weather"},
    ),
    "another than the named tool": Row(
        ["su notice.named", "suau correction.wrong_tool"],
        [SEND, WEATHER],
        ["Retry wrong_tool", "Calls get_weather"],
        "[get_weather]",
        "nrcat",
        options={"choice": "get_weather"},
    ),
    "required tool": Row(
        ["su notice.required", "suau correction.missed_call", "suauau continuation.done"],
        ["sunny", WEATHER, "sunny"],
        ["Retry missed_call", "Calls get_weather", "Answer"],
        "[get_weather]sunny",
        "nrcata",
        options={"choice": "required"},
    ),
    "no tool allowed": Row(
        ["su notice.none"],
        ["hello"],
        ["Answer"],
        "hello",
        "na",
        question="greet",
        options={"choice": "none"},
    ),
    "a call where none is allowed": Row(
        ["su notice.none", "suau correction.wrong_tool"],
        [WEATHER, "hello"],
        ["Retry wrong_tool", "Answer"],
        "hello",
        "nrca",
        question="greet",
        options={"choice": "none"},
    ),
    "refusal, then the call": Row(
        ["su ask", "suau correction.refusal"],
        ["refuse", WEATHER],
        ["Retry refusal", "Calls get_weather"],
        "[get_weather]",
        "rcat",
    ),
    "promise instead of a call": Row(
        ["su ask", "suau correction.missed_call"],
        ["promise", WEATHER],
        ["Retry missed_call", "Calls get_weather"],
        "[get_weather]",
        "rcat",
    ),
    "invalid JSON, then mended": Row(
        ["su ask", "suau correction.broken_call"],
        [BROKEN, WEATHER],
        ["Retry broken_call", "Calls get_weather"],
        "[get_weather]",
        "rcat",
    ),
    "arguments that do not fit": Row(
        ["su ask", "suau correction.invalid_arguments"],
        [MISFIT, WEATHER],
        ["Retry invalid_arguments", "Calls get_weather"],
        "[get_weather]",
        "rcat",
    ),
    "a tool that does not exist": Row(
        ["su greet", "suau correction.unknown_tool"],
        [INVENTED, "hello"],
        ["Retry unknown_tool", "Answer"],
        "hello",
        "rca",
        question="greet",
    ),
    "one good block beside a bad one": Row(
        ["su ask", "suau continuation.kept"],
        [f"{WEATHER}\n{INVENTED}", "sunny"],
        ["Calls get_weather", "Answer"],
        "[get_weather]sunny",
        "anta",
    ),
    "cut off inside a block": Row(
        ["su ask", "suau correction.truncated"],
        [f"{CUT}…", WEATHER],
        ["Retry truncated", "Calls get_weather"],
        "[get_weather]",
        "rcat",
    ),
    "nothing at all": Row(
        ["su greet", "suau correction.empty"],
        ["", "hello"],
        ["Retry empty", "Answer"],
        "hello",
        "rca",
        question="greet",
    ),
    "only thinking": Row(
        ["su greet", "suau correction.empty"],
        [THOUGHT, "hello"],
        ["Retry empty", "Answer"],
        "hello",
        "rca",
        question="greet",
        options={"thinking": "tags"},
    ),
    "plain end": Row(["su greet"], ["hello"], ["Answer"], "hello", "a", question="greet"),
    "last round": Row(
        ["su ask", "suau notice.last_round"],
        [WEATHER, "sunny"],
        ["Calls get_weather", "Answer"],
        "[get_weather]sunny",
        "atna",
        options={"withdraw": ["", "last_round"]},
    ),
    "given up": Row(
        ["su ask", "suau correction.refusal", "suauau correction.refusal"],
        ["refuse", "refuse again", "refuse at last"],
        ["Retry refusal", "Retry refusal", "GiveUp refusal"],
        "",
        "rcrcr",
    ),
}


REVIEWS = OPTIONAL_REVIEWS - {Reason.UNGROUNDED, Reason.FAR_FETCHED}
"""Without the one that adds a word to a question beside the tools; test_related.py has it."""


@dataclass
class Run:
    """What a row came to."""

    requests: list[tuple[Any, ...]] = field(default_factory=list)
    outcomes: list[Outcome] = field(default_factory=list)
    left: str = ""
    added: list[Message] = field(default_factory=list)


def said(row: Row, at: int, language: Language) -> tuple[str, str]:
    """A reply's text and finish reason."""
    text = row.says[at]
    cut = text.endswith("…")
    text = SAYINGS[text][language] if text in SAYINGS else text.removesuffix("…")
    return text, "length" if cut else "stop"


def feed(turn: Turn, text: str, commit: Commit) -> str:
    """Give a reply to a turn, in small pieces under `stream`; what left."""
    size = 7 if commit == "stream" else max(len(text), 1)
    left = ""
    for at in range(0, len(text), size):
        left += given_out(turn.feed(Text(text[at : at + size])))
    return left


def given_out(events: Any) -> str:
    texts = [e.text if isinstance(e, TextDelta) else f"[{e.call.name}]" for e in events]
    assert all(isinstance(e, TextDelta | CallReady) for e in events)
    return "".join(texts)


def run(row: Row, language: Language, commit: Commit) -> Run:
    """Play a row to its end: turn after turn, results in between."""
    made = Run()
    conversation = [*row.before, Message.user(SAYINGS[row.question][language])]
    start = len(conversation)
    withdraw = row.options.get("withdraw", [])
    options = {key: value for key, value in row.options.items() if key != "withdraw"}
    turns = at = 0
    while at < len(row.says):
        turn = Turn(
            conversation,
            row.tools,
            language=language,
            commit=commit,
            fence="f00d",
            reviews=frozenset() if commit == "stream" else REVIEWS,
            withdraw=(withdraw[turns] or None) if turns < len(withdraw) else None,
            **options,
        )
        turns += 1
        while True:
            made.requests.append(turn.request().messages)
            text, finish = said(row, at, language)
            at += 1
            made.left += feed(turn, text, commit)
            outcome = turn.finish(finish)
            made.left += given_out(turn.tail)
            made.outcomes.append(outcome)
            if not isinstance(outcome, Retry):
                break
        conversation += turn.transcript
        for call in outcome.calls if isinstance(outcome, Calls) else ():
            found = ToolResult(call.id, call.name, Status.OK, "晴 / sunny", 5)
            conversation.append(Message.tool(found))
    made.added = conversation[start:]
    return made


def described(outcome: Outcome) -> str:
    if isinstance(outcome, Calls):
        return " ".join(["Calls", *(call.name for call in outcome.calls)])
    if isinstance(outcome, Answer):
        return "Answer"
    return f"{type(outcome).__name__} {outcome.reason.value}"


def ends_like(text: str, place: str, language: Language) -> bool:
    """Whether a message ends with a text of the wording; several keys may begin with the name."""
    if place in SAYINGS:
        return text.endswith(SAYINGS[place][language])
    table, _, name = place.partition(".")
    texts: list[str] = []
    for key, value in wording(language)[table].items():
        if key == name or (table == "correction" and key.startswith(name)):
            texts += value if isinstance(value, list) else [value]
    patterns = (".*?".join(map(re.escape, re.split(r"\{\w+\}", t))) for t in texts)
    return any(re.search(f"(?:{pattern})$", text, re.DOTALL) for pattern in patterns)


LETTERS = {"rejected": "r", "correction": "c", "notice": "n"}


def letter(message: Message) -> str:
    if message.role is Role.TOOL:
        return "t"
    return LETTERS.get(message.tag.value, "a" if message.role is Role.ASSISTANT else "?")


@pytest.mark.parametrize("commit", ["finish", "stream"])
@pytest.mark.parametrize("language", ["zh", "en"])
@pytest.mark.parametrize("name", MATRIX)
def test_a_run_asks_says_and_keeps_what_the_matrix_says(name, language, commit):
    row = MATRIX[name]
    made = run(row, language, commit)

    assert [described(outcome) for outcome in made.outcomes] == row.ends
    asked = [line.partition(" ") for line in row.asks]
    roles = ["".join(m.role.value[0] for m in messages) for messages in made.requests]
    assert roles == [line[0] for line in asked]
    for messages, (_, _, place) in zip(made.requests, asked, strict=True):
        assert ends_like(messages[-1].content, place, language), messages[-1].content

    assert "".join(letter(message) for message in made.added) == row.kept
    rejected = [m.text for m in made.added if letter(m) == "r"]
    asked_again = (Retry, GiveUp)
    replies = [said(row, at, language)[0] for at in range(len(row.says))]
    assert rejected == [
        text for text, o in zip(replies, made.outcomes, strict=True) if isinstance(o, asked_again)
    ]

    leaves = re.sub(r"[a-z][a-z ]+(?=$|\[)", lambda m: SAYINGS[m[0]][language], row.leaves)
    assert made.left == (leaves if commit == "stream" else "")


@pytest.mark.parametrize("language", ["zh", "en"])
@pytest.mark.parametrize("name", MATRIX)
def test_streamed_and_whole_come_to_the_same(name, language):
    whole, streamed = (run(MATRIX[name], language, commit) for commit in ("finish", "stream"))
    assert streamed.outcomes == whole.outcomes
    assert streamed.requests == whole.requests
    assert streamed.added == whole.added


@pytest.mark.parametrize("language", ["zh", "en"])
@pytest.mark.parametrize("name", MATRIX)
def test_each_request_of_a_run_starts_with_the_one_before_and_says_nothing_escaped(name, language):
    made = run(MATRIX[name], language, "finish")
    for earlier, later in zip(made.requests, made.requests[1:], strict=False):
        assert later[: len(earlier)] == earlier
    assert not any("\\u" in m.content for messages in made.requests for m in messages)


def test_ids_are_the_same_for_the_same_and_different_for_every_round():
    names = ("finish", "stream", "finish")
    runs = [run(MATRIX["several rounds"], "zh", commit) for commit in names]
    ids = [[call.id for m in made.added for call in m.calls] for made in runs]
    assert ids[0] == ids[1] == ids[2]
    assert len(set(ids[0])) == 2


def test_the_same_call_in_two_rounds_has_two_ids():
    row = Row([], [WEATHER, WEATHER], [], "", "")
    ids = [call.id for m in run(row, "zh", "finish").added for call in m.calls]
    assert len(set(ids)) == len(ids) == 2


def test_an_id_that_is_still_in_the_conversation_is_not_made_again():
    """Where earlier rounds have left, the same call can come to the same position again."""
    made = run(Row([], [SEND, WEATHER], [], "", "", question="ask both"), "zh", "finish")
    kept = [m for m in made.added if m.role is Role.TOOL or m.calls][2:]
    turn = Turn([Message.user("q"), *kept], TOOLS)
    turn.feed(Text(WEATHER))
    outcome = turn.finish("stop")
    assert isinstance(outcome, Calls)
    assert outcome.calls[0].arguments == kept[0].calls[0].arguments
    assert outcome.calls[0].id != kept[0].calls[0].id


def test_thinking_that_comes_as_its_own_piece_is_no_answer():
    turn = Turn([Message.user("你好")], TOOLS)
    turn.feed(Thinking("他在打招呼"))
    outcome = turn.finish("stop")
    assert isinstance(outcome, Retry)
    assert outcome.reason == "empty"
