"""Refusal, missed call, safety refusal, question, normal: judged on labelled replies."""

from __future__ import annotations

import json
import time
from importlib.resources import files
from pathlib import Path

import pytest

from chathands.conversation import Message, Status, ToolCall, ToolResult, ToolSpec
from chathands.emulation.outcome import Answer, Basis, ParsedReply, Reason, Retry
from chathands.emulation.phrases import says_nothing
from chathands.emulation.refusal import stance_of
from chathands.emulation.review import review_reply
from tests.emulation.replies import stance_fits

CASES = [
    json.loads(line)
    for line in (Path(__file__).parents[1] / "data" / "refusals.jsonl")
    .read_text(encoding="utf-8")
    .split("\n")
    if line
]
TOOLS = [
    ToolSpec("get_weather", "查询一个城市的天气"),
    ToolSpec("read_file", "读取文件内容"),
    ToolSpec("run_command", "在终端执行一条命令"),
    ToolSpec("send_message", "把消息发送到群里"),
    ToolSpec("web_search", "搜索网页"),
]


def test_there_are_many_more_cases_than_the_patterns_were_written_from():
    assert len(CASES) >= 300
    assert len({case["text"] for case in CASES}) == len(CASES)
    for language in ("zh", "en"):
        assert sum(case["lang"] == language for case in CASES) >= 100


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])
def test_a_labelled_reply_is_judged_as_labelled(case):
    assert stance_fits(case, TOOLS)


def test_recall_and_false_alarms_through_the_review():
    judged = [
        (case["should_retry"], review_reply(ParsedReply(case["text"]), TOOLS).retry)
        for case in CASES
    ]
    wanted = [retried for should, retried in judged if should]
    others = [retried for should, retried in judged if not should]
    assert sum(wanted) / len(wanted) >= 0.85
    assert sum(others) / len(others) <= 0.08


def test_the_reason_says_which_of_the_two_it_is():
    tools = [ToolSpec("get_weather", "查天气")]
    assert review_reply(ParsedReply("我没有可用的工具。"), tools) == Retry(
        Reason.REFUSAL, "zh_no_tool"
    )
    assert review_reply(ParsedReply("我来查一下天气。"), tools).reason is Reason.MISSED_CALL
    assert review_reply(ParsedReply("请您自行查询天气。"), tools).reason is Reason.MISSED_CALL


def test_without_tools_nothing_is_a_refusal():
    text = "作为一个语言模型，我不能执行系统命令。"
    assert review_reply(ParsedReply(text), []) == Answer(text)


@pytest.mark.parametrize(
    "text",
    [
        "> 我没有可用的工具",
        "他写道：“抱歉，我没有可用的工具。”",
        "```\n抱歉，我没有可用的工具。\n```",
        "翻译：I have no tools available.",
        "I have no tools → 我没有工具",
    ],
)
def test_what_is_quoted_is_not_said(text):
    assert stance_of(text).kind == "normal"


def test_a_caveat_behind_a_real_answer_is_no_refusal():
    answer = (
        "八月华东的销售额最高，为 182300 元；华南其次，为 96450 元；西南最少，为 55120 元。"
        "三个区域合计 333870 元，华东占了一半以上。订单数的排名和销售额一致。"
    )
    assert stance_of(answer + "另外，我无法获取九月的实时数据。").kind == "normal"
    assert stance_of("我无法获取九月的实时数据。" + answer).kind == "refusal"


def test_after_a_result_an_inability_may_be_a_report():
    text = "抱歉，我无法读取这个文件，请检查文件名。"
    assert stance_of(text).kind == "refusal"
    assert stance_of(text, after_result=True).kind != "refusal"
    assert stance_of("抱歉，我没有可用的工具。", after_result=True).kind == "refusal"


WEATHER = ToolSpec("get_weather", "查询一个城市的天气")
SEND = ToolSpec("send_note", "发送通知到群", side_effect="outward")


def reviewed(question, text, tools=(WEATHER, SEND)):
    return review_reply(ParsedReply(text), tools, "auto", [Message.user(question)])


def test_a_promise_no_tool_could_keep_is_asked_about_once():
    assert reviewed("厦门天气如何", "我来查一下。").reason is Reason.MISSED_CALL
    empty = reviewed("帮我算算命", "我来看一下。", [WEATHER])
    assert (empty.reason, empty.basis) == (Reason.MISSED_CALL, Basis.SOFT)


def test_an_answer_about_the_assistant_may_name_its_tools():
    text = "我可以用 get_weather 查天气。"
    assert reviewed("你会做什么？", text) == Answer(text)


@pytest.mark.parametrize(
    ("question", "text", "why"),
    [
        ("厦门天气如何", "好的，收到。", "idle"),
        ("把放假通知发到群里", "把放假通知发到群里。", "idle"),
        ("把放假通知发到群里", "各位同事：十月一日放假。", "effect_missing"),
        ("看一下厦门的天气", "要查看天气，您可以使用以下命令：\n```\ncurl x\n```", "lesson"),
    ],
)
def test_a_reply_that_leaves_the_deed_undone_is_asked_about(question, text, why):
    assert reviewed(question, text) == Retry(
        Reason.MISSED_CALL, why, "send_note" if "通知" in question else "get_weather", Basis.SOFT
    )


@pytest.mark.parametrize(
    ("question", "text"),
    [
        ("怎么把通知发到群里？", "打开群，粘贴，再点发送。"),
        ("谢谢", "好的。"),
        ("不要发到群里，只写一份放假通知", "各位同事：十月一日放假。"),
    ],
)
def test_soft_evidence_needs_a_plain_request(question, text):
    assert reviewed(question, text) == Answer(text)


def test_leaving_a_step_out_is_fair_when_something_failed():
    conversation = [
        Message.user("查厦门天气，发到群里"),
        Message.assistant("", [ToolCall("a", "get_weather", {"city": "厦门"})]),
        Message.tool(ToolResult("a", "get_weather", Status.FAILED, "服务没有响应")),
    ]
    text = "天气没有查到，所以没有发。"
    assert review_reply(ParsedReply(text), [WEATHER, SEND], "auto", conversation) == Answer(text)


@pytest.mark.parametrize("text", ["好的，我明白了。", "Sure, got it!", "收到，谢谢。"])
def test_a_nod_is_recognised(text):
    assert says_nothing(text)


@pytest.mark.parametrize("text", ["", "好的，厦门晴。", "OK Computer is an album"])
def test_more_than_a_nod_is_not_a_nod(text):
    assert not says_nothing(text)


@pytest.mark.parametrize(
    "text",
    [
        "要" * 20_000 + "x",
        "我" * 200_000,
        "无法" * 90_000,
        "i can't " * 50_000,
        "好的" * 20_000 + "x",
    ],
)
def test_hostile_text_is_judged_quickly(text):
    started = time.perf_counter()
    stance_of(text)
    says_nothing(text)
    assert time.perf_counter() - started < 2


def test_the_evidence_names_its_source():
    text = files("chathands.emulation.prompts").joinpath("stance.toml").read_text("utf-8")
    assert "# Source:" in text
