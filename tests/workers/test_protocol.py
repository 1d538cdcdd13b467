from __future__ import annotations

from io import BytesIO
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chathands.workers.protocol import FRAME_CAP, FrameError, encode, receive, send

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=10,
)


@given(st.lists(st.dictionaries(st.text(), JSON, max_size=4), max_size=4))
def test_what_is_sent_is_received(values: list[dict[str, Any]]) -> None:
    stream = BytesIO()
    for value in values:
        send(stream, value)
    stream.seek(0)
    assert [receive(stream) for _ in values] == values
    with pytest.raises(FrameError):
        receive(stream)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\x00\x00",
        b"\x00\x00\x00\x05{}",
        b"\xff\xff\xff\xff{}",
        b"\x00\x00\x00\x02[]",
        b"\x00\x00\x00\x02{x",
        b"\x00\x00\x10\x00" + b"[" * 4096,
        b"a stray print that looks like nothing",
    ],
)
def test_what_is_no_frame_is_an_error(data: bytes) -> None:
    with pytest.raises(FrameError):
        receive(BytesIO(data))


def test_a_frame_over_the_cap_is_not_made() -> None:
    with pytest.raises(FrameError):
        encode({"a": "x" * FRAME_CAP})
