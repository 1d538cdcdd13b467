"""How much of each request of a run a server finds in its prompt cache.

    python benchmarks/prefix.py --base-url http://127.0.0.1:8080/v1 --body '{"id_slot": 2}'

A run of five rounds with a correction, a forced tool, a failed call and the withdrawal of tools.
Requests are the real ones; replies and results are scripted, so that every server sees the same run
(of its own reply one token is read and thrown away). Without --base-url the project's local model
is started. Servers say what they had in `usage.prompt_tokens_details.cached_tokens`, llama.cpp in
`timings`; one that says neither counts as without a cache.

What two requests share is the whole of the earlier one; the first request shares nothing. Exit
status 1 below the target.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import secrets
import sys
import tempfile
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from chathands.conversation import (
    Message,
    Role,
    Status,
    ToolCall,
    ToolResult,
    ToolSpec,
)
from chathands.emulation import Calls, Retry, Text, Turn, render_block
from chathands.emulation.outcome import ChatMessage, Language, ModelRequest
from chathands.settings import ModelSettings, Settings
from chathands.upstreams.base import Upstream
from chathands.upstreams.build import build_upstream

TARGET = 0.95
SECONDS = 900.0
"""For one request: a small machine under load reads some ten tokens a second."""


def tool(name: str, description: str, effect: Any, **properties: str) -> ToolSpec:
    fields = {key: {"type": "string", "description": text} for key, text in properties.items()}
    schema = {"type": "object", "properties": fields, "required": list(fields)}
    return ToolSpec(name, description, schema, effect)


TOOLS = [
    tool("get_weather", "查询一个城市现在的天气和明天的预报", "none", city="城市名"),
    tool("read_table", "读取一张表", "none", path="文件路径", sheet="工作表名"),
    tool("send_note", "把一条通知发到群里", "outward", group="群名", text="正文"),
]
QUESTION = "看看武汉和长沙的天气，再读一下 库存.xlsx，然后把要点发到运营群"
RESULTS = {
    "get_weather": "多云，26℃，东南风 2 级，湿度 71%；明天 小雨 22~27℃",
    "read_table": "| 商品 | 数量 |\n|---|---|\n| 键盘 | 42 |\n| 鼠标 | 0 |\n共 2 行",
    "send_note": "已发送到运营群",
}
ROUNDS: list[tuple[dict[str, Any], list[str]]] = [
    # what the turn is told, and the replies it gets until it ends
    ({}, ["抱歉，我没有可用的工具来查询天气。", render_block("get_weather", {"city": "武汉"})]),
    ({}, [render_block("get_weather", {"city": "长沙"})]),
    ({"choice": "read_table"}, [render_block("read_table", {"path": "库存", "sheet": "1"})]),
    (
        {},
        [
            render_block("read_table", {"path": "库存.xlsx", "sheet": "Sheet1"})
            + "\n"
            + render_block("send_note", {"group": "运营群", "text": "鼠标缺货；武汉、长沙多云"})
        ],
    ),
    ({"withdraw": "last_round"}, ["武汉和长沙多云 26℃；鼠标缺货，已发到运营群。"]),
]


def requests_of_a_run(language: Language) -> Iterator[tuple[ChatMessage, ...]]:
    """Every request of the scripted run, in order."""
    conversation = [Message.user(QUESTION)]
    fence = secrets.token_hex(3)
    for options, replies in ROUNDS:
        turn = Turn(
            conversation, TOOLS, language=language, fence=fence, reviews=frozenset(), **options
        )
        calls: tuple[ToolCall, ...] = ()
        for reply in replies:
            yield turn.request().messages
            turn.feed(Text(reply))
            outcome = turn.finish("stop")
            assert isinstance(outcome, Retry) == (reply is not replies[-1]), outcome
            calls = outcome.calls if isinstance(outcome, Calls) else ()
        conversation += turn.transcript
        for call in calls:
            failed = call.arguments.get("path") == "库存"
            status = Status.FAILED if failed else Status.OK
            content = "没有 库存；有 库存.xlsx" if failed else RESULTS[call.name]
            conversation.append(Message.tool(ToolResult(call.id, call.name, status, content, 80)))


def starts_with(later: tuple[ChatMessage, ...], earlier: tuple[ChatMessage, ...]) -> bool:
    """Whether a request starts with the whole of an earlier one."""
    head, tail = later[: len(earlier) - 1], later[len(earlier) - 1]
    same = tail.role is Role.USER and tail.content.startswith(earlier[-1].content)
    return head == earlier[:-1] and same


async def measure(
    upstream: Upstream, messages: tuple[ChatMessage, ...], body: dict[str, Any]
) -> tuple[int, int]:
    """Tokens of the prompt, and those of them that the server had in its cache."""
    sampling = {"max_tokens": 1, "stream_options": {"include_usage": True}, **body}
    stream = upstream.stream(ModelRequest(messages, sampling=sampling), timeout=SECONDS)
    try:
        async for _ in stream:
            pass
    finally:
        await stream.aclose()
    if stream.usage is None:
        raise SystemExit("the server does not count tokens")
    return stream.usage.prompt, stream.usage.cached


async def run(options: argparse.Namespace) -> float:
    sent = list(requests_of_a_run(options.language))
    assert all(starts_with(later, earlier) for earlier, later in pairwise(sent))
    found = shared_in_all = 0
    model = ModelSettings(base_url=options.base_url, name=options.model, api_key=options.api_key)
    with tempfile.TemporaryDirectory() as state:
        upstream = await build_upstream(Settings(model=model, state_dir=Path(state)))
        try:
            print("request  prompt  shared  cached  of shared")
            before = 0
            for number, messages in enumerate(sent, 1):
                prompt, cached = await measure(upstream, messages, options.body)
                reused = min(cached, before)
                share = f"{reused / before:8.1%}" if before else "       -"
                print(f"{number:7}  {prompt:6}  {before:6}  {cached:6}  {share}", flush=True)
                found, shared_in_all, before = found + reused, shared_in_all + before, prompt
        finally:
            await upstream.aclose()
    return found / shared_in_all


def main() -> int:
    parser = argparse.ArgumentParser(description="prompt cache reuse within a run")
    parser.add_argument("--base-url")
    parser.add_argument("--api-key")
    parser.add_argument("--model")
    parser.add_argument("--language", choices=("zh", "en"), default="zh")
    parser.add_argument("--body", type=json.loads, default={}, help="more fields, as JSON")
    share = asyncio.run(run(parser.parse_args()))
    print(f"of the common prefix {share:.1%} came from the cache (target {TARGET:.0%})")
    return 0 if share >= TARGET else 1


if __name__ == "__main__":
    sys.exit(main())
