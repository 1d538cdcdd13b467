"""Whether a block without marks of a call is data or a call, by the words right before it."""

from __future__ import annotations

import pytest

from chathands.emulation.reading import parse_reply
from tests.emulation.replies import TOOLS, block, calls_of, in_pieces_of, read_in_pieces

SEND = '{"tool":"send_message","parameters":{"to":"bob","text":"hi"}}'

DATA = (
    "接口返回：",
    "The API returned the following data:",
    "好的，接口返回如下：",
    "返回数据：",
    "返回结果：",
    "查询结果：",
    "查询结果如下：",
    "执行结果：",
    "日志：",
    "以下是接口返回的数据：",
    "服务器响应：",
    "数据如下：",
    "这是工具返回的内容：",
    "我查了一下，系统返回了：",
    "得到的结果为：",
    "收到的数据：",
    "API response:",
    "Here is the API response:",
    "Here is the data:",
    "Response from the server:",
    "The server responded with:",
    "The response from the API is:",
    "Result:",
    "Data:",
    "Log:",
    "Logs:",
    "The tool returned:",
    "It returned this JSON:",
    "Query result:",
    "Search results:",
    "Tool output:",
    "Returned data:",
    "The database returned the following record:",
    "Sure, here is the raw data from the log:",
    "### 接口返回",
    "**返回结果**：",
    "The API returned the following data.",
    "调用结果如下：",
    "该函数返回：",
    "API 返回：",
    "接口响应数据如下：",
    "请求返回的报文如下：",
    "The call returned:",
    "The JSON returned by the API:",
    "日志内容如下：",
    "响应体：",
)
CALLS = (
    "好的，调用如下：",
    "Here is the function call:",
    "Response:",
    "我来查一下数据：",
    "我先查询数据：",
    "让我获取数据：",
    "现在调用接口：",
    "获取天气数据：",
    "查询数据：",
    "调用工具：",
    "我将调用接口返回数据：",
    "Here's the call:",
    "Calling the API:",
    "I'll fetch the data:",
    "Let me get the results:",
    "Here is the tool call:",
    "Here's the JSON:",
    "Here is the response:",
    "工具调用如下：",
    "操作如下：",
    "动作：",
    "为了获取结果，调用：",
    "To get the data, I will call:",
    "Fetching the data:",
    "正在查询结果：",
    "需要查询数据：",
    "我需要读取日志：",
    "先看日志：",
    "Checking the logs:",
    "First, get the data:",
    "下一步：",
    "我会发送结果：",
    "发送数据：",
    "Output:",
    "Action:",
    "My response:",
    "JSON response:",
    "好的：",
    "这就为您查询结果：",
    "Using the tool to get results:",
    "Sending the result:",
    "Search for results:",
    "Get the data:",
    "Read the log:",
    "I'll send the data:",
    "根据返回结果，下一步：",
    "接下来发送查询到的数据：",
    "把结果发给他：",
)


@pytest.mark.parametrize("lead", DATA)
def test_what_a_service_gave_back_is_data_in_whatever_form(lead: str) -> None:
    for reply in (
        f"{lead}\n{block(SEND, 'json')}",
        f"{lead}\n\n{block(SEND, '')}",
        f"{lead}\n{SEND}",
    ):
        reading = parse_reply(reply, TOOLS)
        assert (reading.calls, reading.broken, reading.text) == ((), (), reply)
        assert read_in_pieces(in_pieces_of(1, reply)) == read_in_pieces([reply])


@pytest.mark.parametrize("lead", CALLS)
def test_words_of_acting_leave_a_call_a_call(lead: str) -> None:
    assert len(calls_of(parse_reply(f"{lead}\n{block(SEND, 'json')}", TOOLS))) == 1


@pytest.mark.parametrize("lead", ["接口返回：", "The API returned the following data:"])
def test_the_contracts_own_fence_is_a_call_behind_such_words_too(lead: str) -> None:
    assert len(calls_of(parse_reply(f"{lead}\n{block(SEND)}", TOOLS))) == 1
