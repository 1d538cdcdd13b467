"""`push_message` through the executor, against stand-ins of the three platforms."""

from __future__ import annotations

import asyncio
import logging
import socket
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from chathands.conversation import Status, ToolCall
from chathands.errors import ToolOutcomeUnknown
from chathands.toolbox import RunScope
from chathands.toolbox.delivery import Delivery
from tests.standins.dingtalk import DingTalk
from tests.standins.robots import Feishu, Robot, WeCom
from tests.tools.live import ASKER, Live, live

SECRET = "Jq3cE8vT0pQ7wZ"
TABLE = "| 地区 | 销量 |\n|---|---|\n| 华东 | 120 |\n| 华北 | 80 |"


@pytest.fixture
async def wecom() -> AsyncIterator[WeCom]:
    async with WeCom() as standin:
        yield standin


@pytest.fixture
async def feishu() -> AsyncIterator[Feishu]:
    async with Feishu(secret=SECRET) as standin:
        yield standin


@pytest.fixture
async def dingtalk() -> AsyncIterator[DingTalk]:
    async with DingTalk(secret=SECRET) as standin:
        yield standin


@pytest.fixture
async def bench(
    wecom: WeCom, feishu: Feishu, dingtalk: DingTalk, tmp_path: Path
) -> AsyncIterator[Live]:
    made = {
        "运维群": {
            "platform": "wecom", "webhook": wecom.webhook, "members": {"老王": "13800000000"},
        },
        "产品群": {
            "platform": "feishu", "webhook": feishu.webhook, "secret": SECRET,
            "members": {"小李": "ou_123", "所有人": "all"},
        },
        "销售群": {"platform": "dingtalk", "webhook": dingtalk.webhook, "secret": SECRET},
    }  # fmt: skip
    chats = {"财务QQ群": {"group": "123456789"}}
    async with live(tmp_path, only="push", push={"robots": made, "chats": chats}) as made_live:
        yield made_live


async def push(bench: Live, target: str, content: str = "测试环境今晚升级", **more: Any) -> Any:
    return await bench.call("push_message", target=target, content=content, **more)


# -- kinds


async def test_wecom_gets_text_markdown_or_markdown_v2_by_what_the_content_has(
    bench: Live, wecom: WeCom
) -> None:
    assert (await push(bench, "运维群")).content == "已推送到企业微信“运维群”。"
    assert (await push(bench, "运维群", "**注意**\n测试", title="升级")).status is Status.OK
    assert (await push(bench, "运维群", f"本月\n\n{TABLE}")).status is Status.OK
    plain, simple, table = wecom.accepted
    assert plain == {"msgtype": "text", "text": {"content": "测试环境今晚升级"}}
    assert simple == {"msgtype": "markdown", "markdown": {"content": "### 升级\n**注意**\n测试"}}
    assert table == {"msgtype": "markdown_v2", "markdown_v2": {"content": f"本月\n\n{TABLE}"}}


async def test_wecom_calls_people_in_a_text_by_mobile(bench: Live, wecom: WeCom) -> None:
    result = await push(bench, "运维群", f"请看\n{TABLE}", mention=["@老王", "13900000000"])
    (body,) = wecom.accepted
    assert body["msgtype"] == "text"
    assert body["text"]["mentioned_mobile_list"] == ["13800000000", "13900000000"]
    assert "- 地区：华东" in body["text"]["content"]
    assert "表格已改成列表" in result.content


async def test_feishu_gets_text_post_or_a_card_by_what_the_content_has(
    bench: Live, feishu: Feishu
) -> None:
    await push(bench, "产品群", "明天发版")
    await push(bench, "产品群", "见 [说明](https://example.com/a)\n谢谢", title="发版")
    await push(bench, "产品群", f"# 汇总\n> 引用\n\n{TABLE}", title="月报", mention=["小李"])
    text, post, card = feishu.accepted
    assert text["content"] == {"text": "明天发版"}
    assert post["content"]["post"]["zh_cn"] == {
        "title": "发版",
        "content": [
            [
                {"tag": "text", "text": "见 "},
                {"tag": "a", "text": "说明", "href": "https://example.com/a"},
            ],
            [{"tag": "text", "text": "谢谢"}],
        ],
    }
    assert card["msg_type"] == "interactive"
    assert card["card"]["header"]["title"]["content"] == "月报"
    said = card["card"]["elements"][0]["content"]
    assert said.startswith("**汇总**\n┃ 引用\n**第 1 行**\n- **地区**：华东")
    assert said.endswith("<at id=ou_123></at>")


async def test_dingtalk_gets_text_link_card_or_markdown_by_what_the_content_has(
    bench: Live, dingtalk: DingTalk
) -> None:
    await push(bench, "销售群", "明早八点盘点", mention=["13800000000"])
    await push(bench, "销售群", "新的价目表\nhttps://example.com/p")
    await push(
        bench,
        "销售群",
        "**请审批**\n\n- [同意](https://example.com/y)\n- [不同意](https://example.com/n)",
    )
    await push(bench, "销售群", f"看\n{TABLE}", title="月报", mention=["13800000000"])
    text, link, card, markdown = (taken.body for taken in dingtalk.accepted)
    assert text["text"]["content"] == "明早八点盘点\n@13800000000"
    assert text["at"] == {"isAtAll": False, "atMobiles": ["13800000000"]}
    assert link["link"]["messageUrl"] == "https://example.com/p"
    assert link["link"]["text"] == "新的价目表"
    assert [each["title"] for each in card["actionCard"]["btns"]] == ["同意", "不同意"]
    assert markdown["markdown"]["text"].startswith("#### 月报\n\n@13800000000\n\n看\n\n")
    assert markdown["at"]["atMobiles"] == ["13800000000"]


@pytest.mark.parametrize("target", ["运维群", "产品群", "销售群"])
@pytest.mark.parametrize(
    "content",
    [
        '<@all> <at id=all></at> <at user_id="all">所有人</at> @所有人 @13800000000',
        "- <@zhang> **a** @13800000000",
        "| 客户 |\n|---|\n| <@zhang> <at id=all></at> @13800000000 |",
    ],
)
async def test_content_from_data_calls_nobody(
    bench: Live, wecom: WeCom, feishu: Feishu, dingtalk: DingTalk, target: str, content: str
) -> None:
    assert (await push(bench, target, content)).status is Status.OK
    for request in (*wecom.requests, *feishu.requests):
        body = request.body.decode()
        assert "<@" not in body
        assert "<at" not in body
        assert "mentioned" not in body
    for message in dingtalk.accepted:  # tags are nothing there
        assert "@" not in message.text
        assert message.body["at"] == {"isAtAll": False}


async def test_somebody_unknown_is_not_called_and_nothing_is_sent(
    bench: Live, wecom: WeCom, feishu: Feishu
) -> None:
    for target, who in (("运维群", "张三"), ("产品群", "13800000000"), ("运维群", "所有人")):
        result = await push(bench, target, mention=[who])
        assert result.status is Status.FAILED
        assert "没有发出" in result.content
    assert (wecom.requests, feishu.requests) == ([], [])


# -- targets


async def test_among_several_targets_the_person_is_asked(bench: Live, wecom: WeCom) -> None:
    result = await bench.call("push_message", content="你好")
    assert result.status is Status.FAILED
    assert "运维群、产品群、销售群、财务QQ群" in result.content
    assert "先问用户" in result.content
    assert wecom.requests == []


async def test_the_only_target_need_not_be_named(wecom: WeCom, tmp_path: Path) -> None:
    made = {"运维群": {"platform": "wecom", "webhook": wecom.webhook}}
    async with live(tmp_path, only="push", push={"robots": made}) as bench:
        assert "send_dingtalk_message" not in bench.generation.specs
        assert (await bench.call("push_message", content="你好")).status is Status.OK
    assert len(wecom.accepted) == 1


async def test_a_qq_chat_is_reached_where_the_bot_runs_and_said_to_be_out_of_reach_elsewhere(
    bench: Live,
) -> None:
    result = await push(bench, "财务QQ群")
    assert result.status is Status.FAILED
    assert "QQ 机器人" in result.content
    brought: list[Delivery] = []

    async def deliver(delivery: Delivery, *, seconds: float) -> None:
        brought.append(delivery)
        if len(brought) > 1:
            raise ToolOutcomeUnknown("不能确定。")

    bench.executor._performer._deliver = deliver
    result = await push(bench, "财务QQ群", title="月报")
    assert result.content == "已推送到 QQ“财务QQ群”：月报。"
    assert brought == [Delivery("**月报**\n\n测试环境今晚升级", group_id="123456789", bot_id="9")]
    assert (await push(bench, "财务QQ群", mention=["老王"])).status is Status.FAILED
    assert (await push(bench, "财务QQ群", "再来")).status is Status.UNKNOWN


async def test_a_person_sees_target_content_and_who_is_called_before_it_goes_out(
    wecom: WeCom, tmp_path: Path
) -> None:
    made = {"运维群": {"platform": "wecom", "webhook": wecom.webhook}}
    async with live(tmp_path, only="push", push={"robots": made}, approval="outward") as bench:
        scope = RunScope("A1B2-05", ASKER, bench.generation, lambda: 30.0)
        arguments = {"target": "运维群", "content": "全文", "mention": ["13800000000"]}
        batch = await bench.executor.run_batch([ToolCall("c1", "push_message", arguments)], scope)
    assert batch.pending is not None
    assert batch.pending.target == "运维群"
    assert "全文" in batch.pending.shown
    assert "13800000000" in batch.pending.shown
    assert wecom.requests == []


# -- files


async def test_wecom_takes_pictures_and_files_behind_the_text(bench: Live, wecom: WeCom) -> None:
    shared = bench.settings.data_dir / "shared"
    shared.mkdir(parents=True)
    (shared / "图.png").write_bytes(b"\x89PNG\r\n\x1a\n" + b"x" * 100)
    (shared / "九月 报表.xlsx").write_bytes(b"PK\x03\x04" + b"y" * 100)
    assert (await push(bench, "运维群", "", file="图.png")).status is Status.OK
    assert (await push(bench, "运维群", "请查收", file="九月 报表.xlsx")).status is Status.OK
    assert [body["msgtype"] for body in wecom.accepted] == ["image", "text", "file"]
    assert next(iter(wecom.uploads.values())) == ("九月 报表.xlsx", b"PK\x03\x04" + b"y" * 100)
    result = await push(bench, "产品群", "请查收", file="九月 报表.xlsx")
    assert result.status is Status.FAILED
    assert "不能发文件" in result.content
    assert (await push(bench, "运维群", file="没有.xlsx")).status is Status.FAILED


@pytest.mark.parametrize("fault", ["drop", "500", "html", "waf"])
async def test_an_upload_that_fails_is_a_failure_and_sends_nothing(
    bench: Live, wecom: WeCom, fault: str
) -> None:
    (bench.settings.data_dir / "shared").mkdir(parents=True)
    (bench.settings.data_dir / "shared" / "a.pdf").write_bytes(b"%PDF-1.7 aaaa")
    wecom.faults.append(fault)
    assert (await push(bench, "运维群", "请查收", file="a.pdf")).status is Status.FAILED
    assert wecom.accepted == []


# -- size, rate, sign


@pytest.mark.parametrize(("target", "limit"), [("运维群", 4096), ("产品群", 20_000)])
async def test_long_content_goes_out_in_numbered_parts_and_nothing_is_lost(
    bench: Live, wecom: WeCom, feishu: Feishu, target: str, limit: int
) -> None:
    rows = "\n".join(f"| 客户{number:04d} | {'值' * 20} |" for number in range(limit // 40))
    content = f"**名单**\n\n| 客户 | 备注 |\n|---|---|\n{rows}"
    result = await push(bench, target, content, title="名单")
    assert result.status is Status.OK, result.content
    standin: Robot = wecom if target == "运维群" else feishu
    bodies = [request.body.decode() for request in standin.requests]
    assert 1 < len(standin.accepted) == len(bodies)
    assert all(f"名单（{n}/{len(bodies)}）" in body for n, body in enumerate(bodies, 1))
    assert all(f"客户{number:04d}" in "".join(bodies) for number in range(limit // 40))
    if target == "运维群":  # every part of a table has its head
        assert all("| 客户 | 备注 |" in body for body in bodies)


async def test_feishu_messages_wait_for_their_turn(bench: Live, feishu: Feishu) -> None:
    started = time.monotonic()
    results = await asyncio.gather(*(push(bench, "产品群", f"第 {n} 条") for n in range(6)))
    assert [result.status for result in results] == [Status.OK] * 6
    assert time.monotonic() - started > 1
    assert len(feishu.accepted) == len(feishu.requests) == 6


async def test_more_than_twenty_a_minute_are_refused_here(bench: Live, wecom: WeCom) -> None:
    results = [await push(bench, "运维群", f"第 {number} 条") for number in range(22)]
    assert [result.status for result in results].count(Status.OK) == 20
    assert len(wecom.requests) == 20
    assert "秒再发" in results[-1].content


async def test_a_keyword_is_added_and_a_wrong_secret_named(tmp_path: Path) -> None:
    async with Feishu(secret=SECRET, keywords=("日报",)) as strict:
        robot = {"platform": "feishu", "webhook": strict.webhook, "secret": SECRET}
        made = {
            "对": {**robot, "keywords": ["日报"]},
            "没有关键词": robot,
            "密钥错": {**robot, "secret": "another-secret"},
            "地址错": {**robot, "webhook": f"{strict.url}/open-apis/bot/v2/hook/0000"},
        }
        async with live(tmp_path, only="push", push={"robots": made}) as bench:
            assert (await push(bench, "对", "库存不足")).status is Status.OK
            assert "日报" in strict.accepted[0]["content"]["text"]
            for target, words in (
                ("没有关键词", "keywords"),
                ("密钥错", "secret"),
                ("地址错", "webhook"),
            ):
                result = await push(bench, target)
                assert result.status is Status.FAILED
                assert words in result.content
    async with Feishu(secret=SECRET, now=lambda: time.time() + 7200) as ahead:
        made = {"群": {"platform": "feishu", "webhook": ahead.webhook, "secret": SECRET}}
        async with live(tmp_path / "b", only="push", push={"robots": made}) as bench:
            assert "时钟" in (await push(bench, "群")).content


# -- down, slow, garbage, own error body

REFUSALS = {
    "rate": "限流",
    "waf": "网关",
    "html": "可能是网页",
    "huge": "可能是网页",
    "list": "可能是网页",
    "no_code": "没有结果码",
    "redirect": "重新复制 webhook",
    "new_code": "87654",
}


@pytest.mark.parametrize("target", ["运维群", "产品群"])
@pytest.mark.parametrize("fault", REFUSALS)
async def test_an_answer_that_is_no_success_is_a_failure_with_its_own_sentence(
    bench: Live, wecom: WeCom, feishu: Feishu, target: str, fault: str
) -> None:
    standin: Robot = wecom if target == "运维群" else feishu
    standin.faults.append(fault)
    result = await push(bench, target)
    assert result.status is Status.FAILED
    assert result.content.startswith("消息没有发出。")
    assert REFUSALS[fault] in result.content
    assert standin.accepted == []


@pytest.mark.parametrize("target", ["运维群", "产品群"])
@pytest.mark.parametrize("fault", ["drop", "taken_then_drop", "cut", "500", "502"])
async def test_a_break_after_the_request_was_sent_is_unknown_and_not_repeated(
    bench: Live, wecom: WeCom, feishu: Feishu, target: str, fault: str
) -> None:
    standin: Robot = wecom if target == "运维群" else feishu
    standin.faults.append(fault)
    result = await push(bench, target)
    assert result.status is Status.UNKNOWN
    assert "群里看一眼" in result.content
    assert len(standin.requests) == 1


async def test_slow_is_unknown_and_down_is_a_failure(wecom: WeCom, tmp_path: Path) -> None:
    wecom.faults.append("hang")
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        nowhere = f"http://127.0.0.1:{closed.getsockname()[1]}/cgi-bin/webhook/send?key=abcdef01"
        made = {
            "慢": {"platform": "wecom", "webhook": wecom.webhook},
            "停": {"platform": "wecom", "webhook": nowhere},
        }
        async with live(tmp_path, only="push", push={"robots": made, "timeout": 0.2}) as bench:
            assert (await push(bench, "慢")).status is Status.UNKNOWN
            down = await push(bench, "停")
    assert down.status is Status.FAILED
    assert "连不上企业微信，消息没有发出" in down.content
    assert len(wecom.requests) == 1


async def test_no_token_in_results_or_logs(
    bench: Live, wecom: WeCom, feishu: Feishu, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, logger="httpx")
    caplog.set_level(logging.DEBUG)
    said = []
    for target, standin in (("运维群", wecom), ("产品群", feishu)):
        for fault in ("", "drop", "new_code", "html"):
            standin.faults.extend([fault] if fault else [])
            said.append((await push(bench, target, f"内容{fault}")).content)
    assert "/open-apis/bot/v2/hook/" in caplog.text  # httpx did log the requests
    for text in (*said, caplog.text, repr(bench.settings)):
        assert wecom.key not in text
        assert feishu.hook not in text
        assert SECRET not in text


async def test_a_dry_run_shows_what_it_would_push(tmp_path: Path) -> None:
    made = {"演示": {"platform": "feishu", "webhook": "dry-run"}}
    async with live(tmp_path, only="push", push={"robots": made}) as bench:
        result = await bench.call("push_message", content=TABLE)
    assert result.content.startswith("【演练】")
    assert "- **地区**：华东" in result.content


async def test_empty_content_is_refused(bench: Live, wecom: WeCom) -> None:
    for target in ("运维群", "产品群", "销售群"):
        for content in ("", " \n ", "\x00\x01", "---\n---"):
            result = await push(bench, target, content)
            assert result.status is Status.FAILED or (content.startswith("-")), (target, content)
    assert all(b"\\u0000" not in request.body for request in wecom.requests)
