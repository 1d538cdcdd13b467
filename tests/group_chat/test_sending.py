"""What goes out: text segments only, in parts, quoting, and nothing that may have arrived twice."""

from __future__ import annotations

import asyncio
from typing import Any

import nonebot
import pytest
from nonebot.adapters.onebot.v11 import (
    ActionFailed,
    Adapter,
    ApiNotAvailable,
    Bot,
    Message,
    MessageSegment,
    NetworkError,
)
from nonebug import App

from chathands.settings import GroupSettings
from plugins.group_chat.messages import Fate, Outgoing, Place, Sent
from plugins.group_chat.onebot_v11 import PLATFORM, OneBotLine
from plugins.group_chat.reply import NOTHING_LEFT, Sender
from tests.group_chat.events import BOT, GROUP

HERE = Place(PLATFORM, str(BOT), str(GROUP), "1")
ALONE = Place(PLATFORM, str(BOT), None, "1")
INJECTION = "[CQ:at,qq=all] [CQ:image,file=file:///etc/passwd] &#91;x&#93;"


def send_msg(message: Message, **target: Any) -> dict[str, Any]:
    target = target or {"message_type": "group", "group_id": GROUP}
    return {**target, "message": message, "_timeout": 15}


@pytest.fixture
async def send(app: App):
    """One message through a real line and adapter; `answer` is what the peer says."""

    async def send(
        message: Outgoing, data: dict[str, Any], answer: Any = None
    ) -> tuple[Sent, OneBotLine]:
        line = OneBotLine()
        failure = answer if isinstance(answer, Exception) else None
        async with app.test_api() as ctx:
            ctx.create_bot(base=Bot, adapter=nonebot.get_adapter(Adapter), self_id=str(BOT))
            ctx.should_call_api("send_msg", data, None if failure else answer, exception=failure)
            return await line.send(message, seconds=15), line

    return send


async def test_a_reply_quotes_the_question_and_is_one_text_segment(send):
    wire = Message([MessageSegment.reply(55), MessageSegment.text("好的")])
    sent, _ = await send(Outgoing(HERE, "好的", "55"), send_msg(wire), {"message_id": 9})
    assert sent == Sent(Fate.SENT, "9")


async def test_codes_in_text_stay_text(send):
    wire = Message([MessageSegment.text(INJECTION)])
    await send(Outgoing(HERE, INJECTION), send_msg(wire), {"message_id": 9})
    assert [segment.type for segment in wire] == ["text"]


async def test_a_private_reply_goes_to_the_person(send):
    wire = Message([MessageSegment.text("好")])
    data = send_msg(wire, message_type="private", user_id=1)
    await send(Outgoing(ALONE, "好"), data, {"message_id": 9})


async def test_a_message_without_an_id_is_not_quoted(send):
    await send(Outgoing(HERE, "好", "0"), send_msg(Message([MessageSegment.text("好")])))


NAPCAT_TIMEOUT = "Timeout: NTEvent serviceAndMethod:NodeIKernelMsgService/sendMsg"


@pytest.mark.parametrize(
    ("error", "fate"),
    [
        (ApiNotAvailable(), Fate.DOWN),
        (NetworkError("HTTP request failed"), Fate.DOWN),
        (RuntimeError("websocket is closed"), Fate.DOWN),
        (NetworkError("WebSocket call api send_msg timeout"), Fate.UNKNOWN),
        (ActionFailed(status="failed", retcode=1200, message=NAPCAT_TIMEOUT), Fate.UNKNOWN),
        (ActionFailed(status="failed", retcode=200), Fate.UNKNOWN),
        (ActionFailed(status="failed", retcode=1200, wording="EventChecker Failed"), Fate.REFUSED),
        (ActionFailed(status="failed", retcode=100, wording="blocked by server"), Fate.REFUSED),
        (ActionFailed(status="failed", retcode=1400, message="bad params"), Fate.REFUSED),
    ],
    ids=repr,
)
async def test_every_failure_has_its_fate(send, error, fate):
    wire = Message([MessageSegment.text("好")])
    sent, _ = await send(Outgoing(HERE, "好"), send_msg(wire), error)
    assert sent.fate is fate


async def test_without_a_bot_the_connection_is_down():
    line = OneBotLine()
    assert (await line.send(Outgoing(HERE, "好"), seconds=1)).fate is Fate.DOWN
    assert not await line.connected(str(BOT), seconds=0)


class FakeLine:
    """Answers sends with the given fates, then with success."""

    def __init__(self, *fates: Fate, comes_back: bool = True) -> None:
        self.fates = list(fates)
        self.sent: list[Outgoing] = []
        self.comes_back = comes_back
        self.waits = 0

    async def send(self, message: Outgoing, *, seconds: float) -> Sent:
        self.sent.append(message)
        fate = self.fates.pop(0) if self.fates else Fate.SENT
        return Sent(fate, str(len(self.sent)) if fate is Fate.SENT else None)

    async def connected(self, bot_id: str, *, seconds: float) -> bool:
        self.waits += 1
        return self.comes_back


def sender(line: FakeLine, length: int = 200) -> Sender:
    return Sender(line, GroupSettings(reply_length=length))


async def test_long_replies_go_out_in_parts_and_only_the_first_quotes():
    line = FakeLine()
    text = "\n".join(f"第{n}行" + "字" * 40 for n in range(20))
    receipt = await sender(line).say(HERE, text, quote="55")
    assert len(line.sent) > 2
    assert [m.quote for m in line.sent] == ["55"] + [None] * (len(line.sent) - 1)
    assert all(len(m.text) <= 200 for m in line.sent)
    assert "\n".join(m.text for m in line.sent) == text
    assert len(receipt.ids) == len(line.sent)


async def test_a_model_that_never_ends_does_not_flood_the_group():
    line = FakeLine()
    await sender(line).say(HERE, "永远不停。" * 2000)
    assert len(line.sent) == 8
    assert "后面 8400 字没有发出来" in line.sent[-1].text


async def test_an_approval_is_shown_whole_however_long():
    line = FakeLine()
    await sender(line).say(HERE, "字" * 2000, verbatim=True)
    assert "".join(m.text for m in line.sent) == "字" * 2000


@pytest.mark.parametrize("text", ["```", "| |\n|---|\n", "\x00\x1b", " \n"])
async def test_a_reply_of_nothing_but_marks_is_not_silence(text):
    line = FakeLine()
    await sender(line).say(HERE, text, quote="55")
    assert [(m.text, m.quote) for m in line.sent] == [(NOTHING_LEFT, "55")]


async def test_markdown_is_made_plain_but_an_approval_is_shown_as_it_is():
    line = FakeLine()
    await sender(line).say(HERE, "**粗**")
    await sender(line).say(HERE, "**粗**", verbatim=True)
    assert [m.text for m in line.sent] == ["粗", "**粗**"]


async def test_a_refused_quote_is_sent_without_it():
    line = FakeLine(Fate.REFUSED)
    receipt = await sender(line).say(HERE, "好", quote="55")
    assert [m.quote for m in line.sent] == ["55", None]
    assert receipt.fate is Fate.SENT


async def test_a_refused_message_is_not_tried_again_and_ends_the_reply():
    line = FakeLine(Fate.REFUSED, Fate.REFUSED)
    receipt = await sender(line).say(HERE, "字" * 1000, quote="55")
    assert len(line.sent) == 2
    assert receipt.fate is Fate.REFUSED


async def test_an_ambiguous_send_is_never_repeated_and_the_rest_follows():
    line = FakeLine(Fate.UNKNOWN)
    text = "甲" * 200 + "乙" * 100
    await sender(line).say(HERE, text, quote="55")
    assert "".join(m.text for m in line.sent) == text


async def test_what_surely_did_not_leave_goes_out_after_the_reconnect(monkeypatch):
    monkeypatch.setattr("plugins.group_chat.reply.SEND_AGAIN_SECONDS", 0)
    line = FakeLine(Fate.DOWN, Fate.DOWN)
    receipt = await sender(line).say(HERE, "好", quote="55")
    assert [(m.text, m.quote) for m in line.sent] == [("好", "55")] * 3
    assert (line.waits, receipt.fate) == (2, Fate.SENT)


async def test_a_connection_that_does_not_come_back_is_given_up(monkeypatch):
    monkeypatch.setattr("plugins.group_chat.reply.SEND_AGAIN_SECONDS", 0)
    line = FakeLine(*[Fate.DOWN] * 9, comes_back=False)
    receipt = await sender(line).say(HERE, "好")
    assert (len(line.sent), receipt.fate) == (1, Fate.DOWN)


async def test_without_patience_nothing_is_waited_for():
    line = FakeLine(Fate.DOWN)
    await sender(line).say(HERE, "再见", patience=0)
    assert (len(line.sent), line.waits) == (1, 0)


async def test_leaving_lets_go_of_what_still_waits():
    began = asyncio.Event()

    class Silent(FakeLine):
        async def send(self, message: Outgoing, *, seconds: float) -> Sent:
            began.set()
            return await asyncio.get_running_loop().create_future()

    mouth = sender(Silent())
    saying = asyncio.ensure_future(mouth.say(HERE, "好"))
    await began.wait()
    mouth.leave()
    async with asyncio.timeout(1):
        assert (await saying).ids == ()
