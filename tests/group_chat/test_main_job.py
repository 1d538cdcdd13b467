"""The main job as NoneBot sees it: event, approval, an admin's yes, push and reply, in order."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import nonebot
import pytest
from nonebot.adapters.onebot.v11 import Adapter, Bot, Message
from nonebug import App
from pydantic import SecretStr

import plugins.group_chat as plugin
from chathands.agent import Agent, build_agent
from chathands.settings import DingTalkSettings, Robot, Settings
from chathands.upstreams.scripted import Scripted
from plugins.group_chat.chat import GroupChat
from plugins.group_chat.lifecycle import Engine
from tests.group_chat.events import BOT, GROUP, at, group_payload, reply, text
from tests.group_chat.kit import action
from tests.standins.dingtalk import DingTalk

ROOT = Path(__file__).resolve().parents[2]
REPORT = "**结论**\n\n- 华东最高 [CQ:at,qq=all]"
QUESTION, NOTICE, FINAL = 31, 501, 502


class Said:
    """Equal to a message that quotes the question, is one text and passes the check."""

    def __init__(self, check: Callable[[str], bool]) -> None:
        self._check = check

    __hash__ = None  # type: ignore[assignment]

    def __eq__(self, other: object) -> bool:
        assert isinstance(other, Message)
        quote, said = other
        return (
            (quote.type, quote.data) == ("reply", {"id": str(QUESTION)})
            and said.type == "text"
            and self._check(said.data["text"])
        )


def send(check: Callable[[str], bool]) -> dict[str, Any]:
    return {
        "message_type": "group",
        "group_id": GROUP,
        "message": Said(check),
        "_timeout": 15,
    }


@pytest.fixture
async def robot():
    async with DingTalk(secret="SECmain0123456789") as robot:
        yield robot


@pytest.fixture
async def model(tmp_path: Path, robot: DingTalk, monkeypatch: pytest.MonkeyPatch):
    """The plugin with a real agent: the project's tools and samples, a scripted model."""
    model = Scripted(
        [
            action("read_excel_data", file_path="sales/2024/09.xlsx"),
            action("send_dingtalk_message", robot="销售群", title="九月销售", content=REPORT),
            "九月的汇总已经发到销售群。",
        ]
    )
    settings = Settings(
        _env_file=None,  # type: ignore[call-arg]
        data_dir=ROOT / "data",
        tools_dir=ROOT / "tools",
        state_dir=tmp_path / "state",
        dingtalk=DingTalkSettings(
            robots={
                "销售群": Robot(
                    webhook=SecretStr(robot.webhook), secret=SecretStr("SECmain0123456789")
                )
            }
        ),
    )
    engine = Engine(lambda: build_agent(settings, upstream=model))
    chat = GroupChat(settings, plugin.line, engine)
    monkeypatch.setattr(plugin.service, "chat", chat, raising=False)

    async def ready(_: Agent) -> None: ...

    await engine.start(ready)
    yield model
    await chat.say_goodbye()
    await engine.stop()


async def test_from_an_event_to_a_push_and_one_reply(app: App, model: Scripted, robot: DingTalk):
    question = Adapter.json_to_event(
        group_payload([at(BOT), text(" 把 9 月的销售汇总整理一下发到钉钉群")], message_id=QUESTION)
    )
    yes = Adapter.json_to_event(
        group_payload([reply(NOTICE), at(BOT), text(" 确认")], user_id=5, role="admin")
    )
    assert question is not None
    assert yes is not None

    def asks(said: str) -> bool:
        parts = ("待确认 1", "user1", "销售群", "九月销售", REPORT, "确认", "取消")
        return not robot.accepted and all(part in said for part in parts)

    def answers(said: str) -> bool:
        return len(robot.accepted) == 1 and said == "九月的汇总已经发到销售群。"

    async with app.test_matcher(plugin.mention) as ctx:
        bot = ctx.create_bot(base=Bot, adapter=nonebot.get_adapter(Adapter), self_id=str(BOT))
        ctx.receive_event(bot, question)
        ctx.should_pass_rule(plugin.mention)
        ctx.should_call_api("send_msg", send(asks), {"message_id": NOTICE})
        ctx.receive_event(bot, yes)
        ctx.should_pass_rule(plugin.mention)
        quoted = {"message": [text("【待确认 1")], "sender": {"user_id": BOT}}
        ctx.should_call_api("get_msg", {"message_id": NOTICE, "_timeout": 1.0}, quoted)
        ctx.should_call_api("send_msg", send(answers), {"message_id": FINAL})

    (push,) = robot.accepted
    assert push.title == "九月销售"
    assert push.text.endswith(REPORT)
    assert "华东" in model.requests[1].messages[-1].content
