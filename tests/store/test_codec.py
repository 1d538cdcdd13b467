"""Whatever goes in comes out the same."""

import math
from types import MappingProxyType

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chathands.conversation import (
    CallPart,
    Image,
    ImagePart,
    Message,
    Notice,
    OtherPart,
    Role,
    Status,
    Tag,
    TextPart,
    ThinkingPart,
    ToolCall,
    ToolExample,
    ToolResult,
    ToolSpec,
)
from chathands.errors import StoreError
from chathands.store import codec

# Surrogates on purpose: models stream half an emoji.
texts = st.text(st.characters(exclude_categories=()), max_size=20)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=8,
)
objects = st.dictionaries(texts, json_values, max_size=3)
images = st.lists(
    st.builds(Image, url=texts, mime=st.none() | texts, extra=objects), max_size=2
).map(tuple)
parts = st.lists(
    st.one_of(
        st.builds(TextPart, texts, objects),
        st.builds(ThinkingPart, texts, objects),
        st.builds(ImagePart, st.integers(0, 3)),
        st.builds(CallPart, st.integers(0, 3)),
        st.builds(OtherPart, texts, objects),
    ),
    max_size=3,
).map(tuple)
calls = st.builds(
    ToolCall,
    id=texts,
    name=texts,
    arguments=objects,
    confidence=st.sampled_from(["strict", "repaired", "recovered"]),
    repairs=st.lists(texts, max_size=2).map(tuple),
    raw=st.none() | texts,
    extra=objects,
)
results = st.builds(
    ToolResult,
    call_id=texts,
    name=texts,
    status=st.sampled_from(Status),
    content=texts,
    cost_ms=st.none() | st.integers(0, 10**6),
    truncated=st.booleans(),
    foreign=st.booleans(),
    images=images,
    parts=parts,
    extra=objects,
)
messages = st.builds(
    Message,
    role=st.sampled_from(Role),
    text=texts,
    calls=st.lists(calls, max_size=2).map(tuple),
    result=st.none() | results,
    images=images,
    tag=st.sampled_from(Tag),
    head=texts,
    parts=parts,
    extra=objects,
    joined=st.booleans(),
    notice=st.none() | st.sampled_from(Notice),
    told=st.lists(texts, max_size=2).map(tuple),
)
specs = st.builds(
    ToolSpec,
    name=texts,
    description=texts,
    parameters=objects,
    side_effect=st.sampled_from(["none", "local", "outward", "unknown"]),
    examples=st.lists(st.builds(ToolExample, request=texts, arguments=objects), max_size=2).map(
        tuple
    ),
    audience=st.sampled_from(["everyone", "admin", "superuser"]),
    foreign=st.booleans(),
    deterministic=st.booleans(),
    version=st.integers(1) | texts,
    faces=st.lists(st.sampled_from(["bot", "http", "mcp", "cli"]), max_size=2).map(tuple),
    deprecated=st.none() | texts,
    extra=objects,
)


@settings(max_examples=50, deadline=None)
@given(st.lists(messages, max_size=3))
def test_messages_survive_the_way_to_bytes_and_back(conversation):
    data = codec.dumps(codec.messages_to_dicts(conversation))
    assert codec.messages_from_dicts(codec.loads(data)) == conversation


@settings(max_examples=40, deadline=None)
@given(specs)
def test_tool_specs_survive_too(spec):
    assert codec.spec_from_dict(codec.loads(codec.dumps(codec.spec_to_dict(spec)))) == spec


def test_read_only_mappings_and_tuples_become_plain_json():
    call = ToolCall("c", "t", MappingProxyType({"a": MappingProxyType({"b": (1, 2)})}))
    assert codec.call_to_dict(call)["arguments"] == {"a": {"b": [1, 2]}}


def test_defaults_are_left_out():
    assert codec.message_to_dict(Message.user("你好")) == {"role": "user", "text": "你好"}


def test_rows_written_before_there_were_parts_still_load():
    row = {
        "role": "tool",
        "text": "42",
        "result": {"call_id": "c", "name": "t", "status": "ok", "content": "42"},
        "images": [["http://127.0.0.1/a.png", None]],
    }
    (message,) = codec.messages_from_dicts([row])
    assert message == Message(
        Role.TOOL,
        "42",
        result=ToolResult("c", "t", Status.OK, "42"),
        images=(Image("http://127.0.0.1/a.png"),),
    )
    assert codec.message_to_dict(message) == row


def test_a_remark_stored_before_its_kind_was_is_one_to_read_and_not_to_go_by():
    rows = [
        {"role": "user", "text": "这一次必须用工具：只写动作块。", "tag": "notice"},
        {"role": "user", "text": "x", "tag": "notice", "notice": "of_a_later_version"},
    ]
    for message, row in zip(codec.messages_from_dicts(rows), rows, strict=True):
        assert message == Message.user(row["text"], tag=Tag.NOTICE)


def test_chinese_is_stored_as_it_is():
    assert codec.dumps({"键": "值"}) == '{"键":"值"}'.encode()


def test_infinity_survives():
    assert codec.loads(codec.dumps([math.inf])) == [math.inf]


@pytest.mark.parametrize("data", [b"", b"{", b"\xff\xfe"])
def test_foreign_bytes_are_a_store_error(data):
    with pytest.raises(StoreError):
        codec.loads(data)


@pytest.mark.parametrize(
    "row",
    [
        {},
        {"role": "nobody"},
        {"role": "user", "tag": "x"},
        "text",
        {"role": "user", "parts": [["x", 1]]},
    ],
)
def test_foreign_rows_are_a_store_error(row):
    with pytest.raises(StoreError):
        codec.messages_from_dicts([row])
