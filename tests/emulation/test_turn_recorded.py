"""Replies that a real small model wrote to this contract (and to none), and what they come to."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from chathands.conversation import Message, SideEffect, Status, ToolResult, ToolSpec
from chathands.emulation import Answer, Calls, Retry, Text, Turn, parse_reply

RECORDED = [
    json.loads(line)
    for line in (Path(__file__).parents[1] / "data" / "recorded_turns.jsonl")
    .read_text(encoding="utf-8")
    .split("\n")
    if line
]


def spec(name: str, description: str, effect: SideEffect, *needed: str, **more: Any) -> ToolSpec:
    properties = {**{key: {"type": "string"} for key in needed}, **more}
    schema = {"type": "object", "properties": properties, "required": list(needed)}
    return ToolSpec(name, description, schema, effect)


NUMBER, TEXTS = {"type": "integer"}, {"type": "array", "items": {"type": "string"}}
ROBOT = {"type": "string", "enum": ["销售群", "运营群"]}
TOOLS = [
    spec(
        "read_excel_data",
        "读取一个 Excel 工作簿里的一张表",
        "none",
        "file_path",
        sheet_name={"type": "string"},
        row_limit=NUMBER,
        columns=TEXTS,
    ),
    spec(
        "aggregate_excel_data",
        "对 Excel 表做汇总：求和、平均、最大、最小或计数",
        "none",
        "file_path",
        "column",
        "function",
        group_by={"type": "string"},
        top_n=NUMBER,
    ),
    spec("send_dingtalk_message", "向钉钉群推送消息", "outward", "title", "content", robot=ROBOT),
    spec("get_weather", "查询一个城市的天气", "none", "city", days=NUMBER),
]
MORE_TOOLS = [
    *TOOLS,
    spec("run_command", "执行一条 shell 命令", "local", "command"),
    spec("web_search", "搜索互联网", "none", "query"),
    spec("set_reminder", "设置提醒", "local", "time", "text"),
    spec("send_email", "send an email", "outward", "to", "text"),
    spec("read_file", "read a text file", "none", "path"),
    spec("get_stock_price", "current price of a stock", "none", "symbol"),
]
UNDER_CONTRACT = [case for case in RECORDED if case["case"] != "without-a-contract"]
PLAIN = [case for case in RECORDED if case["case"] == "without-a-contract"]


@pytest.mark.parametrize("case", UNDER_CONTRACT, ids=lambda case: case["case"])
def test_a_recorded_run_comes_to_what_it_came_to(case):
    conversation = [Message.user(case["question"])]
    turn = None
    for step in case["steps"]:
        turn = turn or Turn(conversation, TOOLS, fence="k7f3")
        assert turn.request().messages[-1].role == "user"
        turn.feed(Text(step["reply"]))
        outcome = turn.finish(step["finish"])
        assert type(outcome).__name__ == step["outcome"]
        if step.get("reason"):
            assert outcome.reason == step["reason"]
        if isinstance(outcome, Retry):
            continue
        conversation += turn.transcript
        turn = None
        if isinstance(outcome, Calls):
            assert [call.name for call in outcome.calls] == step["calls"]
            for call, (status, content) in zip(outcome.calls, step["results"], strict=True):
                result = ToolResult(call.id, call.name, Status(status), content, 80)
                conversation.append(Message.tool(result))


@pytest.mark.parametrize("case", PLAIN, ids=lambda case: case["question"])
def test_what_a_model_says_without_a_contract_is_never_taken_for_an_answer(case):
    """Pleas, invented deeds, invented figures, lessons, drafts: real ways of not acting."""
    (step,) = case["steps"]
    turn = Turn([Message.user(case["question"])], MORE_TOOLS)
    turn.feed(Text(step["reply"]))
    outcome = turn.finish(step["finish"])
    assert isinstance(outcome, Retry)
    assert outcome.reason == step["reason"]


def test_a_final_answer_of_the_recorded_chain_is_plain_text():
    chain = next(case for case in UNDER_CONTRACT if case["case"] == "chain")
    last = chain["steps"][-1]["reply"]
    assert parse_reply(last, TOOLS).calls == ()
    assert Answer(last).text == last
