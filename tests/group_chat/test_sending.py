"""What goes out: text segments only, in parts, quoting, and nothing that may have arrived twice."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any
from unittest.mock import ANY

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
        self.refuses: tuple[str, ...] = ()

    @property
    def kinds(self) -> list[str]:
        return [message.kind for message in self.sent]

    async def send(self, message: Outgoing, *, seconds: float) -> Sent:
        self.sent.append(message)
        if message.kind in self.refuses:
            return Sent(Fate.REFUSED)
        fate = self.fates.pop(0) if self.fates else Fate.SENT
        return Sent(fate, str(len(self.sent)) if fate is Fate.SENT else None)

    async def connected(self, bot_id: str, *, seconds: float) -> bool:
        self.waits += 1
        return self.comes_back


def sender(line: FakeLine, length: int = 200, **settings: Any) -> Sender:
    return Sender(line, GroupSettings(reply_length=length, **settings))


LONG = "\n".join(f"第{n}行" + "字" * 40 for n in range(20))


async def test_a_long_reply_is_announced_with_the_quote_and_is_one_forward():
    line = FakeLine()
    receipt = await sender(line).say(HERE, LONG, quote="55")
    announced, forward = line.sent
    assert (announced.kind, announced.quote) == ("text", "55")
    assert announced.text.startswith("第0行字")
    assert f"全文 {len(LONG)} 字" in announced.text
    assert (forward.kind, forward.quote) == ("forward", None)
    assert all(len(node) <= 200 for node in forward.nodes)
    assert "\n".join(node for node in forward.nodes if isinstance(node, str)) == LONG
    assert receipt.ids == ("1", "2")


async def test_a_refused_forward_becomes_a_file_and_a_refused_file_becomes_parts():
    line = FakeLine()
    line.refuses = ("forward",)
    await sender(line).say(HERE, LONG)
    assert line.kinds == ["text", "forward", "file"]
    name, data = line.sent[-1].file or ("", b"")
    assert (name, data.decode("utf-8-sig")) == ("回答.txt", LONG)

    line = FakeLine()
    line.refuses = ("forward", "file")
    receipt = await sender(line).say(HERE, LONG)
    assert "\n".join(m.text for m in line.sent[3:]) == LONG
    assert receipt.fate is Fate.SENT


async def test_a_forward_that_may_have_arrived_is_not_said_again_in_another_way():
    line = FakeLine(Fate.SENT, Fate.UNKNOWN)
    receipt = await sender(line).say(HERE, LONG)
    assert line.kinds == ["text", "forward"]
    assert receipt.fate is Fate.UNKNOWN


async def test_what_nobody_scrolls_through_is_a_file_at_once():
    line = FakeLine()
    await sender(line).say(HERE, "很长。" * 5000)
    assert line.kinds == ["text", "file"]


async def test_by_setting_long_replies_go_out_in_parts_and_only_the_first_quotes():
    line = FakeLine()
    receipt = await sender(line, long_reply="parts").say(HERE, LONG, quote="55")
    assert [m.quote for m in line.sent] == ["55"] + [None] * (len(line.sent) - 1)
    assert all(len(m.text) <= 200 for m in line.sent)
    assert "\n".join(m.text for m in line.sent) == LONG
    assert len(receipt.ids) == len(line.sent)


async def test_a_model_that_never_ends_does_not_flood_the_group():
    line = FakeLine()
    line.refuses = ("file", "forward")
    await sender(line).say(HERE, "永远不停。" * 4000)
    assert line.kinds == ["text", "file", "forward"] + ["text"] * 8
    assert "后面 18400 字没有发出来" in line.sent[-1].text
    forward = line.sent[2]
    assert len(forward.nodes) == 41
    assert "没有发出来" in str(forward.nodes[-1])


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
    receipt = await sender(line, long_reply="parts").say(HERE, "字" * 1000, quote="55")
    assert len(line.sent) == 2
    assert receipt.fate is Fate.REFUSED


async def test_an_ambiguous_send_is_never_repeated_and_the_rest_follows():
    line = FakeLine(Fate.UNKNOWN)
    text = "甲" * 200 + "乙" * 100
    await sender(line, long_reply="parts").say(HERE, text, quote="55")
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


# --- links, files, tables


async def test_refused_links_are_broken_up_once():
    line = FakeLine(Fate.REFUSED)
    await sender(line).say(HERE, "看 https://a.example.com/x?y=1 和 www.b.cn/z")
    assert len(line.sent) == 2
    first, rest = line.sent[-1].text.split("\n")
    assert first == "看 https:// a .example .com/x?y=1 和 www .b .cn/z"
    assert "去掉空格" in rest

    line = FakeLine(*[Fate.REFUSED] * 9)
    assert (await sender(line).say(HERE, "https://a.cn", quote="5")).fate is Fate.REFUSED
    assert [(m.quote, " " in m.text) for m in line.sent] == [
        ("5", False), (None, False), (None, True),
    ]  # fmt: skip


async def test_a_refusal_whatever_the_form_is_tried_in_no_other():
    class Muted(FakeLine):
        async def send(self, message: Outgoing, *, seconds: float) -> Sent:
            self.sent.append(message)
            return Sent(Fate.REFUSED, final=True)

    line = Muted()
    receipt = await sender(line).say(HERE, LONG + "https://a.cn", quote="5", files=[("a", b"b")])
    assert (len(line.sent), receipt.fate) == (1, Fate.REFUSED)


PNG = b"\x89PNG\r\n\x1a\n" + b"0" * 20


async def test_files_of_tools_follow_the_answer():
    line = FakeLine()
    await sender(line).say(
        HERE, "好了。", quote="5", files=[("../报表.xlsx", b"PK"), ("a.png", PNG)]
    )
    assert [(m.kind, m.quote) for m in line.sent] == [
        ("text", "5"),
        ("file", None),
        ("image", None),
    ]
    assert line.sent[1].file == ("报表.xlsx", b"PK")
    assert line.sent[2].image == PNG


async def test_a_file_that_is_refused_is_told():
    line = FakeLine()
    line.refuses = ("file", "image")
    await sender(line).say(
        HERE, "好了。", files=[("[CQ:at,qq=all].xlsx", b"x" * 5000), ("a.png", PNG)]
    )
    assert line.kinds == ["text", "file", "text", "image", "file", "text"]
    assert "文件「[CQ_at,qq=all].xlsx」（5 KB）没能发出来" in line.sent[2].text


TABLE = "结果：\n\n| 地区 | 销售额 |\n|---|---|\n| 华东 | 120 |\n| 华南 | 98 |\n\n完。"


async def test_a_table_is_a_picture_below_the_text_before_it():
    line = FakeLine()
    await sender(line).say(HERE, TABLE, quote="5")
    picture, rest = line.sent
    assert (picture.kind, picture.text, picture.quote) == ("image", "结果：", "5")
    assert picture.image.startswith(b"\x89PNG")
    assert (rest.text, rest.quote) == ("完。", None)


async def test_a_refused_picture_and_a_machine_without_a_font_give_lines(monkeypatch):
    lines = "结果：\n\n地区  销售额\n华东     120\n华南      98"
    line = FakeLine()
    line.refuses = ("image",)
    await sender(line).say(HERE, TABLE)
    assert [m.text for m in line.sent] == ["结果：", lines, "完。"]

    monkeypatch.setattr("plugins.group_chat.reply.draw", lambda table, font: None)
    line = FakeLine()
    await sender(line).say(HERE, TABLE)
    assert [m.text for m in line.sent] == [f"{lines}\n\n完。"]


async def test_by_setting_a_table_is_a_list():
    line = FakeLine()
    await sender(line, tables="list").say(HERE, TABLE)
    assert [m.text for m in line.sent] == ["结果：\n\n地区：销售额\n华东：120\n华南：98\n\n完。"]


async def test_a_table_that_does_not_fit_a_picture_comes_as_a_file_too():
    line = FakeLine()
    rows = "\n".join(f"| 第{n}行 | {n} |" for n in range(300))
    await sender(line).say(HERE, f"| 名 | 值 |\n|---|---|\n{rows}")
    assert line.kinds == ["image", "file"]
    name, data = line.sent[1].file or ("", b"")
    assert name == "表格.csv"
    assert len(data.decode("utf-8-sig").splitlines()) == 301


async def test_pictures_stand_in_the_forward_of_a_long_reply():
    line = FakeLine()
    await sender(line).say(HERE, f"{LONG}\n\n{TABLE}")
    kinds = [type(node).__name__ for node in line.sent[1].nodes]
    assert kinds.count("bytes") == 1
    assert kinds[-1] == "str"


# --- the shapes of each implementation


def version(name: str) -> tuple[str, dict[str, Any], dict[str, Any]]:
    return "get_version_info", {"_timeout": 1.0}, {"app_name": name}


@pytest.fixture
async def calls(app: App):
    """One message through a real line; `expected` are (api, data, answer or exception)."""

    async def calls(message: Outgoing, *expected: tuple[str, dict[str, Any], Any]) -> Sent:
        line = OneBotLine()
        async with app.test_api() as ctx:
            ctx.create_bot(base=Bot, adapter=nonebot.get_adapter(Adapter), self_id=str(BOT))
            for api, data, answer in expected:
                failure = answer if isinstance(answer, Exception) else None
                ctx.should_call_api(api, data, None if failure else answer, exception=failure)
            return await line.send(message, seconds=15)

    return calls


def node(segment: MessageSegment) -> dict[str, Any]:
    who = {"user_id": str(BOT), "nickname": "回答", "uin": str(BOT), "name": "回答"}
    content = [{"type": segment.type, "data": segment.data}]
    return {"type": "node", "data": {**who, "content": content}}


async def test_a_forward_has_nodes_for_every_implementation(calls):
    nodes = [node(MessageSegment.text(INJECTION)), node(picture := MessageSegment.image(PNG))]
    assert picture.data["file"].startswith("base64://")
    nodes[1]["data"]["content"] = [{"type": "image", "data": {"file": picture.data["file"]}}]
    message = Outgoing(HERE, "", kind="forward", nodes=(INJECTION, PNG))
    data = {"group_id": GROUP, "messages": nodes, "_timeout": 15}
    sent = await calls(message, ("send_group_forward_msg", data, {"message_id": 7}))
    assert sent == Sent(Fate.SENT, "7")
    message = Outgoing(ALONE, "", kind="forward", nodes=("好",))
    data = {"user_id": 1, "messages": [node(MessageSegment.text("好"))], "_timeout": 15}
    await calls(message, ("send_private_forward_msg", data, {"message_id": 7}))


@pytest.mark.parametrize("name", ["NapCat.Onebot", "LLOneBot"])
async def test_napcat_and_llonebot_are_given_files_as_base64(calls, name):
    message = Outgoing(HERE, "", kind="file", file=("a.txt", b"x"))
    data = {"group_id": GROUP, "file": "base64://eA==", "name": "a.txt", "_timeout": ANY}
    assert (
        await calls(message, version(name), ("upload_group_file", data, None))
    ).fate is Fate.SENT


@pytest.mark.parametrize("name", ["Lagrange.OneBot", "go-cqhttp"])
async def test_lagrange_and_gocqhttp_are_given_a_path_that_is_gone_afterwards(calls, name):
    class IsAFile(str):
        """Equal to a path that can be read at the moment of the call."""

        def __eq__(self, other: object) -> bool:
            self.path = Path(str(other))
            return self.path.read_bytes() == b"x"

        __hash__ = str.__hash__

    there = IsAFile()
    message = Outgoing(ALONE, "", kind="file", file=("a.txt", b"x"))
    data = {"user_id": 1, "file": there, "name": "a.txt", "_timeout": ANY}
    sent = await calls(message, version(name), ("upload_private_file", data, None))
    assert sent.fate is Fate.SENT
    assert not there.path.exists()


async def test_an_unknown_call_is_refused_even_without_words(calls):
    message = Outgoing(HERE, "", kind="forward", nodes=("好",))
    data = {"group_id": GROUP, "messages": ANY, "_timeout": 15}
    error = ActionFailed(status="failed", retcode=404)
    sent = await calls(message, ("send_group_forward_msg", data, error))
    assert (sent.fate, sent.final) == (Fate.REFUSED, False)


async def test_a_muted_bot_is_refused_for_good(send):
    wire = Message([MessageSegment.text("好")])
    error = ActionFailed(
        status="failed", retcode=1200, wording='EventChecker Failed: {"result": 120}'
    )
    sent, _ = await send(Outgoing(HERE, "好"), send_msg(wire), error)
    assert (sent.fate, sent.final) == (Fate.REFUSED, True)


async def test_lagranges_bare_failure_is_a_refusal_only_if_it_cannot_find_the_quote(calls):
    message = Outgoing(HERE, "好", "55")
    wire = Message([MessageSegment.reply(55), MessageSegment.text("好")])
    failed = ("send_msg", send_msg(wire), ActionFailed(status="failed", retcode=200))
    asked = ("get_msg", {"message_id": 55, "_timeout": ANY})
    unknown = ActionFailed(status="failed", retcode=200)
    assert (await calls(message, failed, (*asked, unknown))).fate is Fate.REFUSED
    assert (await calls(message, failed, (*asked, {"message_id": 55}))).fate is Fate.UNKNOWN


def test_a_failure_that_does_not_call_itself_failed_is_one():
    from nonebot.adapters.onebot.v11 import adapter

    handle = getattr(adapter, "handle_api_result")  # noqa: B009
    with pytest.raises(ActionFailed):
        handle({"status": "upload failed", "retcode": -1, "data": None})
    assert handle({"status": "ok", "retcode": 0, "data": 1}) == 1
    assert handle({"status": "async", "retcode": 1, "data": None}) is None
