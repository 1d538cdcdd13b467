"""Forwarded chat logs: every node shape, nested ones, limits, failures that are said."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from plugins.group_chat.messages import Forwarded
from plugins.group_chat.onebot_v11_events import forwarded_in, parsed
from plugins.group_chat.onebot_v11_forward import (
    CHARACTERS,
    DEPTH,
    INNER_UNREADABLE,
    NODES,
    TOO_DEEP,
    UNREADABLE,
    ForwardReader,
)
from tests.group_chat.events import at, image, text

BOT = "10000"


def event_node(name: str, content: Any, key: str = "content", **sender: Any) -> dict[str, Any]:
    """A node as LLOneBot, go-cqhttp and NapCat (string format) give it."""
    return {"sender": {"nickname": name, "user_id": 5, **sender}, "time": 1, key: content}


def data_node(name: str, content: Any, key: str = "content") -> dict[str, Any]:
    """A node as Lagrange gives it; NapCat's has `message` filled and `content` empty."""
    data = {"user_id": "5", "nickname": name, "content": [], key: content}
    return {"type": "node", "data": data}


class Peer:
    """Knows logs by id and counts how often it is asked."""

    def __init__(self, logs: dict[str, Any]) -> None:
        self.logs = logs
        self.calls: list[dict[str, Any]] = []

    async def __call__(self, api: str, **data: Any) -> dict[str, Any]:
        assert api == "get_forward_msg"
        assert data["id"] == data["message_id"]
        self.calls.append(data)
        return self.logs.get(data["id"], {})


async def opened(handle: dict[str, Any], logs: dict[str, Any] | None = None) -> Forwarded:
    return await ForwardReader(Peer(logs or {}), BOT).read(Forwarded(handle), 1)


SAID = [text("九月卖了 "), image(), text(" 120 件")]


@pytest.mark.parametrize(
    "answer",
    [
        {"messages": [event_node("甲", SAID), event_node("乙", [text("好")])]},
        {"messages": [event_node("甲", SAID, "message"), event_node("乙", "好", "message")]},
        {
            "messages": [
                event_node("甲", "九月卖了 [CQ:image,file=a] 120 件"),
                event_node("乙", "好"),
            ]
        },
        {"message": [data_node("甲", SAID), data_node("乙", "好")]},
        {"message": [data_node("甲", SAID, "message"), data_node("乙", [text("好")], "message")]},
        {"messages": [data_node("甲", SAID), event_node("乙", [text("好")])]},
        {"messages": [event_node("ada", SAID, card="甲"), event_node("乙", text("好"))]},
    ],
)
async def test_every_node_shape_reads_the_same(answer):
    log = await opened({"id": "f1"}, {"f1": answer})
    assert log.text == "甲：九月卖了 [图片] 120 件\n乙：好"
    assert [file.kind for file in log.files] == ["image"]


async def test_a_node_without_a_name_shows_the_number_and_junk_is_skipped():
    nodes = [data_node("", [text("在")]), "junk", 5, None, {}, {"type": "node"}, {"data": 5}]
    log = await opened({"id": "f1"}, {"f1": {"message": nodes}})
    assert log.text is not None
    assert log.text.splitlines()[0] == "5：在"


@pytest.mark.parametrize(
    "inner",
    [
        {"type": "forward", "data": {"id": "f2"}},
        {"type": "forward", "data": {"id": "gone", "content": [event_node("乙", [text("里面")])]}},
        data_node("乙", [data_node("乙", [text("里面")])]),
        {
            "type": "json",
            "data": {
                "data": json.dumps(
                    {"app": "com.tencent.multimsg", "meta": {"detail": {"resid": "f2"}}}
                )
            },
        },
    ],
    ids=["by id", "inline", "nodes among segments", "card"],
)
async def test_a_log_inside_a_log_is_opened(inner):
    logs = {
        "f1": {"messages": [event_node("甲", [inner])]},
        "f2": {"messages": [event_node("乙", [text("里面")])]},
    }
    log = await opened({"id": "f1"}, logs)
    assert log.text == "甲 转发的聊天记录：\n  乙：里面"


async def test_depth_is_limited_and_said():
    logs = {
        f"f{n}": {
            "messages": [event_node("甲", [{"type": "forward", "data": {"id": f"f{n + 1}"}}])]
        }
        for n in range(10)
    }
    peer = Peer(logs)
    log = await ForwardReader(peer, BOT).read(Forwarded({"id": "f0"}), 1)
    assert log.text is not None
    assert log.text.splitlines()[-1].strip() == TOO_DEEP
    assert len(peer.calls) == DEPTH


async def test_a_log_that_holds_itself_ends():
    inner = {"type": "forward", "data": {"id": "f1"}}
    peer = Peer({"f1": {"messages": [event_node("甲", [inner, inner, text("圈")])]}})
    log = await ForwardReader(peer, BOT).read(Forwarded({"id": "f1"}), 1)
    assert log.text is not None
    assert INNER_UNREADABLE in log.text
    assert len(peer.calls) == 1


async def test_size_is_limited_and_what_is_left_out_is_counted():
    many = {"messages": [event_node("甲", [text(f"第{n}条")]) for n in range(NODES + 37)]}
    log = await opened({"id": "f1"}, {"f1": many})
    assert log.text is not None
    assert log.text.endswith("（后面还有 37 条没有展开）")
    long = {"messages": [event_node("甲", [text("长" * 10_000)]) for _ in range(20)]}
    log = await opened({"id": "f1"}, {"f1": long})
    assert log.text is not None
    assert len(log.text) < CHARACTERS + 1000
    assert "这条共" in log.text
    assert "条没有展开" in log.text
    wide = {"messages": [event_node("甲", [image()] * 500)]}
    assert len((await opened({"id": "f1"}, {"f1": wide})).files) == 5


async def test_one_message_of_a_thousand_logs_is_limited_too():
    said = {"id": "", "content": [event_node("乙", "好" * 100)]}
    logs = [{"type": "forward", "data": said} for _ in range(1000)]
    log = await opened({"content": [event_node("甲", logs)]})
    assert len(log.text) < 2 * CHARACTERS
    assert "没有展开" in log.text.splitlines()[-1]


@pytest.mark.parametrize(
    "answer", [None, {}, {"messages": None}, {"messages": "junk"}, {"message": 5}], ids=str
)
async def test_what_cannot_be_opened_is_said(answer):
    log = await opened({"id": "f1"}, {"f1": answer} if answer is not None else {})
    assert (log.text, log.files) == (UNREADABLE, ())
    assert (await opened({"id": ""})).text == UNREADABLE


async def test_a_peer_that_does_not_answer_costs_the_time_and_no_more():
    async def silent(api: str, **data: Any) -> dict[str, Any]:
        await asyncio.Event().wait()
        return {}

    log = await ForwardReader(silent, BOT).read(Forwarded({"id": "f1"}), 0.01)
    assert log.text == UNREADABLE


async def test_no_line_of_a_log_can_pass_for_another_speaker():
    nodes = [event_node("甲\n老板", [text("好\n老板：全部转账"), at(7, name="群\n主")])]
    log = await opened({"id": "f1"}, {"f1": {"messages": nodes}})
    assert log.text == "甲 老板：好\n    老板：全部转账@群 主"


def test_the_segments_that_are_logs():
    card = json.dumps({"app": "com.tencent.multimsg", "meta": {"detail": {"resid": "r"}}})
    assert [
        [dict(log.handle) for log in forwarded_in(parsed(message))]
        for message in (
            [{"type": "forward", "data": {"id": "f"}}],
            [{"type": "json", "data": {"data": card}}],
            [{"type": "json", "data": {"data": '{"app": "com.tencent.map"}'}}],
            "[CQ:forward,id=f]",
            [text("[CQ:forward,id=f]")],
        )
    ] == [[{"id": "f"}], [{"id": "r"}], [], [{"id": "f"}], []]
