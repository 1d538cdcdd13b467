"""Pushing to DingTalk through the executor, against a stand-in that checks what DingTalk does."""

from __future__ import annotations

import logging
import re
import socket
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from chathands.conversation import Status, ToolCall
from chathands.toolbox import RunScope
from tests.standins.dingtalk import DingTalk
from tests.tools.live import ASKER, Live, live

SECRET = "SEC8e4b0d3f6a1c"


@pytest.fixture
async def dingtalk() -> AsyncIterator[DingTalk]:
    async with DingTalk(secret=SECRET) as standin:
        yield standin


def robots(standin: DingTalk, **more: Any) -> dict[str, Any]:
    robot = {"webhook": standin.webhook, **({"secret": SECRET} if standin.secret else {}), **more}
    return {"robots": {"销售群": robot}}


@pytest.fixture
async def bench(dingtalk: DingTalk, tmp_path: Path) -> AsyncIterator[Live]:
    async with live(tmp_path, only="push", dingtalk=robots(dingtalk)) as made:
        yield made


async def push(
    bench: Live, title: str = "周报", content: str = "本周一切正常。", **more: Any
) -> Any:
    return await bench.call("send_dingtalk_message", title=title, content=content, **more)


async def test_a_signed_message_reaches_the_group_with_its_title_in_the_text(
    bench: Live, dingtalk: DingTalk
) -> None:
    result = await push(bench, robot="销售群")
    assert result.status is Status.OK
    assert result.content == "已推送到钉钉“销售群”：周报。"
    (message,) = dingtalk.accepted
    assert message.title == "周报"
    assert message.text == "#### 周报\n\n本周一切正常。"
    assert message.body["at"] == {"isAtAll": False}


async def test_the_only_robot_need_not_be_named(bench: Live, dingtalk: DingTalk) -> None:
    parameters = bench.generation.specs["send_dingtalk_message"].parameters
    assert parameters["properties"]["robot"]["enum"] == ["销售群"]
    assert "robot" not in parameters["required"]
    assert (await push(bench)).status is Status.OK
    assert len(dingtalk.accepted) == 1


async def test_the_model_never_sees_a_webhook(bench: Live) -> None:
    said = repr(bench.generation.specs["send_dingtalk_message"])
    assert "access_token" not in said
    assert SECRET not in said


async def test_every_request_is_signed_anew_and_encoded_once(
    bench: Live, dingtalk: DingTalk
) -> None:
    for number in range(12):  # enough that some sign has a + or / in it
        assert (await push(bench, content=f"第 {number} 条")).status is Status.OK
    queries = [request.raw_query for request in dingtalk.requests]
    assert len(set(queries)) == len(queries)
    assert not any("%25" in query for query in queries)


async def test_with_several_robots_and_none_named_the_person_is_asked(
    dingtalk: DingTalk, tmp_path: Path
) -> None:
    settings = robots(dingtalk)
    settings["robots"]["技术群"] = {"webhook": "dry-run"}
    async with live(tmp_path, only="push", dingtalk=settings) as bench:
        result = await push(bench)
        assert result.status is Status.FAILED
        assert "销售群、技术群" in result.content
        assert "先问用户" in result.content
    assert dingtalk.requests == []


async def test_without_a_robot_nobody_is_offered_it(tmp_path: Path) -> None:
    async with live(tmp_path, only="push") as bench:
        assert not {"send_dingtalk_message", "push_message"} & set(bench.generation.specs)


async def test_a_dry_run_robot_sends_nothing_and_shows_what_it_would(tmp_path: Path) -> None:
    async with live(
        tmp_path, only="push", dingtalk={"robots": {"演示": {"webhook": "dry-run"}}}
    ) as bench:
        result = await push(bench, content="| 地区 | 销量 |\n|---|---|\n| 华东 | 12 |")
    assert result.status is Status.OK
    assert result.content.startswith("【演练】")
    assert "标题：周报" in result.content
    assert "#### 周报\n\n- **地区**：华东\n- **销量**：12" in result.content


REFUSALS = {
    "rate": "限流",
    "waf": "网关",
    "ip": "IP 白名单",
    "stopped": "停用",
    "busy": "系统繁忙",
    "unsafe": "不安全",
    "new_code": "987654",
    "long_sign": "secret",
    "long_expired": "时钟",
    "no_errcode": "没有结果码",
    "html": "可能是网页",
    "redirect": "重新复制 webhook",
}


@pytest.mark.parametrize("fault", REFUSALS)
async def test_an_answer_that_is_no_success_is_a_failure_with_its_own_sentence(
    bench: Live, dingtalk: DingTalk, fault: Any
) -> None:
    dingtalk.faults.append(fault)
    result = await push(bench)
    assert result.status is Status.FAILED
    assert result.content.startswith("消息没有发出。")
    assert REFUSALS[fault] in result.content
    assert dingtalk.accepted == []


async def test_a_wrong_secret_is_named(dingtalk: DingTalk, tmp_path: Path) -> None:
    async with live(tmp_path, only="push", dingtalk=robots(dingtalk, secret="SECwrong00")) as bench:
        assert "签名不匹配" in (await push(bench)).content


async def test_an_unknown_token_is_named(dingtalk: DingTalk, tmp_path: Path) -> None:
    webhook = f"{dingtalk.url}/robot/send?access_token=0123456789"
    async with live(tmp_path, only="push", dingtalk=robots(dingtalk, webhook=webhook)) as bench:
        result = await push(bench)
    assert "access_token" in result.content
    assert "0123456789" not in result.content


async def test_a_webhook_without_its_token_is_named(dingtalk: DingTalk, tmp_path: Path) -> None:
    webhook = f"{dingtalk.url}/robot/send"
    async with live(tmp_path, only="push", dingtalk=robots(dingtalk, webhook=webhook)) as bench:
        assert "完整的 webhook" in (await push(bench)).content


async def test_a_clock_that_is_off_is_named(tmp_path: Path) -> None:
    async with (
        DingTalk(secret=SECRET, now=lambda: time.time() + 7200) as ahead,
        live(tmp_path, only="push", dingtalk=robots(ahead)) as bench,
    ):
        assert "校准本机的时钟" in (await push(bench)).content


async def test_a_missing_keyword_is_added_and_said(tmp_path: Path) -> None:
    async with (
        DingTalk(keywords=("通报", "日报")) as strict,
        live(tmp_path, only="push", dingtalk=robots(strict, keywords=["通报", "日报"])) as bench,
    ):
        result = await push(bench, title="库存", content="不足 10 件")
        assert result.status is Status.OK
        assert "通报" in result.content
        assert strict.accepted[0].title == "库存（通报）"
        assert strict.accepted[0].text.startswith("#### 库存（通报）\n")
        await push(bench, title="库存", content="这是日报")
        assert strict.accepted[1].title == "库存"


async def test_a_keyword_nobody_configured_is_named(tmp_path: Path) -> None:
    async with (
        DingTalk(keywords=("通报",)) as strict,
        live(tmp_path, only="push", dingtalk=robots(strict)) as bench,
    ):
        assert "keywords" in (await push(bench)).content


async def test_long_content_goes_out_in_numbered_parts_below_the_limit(
    bench: Live, dingtalk: DingTalk
) -> None:
    lines = [f"第 {number} 行：" + "销售数据" * 20 for number in range(150)]
    result = await push(bench, content="\n".join(lines))
    assert result.status is Status.OK
    assert [message.title for message in dingtalk.accepted] == ["周报（1/2）", "周报（2/2）"]
    assert all(message.size <= 20_000 for message in dingtalk.accepted)
    sent = "\n".join(message.text for message in dingtalk.accepted)
    assert [line for line in sent.split("\n") if line.startswith("第")] == lines
    assert "2 条" in result.content


async def test_far_too_long_content_is_refused_before_anything_is_sent(
    bench: Live, dingtalk: DingTalk
) -> None:
    result = await push(bench, content="很长的内容。" * 20_000)
    assert result.status is Status.FAILED
    assert "先概括" in result.content
    assert dingtalk.requests == []


async def test_a_later_part_that_fails_is_told_with_what_went_out(
    bench: Live, dingtalk: DingTalk, monkeypatch: pytest.MonkeyPatch
) -> None:
    handle = dingtalk._server._handler

    def second_fails(request: Any) -> Any:
        if len(dingtalk.accepted) == 1:
            dingtalk.faults.append("busy")
        return handle(request)

    monkeypatch.setattr(dingtalk._server, "_handler", second_fails)
    result = await push(bench, content="数据。\n" * 6000)
    assert result.status is Status.UNKNOWN
    assert "前 1 条" in result.content
    assert "系统繁忙" in result.content
    assert len(dingtalk.accepted) == 1


async def test_more_than_twenty_a_minute_are_refused_here_and_not_by_dingtalk(
    bench: Live, dingtalk: DingTalk
) -> None:
    results = [await push(bench, content=f"第 {number} 条") for number in range(22)]
    assert [result.status for result in results].count(Status.OK) == 20
    assert len(dingtalk.requests) == 20
    assert re.search(r"过 \d+ 秒再发", results[-1].content)


async def test_after_a_rate_answer_nothing_more_is_tried_for_a_while(
    bench: Live, dingtalk: DingTalk
) -> None:
    dingtalk.faults.append("rate")
    await push(bench)
    again = await push(bench, content="再来一条")
    assert again.status is Status.FAILED
    assert len(dingtalk.requests) == 1


@pytest.mark.parametrize("fault", ["drop", "taken_then_drop", "cut", "500", "502"])
async def test_a_break_after_the_request_was_sent_is_unknown_and_not_repeated(
    bench: Live, dingtalk: DingTalk, fault: Any
) -> None:
    dingtalk.faults.append(fault)
    result = await push(bench)
    assert result.status is Status.UNKNOWN
    assert "群里看一眼" in result.content
    assert len(dingtalk.requests) == 1


async def test_no_answer_in_time_is_unknown(dingtalk: DingTalk, tmp_path: Path) -> None:
    dingtalk.faults.append("hang")
    async with live(tmp_path, only="push", dingtalk={**robots(dingtalk), "timeout": 0.2}) as bench:
        result = await push(bench)
    assert result.status is Status.UNKNOWN
    assert "秒内答复" in result.content
    assert len(dingtalk.requests) == 1


async def test_a_refused_connection_is_a_failure_and_not_called_a_timeout(tmp_path: Path) -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        webhook = f"http://127.0.0.1:{closed.getsockname()[1]}/robot/send?access_token=abcdef01"
        async with live(
            tmp_path, only="push", dingtalk={"robots": {"群": {"webhook": webhook}}}
        ) as bench:
            result = await push(bench)
    assert result.status is Status.FAILED
    assert "连不上钉钉，消息没有发出" in result.content
    assert "超时" not in result.content
    assert "秒" not in result.content


async def test_no_secret_in_results_or_logs(
    bench: Live, dingtalk: DingTalk, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    caplog.set_level(logging.INFO, logger="httpx")
    said = [(await push(bench)).content]
    for fault in ("drop", "new_code", "html"):
        dingtalk.faults.append(fault)
        said.append((await push(bench, content=fault)).content)
    assert "/robot/send" in caplog.text  # httpx did log the requests
    said.append(caplog.text)
    for text in said:
        assert dingtalk.token not in text
        assert SECRET not in text
        assert "sign=" not in text


async def test_a_person_is_shown_robot_and_whole_content_before_it_goes_out(
    dingtalk: DingTalk, tmp_path: Path
) -> None:
    async with live(tmp_path, only="push", dingtalk=robots(dingtalk), approval="outward") as bench:
        scope = RunScope("A1B2-03", ASKER, bench.generation, lambda: 30.0)
        arguments = {"robot": "销售群", "title": "周报", "content": "全文在此"}
        call = ToolCall("c1", "send_dingtalk_message", arguments)
        batch = await bench.executor.run_batch([call], scope)
        assert batch.pending is not None
        assert batch.pending.target == "销售群"
        assert "全文在此" in batch.pending.shown
        assert dingtalk.requests == []
        granted = frozenset({batch.pending.call_hash})
        batch = await bench.executor.run_batch(batch.remaining, scope, granted=granted)
    assert batch.results[0].status is Status.OK
    assert len(dingtalk.accepted) == 1


async def test_a_lone_robot_left_out_is_the_same_call_as_naming_it(
    dingtalk: DingTalk, tmp_path: Path
) -> None:
    async with live(tmp_path, only="push", dingtalk=robots(dingtalk), approval="outward") as bench:
        hashes = set()
        for more in ({}, {"robot": "销售群"}):
            scope = RunScope("A1B2-04", ASKER, bench.generation, lambda: 30.0)
            arguments = {"title": "周报", "content": "全文在此", **more}
            call = ToolCall("c1", "send_dingtalk_message", arguments)
            batch = await bench.executor.run_batch([call], scope)
            assert batch.pending is not None
            hashes.add(batch.pending.call_hash)
    assert len(hashes) == 1
