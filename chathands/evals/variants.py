"""Ways to put a case to a model: the engine's modes, and prompt styles to compare with.

A variant makes a decider per decision. `Turn` is one; the styles here are what people write
themselves, in our wording, read as strictly as such code reads.
"""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from chathands.conversation import Message, Role, ToolCall, ToolSpec
from chathands.emulation import Answer, Calls, Turn, parse_reply
from chathands.emulation.outcome import (
    ChatMessage,
    Event,
    Language,
    ModelRequest,
    Outcome,
    Piece,
    Text,
)
from chathands.errors import ConfigError


class Decider(Protocol):
    """One decision with its retries; `Turn`'s face as far as the runner needs it."""

    @property
    def transcript(self) -> tuple[Message, ...]: ...

    def request(self) -> ModelRequest: ...

    def feed(self, piece: Piece) -> list[Event]: ...

    def finish(self, finish_reason: str | None = None, *, may_retry: bool = True) -> Outcome: ...


@dataclass(frozen=True, slots=True)
class Variant:
    name: str
    decide: Callable[[Sequence[Message], tuple[ToolSpec, ...] | None, Language, bool], Decider]
    """(conversation, tools, language, whether this is the last round) → decider."""


def variant(name: str) -> Variant:
    """A variant by name. Raises ConfigError for an unknown one."""
    if name not in VARIANTS:
        raise ConfigError(
            f"unknown variant {name}",
            sentence=f"没有 {name} 这种方式，可以用：{'、'.join(VARIANTS)}。",
        )
    return VARIANTS[name]


def turn_variant(name: str, **options: Any) -> Variant:
    """The engine itself; `options` are Turn's own."""

    def decide(
        conversation: Sequence[Message],
        tools: tuple[ToolSpec, ...] | None,
        language: Language,
        last: bool,
    ) -> Decider:
        return Turn(
            conversation,
            tools,
            language=language,
            withdraw="last_round" if last else None,
            **options,
        )

    return Variant(name, decide)


# --- prompt styles: one request, no retry, their own reading

_Read = Callable[[str, tuple[ToolSpec, ...]], list[tuple[str, dict[str, Any]]]]


@dataclass(frozen=True, slots=True)
class Style:
    """A prompt style: its system text, how calls look in history, how replies are read."""

    system: Callable[[tuple[ToolSpec, ...]], str]
    write: Callable[[str, Any], str]
    read: _Read


class StyleTurn:
    """One decision in a prompt style."""

    def __init__(
        self, style: Style, conversation: Sequence[Message], tools: tuple[ToolSpec, ...]
    ) -> None:
        self._style = style
        self._conversation = tuple(conversation)
        self._tools = tools
        self._reply = ""
        self._transcript: tuple[Message, ...] = ()

    @property
    def transcript(self) -> tuple[Message, ...]:
        return self._transcript

    def request(self) -> ModelRequest:
        messages = [ChatMessage(Role.SYSTEM, self._style.system(self._tools))]
        for message in self._conversation:
            role, text = self._plain(message)
            if messages[-1].role == role:
                text = f"{messages.pop().content}\n\n{text}"
            messages.append(ChatMessage(role, text))
        return ModelRequest(tuple(messages))

    def feed(self, piece: Piece) -> list[Event]:
        if isinstance(piece, Text):
            self._reply += piece.text
        return []

    def finish(self, finish_reason: str | None = None, *, may_retry: bool = True) -> Outcome:
        names = {tool.name for tool in self._tools}
        read = [(name, given) for name, given in self._style.read(self._reply, self._tools)]
        made = sum(len(message.calls) for message in self._conversation)
        calls = tuple(
            ToolCall(f"call_{made + at}", name, arguments)
            for at, (name, arguments) in enumerate(read)
            if name in names
        )
        text = "" if calls else self._reply
        self._transcript = (Message.assistant(text, calls),)
        return Calls(text, calls) if calls else Answer(text)

    def _plain(self, message: Message) -> tuple[Role, str]:
        if message.role is Role.ASSISTANT:
            blocks = [self._style.write(call.name, dict(call.arguments)) for call in message.calls]
            return Role.ASSISTANT, "\n".join([message.text, *blocks]).strip()
        if message.result is not None:
            return Role.USER, f"Result of {message.result.name}:\n{message.result.content}"
        return Role.USER, f"{message.head}\n{message.text}".strip()


def _style_variant(name: str, style: Style) -> Variant:
    return Variant(
        name, lambda conversation, tools, _, __: StyleTurn(style, conversation, tools or ())
    )


def _schemas(tools: tuple[ToolSpec, ...]) -> str:
    return "\n".join(
        json.dumps(
            {"name": t.name, "description": t.description, "parameters": dict(t.parameters)},
            ensure_ascii=False,
        )
        for t in tools
    )


def _naive_system(tools: tuple[ToolSpec, ...]) -> str:
    lines = [
        f"- {tool.name}({', '.join(tool.parameters.get('properties', {}))}): {tool.description}"
        for tool in tools
    ]
    return (
        "You can use these tools:\n"
        + "\n".join(lines)
        + '\n\nTo use a tool, output JSON: {"tool": "name", "arguments": {...}}. '
        "Otherwise answer the user."
    )


def _first_to_last_brace(reply: str, _: tuple[ToolSpec, ...]) -> list[tuple[str, dict[str, Any]]]:
    start, end = reply.find("{"), reply.rfind("}")
    try:
        value = json.loads(reply[start : end + 1]) if 0 <= start < end else None
    except ValueError:
        return []
    if not isinstance(value, dict) or not isinstance(value.get("tool"), str):
        return []
    arguments = value.get("arguments")
    return [(value["tool"], arguments if isinstance(arguments, dict) else {})]


NAIVE = Style(
    _naive_system,
    lambda name, arguments: json.dumps({"tool": name, "arguments": arguments}, ensure_ascii=False),
    _first_to_last_brace,
)


def _json_only_system(tools: tuple[ToolSpec, ...]) -> str:
    return (
        "You are a helpful assistant. When one of the functions below is needed, reply with one "
        'JSON object of the form {"name": <function>, "arguments": {...}} and nothing else. When a '
        "function's result answers the request, or no function is needed, reply in plain text.\n\n"
        f"{_schemas(tools)}"
    )


def _whole_json(reply: str, _: tuple[ToolSpec, ...]) -> list[tuple[str, dict[str, Any]]]:
    body = re.sub(r"\A```(?:json)?\s*|\s*```\Z", "", reply.strip())
    try:
        value = json.loads(body)
    except ValueError:
        return []
    calls = []
    for item in value if isinstance(value, list) else [value]:
        if isinstance(item, dict) and isinstance(item.get("name"), str):
            arguments = item.get("arguments")
            calls.append((item["name"], arguments if isinstance(arguments, dict) else {}))
    return calls


JSON_ONLY = Style(
    _json_only_system,
    lambda name, arguments: json.dumps({"name": name, "arguments": arguments}, ensure_ascii=False),
    _whole_json,
)

_TRIGGER = "<Function_Q7D2_Start/>"


def _trigger_system(tools: tuple[ToolSpec, ...]) -> str:
    return (
        "You have access to the functions listed here as JSON, one a line:\n"
        f"{_schemas(tools)}\n\n"
        "To call functions, write this line by itself:\n"
        f"{_TRIGGER}\n"
        "and right after it one XML block with a function_call for every call you need:\n"
        "<function_calls>\n<function_call>\n<tool>function name</tool>\n"
        '<args_json><![CDATA[{"argument": "value"}]]></args_json>\n'
        "</function_call>\n</function_calls>\n"
        "Write nothing after </function_calls>. When no function is needed, answer directly and "
        "do not write the line."
    )


def _write_trigger(name: str, arguments: Any) -> str:
    body = json.dumps(arguments, ensure_ascii=False)
    return (
        f"{_TRIGGER}\n<function_calls>\n<function_call>\n<tool>{name}</tool>\n"
        f"<args_json><![CDATA[{body}]]></args_json>\n</function_call>\n</function_calls>"
    )


def _after_trigger(reply: str, tools: tuple[ToolSpec, ...]) -> list[tuple[str, dict[str, Any]]]:
    _, found, rest = reply.rpartition(_TRIGGER)
    block = re.search(r"<function_calls>.*?</function_calls>", rest, re.DOTALL)
    if not found or block is None:
        return []
    try:
        root = ElementTree.fromstring(block.group())
        return [
            (call.findtext("tool", "").strip(), json.loads(call.findtext("args_json", "{}")))
            for call in root.iter("function_call")
        ]
    except (ElementTree.ParseError, ValueError):
        return []


TRIGGER = Style(_trigger_system, _write_trigger, _after_trigger)


def _tolerantly(style: Style) -> Style:
    """The same prompt, its replies read by our parser."""

    def read(reply: str, tools: tuple[ToolSpec, ...]) -> list[tuple[str, dict[str, Any]]]:
        return [(c.name, dict(c.arguments)) for c in parse_reply(reply, tools).calls]

    return Style(style.system, style.write, read)


VARIANTS: dict[str, Variant] = {
    v.name: v
    for v in (
        turn_variant("emulated"),
        turn_variant("structured", mode="structured"),
        turn_variant("structured-object", mode="structured", enforcement="json_object"),
        turn_variant("structured-prompt", mode="structured", enforcement="prompt"),
        turn_variant("native", mode="native"),
        turn_variant("native-tolerant", mode="native", reviews=frozenset(), max_corrections=0),
        _style_variant("naive", NAIVE),
        _style_variant("json-only", JSON_ONLY),
        _style_variant("json-only-tolerant", _tolerantly(JSON_ONLY)),
        _style_variant("trigger-xml", TRIGGER),
        _style_variant("trigger-xml-tolerant", _tolerantly(TRIGGER)),
    )
}
"""By name. The engine's modes first; `structured-object` and `-prompt` ask less of the upstream.
`native-tolerant` is what the upstream's own `tools` give when the reply is only read: our reading,
without optional reviews and without asking again. `naive` is the first thing people write;
`json-only` and `trigger-xml` are styles that public gateways use, with `-tolerant` their prompt
with our reading."""
