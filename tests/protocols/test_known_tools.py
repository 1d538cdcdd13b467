"""Declared tools are the same objects while a client declares the same."""

from chathands.protocols import known_tools as module
from chathands.protocols.anthropic_request import MessagesRequest
from chathands.protocols.openai import ChatRequest

SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}}
MESSAGES = [{"role": "user", "content": "q"}]


def openai(description):
    function = {"name": "look", "description": description, "parameters": SCHEMA}
    tools = [{"type": "function", "function": function}]
    return ChatRequest.read({"model": "m", "messages": MESSAGES, "tools": tools}).specs or ()


def anthropic(name):
    tools = [{"name": name, "input_schema": SCHEMA}]
    body = {"model": "m", "max_tokens": 1, "messages": MESSAGES, "tools": tools}
    return MessagesRequest.read(body).specs or ()


def test_the_same_declaration_is_the_same_object_and_another_one_is_not():
    assert openai("a")[0] is openai("a")[0]
    assert openai("a")[0] is not openai("b")[0]
    assert openai("b")[0].description == "b"
    assert anthropic("x")[0] is anthropic("x")[0]
    assert anthropic("y")[0].name == "y"


def test_what_is_kept_is_bounded():
    for number in range(module.KEPT * 2):
        openai(f"tool {number}")
    assert len(module._known) <= module.KEPT
    long = "x" * module.KEPT_CHARACTERS
    assert openai(long)[0] is not openai(long)[0]
    assert openai(long)[0].description == long


def test_a_request_that_may_use_fewer_of_the_same_tools_has_fewer():
    names = ("look", "write")
    tools = [{"type": "function", "function": {"name": name}} for name in names]
    body = {"model": "m", "messages": [{"role": "user", "content": "?"}], "tools": tools}
    allowed = {"mode": "auto", "tools": [{"type": "function", "function": {"name": "look"}}]}
    choice = {"type": "allowed_tools", "allowed_tools": allowed}

    both, one = ChatRequest.read(body), ChatRequest.read({**body, "tool_choice": choice})

    assert [spec.name for spec in both.specs or ()] == ["look", "write"]
    assert [spec.name for spec in one.specs or ()] == ["look"]
    assert ChatRequest.read(body).specs is both.specs


def test_half_a_surrogate_pair_in_a_description_is_read_like_any_other():
    tool = {"type": "function", "function": {"name": "look", "description": "\ud83d"}}
    body = {"model": "m", "messages": [{"role": "user", "content": "?"}], "tools": [tool]}

    assert [spec.description for spec in ChatRequest.read(body).specs or ()] == ["\ud83d"]
