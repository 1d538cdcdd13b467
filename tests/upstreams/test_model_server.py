"""The stand-in model service keeps its word, so that the black-box tests can lean on it."""

import asyncio
import json
import subprocess
import sys
from pathlib import Path

import pytest

from chathands.conversation import Role
from chathands.emulation.outcome import ChatMessage, ModelRequest
from chathands.errors import UpstreamFailed, UpstreamRefused
from tests.standins import model_server
from tests.standins.model_server import ModelServer, Rules
from tests.upstreams.test_openai_chat import HELLO, hear_from

BLOCK = '```json action\n{"tool": "get_weather", "parameters": {"city": "北京"}}\n```'


def asking(*texts: str) -> ModelRequest:
    return ModelRequest(tuple(ChatMessage(Role.USER, text) for text in texts))


@pytest.mark.parametrize("field", ["tools", "tool_choice"])
async def test_native_tool_fields_are_refused(field):
    value = ({"type": "function"},) if field == "tools" else "auto"
    async with ModelServer(["好"]) as server:
        with pytest.raises(UpstreamRefused, match=field):
            await hear_from(server.url, ModelRequest(HELLO.messages, **{field: value}))


@pytest.mark.parametrize(
    "message",
    [
        ChatMessage(Role.TOOL, "42", tool_call_id="c"),
        ChatMessage(Role.ASSISTANT, "", tool_calls=({"id": "c"},)),
    ],
)
async def test_native_tool_messages_are_refused(message):
    async with ModelServer(["好"]) as server:
        with pytest.raises(UpstreamRefused):
            await hear_from(server.url, ModelRequest((message,)))


async def test_rules_choose_by_the_last_user_message_and_by_count():
    rules = Rules(
        {
            "rules": [
                {"when": "天气", "nth": 2, "reply": "又问天气"},
                {"when": "天气", "reply": BLOCK},
                {"when": "规则", "in": "system", "reply": "第{n}次"},
            ],
            "otherwise": "别的",
        }
    )
    async with ModelServer(rules) as server:
        said = [
            (await hear_from(server.url, request)).text
            for request in (asking("天气"), asking("天气"), asking("天气", "x"), HELLO, HELLO)
        ]
    assert said == [BLOCK, "又问天气", "别的", "第1次", "第2次"]


@pytest.mark.parametrize(
    ("behaviour", "first"),
    [
        ("refuse_once", "没有可用的工具"),
        ("broken_json_once", '"city": "北京\n```'),
        ("invented_tool", "teleport_everyone"),
    ],
)
async def test_a_fault_that_happens_once_is_followed_by_the_reply(behaviour, first):
    rules = Rules([{"when": "天气", "behaviour": behaviour, "reply": BLOCK}])
    async with ModelServer(rules) as server:
        assert first in (await hear_from(server.url, asking("天气"))).text
        assert (await hear_from(server.url, asking("天气", "请改正"))).text == BLOCK


async def test_endless_calls_down_and_slow():
    rules = Rules(
        [
            {"when": "无尽", "in": "any", "behaviour": "endless_calls", "reply": BLOCK + "{n}"},
            {"when": "断", "behaviour": "down"},
            {"when": "慢", "behaviour": "slow", "delay": 0.001, "reply": "慢慢来"},
        ]
    )
    async with ModelServer(rules) as server:
        for number in range(1, 4):
            heard = await hear_from(server.url, asking("无尽", "结果"))
            assert heard.text == f"{BLOCK}{number}"
        assert (await hear_from(server.url, asking("慢"))).text == "慢慢来"
        with pytest.raises(UpstreamFailed):
            await hear_from(server.url, asking("断"))
        with pytest.raises(UpstreamFailed, match="no rule"):
            await hear_from(server.url, asking("?"))


def start(*options) -> subprocess.Popen[bytes]:
    script = Path(model_server.__file__)
    return subprocess.Popen([sys.executable, str(script), *options], stdout=subprocess.PIPE)


async def test_it_runs_as_a_process_and_records_what_it_was_asked(tmp_path):
    (tmp_path / "rules.json").write_text(json.dumps([{"reply": "好"}]))
    record = tmp_path / "record.jsonl"
    with start("--script", str(tmp_path / "rules.json"), "--record", str(record)) as process:
        assert process.stdout is not None
        line = (await asyncio.to_thread(process.stdout.readline)).decode()
        assert line.startswith("listening on http://127.0.0.1:")
        assert (await hear_from(line.split()[-1])).text == "好"
        process.terminate()
    assert json.loads(record.read_text())["body"]["messages"][-1]["content"] == "你好"
