"""The mode `structured`: what is asked for, and how objects are read, whole, torn or not at all."""

from __future__ import annotations

import json

import pytest

from chathands.conversation import Message, Status, Tag, ToolChoice, ToolResult, ToolSpec
from chathands.emulation import Answer, Calls, GiveUp, Retry, Text, TextDelta, Turn
from chathands.emulation.structured_schema import MAX_CALLS, reply_schema
from chathands.schema import compile_schema

CITY = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
WEATHER = ToolSpec("get_weather", "查天气", CITY, "none")
NOTE = ToolSpec(
    "send_note",
    "发通知",
    {
        "type": "object",
        "properties": {"title": {"type": "string", "maxLength": 20}, "urgent": {"type": "boolean"}},
        "required": ["title"],
    },
    "outward",
)
TOOLS = [WEATHER, NOTE]
ASKED = [Message.user("厦门和武汉的天气")]


def turn_of(conversation=ASKED, **options):
    options.setdefault("reviews", frozenset())
    return Turn(conversation, TOOLS, mode="structured", fence="f00d", **options)


def outcome_of(reply, finish="stop", **options):
    turn = turn_of(**options)
    turn.feed(Text(reply))
    return turn.finish(finish)


TWO = (
    '{"thought": "两个城市。", "calls": [{"tool": "get_weather", "parameters": {"city": "厦门"}}, '
    '{"tool": "get_weather", "parameters": {"city": "武汉"}}], "answer": ""}'
)


@pytest.mark.parametrize(
    ("reply", "confidence"),
    [
        (TWO, "strict"),
        (f"```json\n{TWO}\n```", "strict"),
        (f"好的：\n{TWO}\n希望有帮助。", "strict"),
        (f"<think>先想想 {{x}}</think>{TWO}", "strict"),
        (TWO.replace('"answer": ""', '"answer": "厦门 25℃，武汉 30℃。"'), "strict"),
        (TWO.replace('"calls"', '"tool_calls"'), "strict"),
        (TWO.replace('"', "'"), "repaired"),
        (TWO.replace('"thought": "两个城市。", ', ""), "strict"),
        (TWO.replace('"tool"', '"name"').replace('"parameters"', '"arguments"'), "strict"),
        (TWO.replace("}, {", "} {"), "repaired"),
    ],
    ids=[
        *("whole", "fence", "text around", "thinking", "answer with calls", "other key"),
        *("quotes", "no thought", "other call keys", "comma"),
    ],
)
def test_the_calls_are_read(reply, confidence):
    outcome = outcome_of(reply)
    assert isinstance(outcome, Calls)
    assert [call.arguments for call in outcome.calls] == [{"city": "厦门"}, {"city": "武汉"}]
    assert outcome.calls[0].confidence == confidence
    assert "25" not in outcome.text  # an answer written before the results is made up


@pytest.mark.parametrize(
    ("reply", "text"),
    [
        ('{"thought": "不用工具", "calls": [], "answer": "你好！"}', "你好！"),
        ('{"answer": "他说“好”。\\n第二行"}', "他说“好”。\n第二行"),
        ('{"thought": "", "calls": [], "answer": "第一行\n第二行"}', "第一行\n第二行"),
        ('```\n{"calls": [], "answer": "你好！"}\n```', "你好！"),
        ('{"thought": "", "calls": null, "answer": "你好！"}', "你好！"),
        ("你好！", "你好！"),
        ('例如 {"a": 1} 就是一个对象。', '例如 {"a": 1} 就是一个对象。'),
    ],
)
def test_answers_are_read(reply, text):
    assert outcome_of(reply) == Answer(text)


def test_what_is_no_object_of_the_form_is_read_as_in_emulated():
    block = '```json action\n{"tool": "get_weather", "parameters": {"city": "厦门"}}\n```'
    bare = '{"tool": "get_weather", "parameters": {"city": "厦门"}}'
    for reply in (block, bare, f"<tool_call>{bare}</tool_call>"):
        outcome = outcome_of(reply)
        assert isinstance(outcome, Calls), reply
        assert outcome.calls[0].arguments == {"city": "厦门"}


def test_a_cut_call_is_not_run_and_whole_ones_before_it_are():
    cut = TWO[: TWO.index("武汉")]
    outcome = outcome_of(cut, "length")
    assert isinstance(outcome, Calls)
    assert [call.arguments["city"] for call in outcome.calls] == ["厦门"]
    assert outcome.broken[0].reason == "truncated"
    alone = outcome_of(TWO[: TWO.index("厦门")], "length")
    assert isinstance(alone, Retry)
    assert alone.reason == "truncated"


def test_an_answer_that_was_cut_is_shown_as_far_as_it_goes():
    assert outcome_of('{"thought": "", "calls": [], "answer": "很久以前\\', "length") == Answer(
        "很久以前"
    )


def test_calls_that_are_whole_survive_a_cut_in_the_answer_behind_them():
    outcome = outcome_of(TWO.removesuffix('"}') + "我已经", "length")
    assert isinstance(outcome, Calls)
    assert len(outcome.calls) == 2


@pytest.mark.parametrize(
    ("call", "reason"),
    [
        ('{"tool": "nope", "parameters": {}}', "unknown_tool"),
        ('{"tool": "get_weather", "parameters": {}}', "invalid_arguments"),
        ('{"tool": "", "parameters": {}}', "unknown_tool"),
        ('"get_weather"', "broken_call"),
        ('{"tool": "get_weather", "parameters": [1]}', "invalid_arguments"),
    ],
)
def test_wrong_calls_go_the_same_way_as_wrong_blocks(call, reason):
    outcome = outcome_of(f'{{"thought": "x", "calls": [{call}], "answer": ""}}')
    assert isinstance(outcome, Retry)
    assert outcome.reason == reason


def test_only_thinking_is_an_empty_reply_and_its_correction_keeps_to_the_form():
    turn = turn_of()
    turn.request()
    turn.feed(Text('{"thought": "我该查天气。", "calls": [], "answer": ""}'))
    outcome = turn.finish("stop")
    assert isinstance(outcome, Retry)
    assert outcome.reason == "empty"
    last = turn.request().messages[-1].content
    assert "answer" in last
    assert "动作块" not in last


def test_a_thought_stays_in_history_as_one_sentence_before_its_calls():
    turn = turn_of()
    turn.feed(Text(TWO.replace("两个城市。", "两个城市。先查厦门。")))
    outcome = turn.finish("stop")
    assert isinstance(outcome, Calls)
    assert outcome.text == ""
    assert turn.transcript[-1].text == "两个城市。"


def test_under_commit_stream_everything_leaves_at_the_end():
    turn = turn_of(commit="stream")
    events = [e for piece in ('{"calls": [], ', '"answer": "你好', '，世界"}')
              for e in turn.feed(Text(piece))]  # fmt: skip
    assert events == []
    assert turn.finish("stop") == Answer("你好，世界")
    assert turn.tail == (TextDelta("你好，世界"),)


def test_a_model_that_starts_in_its_thinking_may_also_leave_it_out():
    read = Answer("厦门晴。")
    assert outcome_of('想</think>{"calls": [], "answer": "厦门晴。"}', thinking="open") == read
    assert outcome_of('{"calls": [], "answer": "厦门晴。"}', thinking="open") == read
    hidden = outcome_of("想到一半", thinking="open", max_corrections=0)
    assert isinstance(hidden, GiveUp)


def test_no_word_of_blocks_is_left_in_what_is_said():
    talk = [
        *ASKED,
        Message.assistant("", [_call("a", "get_weather", {"city": "厦门"})]),
        Message.tool(ToolResult("a", "get_weather", Status.FAILED, "超时")),
    ]
    for language, word in (("zh", "动作块"), ("en", "action block")):
        for options in ({}, {"choice": "required"}, {"withdraw": "deadline"}):
            request = turn_of(talk, language=language, **options).request()
            assert not any(word in message.content for message in request.messages)
            native = Turn(talk, TOOLS, mode="native", language=language, **options).request()
            assert not any(word in message.content for message in native.messages)


def _call(call_id, name, arguments):
    from chathands.conversation import ToolCall

    return ToolCall(call_id, name, arguments)


def test_two_assistant_messages_in_a_row_become_one_object():
    talk = [
        *ASKED,
        Message.assistant("查一下", [_call("a", "get_weather", {"city": "厦门"})]),
        Message.assistant("", [_call("b", "get_weather", {"city": "武汉"})]),
    ]
    said = json.loads(turn_of(talk).request().messages[2].content)
    assert [c["parameters"]["city"] for c in said["calls"]] == ["厦门", "武汉"]


def test_a_rejected_reply_is_shown_as_it_was():
    talk = [*ASKED, Message.assistant("我查一下。", tag=Tag.REJECTED)]
    assert turn_of(talk).request().messages[2].content == "我查一下。"


# --- the schema


def fmt(**options):
    return turn_of(**options).request().response_format


def test_the_enforcement_is_the_response_format():
    assert fmt(enforcement="json_object") == {"type": "json_object"}
    assert fmt(enforcement="prompt") is None
    asked = fmt()["json_schema"]
    assert asked["strict"] is True
    schema = asked["schema"]
    assert list(schema["properties"]) == ["thought", "calls", "answer"]
    calls = schema["properties"]["calls"]
    assert calls["maxItems"] == MAX_CALLS
    names = [item["properties"]["tool"]["enum"] for item in calls["items"]["anyOf"]]
    assert names == [["get_weather"], ["send_note"]]


def test_the_choice_narrows_the_schema():
    named = fmt(choice="send_note")["json_schema"]["schema"]["properties"]
    assert named["calls"]["minItems"] == 1
    assert named["calls"]["items"]["properties"]["tool"]["enum"] == ["send_note"]
    assert named["answer"]["enum"] == [""]
    for options in ({"choice": "none"}, {"withdraw": "last_round"}):
        assert fmt(**options)["json_schema"]["schema"]["properties"]["calls"]["maxItems"] == 0


def test_optional_parameters_may_be_null_and_null_is_not_given():
    schema, strict = reply_schema([NOTE], ToolChoice())
    parameters = schema["properties"]["calls"]["items"]["properties"]["parameters"]
    assert strict
    assert parameters["properties"] == {
        "title": {"type": "string"},
        "urgent": {"type": ["boolean", "null"]},
    }
    outcome = outcome_of(
        '{"thought": "", "calls": [{"tool": "send_note", "parameters": '
        '{"title": "晴", "urgent": null}}], "answer": ""}'
    )
    assert isinstance(outcome, Calls)
    assert outcome.calls[0].arguments == {"title": "晴"}


@pytest.mark.parametrize(
    ("part", "made", "strict"),
    [
        ({"type": "string", "enum": ["a", "b"]}, {"type": "string", "enum": ["a", "b"]}, True),
        ({"type": "string", "pattern": "^a", "format": "date"}, {"type": "string"}, True),
        ({"$ref": "#/$defs/p"}, None, True),
        ({"$ref": "#/$defs/loop"}, None, False),
        ({"type": "object", "additionalProperties": {"type": "string"}}, None, False),
        ({}, {}, False),
        (
            {"oneOf": [{"type": "string"}, {"type": "integer"}]},
            {"anyOf": [{"type": "string"}, {"type": "integer"}]},
            True,
        ),
        ({"type": "array", "items": {"type": "number"}, "uniqueItems": True}, None, True),
        ({"type": "string", "nullable": True}, {"type": ["string", "null"]}, True),
        (True, {}, False),
    ],
)
def test_parameters_are_brought_into_the_strict_subset(part, made, strict):
    defs = {
        "p": {"type": "object", "properties": {"x": {"type": "number"}}},
        "loop": {"type": "object", "properties": {"next": {"$ref": "#/$defs/loop"}}},
    }
    tool = ToolSpec(
        "t", "", {"type": "object", "properties": {"v": part}, "required": ["v"], "$defs": defs}
    )
    schema, kept = reply_schema([tool], ToolChoice())
    assert kept == strict
    inner = schema["properties"]["calls"]["items"]["properties"]["parameters"]["properties"]["v"]
    if made is not None:
        assert inner == made
    assert "$ref" not in json.dumps(schema)
    assert_closed(schema, strict)
    compile_schema(schema)


def assert_closed(schema, strict):
    if isinstance(schema, list):
        for each in schema:
            assert_closed(each, strict)
    if not isinstance(schema, dict):
        return
    if schema.get("type") == "object" and strict:
        assert schema["additionalProperties"] is False
        assert schema["required"] == list(schema["properties"])
    for each in schema.values():
        assert_closed(each, strict)


LONG = (
    '{"thought": "发两条。", "calls": [{"tool": "send_note", '
    '"parameters": {"title": "他说\\"好\\"，}]"}}, '
    '{"tool": "get_weather", "parameters": {"city": "厦门市思明区"}}], "answer": ""}'
)


@pytest.mark.parametrize("finish", ["length", "stop"])
@pytest.mark.parametrize("quote", ['"', "'"])
def test_no_cut_makes_a_value_shorter(finish, quote):
    """Wherever a reply is cut, what runs is a whole call, and no object leaks as text."""
    reply = LONG if quote == '"' else LONG.replace('\\"', "").replace('"', "'")
    whole = {'他说"好"，}]', "他说好，}]", "厦门市思明区"}
    for end in range(len(reply)):
        for opened in ("", "```json\n"):
            outcome = outcome_of(opened + reply[:end], finish, max_corrections=0)
            calls = outcome.calls if isinstance(outcome, Calls) else ()
            assert {str(v) for call in calls for v in call.arguments.values()} <= whole
            if isinstance(outcome, Answer) and end > 12:
                assert "tool" not in outcome.text, (reply[:end], outcome)


@pytest.mark.parametrize(
    "unit", ['{"calls": [', '"answer": "', "</think>", '{"thought": "', "\\", '[{"a":', '{"calls"']
)
def test_the_cost_of_hostile_replies_stays_linear(unit):
    import time

    took = []
    for count in (2_000, 8_000):
        text = '{"calls": [], "answer": "' + unit * count
        started = time.perf_counter()
        outcome_of(text, "length", max_corrections=0)
        took.append(time.perf_counter() - started)
    assert took[1] < 12 * took[0] + 0.5
