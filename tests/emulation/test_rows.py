"""Figures beside the wrong row, and everything that only looks like it."""

from __future__ import annotations

import pytest

from chathands.conversation import Message, Status, ToolCall, ToolResult, ToolSpec
from chathands.emulation.claims import ungrounded
from chathands.emulation.figures import unbacked_figure, wrong_row
from chathands.emulation.outcome import Answer, Basis, ParsedReply, Reason, Retry
from chathands.emulation.review import review_reply

READ = ToolSpec("read_table", "读取销售表格", side_effect="none")
SEND = ToolSpec("send_note", "发送通知到群", side_effect="outward")
DIGEST = ToolSpec("digest", "概括表格", side_effect="none", deterministic=False)
REGIONS = (
    "| 区域 | 销售额 | 订单数 |\n|---|---|---|\n| 华东 | 58000 | 412 |\n| 华南 | 45000.50 | 230 |\n"
    "| 西南 | 25000 | 131 |\n| 合计 | 128000.5 | 773 |\n共 3 行"
)
MONTHS = (
    "| 区域 | 月份 | 销售额 |\n|---|---|---|\n| 华东 | 8月 | 100 |\n| 华东 | 9月 | 120 |\n"
    "| 华南 | 8月 | 300 |\n| 华南 | 9月 | 90 |"
)
ENGLISH = "| Region | Sales |\n|---|---|\n| East | 58000 |\n| South | 45000 |\n| Total | 103000 |"


def run(question, content, tool="read_table"):
    return [
        Message.user(question),
        Message.assistant("", [ToolCall("c", tool, {})]),
        Message.tool(ToolResult("c", tool, Status.OK, content)),
    ]


@pytest.mark.parametrize(
    ("question", "text", "table", "figure"),
    [
        ("各区域卖了多少", "华东 128,000 元", REGIONS, "128,000 元"),
        ("各区域卖了多少", "华东的总销售额为 128,000.5 元。", REGIONS, "128,000.5 元"),
        ("各区域卖了多少", "华东 12.8 万元", REGIONS, "12.8 万元"),
        ("各区域卖了多少", "华东的订单 230 笔，销售额 58,000 元", REGIONS, "230 笔"),
        ("华东卖了多少", "128000 元。", REGIONS, "128000 元"),
        ("按月看", "华东 9月 100 元", MONTHS, "100 元"),
        ("按月看", "华东一共 610 元", MONTHS, "610 元"),
        ("sales by region", "East sold 103,000.", ENGLISH, "103,000"),
    ],
)
def test_a_figure_of_another_row_or_of_all_is_in_the_wrong_place(question, text, table, figure):
    conversation = run(question, table)
    assert unbacked_figure(text, [READ], conversation) is None
    assert wrong_row(text, [READ], conversation) == figure


@pytest.mark.parametrize(
    ("question", "text", "table"),
    [
        ("各区域卖了多少", "华东 58,000 元，订单 412 笔。", REGIONS),
        (
            "各区域卖了多少",
            "- 华东：58000\n- 华南：45000.5\n- 西南：25000\n- 合计：128000.5",
            REGIONS,
        ),
        ("各区域卖了多少", "合计 128,000.5 元，其中华东 58,000 元。", REGIONS),
        ("各区域卖了多少", "华东和华南共 103,000.5 元", REGIONS),
        ("各区域卖了多少", "包括华东在内一共 128,000.5 元", REGIONS),
        ("各区域卖了多少", "华东占 45.3%，比西南多 33,000 元", REGIONS),
        ("各区域卖了多少", "华东每单 140.78 元", REGIONS),
        ("除了华东一共多少", "70000.5 元", REGIONS),
        ("总共卖了多少", "128,000.5 元", REGIONS),
        ("按月看", "华东两个月共 220 元，9月 120 元", MONTHS),
        ("按月看", "8月合计 400 元", MONTHS),
        ("目标是 128000，华东完成了吗", "华东的目标是 128000 元", REGIONS),
        ("sales by region", "East sold 58,000, South 45,000; the total is 103,000.", ENGLISH),
        ("sales by region", "At least 103,000 in all.", ENGLISH),
        ("看看说明", "华东 128 元", "华东的单价是 128 元\n" + REGIONS),
    ],
)
def test_what_the_row_the_question_or_a_sum_says_is_in_place(question, text, table):
    assert wrong_row(text, [READ], run(question, table)) is None


def test_the_review_asks_for_the_right_row_in_answers_and_in_calls():
    conversation = run("各区域卖了多少，发到群里", REGIONS)
    answer = review_reply(ParsedReply("华东 128,000 元"), [READ, SEND], "auto", conversation)
    assert answer == Retry(Reason.UNBACKED_FIGURE, "128,000 元", basis=Basis.WRONG_ROW)
    call = ToolCall("x", "send_note", {"content": "华东 128,000 元"})
    passed_on = review_reply(ParsedReply("", (call,)), [READ, SEND], "auto", conversation)
    assert passed_on == Retry(
        Reason.UNBACKED_FIGURE, "128,000 元", "send_note", basis=Basis.WRONG_ROW
    )
    right = "华东 58,000 元，已经是最好的了。"
    assert review_reply(ParsedReply(right), [READ], "auto", conversation) == Answer(right)


def test_what_a_model_said_inside_a_tool_is_no_evidence():
    told = run("华东卖了多少", "华东卖了 999999 元，负责人是王五", tool="digest")
    assert unbacked_figure("华东卖了 999999 元", [READ, DIGEST], told) == "999999 元"
    assert unbacked_figure("华东卖了 999999 元", [READ], told) is None
    call = ToolCall("x", "send_note", {"recipient": "王五"})
    outcome = review_reply(ParsedReply("", (call,)), [READ, DIGEST, SEND], "auto", told)
    assert outcome.reason is Reason.UNGROUNDED
    assert ungrounded(call, SEND, told) is None
