"""OpenAI Responses: what a request is.

Shapes after OpenAI's API reference (responses/create) and the official SDK's types (3.57). What a
request's items are is in responses_items.py, how a reply is written in responses_reply.py.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from chathands.conversation import Message, ToolChoice, ToolSpec
from chathands.protocols.openai import BadRequest, ToolName, Wire
from chathands.protocols.openai_messages import from_openai
from chathands.protocols.responses_items import Item, chat_messages, read_items, wrong_field

ELSEWHERE: Mapping[str, str] = {
    "conversation": "send previous_response_id, or the whole conversation as input",
    "prompt": "there are no stored prompt templates; send instructions and input",
    "context_management": "nothing is compacted here; send what the model is to read",
}
"""Fields that change what the model reads. A reply without what they ask for would be a wrong one,
so that they are refused with what to do instead."""


class WireTool(Wire):
    type: Literal["function"]
    name: ToolName
    description: str | None = None
    parameters: dict[str, Any] | None = None
    strict: bool | None = None


class OtherTool(BaseModel):
    """One of the service's own tools (web search, MCP …), which nobody runs here."""

    model_config = ConfigDict(extra="allow")

    type: str


class WireNamedChoice(Wire):
    type: Literal["function"]
    name: str


class WireAllowedChoice(Wire):
    type: Literal["allowed_tools"]
    mode: Literal["auto", "required"]
    tools: list[WireNamedChoice]


class TextFormat(Wire):
    type: Literal["text", "json_object"]


class SchemaFormat(Wire):
    type: Literal["json_schema"]
    name: Annotated[str, Field(min_length=1, max_length=64)]
    schema_: Annotated[dict[str, Any], Field(alias="schema")]
    description: str | None = None
    strict: bool | None = None


class WireText(Wire):
    format: Annotated[TextFormat | SchemaFormat, Field(discriminator="type")] | None = None


class WireReasoning(Wire):
    effort: str | None = None


class ResponsesRequest(Wire):
    """The body of `POST /v1/responses`. Fields it does not name are kept, and say nothing."""

    model: str
    input: str | list[dict[str, Any]] | None = None
    instructions: str | None = None
    previous_response_id: str | None = None
    tools: list[Annotated[WireTool | OtherTool, Field(union_mode="left_to_right")]] | None = None
    tool_choice: (
        Literal["auto", "none", "required"] | WireNamedChoice | WireAllowedChoice | None
    ) = None
    parallel_tool_calls: bool | None = None
    max_output_tokens: Annotated[int, Field(ge=1)] | None = None
    max_tool_calls: int | None = None
    temperature: Annotated[float, Field(ge=0, le=2)] | None = None
    top_p: Annotated[float, Field(ge=0, le=1)] | None = None
    top_logprobs: Annotated[int, Field(ge=0)] | None = None
    text: WireText | None = None
    reasoning: WireReasoning | None = None
    metadata: Annotated[dict[str, str], Field(max_length=16)] | None = None
    store: bool | None = None
    stream: bool | None = None
    background: bool | None = None
    include: list[str] | None = None
    truncation: Literal["auto", "disabled"] | None = None
    user: str | None = None

    @classmethod
    def read(cls, body: Any) -> ResponsesRequest:
        """Raises BadRequest naming the first field that is wrong."""
        if not isinstance(body, Mapping):
            raise BadRequest("the body must be a JSON object")
        try:
            request = cls.model_validate(body)
        except ValidationError as error:
            raise wrong_field(error, body) from None
        request._check()
        return request

    def _check(self) -> None:
        for field, instead in ELSEWHERE.items():
            if (self.model_extra or {}).get(field) is not None:
                raise BadRequest(f"{field}: not offered here; {instead}", field)
        if self.background:
            raise BadRequest("background: not offered here; stream instead", "background")
        if self.top_logprobs:
            message = "top_logprobs: calls are read from the text, so that there are none"
            raise BadRequest(message, "top_logprobs")
        if not self.input and self.previous_response_id is None:
            raise BadRequest("input: nothing to answer", "input")
        # Whoever forbids tools may go on sending the list; it does nothing then.
        if self.tool_choice != "none":
            for index, tool in enumerate(self.tools or ()):
                if isinstance(tool, OtherTool):
                    raise BadRequest(_no_such_tool(index, tool), f"tools.{index}.type")
        names: set[str] = set()
        for tool in self.functions or ():
            if tool.name in names:
                raise BadRequest(f"tools: {tool.name!r} is declared twice", "tools")
            names.add(tool.name)

    def check_with(self, items: Sequence[Item]) -> None:
        """What can be told only with what came before, which `items` begin with: whether there is
        a conversation, and the tool that is wanted. Raises BadRequest."""
        if not chat_messages(items):
            raise BadRequest("input: nothing to answer", "input")
        names = {tool.name for tool in self.functions or ()}
        if self.functions is None:
            names = {item["name"] for item in items if item["type"] == "function_call"}
        choice = self.choice
        if choice.kind == "required" and not names:
            raise BadRequest("tool_choice: 'required' needs tools", "tool_choice")
        wanted = self._allowed or ([choice.name] if choice.kind == "named" else [])
        for name in wanted:
            if name not in names:
                raise BadRequest(f"tool_choice: {name!r} is not declared", "tool_choice")

    @property
    def items(self) -> list[Item]:
        """The input as checked items, without ids where the client gave none, in the form in which
        they can be listed. Raises BadRequest."""
        if isinstance(self.input, str):
            return read_items([{"role": "user", "content": self.input}])
        return read_items(self.input or ())

    @property
    def functions(self) -> list[WireTool] | None:
        """Declared function tools; None when the request has no `tools` at all."""
        if self.tools is None:
            return None
        return [tool for tool in self.tools if isinstance(tool, WireTool)]

    @property
    def specs(self) -> tuple[ToolSpec, ...] | None:
        """Declared tools that may be used; None when the request has no `tools` at all, which is
        not the same as none."""
        if self.functions is None:
            return None
        allowed = self._allowed
        return tuple(
            ToolSpec.from_openai(
                {"type": "function", "function": tool.model_dump(exclude={"type"})}
            )
            for tool in self.functions
            if allowed is None or tool.name in allowed
        )

    @property
    def choice(self) -> ToolChoice:
        if isinstance(self.tool_choice, WireNamedChoice):
            return ToolChoice("named", self.tool_choice.name)
        if isinstance(self.tool_choice, WireAllowedChoice):
            return ToolChoice(self.tool_choice.mode)
        return ToolChoice(self.tool_choice or "auto")

    @property
    def _allowed(self) -> dict[str, None] | None:
        if not isinstance(self.tool_choice, WireAllowedChoice):
            return None
        return dict.fromkeys(tool.name for tool in self.tool_choice.tools)

    @property
    def sampling(self) -> dict[str, Any]:
        """Under the names of chat completions."""
        given = {
            "temperature": self.temperature,
            "top_p": self.top_p,
            "max_tokens": self.max_output_tokens,
            "reasoning_effort": self.reasoning.effort if self.reasoning else None,
        }
        return {name: value for name, value in given.items() if value is not None}

    @property
    def response_format(self) -> dict[str, Any] | None:
        """As chat completions have it; None: text."""
        wanted = self.text.format if self.text else None
        if isinstance(wanted, SchemaFormat):
            schema = wanted.model_dump(by_alias=True, exclude_none=True, exclude={"type"})
            return {"type": "json_schema", "json_schema": schema}
        return {"type": wanted.type} if wanted is not None and wanted.type != "text" else None

    def conversation(self, items: Sequence[Item]) -> list[Message]:
        """`items` (history, then this request's) in canonical form, after the instructions of this
        request: those of earlier ones are not carried over."""
        system = [{"role": "system", "content": self.instructions}] if self.instructions else []
        return from_openai([*system, *chat_messages(items)])

    def echo(self) -> dict[str, Any]:
        """What a response object repeats of its request."""
        tools = [tool.model_dump() for tool in self.functions or ()]
        choice = self.tool_choice
        text = self.text.model_dump(by_alias=True, exclude_none=True) if self.text else {}
        return {
            "background": False,
            "instructions": self.instructions,
            "max_output_tokens": self.max_output_tokens,
            "max_tool_calls": self.max_tool_calls,
            "metadata": self.metadata or {},
            "parallel_tool_calls": self.parallel_tool_calls is not False,
            "previous_response_id": self.previous_response_id,
            "reasoning": {
                "effort": self.reasoning.effort if self.reasoning else None,
                "summary": None,
            },
            "service_tier": "default",
            "temperature": self.temperature,
            "text": {"format": {"type": "text"}} | text,
            "tool_choice": choice.model_dump() if isinstance(choice, Wire) else choice or "auto",
            "tools": tools,
            "top_logprobs": 0,
            "top_p": self.top_p,
            "truncation": self.truncation or "disabled",
            "user": self.user,
        }


def _no_such_tool(index: int, tool: OtherTool) -> str:
    if tool.type == "function":  # it is one, and not well formed
        return f"tools.{index}: a function tool has a name, and parameters as a JSON Schema object"
    return f"tools.{index}.type: {tool.type[:64]!r} is not offered here; declare a function instead"
