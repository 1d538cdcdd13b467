"""Events out of bytes: every cut of the same stream gives the same events."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chathands.upstreams.sse import EventDecoder, ServerEvent


def decode(raw: bytes, cuts=()) -> list[ServerEvent]:
    decoder = EventDecoder()
    events = []
    edges = [0, *sorted(cuts), len(raw)]
    for start, end in itertools.pairwise(edges):
        events += decoder.feed(raw[start:end])
    return events + decoder.close()


def data(raw: bytes) -> list[str]:
    return [event.data for event in decode(raw)]


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
def test_every_line_end_of_the_format_is_understood(end):
    assert data(b"data: a%b%bdata: b%b%b" % (end, end, end, end)) == ["a", "b"]


def test_comments_and_unknown_fields_are_passed_over():
    assert data(b": ping\n\nid: 1\nretry: 5\ndata: a\n\n:\n\n") == ["a"]


def test_several_data_lines_are_one_event():
    assert data(b"data: a\ndata\ndata:b\n\n") == ["a\n\nb"]


def test_only_one_blank_after_the_colon_belongs_to_the_format():
    assert data(b"data:  a\n\n") == [" a"]


def test_a_byte_order_mark_is_no_part_of_the_first_field():
    assert data(b"\xef\xbb\xbfdata: a\n\n") == ["a"]


def test_separators_that_are_no_line_ends_stay_in_the_data():
    text = "甲\u2028乙\x85丙\x0b丁"
    assert data(f"data: {text}\n\n".encode()) == [text]


def test_the_last_event_counts_without_its_blank_line():
    assert data(b"data: a\n\ndata: b") == ["a", "b"]


def test_the_name_of_an_event_goes_with_its_data_only():
    assert decode(b"event: error\ndata: a\n\ndata: b\n\n") == [("a", "error"), ("b", "")]


def test_bytes_that_are_no_utf8_do_not_end_the_stream():
    assert data(b"data: \xff\n\ndata: b\n\n") == ["\ufffd", "b"]


STREAM = st.lists(
    st.sampled_from(["data: 你好🙂\n", "data: x\r\n", "\n", "\r\n", "\r", ": c\n", "data", "é"]),
    max_size=12,
).map(lambda parts: "".join(parts).encode())


@given(raw=STREAM, cuts=st.lists(st.integers(0, 120), max_size=6))
def test_cuts_anywhere_change_nothing(raw, cuts):
    assert decode(raw, [min(cut, len(raw)) for cut in cuts]) == decode(raw)
