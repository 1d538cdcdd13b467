"""Records runs of a real model under the contract, for tests/data/recorded_turns.jsonl.

    python scripts/record_turns.py --base-url http://127.0.0.1:8080/v1 --name "MODEL, how it ran" \\
        [--body '{"id_slot": 2}'] [--only CASE ...] >> tests/data/recorded_turns.jsonl

The questions and what the tools come back with are the SCENES below; the replies are the model's.
Each line is a whole run with what every reply came to: read them before they go into the file,
since the test then holds the engine to it.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from chathands.conversation import Message, Status, ToolCall, ToolResult, ToolSpec
from chathands.emulation import Calls, GiveUp, Retry, Text, Turn
from chathands.emulation.outcome import Language, Outcome
from tests.emulation.recorded_tools import tools_of

ROUNDS = 5
SECONDS = 600.0
WEATHER = "多云，26℃，东南风 2 级，湿度 71%；明天 小雨 22~27℃"
STOCK = "| 商品 | 数量 |\n|---|---|\n| 键盘 | 42 |\n| 鼠标 | 0 |\n| 网线 | 155 |\n共 3 行"
TABLE = "| region | sales |\n|---|---|\n| north | 1200 |\n| south | 950 |\n2 rows"

READ_FIRST = {
    "zh": "这一步没有执行：同一条回复里还有查询，先看结果再决定，需要时单独再调用一次。",
    "en": "not run: there are reads in the same reply; look at the results, then decide again.",
}

Result = tuple[str, str]


@dataclass(frozen=True)
class Scene:
    """Questions, and per tool its results in order (the last one again and again)."""

    case: str
    questions: Sequence[str]
    results: dict[str, Sequence[Result]] = field(default_factory=dict)
    language: Language = "zh"
    choice: str = "auto"
    """For the first turn of each question."""
    withdraw_at: int = ROUNDS - 1
    """The round of each question in which tools are withdrawn, from 0."""


SCENES = [
    Scene(
        "three-steps",
        ["看看 库存.xlsx 里有什么，再查武汉的天气，最后发到运营群，标题写 日报"],
        {
            "read_excel_data": [("ok", STOCK)],
            "get_weather": [("ok", f"武汉：{WEATHER}")],
            "send_dingtalk_message": [("ok", "已推送到 运营群")],
        },
    ),
    Scene(
        "failed-then-fixed",
        ["读一下 9月.xlsx"],
        {
            "read_excel_data": [
                ("failed", "没有 9月.xlsx；有 9月销售.xlsx"),
                ("ok", "| 区域 | 销售额 |\n|---|---|\n| 华东 | 182300 |\n共 1 行"),
            ]
        },
    ),
    Scene(
        "failed-for-good",
        ["长沙天气怎么样"],
        {"get_weather": [("failed", "天气服务现在连不上，稍后再试")]},
    ),
    Scene(
        "denied",
        ["给销售群发一条消息，标题 放假通知，内容 明天放假一天"],
        {"send_dingtalk_message": [("denied", "管理员没有同意这次推送")]},
    ),
    Scene(
        "may-have-happened",
        ["给运营群发一条消息，标题 开会，内容 三点开会"],
        {"send_dingtalk_message": [("unknown", "推送超时，不知道对方是否收到")]},
    ),
    Scene("empty", ["读一下 退货.xlsx"], {"read_excel_data": [("ok", "")]}),
    Scene(
        "follow-up",
        ["武汉现在天气怎样", "那长沙呢", "谢谢"],
        {"get_weather": [("ok", f"武汉：{WEATHER}"), ("ok", f"长沙：{WEATHER}")]},
    ),
    Scene(
        "named-tool",
        ["今天适合出门吗，我在成都"],
        {"get_weather": [("ok", f"成都：{WEATHER}")]},
        choice="get_weather",
    ),
    Scene(
        "last-round",
        ["读一下 库存.xlsx，再查武汉天气"],
        {"read_excel_data": [("ok", STOCK)], "get_weather": [("ok", f"武汉：{WEATHER}")]},
        withdraw_at=1,
    ),
    Scene(
        "chain-en",
        ["Read sales.xlsx and send the key figures to the ops group."],
        {"read_table": [("ok", TABLE)], "send_note": [("ok", "sent to ops")]},
        "en",
    ),
    Scene(
        "two-at-once-en",
        ["How is the weather in Oslo and in Lima right now?"],
        {"get_weather": [("ok", "Oslo: rain, 4 C"), ("ok", "Lima: sunny, 22 C")]},
        "en",
    ),
    Scene(
        "failed-then-fixed-en",
        ["Show me the first 2 rows of sales2024.xlsx"],
        {"read_table": [("failed", "no sales2024.xlsx; there is sales.xlsx"), ("ok", TABLE)]},
        "en",
    ),
    Scene(
        "reminder-and-small-talk-en",
        ["Remind me at 18:30 to call Ben", "Thanks! Tell me a short joke."],
        {"set_reminder": [("ok", "reminder set for 18:30")]},
        "en",
    ),
]


def record(scene: Scene, ask: Any, name: str) -> dict[str, Any]:
    """The scene played to its end, as a line of the file."""
    case = {"model": name, "case": scene.case, "language": scene.language}
    row: dict[str, Any] = {**case, "questions": list(scene.questions), "steps": []}
    counts: dict[str, int] = {}
    conversation: list[Message] = []
    for question in scene.questions:
        conversation.append(Message.user(question))
        for round_number in range(ROUNDS):
            options: dict[str, Any] = {}
            if round_number == 0 and scene.choice != "auto":
                options["choice"] = scene.choice
            if round_number >= scene.withdraw_at:
                options["withdraw"] = "last_round"
            turn = Turn(
                conversation, tools_of(row), language=scene.language, fence="k7f3", **options
            )
            outcome = play(turn, ask, row["steps"], options)
            conversation += turn.transcript
            if isinstance(outcome, GiveUp):
                return row
            if not isinstance(outcome, Calls):
                break
            results = results_of(scene, outcome.calls, tools_of(row), counts)
            row["steps"][-1]["results"] = results
            for call, (status, content) in zip(outcome.calls, results, strict=True):
                found = ToolResult(call.id, call.name, Status(status), content, 80)
                conversation.append(Message.tool(found))
    return row


def play(turn: Turn, ask: Any, steps: list[dict[str, Any]], options: dict[str, Any]) -> Outcome:
    """One turn with its retries; a step for every reply."""
    while True:
        reply, finish = ask(turn.request().messages)
        turn.feed(Text(reply))
        outcome = turn.finish(finish)
        step: dict[str, Any] = {"reply": reply, "finish": finish, **options}
        options = {}
        step["outcome"] = type(outcome).__name__
        if isinstance(outcome, Retry | GiveUp):
            step["reason"] = outcome.reason.value
        if isinstance(outcome, Calls):
            step["calls"] = [call.name for call in outcome.calls]
        steps.append(step)
        if not isinstance(outcome, Retry):
            return outcome


def results_of(
    scene: Scene, calls: Sequence[ToolCall], tools: Sequence[ToolSpec], counts: dict[str, int]
) -> list[list[str]]:
    """The results of one reply's calls; a side effect beside a read is put off, as in a bot."""
    reads = {spec.name for spec in tools if spec.side_effect == "none"}
    mixed = any(call.name in reads for call in calls)
    first = READ_FIRST[scene.language]
    return [
        ["denied", first] if mixed and call.name not in reads else answer(scene, call, counts)
        for call in calls
    ]


def answer(scene: Scene, call: ToolCall, counts: dict[str, int]) -> list[str]:
    results = scene.results.get(call.name, [("failed", "这个工具现在用不了")])
    at = counts.get(call.name, 0)
    counts[call.name] = at + 1
    return list(results[min(at, len(results) - 1)])


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--base-url", required=True)
    parser.add_argument("--name", required=True)
    parser.add_argument("--body", type=json.loads, default={})
    parser.add_argument("--only", nargs="*")
    options = parser.parse_args()
    with httpx.Client(base_url=options.base_url.rstrip("/") + "/", timeout=SECONDS) as client:

        def ask(messages: Any) -> tuple[str, str]:
            wire = [{"role": m.role.value, "content": m.content} for m in messages]
            body = {"messages": wire, "temperature": 0, "max_tokens": 200, **options.body}
            response = client.post("chat/completions", json=body)
            response.raise_for_status()
            choice = response.json()["choices"][0]
            return choice["message"].get("content") or "", choice["finish_reason"]

        for scene in SCENES:
            if options.only and scene.case not in options.only:
                continue
            print(json.dumps(record(scene, ask, options.name), ensure_ascii=False), flush=True)


if __name__ == "__main__":
    main()
