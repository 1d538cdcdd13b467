"""Arguments that were not filled in never reach a tool; values that only look like it do."""

from __future__ import annotations

from typing import Any

import pytest

from chathands.conversation import Message, Status, ToolCall, ToolResult, ToolSpec
from chathands.emulation import Calls, Reason, Retry, Text, Turn, parse_reply, render_block
from chathands.emulation.outcome import Basis
from chathands.emulation.review import review_reply

TOOLS = [
    ToolSpec(
        "get_weather",
        "查询城市天气",
        {
            "type": "object",
            "properties": {
                "city": {"type": "string", "description": "城市名，例如 厦门"},
                "unit": {"type": "string", "enum": ["c", "f", "..."]},
            },
            "required": ["city"],
        },
        "none",
    ),
    ToolSpec(
        "send_note",
        "发送通知",
        {
            "type": "object",
            "properties": {
                "title": {"type": "string"},
                "content": {"type": "string"},
                "api_key": {"type": "string"},
                "to": {"type": "array", "items": {"type": "string"}},
            },
        },
        "unknown",
    ),
]


def outcome_of(tool: str, question: str = "帮我办一下", before: Any = (), **arguments: Any):
    conversation = [Message.user(question), *before]
    parsed = parse_reply(render_block(tool, arguments), TOOLS)
    assert len(parsed.calls) == 1
    return review_reply(parsed, TOOLS, "auto", conversation, reviews=frozenset())


@pytest.mark.parametrize(
    ("tool", "field", "value"),
    [
        *(
            ("get_weather", "city", value)
            for value in (
                *("...", "…", "……", "<city>", "‹城市名>", "{city}", "{{city}}", "${city}"),
                *("[城市名]", "【城市】", "<CITY_NAME>", "<your city>", "值", "参数名"),
                *("[city name here]", "<the city>", " ... "),
            )
        ),
        *(
            ("send_note", "content", value)
            for value in (
                "[在此填写通知内容]",
                "【请在此处填写会议纪要】",
                "各位好：\n[在此插入天气数据]\n谢谢。",
                "Hi all,\n[insert the figures here]\nBye",
                "<insert message here>",
                "Dear [your name],",
            )
        ),
        ("send_note", "api_key", "your_api_key"),
        ("send_note", "api_key", "YOUR-API-KEY"),
    ],
)
def test_a_placeholder_is_an_invalid_argument_by_name(tool: str, field: str, value: str):
    given = {"city": "厦门"} if tool == "get_weather" else {}
    outcome = outcome_of(tool, **{**given, field: value})
    assert isinstance(outcome, Retry)
    assert (outcome.reason, outcome.basis) == (Reason.INVALID_ARGUMENTS, Basis.PLACEHOLDER)
    assert f"`{field}`" in outcome.detail


def test_one_in_a_list_is_found_where_it_stands():
    outcome = outcome_of("send_note", to=["小林", "<收件人姓名>"])
    assert outcome.detail.startswith("`to[1]`")


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("get_weather", {"city": "厦门"}),
        ("get_weather", {"city": "厦门", "unit": "..."}),
        ("send_note", {"content": "<b>"}),
        ("send_note", {"content": "<html>"}),
        ("send_note", {"content": "等等..."}),
        ("send_note", {"content": "[重要] 今天下午开会"}),
        ("send_note", {"content": "[1]"}),
        ("send_note", {"content": "{}"}),
        ("send_note", {"content": '{"a": 1}'}),
        ("send_note", {"content": "a[i] = b[i]"}),
        ("send_note", {"content": "价值"}),
        ("send_note", {"content": "Salt (add a pinch), then stir"}),
        ("send_note", {"title": "your song", "content": "your turn"}),
        ("send_note", {"content": "请填写报名表（链接见群公告）"}),
        ("send_note", {"content": "[doge]"}),
    ],
)
def test_a_value_that_only_looks_like_one_runs(tool: str, arguments: dict[str, Any]):
    assert isinstance(outcome_of(tool, **arguments), Calls)


def test_what_the_person_or_a_result_has_is_a_value():
    assert isinstance(outcome_of("send_note", "发一条 {city} 到群里", content="{content}"), Retry)
    assert isinstance(
        outcome_of("send_note", "就发 {content} 这几个字", content="{content}"), Calls
    )
    assert isinstance(outcome_of("send_note", "内容写“...”", content="..."), Calls)
    assert isinstance(outcome_of("send_note", "发点什么吧...", content="..."), Retry)
    form = "各位：\n[在此填写姓名]"
    assert isinstance(outcome_of("send_note", "发一个请假条模板", content=form), Calls)
    call = ToolCall("c", "get_weather", {"city": "厦门"})
    result = ToolResult("c", "get_weather", Status.OK, "模板：[在此填写姓名]")
    before = [Message.assistant("", [call]), Message.tool(result)]
    assert isinstance(outcome_of("send_note", before=before, content=form), Calls)


def test_without_a_conversation_it_is_a_placeholder_too():
    parsed = parse_reply(render_block("get_weather", {"city": "<city>"}), TOOLS)
    assert review_reply(parsed, TOOLS).reason is Reason.INVALID_ARGUMENTS


@pytest.mark.parametrize(("language", "word"), [("zh", "占位符"), ("en", "placeholder")])
def test_the_correction_names_the_argument(language: Any, word: str):
    turn = Turn([Message.user("查天气")], TOOLS, language=language)
    turn.feed(Text(render_block("get_weather", {"city": "<city>"})))
    assert turn.finish("stop").retry
    said = turn.request().messages[-1].content
    assert "`city`" in said
    assert word in said


@pytest.mark.parametrize("commit", ["finish", "stream"])
def test_it_never_leaves_in_a_stream(commit: Any):
    turn = Turn([Message.user("发通知")], TOOLS, commit=commit)
    events = turn.feed(Text(render_block("send_note", {"content": "[在此填写内容]"})))
    outcome = turn.finish("stop")
    assert not [*events, *turn.tail]
    assert isinstance(outcome, Retry)
