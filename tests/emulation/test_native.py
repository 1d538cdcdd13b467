"""Native calls that arrive in an emulated turn: fragments of every server's making, as blocks."""

from __future__ import annotations

import pytest

from chathands.conversation import Message, ToolSpec
from chathands.emulation import Calls, NativeCall, Turn

TOOLS = [ToolSpec("get_weather", "查天气", {"type": "object", "properties": {"city": {}}}, "none")]


@pytest.mark.parametrize(
    ("pieces", "cities"),
    [
        ([NativeCall(0, "a", "get_weather", '{"city": "厦门"}')], ["厦门"]),
        (
            [
                NativeCall(0, "a", "get_weather", ""),
                NativeCall(0, None, None, '{"city": '),
                NativeCall(0, None, None, '"厦门"}'),
            ],
            ["厦门"],
        ),
        (
            [
                NativeCall(0, "a", "get_weather", '{"city":'),
                NativeCall(0, "a", "get_weather", '"厦门"}'),
            ],
            ["厦门"],
        ),
        (
            [NativeCall(0, "a", "get_"), NativeCall(0, None, "weather", '{"city": "厦门"}')],
            ["厦门"],
        ),
        (
            [
                NativeCall(0, "a", "get_weather", '{"city": "厦门"}'),
                NativeCall(1, "b", "get_weather", '{"city": "武汉"}'),
            ],
            ["厦门", "武汉"],
        ),
        (
            [
                NativeCall(0, "a", "get_weather", '{"city": "厦门"}'),
                NativeCall(0, "b", "get_weather", '{"city": "武汉"}'),
            ],
            ["厦门", "武汉"],
        ),
        (
            [
                NativeCall(1, "b", "get_weather", '{"city": '),
                NativeCall(0, "a", "get_weather", '{"city": "厦门"}'),
                NativeCall(1, None, None, '"武汉"}'),
            ],
            ["厦门", "武汉"],
        ),
    ],
    ids=["whole", "pieces", "name again", "name in pieces", "two", "one index", "interleaved"],
)
def test_fragments_become_calls(pieces, cities):
    turn = Turn([Message.user("天气：厦门；武汉")], TOOLS)
    for piece in pieces:
        turn.feed(piece)
    outcome = turn.finish("tool_calls")
    assert isinstance(outcome, Calls)
    assert [call.arguments["city"] for call in outcome.calls] == cities
