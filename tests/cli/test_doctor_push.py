"""`chathands doctor push` names the setting that is wrong, and sends nothing unless told to."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from chathands.cli.doctor_push import look
from chathands.settings import Settings, load_settings
from tests.standins.dingtalk import DingTalk
from tests.standins.robots import Feishu, WeCom

TOOLS = Path(__file__).resolve().parents[2] / "tools"
UUID = "693a91f6-7abc-4bc4-97a0-0ec2aaaa5aaa"


def made(directory: Path, **settings: Any) -> Settings:
    return load_settings(directory, tools_dir=TOOLS, **settings)


async def look_at(capsys: Any, settings: Settings, name: str, *, send: bool) -> tuple[bool, str]:
    right = await look(settings, name, send=send)
    return right, capsys.readouterr().out


async def test_a_robot_in_order_is_said_to_be_and_nothing_is_sent(tmp_path, capsys):
    async with WeCom(key=UUID) as wecom:
        robots = {"运维群": {"platform": "wecom", "webhook": wecom.webhook}}
        settings = made(tmp_path, push={"robots": robots})
        right, said = await look_at(capsys, settings, "运维群", send=False)
        assert right
        assert "没有发送任何消息；加 --send" in said
        assert wecom.accepted == []
        assert [request.method for request in wecom.requests] == ["GET"]
        right, said = await look_at(capsys, settings, "运维群", send=True)
    assert right
    assert "测试消息发出去了" in said
    assert len(wecom.accepted) == 1
    assert wecom.key not in said


WRONG = {
    "secret": {"secret": "another-secret"},
    "keywords": {"keywords": ["别的"]},
    "webhook": {"webhook": f"/open-apis/bot/v2/hook/{UUID[:-1]}b"},
}


@pytest.mark.parametrize("setting", WRONG)
async def test_sending_names_the_setting_the_platform_does_not_take(tmp_path, capsys, setting):
    async with Feishu(hook=UUID, secret="right-secret", keywords=("日报",)) as feishu:
        robot = {
            "platform": "feishu",
            "webhook": feishu.webhook,
            "secret": "right-secret",
            "keywords": ["日报"],
            **WRONG[setting],
        }
        if setting == "webhook":
            robot["webhook"] = feishu.url + robot["webhook"]
        settings = made(tmp_path, push={"robots": {"群": robot}})
        right, said = await look_at(capsys, settings, "群", send=True)
    assert not right
    assert said.splitlines()[-1].startswith(f"结论：要改的是 {setting}")
    assert "right-secret" not in said


@pytest.mark.parametrize(
    ("robot", "setting"),
    [
        ({"webhook": "https://oapi.dingtalk.com/robot/send"}, "webhook"),
        ({"webhook": "https://oapi.dingtalk.com/robot/send?access_token=..."}, "webhook"),
        ({"webhook": "https://oapi.dingtalk.com/connect?access_token=a1"}, "webhook"),
        (
            {"webhook": f"https://qyapi.weixin.qq.com/cgi-bin/webhook/send?key={UUID}",
             "platform": "feishu"},
            "platform",
        ),
        ({"webhook": f"https://open.feishu.cn/open-apis/bot/hook/{UUID}"}, "webhook"),
    ],
)  # fmt: skip
async def test_what_is_written_wrong_is_named_without_the_network(
    tmp_path, capsys, robot, setting, monkeypatch
):
    monkeypatch.setattr("chathands.toolbox.http.SharedHttp.client", _no_network)
    settings = made(tmp_path, push={"robots": {"群": robot}})
    if setting == "platform":
        monkeypatch.setattr("chathands.toolbox.http.SharedHttp.client", _refused)
    right, said = await look_at(capsys, settings, "群", send=False)
    assert not right
    assert setting in said.splitlines()[-1]


def _no_network(self: Any) -> Any:
    raise AssertionError("the network was used")


def _refused(self: Any) -> Any:
    import httpx

    def refuse(request: httpx.Request) -> httpx.Response:
        raise httpx.ConnectError("refused")

    return httpx.AsyncClient(transport=httpx.MockTransport(refuse))


async def test_a_clock_that_is_off_and_a_host_that_is_down_are_named(tmp_path, capsys):
    async with DingTalk(secret="SECabc", now=lambda: time.time() + 7200) as dingtalk:
        robots = {"群": {"webhook": dingtalk.webhook, "secret": "SECabc"}}
        settings = made(tmp_path, dingtalk={"robots": robots})
        right, said = await look_at(capsys, settings, "群", send=True)
        assert not right
        assert "结论：要改的是 时钟" in said
    right, said = await look_at(capsys, settings, "群", send=True)
    assert not right
    assert "结论：要改的是 网络" in said


async def test_a_name_nobody_configured_lists_those_there_are(tmp_path, capsys):
    robots = {"群": {"webhook": "dry-run"}}
    settings = made(tmp_path, dingtalk={"robots": robots})
    right, said = await look_at(capsys, settings, "别的群", send=False)
    assert not right
    assert "配置了的有：群" in said
    right, said = await look_at(capsys, settings, "群", send=True)
    assert right
    assert "只演练" in said
