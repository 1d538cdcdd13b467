"""Anthropic Messages: what a request is, read for a model that speaks chat completions.

Shapes after Anthropic's API reference (Messages, Count tokens). What only steers Anthropic's own
servers (`cache_control`, `thinking`, `metadata`, `service_tier`) is tolerated and left behind; what
would need them (server tools, files, PDFs) is refused, because nobody here could do it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, ValidationError

from chathands.conversation import Message, ToolChoice, ToolSpec
from chathands.protocols.anthropic import from_anthropic
from chathands.protocols.known_tools import known_tools
from chathands.protocols.openai import BadRequest, ToolName, Wire, bad_request

_LEFT_BEHIND = ("thinking", "redacted_thinking", "tool_reference")
"""Blocks that say nothing to another model."""

Blocks = list[dict[str, Any]]


class NoThreads(BadRequest):
    """A request that leaves its history to a thread of the server's. The SDK's tool runner asks for
    one by itself (seen in anthropic 2.14) and sends the whole history once it is told `details`."""

    details: ClassVar = {"error_code": "thread_unsupported_request", "unsupported": ["thread"]}

    def __init__(self) -> None:
        super().__init__("thread: no threads are held here; send the whole history", "thread")


class WireTurn(Wire):
    role: Literal["user", "assistant", "system"]
    content: str | Blocks


class WireClientTool(Wire):
    type: str | None = None
    name: ToolName
    description: str | None = None
    input_schema: dict[str, Any] | None = None


class WireToolChoice(Wire):
    type: Literal["auto", "any", "tool", "none"]
    name: str | None = None
    disable_parallel_tool_use: bool | None = None


class WireFormat(Wire):
    type: Literal["json_schema"]
    schema_: Annotated[dict[str, Any], Field(alias="schema")]


class WireOutput(Wire):
    format: WireFormat | None = None


class MessagesRequest(Wire):
    """The body of `POST /v1/messages`, and of `/v1/messages/count_tokens`."""

    model: Annotated[str, Field(min_length=1)]
    messages: Annotated[list[WireTurn], Field(min_length=1)]
    max_tokens: Annotated[int, Field(ge=1)] | None = None
    system: str | Blocks | None = None
    tools: list[WireClientTool] | None = None
    tool_choice: WireToolChoice | None = None
    stop_sequences: list[str] | None = None
    temperature: float | None = None
    top_p: float | None = None
    stream: bool | None = None
    output_config: WireOutput | None = None
    output_format: WireFormat | None = None
    """Its name while it was a beta."""

    @classmethod
    def read(cls, body: Any, *, counting: bool = False) -> MessagesRequest:
        """Raises BadRequest naming the first field that is wrong. `counting`: nothing is to be
        written, so that `max_tokens` may be missing."""
        try:
            request = cls.model_validate(body)
        except ValidationError as error:
            raise bad_request(error) from None
        if request.max_tokens is None and not counting:
            raise BadRequest("max_tokens: Field required", "max_tokens")
        if (request.model_extra or {}).get("thread") is not None:
            raise NoThreads
        if (request.model_extra or {}).get("mcp_servers"):
            raise BadRequest("mcp_servers: servers cannot be connected here", "mcp_servers")
        request._check_tools()
        for _ in request._turns():
            pass
        return request

    def _check_tools(self) -> None:
        names: set[str] = set()
        for at, tool in enumerate(self.tools or ()):
            if tool.type not in (None, "custom"):
                message = f"tools.{at}.type: {tool.type!r} is not a tool that a client defines"
                raise BadRequest(f"{message}; only 'custom' tools work here", f"tools.{at}.type")
            if tool.input_schema is None:
                where = f"tools.{at}.input_schema"
                raise BadRequest(f"{where}: Field required", where)
            if tool.name in names:
                raise BadRequest(f"tools: Tool names must be unique: {tool.name!r}", "tools")
            names.add(tool.name)
        if self.tools is None:  # those of the history, if there is one
            names = {
                str(block.get("name"))
                for turn in self.messages
                if not isinstance(turn.content, str)
                for block in turn.content
                if block.get("type") == "tool_use"
            }
        choice = self.choice
        if choice.kind == "required" and not names:
            raise BadRequest("tool_choice: 'any' needs tools", "tool_choice")
        if choice.kind == "named" and choice.name not in names:
            raise BadRequest(f"tool_choice: tool {choice.name!r} is not declared", "tool_choice")

    @property
    def specs(self) -> tuple[ToolSpec, ...] | None:
        """Declared tools; None when the request has no `tools` at all, which is not the same as
        none."""
        if self.tools is None:
            return None
        return known_tools(
            ToolSpec(tool.name, tool.description or "", tool.input_schema or {})
            for tool in self.tools
        )

    @property
    def choice(self) -> ToolChoice:
        match self.tool_choice:
            case WireToolChoice(type="tool"):
                return ToolChoice("named", self.tool_choice.name)
            case WireToolChoice(type="any"):
                return ToolChoice("required")
            case WireToolChoice(type="none"):
                return ToolChoice("none")
        return ToolChoice()

    @property
    def single(self) -> bool:
        """At most one call may leave."""
        return bool(self.tool_choice and self.tool_choice.disable_parallel_tool_use)

    @property
    def sampling(self) -> dict[str, Any]:
        """Under the names of chat completions, which know no `top_k`."""
        given = {name: getattr(self, name) for name in ("max_tokens", "temperature", "top_p")}
        return {name: value for name, value in given.items() if value is not None}

    @property
    def response_format(self) -> dict[str, Any] | None:
        """As chat completions have it."""
        wanted = (self.output_config and self.output_config.format) or self.output_format
        if wanted is None:
            return None
        shape = {"name": "answer", "schema": wanted.schema_, "strict": True}
        return {"type": "json_schema", "json_schema": shape}

    def conversation(self) -> list[Message]:
        """System text and messages in canonical form, with nothing in them that chat completions
        do not have."""
        system = self.system
        if system is not None and not isinstance(system, str):
            system = _simple(_blocks(system, "system"))
        return from_anthropic(system, list(self._turns()))

    def _turns(self) -> Iterator[dict[str, Any]]:
        """Raises BadRequest. Neighbouring texts of one role are one message, as on Anthropic's
        side: templates of other models demand that roles alternate."""
        held: dict[str, Any] | None = None
        for at, turn in enumerate(self.messages):
            content: str | Blocks = turn.content
            if not isinstance(content, str):
                content = _simple(_blocks(content, f"messages.{at}.content"))
            wire = {"role": turn.role, "content": content}
            if held is None:
                held = wire
            elif (
                held["role"] == turn.role
                and isinstance(content, str)
                and isinstance(held["content"], str)
            ):
                held["content"] = "\n\n".join(filter(None, (held["content"], content)))
            else:
                yield held
                held = wire
        if held is not None:
            yield held


def _simple(blocks: Blocks) -> str | Blocks:
    """Text as a string: not every server of a plain-chat model takes parts."""
    if all(block["type"] == "text" for block in blocks):
        return "\n".join(block["text"] for block in blocks)
    return blocks


def _blocks(blocks: Blocks, where: str) -> Blocks:
    """With nothing but what chat completions have. Raises BadRequest."""
    out: Blocks = []
    for at, block in enumerate(blocks):
        out += _block(block, f"{where}.{at}")
    return out


def _block(block: Mapping[str, Any], where: str) -> Blocks:
    kind = block.get("type")
    match kind:
        case "text":
            return [{"type": "text", "text": _text_of(block, "text", where)}]
        case "image":
            return [_image(block, where)]
        case "tool_use":
            call_id, name = (_text_of(block, key, where) for key in ("id", "name"))
            arguments = block.get("input", {})
            if not isinstance(arguments, Mapping):
                raise _wrong(f"{where}.input", "Input should be a valid dictionary")
            return [{"type": "tool_use", "id": call_id, "name": name, "input": dict(arguments)}]
        case "tool_result":
            return [_result(block, where)]
        case "document" | "search_result":
            return [{"type": "text", "text": _document(block, where)}]
        case _ if kind in _LEFT_BEHIND:
            return []
    raise _wrong(f"{where}.type", f"blocks of type {kind!r} are not supported here")


def _result(block: Mapping[str, Any], where: str) -> dict[str, Any]:
    result: dict[str, Any] = {
        "type": "tool_result",
        "tool_use_id": _text_of(block, "tool_use_id", where),
    }
    content = block.get("content")
    if isinstance(content, list):
        if not all(isinstance(inner, Mapping) for inner in content):
            raise _wrong(f"{where}.content", "Input should be a list of blocks")
        inner = _blocks(content, f"{where}.content")
        if any(part["type"] in ("tool_use", "tool_result") for part in inner):
            raise _wrong(f"{where}.content", "calls and results cannot stand in a result")
        result["content"] = _simple(inner)
    elif isinstance(content, str):
        result["content"] = content
    elif content is not None:
        raise _wrong(f"{where}.content", "Input should be a string or a list of blocks")
    if block.get("is_error"):
        result["is_error"] = True
    return result


def _image(block: Mapping[str, Any], where: str) -> dict[str, Any]:
    source = block.get("source")
    kind = source.get("type") if isinstance(source, Mapping) else None
    needed = {"base64": ("media_type", "data"), "url": ("url",)}.get(str(kind))
    if not isinstance(source, Mapping) or needed is None:
        raise _wrong(f"{where}.source", "pictures are given as 'base64' or 'url' here")
    fields = {key: _text_of(source, key, f"{where}.source") for key in needed}
    return {"type": "image", "source": {"type": kind, **fields}}


def _document(block: Mapping[str, Any], where: str) -> str:
    """The text of a document or search result, under its title."""
    source = block.get("source")
    held: Any = block.get("content") if block.get("type") == "search_result" else None
    if isinstance(source, Mapping):
        if source.get("type") == "text":
            held = source.get("data")
        elif source.get("type") == "content":
            held = source.get("content")
        else:
            message = f"documents of type {source.get('type')!r} are not supported here, only text"
            raise _wrong(f"{where}.source", message)
    if isinstance(held, list) and all(isinstance(inner, Mapping) for inner in held):
        texts = [_text_of(inner, "text", f"{where}.content.{at}") for at, inner in enumerate(held)]
        held = "\n".join(texts)
    if not isinstance(held, str):
        raise _wrong(where, "there is no text in it")
    title = block.get("title")
    return f"{title}\n{held}" if isinstance(title, str) and title else held


def _text_of(block: Mapping[str, Any], key: str, where: str) -> str:
    value = block.get(key)
    if not isinstance(value, str):
        raise _wrong(f"{where}.{key}", "Input should be a valid string")
    return value


def _wrong(where: str, message: str) -> BadRequest:
    return BadRequest(f"{where}: {message}", where)
