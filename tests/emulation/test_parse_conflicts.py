"""A call whose keys say two things: broken, and never one of the two at random."""

from __future__ import annotations

import pytest

from chathands.emulation.outcome import Reason
from chathands.emulation.reading import parse_reply
from tests.emulation.replies import TOOLS, block


@pytest.mark.parametrize(
    ("body", "word"),
    [
        ('{"tool":"read_file","parameters":{"path":"a"},"arguments":{"path":"b"}}', "arguments"),
        ('{"tool":"read_file","args":"{\\"path\\": \\"a\\"}","input":{"path":"b"}}', "input"),
        ('{"tool":"get_time","name":"get_weather","parameters":{"city":"a"}}', "get_weather"),
        ('{"tool":"get_time","function":{"name":"get_weather"},"arguments":{}}', "get_weather"),
        ('{"tool":"read_file","parameters":{"path":"a"},"path":"b"}', "path"),
        ('{"tool":"read_file","tool":"get_time","parameters":{"path":"a"}}', "两遍"),
        ('{"tool":"read_file","parameters":{"path":"a"},"parameters":{"path":"b",}}', "两遍"),
    ],
)
def test_a_call_that_contradicts_itself_is_broken(body: str, word: str) -> None:
    for reply in (block(body), block(body, "json"), body):
        reading = parse_reply(reply, TOOLS)
        assert reading.calls == ()
        (broken,) = reading.broken
        assert broken.reason is Reason.BROKEN_CALL
        assert word in broken.detail


@pytest.mark.parametrize(
    "body",
    [
        '{"tool":"read_file","parameters":{"path":"a"},"arguments":{"path":"a"}}',
        '{"tool":"read_file","parameters":{"path":"a"},"arguments":"{\\"path\\": \\"a\\"}"}',
        '{"tool":"read_file","parameters":{},"arguments":{"path":"a"}}',
        '{"tool":"read_file","input":"读一下 a","parameters":{"path":"a"}}',
        '{"tool":"read_file","name":"read-file","parameters":{"path":"a"}}',
        '{"tool":"read_file","name":"somebody","parameters":{"path":"a"}}',
        '{"tool":"read_file","parameters":{"path":"a"},"path":"a"}',
        '{"tool":"read_file","parameters":{"path":"a"},"parameters":{"path":"a"}}',
    ],
)
def test_a_call_that_says_the_same_twice_runs(body: str) -> None:
    (call,) = parse_reply(block(body), TOOLS).calls
    assert (call.name, call.arguments) == ("read_file", {"path": "a"})
